//! A worker's mistake: the heartbeat shares its threads with the handlers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use queue_runtime::job::JobId;
use queue_runtime::seam::Seam;
use queue_runtime::time::Timestamp;

/// Runs beside the caller's tasks what should run apart from them, so a handler that blocks its
/// thread stops the heartbeat as well.
#[derive(Clone, Debug)]
pub struct OneRuntime(Arc<dyn Seam>);

impl OneRuntime {
    /// Takes everything else from another seam.
    pub fn new(seam: Arc<dyn Seam>) -> Self {
        Self(seam)
    }
}

impl Seam for OneRuntime {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(span)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> tokio::task::JoinHandle<()> {
        self.0.spawn(task)
    }

    fn spawn_apart(&self, _name: &str, task: BoxFuture<'static, ()>) -> std::io::Result<()> {
        drop(self.0.spawn(task));
        Ok(())
    }

    fn random(&self) -> u64 {
        self.0.random()
    }

    fn job_id(&self) -> JobId {
        self.0.job_id()
    }
}
