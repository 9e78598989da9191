//! Stores the new jobs of many callers: those that come while others are under way share one
//! statement and one commit.
//!
//! A commit waits for the disk however little it holds, and a statement has a price of its own.
//! So a caller that comes while nothing is under way inserts at once, in its own future. Whoever
//! comes while something is hands its jobs to a flusher: a task that stores all that waits by one
//! statement, again and again until nothing waits. No timer ever waits for company.
//!
//! No caller depends on another:
//! - The flusher is a task, so a caller that goes away or is not polled takes nobody along.
//! - A flusher that ends before it has answered, because its runtime was shut down, leaves its
//!   callers to insert by themselves. Ids come from the producer, so that is safe.
//! - When a shared statement is refused, each of its callers inserts by itself, so only the one
//!   whose jobs are at fault gets the error. When the connection is lost, all get that error.
//! - A statement that is held up does not hold up those who come after: another flusher starts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::connect::{self, Begin, Form, Pool};
use super::error::is_about_connection;
use super::insert::{Insert, InsertPlain, all_new, has_due};
use super::lanes::Lanes;
use super::options::PostgresOptions;
use super::statements::Statements;
use super::wake::Wakes;
use crate::error::StoreError;
use crate::job::NewJob;
use crate::store::Inserted;

/// Flushers at once, unless they are held up: while one waits for the disk, the other fills up.
/// With more of them fewer callers share a commit.
const FLUSHERS_MAX: usize = 2;

/// Jobs of a shared statement at most: bounds how long its first caller waits for the others.
const JOBS_MAX: usize = 1_000;

/// Bytes of payload in a shared statement at most, for the same reason: those of the largest
/// payload.
const BYTES_MAX: usize = 1 << 20;

/// How long after the last flush began it counts as held up: far above what a commit takes.
const HELD_UP: Duration = Duration::from_millis(100);

/// Inserts jobs that have no keys and no caches.
pub(super) struct Inserter {
    pub(super) options: PostgresOptions,
    pub(super) statements: Arc<Statements>,
    pub(super) begin: Begin,
    pub(super) pool: Pool,
    pub(super) lanes: Arc<Lanes>,
    pub(super) wakes: Arc<Wakes>,
    pub(super) queue: Mutex<Queue>,
}

/// Who waits, and what is under way.
#[derive(Default)]
pub(super) struct Queue {
    waiting: VecDeque<Part>,
    /// Whether a caller inserts in its own future.
    has_single: bool,
    flushers: usize,
    /// When the last flush began, on the seam's monotonic clock.
    flushed_at: Duration,
}

/// The jobs of one caller, who waits for the answer.
struct Part {
    jobs: Vec<NewJob>,
    answer: oneshot::Sender<Answer>,
}

/// What a flush came to for one caller.
enum Answer {
    Stored,
    /// Nothing is stored, and a caller by itself may fare better.
    Apart,
    Failed(StoreError),
}

impl Inserter {
    /// Inserts a batch: all of it is stored or nothing.
    pub(super) async fn insert(
        self: &Arc<Self>,
        jobs: &[NewJob],
    ) -> Result<Vec<Inserted>, StoreError> {
        if is_large(jobs) {
            return self.store(jobs).await;
        }
        if let Some(_under_way) = self.single() {
            return self.store(jobs).await;
        }
        let answer = self.share(jobs.to_vec());
        // The flusher gives up in time by itself, unless nobody drives its runtime any more.
        let bound = connect::bound(&self.options);
        match connect::within(&*self.options.seam, bound, "insert", answer).await? {
            Ok(Answer::Stored) => Ok(all_new(jobs)),
            Ok(Answer::Failed(error)) => Err(error),
            // An error here means that the flusher is gone.
            Ok(Answer::Apart) | Err(_) => self.store(jobs).await,
        }
    }

    /// Tells those who look for jobs what was just committed.
    pub(super) fn tell(&self, jobs: &[NewJob], inserted: &[Inserted]) {
        self.lanes.forget();
        if has_due(jobs, inserted, self.options.wall_clock()) {
            self.wakes.give();
        }
    }

    /// Stores jobs by a statement of their own.
    async fn store(&self, jobs: &[NewJob]) -> Result<Vec<Inserted>, StoreError> {
        let insert = InsertPlain(Insert {
            statements: &self.statements,
            now: self.options.manual_now(),
            jobs,
        });
        let how = (Form::of_one_statement(&self.options), &self.begin);
        let inserted = connect::run(&self.pool, &self.options, how, "insert", insert).await?;
        self.tell(jobs, &inserted);
        Ok(inserted)
    }

