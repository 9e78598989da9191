//! Payloads that outlive the program that stored them: brought to the schema of today, or kept as
//! dead letters that say what is wrong with them.

use std::sync::Mutex;
use std::time::Duration;

use queue_runtime::job::{DeadReason, JobRecord};
use queue_runtime::{
    Data, Job, JobError, JobId, JobState, PayloadFields, Queue, Worker, WorkerBuilder, job,
};
use queue_testkit::TestQueue;
use serde::{Deserialize, Serialize};

use crate::world::{File, Server, final_events};

/// Makes a test of each scenario for each store.
macro_rules! on_each_store {
    ($($scenario:ident)*) => {
        mod memory {
            $(
                #[tokio::test]
                async fn $scenario() {
                    super::$scenario(&queue_runtime::Queue::in_memory()).await;
                }
            )*
        }

        mod sqlite {
            $(
                #[tokio::test]
                async fn $scenario() {
                    let file = super::File::new();
                    let queue = file.open().await;
                    super::$scenario(&queue).await;
                    queue.close().await;
                }
            )*
        }

        mod postgres {
            $(
                #[tokio::test]
                async fn $scenario() {
                    let Some(server) = super::Server::new() else { return };
                    let queue = server.open().await;
                    super::$scenario(&queue).await;
                    queue.close().await;
                    server.end().await;
                }
            )*
        }
    };
}

on_each_store! {
    a_payload_goes_through_each_step_from_its_own_schema_on
    an_upcast_that_fails_is_a_dead_letter_that_runs_after_a_fix
    an_upcast_that_panics_is_a_dead_letter_at_once
    a_payload_that_does_not_fit_says_where_and_runs_after_a_fix
    what_a_payload_holds_does_not_show_in_the_error
}

/// Runs jobs to their ends.
async fn run(queue: &Queue, jobs: usize, with: impl FnOnce(WorkerBuilder) -> WorkerBuilder) {
    let worker = with(Worker::builder(queue).poll(Duration::from_millis(5)));
    let ended = worker.run_until(final_events(queue, jobs)).await;
    ended.expect("the worker ends well");
}

async fn looked_up(queue: &Queue, id: JobId) -> JobRecord {
    let job = queue.job(id).await.expect("the store answers");
    job.expect("the job exists")
}

/// A dead letter with its payload as it was stored, and what it says.
async fn dead_letter(queue: &Queue, id: JobId, payload: &str, schema: u32) -> String {
    let dead = looked_up(queue, id).await;
    assert_eq!(
        (dead.state, dead.dead_reason, dead.attempts),
        (JobState::DeadLetter, Some(DeadReason::Undecodable), 1)
    );
    assert_eq!(
        (dead.payload.as_str(), dead.payload_schema),
        (payload, schema)
    );
    let listed = queue.dead_letters(10).await.expect("the store answers");
    let listed = listed.iter().find(|letter| letter.id == id);
    assert_eq!(listed.map(|letter| letter.payload.as_str()), Some(payload));
    dead.last_error.expect("a reason")
}

/// Replays a dead letter and runs it.
async fn replayed(
    queue: &Queue,
    id: JobId,
    with: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
) -> JobRecord {
    queue.replay(id).await.expect("a dead letter");
    run(queue, 1, with).await;
    looked_up(queue, id).await
}

/// The cents and steps of each charge that ran.
type Seen = Data<Mutex<Vec<(u128, Vec<u32>)>>>;

#[job(name = "charge")]
async fn charge_formerly(amount: String) {
    let _ = amount;
}

#[job(name = "charge", schema = 2)]
async fn charge_in_between(amount: String, steps: Vec<u32>) {
    let _ = (amount, steps);
}

fn to_next_charge(from: u32, fields: &mut PayloadFields) -> Result<(), JobError> {
    let mut steps: Vec<u32> = fields.get::<Option<_>>("steps")?.unwrap_or_default();
    steps.push(from);
    fields.set("steps", &steps)?;
    if from == 2 {
        let cents: u128 = fields.get::<String>("amount")?.parse()?;
        fields.rename("amount", "cents")?;
        fields.set("cents", &cents)?;
    }
    Ok(())
}

#[job(name = "charge", schema = 3, upcast = to_next_charge)]
async fn charge(cents: u128, steps: Vec<u32>, #[inject] seen: Seen) {
    let mut seen = seen.lock().expect("no panic while noting");
    seen.push((cents, steps));
}

