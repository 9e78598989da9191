//! Whether a build may be deployed on what waits in a store.

use queue_runtime::handler::JobDef;
use queue_runtime::job::{JobType, NewJob, QueueName};
use queue_runtime::lockfile::deploy::{Deployable, Reason, deployable};
use queue_runtime::pipeline::declare::Registry;
use queue_runtime::{Job, JobError, Queue, Worker, job};
use queue_testkit::conformance::{
    MemoryFixture, PostgresFixture, SqliteFixture, Subject, run as on,
};

/// Makes a test of each case for each store.
macro_rules! on_each_store {
    ($($case:ident)*) => {
        $(
            mod $case {
                use super::*;

                #[test]
                fn memory() {
                    on(MemoryFixture, super::$case);
                }

                #[test]
                fn sqlite() {
                    on(SqliteFixture::new(), super::$case);
                }

                #[test]
                fn postgres() {
                    on(PostgresFixture::new(), super::$case);
                }
            }
        )*
    };
}

on_each_store! {
    rows_that_are_read_hold_nothing_up
    an_unknown_type_a_newer_schema_and_a_refused_payload_are_told_apart
    rows_in_a_queue_that_their_job_has_left_are_stranded
    a_refused_payload_behind_the_first_page_is_found
}

#[job(name = "deploy.ship", alias = "deploy.send", schema = 2)]
async fn ship(order: u32, address: Option<String>) -> Result<(), JobError> {
    let _ = (order, address);
    Ok(())
}

/// The same job after a change that moves it.
#[job(name = "deploy.ship", schema = 2, queue = "parcels")]
async fn ship_elsewhere(order: u32, address: Option<String>) -> Result<(), JobError> {
    let _ = (order, address);
    Ok(())
}

/// Code of the user that does not expect what it is given.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
#[serde(from = "u8", into = "u8")]
struct Small(u8);

impl From<u8> for Small {
    fn from(number: u8) -> Self {
        assert!(number < 9, "too large");
        Self(number)
    }
}

impl From<Small> for u8 {
    fn from(small: Small) -> Self {
        small.0
    }
}

#[job(name = "deploy.count")]
async fn count(small: Small) -> Result<(), JobError> {
    let _ = small;
    Ok(())
}

#[job(name = "deploy.fails")]
async fn fails() -> Result<(), JobError> {
    Err(JobError::permanent("it is of no use"))
}

fn registry(def: &'static JobDef) -> Registry {
    Registry::of([def]).expect("one job")
}

fn queue_name(name: &str) -> QueueName {
    QueueName::new(name).expect("a name")
}

fn stored(s: &Subject, job_type: &str, schema: u32, payload: &str) -> NewJob {
    NewJob {
        job_type: JobType::new(job_type).expect("a name"),
        payload_schema: schema,
        payload: payload.to_owned(),
        ..s.job()
    }
}

/// Judges a build of one job, whose workers serve the queue that it names.
async fn judged(s: &Subject, def: &'static JobDef, sample: usize) -> Deployable {
    let registry = registry(def);
    let verdict = deployable(s.store().as_ref(), &registry, &registry.queues(), sample).await;
    verdict.expect("the store answers")
}

