//! The world of one trial: a process dies at a point, others go on, and what they leave is read.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use queue_runtime::job::{Attempt, OutcomeKind};
use queue_runtime::{JobId, JobRecord, JobState, Queue, StoreError};
use tokio::time::{Instant, interval};

use crate::checker;
use crate::jobs::{self, Kind, Request};
use crate::ledger::{self, Entry, Ledger};
use crate::place::StoreKind;
use crate::reading;
use crate::rig::{PATIENCE, Rig, Signal};

/// Between two looks at the store.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A world with one store.
pub(super) struct World {
    pub(super) rig: Rig,
    pub(super) store: StoreKind,
    /// The supervisor's own queue; there is none before the tables are made.
    queue: Option<Queue>,
    ledger: Ledger,
    /// The point of the cell.
    pub(super) point: &'static str,
    /// Processes that were started.
    boots: usize,
    /// Requests that were made.
    asked: u64,
    /// Jobs that do not end as their kind does.
    pub(super) otherwise: Vec<JobId>,
    /// Jobs that were removed after their retention.
    pub(super) pruned: Vec<JobId>,
}

impl World {
    /// A store that nobody has opened yet.
    pub(super) fn bare(store: StoreKind, point: &'static str) -> Result<Self> {
        let rig = Rig::new(store)?;
        Ok(Self {
            ledger: Ledger::open(rig.folder(), "p-supervisor")?,
            rig,
            store,
            queue: None,
            point,
            boots: 0,
            asked: 0,
            otherwise: Vec::new(),
            pruned: Vec::new(),
        })
    }

    /// Makes the tables.
    pub(super) async fn make(&mut self) -> Result<()> {
        self.queue = Some(self.rig.place.make().await?);
        Ok(())
    }

    pub(super) fn queue(&self) -> Result<&Queue> {
        self.queue.as_ref().context("the tables are not made yet")
    }

    /// Makes a request.
    pub(super) async fn ask(&mut self, kind: Kind) -> Result<JobId> {
        let n = self.asked;
        self.asked += 1;
        let job = jobs::new_id(self.queue()?);
        self.ledger.note(&Entry::Intent(n, kind, job))?;
        let request = Request {
            n,
            kind,
            job,
            is_repeat: false,
        };
        let sent = request.make(self.queue()?).await?;
        self.ledger
            .note(&Entry::Accepted(n, sent.id, sent.duplicate))?;
        Ok(sent.id)
    }

    /// Starts a process, armed or not, under a name of its own.
    pub(super) fn start(
        &mut self,
        part: &str,
        arguments: &[&str],
        armed: Option<&str>,
    ) -> Result<String> {
        self.boots += 1;
        let boot = format!("{part}{}", self.boots);
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        self.rig.start(part, &boot, &arguments, armed)?;
        Ok(boot)
    }

    /// Waits until an armed process has come to its point and is dead.
    pub(super) async fn died(&mut self, boot: &str) -> Result<()> {
        let at = format!("at {}", self.point);
        let reached = self.rig.line(boot, &at).await;
        reached.with_context(|| format!("{boot} did not come to {}", self.point))?;
        self.rig.note_interrupted(boot);
        let status = self.rig.ended(boot).await?;
        ensure!(status.code().is_none(), "{boot} ended by itself: {status}");
        Ok(())
    }

    /// Starts a worker that dies at the cell's point, the nth time, and waits until it has.
    pub(super) async fn victim(&mut self, nth: u32, arguments: &[&str]) -> Result<String> {
        let armed = format!("{}:{nth}", self.point);
        let boot = self.start("work", arguments, Some(&armed))?;
        self.died(&boot).await?;
        Ok(boot)
    }

    /// Lets a worker without a fault finish everything.
    pub(super) async fn finish(&mut self) -> Result<()> {
        let boot = self.start("work", &[], None)?;
        self.rest().await?;
        self.rig.stop(&boot).await
    }

    /// Waits until nothing is live.
    pub(super) async fn rest(&self) -> Result<()> {
        let rests = reading::at_rest(self.queue()?, PATIENCE).await?;
        ensure!(rests, "jobs are live for longer than {PATIENCE:?}");
        Ok(())
    }

