//! Runs jobs: the one file that knows every stage, so that it is the map of the street.
//!
//! One loop claims jobs, starts an attempt for each on a task of its own, and hands what they
//! came to back to the store; settlements and the next claim travel together. Beside it run the
//! heartbeat (a thread of its own), the rescue of other workers' lost jobs, and retention. A
//! store that is down is waited for; a fault that waiting cannot cure ends the worker.

mod builder;
mod hooks;
mod attempt;
mod heartbeat;
mod chores;
mod shutdown;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};

pub use builder::WorkerBuilder;
pub use hooks::{DeadLetter, Hooks};
pub use shutdown::shutdown_signal;

use self::attempt::Finished;
use self::builder::Config;
use self::hooks::HookList;
use crate::backend::Backend;
use crate::error::{StoreError, WorkerError};
use crate::handler::{DataMap, StopReason};
use crate::job::{Claimed, JobEvent, Outcome, QueueName, Settled, WorkerId};
use crate::pipeline::claim::Claims;
use crate::pipeline::declare::Registry;
use crate::pipeline::dispatch::{Ran, panic_message, refuse};
use crate::pipeline::keepalive::Leases;
use crate::pipeline::settle::{self, Outbound, Pending};
use crate::queue::Queue;
use crate::rules::transition::{self, RetryPolicy, Standing};
use crate::store::ClaimRequest;
use crate::time::Timestamp;

/// A worker that is ready to run.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    queues: Vec<QueueName>,
    ready: watch::Sender<bool>,
}

/// What every part of a running worker reads.
#[derive(Debug)]
struct Shared {
    backend: Arc<Backend>,
    id: WorkerId,
    registry: Registry,
    data: Arc<DataMap>,
    hooks: HookList,
    config: Config,
    leases: Arc<Leases>,
}

impl Shared {
    fn report(&self, event: JobEvent) {
        self.hooks.on_event(&event);
        self.backend.events().report(event);
    }
}

impl Worker {
    /// Starts configuring a worker for a queue.
    pub fn builder(queue: &Queue) -> WorkerBuilder {
        WorkerBuilder::new(queue)
    }

    fn new(
        queue: Queue,
        id: WorkerId,
        queues: Vec<QueueName>,
        registry: Registry,
        data: DataMap,
        hooks: HookList,
        config: Config,
    ) -> Self {
        let shared = Shared {
            backend: Arc::clone(queue.backend()),
            id,
            registry,
            data: Arc::new(data),
            hooks,
            config,
            leases: Arc::default(),
        };
        Self {
            shared: Arc::new(shared),
            queues,
            ready: watch::Sender::new(false),
        }
    }

    /// Returns the worker's id: its name and a boot id.
    pub fn id(&self) -> &WorkerId {
        &self.shared.id
    }

    /// Returns a flag that is true while the worker can reach its store, for a readiness probe.
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Runs jobs until the process is told to end (SIGINT or SIGTERM); see
    /// [`run_until`](Self::run_until).
    ///
    /// # Errors
    /// As [`run_until`](Self::run_until).
    pub async fn run(self) -> Result<(), WorkerError> {
        self.run_until(shutdown_signal()).await
    }

    /// Runs jobs until `shutdown` is ready, then stops within the grace budget: claims nothing
    /// more, lets running attempts finish, stops and hands back what is left (which costs no
    /// attempt), records every result.
    ///
    /// A store that cannot be reached is waited for, also at the start. Dropping the future is
    /// like a crash: running jobs come back when their lease has run out.
    ///
    /// # Errors
    /// [`WorkerError`] if a loop cannot go on (let `main` return it, so that the process ends
    /// with a non-zero code), or if attempts that block their thread did not stop in time.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<(), WorkerError> {
        let Self {
            shared,
            queues,
            ready,
        } = self;
        let (failed, failure) = mpsc::unbounded_channel();
        // Both are stopped when they are dropped, however this function ends.
        let _heartbeat = heartbeat::start(&shared, failed.clone());
        let _chores = chores::start(&shared, failed);
        let street = Street::new(shared, queues, ready, failure);
        let run = AssertUnwindSafe(street.run(shutdown)).catch_unwind().await;
        run.unwrap_or_else(|panic| {
            Err(WorkerError::Panicked {
                name: "street",
                message: panic_message(panic.as_ref()),
            })
        })
    }
}

