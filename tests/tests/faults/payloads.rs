//! What a payload or an error text may hold, and how much: it comes back as it was, or is refused.

use std::sync::Mutex;

use queue_runtime::job::DeadReason;
use queue_runtime::{Data, EnqueueError, JobError, JobState, Queue, Worker, WorkerBuilder, job};
use serde::{Deserialize, Serialize};

use crate::world::{World, finals, job};

on! { memory:
    real {
        o_089_a_nul_in_an_error_or_a_panic_does_not_keep_a_job_from_its_end
        o_090_numbers_at_the_edges_reach_the_handler_bit_by_bit
        o_092_payloads_up_to_the_limit_run_and_one_byte_more_is_refused
    }
}

on! { sqlite:
    real {
        o_089_a_nul_in_an_error_or_a_panic_does_not_keep_a_job_from_its_end
        o_090_numbers_at_the_edges_reach_the_handler_bit_by_bit
        o_092_payloads_up_to_the_limit_run_and_one_byte_more_is_refused
    }
}

on! { postgres:
    real {
        o_089_a_nul_in_an_error_or_a_panic_does_not_keep_a_job_from_its_end
        o_090_numbers_at_the_edges_reach_the_handler_bit_by_bit
        o_092_payloads_up_to_the_limit_run_and_one_byte_more_is_refused
    }
}

/// Runs so many jobs to their ends, on a handle of its own.
async fn run(
    world: &World,
    jobs: usize,
    with: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
) -> Queue {
    let queue = world.open().await;
    let ended = finals(&[&queue], jobs);
    let worker = with(Worker::builder(&queue));
    worker.run_until(ended).await.expect("ends well");
    queue
}

#[job(retries = 0)]
async fn says_nul(panics: bool) -> Result<(), JobError> {
    match panics {
        true => panic!("before\0after"),
        false => Err(JobError::retry("before\0after")),
    }
}

async fn o_089_a_nul_in_an_error_or_a_panic_does_not_keep_a_job_from_its_end(world: &World) {
    let producer = world.open().await;
    let mut ids = Vec::new();
    for panics in [false, true] {
        ids.push(
            says_nul::enqueue(&producer, panics)
                .await
                .expect("enqueued")
                .id,
        );
    }

    run(world, ids.len(), |worker| worker.job::<SaysNulJob>()).await;

    for id in ids {
        let job = job(&producer, id).await;
        assert_eq!(
            (job.state, job.dead_reason),
            (JobState::DeadLetter, Some(DeadReason::AttemptsExhausted))
        );
        let attempts = producer.attempts(id).await.expect("it answers");
        for error in [job.last_error, attempts[0].error.clone()] {
            let error = error.expect("a reason");
            assert!(
                error.contains("before") && error.contains("after"),
                "{error:?}"
            );
            assert!(!error.contains('\0'), "{error:?}");
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Numbers {
    odd: i64,
    low: i64,
    high: i64,
    top: u64,
    tenth: f64,
    huge: f64,
}

#[job]
async fn takes_numbers(numbers: Numbers, seen: Data<Mutex<Vec<Numbers>>>) {
    seen.lock().expect("no panic while noting").push(numbers);
}

async fn o_090_numbers_at_the_edges_reach_the_handler_bit_by_bit(world: &World) {
    let numbers = Numbers {
        odd: (1 << 53) + 1,
        low: i64::MIN,
        high: i64::MAX,
        top: u64::MAX,
        tenth: 0.1,
        huge: 1e308,
    };
    let producer = world.open().await;
    let sent = takes_numbers::enqueue(&producer, numbers)
        .await
        .expect("enqueued");
    let seen = Data::new(Mutex::new(Vec::<Numbers>::new()));

    run(world, 1, |worker| {
        worker.job::<TakesNumbersJob>().shared(seen.clone())
    })
    .await;

    let seen = seen.lock().expect("no panic while noting").clone();
    assert_eq!(seen, [numbers]);
    assert_eq!(seen[0].tenth.to_bits(), numbers.tenth.to_bits());
    assert_eq!(seen[0].huge.to_bits(), numbers.huge.to_bits());
    let payload = job(&producer, sent.id).await.payload;
    for exact in [
        "9007199254740993",
        "-9223372036854775808",
        "18446744073709551615",
    ] {
        assert!(payload.contains(exact), "{payload}");
    }
}

#[job]
async fn takes_text(text: String, lengths: Data<Mutex<Vec<usize>>>) {
    lengths
        .lock()
        .expect("no panic while noting")
        .push(text.len());
}

/// From below what a Postgres notification could carry up to the limit of a payload.
async fn o_092_payloads_up_to_the_limit_run_and_one_byte_more_is_refused(world: &World) {
    const LIMIT: usize = 1024 * 1024;
    let around = r#"{"text":""}"#.len();
    let sizes = [7_000, 8_000, 9_000, LIMIT - 1, LIMIT];
    let producer = world.open().await;
    let enqueue = |size: usize| takes_text::enqueue(&producer, "x".repeat(size - around));
    for size in sizes {
        enqueue(size).await.expect("enqueued");
    }
    let refused = enqueue(LIMIT + 1).await.expect_err("too large");
    let EnqueueError::PayloadTooLarge { size, limit, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!((*size, *limit), (LIMIT + 1, LIMIT));

    let lengths = Data::new(Mutex::new(Vec::<usize>::new()));
    run(world, sizes.len(), |worker| {
        worker.job::<TakesTextJob>().shared(lengths.clone())
    })
    .await;

    let mut lengths = lengths.lock().expect("no panic while noting").clone();
    lengths.sort_unstable();
    assert_eq!(lengths, sizes.map(|size| size - around));
    assert_eq!(producer.counts().await.expect("it answers").total(), 5);
}
