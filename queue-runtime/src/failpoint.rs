//! Named points at which a process can be made to die, to test what must hold afterwards.
//!
//! For tests of this library only. Without the feature `failpoints` a point compiles to nothing, its
//! name included. With it a point does nothing unless the environment arms it:
//! `QUEUE_FAILPOINT=<name>[:<nth>][:freeze]` makes the process print `at <name>` when it comes to the
//! point for the nth time (the first, if none is given), and then kill itself, as `kill -9` does, or
//! freeze, as `kill -STOP` does, and go on when it is let. Knows nothing of what happens at a point.

/// A point, by its name; or one that is there only if a condition holds.
macro_rules! point {
    ($name:literal) => {
        #[cfg(feature = "failpoints")]
        $crate::failpoint::reach($name);
    };
    ($name:literal, if $holds:expr) => {
        #[cfg(feature = "failpoints")]
        {
            if $holds {
                $crate::failpoint::reach($name);
            }
        }
    };
}
pub(crate) use point;

#[cfg(feature = "failpoints")]
pub use self::armed::{NAMES, reach};

#[cfg(feature = "failpoints")]
mod armed {
    use std::io::Write;
    use std::process::Command;
    use std::str::FromStr;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// The points there are, in the order of a job's life. Those of handlers belong to the handlers
    /// of tests.
    pub const NAMES: [&str; 25] = [
        "migrate.begun",
        "migrate.changed",
        "migrate.recorded",
        "migrate.committed",
        "enqueue.unsent",
        "insert.halfway",
        "enqueue.staged",
        "enqueue.unanswered",
        "claim.uncommitted",
        "claim.unheard",
        "handler.unpolled",
        "handler.before_effect",
        "handler.after_effect",
        "handler.uncommitted",
        "handler.committed",
        "heartbeat.uncommitted",
        "cancel.untold",
        "settle.unsent",
        "settle.requeued",
        "promote.uncommitted",
        "settle.uncommitted",
        "settle.unheard",
        "shutdown.unflushed",
        "rescue.decided",
        "prune.uncommitted",
    ];

    /// The environment variable that arms a point.
    const VARIABLE: &str = "QUEUE_FAILPOINT";

    static ARMED: LazyLock<Option<Armed>> = LazyLock::new(|| {
        let given = std::env::var(VARIABLE).ok()?;
        Some(given.parse().expect("QUEUE_FAILPOINT names a point"))
    });

    /// What a process does at a point.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Action {
        Die,
        Freeze,
    }

    #[derive(Debug)]
    struct Armed {
        name: String,
        action: Action,
        /// How often the point is passed before it acts; what is left of it.
        passes: AtomicU32,
    }

    impl FromStr for Armed {
        type Err = String;

        fn from_str(text: &str) -> Result<Self, String> {
            let refuse = || format!("{text:?}: expected <name>[:<nth>][:freeze]");
            let mut words = text.split(':');
            let name = words.next().unwrap_or_default();
            if !NAMES.contains(&name) {
                return Err(format!("{text:?}: there is no point of this name"));
            }
            let (mut nth, mut action) = (1, Action::Die);
            for word in words {
                match word {
                    "freeze" => action = Action::Freeze,
                    number => nth = number.parse().map_err(|_| refuse())?,
                }
            }
            Ok(Self {
                name: name.to_owned(),
                action,
                passes: AtomicU32::new(u32::checked_sub(nth, 1).ok_or_else(refuse)?),
            })
        }
    }

    impl Armed {
        /// Says once that it is time.
        fn is_due(&self) -> bool {
            let one_less = |passes: u32| Some(passes.wrapping_sub(1));
            self.passes
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
                .is_ok_and(|passes| passes == 0)
        }
    }

    /// Dies or freezes here, if this point is armed and it is time.
    pub fn reach(name: &str) {
        let Some(armed) = ARMED.as_ref().filter(|armed| armed.name == name) else {
            return;
        };
        if !armed.is_due() {
            return;
        }
        let mut output = std::io::stdout().lock();
        // Whoever waits for the line learns of a failure by its absence.
        let _ = writeln!(output, "at {name}").and_then(|()| output.flush());
        drop(output);
        let signal = match armed.action {
            Action::Die => "-KILL",
            Action::Freeze => "-STOP",
        };
        let id = std::process::id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.is_ok_and(|sent| sent.success()), "kill {signal} {id}");
        if armed.action == Action::Die {
            loop {
                // The signal is on its way: nothing more may happen on this thread.
                std::thread::park();
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_point_acts_once_at_the_time_that_it_is_armed_for() {
            let armed: Armed = "claim.unheard:3:freeze".parse().expect("it is well formed");
            assert_eq!(
                (armed.name.as_str(), armed.action),
                ("claim.unheard", Action::Freeze)
            );
            let due: Vec<bool> = (0..5).map(|_| armed.is_due()).collect();
            assert_eq!(due, [false, false, true, false, false]);
            assert!("claim.unheard".parse::<Armed>().expect("it is").is_due());
        }

        #[test]
        fn an_unknown_point_is_refused() {
            for text in ["claim.heard", "claim.unheard:0", "claim.unheard:often", ""] {
                assert!(text.parse::<Armed>().is_err(), "{text:?}");
            }
        }
    }
}
