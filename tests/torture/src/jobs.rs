//! The jobs that the processes run, one type for each way in which a run can go.

use std::time::Duration;

use queue_runtime::{Data, EnqueueError, Enqueued, JobContext, JobError, JobId, JobState, Queue};
use queue_runtime::{WorkerBuilder, job};

use crate::ledger::{Entry, Run};
use crate::part::Site;
use crate::place::Database;

/// A way in which a run can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Takes its effect and ends.
    Noop,
    /// Takes 5 ms.
    Pause,
    /// Fails in its first attempt, before the effect.
    Flaky,
    /// Shares its dedupe key with others.
    Keyed,
    /// Has an idempotency key; its request is made twice.
    Asked,
    /// Enqueues another after its effect.
    Followed,
    /// Takes its effect in the transaction that completes it.
    Booked,
    /// Is due up to 3 s after it was made.
    Delayed,
    /// Panics in its first attempt.
    Panicking,
    /// Exceeds its time limit in its first attempt.
    Slow,
    /// Aborts its process each time.
    Poison,
    /// Fails each time.
    Failing,
    /// Goes on when its process is told so, in its first attempt.
    Held,
    /// The same, in its first and its second attempt.
    HeldTwice,
    /// The same, in its second attempt.
    HeldLate,
    /// The same as held, and a second one waits behind the first.
    Behind,
    /// Is due in an hour.
    Later,
}

/// All kinds, with how many of a thousand requests of a load are of each. The rest are no-ops.
const SHARES: [(Kind, u64); 17] = [
    (Kind::Noop, 0),
    (Kind::Pause, 200),
    (Kind::Flaky, 80),
    (Kind::Keyed, 25),
    (Kind::Asked, 25),
    (Kind::Followed, 20),
    (Kind::Booked, 30),
    (Kind::Delayed, 20),
    (Kind::Panicking, 10),
    (Kind::Slow, 5),
    (Kind::Poison, 5),
    (Kind::Failing, 5),
    (Kind::Held, 0),
    (Kind::HeldTwice, 0),
    (Kind::HeldLate, 0),
    (Kind::Behind, 0),
    (Kind::Later, 0),
];

/// Requests that share a dedupe key.
const KEYS: u64 = 20;

/// The numbers of requests that handlers make are the handler's own and this.
pub const FOLLOWERS: u64 = 1_000_000_000;

/// The pause after a failure.
pub const PAUSE: Duration = Duration::from_millis(50);

impl Kind {
    /// Its name in ledgers.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        let mut kinds = SHARES.iter().map(|(kind, _)| *kind);
        kinds.find(|kind| kind.name() == name)
    }

    /// The kind of a request of a load, by its number: each thousand has the same mix, in an order
    /// that the seed gives.
    pub fn of_load(n: u64, seed: u64) -> Self {
        let mut places: Vec<u64> = (0..1_000).collect();
        fastrand::Rng::with_seed(seed ^ (n / 1_000)).shuffle(&mut places);
        let mut place = places[(n % 1_000) as usize];
        for (kind, share) in SHARES {
            if place < share {
                return kind;
            }
            place -= share;
        }
        Self::Noop
    }

    /// How its jobs end.
    pub fn end(self) -> JobState {
        match self {
            Self::Poison | Self::Failing => JobState::DeadLetter,
            _ => JobState::Done,
        }
    }

    /// Whether its jobs take an effect before they end.
    pub fn has_effect(self) -> bool {
        !matches!(self, Self::Poison | Self::Failing)
    }
}

/// The dedupe key of a keyed request.
pub fn shared_key(n: u64) -> u64 {
    n % KEYS
}

/// A request that can be made again under the same id.
pub struct Request {
    /// Its number.
    pub n: u64,
    /// What is asked for.
    pub kind: Kind,
    /// The id of the job.
    pub job: JobId,
    /// Whether an asked request is made the second time, which knows only its key.
    pub is_repeat: bool,
}

