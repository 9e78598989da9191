//! The one place where time, sleeping, spawning, randomness and ids come from.
//!
//! Everything else in the crate is given a [`Seam`], so a test can move the clock by hand and
//! repeat a run from its seed. [`SystemSeam`] is the real one.
#![expect(
    clippy::disallowed_methods,
    reason = "the one home of clocks, sleeps, spawns and randomness"
)]

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::BoxFuture;
use uuid::Uuid;

use crate::job::JobId;
use crate::time::Timestamp;

/// Where a worker and a queue get their time, sleep, tasks, randomness and ids from.
pub trait Seam: fmt::Debug + Send + Sync + 'static {
    /// Returns the wall clock. Used for new ids, and by stores that have no server of their own.
    fn now(&self) -> Timestamp;

    /// Returns the monotonic time since a fixed but arbitrary origin, for spans in this process.
    fn elapsed(&self) -> Duration;

    /// Returns a future that is ready `span` from now.
    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()>;

    /// Runs a task beside the caller; dropping the handle detaches it.
    fn spawn(&self, task: BoxFuture<'static, ()>) -> tokio::task::JoinHandle<()>;

    /// Runs a task apart from the caller's tasks, on an operating-system thread named `name`
    /// with a small runtime of its own, so that a handler which blocks every thread of the
    /// caller's runtime cannot keep it from running. A test runs it beside the others.
    ///
    /// # Errors
    /// If the system refuses another thread.
    fn spawn_apart(&self, name: &str, task: BoxFuture<'static, ()>) -> std::io::Result<()>;

    /// Returns 64 random bits.
    fn random(&self) -> u64;

    /// Returns a new id, higher than every id this seam gave before.
    fn job_id(&self) -> JobId;
}

/// The real clock, tokio's tasks and timers, and a generator seeded by the system.
pub struct SystemSeam {
    origin: Instant,
    newest_ordinal: AtomicU64,
}

impl SystemSeam {
    /// Starts a seam whose monotonic origin is now.
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
            newest_ordinal: AtomicU64::new(0),
        }
    }
}

impl Default for SystemSeam {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SystemSeam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemSeam")
    }
}

impl Seam for SystemSeam {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }

    fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(span))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> tokio::task::JoinHandle<()> {
        tokio::spawn(task)
    }

    fn spawn_apart(&self, name: &str, task: BoxFuture<'static, ()>) -> std::io::Result<()> {
        let (built, is_built) = std::sync::mpsc::channel();
        // The runtime is made on its thread: where a thread is refused, dropping a runtime in
        // the caller's own one would panic.
        let body = move || match tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        {
            Ok(runtime) => {
                let _ = built.send(Ok(()));
                runtime.block_on(task);
            }
            Err(error) => drop(built.send(Err(error))),
        };
        drop(
            std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(body)?,
        );
        is_built.recv().map_err(std::io::Error::other)?
    }

    fn random(&self) -> u64 {
        fastrand::u64(..)
    }

    fn job_id(&self) -> JobId {
        let ordinal = next_ordinal(&self.newest_ordinal, self.now());
        uuid_v7(ordinal, self.random())
    }
}

/// Takes the next ordinal of a UUIDv7: milliseconds in the upper 48 bits, a counter in the lower
/// 12. It only rises: ids of one millisecond count up, and a clock that steps back is ignored
/// (RFC 9562, section 6.2, method 3).
pub fn next_ordinal(newest: &AtomicU64, now: Timestamp) -> u64 {
    let floor = u64::try_from(now.as_millis()).unwrap_or(0) << 12;
    let rise = |newest: u64| Some(floor.max(newest + 1));
    match newest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rise) {
        Ok(before) | Err(before) => floor.max(before + 1),
    }
}

/// Builds a UUIDv7 from an ordinal (see [`next_ordinal`]) and random bits.
pub fn uuid_v7(ordinal: u64, random: u64) -> JobId {
    let high = u128::from(ordinal >> 12) << 80 | 0x7 << 76 | u128::from(ordinal & 0xfff) << 64;
    let low = u128::from(random >> 2) | 0x2 << 62;
    JobId::from_uuid(Uuid::from_u128(high | low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_millisecond_still_rise() {
        let newest = AtomicU64::new(0);
        let now = Timestamp::from_millis(1_796_000_000_123);
        let ids: Vec<_> = (0..5_000)
            .map(|_| uuid_v7(next_ordinal(&newest, now), 0))
            .collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert_eq!(ids[0].as_uuid().get_version_num(), 7);
        assert_eq!(ids[0].as_uuid().get_variant(), uuid::Variant::RFC4122);
    }

    #[test]
    fn ids_rise_when_the_clock_steps_back() {
        let newest = AtomicU64::new(0);
        let first = next_ordinal(&newest, Timestamp::from_millis(2_000));
        assert!(next_ordinal(&newest, Timestamp::from_millis(1_000)) > first);
    }
}
