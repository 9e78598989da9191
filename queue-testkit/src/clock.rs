//! A clock that only a test moves, with randomness and ids that repeat from a seed.
//!
//! [`TestSeam`] stands in for the system wherever a store, a queue or a worker takes a
//! [`Seam`]. Its time stands still until [`advance`](TestSeam::advance) moves it; sleepers whose
//! time has come are then woken in the order in which they fall due. A test that must know when
//! the code under test has gone to sleep awaits [`sleepers_reach`](TestSeam::sleepers_reach)
//! instead of sleeping itself. Tasks and threads are real ones; nothing else here is.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::BoxFuture;
use queue_runtime::job::JobId;
use queue_runtime::seam::{Seam, SystemSeam, next_ordinal, uuid_v7};
use queue_runtime::time::Timestamp;
use tokio::sync::watch;

/// A [`Seam`] whose time is moved by hand and whose randomness repeats from a seed. Clones share
/// one clock.
#[derive(Clone)]
pub struct TestSeam(Arc<Shared>);

struct Shared {
    clock: Mutex<Clock>,
    sleeping: watch::Sender<usize>,
    newest_ordinal: AtomicU64,
    system: SystemSeam,
}

struct Clock {
    /// The monotonic time.
    elapsed: Duration,
    /// The wall clock when the monotonic time was zero.
    origin: Timestamp,
    /// Who sleeps, by due time and then by who went to sleep first.
    sleepers: BTreeMap<(Duration, u64), Waker>,
    slept: u64,
    random: fastrand::Rng,
}

impl TestSeam {
    /// The wall clock of a new seam: 2026-11-30T00:53:20.123Z. Not a round number, so that a unit
    /// mixed up or a part lost on the way shows.
    pub const START: Timestamp = Timestamp::from_millis(1_796_000_000_123);

    /// Starts a clock at [`START`](Self::START) that stands still, and randomness from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Shared {
            clock: Mutex::new(Clock {
                elapsed: Duration::ZERO,
                origin: Self::START,
                sleepers: BTreeMap::new(),
                slept: 0,
                random: fastrand::Rng::with_seed(seed),
            }),
            sleeping: watch::Sender::new(0),
            newest_ordinal: AtomicU64::new(0),
            system: SystemSeam::new(),
        }))
    }

    /// Returns this clock as stores, queues and workers take it.
    pub fn shared(&self) -> Arc<dyn Seam> {
        Arc::new(self.clone())
    }

    /// Moves the clock forward and wakes everyone whose time has come, in order of due time.
    ///
    /// The woken run when the caller next awaits; by then the whole span has passed for them.
    pub fn advance(&self, span: Duration) {
        let due = {
            let mut clock = self.clock();
            clock.elapsed = clock.elapsed.saturating_add(span);
            let last_due = (clock.elapsed, u64::MAX);
            let still_asleep = clock.sleepers.split_off(&last_due);
            std::mem::replace(&mut clock.sleepers, still_asleep)
        };
        self.announce();
        due.into_values().for_each(Waker::wake);
    }

    /// Moves the clock to the moment at which the next sleeper falls due, and wakes it. Returns
    /// how far the clock moved, or `None` if nobody sleeps.
    pub fn advance_to_next_sleeper(&self) -> Option<Duration> {
        let span = {
            let clock = self.clock();
            let (due, _) = clock.sleepers.keys().next()?;
            due.saturating_sub(clock.elapsed)
        };
        self.advance(span);
        Some(span)
    }

    /// Moves only the wall clock, as a time server or an operator does; sleepers and spans do not
    /// notice.
    pub fn set_wall_clock(&self, now: Timestamp) {
        let mut clock = self.clock();
        clock.origin = now.saturating_sub(clock.elapsed);
    }

    /// Returns how many sleep right now.
    pub fn sleepers(&self) -> usize {
        self.clock().sleepers.len()
    }

    /// Waits until at least `count` sleep, so that a test can move the clock knowing that the
    /// code under test has gone to sleep.
    pub async fn sleepers_reach(&self, count: usize) {
        let mut sleeping = self.0.sleeping.subscribe();
        // The sender lives in `self`, which outlives this future: the wait cannot be cut off.
        let _ = sleeping.wait_for(|sleeping| *sleeping >= count).await;
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        // A panic elsewhere leaves the clock readable: it is changed in whole steps.
        self.0.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self) {
        self.0.sleeping.send_replace(self.sleepers());
    }
}

impl fmt::Debug for TestSeam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (now, sleepers) = (self.now(), self.sleepers());
        write!(f, "TestSeam {{ now: {now}, sleepers: {sleepers} }}")
    }
}

impl Seam for TestSeam {
    fn now(&self) -> Timestamp {
        let clock = self.clock();
        clock.origin.saturating_add(clock.elapsed)
    }

