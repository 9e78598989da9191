//! The bounds of everything a caller can choose, and the one check that names both ends.

use std::fmt::Debug;
use std::time::Duration;

use crate::error::EnqueueError;
use crate::job::Due;
use crate::time::Timestamp;

/// The longest wait that a handler may ask for; a longer one is cut to it.
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(30 * 24);

/// The farthest that a job may be scheduled, and the longest deadline.
pub const SCHEDULE_MAX: Duration = Duration::from_hours(3_653 * 24);

/// The most retries that a job may have; beyond this a job is a schedule.
pub const RETRIES_MAX: u32 = 1_000;

/// The lowest and highest priority.
pub const PRIORITY_BOUNDS: (i16, i16) = (-100, 100);

/// The shortest and longest time that an idempotency or dedupe key answers after the insert.
pub const WINDOW_BOUNDS: (Duration, Duration) =
    (Duration::from_millis(1), Duration::from_hours(366 * 24));

/// The largest bulk that one call may insert; more is split by the caller.
pub const BULK_MAX: usize = 10_000;

/// Refuses a priority outside its bounds.
///
/// # Errors
/// [`EnqueueError::OutOfRange`].
pub fn check_priority(priority: i16) -> Result<(), EnqueueError> {
    let (low, high) = PRIORITY_BOUNDS;
    within("priority", priority, low, high)
}

/// Refuses more retries than [`RETRIES_MAX`].
///
/// # Errors
/// [`EnqueueError::OutOfRange`].
pub fn check_retries(retries: u32) -> Result<(), EnqueueError> {
    within("retries", retries, 0, RETRIES_MAX)
}

/// Refuses a key window outside its bounds.
///
/// # Errors
/// [`EnqueueError::OutOfRange`].
pub fn check_window(what: &'static str, window: Duration) -> Result<(), EnqueueError> {
    within(what, window, WINDOW_BOUNDS.0, WINDOW_BOUNDS.1)
}

/// Refuses a deadline of no length or beyond [`SCHEDULE_MAX`].
///
/// # Errors
/// [`EnqueueError::OutOfRange`].
pub fn check_deadline(deadline: Duration) -> Result<(), EnqueueError> {
    within("deadline", deadline, Duration::from_millis(1), SCHEDULE_MAX)
}

/// Refuses a due time more than [`SCHEDULE_MAX`] ahead or before the year 1970; one that has
/// merely passed means at once. `now` may be any clock that is right to the day.
///
/// # Errors
/// [`EnqueueError::OutOfRange`].
pub fn check_due(due: Due, now: Timestamp) -> Result<(), EnqueueError> {
    match due {
        Due::Now => Ok(()),
        Due::After(delay) => within("delay", delay, Duration::ZERO, SCHEDULE_MAX),
        Due::At(at) => within(
            "run_at",
            at,
            Timestamp::EPOCH,
            now.saturating_add(SCHEDULE_MAX),
        ),
    }
}

fn within<T: PartialOrd + Debug>(
    what: &'static str,
    value: T,
    low: T,
    high: T,
) -> Result<(), EnqueueError> {
    if value >= low && value <= high {
        return Ok(());
    }
    Err(EnqueueError::OutOfRange {
        what,
        value: format!("{value:?}"),
        rule: format!("must be from {low:?} to {high:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_796_000_000_000);

    fn check(due: Due, expected: &str) {
        let said = check_due(due, NOW).map_or_else(|e| e.to_string(), |()| "ok".to_owned());
        assert!(said.starts_with(expected), "{due:?}: {said}");
    }

    #[test]
    fn a_due_time_outside_the_bounds_says_both_ends() {
        check(Due::At(Timestamp::from_millis(5)), "ok");
        check(Due::At(NOW), "ok");
        check(Due::After(SCHEDULE_MAX), "ok");
        check(
            Due::After(SCHEDULE_MAX + Duration::from_millis(1)),
            "delay 315619200.001s: must be",
        );
        check(
            Due::At(Timestamp::from_millis(i64::MAX)),
            "run_at 9223372036854775807 ms: must be",
        );
        check(
            Due::At(Timestamp::from_millis(-1)),
            "run_at 1969-12-31T23:59:59.999Z: must be from",
        );
    }

    #[test]
    fn a_priority_outside_the_bounds_says_both_ends() {
        assert!(check_priority(-100).is_ok() && check_priority(100).is_ok());
        let error = check_priority(101).expect_err("over the bound");
        assert_eq!(error.to_string(), "priority 101: must be from -100 to 100");
    }

    #[test]
    fn too_many_retries_say_the_bound() {
        assert!(check_retries(1_000).is_ok());
        let error = check_retries(100_000).expect_err("over the bound");
        assert_eq!(error.to_string(), "retries 100000: must be from 0 to 1000");
    }

    #[test]
    fn a_window_of_nothing_or_of_two_hundred_years_is_refused() {
        assert!(check_window("idempotency window", Duration::ZERO).is_err());
        assert!(check_window("idempotency window", Duration::from_hours(24)).is_ok());
        assert!(check_window("idempotency window", Duration::from_hours(200 * 366 * 24)).is_err());
    }
}
