//! How many jobs to hold ready beyond those that run.
//!
//! Fast handlers need a stock, or every few jobs would cost a round trip and a commit; slow ones
//! must not have one, or a crash would sit on many leased jobs.

use std::time::Duration;

/// At most this much work is held ready: some round trips to a store, and no more, because a
/// worker that dies takes its stock along and each of those jobs has then used an attempt.
pub const STOCK_SPAN: Duration = Duration::from_millis(20);

/// The largest stock, whatever the rate.
pub const STOCK_MAX: usize = 500;

/// Returns how many jobs to claim now.
///
/// `per_second` is the worker's recent rate of finished jobs; zero until some have finished, so
/// that the first claim takes no more than can start at once.
pub fn wanted(concurrency: usize, running: usize, stock: usize, per_second: f64) -> usize {
    let ready = per_second.max(0.0) * STOCK_SPAN.as_secs_f64();
    // Less than one job for each slot means that the handlers are slow.
    let depth = if ready < concurrency as f64 {
        0
    } else {
        (ready as usize).min(STOCK_MAX)
    };
    (concurrency + depth).saturating_sub(running + stock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_worker_claims_no_more_than_it_can_start() {
        assert_eq!(wanted(50, 0, 0, 0.0), 50);
        assert_eq!(wanted(50, 30, 0, 0.0), 20);
        assert_eq!(wanted(50, 50, 0, 0.0), 0);
    }

    #[test]
    fn slow_handlers_hold_no_stock() {
        assert_eq!(wanted(50, 50, 0, 2_000.0), 0);
    }

    #[test]
    fn fast_handlers_hold_twenty_milliseconds_of_work_up_to_a_bound() {
        assert_eq!(wanted(50, 50, 0, 10_000.0), 200);
        assert_eq!(wanted(50, 50, 150, 10_000.0), 50);
        assert_eq!(wanted(50, 50, 0, 1e9), STOCK_MAX);
    }

    #[test]
    fn no_rate_makes_it_claim_less_than_nothing() {
        assert_eq!(wanted(1, 2, 9, f64::NAN), 0);
        assert_eq!(wanted(1, 0, 0, -5.0), 1);
    }
}