impl Request {
    /// Makes it.
    ///
    /// # Errors
    /// As any enqueue.
    pub async fn make(&self, queue: &Queue) -> Result<Enqueued, EnqueueError> {
        let Self { n, job, .. } = *self;
        match self.kind {
            Kind::Noop => noop::enqueue(queue, n).id(job).await,
            Kind::Pause => pause::enqueue(queue, n).id(job).await,
            Kind::Flaky => flaky::enqueue(queue, n).id(job).await,
            Kind::Keyed => keyed::enqueue(queue, n, shared_key(n)).id(job).await,
            Kind::Asked if self.is_repeat => asked::enqueue(queue, n).await,
            Kind::Asked => asked::enqueue(queue, n).id(job).await,
            Kind::Followed => followed::enqueue(queue, n).id(job).await,
            Kind::Booked => booked::enqueue(queue, n).id(job).await,
            Kind::Delayed => {
                let delay = Duration::from_millis(n * 37 % 3_000);
                noop::enqueue(queue, n).delay(delay).id(job).await
            }
            Kind::Panicking => panicking::enqueue(queue, n).id(job).await,
            Kind::Slow => slow::enqueue(queue, n).id(job).await,
            Kind::Poison => poison::enqueue(queue, n).id(job).await,
            Kind::Failing => failing::enqueue(queue, n).id(job).await,
            Kind::Held => held::enqueue(queue, n, vec![1]).id(job).await,
            Kind::HeldTwice => held::enqueue(queue, n, vec![1, 2]).id(job).await,
            Kind::HeldLate => held::enqueue(queue, n, vec![2]).id(job).await,
            Kind::Behind => behind::enqueue(queue, n, 1).id(job).await,
            Kind::Later => {
                let hour = Duration::from_hours(1);
                noop::enqueue(queue, n).delay(hour).id(job).await
            }
        }
    }
}

/// An id for a request.
pub fn new_id(queue: &Queue) -> JobId {
    noop::enqueue(queue, 0).job_id()
}

/// Names all of them to a worker.
pub fn all(worker: WorkerBuilder) -> WorkerBuilder {
    worker
        .job::<NoopJob>()
        .job::<PauseJob>()
        .job::<FlakyJob>()
        .job::<KeyedJob>()
        .job::<AskedJob>()
        .job::<FollowedJob>()
        .job::<BookedJob>()
        .job::<PanickingJob>()
        .job::<SlowJob>()
        .job::<PoisonJob>()
        .job::<FailingJob>()
        .job::<HeldJob>()
        .job::<BehindJob>()
}

fn run(ctx: &JobContext) -> Run {
    Run {
        job: ctx.job_id(),
        attempt: ctx.attempt(),
        token: ctx.fence().get(),
    }
}

fn start(site: &Site, ctx: &JobContext) -> Result<(), JobError> {
    Ok(site.ledger.note(&Entry::Start(run(ctx)))?)
}

/// The effect of a job: a line that nobody can take back.
fn effect(site: &Site, ctx: &JobContext) -> Result<(), JobError> {
    reach("handler.before_effect");
    site.ledger.note(&Entry::Effect(run(ctx)))?;
    reach("handler.after_effect");
    site.ledger.note(&Entry::End(run(ctx)))?;
    Ok(())
}

/// A point of the handler's own.
fn reach(_point: &str) {
    #[cfg(feature = "failpoints")]
    queue_runtime::failpoint::reach(_point);
}

#[job(retries = 200, backoff = "fixed(50ms)")]
pub(crate) async fn noop(n: u64, ctx: JobContext, site: Data<Site>) -> Result<(), JobError> {
    let _ = n;
    start(&site, &ctx)?;
    effect(&site, &ctx)
}

/// Work of 5 ms, as is a part of every load.
#[job(retries = 200, backoff = "fixed(50ms)")]
async fn pause(n: u64, ctx: JobContext, site: Data<Site>) -> Result<(), JobError> {
    let _ = n;
    start(&site, &ctx)?;
    tokio::time::sleep(Duration::from_millis(5)).await;
    effect(&site, &ctx)
}

#[job(retries = 200, backoff = "fixed(50ms)")]
async fn flaky(n: u64, ctx: JobContext, site: Data<Site>) -> Result<(), JobError> {
    let _ = n;
    start(&site, &ctx)?;
    match ctx.attempt() {
        1 => Err(JobError::retry("fails once")),
        _ => effect(&site, &ctx),
    }
}

/// Holds its key for 5 ms of work.
#[job(retries = 200, backoff = "fixed(50ms)", dedupe = "key")]
async fn keyed(n: u64, key: u64, ctx: JobContext, site: Data<Site>) -> Result<(), JobError> {
    let _ = (n, key);
    start(&site, &ctx)?;
    tokio::time::sleep(Duration::from_millis(5)).await;
    effect(&site, &ctx)
}

#[job(retries = 200, backoff = "fixed(50ms)", idempotency = "n")]
async fn asked(n: u64, ctx: JobContext, site: Data<Site>) -> Result<(), JobError> {
    let _ = n;
    start(&site, &ctx)?;
    effect(&site, &ctx)
}

#[job(retries = 200, backoff = "fixed(50ms)")]
async fn followed(n: u64, ctx: JobContext, site: Data<Site>) -> Result<(), JobError> {
    start(&site, &ctx)?;
    effect(&site, &ctx)?;
    let n = n + FOLLOWERS;
    let follower = asked::enqueue(&ctx, n);
    let job = follower.job_id();
    site.ledger.note(&Entry::Intent(n, Kind::Asked, job))?;
    let sent = follower.await?;
    site.ledger
        .note(&Entry::Accepted(n, sent.id, sent.duplicate))?;
    Ok(())
}

