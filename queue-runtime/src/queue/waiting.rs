//! What a program has to be able to read before it is deployed.

use super::Queue;
use crate::error::StoreError;
use crate::job::{JobId, JobRecord, JobType, QueueName};
use crate::store::Waiting;

impl Queue {
    /// Counts what may still have to be decoded, by type, queue and payload schema and sorted by
    /// them: jobs that wait or run, and dead letters, which may be replayed. Before a deploy
    /// [`deployable`](crate::lockfile::deploy::deployable) tries them with the new program.
    ///
    /// Locks nothing, and walks over all live jobs and dead letters: ask it now and then, not every
    /// second. A worker tells by itself, with a warning in the log, when jobs wait that it does not
    /// run in a queue that it serves.
    ///
    /// ```
    /// use queue_runtime::{Job, Queue, job};
    ///
    /// #[job]
    /// async fn send_welcome(user_id: i64) {
    ///     println!("welcome, user {user_id}");
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let queue = Queue::open("memory:").await?;
    /// queue.enqueue_all((1..=250).map(|user_id| SendWelcomeJob { user_id })).await?;
    ///
    /// for waiting in queue.waiting().await? {
    ///     assert_eq!((waiting.job_type.as_str(), waiting.payload_schema), ("send_welcome", 1));
    ///     let (mut after, mut read) = (None, 0);
    ///     loop {
    ///         let page = queue
    ///             .waiting_sample(
    ///                 &waiting.job_type,
    ///                 &waiting.queue,
    ///                 waiting.payload_schema,
    ///                 after,
    ///                 100,
    ///             )
    ///             .await?;
    ///         for job in &page {
    ///             SendWelcomeJob::from_stored(&job.payload, job.payload_schema)?;
    ///             read += 1;
    ///         }
    ///         after = page.last().map(|job| job.id);
    ///         if page.len() < 100 {
    ///             break;
    ///         }
    ///     }
    ///     assert_eq!(read, waiting.total());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The store's.
    pub async fn waiting(&self) -> Result<Vec<Waiting>, StoreError> {
        self.store().waiting().await
    }

    /// Returns at most `count` of the jobs that [`waiting`](Self::waiting) counts for a type,
    /// queue and schema, in the order of their ids; `after` is the id of the last job of the page before.
    /// Fewer than `count` mean that there are no more. A job whose row cannot be read is left out,
    /// with an error in the log, so pages may hold fewer jobs than were counted.
    ///
    /// # Errors
    /// The store's.
    pub async fn waiting_sample(
        &self,
        job_type: &JobType,
        queue: &QueueName,
        schema: u32,
        after: Option<JobId>,
        count: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        let store = self.store();
        store
            .waiting_sample(job_type, queue, schema, after, count)
            .await
    }
}