    /// Waits until something is so in the store.
    pub(super) async fn until(
        &self,
        what: &str,
        holds: impl AsyncFn(&Queue) -> Result<bool>,
    ) -> Result<()> {
        let queue = self.queue()?;
        let mut looks = interval(LOOK_AGAIN);
        let end = Instant::now() + PATIENCE;
        loop {
            match holds(queue).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // A busy server is asked again.
                Err(error) if error.downcast_ref().is_some_and(StoreError::is_transient) => {}
                Err(error) => return Err(error),
            }
            ensure!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
            looks.tick().await;
        }
    }

    /// Waits until every lease has run out.
    pub(super) async fn until_expired(&self) -> Result<()> {
        self.until("all leases have run out", async |queue| {
            let live = queue.counts().await?.of(JobState::Processing);
            Ok(queue.store().expired(1_000).await?.len() as u64 == live)
        })
        .await
    }

    /// Waits until a job is in a state.
    pub(super) async fn until_is(&self, job: JobId, state: JobState) -> Result<()> {
        self.until(&format!("job {job} is {state}"), async |queue| {
            Ok(queue.job(job).await?.is_some_and(|job| job.state == state))
        })
        .await
    }

    /// Freezes a process at a moment at which it does not hold the lock of a file, since nobody could
    /// take its jobs over otherwise.
    pub(super) async fn freeze_without_lock(&mut self, boot: &str) -> Result<()> {
        loop {
            self.rig.signal(boot, Signal::Stop).await?;
            self.rig.stands_still(boot).await?;
            if !self.is_locked().await? {
                return Ok(());
            }
            self.rig.signal(boot, Signal::Cont).await?;
        }
    }

    /// Whether a frozen process holds the lock of a file.
    pub(super) async fn is_locked(&self) -> Result<bool> {
        if self.store == StoreKind::Postgres {
            return Ok(false);
        }
        let begun = tokio::time::timeout(Duration::from_millis(300), self.queue()?.begin()).await;
        Ok(!matches!(begun, Ok(Ok(_))))
    }

    pub(super) async fn record(&self, job: JobId) -> Result<JobRecord> {
        let record = self.queue()?.job(job).await?;
        record.with_context(|| format!("job {job} is not in the store"))
    }

    pub(super) async fn total(&self) -> Result<u64> {
        Ok(self.queue()?.counts().await?.total())
    }

    pub(super) async fn attempts(&self, job: JobId) -> Result<Vec<Attempt>> {
        Ok(self.queue()?.attempts(job).await?)
    }

    /// The attempts that a line of a ledger is about, in their order.
    fn noted(&self, job: JobId, is_it: impl Fn(&Entry) -> bool) -> Result<Vec<u32>> {
        let mut attempts = Vec::new();
        for (_, entry) in ledger::read(self.rig.folder())? {
            match entry {
                Entry::Start(run) | Entry::Effect(run) if run.job == job && is_it(&entry) => {
                    attempts.push(run.attempt);
                }
                _ => {}
            }
        }
        attempts.sort_unstable();
        Ok(attempts)
    }

    /// The attempts that took the effect of a job.
    pub(super) fn effects(&self, job: JobId) -> Result<Vec<u32>> {
        self.noted(job, |entry| matches!(entry, Entry::Effect(_)))
    }

    /// The attempts whose handler started.
    pub(super) fn starts(&self, job: JobId) -> Result<Vec<u32>> {
        self.noted(job, |entry| matches!(entry, Entry::Start(_)))
    }

    /// How often the transactional effect of a job was taken.
    pub(super) async fn booked(&self, job: JobId) -> Result<usize> {
        let rows = self.rig.place.booked(self.queue()?).await?;
        Ok(rows.iter().filter(|(of, _)| *of == job).count())
    }

    /// Asserts how a job stands, and what its attempts came to.
    pub(super) async fn assert_job(
        &self,
        job: JobId,
        state: JobState,
        outcomes: &[OutcomeKind],
        effects: &[u32],
    ) -> Result<()> {
        let record = self.record(job).await?;
        let attempts = self.attempts(job).await?;
        let found: Vec<_> = attempts.iter().map(|attempt| attempt.outcome).collect();
        let expected: Vec<_> = outcomes.iter().copied().map(Some).collect();
        ensure!(
            record.state == state && found == expected,
            "job {job} is {} after {found:?}, and not {state} after {expected:?}",
            record.state
        );
        let count = attempts.len() as u32;
        ensure!(
            record.attempts == count,
            "job {job} counts {} attempts of {count}",
            record.attempts
        );
        let taken = self.effects(job)?;
        ensure!(
            taken == effects,
            "job {job} took its effect in the attempts {taken:?}, and not in {effects:?}"
        );
        Ok(())
    }

    /// Asserts that a job is claimed for the first time and nothing else has happened to it.
    pub(super) async fn assert_first_lease(&self, job: JobId) -> Result<()> {
        let record = self.record(job).await?;
        ensure!(
            (record.state, record.attempts, record.crashes) == (JobState::Processing, 1, 0),
            "not under its first lease: {record:?}"
        );
        let attempts = self.attempts(job).await?;
        ensure!(
            attempts.len() == 1 && attempts[0].outcome.is_none(),
            "not under its first lease: {attempts:?}"
        );
        Ok(())
    }

    /// Asserts that a job runs for the second time, after one crash.
    pub(super) async fn assert_second_lease(&self, job: JobId) -> Result<()> {
        let record = self.record(job).await?;
        let attempts = self.attempts(job).await?;
        let outcomes: Vec<_> = attempts.iter().map(|attempt| attempt.outcome).collect();
        ensure!(
            (record.state, record.attempts, record.crashes) == (JobState::Processing, 2, 1)
                && outcomes == [Some(OutcomeKind::Lost), None]
                && record.lock_token == attempts.last().map(|attempt| attempt.token),
            "not under its second lease: {record:?} {attempts:?}"
        );
        Ok(())
    }

    /// Evaluates the invariants.
    pub(super) async fn check(&self) -> Result<()> {
        let mut history = reading::history(&self.rig, self.queue()?).await?;
        for job in &self.otherwise {
            history.jobs.entry(*job).or_default().kind = None;
        }
        history.pruned.extend(self.pruned.iter().copied());
        let violations = checker::check(&history);
        ensure!(violations.is_empty(), "{violations:#?}");
        Ok(())
    }

    /// All that is known about its jobs, for a person.
    pub(super) async fn tell(&self) -> String {
        let Some(queue) = &self.queue else {
            return String::new();
        };
        match reading::history(&self.rig, queue).await {
            Ok(history) => history
                .jobs
                .keys()
                .take(5)
                .map(|job| history.tell(*job))
                .collect(),
            Err(error) => format!("the world cannot be read: {error:#}"),
        }
    }

    /// Removes it.
    pub(super) async fn end(self) -> Result<()> {
        if let Some(queue) = self.queue {
            queue.close().await;
        }
        self.rig.end().await
    }
}