/// The worker's own loop and everything that only it touches.
struct Street {
    shared: Arc<Shared>,
    claims: Claims,
    outbound: Outbound,
    finished: (
        mpsc::UnboundedSender<Finished>,
        mpsc::UnboundedReceiver<Finished>,
    ),
    failure: mpsc::UnboundedReceiver<WorkerError>,
    ready: watch::Sender<bool>,
    running: usize,
    store_failures: u32,
    phase: Phase,
}

/// How far the worker is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It claims and runs.
    Working,
    /// It claims nothing more, and running attempts may finish.
    Finishing,
    /// Running attempts were told to stop.
    Stopping,
}

/// What an exchange with the store came to.
struct Exchanged {
    batch: Vec<Pending>,
    limit: usize,
    asked: Duration,
    answer: Result<Answer, StoreError>,
}

struct Answer {
    settled: Vec<Settled>,
    claimed: Vec<Claimed>,
    next_due: Option<Duration>,
}

impl Street {
    fn new(
        shared: Arc<Shared>,
        queues: Vec<QueueName>,
        ready: watch::Sender<bool>,
        failure: mpsc::UnboundedReceiver<WorkerError>,
    ) -> Self {
        let config = &shared.config;
        let claims = Claims::new(
            shared.id.clone(),
            queues,
            shared.registry.claimable(),
            config.times.lease,
            config.concurrency,
            config.limits.suspect_crashes(),
        );
        Self {
            claims,
            outbound: Outbound::default(),
            finished: mpsc::unbounded_channel(),
            failure,
            ready,
            running: 0,
            store_failures: 0,
            phase: Phase::Working,
            shared,
        }
    }

    async fn run(mut self, shutdown: impl Future<Output = ()>) -> Result<(), WorkerError> {
        let seam = Arc::clone(self.shared.backend.seam());
        let mut wakes = self.shared.backend.store().wakes();
        let mut shutdown = std::pin::pin!(shutdown.fuse());
        let mut exchange: Option<BoxFuture<'static, Exchanged>> = None;
        // While the store fails, nothing is asked of it until this has passed.
        let mut pause: Option<BoxFuture<'static, ()>> = None;
        let mut look_again: Option<BoxFuture<'static, ()>> = None;
        let mut deadline: Option<BoxFuture<'static, ()>> = None;
        loop {
            self.start_attempts();
            if exchange.is_none() && pause.is_none() {
                exchange = self.next_exchange();
            }
            if self.phase != Phase::Working && self.is_empty() && exchange.is_none() {
                return Ok(());
            }
            tokio::select! {
                Some(finished) = self.finished.1.recv() => self.attempt_ended(finished),
                done = wait(&mut exchange) => {
                    exchange = None;
                    match self.exchanged(done)? {
                        Next::GoOn => {}
                        Next::LookAgain(span) => look_again = Some(seam.sleep(span)),
                        Next::Pause(span) => pause = Some(seam.sleep(span)),
                    }
                }
                () = wait(&mut pause) => pause = None,
                () = wait(&mut look_again) => {
                    look_again = None;
                    self.claims.woken();
                }
                () = wakes.wait(), if self.phase == Phase::Working => self.claims.woken(),
                Some(error) = self.failure.recv() => return Err(error),
                () = &mut shutdown, if self.phase == Phase::Working => {
                    deadline = Some(seam.sleep(self.begin_shutdown()));
                }
                () = shutdown::cut_short(), if self.phase == Phase::Finishing => {
                    deadline = Some(seam.sleep(self.stop_attempts()));
                }
                () = wait(&mut deadline) => match self.phase {
                    Phase::Finishing => deadline = Some(seam.sleep(self.stop_attempts())),
                    _ => return self.grace_used_up(),
                },
            }
        }
    }

    /// Fills the free slots from what was claimed.
    fn start_attempts(&mut self) {
        while let Some(claimed) = self.claims.next(self.running) {
            let now = self.shared.backend.seam().elapsed();
            let lease = claimed.lease();
            let Some(def) = self.shared.registry.find(&claimed.job_type) else {
                // A store that keeps its contract never hands out such a job.
                tracing::error!(job_type = %claimed.job_type, "claimed a job of an unknown type");
                self.shared.leases.remove(lease);
                self.claims.released(&claimed);
                continue;
            };
            let Some(stop) = self.shared.leases.start(lease, def.timeout, now) else {
                self.shared.report(JobEvent::LeaseLost {
                    id: lease.id,
                    token: lease.token,
                });
                self.claims.released(&claimed);
                continue;
            };
            if let Some(outcome) = refuse(&claimed, self.shared.store_time(&claimed, now)) {
                self.settle(claimed, outcome, Duration::ZERO);
                continue;
            }
            self.running += 1;
            let (shared, done) = (Arc::clone(&self.shared), self.finished.0.clone());
            let task = attempt::run(shared, def, claimed, stop, done);
            // Detached on purpose: its end arrives through `finished`, and a stop reaches it
            // through its lease.
            drop(self.shared.backend.seam().spawn(Box::pin(task)));
        }
    }

