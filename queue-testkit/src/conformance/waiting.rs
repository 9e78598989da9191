//! What a program has to be able to read: counts by the shape of payloads, and the jobs.

use queue_runtime::job::{Due, JobId, NewJob};
use queue_runtime::store::{ClaimRequest, UNREAD_LANES_MAX, UNREAD_MAX, Unread, Waiting};

use super::jobs::{LEASE, SECOND, called_off, dead, done, job_type, of_types, queue, rerun, retry};
use super::subject::Subject;

fn of(s: &Subject, name: &str, schema: u32) -> NewJob {
    NewJob {
        job_type: job_type(name),
        payload_schema: schema,
        ..s.job()
    }
}

/// Asks for every type and schema that the cases use.
fn everything(s: &Subject) -> ClaimRequest {
    of_types(s.request(), &[("a", 9), ("b", 9), ("c", 9)])
}

/// Inserts a job and claims it, whatever its type.
async fn claimed(s: &Subject, job: &NewJob) -> queue_runtime::job::Claimed {
    s.add(job).await;
    let [run] = &s.claim(&everything(s)).await[..] else {
        panic!("no other job was due")
    };
    run.clone()
}

async fn waiting(s: &Subject) -> Vec<(String, String, u32, [u64; 3])> {
    let counted = s.store().waiting().await.expect("waiting answers");
    let told = |row: Waiting| {
        let counts = [row.queued, row.processing, row.dead_letters];
        assert_eq!(row.total(), counts.iter().sum::<u64>());
        assert_eq!(row.live(), row.queued + row.processing);
        let lane = (row.job_type.to_string(), row.queue.to_string());
        (lane.0, lane.1, row.payload_schema, counts)
    };
    counted.into_iter().map(told).collect()
}

async fn sample(
    s: &Subject,
    (name, of_queue): (&str, &str),
    schema: u32,
    after: Option<JobId>,
    count: usize,
) -> Vec<JobId> {
    let (name, of_queue) = (job_type(name), queue(of_queue));
    let listed = s
        .store()
        .waiting_sample(&name, &of_queue, schema, after, count)
        .await;
    let listed = listed.expect("waiting_sample answers");
    for job in &listed {
        assert_eq!(*job, s.record(job.id).await);
    }
    listed.iter().map(|job| job.id).collect()
}

/// The queues that the cases use.
const BOTH: [&str; 2] = ["default", "another"];

async fn unread(s: &Subject, known: &[(&str, u32)]) -> Vec<(String, u32, u64)> {
    unread_in(s, &BOTH, known).await
}

async fn unread_in(s: &Subject, queues: &[&str], known: &[(&str, u32)]) -> Vec<(String, u32, u64)> {
    let queues: Vec<_> = queues.iter().map(|name| queue(name)).collect();
    let known: Vec<_> = known
        .iter()
        .map(|(name, highest)| (job_type(name), *highest))
        .collect();
    let unread = s.store().unread(&queues, &known).await;
    let unread = unread.expect("unread answers");
    let told = |row: Unread| (row.job_type.to_string(), row.payload_schema, row.jobs);
    unread.into_iter().map(told).collect()
}

/// Leaves jobs of every state and of three types: `a` with two schemas, `b`, and `c` with none that
/// may still be read.
async fn crowd(s: &Subject) {
    for settlement in [done, dead, called_off] {
        let run = claimed(s, &of(s, "a", 1)).await;
        s.apply(settlement(&run)).await;
    }
    for settlement in [done, called_off] {
        let run = claimed(s, &of(s, "c", 1)).await;
        s.apply(settlement(&run)).await;
    }
    for _ in 0..2 {
        let run = claimed(s, &of(s, "b", 9)).await;
        s.apply(dead(&run)).await;
    }
    let keyed = |schema| NewJob {
        dedupe: rerun("k"),
        ..of(s, "a", schema)
    };
    claimed(s, &keyed(2)).await;
    s.insert(&[
        keyed(1),
        of(s, "a", 2),
        of(s, "a", 2),
        NewJob {
            due: Due::After(LEASE),
            queue: queue("another"),
            ..of(s, "a", 2)
        },
    ])
    .await;
}

pub async fn nothing_has_to_be_read_in_an_empty_store(s: &Subject) {
    assert_eq!(waiting(s).await, []);
    assert_eq!(sample(s, ("a", "default"), 1, None, 10).await, []);
    assert_eq!(unread(s, &[]).await, []);
}

pub async fn what_may_still_be_read_is_counted_by_type_queue_and_schema(s: &Subject) {
    crowd(s).await;
    let expected = s.picture().await;

    let counted = waiting(s).await;

    let row = |name: &str, queue: &str, schema, counts| {
        (name.to_owned(), queue.to_owned(), schema, counts)
    };
    assert_eq!(
        counted,
        [
            row("a", "another", 2, [1, 0, 0]),
            row("a", "default", 1, [1, 0, 1]),
            row("a", "default", 2, [2, 1, 0]),
            row("b", "default", 9, [0, 0, 2]),
        ]
    );
    s.shows(&expected).await;
}

