//! How long to wait before the next attempt: integer milliseconds, saturating, capped, spread.

use std::time::Duration;

use crate::job::Backoff;

/// Returns the delay after attempt `attempt` (from 1) has failed.
///
/// The jitter is a share of the delay itself, so that a herd is spread at the cap as well as at
/// the start; it never lifts an exponential delay above its `max`. The same `seed` gives the
/// same delay. Attempt 0 counts as 1.
pub fn delay(backoff: Backoff, attempt: u32, seed: u64) -> Duration {
    match backoff {
        Backoff::Fixed {
            delay,
            jitter_percent,
        } => spread(delay, jitter_percent, Duration::MAX, seed),
        Backoff::Exponential {
            base,
            max,
            jitter_percent,
        } => {
            let doublings = attempt.saturating_sub(1).min(63);
            let grown = in_millis(base).saturating_mul(1 << doublings);
            let delay = Duration::from_millis(grown).min(max);
            spread(delay, jitter_percent, max, seed)
        }
    }
}

/// Picks uniformly from `delay` ± `percent`, the upper end cut at `max`.
fn spread(delay: Duration, percent: u8, max: Duration, seed: u64) -> Duration {
    let delay = in_millis(delay);
    let share = u64::try_from(u128::from(delay) * u128::from(percent.min(100)) / 100)
        .expect("a hundredth part times at most a hundred is no larger than the whole");
    let low = delay - share;
    let high = delay.saturating_add(share).min(in_millis(max).max(low));
    Duration::from_millis(low + seed % (high - low).saturating_add(1))
}

fn in_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Backoff = Backoff::Exponential {
        base: Duration::from_secs(2),
        max: Duration::from_secs(300),
        jitter_percent: 0,
    };

    #[test]
    fn an_exponential_delay_doubles_up_to_its_cap() {
        let seconds: Vec<_> = (1..=10).map(|n| delay(PLAIN, n, 7).as_secs()).collect();
        assert_eq!(seconds, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    }

    #[test]
    fn no_attempt_number_overflows() {
        for attempt in [0, 1, 63, 64, 65, u32::MAX] {
            assert!(delay(PLAIN, attempt, u64::MAX) <= Duration::from_secs(300));
        }
        let huge = Backoff::Exponential {
            base: Duration::MAX,
            max: Duration::MAX,
            jitter_percent: 100,
        };
        delay(huge, u32::MAX, u64::MAX);
    }

    #[test]
    fn a_thousand_failures_at_the_cap_do_not_come_back_together() {
        let delays: Vec<_> = (0..1_000u64)
            .map(|n| delay(Backoff::DEFAULT, 20, n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect();
        assert!(delays.iter().all(|d| (240..=300).contains(&d.as_secs())));
        let mut per_second = std::collections::BTreeMap::new();
        delays
            .iter()
            .for_each(|d| *per_second.entry(d.as_secs()).or_insert(0) += 1);
        assert!(per_second.values().all(|n| *n < 50), "{per_second:?}");
    }
}
