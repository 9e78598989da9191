//! Errors of any size and panics of any place: each ends its attempt, and the slot is free.

use std::sync::Mutex;
use std::time::Duration;

use queue_runtime::job::{DeadReason, Outcome};
use queue_runtime::rules::error_text::ERROR_BYTES_MAX;
use queue_runtime::{Data, DeadLetter, Hooks, JobContext, JobError, JobState, Worker, job};
use queue_testkit::Verb;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::world::{World, finals, job};

on! { memory:
    real {
        o_098_an_error_of_ten_megabytes_does_not_make_its_row_unreadable
        o_099_an_error_that_is_not_written_at_once_does_not_keep_its_job_from_its_end
        o_101_a_panic_around_a_handler_does_not_keep_its_slot
    }
}

on! { sqlite:
    real {
        o_098_an_error_of_ten_megabytes_does_not_make_its_row_unreadable
        o_099_an_error_that_is_not_written_at_once_does_not_keep_its_job_from_its_end
        o_101_a_panic_around_a_handler_does_not_keep_its_slot
    }
}

on! { postgres:
    real {
        o_098_an_error_of_ten_megabytes_does_not_make_its_row_unreadable
        o_099_an_error_that_is_not_written_at_once_does_not_keep_its_job_from_its_end
        o_101_a_panic_around_a_handler_does_not_keep_its_slot
    }
}

/// Says ten megabytes of one text.
#[job(retries = 0)]
async fn says_much(of: String) -> Result<(), JobError> {
    Err(JobError::retry(of.repeat(10 * 1024 * 1024 / of.len())))
}

/// One byte a character, several, and what JSON and SQL write in another way.
const TEXTS: [&str; 4] = ["x", "é", "𝄞", "\"'\\\n"];

/// Runs a job of each text to its end, on a store that may refuse a result a few times.
async fn say_much(world: &World, refusals: usize) {
    let (queue, faults) = world.open_faulty().await;
    let mut ids = Vec::new();
    for text in TEXTS {
        let sent = says_much::enqueue(&queue, text.to_owned()).await;
        ids.push(sent.expect("enqueued").id);
    }
    // Whichever of the two carries the results.
    for verb in [Verb::Settle, Verb::Exchange] {
        faults.fail_next(verb, refusals);
    }
    let ended = finals(&[&queue], ids.len());
    let worker = Worker::builder(&queue).job::<SaysMuchJob>();
    worker.run_until(ended).await.expect("ends well");
    assert!(faults.calls(Verb::Settle) + faults.calls(Verb::Exchange) > refusals);

    let reader = world.open().await;
    for (id, text) in ids.into_iter().zip(TEXTS) {
        let job = job(&reader, id).await;
        let exhausted = Some(DeadReason::AttemptsExhausted);
        let standing = (job.state, job.dead_reason, job.attempts);
        assert_eq!(standing, (JobState::DeadLetter, exhausted, 1));
        let error = job.last_error.expect("a reason");
        assert!(error.len() <= ERROR_BYTES_MAX && error.len() > ERROR_BYTES_MAX - 4);
        let kept = error.strip_suffix("… (cut)").expect("it is cut");
        let whole = text.repeat(ERROR_BYTES_MAX);
        assert!(whole.starts_with(kept), "between characters");
        let attempts = reader.attempts(id).await.expect("it answers");
        assert_eq!(attempts[0].error.as_ref(), Some(&error));
    }
    assert_eq!(reader.dead_letters(9).await.expect("it answers").len(), 4);
}

async fn o_098_an_error_of_ten_megabytes_does_not_make_its_row_unreadable(world: &World) {
    say_much(world, 0).await;
}

async fn o_099_an_error_that_is_not_written_at_once_does_not_keep_its_job_from_its_end(
    world: &World,
) {
    say_much(world, 2).await;
}

/// Goes off where its text says.
struct Trap(String);

impl Trap {
    fn goes_off(&self, place: &str) {
        if self.0 == place && !std::thread::panicking() {
            panic!("a trap in {place}");
        }
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        self.goes_off("drop");
    }
}

impl Serialize for Trap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.goes_off("write");
        serializer.serialize_str(&self.0)
    }
}

/// Goes off when it is read.
#[derive(Serialize)]
struct Unreadable(String);

impl<'de> Deserialize<'de> for Unreadable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        assert_ne!(text, "read", "a trap in read");
        Ok(Self(text))
    }
}

#[job(retries = 0)]
async fn reads(text: Unreadable) {
    assert_ne!(text.0, "read");
}

/// What is returned goes off when it is written or dropped.
#[job(retries = 0)]
async fn returns(place: String) -> Result<Trap, JobError> {
    Ok(Trap(place))
}

#[job(retries = 0)]
async fn drops_at_its_end(place: String) {
    let _trap = Trap(place);
}

/// Its future goes off when it is dropped for its time limit.
#[job(retries = 0, timeout = "100ms")]
async fn drops_when_stopped(place: String) {
    let _trap = Trap(place);
    std::future::pending::<()>().await;
}

#[job]
async fn comes_last(seen: Data<Mutex<Vec<String>>>) {
    let mut seen = seen.lock().expect("no panic while noting");
    seen.push("last".to_owned());
}

struct Broken;

impl Hooks for Broken {
    fn before_attempt(&self, _: &JobContext) {
        panic!("a trap before");
    }

    fn after_attempt(&self, _: &JobContext, _: Option<&Outcome>, _: Duration) {
        std::panic::panic_any(Trap("drop".to_owned()));
    }

    fn on_dead_letter(&self, _: &DeadLetter) {
        panic!("a trap behind");
    }
}

/// One slot, which every job needs in its turn.
async fn o_101_a_panic_around_a_handler_does_not_keep_its_slot(world: &World) {
    let queue = world.open().await;
    let drop = || "drop".to_owned();
    let ids = [
        reads::enqueue(&queue, Unreadable("read".to_owned())).await,
        returns::enqueue(&queue, drop()).await,
        drops_at_its_end::enqueue(&queue, drop()).await,
        drops_when_stopped::enqueue(&queue, drop()).await,
        returns::enqueue(&queue, "write".to_owned()).await,
    ]
    .map(|sent| sent.expect("enqueued").id);
    let last = comes_last::enqueue(&queue).priority(-1).await;
    let last = last.expect("enqueued").id;
    let seen = Data::new(Mutex::new(Vec::<String>::new()));

    let ended = finals(&[&queue], ids.len() + 1);
    let worker = Worker::builder(&queue)
        .job::<ReadsJob>()
        .job::<ReturnsJob>()
        .job::<DropsAtItsEndJob>()
        .job::<DropsWhenStoppedJob>()
        .job::<ComesLastJob>()
        .shared(seen.clone())
        .hooks(Broken)
        .concurrency(1);
    worker.run_until(ended).await.expect("ends well");

    assert_eq!(*seen.lock().expect("no panic while noting"), ["last"]);
    assert_eq!(job(&queue, last).await.state, JobState::Done);
    let places = ["read", "drop", "drop", "drop"];
    for (id, place) in ids.into_iter().zip(places) {
        let job = job(&queue, id).await;
        assert_eq!((job.state, job.attempts), (JobState::DeadLetter, 1));
        let error = job.last_error.expect("a reason");
        assert!(error.contains(&format!("a trap in {place}")), "{error}");
    }
    // What a handler returns is not kept, and so not written.
    assert_eq!(job(&queue, ids[4]).await.state, JobState::Done);
}
