//! Whether what is stored keeps the rules.

use super::Queue;
use crate::error::StoreError;
use crate::job::Verified;

/// The most findings of one rule that are listed: enough to see what they have in common.
const FINDINGS_MAX: usize = 100;

impl Queue {
    /// Looks through everything that is stored for what breaks a rule: jobs that are live and final,
    /// leases without a worker, histories with a gap, keys without their job, values that cannot be
    /// read. Of each rule at most 100 places are listed.
    ///
    /// Changes nothing, locks nothing, and sees one moment, so workers may run. It reads every job
    /// and every attempt: a question after a restored backup, a change by hand or an upgrade, not
    /// one for every minute. The rules are those of [`Invariant`](crate::job::Invariant).
    ///
    /// ```
    /// use queue_runtime::{Queue, job};
    ///
    /// #[job]
    /// async fn send_welcome(user_id: i64) {
    ///     println!("welcome, user {user_id}");
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let queue = Queue::open("memory:").await?;
    /// send_welcome::enqueue(&queue, 42).await?;
    ///
    /// let verified = queue.verify().await?;
    /// assert!(verified.is_sound(), "{verified}");
    /// assert_eq!(verified.to_string(), "jobs checked: 1, violations: 0, warnings: 0");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The store's, if it cannot be looked at. What it looked at and found broken is an answer.
    pub async fn verify(&self) -> Result<Verified, StoreError> {
        self.store().verify(FINDINGS_MAX).await
    }
}
