//! Typed background jobs without a broker: an async function becomes a job with retries, time
//! limits, duplicates and caches handled, on SQLite with no server.
//!
//! ```
//! use queue_runtime::{JobError, Queue, Worker, job};
//!
//! #[job(retries = 5, timeout = "60s", dedupe = "user_id")]
//! async fn send_welcome(user_id: i64, email: String) -> Result<(), JobError> {
//!     println!("welcome, user {user_id} at {email}");
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let queue = Queue::open("memory:").await?;
//! let sent = send_welcome::enqueue(&queue, 42, "ada@example.org".to_owned()).await?;
//! # let mut events = queue.events();
//! # let done = async {
//! #     while let Ok(event) = events.recv().await {
//! #         if matches!(event, queue_runtime::job::JobEvent::Settled { .. }) { break }
//! #     }
//! # };
//! Worker::builder(&queue).run_until(done).await?;
//! let job = queue.job(sent.id).await?.expect("it was just run");
//! assert_eq!(job.state, queue_runtime::JobState::Done);
//! # Ok(())
//! # }
//! ```
//!
//! A job whose enqueue was answered `Ok`, or whose enclosing transaction committed, runs at
//! least once and ends in exactly one final state. It runs more than once only if its worker lost
//! its lease: crash, freeze, or cut from the store. So handlers must be safe to repeat; a lease
//! lowers the number of repeats, it does not exclude them.
//!
//! The modules are the layers, lowest first: words ([`time`], [`error`], [`mod@job`]), pure
//! decisions ([`rules`]), the ports ([`seam`], [`store`], [`observe`]), the stores, then what
//! handlers touch ([`handler`], [`cache`]), the stages ([`pipeline`]) and the wiring ([`Queue`],
//! [`Worker`]).

pub mod time;
pub mod error;
pub mod job;
pub mod rules;
pub mod seam;
pub mod store;
pub mod observe;
pub mod cache;
mod backend;
pub mod handler;
pub mod pipeline;
mod upkeep;
mod queue;
mod worker;
#[doc(hidden)]
pub mod private;

#[cfg(feature = "macros")]
pub use queue_macros::{Classify, job};

pub use error::{BuildError, EnqueueError, JobActionError, OpenError, StoreError, WorkerError};
pub use handler::{
    CacheVersion, Classify, Data, Inject, Job, JobContext, JobError, JobResultExt, KeyPart,
    KeyWriter, Permanent, Refreshed, StatusError,
};
pub use job::{JobId, JobState};
pub use pipeline::enqueue::{Enqueue, EnqueueAll, EnqueueTarget, Enqueued};
pub use queue::Queue;
pub use rules::classify::Class;
pub use time::Timestamp;
pub use worker::{DeadLetter, Hooks, Worker, WorkerBuilder, shutdown_signal};

/// Links crates whose jobs a program runs but never names: `link_jobs!(my_jobs, billing_jobs);`
///
/// The compiler leaves out a dependency that no source line names, and its jobs with it. This
/// writes `use my_jobs as _;` for each, and says why the line is there.
#[macro_export]
macro_rules! link_jobs {
    ($($jobs:ident),+ $(,)?) => {
        $(use $jobs as _;)+
    };
}
