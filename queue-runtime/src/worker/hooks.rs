//! The user's own code around attempts.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::handler::JobContext;
use crate::job::{JobEvent, JobId, JobState, JobType, Outcome};
use crate::rules::error_text::panic_message;

/// Code that runs around each attempt and for each dead letter, such as a span, a counter or a
/// message to an operator.
///
/// Hooks run in line, so they should be quick. A hook that panics is logged and changes nothing
/// about the job.
///
/// ```standalone_crate
/// use queue_runtime::{DeadLetter, Hooks, Queue, Worker, job};
///
/// #[job]
/// async fn send_welcome(user_id: i64) {
///     println!("welcome, user {user_id}");
/// }
///
/// struct TellOperators;
///
/// impl Hooks for TellOperators {
///     fn on_dead_letter(&self, dead: &DeadLetter) {
///         let error = dead.error.as_deref().unwrap_or("no error text");
///         println!("{} {} will not be tried again: {error}", dead.job_type, dead.id);
///     }
/// }
///
/// let queue = Queue::in_memory();
/// let worker = Worker::builder(&queue).hooks(TellOperators).build()?;
/// # Ok::<(), queue_runtime::BuildError>(())
/// ```
pub trait Hooks: Send + Sync + 'static {
    /// Runs before the handler of each attempt.
    fn before_attempt(&self, _ctx: &JobContext) {}

    /// Runs after it, before the result is recorded; `outcome` is `None` if the lease was lost.
    fn after_attempt(&self, _ctx: &JobContext, _outcome: Option<&Outcome>, _took: Duration) {}

    /// Runs once a dead letter is recorded.
    fn on_dead_letter(&self, _dead: &DeadLetter) {}
}

/// A job that has just become a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The job.
    pub id: JobId,
    /// Its type.
    pub job_type: JobType,
    /// The error of its last attempt.
    pub error: Option<String>,
}

/// All hooks of a worker, in the order they were added.
#[derive(Clone, Default)]
pub(super) struct HookList(Vec<Arc<dyn Hooks>>);

impl HookList {
    pub(super) fn add(&mut self, hooks: Arc<dyn Hooks>) {
        self.0.push(hooks);
    }

    pub(super) fn before_attempt(&self, ctx: &JobContext) {
        self.each("before_attempt", |hooks| hooks.before_attempt(ctx));
    }

    pub(super) fn after_attempt(&self, ctx: &JobContext, end: Option<&Outcome>, took: Duration) {
        self.each("after_attempt", |hooks| hooks.after_attempt(ctx, end, took));
    }

    /// Tells the hooks if an event says that a job became a dead letter.
    pub(super) fn on_event(&self, event: &JobEvent) {
        if self.0.is_empty() {
            return;
        }
        let (id, job_type, error) = match event {
            JobEvent::Settled {
                id,
                job_type,
                error,
                state: JobState::DeadLetter,
                ..
            } => (id, job_type, error.clone()),
            JobEvent::Rescued {
                id,
                job_type,
                state: JobState::DeadLetter,
                ..
            } => (
                id,
                job_type,
                Some(
                    "its lease ran out without a result: crash, freeze, or cut from the store"
                        .to_owned(),
                ),
            ),
            _ => return,
        };
        let dead = DeadLetter {
            id: *id,
            job_type: job_type.clone(),
            error,
        };
        self.each("on_dead_letter", |hooks| hooks.on_dead_letter(&dead));
    }

    fn each(&self, name: &str, call: impl Fn(&dyn Hooks)) {
        for hooks in &self.0 {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| call(hooks.as_ref()))) {
                let message = panic_message(panic);
                tracing::error!(hook = name, message, "a hook panicked; the job goes on");
            }
        }
    }
}

impl std::fmt::Debug for HookList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HookList({})", self.0.len())
    }
}
