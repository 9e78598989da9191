//! One handler on every store: what becomes of its jobs does not depend on where they are kept.

use std::sync::Mutex;
use std::time::Duration;

use queue_runtime::job::{DeadReason, OutcomeKind};
use queue_runtime::{Data, JobContext, JobError, JobState, Queue, Worker, job};

use crate::world::{File, final_events};

/// What the handlers did, in order.
type Diary = Data<Mutex<Vec<String>>>;

#[job(retries = 2, backoff = "fixed(1ms)")]
async fn ship(ctx: JobContext, order: u32, #[inject] diary: Diary) -> Result<(), JobError> {
    diary
        .lock()
        .expect("no panic while writing")
        .push(format!("order {order}, attempt {}", ctx.attempt()));
    match (order, ctx.attempt()) {
        (1, 1) => Err(std::io::Error::other("the lorry is full").into()),
        (2, _) => Err(JobError::permanent("no such address")),
        (3, _) => Err(JobError::retry("the road is closed")),
        _ => Ok(()),
    }
}

/// What is told about a job that has ended.
type End = (
    JobState,
    u32,
    Option<OutcomeKind>,
    Option<DeadReason>,
    Option<String>,
);

/// Runs the same orders on a queue.
async fn ends_on(queue: Queue) -> (Vec<End>, Vec<String>) {
    let (diary, mut ends) = (Diary::new(Mutex::default()), Vec::new());
    for order in 0..4 {
        let sent = ship::enqueue(&queue, order).await.expect("enqueued");
        Worker::builder(&queue)
            .job::<ShipJob>()
            .shared(diary.clone())
            .poll(Duration::from_millis(5))
            .run_until(final_events(&queue, 1))
            .await
            .expect("ends well");
        let job = queue.job(sent.id).await.expect("it answers");
        let job = job.expect("it exists");
        ends.push((
            job.state,
            job.attempts,
            job.last_outcome,
            job.dead_reason,
            job.last_error,
        ));
    }
    queue.close().await;
    let diary = diary.lock().expect("no panic while writing").clone();
    (ends, diary)
}

#[tokio::test]
async fn one_handler_has_the_same_ends_in_memory_and_in_a_file() {
    let file = File::new();
    let in_memory = ends_on(Queue::in_memory()).await;
    let in_a_file = ends_on(file.open().await).await;

    assert_eq!(in_memory, in_a_file);
    let (ends, diary) = in_memory;
    let states: Vec<_> = ends.iter().map(|end| (end.0, end.1)).collect();
    assert_eq!(
        states,
        [
            (JobState::Done, 1),
            (JobState::Done, 2),
            (JobState::DeadLetter, 1),
            (JobState::DeadLetter, 3)
        ]
    );
    assert_eq!(diary.len(), 7, "{diary:?}");
}