    fn elapsed(&self) -> Duration {
        self.clock().elapsed
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        Box::pin(Sleep {
            due: self.elapsed().saturating_add(span),
            seam: self.clone(),
            place: None,
        })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> tokio::task::JoinHandle<()> {
        self.0.system.spawn(task)
    }

    /// Beside the caller's tasks: on one runtime, what happens between two moves of the clock is
    /// the same each time.
    fn spawn_apart(&self, _name: &str, task: BoxFuture<'static, ()>) -> std::io::Result<()> {
        drop(self.spawn(task));
        Ok(())
    }

    fn random(&self) -> u64 {
        self.clock().random.u64(..)
    }

    fn job_id(&self) -> JobId {
        let ordinal = next_ordinal(&self.0.newest_ordinal, self.now());
        uuid_v7(ordinal, self.random())
    }
}

/// A sleep on the clock moved by hand; it counts as a sleeper from its first poll.
struct Sleep {
    due: Duration,
    seam: TestSeam,
    place: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let ready = {
            let seam = self.seam.clone();
            let mut clock = seam.clock();
            let ready = clock.elapsed >= self.due;
            if !ready {
                let place = *self.place.get_or_insert_with(|| {
                    clock.slept += 1;
                    clock.slept
                });
                clock.sleepers.insert((self.due, place), cx.waker().clone());
            }
            ready
        };
        self.seam.announce();
        if ready {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.seam.clock().sleepers.remove(&(self.due, place));
            self.seam.announce();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn time_stands_still_until_it_is_moved() {
        let seam = TestSeam::new(1);
        assert_eq!(
            (seam.now(), seam.elapsed()),
            (TestSeam::START, Duration::ZERO)
        );

        seam.advance(SECOND);

        assert_eq!(seam.now(), TestSeam::START.saturating_add(SECOND));
        assert_eq!(seam.elapsed(), SECOND);
    }

    #[test]
    fn a_sleeper_wakes_when_its_time_has_come_and_not_before() {
        let seam = TestSeam::new(1);
        let mut sleep = seam.sleep(SECOND);
        assert_eq!((&mut sleep).now_or_never(), None);
        assert_eq!(seam.sleepers(), 1);

        seam.advance(SECOND - Duration::from_nanos(1));
        assert_eq!((&mut sleep).now_or_never(), None);

        seam.advance(Duration::from_nanos(1));
        assert_eq!((&mut sleep).now_or_never(), Some(()));
        assert_eq!(seam.sleepers(), 0);
    }

    #[tokio::test]
    async fn sleepers_wake_in_the_order_in_which_they_fall_due() {
        let seam = TestSeam::new(1);
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for seconds in [3, 1, 2, 9] {
            let (sleep, woken) = (seam.sleep(SECOND * seconds), Arc::clone(&woken));
            tasks.push(seam.spawn(Box::pin(async move {
                sleep.await;
                woken.lock().expect("no panic").push(seconds);
            })));
        }
        seam.sleepers_reach(4).await;

        seam.advance(SECOND * 3);
        for task in tasks.drain(..3) {
            task.await.expect("woken");
        }

        assert_eq!(*woken.lock().expect("no panic"), [1, 2, 3]);
        assert_eq!(seam.advance_to_next_sleeper(), Some(SECOND * 6));
        tasks.remove(0).await.expect("woken");
        assert_eq!(seam.advance_to_next_sleeper(), None);
    }

    #[test]
    fn a_dropped_sleep_is_no_sleeper() {
        let seam = TestSeam::new(1);
        let mut sleep = seam.sleep(SECOND);
        assert_eq!((&mut sleep).now_or_never(), None);

        drop(sleep);

        assert_eq!(seam.sleepers(), 0);
    }

    #[test]
    fn a_sleep_of_no_length_is_over_at_once() {
        let seam = TestSeam::new(1);
        assert_eq!(seam.sleep(Duration::ZERO).now_or_never(), Some(()));
        assert_eq!(seam.sleep(Duration::MAX).now_or_never(), None);
    }

    #[test]
    fn a_step_of_the_wall_clock_wakes_nobody() {
        let seam = TestSeam::new(1);
        let mut sleep = seam.sleep(SECOND);
        assert_eq!((&mut sleep).now_or_never(), None);

        seam.set_wall_clock(Timestamp::from_millis(5));

        assert_eq!(
            (seam.now(), seam.elapsed()),
            (Timestamp::from_millis(5), Duration::ZERO)
        );
        assert_eq!((&mut sleep).now_or_never(), None);
    }

    #[test]
    fn one_seed_gives_one_history() {
        let draw = |seed| {
            let seam = TestSeam::new(seed);
            [(); 50].map(|()| (seam.random(), seam.job_id()))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert!(draw(7).is_sorted_by(|a, b| a.1 < b.1));
    }
}
