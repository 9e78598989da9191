//! Who hears that a job may have become claimable: the workers of this process at once, those of
//! other processes by a notification of the server.
//!
//! Notifications are hints, and nothing depends on one: a worker that missed it finds the job at
//! its next poll. All processes of a store send on one channel, which is named after the store's
//! id, so that two schemas of a database do not hear each other. The payload names the sender
//! alone, not what came: a listener asks for the jobs of all its queues in any case. It lets a
//! process pass over its own notifications, since its workers were woken before they were sent;
//! one that a caller's transaction carries names nobody and so is heard by everybody.

use std::sync::Arc;

use sqlx::postgres::PgPool;
use tokio_util::sync::CancellationToken;

use super::connect::Begin;
use super::notify::{Line, Notifier};
use super::options::PostgresOptions;
use super::statements::Statements;
use crate::store::{Wake, WakeListener};

/// The payload of a notification that a caller's transaction carries.
pub(super) const FROM_A_TRANSACTION: &str = "";

/// What notifications go by.
#[derive(Debug)]
pub(super) struct Names {
    /// The channel of all processes of the store.
    pub(super) jobs: String,
    /// What no other opened store is called.
    pub(super) sender: String,
}

impl Names {
    fn new(store_id: &str, random: u64) -> Self {
        // As the tables are made it is 32 letters and digits. Postgres cuts the name of a
        // channel that has more than 63 bytes.
        let id: String = store_id
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(32)
            .collect();
        Self {
            jobs: format!("queue_{id}"),
            sender: format!("{random:016x}"),
        }
    }
}

/// The wake-ups of an opened store.
pub(super) struct Wakes {
    here: Arc<Wake>,
    pub(super) names: Arc<Names>,
    /// Absent where the options say that nobody else is to be told.
    notifier: Option<Notifier>,
    closing: CancellationToken,
}

impl Wakes {
    pub(super) fn new(
        options: &PostgresOptions,
        statements: &Arc<Statements>,
        begin: &Begin,
        pool: &PgPool,
        store_id: &str,
    ) -> Self {
        let names = Arc::new(Names::new(store_id, options.seam.random()));
        let line = Line::new(options, statements, begin, pool);
        let closing = CancellationToken::new();
        let notifier = options
            .notify
            .then(|| Notifier::new(line, Arc::clone(&names), closing.clone()));
        Self {
            here: Arc::new(Wake::new()),
            names,
            notifier,
            closing,
        }
    }

    /// Gives the hint, here and elsewhere; waits for nothing. Called after the commit.
    pub(super) fn give(&self) {
        self.here.notify();
        if let Some(notifier) = &self.notifier {
            notifier.ask();
        }
    }

    /// Where a caller's transaction gives the hint to everybody; `None` if it is not to.
    pub(super) fn channel_of_transactions(&self) -> Option<&str> {
        self.notifier.as_ref().map(|_| self.names.jobs.as_str())
    }

    /// Hears the hints from now on.
    pub(super) fn listen(&self) -> WakeListener {
        self.here.listen()
    }

    /// Gives the last hint and stops; the store's pool is still open.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        if let Some(notifier) = &self.notifier {
            notifier.close().await;
        }
    }
}

/// A store that is dropped and not closed.
impl Drop for Wakes {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channels_name_is_never_cut_by_the_server() {
        for id in ["", &"a".repeat(32), &"é\"'\0".repeat(99), &"b".repeat(999)] {
            let Names { jobs, .. } = Names::new(id, u64::MAX);
            assert!(jobs.len() <= 63, "{jobs}");
            assert!(jobs.starts_with("queue_"), "{jobs}");
        }
    }
}
