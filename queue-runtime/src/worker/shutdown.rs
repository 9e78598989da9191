//! The process's own shutdown signals: the first asks, the second cuts short.

use tokio::sync::Notify;

/// Told by the second signal. Signals belong to the process, so this does too.
static CUT_SHORT: Notify = Notify::const_new();

/// Waits for SIGINT or SIGTERM (on Windows: Ctrl-C). From then on, another signal makes every
/// worker of the process stop its attempts at once instead of waiting for them.
///
/// If the system refuses signal handlers, this logs that and waits for ever.
pub async fn shutdown_signal() {
    if let Err(error) = signal().await {
        tracing::error!(error = %error, "cannot listen for signals");
        std::future::pending::<()>().await;
    }
    listen_for_another();
}

/// Waits for the signal that cuts a shutdown short.
pub(super) async fn cut_short() {
    CUT_SHORT.notified().await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "waits for the process's own signal, which no seam can give"
)]
fn listen_for_another() {
    drop(tokio::spawn(async {
        while signal().await.is_ok() {
            CUT_SHORT.notify_waiters();
        }
    }));
}

#[cfg(unix)]
async fn signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn signal() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
