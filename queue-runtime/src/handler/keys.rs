//! What may be part of a dedupe, idempotency or cache key, and what counts versions.

use uuid::Uuid;

use crate::job::JobId;
use crate::time::Timestamp;

/// Collects the parts of a key into one text that no other parts give: a JSON array of strings.
#[derive(Debug, Default)]
pub struct KeyWriter(Vec<Option<String>>);

impl KeyWriter {
    /// Starts a key without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a part.
    pub fn part(&mut self, part: impl Into<String>) {
        self.0.push(Some(part.into()));
    }

    /// Adds a part that is absent, which differs from an empty one.
    pub fn absent(&mut self) {
        self.0.push(None);
    }

    /// Returns the key.
    pub fn finish(self) -> String {
        serde_json::Value::from_iter(self.0).to_string()
    }
}

/// A value that may be part of a key: its text names it and never changes its form.
///
/// ```
/// use queue_runtime::{KeyPart, KeyWriter, job};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Serialize, Deserialize)]
/// struct UserId(i64);
///
/// impl KeyPart for UserId {
///     fn write(&self, key: &mut KeyWriter) {
///         key.part(self.0.to_string());
///     }
/// }
///
/// #[job(dedupe = "user_id")]
/// async fn send_welcome(user_id: UserId) {
///     println!("welcome, user {}", user_id.0);
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a dedupe, idempotency or cache key",
    label = "not a key part",
    note = "integers, `bool`, `char`, strings, `Uuid`, `JobId`, UTC date-times and options of them can",
    note = "implement `queue_runtime::KeyPart` for an id type of your own; wrap a type of another \
            crate in one of yours, or take the part of it that tells jobs apart as an argument"
)]
pub trait KeyPart {
    /// Adds the value to a key.
    fn write(&self, key: &mut KeyWriter);
}

macro_rules! parts_by_display {
    ($($type:ty),* $(,)?) => {
        $(impl KeyPart for $type {
            fn write(&self, key: &mut KeyWriter) {
                key.part(self.to_string());
            }
        })*
    };
}

parts_by_display!(
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, bool, char, String, str, Uuid,
    JobId, Timestamp
);

impl KeyPart for chrono::DateTime<chrono::Utc> {
    fn write(&self, key: &mut KeyWriter) {
        key.part(self.to_rfc3339());
    }
}

impl<K: KeyPart + ?Sized> KeyPart for &K {
    fn write(&self, key: &mut KeyWriter) {
        (**self).write(key);
    }
}

impl<K: KeyPart> KeyPart for Option<K> {
    fn write(&self, key: &mut KeyWriter) {
        match self {
            Some(part) => part.write(key),
            None => key.absent(),
        }
    }
}

/// A number that counts the versions of cached data; it only rises.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a cache version",
    label = "not a version",
    note = "use `u32`, `u64`, `i32` or `i64`, or implement `queue_runtime::CacheVersion`"
)]
pub trait CacheVersion {
    /// Returns the number; `None` if it is negative.
    fn version(&self) -> Option<u64>;
}

macro_rules! versions {
    ($($type:ty),*) => {
        $(impl CacheVersion for $type {
            fn version(&self) -> Option<u64> {
                u64::try_from(*self).ok()
            }
        })*
    };
}

versions!(u32, u64, i32, i64);

#[cfg(test)]
mod tests {
    use super::*;

    fn key(parts: &[&dyn KeyPart]) -> String {
        let mut key = KeyWriter::new();
        parts.iter().for_each(|part| part.write(&mut key));
        key.finish()
    }

    #[test]
    fn parts_cannot_run_into_each_other() {
        assert_eq!(key(&[&42_i64, &"a,b"]), r#"["42","a,b"]"#);
        assert_ne!(key(&[&"a", &"b,c"]), key(&[&"a,b", &"c"]));
        assert_ne!(key(&[&None::<u8>]), key(&[&String::new()]));
        assert_eq!(key(&[&Some(7_u8)]), key(&[&7_u8]));
    }

    #[test]
    fn a_negative_number_is_no_version() {
        assert_eq!((7_i32.version(), (-1_i64).version()), (Some(7), None));
    }
}