#[job(retries = 200, backoff = "fixed(50ms)")]
async fn booked(n: u64, ctx: JobContext, site: Data<Site>) -> Result<(), JobError> {
    let _ = n;
    start(&site, &ctx)?;
    site.database
        .book(&ctx, || reach("handler.uncommitted"))
        .await?;
    reach("handler.committed");
    site.ledger.note(&Entry::End(run(&ctx)))?;
    Ok(())
}

#[job(retries = 200, backoff = "fixed(50ms)")]
async fn panicking(n: u64, ctx: JobContext, site: Data<Site>) -> Result<(), JobError> {
    start(&site, &ctx)?;
    assert!(ctx.attempt() > 1, "job {n} panics once");
    effect(&site, &ctx)
}

#[job(retries = 200, backoff = "fixed(50ms)", timeout = "200ms")]
async fn slow(n: u64, ctx: JobContext, site: Data<Site>) -> Result<(), JobError> {
    let _ = n;
    start(&site, &ctx)?;
    if ctx.attempt() == 1 {
        std::future::pending::<()>().await;
    }
    effect(&site, &ctx)
}

#[job(retries = 2, backoff = "fixed(50ms)")]
async fn poison(n: u64, ctx: JobContext, site: Data<Site>) -> Result<(), JobError> {
    let _ = n;
    start(&site, &ctx)?;
    std::process::abort()
}

#[job(retries = 2, backoff = "fixed(50ms)")]
async fn failing(n: u64, ctx: JobContext, site: Data<Site>) -> Result<(), JobError> {
    start(&site, &ctx)?;
    Err(JobError::retry(format!("job {n} always fails")))
}

#[job(retries = 200, backoff = "fixed(50ms)", timeout = "none")]
async fn held(
    n: u64,
    attempts: Vec<u32>,
    ctx: JobContext,
    site: Data<Site>,
) -> Result<(), JobError> {
    start(&site, &ctx)?;
    if attempts.contains(&ctx.attempt()) {
        let _dropped = Said::at_drop(format!("dropped {n}"));
        site.say(&format!("holding {n}"));
        site.go.wait().await;
    }
    effect(&site, &ctx)
}

#[job(
    retries = 200,
    backoff = "fixed(50ms)",
    timeout = "none",
    dedupe = "key",
    on_duplicate = "rerun"
)]
async fn behind(n: u64, key: u64, ctx: JobContext, site: Data<Site>) -> Result<(), JobError> {
    let _ = key;
    start(&site, &ctx)?;
    if n == 0 && ctx.attempt() == 1 {
        site.say(&format!("holding {n}"));
        site.go.wait().await;
    }
    effect(&site, &ctx)
}

/// Makes a bulk of jobs, in its own transaction or in one of the application's with a row beside them.
///
/// # Errors
/// As any enqueue.
pub async fn bulk(
    queue: &Queue,
    database: &Database,
    jobs: u64,
    in_tx: bool,
) -> anyhow::Result<()> {
    let jobs = (0..jobs).map(|n| NoopJob { n });
    if in_tx {
        return database.order(queue, jobs.collect()).await;
    }
    for sent in queue.enqueue_all(jobs).await? {
        sent?;
    }
    Ok(())
}

/// Makes a bulk of jobs that are due later.
///
/// # Errors
/// As any enqueue.
pub async fn delayed(queue: &Queue, jobs: u64, delay: Duration) -> anyhow::Result<()> {
    let made = (0..jobs).map(|n| noop::enqueue(queue, n).delay(delay).into_future());
    futures_util::future::try_join_all(made).await?;
    Ok(())
}

/// Prints a line when it is dropped.
struct Said(String);

impl Said {
    fn at_drop(line: String) -> Self {
        Self(line)
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        println!("{}", self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thousand_requests_have_the_same_mix_in_an_order_of_the_seed() {
        let kinds = |from: u64, seed| (from..from + 1_000).map(move |n| Kind::of_load(n, seed));
        for (kind, share) in SHARES.into_iter().filter(|(_, share)| *share > 0) {
            let found = kinds(3_000, 7).filter(|found| *found == kind).count();
            assert_eq!(found as u64, share, "{kind:?}");
        }
        assert!(kinds(0, 7).eq(kinds(0, 7)));
        assert!(!kinds(0, 7).eq(kinds(0, 8)));
    }

    #[test]
    fn a_kind_is_found_by_its_name() {
        for (kind, _) in SHARES {
            assert_eq!(Kind::named(&kind.name()), Some(kind));
        }
        assert_eq!(Kind::named("other"), None);
    }
}
