//! A queue on a fresh file, with its store at hand for counting commits.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use queue_runtime::Queue;
use queue_runtime::seam::{Seam, SystemSeam};
use queue_runtime::store::sqlite::{SqliteOptions, SqliteStore, Synchronous};

/// Opens a store in a folder, with every commit on the disk, and a queue on it.
pub(crate) async fn open(folder: &Path) -> Result<(Queue, Arc<SqliteStore>)> {
    let file = folder.join("jobs.db");
    let file = file.to_str().context("the folder's name is no UTF-8")?;
    let seam: Arc<dyn Seam> = Arc::new(SystemSeam::new());
    let options = SqliteOptions::new(file)?
        .synchronous(Synchronous::Full)
        .seam(Arc::clone(&seam));
    let store = Arc::new(SqliteStore::open(options).await?);
    let queue = Queue::on_store(Arc::clone(&store) as _, seam);
    Ok((queue, store))
}
