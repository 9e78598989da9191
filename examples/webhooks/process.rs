//! The worker's process, seen from its parent: start, kill, stop; and the child's side of that.

use std::io::Read;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use queue_runtime::Queue;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

/// The hidden first argument that makes a process of this program a worker.
pub(crate) const WORKER: &str = "--worker";

/// How soon to look again whether the worker has anything left to do.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Far above what a slow machine needs.
const DRAIN_SPAN: Duration = Duration::from_mins(3);

/// How long a worker with nothing to do may take to stop.
const STOP_SPAN: Duration = Duration::from_secs(10);

/// A worker in a process of its own; killed when this is dropped.
pub(crate) struct WorkerProcess(Child);

impl WorkerProcess {
    /// Starts this same program again, as a worker.
    pub(crate) fn start(database: &str, receiver: SocketAddr) -> Result<Self> {
        let program = std::env::current_exe().context("find this program")?;
        let child = Command::new(program)
            .args([WORKER, database, &receiver.to_string()])
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("start the worker's process")?;
        Ok(Self(child))
    }

    /// Kills the process at once, as `kill -9` does, and returns once it is gone.
    pub(crate) async fn kill(mut self) -> Result<()> {
        self.0.kill().await.context("kill the worker's process")?;
        let status = self.0.wait().await?;
        // A process that a signal ended has no exit code.
        let was_killed = cfg!(not(unix)) || status.code().is_none();
        ensure!(was_killed, "the worker ended by itself: {status}");
        Ok(())
    }

    /// Waits until the queue has nothing left to run; fails if the worker ends meanwhile, or if
    /// there is no end to it.
    pub(crate) async fn drain(&mut self, queue: &Queue) -> Result<()> {
        let drained = tokio::time::timeout(DRAIN_SPAN, self.watch(queue)).await;
        drained.with_context(|| format!("some orders had no end after {DRAIN_SPAN:?}"))?
    }

    async fn watch(&mut self, queue: &Queue) -> Result<()> {
        loop {
            let counts = queue.counts().await?;
            if counts.queued + counts.processing == 0 {
                return Ok(());
            }
            // Not `wait`, which would close the worker's input and so ask it to stop.
            if let Some(status) = self.0.try_wait()? {
                bail!("the worker ended by itself: {status}");
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Asks the worker to stop by closing its input, and checks that it does so cleanly.
    pub(crate) async fn stop(mut self) -> Result<()> {
        drop(self.0.stdin.take());
        match tokio::time::timeout(STOP_SPAN, self.0.wait()).await {
            Ok(status) => {
                let status = status?;
                ensure!(status.success(), "the worker stopped with {status}");
                Ok(())
            }
            Err(_) => bail!("the worker did not stop within {STOP_SPAN:?}"),
        }
    }
}

/// In the worker's process: ready once the parent closes our input or is gone, however it ended.
pub(crate) async fn parent_is_done() {
    let (tell, told) = oneshot::channel();
    // A thread of its own, because a blocked read cannot be cancelled and would hold up the end
    // of a runtime that owned it.
    std::thread::spawn(move || {
        let mut nothing = Vec::new();
        // An input that cannot be read is as closed as one that ended.
        let _ = std::io::stdin().read_to_end(&mut nothing);
        let _ = tell.send(());
    });
    let _ = told.await;
}
