//! Letting a job run again, as it is or with another payload.

use super::Queue;
use crate::error::{JobActionError, StoreErrorKind};
use crate::handler::Job;
use crate::job::JobId;
use crate::pipeline::enqueue::edit;
use crate::store::{Edit, Replaying};

impl Queue {
    /// Makes a dead letter or a cancelled job run again: due now, its counters at zero, its id and
    /// its history kept.
    ///
    /// # Errors
    /// [`JobActionError::Duplicate`] if a live job holds its dedupe key, `NotReplayable`,
    /// `NotFound`; nothing was changed.
    pub async fn replay(&self, id: JobId) -> Result<(), JobActionError> {
        let answer = self.store().replay(id, false).await?;
        concluded(id, answer, "")
    }

    /// Replays a job with another payload: what was wrong with it is put right, and the job runs
    /// again, in one step.
    ///
    /// Takes the payload struct of the job's own type. The new payload keeps the rules of an
    /// enqueue, has the schema of this program's declaration, and is all that differs from a
    /// [`replay`](Self::replay), but for what follows from it:
    ///
    /// - The **dedupe key** stays as it is stored while the edit leaves its fields alone, also one
    ///   given with `.dedupe_key(..)`, or given up at the first attempt. If they change, or if the
    ///   stored payload cannot be read, the job holds the key of the new payload; a live job that
    ///   holds it already is answered as `Duplicate`. A key that is held for a window belongs to
    ///   the enqueue: no window is asked, closed or opened.
    /// - The **idempotency key** stays, whatever changes. It answers for the request as its caller
    ///   made it, and that is this job: a repeat with the payload of then is still a repeat.
    /// - The **cache key** and **version** are those of the new payload, and the version is known
    ///   from then on.
    ///
    /// ```standalone_crate
    /// use queue_runtime::{Job, JobError, JobState, Queue, Worker, job};
    ///
    /// #[job]
    /// async fn send_welcome(user_id: i64, email: &str) -> Result<(), JobError> {
    ///     match email.contains('@') {
    ///         true => Ok(()),
    ///         false => Err(JobError::permanent(format!("user {user_id} has no such address"))),
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let queue = Queue::open("memory:").await?;
    /// send_welcome::enqueue(&queue, 42, "ada.example.org").await?;
    /// Worker::builder(&queue).run_until_empty().await?;
    ///
    /// let letter = queue.dead_letters(1).await?.remove(0);
    /// let mut fixed = SendWelcomeJob::from_stored(&letter.payload, letter.payload_schema)?;
    /// fixed.email = "ada@example.org".to_owned();
    /// queue.replay_with(letter.id, fixed).await?;
    ///
    /// Worker::builder(&queue).run_until_empty().await?;
    /// let job = queue.job(letter.id).await?.expect("it keeps its id");
    /// assert_eq!((job.state, job.attempts), (JobState::Done, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// An operator's tool that has no types replaces the JSON text with `store().replay_with(..)`.
    ///
    /// # Errors
    /// [`JobActionError::OtherType`] if the job is of another type than the payload,
    /// [`JobActionError::InvalidEdit`] if the payload cannot be stored, otherwise as
    /// [`replay`](Self::replay); nothing was changed. Only after an error of the store's, of kind
    /// `Unavailable`, or when the future is dropped, it may have been: a repeat is then answered
    /// `NotReplayable`.
    pub async fn replay_with<J: Job>(&self, id: JobId, job: J) -> Result<(), JobActionError> {
        let stored = match self.store().job(id).await {
            Ok(Some(stored)) => Some(stored),
            Ok(None) => return Err(JobActionError::NotFound(id)),
            // Perhaps it is the payload that cannot be read.
            Err(error) if error.kind() == StoreErrorKind::Corrupt => None,
            Err(error) => return Err(error.into()),
        };
        let edit = edit::edit(&job, stored.as_ref())
            .map_err(|source| JobActionError::InvalidEdit { id, source })?;
        let answer = self.store().replay_with(id, false, &edit).await?;
        if answer == Replaying::Replayed {
            self.announce(&edit);
        }
        concluded(id, answer, J::DEF.name())
    }

    /// Tells the cache of this process of the version that the job refreshes from now on.
    fn announce(&self, edit: &Edit) {
        let cache = edit.job().and_then(|edited| edited.cache.as_ref());
        if let Some(newest) = cache {
            self.backend().cache().announce(newest);
        }
    }
}

/// Turns the store's answer into the caller's; `edited` is the type of the new payload.
fn concluded(id: JobId, answer: Replaying, edited: &'static str) -> Result<(), JobActionError> {
    match answer {
        Replaying::Replayed => Ok(()),
        Replaying::Duplicate(live) => Err(JobActionError::Duplicate { id, live }),
        Replaying::NotReplayable(state) => Err(JobActionError::NotReplayable { id, state }),
        Replaying::OtherType(stored) => Err(JobActionError::OtherType { id, stored, edited }),
        Replaying::NotFound => Err(JobActionError::NotFound(id)),
    }
}
