//! What a handler can learn about its own attempt, and how it is told to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::data::{DataMap, Inject};
use super::error::JobError;
use crate::backend::Backend;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::error::FenceError;
use crate::job::{Claimed, JobId, JobType, LeaseToken, QueueName};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::rules::transition::{self, Standing};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::store::Tx;
use crate::time::Timestamp;

/// The running attempt, as its handler sees it. Clones name the same attempt.
///
/// Take it as an argument of type `JobContext`; jobs can be enqueued through it like through a
/// queue: `send_welcome::enqueue(&ctx, 42)`.
///
/// ```
/// use queue_runtime::{JobContext, JobError, job};
///
/// #[job]
/// async fn charge_card(ctx: JobContext, order: u32) -> Result<(), JobError> {
///     println!("order {order}, attempt {} of {}", ctx.attempt(), ctx.max_attempts());
///     // The id is the same over all attempts, so the payment service can tell a repeat.
///     println!("idempotency key for the service: {}", ctx.job_id());
///     send_receipt::enqueue(&ctx, order).await?;
///     Ok(())
/// }
///
/// #[job]
/// async fn send_receipt(order: u32) {
///     println!("receipt for order {order}");
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), JobError> {
/// // A unit test makes a context of its own.
/// charge_card(JobContext::for_test(), 77).await
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JobContext {
    backend: Arc<Backend>,
    claimed: Arc<Claimed>,
    stop: Arc<AttemptStop>,
}

impl JobContext {
    pub(crate) fn new(
        backend: Arc<Backend>,
        claimed: Arc<Claimed>,
        stop: Arc<AttemptStop>,
    ) -> Self {
        Self {
            backend,
            claimed,
            stop,
        }
    }

    /// Makes a context for calling a handler directly in a unit test: the first attempt of a
    /// made-up job, on an empty memory store of its own.
    pub fn for_test() -> Self {
        let backend = Backend::in_memory();
        let seam = backend.seam();
        let now = seam.now();
        let claimed = Claimed {
            id: seam.job_id(),
            job_type: JobType::new("test").expect("four letters are a valid name"),
            queue: QueueName::default_queue(),
            payload: "{}".to_owned(),
            payload_schema: 1,
            attempt: 1,
            max_attempts: 1,
            crashes: 0,
            snoozes: 0,
            generation: 0,
            token: LeaseToken::new(1),
            locked_until: now.saturating_add(Duration::from_mins(1)),
            claimed_at: now,
            run_at: now,
            created_at: now,
            deadline: None,
            cancel_requested: false,
            idempotency_key: None,
            cache: None,
            trace_context: None,
        };
        Self::new(backend, Arc::new(claimed), Arc::new(AttemptStop::default()))
    }

    /// Returns the job's id, the same over all its attempts.
    pub fn job_id(&self) -> JobId {
        self.claimed.id
    }

    /// Returns the name that the job is stored under.
    pub fn job_type(&self) -> &JobType {
        &self.claimed.job_type
    }

    /// Returns the queue that the job came from.
    pub fn queue(&self) -> &QueueName {
        &self.claimed.queue
    }

    /// Returns the number of this attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.claimed.attempt
    }

    /// Returns how many attempts may start in all.
    pub fn max_attempts(&self) -> u32 {
        self.claimed.max_attempts
    }

    /// Says whether a failure of this attempt is the job's end.
    pub fn is_last_attempt(&self) -> bool {
        self.claimed.attempt >= self.claimed.max_attempts
    }

    /// Returns when the job was enqueued.
    pub fn created_at(&self) -> Timestamp {
        self.claimed.created_at
    }

    /// Returns the instant after which the job is not tried again.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.claimed.deadline
    }

    /// Returns the key of the request that made the job, to hand to services that take one.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.claimed.idempotency_key.as_deref()
    }

    /// Returns the lease token: higher for every claim in this store, so that the user's own
    /// tables can refuse a late worker: `update seats set guest = $1, fence = $2 where id = $3 and
    /// fence <= $2`, with `.bind(ctx.fence().get())` for `$2`.
    pub fn fence(&self) -> LeaseToken {
        self.claimed.token
    }

    /// Completes the job in the caller's transaction: the handler's own writes and the job's end are
    /// committed together, or neither. Commit it right after this, then return `Ok`.
    ///
    /// If the handler returns `Ok` but the transaction was not committed, the job is tried again.
    /// Where it is unknown whether a commit went through (the connection was lost), the worker
    /// reads back whether the job has ended, so the writes are never made twice. Takes `&mut` of a
    /// transaction of sqlx 0.9 on the database of the queue, SQLite or Postgres; the job's row stays
    /// locked until it ends, so keep what comes after this short. What the handler returns after the
    /// commit changes nothing any more: an error is only logged.
    ///
    /// On Postgres the same begins with `pool.begin()`:
    ///
    /// ```no_run
    /// use queue_runtime::{JobContext, JobError, Data, job};
    ///
    /// #[job]
    /// async fn book(
    ///     ctx: JobContext,
    ///     order: i64,
    ///     #[inject] pool: Data<sqlx::SqlitePool>,
    /// ) -> Result<(), JobError> {
    ///     let mut tx = pool.begin_with("begin immediate").await?;
    ///     sqlx::query("update accounts set booked = booked + 1 where id = ?")
    ///         .bind(order)
    ///         .execute(&mut *tx)
    ///         .await?;
    ///     ctx.complete_in(&mut tx).await?;
    ///     tx.commit().await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`FenceError::LeaseLost`] if somebody else may hold the job by now; roll back, as dropping
    /// the transaction does. [`FenceError::OtherDatabase`] if the transaction is on another
    /// database than the queue. [`FenceError::Store`] if the store refused, or no transaction is open.
    /// In each case nothing was written about the job.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub async fn complete_in<'t>(&self, tx: impl Into<Tx<'t>>) -> Result<(), FenceError> {
        // Before it is asked: the answer may be lost, or this future dropped.
        self.stop.stage();
        let standing = Standing::from(self.claimed());
        let settlement = transition::complete(&standing);
        self.backend.complete_in(tx.into(), &settlement).await
    }

    /// Makes the caller's transaction safe against a late worker: checks that this attempt still
    /// holds the job, and locks the job's row until the transaction ends, so that nobody else can
    /// take the job before its writes are committed.
    ///
    /// Use it for writes on the queue's own database that do not end the job. On another database
    /// compare [`fence`](Self::fence) with the number stored there.
    ///
    /// # Errors
    /// As [`complete_in`](Self::complete_in).
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub async fn fence_in<'t>(&self, tx: impl Into<Tx<'t>>) -> Result<(), FenceError> {
        let lease = self.claimed.lease();
        self.backend.fence_in(tx.into(), lease).await
    }

    /// Says whether the attempt was told to stop: its lease is lost, somebody called the job
    /// off, or the worker shuts down. Its future is dropped at its next await in any case; this
    /// is for work that runs outside the future, such as a thread.
    pub fn is_stopped(&self) -> bool {
        self.stop.token.is_cancelled()
    }

    /// Waits until the attempt is told to stop.
    pub async fn stopped(&self) {
        self.stop.token.cancelled().await;
    }

    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    pub(crate) fn claimed(&self) -> &Claimed {
        &self.claimed
    }
}