pub async fn a_sample_has_what_was_counted_and_nothing_else(s: &Subject) {
    crowd(s).await;
    let expected = s.picture().await;

    for (name, queue, schema, counts) in waiting(s).await {
        let listed = sample(s, (&name, &queue), schema, None, 100).await;
        let counted = counts.iter().sum::<u64>();
        assert_eq!(listed.len() as u64, counted, "{name} {queue} {schema}");
        for id in listed {
            let record = s.record(id).await;
            assert_eq!(record.job_type.as_str(), name);
            assert_eq!(record.queue.as_str(), queue);
            assert_eq!(record.payload_schema, schema);
        }
    }
    let here = "default";
    for (name, queue, schema) in [
        ("a", here, 3),
        ("a", "another", 1),
        ("b", here, 1),
        ("b", "another", 9),
        ("c", here, 1),
        ("absent", here, 1),
    ] {
        let listed = sample(s, (name, queue), schema, None, 100).await;
        assert_eq!(listed, [], "{name} {queue} {schema}");
    }
    s.shows(&expected).await;
}

pub async fn a_sample_is_read_page_by_page_in_the_order_of_ids(s: &Subject) {
    let jobs: Vec<_> = (0..7).map(|_| of(s, "a", 1)).collect();
    s.insert(&jobs).await;
    let runs = s.claim(&everything(s)).await;
    // One runs, and the others wait or are dead letters in turn; they end from the last one on.
    for (n, run) in runs.iter().enumerate().skip(1).rev() {
        s.apply(if n % 2 == 1 {
            dead(run)
        } else {
            retry(run, LEASE)
        })
        .await;
        s.advance(SECOND);
    }
    let mut ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
    ids.sort();

    for count in 1..9 {
        let (mut listed, mut after) = (Vec::<JobId>::new(), None);
        loop {
            let page = sample(s, ("a", "default"), 1, after, count).await;
            after = page.last().copied();
            listed.extend(&page);
            if page.len() < count {
                break;
            }
        }
        assert_eq!(listed, ids, "pages of {count}");
    }
    assert_eq!(sample(s, ("a", "default"), 1, None, 0).await, []);
    assert_eq!(sample(s, ("a", "default"), 1, Some(ids[6]), 5).await, []);
    let between = s.job().id;
    assert_eq!(sample(s, ("a", "default"), 1, Some(between), 5).await, []);
}

pub async fn what_nobody_reads_is_counted_by_type_and_schema(s: &Subject) {
    crowd(s).await;
    s.insert(&[of(s, "b", 1), of(s, "b", 2), of(s, "b", 3)])
        .await;
    let expected = s.picture().await;
    let row = |name: &str, schema, jobs| (name.to_owned(), schema, jobs);

    let all = [
        row("a", 2, 3),
        row("b", 1, 1),
        row("b", 2, 1),
        row("b", 3, 1),
    ];
    assert_eq!(unread(s, &[]).await, all, "one waits behind its key");
    assert_eq!(
        unread(s, &[("a", 1), ("b", 2)]).await,
        [row("a", 2, 3), row("b", 3, 1)]
    );
    assert_eq!(unread(s, &[("a", 2), ("b", 9), ("absent", 1)]).await, []);
    let twice = unread(s, &[("b", 3), ("a", 1), ("a", 2)]).await;
    assert_eq!(twice, [], "the highest of a type counts");
    s.shows(&expected).await;
}

pub async fn what_nobody_reads_is_counted_in_the_queues_that_are_asked_about(s: &Subject) {
    crowd(s).await;
    s.add(&of(s, "b", 1)).await;
    let row = |name: &str, schema, jobs| (name.to_owned(), schema, jobs);

    let here = [row("a", 2, 2), row("b", 1, 1)];
    assert_eq!(unread_in(s, &["default"], &[]).await, here);
    assert_eq!(unread_in(s, &["default"; 2], &[]).await, here);
    let elsewhere = unread_in(s, &["another"], &[("b", 1)]).await;
    assert_eq!(elsewhere, [row("a", 2, 1)]);
    assert_eq!(unread_in(s, &["another"], &[("a", 2)]).await, []);
    assert_eq!(unread_in(s, &["absent"], &[]).await, []);
    assert_eq!(unread_in(s, &[], &[]).await, []);
}

pub async fn a_crowd_that_nobody_reads_is_counted_to_a_bound(s: &Subject) {
    let most = usize::try_from(UNREAD_MAX).expect("it is small");
    let crowd: Vec<_> = (0..=most).map(|_| of(s, "a", 1)).collect();
    s.insert(&crowd).await;
    let elsewhere = NewJob {
        queue: queue("another"),
        ..of(s, "a", 1)
    };
    s.add(&elsewhere).await;

    let counted = unread(s, &[]).await;

    assert_eq!(counted, [("a".to_owned(), 1, UNREAD_MAX + 1)]);
    let of_all: u64 = waiting(s).await.iter().map(|row| row.3[0]).sum();
    assert_eq!(of_all, UNREAD_MAX + 2);
}

pub async fn many_shapes_that_nobody_reads_are_counted_to_a_bound(s: &Subject) {
    let most = u32::try_from(UNREAD_LANES_MAX).expect("it is small");
    let shapes: Vec<_> = (1..=most + 1).map(|schema| of(s, "a", schema)).collect();
    s.insert(&shapes).await;
    s.add(&of(s, "b", 1)).await;

    let expected: Vec<_> = (1..=most).map(|n| ("a".to_owned(), n, 1)).collect();
    assert!(unread(s, &[]).await == expected, "the first ones");
    // However much is read, it takes no place from the others.
    let counted = unread(s, &[("a", most)]).await;
    let both = [("a".to_owned(), most + 1, 1), ("b".to_owned(), 1, 1)];
    assert_eq!(counted, both);
    let counted = unread(s, &[("a", most + 1)]).await;
    assert_eq!(counted, [("b".to_owned(), 1, 1)]);
}
