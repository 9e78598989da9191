//! Names and numbers that identify things: jobs, job types, queues, workers, leases.
//!
//! A value of one of these types is valid by construction; [`InvalidName`] says what was wrong,
//! which rule it broke and where.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _, Unexpected};
use serde::ser::{Serialize, Serializer};
use uuid::Uuid;

/// Identifies one job; a UUIDv7 made by the producer, so that an enqueue whose answer was lost
/// can be repeated under the same id (`Enqueue::id`) without making a second job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(Uuid);

impl JobId {
    /// Wraps a UUID that was made elsewhere, such as one read back from a store.
    pub const fn from_uuid(id: Uuid) -> Self {
        Self(id)
    }

    /// Returns the UUID.
    pub const fn as_uuid(&self) -> &Uuid {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The text of the UUID.
impl Serialize for JobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for JobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse()
            .map_err(|_| D::Error::invalid_value(Unexpected::Str(&text), &"a UUID"))
    }
}

impl FromStr for JobId {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Uuid::parse_str(text).map(Self).map_err(|_| InvalidName {
            what: "job id",
            value: shorten(text),
            rule: "must be a UUID such as 0193b5a0-7c3e-7000-8000-000000000000".to_owned(),
        })
    }
}

/// A number new and higher at every claim of a job. Every later write about that attempt must
/// carry it, which is how a store refuses a worker that lost its lease.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LeaseToken(i64);

impl LeaseToken {
    /// Wraps a token as a store counts them: positive, never reused within one store.
    pub const fn new(token: i64) -> Self {
        Self(token)
    }

    /// Returns the number, as a user's own SQL would compare it.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Why a name was refused: what kind of name, the value (shortened), and the rule it broke.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value:?}: {rule}")]
pub struct InvalidName {
    /// The kind of name, such as `queue name`.
    pub what: &'static str,
    /// The refused value, cut after 80 characters.
    pub value: String,
    /// The rule, with the position of the first character that breaks it.
    pub rule: String,
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:literal, $chars:literal, $allowed:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The largest number of characters.
            pub const MAX_LEN: usize = $max;

            /// Checks and wraps a name.
            ///
            /// # Errors
            /// [`InvalidName`] if it is empty, too long, or holds a character outside the set.
            pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidName> {
                let name = name.as_ref();
                check($what, name, $max, $chars, $allowed)?;
                Ok(Self(Arc::from(name)))
            }

            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }
    };
}

name_type!(
    /// The stable name of a kind of job: 1 to 120 of `A-Za-z0-9._:-/`.
    JobType, "job type", 120, "A-Za-z0-9._:-/",
    |c: char| c.is_ascii_alphanumeric() || "._:-/".contains(c)
);

name_type!(
    /// The name of a line of jobs with its own limits: 1 to 63 of `a-z0-9._-`.
    QueueName, "queue name", 63, "a-z0-9._-",
    |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c)
);

name_type!(
    /// Identifies one run of a worker process: its name and a boot id, so that a restarted
    /// worker of the same name is somebody else. 1 to 200 of `A-Za-z0-9._:-/@`.
    WorkerId, "worker id", 200, "A-Za-z0-9._:-/@",
    |c: char| c.is_ascii_alphanumeric() || "._:-/@".contains(c)
);

impl QueueName {
    /// The queue of a job that names none: `default`.
    pub fn default_queue() -> Self {
        Self(Arc::from("default"))
    }
}

fn check(
    what: &'static str,
    name: &str,
    max: usize,
    chars: &'static str,
    allowed: impl Fn(char) -> bool,
) -> Result<(), InvalidName> {
    let refuse = |rule: String| {
        Err(InvalidName {
            what,
            value: shorten(name),
            rule,
        })
    };
    if let Some((index, bad)) = name.chars().enumerate().find(|(_, c)| !allowed(*c)) {
        return refuse(format!(
            "must be of {chars}; found {bad:?} at character {}",
            index + 1
        ));
    }
    match name.len() {
        0 => refuse(format!("must be 1-{max} characters; it is empty")),
        len if len > max => refuse(format!("must be 1-{max} characters; it has {len}")),
        _ => Ok(()),
    }
}

/// Cuts a refused value so that an error message stays readable.
pub(crate) fn shorten(value: &str) -> String {
    shorten_to(80, value)
}

/// Cuts a value after so many characters.
pub(crate) fn shorten_to(chars_max: usize, value: &str) -> String {
    match value.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_queue(name: &str, expected: &str) {
        let said = QueueName::new(name).map_or_else(|e| e.to_string(), |q| format!("ok {q}"));
        assert_eq!(said, expected, "for {name:?}");
    }

    #[test]
    fn a_job_id_is_stored_as_its_text_and_read_back() {
        let json = r#""0193b5a0-7c3e-7000-8000-000000000000""#;
        let id: JobId = serde_json::from_str(json).expect("it is a UUID");
        assert_eq!(serde_json::to_string(&id).expect("it is text"), json);
        for wrong in [r#""seven""#, "7", "null"] {
            assert!(serde_json::from_str::<JobId>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_queue_name_says_which_character_breaks_the_rule() {
        check_queue("mail", "ok mail");
        check_queue("a.b_c-9", "ok a.b_c-9");
        check_queue("", r#"queue name "": must be 1-63 characters; it is empty"#);
        check_queue(
            "a/b",
            r#"queue name "a/b": must be of a-z0-9._-; found '/' at character 2"#,
        );
        check_queue(
            "Mail",
            r#"queue name "Mail": must be of a-z0-9._-; found 'M' at character 1"#,
        );
        check_queue(
            "a b",
            r#"queue name "a b": must be of a-z0-9._-; found ' ' at character 2"#,
        );
        check_queue(
            "a\"b",
            r#"queue name "a\"b": must be of a-z0-9._-; found '"' at character 2"#,
        );
        check_queue(
            "a;b",
            r#"queue name "a;b": must be of a-z0-9._-; found ';' at character 2"#,
        );
        check_queue(
            "a\0",
            r#"queue name "a\0": must be of a-z0-9._-; found '\0' at character 2"#,
        );
        check_queue(
            "a\n",
            r#"queue name "a\n": must be of a-z0-9._-; found '\n' at character 2"#,
        );
        check_queue(
            "É",
            r#"queue name "É": must be of a-z0-9._-; found 'É' at character 1"#,
        );
    }

    #[test]
    fn a_name_one_character_too_long_says_its_length() {
        assert!(QueueName::new("q".repeat(63)).is_ok());
        let error = QueueName::new("q".repeat(64)).expect_err("64 is over the bound");
        assert_eq!(error.rule, "must be 1-63 characters; it has 64");
        assert!(JobType::new("j".repeat(120)).is_ok());
        assert!(JobType::new("j".repeat(121)).is_err());
    }

    #[test]
    fn a_refused_value_is_cut_in_the_message() {
        let error = QueueName::new("é".repeat(5_000)).expect_err("not ASCII");
        assert_eq!(error.value.chars().count(), 81);
    }

    #[test]
    fn a_malformed_job_id_says_what_one_looks_like() {
        let error = "42".parse::<JobId>().expect_err("not a UUID");
        assert!(
            error
                .to_string()
                .starts_with(r#"job id "42": must be a UUID"#),
            "{error}"
        );
    }
}