    fn attempt_ended(&mut self, first: Finished) {
        let mut next = Some(first);
        let mut ended = 0;
        while let Some(Finished { claimed, ran, took }) = next {
            ended += 1;
            match ran {
                Ran::Success(_) => self.settle(claimed, Outcome::Success, took),
                Ran::Ended(outcome) => self.settle(claimed, outcome, took),
                Ran::Abandoned => {
                    let lease = claimed.lease();
                    self.claims.released(&claimed);
                    self.shared.leases.remove(lease);
                    self.shared.report(JobEvent::LeaseLost {
                        id: lease.id,
                        token: lease.token,
                    });
                }
            }
            next = self.finished.1.try_recv().ok();
        }
        self.running -= ended;
        self.claims
            .ended(ended, self.shared.backend.seam().elapsed());
    }

    /// Decides what becomes of a job and queues that for the store.
    fn settle(&mut self, claimed: Claimed, outcome: Outcome, took: Duration) {
        let seam = self.shared.backend.seam();
        let limits = self.shared.config.limits;
        let backoff = match self.shared.registry.find(&claimed.job_type) {
            Some(def) => def.backoff,
            None => limits.backoff,
        };
        let settlement = transition::settle(
            &Standing::from(&claimed),
            &outcome,
            &RetryPolicy { backoff, ..limits },
            self.shared.store_time(&claimed, seam.elapsed()),
            seam.random(),
        );
        self.outbound.push(Pending {
            settlement,
            claimed,
            took,
            is_uncertain: false,
        });
    }

    /// Starts the next exchange with the store if there is anything to say or to ask.
    fn next_exchange(&mut self) -> Option<BoxFuture<'static, Exchanged>> {
        let request = match self.phase {
            Phase::Working => self.claims.request(self.running),
            _ => self.claims.request_of(0),
        };
        let batch = self.outbound.take_batch();
        if batch.is_empty() && request.limit == 0 {
            return None;
        }
        Some(Box::pin(exchange(Arc::clone(&self.shared), batch, request)))
    }

    fn exchanged(&mut self, done: Exchanged) -> Result<Next, WorkerError> {
        let Exchanged {
            batch,
            limit,
            asked,
            answer,
        } = done;
        let answer = match answer {
            Ok(answer) => answer,
            Err(source) if source.is_transient() => {
                self.outbound.put_back(batch);
                return Ok(Next::Pause(self.store_failed(&source)));
            }
            Err(source) => {
                return Err(WorkerError::Store {
                    name: "street",
                    source,
                });
            }
        };
        self.store_failures = 0;
        self.ready
            .send_if_modified(|ready| !std::mem::replace(ready, true));
        for (pending, settled) in batch.iter().zip(answer.settled) {
            self.shared.leases.remove(pending.settlement.lease());
            self.claims.released(&pending.claimed);
            self.shared
                .report(settle::event(pending, settled, &self.shared.id));
        }
        for claimed in &answer.claimed {
            self.shared
                .leases
                .add(claimed.lease(), self.shared.config.times, asked);
            self.shared.report(JobEvent::Claimed {
                id: claimed.id,
                token: claimed.token,
                attempt: claimed.attempt,
                worker: self.shared.id.clone(),
            });
        }
        self.claims.arrived(answer.claimed, limit);
        if self.phase != Phase::Working {
            // The claim was on its way when the shutdown began.
            self.hand_back_stock();
        }
        // A settlement without a claim is no news, so a look that is due stays due.
        Ok(match limit > 0 && self.claims.are_exhausted() {
            true => Next::LookAgain(self.idle_span(answer.next_due)),
            false => Next::GoOn,
        })
    }

    /// How long an idle worker waits before it looks again: until the next job is due, but no
    /// longer than the poll, jittered so that many workers do not look at once.
    fn idle_span(&self, next_due: Option<Duration>) -> Duration {
        let poll = self.shared.config.poll;
        let jittered = poll - poll.mul_f64(0.2 * self.shared.fraction());
        match next_due {
            Some(due) => jittered.min(due.max(Duration::from_millis(1))),
            None => jittered,
        }
    }

    fn store_failed(&mut self, error: &StoreError) -> Duration {
        self.store_failures = self.store_failures.saturating_add(1);
        self.ready
            .send_if_modified(|ready| std::mem::replace(ready, false));
        let pause = chores::pause(self.store_failures, self.shared.backend.seam().random());
        tracing::warn!(
            error = %error, cause = ?std::error::Error::source(error), pause_ms = pause.as_millis(),
            waiting_results = self.outbound.len(), "the store does not answer; trying again"
        );
        self.claims.woken();
        pause
    }

    fn is_empty(&self) -> bool {
        self.running == 0 && self.outbound.is_empty()
    }

    /// Stops claiming and returns how long running attempts may go on. A part of the budget is
    /// kept for stopping the rest and recording it.
    fn begin_shutdown(&mut self) -> Duration {
        tracing::info!(running = self.running, "shutting down: no more claims");
        self.phase = Phase::Finishing;
        self.hand_back_stock();
        self.shared.config.grace - self.stopping_share()
    }

    fn hand_back_stock(&mut self) {
        for claimed in self.claims.give_up() {
            self.settle(claimed, Outcome::HandedBack, Duration::ZERO);
        }
    }

    /// Stops the running attempts and returns how long that may take.
    fn stop_attempts(&mut self) -> Duration {
        if self.running > 0 {
            tracing::info!(
                running = self.running,
                "grace used up: stopping and handing back"
            );
        }
        self.phase = Phase::Stopping;
        self.shared.leases.stop_all(StopReason::Shutdown);
        self.stopping_share()
    }

    fn stopping_share(&self) -> Duration {
        (self.shared.config.grace / 5).min(Duration::from_secs(5))
    }

    fn grace_used_up(&self) -> Result<(), WorkerError> {
        if self.running > 0 {
            let grace = self.shared.config.grace;
            return Err(WorkerError::Stuck {
                running: self.running,
                grace,
            });
        }
        tracing::warn!(
            results = self.outbound.len(),
            "the store did not take the last results in time; those jobs run again"
        );
        Ok(())
    }
}