async fn a_payload_goes_through_each_step_from_its_own_schema_on(queue: &Queue) {
    let top = u128::MAX.to_string();
    charge_formerly::enqueue(queue, top)
        .await
        .expect("enqueued");
    let second = charge_in_between::enqueue(queue, "2".to_owned(), vec![]);
    second.await.expect("enqueued");
    charge::enqueue(queue, 3, vec![]).await.expect("enqueued");
    let seen = Seen::new(Mutex::default());

    run(queue, 3, |worker| {
        worker.job::<ChargeJob>().shared(seen.clone())
    })
    .await;

    let mut seen = seen.lock().expect("no panic while noting").clone();
    seen.sort();
    assert_eq!(seen, [(2, vec![2]), (3, vec![]), (u128::MAX, vec![1, 2])]);
    let counts = queue.counts().await.expect("the store answers");
    assert_eq!((counts.done, counts.total()), (3, 3));
}

async fn an_upcast_that_fails_is_a_dead_letter_that_runs_after_a_fix(queue: &Queue) {
    let wrong = charge_formerly::enqueue(queue, "a lot".to_owned()).await;
    let wrong = wrong.expect("enqueued").id;
    let seen = Seen::new(Mutex::default());

    run(queue, 1, |worker| {
        worker.job::<ChargeJob>().shared(seen.clone())
    })
    .await;

    assert_eq!(
        dead_letter(queue, wrong, r#"{"amount":"a lot"}"#, 1).await,
        "decode payload of job type \"charge\" (stored under schema 1, this build reads 3): \
         $: upcast from schema 2 to 3: invalid digit found in string"
    );
    assert!(seen.lock().expect("no panic while noting").is_empty());

    fn fixed(from: u32, fields: &mut PayloadFields) -> Result<(), JobError> {
        if from == 1 && fields.get::<String>("amount")?.parse::<u128>().is_err() {
            fields.set("amount", "0")?;
        }
        to_next_charge(from, fields)
    }
    #[job(name = "charge", schema = 3, upcast = fixed, payload = FixedCharge)]
    async fn fixed_charge(cents: u128, steps: Vec<u32>) {
        assert_eq!((cents, steps), (0, vec![1, 2]));
    }
    let done = replayed(queue, wrong, |worker| worker.job::<FixedCharge>()).await;
    assert_eq!(done.state, JobState::Done);
}

#[job(name = "greet")]
async fn greet_formerly(name: String) {
    let _ = name;
}

fn careless(_: u32, fields: &mut PayloadFields) -> Result<(), JobError> {
    let name = fields.get::<String>("name")?;
    let (first, _) = name.split_once(' ').expect("everybody has two names");
    fields.set("name", first)?;
    Ok(())
}

#[job(name = "greet", schema = 2, upcast = careless)]
async fn greet(name: String) {
    let _ = name;
}

async fn an_upcast_that_panics_is_a_dead_letter_at_once(queue: &Queue) {
    let sent = greet_formerly::enqueue(queue, "Plato".to_owned()).await;
    let sent = sent.expect("enqueued").id;

    run(queue, 1, |worker| worker.job::<GreetJob>()).await;

    assert_eq!(
        dead_letter(queue, sent, r#"{"name":"Plato"}"#, 1).await,
        "decode payload of job type \"greet\" (stored under schema 1, this build reads 2): \
         $: upcast from schema 1 to 2: panicked: everybody has two names"
    );
}

#[derive(Serialize, Deserialize)]
struct FormerOrder {
    lines: Vec<serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
struct Order {
    lines: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    sku: String,
    kind: Kind,
}

#[derive(Serialize, Deserialize)]
enum Kind {
    Book,
    Record { speed: u8 },
}

#[job(name = "ship")]
async fn ship_formerly(order: FormerOrder) {
    let _ = order;
}

#[job(name = "ship", schema = 2)]
async fn ship(order: Order) {
    let _ = order;
}

/// The definition that reads whatever was stored.
#[job(name = "ship", schema = 2)]
async fn ship_anything(order: FormerOrder) {
    let _ = order;
}

async fn a_payload_that_does_not_fit_says_where_and_runs_after_a_fix(queue: &Queue) {
    let book = r#"{"sku":"a","kind":"Book"}"#;
    let cases = [
        (
            r#"{"sku":7,"kind":"Book"}"#,
            "$.order.lines[2].sku: invalid type: integer `7`, expected a string",
        ),
        (
            r#"{"sku":"c","kind":"Tape"}"#,
            "$.order.lines[2].kind: unknown variant `Tape`, expected `Book` or `Record`",
        ),
        (
            r#"{"sku":"c","kind":{"Record":{}}}"#,
            "$.order.lines[2].kind.Record: missing field `speed`",
        ),
        (
            r#"{"kind":"Book"}"#,
            "$.order.lines[2]: missing field `sku`",
        ),
    ];
    for (line, expected) in cases {
        let lines = [book, book, line].map(|line| serde_json::from_str(line).expect("JSON"));
        let order = FormerOrder {
            lines: lines.to_vec(),
        };
        let sent = ship_formerly::enqueue(queue, order).await;
        let id = sent.expect("enqueued").id;
        let stored = looked_up(queue, id).await.payload;

        run(queue, 1, |worker| worker.job::<ShipJob>()).await;

        assert_eq!(
            dead_letter(queue, id, &stored, 1).await,
            format!(
                "decode payload of job type \"ship\" (stored under schema 1, this build reads 2): \
                 {expected} (field `order: Order`)"
            )
        );
        let fixed = replayed(queue, id, |worker| worker.job::<ShipAnythingJob>()).await;
        assert_eq!(fixed.state, JobState::Done);
    }
}

#[job(name = "log_in")]
async fn log_in_formerly(code: serde_json::Value) {
    let _ = code;
}

#[job(name = "log_in")]
async fn log_in(code: u32) {
    let _ = code;
}

async fn what_a_payload_holds_does_not_show_in_the_error(queue: &Queue) {
    for secret in ["hunter2", &"correct horse battery staple ".repeat(1_000)] {
        let sent = log_in_formerly::enqueue(queue, secret.into()).await;
        let id = sent.expect("enqueued").id;
        let stored = looked_up(queue, id).await.payload;

        run(queue, 1, |worker| worker.job::<LogInJob>()).await;

        assert_eq!(
            dead_letter(queue, id, &stored, 1).await,
            "decode payload of job type \"log_in\" (schema 1): $.code: invalid type: string, \
             expected u32 (field `code: u32`)"
        );
    }
}

#[test]
fn a_stored_payload_is_read_by_hand_as_a_worker_reads_it() {
    let read = |payload: &str, schema| ChargeJob::from_stored(payload, schema);
    let job = read(r#"{"amount":"7"}"#, 1).expect("it can be brought to schema 3");
    assert_eq!((job.cents, job.steps), (7, vec![1, 2]));
    let job = ChargeJob::from_payload(r#"{"cents":7,"steps":[]}"#).expect("it has schema 3");
    assert_eq!((job.cents, job.steps), (7, vec![]));

    let said = |payload: &str, schema| {
        let error = read(payload, schema)
            .map(|job| job.cents)
            .expect_err(payload);
        error.to_string()
    };
    assert_eq!(
        said(r#"{"amount":7}"#, 2),
        "$.amount: upcast from schema 2 to 3: invalid type: integer `7`, expected a string"
    );
    assert_eq!(
        said(r#"{"cents":7,"steps":[]}"#, 4),
        "$: stored under schema 4, but this program reads at most 3"
    );
    assert_eq!(
        said(r#"{"steps":[]}"#, 3),
        "$: missing field `cents` (field `cents: u128`)"
    );
    assert_eq!(
        said("[]", 1),
        "$: invalid type: sequence, expected an object"
    );
}

#[tokio::test]
async fn a_test_queue_reads_older_payloads_as_a_worker_does() {
    let test = TestQueue::new();
    let former = charge_formerly::enqueue(test.queue(), "7".to_owned()).await;
    former.expect("enqueued");

    let waiting = test.enqueued::<ChargeJob>().await;
    assert_eq!((waiting[0].cents, &waiting[0].steps), (7, &vec![1, 2]));

    let seen = Seen::new(Mutex::default());
    let runs = test.drain(|worker| worker.job::<ChargeJob>().shared(seen.clone()));
    assert_eq!(runs.await.expect("it runs")[0].state, JobState::Done);
    let seen = seen.lock().expect("no panic while noting").clone();
    assert_eq!(seen, [(7, vec![1, 2])]);
}