impl Inject for JobContext {
    fn inject(cx: &RunCx) -> Result<Self, JobError> {
        Ok(cx.context.clone())
    }
}

/// What the code that `#[job]` writes is given for one attempt.
#[derive(Clone, Debug)]
pub struct RunCx {
    context: JobContext,
    data: Arc<DataMap>,
}

impl RunCx {
    pub(crate) fn new(context: JobContext, data: Arc<DataMap>) -> Self {
        Self { context, data }
    }

    /// Returns the attempt.
    pub fn context(&self) -> &JobContext {
        &self.context
    }

    /// Returns the state that the worker was given.
    pub fn data(&self) -> &DataMap {
        &self.data
    }

    /// Returns the stored payload.
    pub fn payload(&self) -> &str {
        &self.context.claimed.payload
    }
}

/// Tells a running attempt to stop, and remembers why. The first reason stands.
#[derive(Debug, Default)]
pub(crate) struct AttemptStop {
    token: CancellationToken,
    reason: OnceLock<StopReason>,
    staged: AtomicBool,
}

impl AttemptStop {
    pub(crate) fn stop(&self, reason: StopReason) {
        self.reason.get_or_init(|| reason);
        self.token.cancel();
    }

    /// Notes that the handler may have completed the job in a transaction of its own.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn stage(&self) {
        self.staged.store(true, Ordering::SeqCst);
    }

    /// Says whether the handler may have completed the job in a transaction of its own.
    pub(crate) fn is_staged(&self) -> bool {
        self.staged.load(Ordering::SeqCst)
    }

    pub(crate) fn reason(&self) -> Option<StopReason> {
        self.reason.get().copied()
    }

    pub(crate) async fn stopped(&self) -> StopReason {
        self.token.cancelled().await;
        self.reason().unwrap_or(StopReason::LeaseLost)
    }
}

/// Why an attempt was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// Somebody else may hold the job now: nothing more may be said about it.
    LeaseLost,
    /// The lease was not renewed in time, and nobody refused it: it may be given back.
    RanOut,
    /// Its time limit has passed long ago, and the handler gave nobody a turn to say so.
    LimitPassed,
    /// Somebody asked for the job to be called off.
    CancelRequested,
    /// The worker shuts down and its grace is used up.
    Shutdown,
    /// The attempt ended by itself; what still watches it may rest.
    Ended,
}