    /// Lets a caller go at once if nothing is under way.
    fn single(&self) -> Option<Single<'_>> {
        let mut queue = self.queue();
        let is_idle = !queue.has_single && queue.flushers == 0;
        is_idle.then(|| {
            queue.has_single = true;
            Single(self)
        })
    }

    /// Lets jobs wait for a flusher, and starts one if it takes another.
    fn share(self: &Arc<Self>, jobs: Vec<NewJob>) -> oneshot::Receiver<Answer> {
        let (answer, answered) = oneshot::channel();
        let mut queue = self.queue();
        queue.waiting.push_back(Part { jobs, answer });
        let now = self.options.seam.elapsed();
        let flusher = queue.needs_flusher(now).then(|| {
            queue.flushers += 1;
            queue.flushed_at = now;
            Flusher {
                inserter: Arc::clone(self),
                has_ended: false,
            }
        });
        // A runtime that ends drops the task at once, and that needs the queue.
        drop(queue);
        if let Some(flusher) = flusher {
            drop(self.options.seam.spawn(Box::pin(flusher.run())));
        }
        answered
    }

    /// Stores the jobs of several callers by one statement, and answers each.
    async fn flush(&self, parts: Vec<Part>) {
        let (mut jobs, mut answers) = (Vec::new(), Vec::with_capacity(parts.len()));
        for part in parts {
            jobs.extend(part.jobs);
            answers.push(part.answer);
        }
        // In one order everywhere, so that two flushes of the same jobs never wait in a circle.
        jobs.sort_by_key(|job| job.id);
        let failure = self.store(&jobs).await.err().map(Arc::new);
        let is_shared = answers.len() > 1;
        for answer in answers {
            let outcome = match &failure {
                None => Answer::Stored,
                Some(error) if is_shared && !is_about_connection(error) => Answer::Apart,
                Some(error) => Answer::Failed(copy(error)),
            };
            // Whoever has gone away does not hear it.
            let _ = answer.send(outcome);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn needs_flusher(&self, now: Duration) -> bool {
        self.flushers < FLUSHERS_MAX || now.saturating_sub(self.flushed_at) > HELD_UP
    }

    /// Takes out what fits into one statement; passes over those who have gone away.
    fn take(&mut self) -> Vec<Part> {
        let (mut jobs, mut bytes) = (0, 0);
        let mut parts = Vec::new();
        while let Some(next) = self.waiting.front() {
            if next.answer.is_closed() {
                self.waiting.pop_front();
                continue;
            }
            jobs += next.jobs.len();
            bytes += bytes_of(&next.jobs);
            if jobs > JOBS_MAX || bytes > BYTES_MAX {
                break;
            }
            parts.extend(self.waiting.pop_front());
        }
        parts
    }
}

/// A caller that inserts in its own future.
struct Single<'a>(&'a Inserter);

impl Drop for Single<'_> {
    fn drop(&mut self) {
        self.0.queue().has_single = false;
    }
}

/// The task that stores what waits.
struct Flusher {
    inserter: Arc<Inserter>,
    has_ended: bool,
}

impl Flusher {
    async fn run(mut self) {
        while let Some(parts) = self.next() {
            self.inserter.flush(parts).await;
            // Those who were just answered come back first: otherwise one of them would have a
            // statement of its own, and the others wait for that.
            tokio::task::yield_now().await;
        }
    }

    /// What is to be stored next. It ends under the same lock under which it finds nothing, so
    /// that nobody counts on it afterwards.
    fn next(&mut self) -> Option<Vec<Part>> {
        let mut queue = self.inserter.queue();
        let parts = queue.take();
        if parts.is_empty() {
            queue.flushers -= 1;
            self.has_ended = true;
            return None;
        }
        queue.flushed_at = self.inserter.options.seam.elapsed();
        Some(parts)
    }
}

/// A flusher that is dropped amid its work: its runtime has ended, or it has panicked. Whoever
/// counted on it hears that it is gone.
impl Drop for Flusher {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let mut queue = self.inserter.queue();
        queue.flushers -= 1;
        let left = std::mem::take(&mut queue.waiting);
        drop(queue);
        drop(left);
    }
}

/// Says whether a batch has nothing to gain from company, and others would wait for it.
fn is_large(jobs: &[NewJob]) -> bool {
    jobs.len() >= JOBS_MAX || bytes_of(jobs) >= BYTES_MAX
}

fn bytes_of(jobs: &[NewJob]) -> usize {
    jobs.iter().map(|job| job.payload.len()).sum()
}

/// The same error for one more caller.
fn copy(error: &Arc<StoreError>) -> StoreError {
    StoreError::new(error.kind(), error.operation(), error.message()).caused_by(Arc::clone(error))
}
