//! The process's own shutdown signals: the first asks, the second cuts short.

use std::sync::{LazyLock, Once};

use tokio::sync::watch;

/// How many signals the process has had since somebody first listened. Signals belong to the
/// process, so this does too; what is "first" and "second" is each listener's to say.
static SIGNALS: LazyLock<watch::Sender<u64>> = LazyLock::new(|| watch::Sender::new(0));

/// Waits for SIGINT or SIGTERM (on Windows: Ctrl-C). After it, another signal makes every worker
/// that shuts down stop its attempts at once instead of waiting for them.
///
/// The first call takes the signals over for the rest of the process: they do not end it by
/// themselves any more. If the system refuses, this logs that and waits for ever.
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
    let mut next = NextSignal::from_now();
    count_signals();
    next.wait().await;
}

/// The next signal after a moment, heard whenever it comes.
pub(super) struct NextSignal(watch::Receiver<u64>);

impl NextSignal {
    pub(super) fn from_now() -> Self {
        Self(SIGNALS.subscribe())
    }

    pub(super) async fn wait(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Counts signals from now on, once in a process and on a thread of its own, so that no runtime
/// that ends takes the counting along.
fn count_signals() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let (listens, is_listening) = std::sync::mpsc::channel();
        #[expect(
            clippy::disallowed_methods,
            reason = "waits for the process's own signals, which no seam can give"
        )]
        let thread = std::thread::Builder::new()
            .name("queue-signals".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                let counted = runtime.and_then(|runtime| {
                    runtime.block_on(async {
                        let mut signals = Signals::listen()?;
                        let _ = listens.send(());
                        loop {
                            signals.next().await;
                            SIGNALS.send_modify(|count| *count += 1);
                        }
                    })
                });
                if let Err::<(), std::io::Error>(error) = counted {
                    tracing::error!(error = %error, "cannot listen for signals");
                }
            });
        match thread {
            // Nobody is told that signals are heard before they are.
            Ok(_) => drop(is_listening.recv()),
            Err(error) => tracing::error!(error = %error, "cannot listen for signals"),
        }
    });
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