async fn rows_that_are_read_hold_nothing_up(s: &Subject) {
    let old = stored(s, "deploy.send", 1, r#"{"order":1}"#);
    let new = stored(s, "deploy.ship", 2, r#"{"order":1,"address":"x"}"#);
    s.insert(&[
        old,
        new.clone(),
        NewJob {
            id: s.job().id,
            ..new
        },
    ])
    .await;

    let verdict = judged(s, ShipJob::DEF, 1).await;

    assert!(verdict.is_allowed() && verdict.stranded.is_empty());
    assert_eq!(
        verdict.to_string(),
        "nothing that waits would be stranded; 2 of 3 payloads tried\n"
    );
}

async fn an_unknown_type_a_newer_schema_and_a_refused_payload_are_told_apart(s: &Subject) {
    let refused = stored(s, "deploy.ship", 1, r#"{"order":-1}"#);
    s.insert(&[
        stored(s, "deploy.gone", 1, "{}"),
        stored(s, "deploy.gone", 1, "{}"),
        stored(s, "deploy.ship", 1, r#"{"order":1}"#),
        refused.clone(),
        stored(s, "deploy.ship", 3, "{}"),
    ])
    .await;

    let verdict = judged(s, ShipJob::DEF, 100).await;

    assert!(!verdict.is_allowed());
    let told = format!(
        "\
`deploy.gone` schema 1 in queue `default`: 2 waiting, 0 dead letters: no job of this build has that name or alias
`deploy.ship` schema 1 in queue `default`: 2 waiting, 0 dead letters: 1 of 2 payloads tried are refused, such as \
that of job {}: $.order: invalid value: integer `-1`, expected u32 (field `order: u32`)
`deploy.ship` schema 3 in queue `default`: 1 waiting, 0 dead letters: this build reads up to schema 2
2 of 5 payloads tried
",
        refused.id
    );
    assert_eq!(verdict.to_string(), told);
}

async fn rows_in_a_queue_that_their_job_has_left_are_stranded(s: &Subject) {
    let left = stored(s, "deploy.ship", 2, r#"{"order":1}"#);
    let moved = NewJob {
        queue: queue_name("parcels"),
        ..stored(s, "deploy.ship", 2, r#"{"order":2}"#)
    };
    s.insert(&[left, moved]).await;

    let verdict = judged(s, ShipElsewhereJob::DEF, 100).await;

    assert!(!verdict.is_allowed());
    let queue = queue_name("default");
    let [stranded] = &verdict.stranded[..] else {
        panic!("{verdict}")
    };
    assert_eq!((&stranded.rows.queue, stranded.rows.live()), (&queue, 1));
    let told = "no worker of this build serves queue `default`; name it in `.queues(..)` until it is empty";
    assert_eq!(stranded.reason.to_string(), told);
    assert_eq!(stranded.reason, Reason::QueueNotServed { queue });
    assert_eq!(verdict.tried, 1);

    let both = ["parcels", "default"].map(queue_name);
    let registry = registry(ShipElsewhereJob::DEF);
    let verdict = deployable(s.store().as_ref(), &registry, &both, 100).await;
    let verdict = verdict.expect("the store answers");
    assert!(verdict.is_allowed() && verdict.tried == 2, "{verdict}");
}

async fn a_refused_payload_behind_the_first_page_is_found(s: &Subject) {
    let mut jobs: Vec<_> = (0..=1_200)
        .map(|order| stored(s, "deploy.ship", 2, &format!(r#"{{"order":{order}}}"#)))
        .collect();
    jobs.sort_by_key(|job| job.id);
    jobs[1_200].payload = r#"{"order":"x"}"#.to_owned();
    s.insert(&jobs).await;

    let some = judged(s, ShipJob::DEF, 1_200).await;
    assert!(some.is_allowed(), "{some}");
    assert_eq!((some.tried, some.waiting), (1_200, 1_201));
    let all = judged(s, ShipJob::DEF, usize::MAX).await;
    assert!(!all.is_allowed());
    let Reason::Unreadable {
        id, refused, tried, ..
    } = &all.stranded[0].reason
    else {
        panic!("{all}")
    };
    assert_eq!((*id, *refused, *tried), (jobs[1_200].id, 1, 1_201));
}

#[test]
fn a_decoder_that_panics_refuses() {
    on(MemoryFixture, async |s: &Subject| {
        s.insert(&[
            stored(s, "deploy.count", 1, r#"{"small":8}"#),
            stored(s, "deploy.count", 1, r#"{"small":9}"#),
        ])
        .await;

        let verdict = judged(s, CountJob::DEF, 100).await;

        let told = verdict.stranded[0].reason.to_string();
        let panicked = ": $: panicked while it was read: too large";
        assert!(told.ends_with(panicked), "{told}");
        assert!(!verdict.is_allowed());
    });
}

#[tokio::test]
async fn dead_letters_alone_are_told_and_allowed() {
    let queue = Queue::in_memory();
    fails::enqueue(&queue).await.expect("enqueued");
    let worker = Worker::builder(&queue).job::<FailsJob>();
    worker.run_until_empty().await.expect("it ends well");
    let registry = registry(ShipJob::DEF);

    let verdict = deployable(queue.store().as_ref(), &registry, &registry.queues(), 9).await;

    let verdict = verdict.expect("the store answers");
    assert!(verdict.is_allowed());
    let [stranded] = &verdict.stranded[..] else {
        panic!("{verdict}")
    };
    assert_eq!((stranded.rows.live(), stranded.rows.dead_letters), (0, 1));
    assert_eq!(stranded.reason, Reason::UnknownType);
}
