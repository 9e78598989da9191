//! The process's own shutdown signals: the first asks, the second cuts short.

use std::sync::LazyLock;

use tokio::sync::watch;

/// How many signals have come after one that asked for a shutdown. Signals belong to the
/// process, so this does too.
static FURTHER_SIGNALS: LazyLock<watch::Sender<u32>> = LazyLock::new(|| watch::Sender::new(0));

/// Waits for SIGINT or SIGTERM (on Windows: Ctrl-C). From then on, another signal makes every
/// worker of the process stop its attempts at once instead of waiting for them.
///
/// If the system refuses signal handlers, this logs that and waits for ever.
///
/// [`Worker::run`](super::Worker::run) waits for this by itself. It is there for programs that also
/// end for reasons of their own:
///
/// ```no_run
/// use queue_runtime::{Queue, Worker, WorkerError, shutdown_signal};
///
/// async fn work(
///     queue: &Queue,
///     leader_lost: impl Future<Output = ()>,
/// ) -> Result<(), WorkerError> {
///     let stop = async {
///         tokio::select! {
///             () = shutdown_signal() => {}
///             () = leader_lost => {}
///         }
///     };
///     Worker::builder(queue).run_until(stop).await
/// }
/// ```
pub async fn shutdown_signal() {
    match Signals::listen() {
        Ok(mut signals) => {
            signals.next().await;
            count_further(signals);
        }
        Err(error) => {
            tracing::error!(error = %error, "cannot listen for signals");
            std::future::pending::<()>().await;
        }
    }
}

/// The signal that cuts a shutdown short, heard whenever it came since this was made.
pub(super) struct SecondSignal(watch::Receiver<u32>);

impl SecondSignal {
    pub(super) fn listen() -> Self {
        Self(FURTHER_SIGNALS.subscribe())
    }

    pub(super) async fn wait(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "waits for the process's own signals, which no seam can give"
)]
fn count_further(mut signals: Signals) {
    drop(tokio::spawn(async move {
        loop {
            signals.next().await;
            FURTHER_SIGNALS.send_modify(|count| *count += 1);
        }
    }));
}

/// The process's shutdown signals; none is lost between two calls of `next`.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}
