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

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::connect::Begin;
use super::listen::{Listener, Listening};
use super::notify::{Line, Notifier};
use super::options::PostgresOptions;
use super::pools::Pool;
use super::statements::Statements;
use crate::store::{Wake, WakeListener};

/// The payload of a notification that a caller's transaction carries.
pub(super) const FROM_A_TRANSACTION: &str = "";

/// What notifications go by.
#[derive(Debug)]
pub(super) struct Names {
    /// The channel of all processes of the store.
    pub(super) jobs: String,
    /// The channel on which this store alone listens, for what it sends itself to see whether it
    /// hears.
    pub(super) probes: String,
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
        let sender = format!("{random:016x}");
        Self {
            jobs: format!("queue_{id}"),
            probes: format!("queue_{id}_{sender}"),
            sender,
        }
    }
}

/// The wake-ups of an opened store.
pub(super) struct Wakes {
    pub(super) here: Arc<Wake>,
    pub(super) names: Arc<Names>,
    /// Absent where the options say that nobody else is to be told.
    notifier: Option<Notifier>,
    /// Absent behind a pooler, where a connection listens on a server that it soon leaves.
    listener: Option<Listener>,
    listening: watch::Sender<Listening>,
    closing: CancellationToken,
}

impl Wakes {
    pub(super) fn new(
        options: &PostgresOptions,
        statements: &Arc<Statements>,
        begin: &Begin,
        pool: &Pool,
        store_id: &str,
    ) -> Self {
        let names = Arc::new(Names::new(store_id, options.seam.random()));
        let line = Line::new(options, statements, begin, pool);
        let closing = CancellationToken::new();
        let here = Arc::new(Wake::new());
        let listening = watch::Sender::default();
        let notifier = options
            .notify
            .then(|| Notifier::new(line.clone(), Arc::clone(&names), closing.clone()));
        let listener = (!options.behind_pooler).then(|| {
            let (names, here) = (Arc::clone(&names), Arc::clone(&here));
            Listener::new(line, names, here, closing.clone(), listening.clone())
        });
        Self {
            here,
            names,
            notifier,
            listener,
            listening,
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

    /// Hears the hints from now on, those of other processes as soon as a connection listens.
    pub(super) fn listen(&self) -> WakeListener {
        let hears = self.here.listen();
        if let Some(listener) = &self.listener {
            listener.start();
        }
        hears
    }

    /// How well the hints of other processes are heard.
    pub(super) fn listening(&self) -> watch::Receiver<Listening> {
        self.listening.subscribe()
    }

    /// Gives the last hint and stops; the store's pools are still open.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        if let Some(notifier) = &self.notifier {
            notifier.close().await;
        }
        if let Some(listener) = &self.listener {
            listener.close().await;
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
            let Names { jobs, probes, .. } = Names::new(id, u64::MAX);
            for name in [jobs, probes] {
                assert!(name.len() <= 63, "{name}");
                assert!(name.starts_with("queue_"), "{name}");
            }
        }
    }
}
