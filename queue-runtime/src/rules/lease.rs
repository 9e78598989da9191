//! The arithmetic of leases inside one worker: when to renew, when to give up, what fits.
//!
//! Instants here are spans on the worker's monotonic clock, since nothing compares two machines'
//! wall clocks.

use std::time::Duration;

/// How leases are kept: their length and how often they are renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// How long a lease lasts without renewal; 60 s unless configured.
    pub lease: Duration,
    /// How often leases are renewed; 15 s unless configured.
    pub heartbeat: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(60),
            heartbeat: Duration::from_secs(15),
        }
    }
}

/// The shortest and longest lease.
pub const LEASE_BOUNDS: (Duration, Duration) =
    (Duration::from_millis(300), Duration::from_hours(24));

/// The shortest time between heartbeats: each is a durable write of its own.
pub const HEARTBEAT_MIN: Duration = Duration::from_millis(10);

/// How long a server may take to answer if the lease allows it, as long as heartbeats are shorter.
const PATIENCE: Duration = Duration::from_secs(5);

impl LeaseTimes {
    /// Says what is wrong with the two numbers, with both of them; empty if they fit.
    pub fn faults(&self) -> Vec<String> {
        let Self { lease, heartbeat } = *self;
        let (low, high) = LEASE_BOUNDS;
        let mut faults = Vec::new();
        if lease < low || lease > high {
            faults.push(format!("lease {lease:?}: must be from {low:?} to {high:?}"));
        }
        if heartbeat < HEARTBEAT_MIN {
            faults.push(format!(
                "heartbeat {heartbeat:?}: must be at least {HEARTBEAT_MIN:?}"
            ));
        } else if lease < heartbeat.saturating_mul(3) {
            faults.push(format!(
                "lease {lease:?} is shorter than three heartbeats of {heartbeat:?}: one slow \
                 renewal would lose running jobs. Write a lease of {:?} or more",
                heartbeat.saturating_mul(3)
            ));
        }
        faults
    }

    /// Returns when a lease renewed at `renewed` must be given up locally: before the store
    /// would hand the job to somebody else, by a tenth of the lease.
    pub fn local_end(&self, renewed: Duration) -> Duration {
        renewed.saturating_add(self.lease - self.lease / 10)
    }

    /// Returns how long to wait for the answer to a renewal, or for a new connection, before
    /// trying another way: long enough for a busy server, which a frequent heartbeat must not
    /// mistake for a dead one, and short enough for a second try within the lease.
    pub(crate) fn patience(&self) -> Duration {
        self.heartbeat.max(PATIENCE.min(self.lease / 3))
    }
}

/// Says whether a lease is still worth renewing.
///
/// A handler that blocks its thread cannot be stopped by its time limit. Renewal ends one lease
/// after the limit, so that a rescue can give the job to somebody else; without a limit it never
/// ends.
pub fn renews(
    started: Duration,
    timeout: Option<Duration>,
    lease: Duration,
    now: Duration,
) -> bool {
    timeout.is_none_or(|timeout| now < started.saturating_add(timeout).saturating_add(lease))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn patience_does_not_shrink_with_the_heartbeat() {
        let patience = |lease, heartbeat| LeaseTimes { lease, heartbeat }.patience();
        assert_eq!(patience(secs(60), secs(15)), secs(15));
        assert_eq!(patience(secs(60), secs(1)), secs(5));
        assert_eq!(patience(secs(3), Duration::from_millis(10)), secs(1));
        assert_eq!(patience(secs(86_400), secs(15)), secs(15));
    }

    fn check(lease: Duration, heartbeat: Duration, expected: &[&str]) {
        let faults = LeaseTimes { lease, heartbeat }.faults();
        assert_eq!(faults.len(), expected.len(), "{faults:?}");
        for (fault, start) in faults.iter().zip(expected) {
            assert!(fault.starts_with(start), "{fault}");
        }
    }

    #[test]
    fn a_lease_that_cannot_survive_two_lost_beats_is_refused_with_both_numbers() {
        check(secs(60), secs(15), &[]);
        check(secs(45), secs(15), &[]);
        check(
            secs(44),
            secs(15),
            &["lease 44s is shorter than three heartbeats of 15s"],
        );
    }

    #[test]
    fn a_lease_outside_its_bounds_is_refused() {
        check(
            Duration::ZERO,
            secs(0),
            &["lease 0ns: must be from 300ms", "heartbeat 0ns"],
        );
        check(
            secs(30 * 86_400),
            secs(15),
            &["lease 2592000s: must be from 300ms to 86400s"],
        );
    }

    #[test]
    fn the_local_end_comes_before_the_stores() {
        assert_eq!(LeaseTimes::default().local_end(secs(100)), secs(154));
    }

    #[test]
    fn renewal_ends_one_lease_after_the_time_limit() {
        assert!(renews(secs(10), Some(secs(5)), secs(60), secs(74)));
        assert!(!renews(secs(10), Some(secs(5)), secs(60), secs(75)));
        assert!(renews(secs(10), None, secs(60), secs(1_000_000)));
    }
}
