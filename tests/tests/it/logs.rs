//! The line that an operator reads at the end of each attempt: its level, its fields, and that no
//! payload is in it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use queue_runtime::job::JobEvent;
use queue_runtime::{Data, JobError, JobId, Worker, job};
use queue_testkit::TestSeam;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::world::World;

/// One line as a log would show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) level: Level,
    pub(crate) fields: BTreeMap<String, String>,
}

impl Line {
    pub(crate) fn message(&self) -> &str {
        &self.fields["message"]
    }
}

/// Keeps every line that the current thread logs while the guard lives.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Line>>>);

impl Log {
    pub(crate) fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        // Whether a line is wanted at all is remembered for the process, by whoever logs it first.
        // With a subscriber on every thread, that answer is never no.
        static EVERYWHERE: Once = Once::new();
        EVERYWHERE.call_once(|| {
            tracing::subscriber::set_global_default(tracing_subscriber::registry())
                .expect("nobody else sets one");
        });
        let log = Self::default();
        let subscriber = tracing_subscriber::registry().with(log.clone());
        (log, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        self.0.lock().expect("no panic while noting").clone()
    }

    fn ends(&self) -> Vec<Line> {
        let mut lines = self.lines();
        lines.retain(|line| line.message() == "attempt ended");
        lines
    }
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = Line {
            level: *event.metadata().level(),
            fields: fields.0,
        };
        self.0.lock().expect("no panic while noting").push(line);
    }
}

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

const SECRET: &str = "ada@secret.example";

#[job(retries = 1, backoff = "fixed(1s)")]
async fn greets(email: &str, luck: bool, clock: Data<TestSeam>) -> Result<(), JobError> {
    assert_eq!(email, SECRET);
    clock.advance(Duration::from_millis(250));
    match luck {
        true => Ok(()),
        false => Err(JobError::retry("no luck")),
    }
}

/// Runs one job that has waited for a second and a half, and returns its id, what was logged, and
/// the token and the worker of each of its attempts.
async fn run_one(luck: bool) -> (JobId, Log, Vec<(String, String)>) {
    let mut world = World::new();
    let (log, _guard) = Log::start();
    let sent = greets::enqueue(&world.queue, SECRET, luck)
        .idempotency_key("request-7")
        .await
        .expect("enqueued");
    world.seam.advance(Duration::from_millis(1_500));
    let worker = Worker::builder(&world.queue)
        .name("mail")
        .job::<GreetsJob>()
        .data(world.seam.clone());
    world.run(worker, &[sent.id]).await;
    let claims = world.events().into_iter().filter_map(|event| match event {
        JobEvent::Settled { token, worker, .. } => Some((token.to_string(), worker.to_string())),
        _ => None,
    });
    (sent.id, log, claims.collect())
}

fn fields(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

#[tokio::test]
async fn the_line_of_a_success_has_every_field() {
    let (id, log, claims) = run_one(true).await;

    let (token, worker) = &claims[0];
    assert!(worker.starts_with("mail@"), "{worker}");
    let expected = Line {
        level: Level::INFO,
        fields: fields(&[
            ("message", "attempt ended"),
            ("job_id", &id.to_string()),
            ("job_type", "greets"),
            ("queue", "default"),
            ("worker_id", worker),
            ("attempt", "1"),
            ("max_attempts", "2"),
            ("duration_ms", "250"),
            ("wait_ms", "1500"),
            ("result", "success"),
            ("idempotency_key", "request-7"),
            ("lock_key", &format!("job:{id}")),
            ("lock_token", token),
        ]),
    };
    assert_eq!(log.ends(), [expected]);
}

#[tokio::test]
async fn a_retry_is_a_warning_and_a_dead_letter_an_error_and_both_tell_the_error() {
    let (id, log, claims) = run_one(false).await;

    let line = |attempt: usize, level, result: &str, wait_ms: &str| Line {
        level,
        fields: fields(&[
            ("message", "attempt ended"),
            ("job_id", &id.to_string()),
            ("job_type", "greets"),
            ("queue", "default"),
            ("worker_id", &claims[attempt - 1].1),
            ("attempt", &attempt.to_string()),
            ("max_attempts", "2"),
            ("duration_ms", "250"),
            ("wait_ms", wait_ms),
            ("result", result),
            ("error_message", "no luck"),
            ("idempotency_key", "request-7"),
            ("lock_key", &format!("job:{id}")),
            ("lock_token", &claims[attempt - 1].0),
        ]),
    };
    let ends = log.ends();
    let second_wait = ends[1].fields["wait_ms"].clone();
    let expected = [
        line(1, Level::WARN, "retry", "1500"),
        line(2, Level::ERROR, "dead_letter", &second_wait),
    ];
    assert_eq!(ends, expected);
    let second_wait: u64 = second_wait.parse().expect("milliseconds");
    assert!(second_wait <= 1_000, "at most a poll: {second_wait}");
    assert_ne!(claims[0].0, claims[1].0, "each claim has its token");
}

#[tokio::test]
async fn no_line_of_any_level_shows_a_payload() {
    for luck in [true, false] {
        let (_, log, _) = run_one(luck).await;

        let lines = log.lines();
        assert!(lines.iter().any(|line| line.level == Level::TRACE));
        let telling: Vec<_> = lines
            .iter()
            .filter(|line| line.fields.values().any(|value| value.contains(SECRET)))
            .collect();
        assert!(telling.is_empty(), "{telling:#?}");
    }
}
