//! Pure decisions.
use std::time::Duration;
/// Longest.
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(24 * 30);
