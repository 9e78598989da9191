//! The user's own code around attempts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use queue_runtime::job::Outcome;
use queue_runtime::{DeadLetter, Hooks, JobContext, JobError, JobState, Worker, job};

use crate::world::World;

#[job(retries = 1, backoff = "fixed(1s)")]
async fn always_fails() -> Result<(), JobError> {
    Err(JobError::retry("no luck"))
}

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn note(&self, line: String) {
        self.0.lock().expect("no panic while noting").push(line);
    }
}

impl Hooks for Seen {
    fn before_attempt(&self, ctx: &JobContext) {
        self.note(format!("before {}", ctx.attempt()));
    }

    fn after_attempt(&self, _: &JobContext, outcome: Option<&Outcome>, _: Duration) {
        self.note(format!("after {outcome:?}"));
    }

    fn on_dead_letter(&self, dead: &DeadLetter) {
        self.note(format!("dead {} {:?}", dead.job_type, dead.error));
    }
}

struct Broken;

impl Hooks for Broken {
    fn before_attempt(&self, _: &JobContext) {
        panic!("a broken hook");
    }

    fn on_dead_letter(&self, _: &DeadLetter) {
        panic!("a broken hook");
    }
}

#[tokio::test]
async fn hooks_see_each_attempt_and_the_dead_letter() {
    let world = World::new();
    let seen = Seen::default();
    let sent = always_fails::enqueue(&world.queue).await.expect("enqueued");
    let worker = Worker::builder(&world.queue)
        .job::<AlwaysFailsJob>()
        .hooks(Broken)
        .hooks(seen.clone());
    world.run(worker, &[sent.id]).await;

    let after = r#"after Some(Retry { error: "no luck" })"#;
    let dead = r#"dead always_fails Some("no luck")"#;
    let lines = seen.0.lock().expect("no panic while noting").clone();
    assert_eq!(lines, ["before 1", after, "before 2", after, dead]);
    let job = world.job(sent.id).await;
    assert_eq!(
        (job.state, job.attempts),
        (JobState::DeadLetter, 2),
        "a broken hook changes nothing"
    );
}
