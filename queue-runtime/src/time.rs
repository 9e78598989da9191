//! Instants as they are stored: whole milliseconds since 1970 in UTC.
//!
//! A [`Timestamp`] always comes from the store's clock, because that is the one clock every
//! worker of a queue shares. Spans inside one process are [`Duration`]s measured monotonically
//! through the [seam](crate::seam); nothing here reads a clock.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::{Deserialize, Deserializer, Error as _, Unexpected};
use serde::ser::{Serialize, Serializer};

/// An instant on the store's clock, in whole milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The first instant of 1970 in UTC.
    pub const EPOCH: Self = Self(0);

    /// Makes an instant from milliseconds since 1970 in UTC; negative values lie before it.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since 1970 in UTC.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the instant `span` later; stops at the largest instant instead of overflowing.
    pub fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(millis(span)))
    }

    /// Returns the instant `span` earlier; stops at the smallest instant instead of overflowing.
    pub fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(millis(span)))
    }

    /// Returns the span from `earlier` to `self`, or zero if `earlier` is the later one.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Reads what `Display` writes, and RFC 3339 in its other forms.
    fn read(text: &str) -> Option<Self> {
        match text.strip_suffix(" ms") {
            Some(millis) => millis.parse().ok().map(Self),
            None => text
                .parse::<chrono::DateTime<chrono::Utc>>()
                .ok()
                .map(Self::from),
        }
    }
}

/// Whole milliseconds of a span, saturating; a span below one millisecond counts as none.
pub(crate) fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self(millis(after)),
            Err(before) => Self(millis(before.duration()).saturating_neg()),
        }
    }
}

impl From<chrono::DateTime<chrono::Utc>> for Timestamp {
    fn from(time: chrono::DateTime<chrono::Utc>) -> Self {
        Self(time.timestamp_millis())
    }
}

/// RFC 3339 with milliseconds, or the bare number where the calendar ends.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match chrono::DateTime::from_timestamp_millis(self.0) {
            Some(time) => write!(f, "{}", time.format("%Y-%m-%dT%H:%M:%S%.3fZ")),
            None => write!(f, "{} ms", self.0),
        }
    }
}

/// As it is displayed.
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads any offset from UTC; what is shorter than a millisecond is cut off.
impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::read(&text).ok_or_else(|| {
            let expected = &"an instant in RFC 3339, such as 2026-11-30T00:53:20.123Z";
            D::Error::invalid_value(Unexpected::Str(&text), expected)
        })
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_prints_as_rfc_3339() {
        assert_eq!(
            Timestamp::from_millis(1_796_000_000_123).to_string(),
            "2026-11-30T00:53:20.123Z"
        );
    }

    #[test]
    fn an_instant_outside_the_calendar_still_prints() {
        assert_eq!(
            Timestamp::from_millis(i64::MAX).to_string(),
            "9223372036854775807 ms"
        );
    }

    #[test]
    fn an_instant_is_stored_as_its_text_and_read_back() {
        let far_off = [i64::MIN, 300_000_000_000_000, i64::MAX];
        for millis in [0, -1, 1_796_000_000_123].into_iter().chain(far_off) {
            let time = Timestamp::from_millis(millis);
            let json = serde_json::to_string(&time).expect("it is text");
            assert_eq!(json, format!("\"{time}\""));
            let back = serde_json::from_str::<Timestamp>(&json).map_err(|e| e.to_string());
            assert_eq!(back, Ok(time));
        }
    }

    #[test]
    fn an_instant_is_read_from_any_form_of_rfc_3339_and_from_nothing_else() {
        let read = |text| Timestamp::read(text).map(Timestamp::as_millis);
        assert_eq!(read("1970-01-01T01:00:01.5019+01:00"), Some(1_501));
        assert_eq!(read("1970-01-01T00:00:01Z"), Some(1_000));
        for wrong in ["", "1970-01-01", "1000", "1.5 ms", "yesterday"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn adding_a_huge_span_stops_at_the_end_of_time() {
        assert_eq!(
            Timestamp::EPOCH.saturating_add(Duration::MAX),
            Timestamp::from_millis(i64::MAX)
        );
    }

    #[test]
    fn the_span_to_a_later_instant_is_zero() {
        assert_eq!(
            Timestamp::from_millis(5).since(Timestamp::from_millis(9)),
            Duration::ZERO
        );
    }
}