/// What the loop does after an exchange.
enum Next {
    /// Goes on as before.
    GoOn,
    /// Asks the store again after a span, since it has nothing for now.
    LookAgain(Duration),
    /// Leaves the store alone for a span.
    Pause(Duration),
}

impl Shared {
    /// The store's time as far as this process can tell: its time of the claim, and what has
    /// passed since on the monotonic clock.
    fn store_time(&self, claimed: &Claimed, now: Duration) -> Timestamp {
        let asked = self.leases.claimed_at(claimed.lease()).unwrap_or(now);
        claimed.claimed_at.saturating_add(now.saturating_sub(asked))
    }

    /// A random share between nothing and one.
    fn fraction(&self) -> f64 {
        (self.backend.seam().random() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Says and asks in one transaction where both are wanted.
async fn exchange(shared: Arc<Shared>, batch: Vec<Pending>, request: ClaimRequest) -> Exchanged {
    let store = shared.backend.store();
    let asked = shared.backend.seam().elapsed();
    let settlements: Vec<_> = batch
        .iter()
        .map(|pending| pending.settlement.clone())
        .collect();
    let answer = async {
        let (mut settled, claimed) = match (settlements.as_slice(), request.limit) {
            (settlements, 0) => (store.settle(settlements).await?, Vec::new()),
            ([], _) => (Vec::new(), store.claim(&request).await?),
            (settlements, _) => store.exchange(settlements, &request).await?,
        };
        for (pending, answer) in batch.iter().zip(&mut settled) {
            if pending.is_uncertain && *answer == Settled::Stale {
                // Without an answer it stays what the store said.
                *answer = settle::resolve(pending, store.as_ref())
                    .await
                    .unwrap_or(*answer);
            }
        }
        // What was claimed must not be lost with a look ahead that fails: the poll stands behind.
        let next_due = match claimed.len() < request.limit {
            true => store.next_due(&request).await.ok().flatten(),
            false => None,
        };
        Ok(Answer {
            settled,
            claimed,
            next_due,
        })
    };
    let answer = answer.await;
    Exchanged {
        limit: request.limit,
        batch,
        asked,
        answer,
    }
}

/// Waits for what is under way, or for ever if nothing is.
async fn wait<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
