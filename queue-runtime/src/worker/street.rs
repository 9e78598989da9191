//! The map of the street: one loop that claims jobs, starts an attempt for each, and settles what
//! they came to.
//!
//! It owns everything that only it touches, so there is no lock and no order to get wrong: each
//! turn fills the free slots, starts the next exchange with the store if there is something to
//! say or to ask, and then waits for whatever happens first.

mod results;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};

use super::attempt::Finished;
use super::exchange::{Exchanged, Exchanging, UnderWay, wait};
use super::{Shared, attempt, chores, shutdown};
use crate::error::{StoreError, WorkerError};
use crate::failpoint;
use crate::handler::StopReason;
use crate::job::{Change, JobEvent, Outcome};
use crate::pipeline::claim::Claims;
use crate::pipeline::dispatch::refuse;
use crate::pipeline::settle::Outbound;

/// The longest pause before a result that is held is offered again.
const HELD_PAUSE_MAX: Duration = Duration::from_secs(1);

/// The worker's own loop and everything that only it touches.
pub(super) struct Street {
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

impl Street {
    pub(super) fn new(
        shared: Arc<Shared>,
        ready: watch::Sender<bool>,
        failure: mpsc::UnboundedReceiver<WorkerError>,
    ) -> Self {
        let config = &shared.config;
        let claims = Claims::new(
            shared.id.clone(),
            shared.queues.clone(),
            shared.registry.claimable(&shared.data),
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

    pub(super) async fn run(
        mut self,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), WorkerError> {
        let seam = Arc::clone(self.shared.backend.seam());
        let mut wakes = self.shared.backend.store().wakes();
        let mut shutdown = std::pin::pin!(shutdown.fuse());
        let mut second_signal = shutdown::NextSignal::from_now();
        let mut exchanges = UnderWay::default();
        // While the store fails, nothing is asked of it until this has passed.
        let mut pause: Option<BoxFuture<'static, ()>> = None;
        // Results that are held are left alone until this has passed.
        let mut hold: Option<BoxFuture<'static, ()>> = None;
        // When an idle worker asks the store again, and the sleep until then.
        let mut look_again: Option<(Duration, BoxFuture<'static, ()>)> = None;
        let mut deadline: Option<BoxFuture<'static, ()>> = None;
        loop {
            self.start_attempts();
            if exchanges.next.is_none() && pause.is_none() {
                exchanges.next = self.next_exchange();
            }
            if exchanges.held.is_none() && pause.is_none() && hold.is_none() {
                exchanges.held = self.offer_held();
            }
            if self.phase != Phase::Working && self.is_empty() && exchanges.is_nothing() {
                return Ok(());
            }
            tokio::select! {
                // In a fixed order, so that a test's history repeats. The store's answer comes
                // first: everything else here waits for slots or asks for the next one.
                biased;
                done = exchanges.done() => {
                    match self.exchanged(done)? {
                        Next::GoOn => {}
                        Next::LookAgain(span) => {
                            look_again = Some((seam.elapsed() + span, seam.sleep(span)));
                        }
                        Next::LookWithin(span) => {
                            let at = seam.elapsed() + span;
                            if look_again.as_ref().is_none_or(|(planned, _)| at < *planned) {
                                look_again = Some((at, seam.sleep(span)));
                            }
                        }
                        Next::Pause(span) => pause = Some(seam.sleep(span)),
                    }
                    if hold.is_none() {
                        hold = self.held_span().map(|span| seam.sleep(span));
                    }
                }
                Some(finished) = self.finished.1.recv() => self.attempt_ended(finished),
                () = wait(&mut pause) => pause = None,
                () = wait(&mut hold) => hold = None,
                () = wait_until(&mut look_again) => {
                    look_again = None;
                    self.claims.woken();
                }
                () = wakes.wait(), if self.phase == Phase::Working => self.claims.woken(),
                Some(error) = self.failure.recv() => return Err(error),
                () = &mut shutdown, if self.phase == Phase::Working => {
                    second_signal = shutdown::NextSignal::from_now();
                    deadline = Some(seam.sleep(self.begin_shutdown()));
                }
                () = second_signal.wait(), if self.phase == Phase::Finishing => {
                    deadline = Some(seam.sleep(self.stop_attempts()));
                }
                () = wait(&mut deadline) => match self.phase {
                    Phase::Finishing => deadline = Some(seam.sleep(self.stop_attempts())),
                    _ => return self.grace_used_up(&exchanges),
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
                // The lease was lost while the job waited for its slot. If nobody else has taken it,
                // it goes back at no cost.
                self.shared.leases.remove(lease);
                self.settle(claimed, Outcome::HandedBack, Duration::ZERO);
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

    /// Starts the next exchange with the store if there is anything to say or to ask.
    fn next_exchange(&mut self) -> Option<Exchanging> {
        let batch = self.outbound.take_batch();
        let request = match self.phase {
            Phase::Working => self.claims.request(self.running, self.outbound.len()),
            _ => self.claims.request_of(0),
        };
        if batch.is_empty() && request.limit == 0 {
            return None;
        }
        failpoint::point!("shutdown.unflushed", if self.phase != Phase::Working && !batch.is_empty());
        Some(Exchanging::begin(Arc::clone(&self.shared), batch, request))
    }

    /// Offers again what was held, apart from everything else, if there is any.
    fn offer_held(&mut self) -> Option<Exchanging> {
        let batch = self.outbound.take_held();
        if batch.is_empty() {
            return None;
        }
        Some(Exchanging::begin(
            Arc::clone(&self.shared),
            batch,
            self.claims.request_of(0),
        ))
    }

    /// How long to leave alone what is held; `None` if nothing is.
    fn held_span(&self) -> Option<Duration> {
        let times = self.outbound.times_held()?;
        let seed = self.shared.backend.seam().random();
        Some(chores::pause(times, seed).min(HELD_PAUSE_MAX))
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
        if self.phase == Phase::Working {
            self.ready
                .send_if_modified(|ready| !std::mem::replace(ready, true));
        }
        let recorded = self.keep_held(batch, answer.settled);
        for (pending, answer) in &recorded {
            self.shared.leases.remove(pending.settlement.lease());
            self.report(pending, *answer);
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
        let put_off = recorded
            .iter()
            .filter_map(|(pending, _)| match pending.settlement.change {
                Change::Queued { delay } => Some(delay),
                _ => None,
            });
        let soonest = put_off.min();
        self.claims.arrived(answer.claimed, limit);
        recorded
            .iter()
            .for_each(|(pending, _)| self.claims.released(&pending.claimed));
        if self.phase != Phase::Working {
            // The claim was on its way when the shutdown began.
            self.hand_back_stock();
        }
        if !self.claims.are_exhausted() {
            return Ok(Next::GoOn);
        }
        // A settlement without a claim leaves the planned look as it is, unless it has put a job
        // off for less than that.
        Ok(match (limit, soonest) {
            (1.., _) => Next::LookAgain(self.idle_span(answer.next_due)),
            (0, Some(delay)) => Next::LookWithin(delay.max(Duration::from_millis(1))),
            (0, None) => Next::GoOn,
        })
    }

    /// How long an idle worker waits before it looks again: until the next job is due, but no
    /// longer than the poll, jittered so that many workers do not look at once.
    fn idle_span(&self, next_due: Option<Duration>) -> Duration {
        let jittered = self.shared.jittered(self.shared.config.poll);
        match next_due {
            Some(due) => jittered.min(due.max(Duration::from_millis(1))),
            None => jittered,
        }
    }

    fn store_failed(&mut self, error: &StoreError) -> Duration {
        self.store_failures = self.store_failures.saturating_add(1);
        self.ready
            .send_if_modified(|ready| std::mem::replace(ready, false));
        self.shared.outage.store(true, Ordering::Relaxed);
        // Not longer than a heartbeat, so that results are offered while their lease may hold.
        let pause = chores::pause(self.store_failures, self.shared.backend.seam().random())
            .min(self.shared.config.times.heartbeat);
        tracing::warn!(
            error = %error, cause = ?std::error::Error::source(error), pause_ms = pause.as_millis(),
            waiting_results = self.outbound.unrecorded(), "the store does not answer; trying again"
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
        self.ready.send_replace(false);
        self.hand_back_stock();
        self.shared
            .config
            .grace
            .saturating_sub(self.stopping_share())
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

    /// The part of the budget that is kept for stopping and recording. There is always a second,
    /// also with less grace than that, or jobs would be stopped and never handed back.
    fn stopping_share(&self) -> Duration {
        const SHARE_MIN: Duration = Duration::from_secs(1);
        const SHARE_MAX: Duration = Duration::from_secs(5);
        (self.shared.config.grace / 5).clamp(SHARE_MIN, SHARE_MAX)
    }

    fn grace_used_up(&self, exchanges: &UnderWay) -> Result<(), WorkerError> {
        if self.running > 0 {
            let grace = self.shared.config.grace;
            return Err(WorkerError::Stuck {
                running: self.running,
                grace,
            });
        }
        match self.outbound.unrecorded() + exchanges.results() {
            0 => tracing::warn!(
                "the store did not answer the last claim in time; jobs that it has taken run again"
            ),
            results => tracing::warn!(
                results,
                "the store did not take the last results in time; those jobs run again"
            ),
        }
        Ok(())
    }
}

/// However the loop ends: nobody renews the leases any more, so no handler may go on.
impl Drop for Street {
    fn drop(&mut self) {
        self.shared.leases.stop_all(StopReason::LeaseLost);
        self.ready.send_replace(false);
    }
}

/// What the loop does after an exchange.
enum Next {
    /// Goes on as before.
    GoOn,
    /// Asks the store again after a span, since it has nothing for now.
    LookAgain(Duration),
    /// Asks the store again after a span, unless that is planned for sooner.
    LookWithin(Duration),
    /// Leaves the store alone for a span.
    Pause(Duration),
}

/// Waits until a planned moment, or for ever if none is planned.
async fn wait_until(planned: &mut Option<(Duration, BoxFuture<'static, ()>)>) {
    match planned {
        Some((_, sleep)) => sleep.await,
        None => std::future::pending().await,
    }
}
