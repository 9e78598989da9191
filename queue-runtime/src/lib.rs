//! Typed background jobs without a broker: an async function becomes a job with retries, time
//! limits, duplicates and caches handled, on SQLite with no server or on Postgres.
//!
//! ```standalone_crate
//! use queue_runtime::{JobError, JobState, Queue, Worker, job};
//!
//! #[job(retries = 5, timeout = "60s", dedupe = "user_id")]
//! async fn send_welcome(user_id: i64, email: &str) -> Result<(), JobError> {
//!     println!("welcome, user {user_id} at {email}");
//!     Ok(())
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // A real program writes `sqlite://jobs.db`.
//!     let queue = Queue::open("memory:").await?;
//!     let sent = send_welcome::enqueue(&queue, 42, "ada@example.org").await?;
//!
//!     // A lasting worker calls `run()`, which ends at SIGINT or SIGTERM.
//!     Worker::builder(&queue).run_until_empty().await?;
//!
//!     let job = queue.job(sent.id).await?.expect("it was just run");
//!     assert_eq!(job.state, JobState::Done);
//!     Ok(())
//! }
//! ```
//!
//! It needs `tokio` with the features `macros` and `rt-multi-thread`, and `serde` as soon as a job
//! takes a type of your own.
//!
//! # Where to look
//!
//! | to | look at |
//! | --- | --- |
//! | declare a job | [`job`][attribute], every option; arguments: payload, [`Data`], [`JobContext`], [`Inject`] |
//! | say what a failure means | [`JobError`], [`JobResultExt`], [`Permanent`], [`StatusError`], [`Classify`](trait@Classify) |
//! | open a queue | [`Queue::open`], [`Queue::from_env`], `Queue::from_pool` |
//! | enqueue | `my_job::enqueue(&queue, ..)`, its options on [`Enqueue`], [`Queue::enqueue_all`] |
//! | enqueue in your own transaction | `Enqueue::in_tx`, `Queue::begin` |
//! | end a job together with your own writes | `JobContext::complete_in`, `JobContext::fence_in` |
//! | answer a repeated request once | `idempotency` and `dedupe` of [`job`][attribute], [`Enqueued`], [`KeyPart`] |
//! | run | [`Worker::builder`], [`WorkerBuilder`], [`shutdown_signal`] |
//! | look at jobs | [`Queue::job`], [`Queue::dead_letters`], [`Queue::counts`], [`JobRecord`] |
//! | see what a new program has to read | [`Queue::waiting`], [`Queue::waiting_sample`] |
//! | cancel, replay, fix and replay | [`Queue::cancel`], [`Queue::replay`], [`Queue::replay_with`] |
//! | watch | [`Queue::events`] with [`JobEvent`], [`Hooks`] |
//! | keep a cache fresh | [`Refreshed`], [`Cache`] |
//! | see which edits strand waiting jobs | [`lockfile`] |
//! | test | the crate `queue-testkit`: `TestQueue`, `assert_enqueued!` |
//!
//! In the repository, under `docs`: `errors.md` (what a handler can say), `idempotency.md`,
//! `caching.md`, `testing.md`, `sqlite.md` and `postgres.md` (durability, backups, errors at opening),
//! `choosing.md`, and `lifecycle.md` and `architecture.md` for how it works.
//!
//! # Before it runs elsewhere
//!
//! - **Install a `tracing` subscriber**, or a failing job shows nothing: the line at the end of each
//!   attempt, with its error, goes to `tracing`. `tracing_subscriber::fmt::init()` as the first line
//!   of `main` is enough.
//! - **Name the crate of your jobs in each worker program**: `use my_jobs as _;`. A library of which
//!   nothing is named is not linked, and its jobs are not found.
//! - **`in_tx`, `begin` and `from_pool` take types of sqlx 0.9.** With another version beside it the
//!   compiler refuses a transaction as not being a transaction.
//!
//! # What it promises
//!
//! A job whose enqueue was answered `Ok`, or whose enclosing transaction committed, runs at
//! least once and ends in exactly one final state. It runs more than once only if its worker lost
//! its lease: crash, freeze, or cut from the store. So handlers must be safe to repeat; a lease
//! lowers the number of repeats, it does not exclude them.
//!
//! # Features
//!
//! - `macros` (default): the [`job`][attribute] attribute and `derive(Classify)`.
//! - `sqlite` (default): the embedded store, with SQLite compiled in.
//! - `postgres`: the store on a Postgres server.
//! - `tls-rustls`: encrypted connections to it.
//! - `shapes`: what [`lockfile`] compares; `queue-testkit` turns it on.
//! - `failpoints`: for the tests of this library, and for nothing else.
//!
//! # For maintainers
//!
//! The modules are the layers, lowest first: words ([`time`], [`error`], [`mod@job`]), pure
//! decisions ([`rules`]), the ports ([`seam`], [`store`], [`observe`]), the stores, then what
//! handlers touch ([`handler`], [`cache`]), the stages ([`pipeline`]) and the wiring ([`Queue`],
//! [`Worker`]).
//!
#![cfg_attr(feature = "macros", doc = "[attribute]: macro@job")]
#![cfg_attr(not(feature = "macros"), doc = "[attribute]: crate")]

pub mod time;
pub mod error;
pub mod job;
pub mod rules;
pub mod seam;
#[doc(hidden)]
pub mod failpoint;
pub mod store;
pub mod observe;
pub mod cache;
mod backend;
pub mod handler;
pub mod pipeline;
mod upkeep;
mod queue;
mod worker;
pub mod lockfile;
#[doc(hidden)]
pub mod private;

#[cfg(feature = "macros")]
pub use queue_macros::{Classify, job};

#[doc(inline)]
pub use cache::{Cache, Cached};
#[doc(inline)]
pub use error::{
    BuildError, EnqueueError, FenceError, JobActionError, OpenError, StoreError, WorkerError,
};
#[doc(inline)]
pub use handler::{
    CacheVersion, Classify, Data, Inject, Job, JobContext, JobError, JobResultExt, KeyPart,
    KeyWriter, Permanent, Refreshed, StatusError,
};
#[doc(inline)]
pub use job::{JobEvent, JobId, JobRecord, JobState, PayloadFields, Verified};
#[doc(inline)]
pub use pipeline::enqueue::{Enqueue, EnqueueAll, EnqueueTarget, Enqueued};
pub use queue::{Opening, Queue};
#[doc(inline)]
pub use rules::classify::Class;
#[doc(inline)]
pub use store::Retention;
#[doc(inline)]
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
