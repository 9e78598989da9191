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
//! - A statement that is stuck does not hold up those whose jobs are not in it: 100 ms after it
//!   began another flusher starts, as long as the pool has connections.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::connect::{self, Begin, Form};
use super::error::is_about_connection;
use super::insert::{Insert, InsertPlain, JOBS_MAX, all_new, has_due};
use super::lanes::Lanes;
use super::options::PostgresOptions;
use super::pools::Pool;
use super::statements::Statements;
use super::wake::Wakes;
use crate::error::StoreError;
use crate::job::NewJob;
use crate::rules::payload::PAYLOAD_BYTES_MAX;
use crate::store::Inserted;

/// Flushers at once, unless they are stuck: while one waits for the disk, the other fills up.
/// With more of them fewer callers share a commit.
const FLUSHERS_MAX: usize = 2;

/// Bytes of payload in a shared statement at most, as many as the largest payload has: bounds how
/// long its first caller waits for the others, as the number of jobs does.
const BYTES_MAX: usize = PAYLOAD_BYTES_MAX;

/// How long after a flush began it counts as stuck: far above what a commit takes.
const STUCK_AFTER: Duration = Duration::from_millis(100);

/// Inserts jobs that have no keys and no caches.
pub(super) struct Inserter {
    pub(super) options: PostgresOptions,
    pub(super) statements: Arc<Statements>,
    pub(super) begin: Begin,
    pub(super) pool: Pool,
    pub(super) lanes: Arc<Lanes>,
    pub(super) wakes: Arc<Wakes>,
    pub(super) line: Mutex<Line>,
}

/// Who waits, and what is under way.
#[derive(Default)]
pub(super) struct Line {
    waiting: VecDeque<Caller>,
    /// Whether a caller inserts in its own future.
    has_single: bool,
    /// When the flush of each flusher began, by its number, on the seam's monotonic clock.
    flushers: BTreeMap<u64, Duration>,
    /// The number of the next flusher.
    next_number: u64,
}

/// The jobs of one caller, who waits for the answer.
struct Caller {
    jobs: Vec<NewJob>,
    answer: oneshot::Sender<Answer>,
}

/// What a flush came to for one caller.
enum Answer {
    Stored,
    /// Nothing is stored, and a caller by itself may fare better.
    ByItself,
    Failed(StoreError),
}

impl Inserter {
    /// Inserts a batch: all of it is stored or nothing.
    pub(super) async fn insert(
        self: &Arc<Self>,
        jobs: &[NewJob],
    ) -> Result<Vec<Inserted>, StoreError> {
        if is_large(jobs) {
            return self.insert_alone(jobs).await;
        }
        if let Some(_under_way) = self.single() {
            return self.insert_alone(jobs).await;
        }
        let answer = self.answered(self.hand_over(jobs.to_vec()));
        // A flush gives up by itself; this is for a flusher whose runtime nobody drives any more.
        let bound = connect::bound(&self.options);
        match connect::within(&*self.options.seam, bound, "insert", answer).await? {
            Ok(Answer::Stored) => Ok(all_new(jobs)),
            Ok(Answer::Failed(error)) => Err(error),
            // An error here means that the flusher is gone.
            Ok(Answer::ByItself) | Err(_) => self.insert_alone(jobs).await,
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
    async fn insert_alone(&self, jobs: &[NewJob]) -> Result<Vec<Inserted>, StoreError> {
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
        let mut line = self.line();
        let is_idle = !line.has_single && line.flushers.is_empty();
        is_idle.then(|| {
            line.has_single = true;
            Single(self)
        })
    }

    /// Lets jobs wait for a flusher, and starts one if it takes another.
    fn hand_over(self: &Arc<Self>, jobs: Vec<NewJob>) -> oneshot::Receiver<Answer> {
        let (answer, answered) = oneshot::channel();
        self.line().waiting.push_back(Caller { jobs, answer });
        self.relieve();
        answered
    }

    /// Waits for the answer. Looks again while it does: those who flush may be stuck, and nobody
    /// else may come who would see it.
    async fn answered(
        self: &Arc<Self>,
        mut answered: oneshot::Receiver<Answer>,
    ) -> Result<Answer, oneshot::error::RecvError> {
        let seam = &*self.options.seam;
        loop {
            match connect::within(seam, STUCK_AFTER, "insert", &mut answered).await {
                Ok(answer) => return answer,
                Err(_) => self.relieve(),
            }
        }
    }

    /// Starts a flusher if somebody waits and too few are at work.
    fn relieve(self: &Arc<Self>) {
        let flusher = {
            let mut line = self.line();
            let number = line.flusher_for(self.options.seam.elapsed());
            number.map(|number| Flusher {
                inserter: Arc::clone(self),
                number,
                has_ended: false,
            })
        };
        // Not under the lock: a runtime that ends drops the task at once, and that needs the line.
        if let Some(flusher) = flusher {
            drop(self.options.seam.spawn(Box::pin(flusher.run())));
        }
    }

    /// Stores the jobs of several callers by one statement, and answers each.
    async fn flush(&self, callers: Vec<Caller>) {
        let (mut jobs, mut answers) = (Vec::new(), Vec::with_capacity(callers.len()));
        for caller in callers {
            jobs.extend(caller.jobs);
            answers.push(caller.answer);
        }
        // In one order everywhere, so that two flushes of the same jobs never wait in a circle.
        jobs.sort_by_key(|job| job.id);
        let failure = self.insert_alone(&jobs).await.err();
        let is_shared = answers.len() > 1;
        for answer in answers {
            let outcome = match &failure {
                None => Answer::Stored,
                Some(error) if is_shared && !is_about_connection(error) => Answer::ByItself,
                Some(error) => Answer::Failed(error.again()),
            };
            // Whoever has gone away does not hear it.
            let _ = answer.send(outcome);
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Takes up one more flusher and returns its number, if somebody waits and fewer are at work
    /// than there may be. Those that are stuck are not at work.
    fn flusher_for(&mut self, now: Duration) -> Option<u64> {
        let is_at_work = |begun: &Duration| now.saturating_sub(*begun) <= STUCK_AFTER;
        let at_work = self.flushers.values().filter(|begun| is_at_work(begun));
        if self.waiting.is_empty() || at_work.count() >= FLUSHERS_MAX {
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        self.flushers.insert(number, now);
        Some(number)
    }

    /// Takes out what fits into one statement; passes over those who have gone away.
    fn take(&mut self) -> Vec<Caller> {
        let (mut jobs, mut bytes) = (0, 0);
        let mut callers = Vec::new();
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
            callers.extend(self.waiting.pop_front());
        }
        callers
    }
}

/// A caller that inserts in its own future.
struct Single<'a>(&'a Inserter);

impl Drop for Single<'_> {
    fn drop(&mut self) {
        self.0.line().has_single = false;
    }
}

/// The task that stores what waits.
struct Flusher {
    inserter: Arc<Inserter>,
    number: u64,
    has_ended: bool,
}

impl Flusher {
    async fn run(mut self) {
        while let Some(callers) = self.next() {
            self.inserter.flush(callers).await;
            // Those who were just answered come back first: otherwise one of them would have a
            // statement of its own, and the others wait for that.
            tokio::task::yield_now().await;
        }
    }

    /// What is to be stored next. It ends under the same lock under which it finds nothing, so
    /// that nobody counts on it afterwards.
    fn next(&mut self) -> Option<Vec<Caller>> {
        let mut line = self.inserter.line();
        let callers = line.take();
        if callers.is_empty() {
            line.flushers.remove(&self.number);
            self.has_ended = true;
            return None;
        }
        let now = self.inserter.options.seam.elapsed();
        line.flushers.insert(self.number, now);
        Some(callers)
    }
}

/// A flusher that is dropped amid its work: its runtime has ended, or it has panicked. Whoever
/// counted on it hears that it is gone.
impl Drop for Flusher {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let mut line = self.inserter.line();
        line.flushers.remove(&self.number);
        let left = std::mem::take(&mut line.waiting);
        drop(line);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::postgres::tests::world::job;

    fn caller(new: Vec<NewJob>) -> (Caller, oneshot::Receiver<Answer>) {
        let (answer, answered) = oneshot::channel();
        (Caller { jobs: new, answer }, answered)
    }

    #[test]
    fn flushers_are_few_and_those_that_are_stuck_do_not_count() {
        // How long ago the flushes began, in ms, and whether one more is taken up.
        #[track_caller]
        fn check(ages: &[u64], expected: bool) {
            let now = Duration::from_secs(9);
            let mut line = Line::default();
            let (caller, _answered) = caller(vec![job()]);
            line.waiting.push_back(caller);
            for age in ages {
                let begun = now - Duration::from_millis(*age);
                line.flushers.insert(line.next_number, begun);
                line.next_number += 1;
            }
            assert_eq!(line.flusher_for(now).is_some(), expected, "{ages:?}");
            let are_at_work = ages.len() + usize::from(expected);
            assert_eq!(line.flushers.len(), are_at_work);
            line.waiting.clear();
            assert_eq!(line.flusher_for(now), None, "nobody waits");
        }
        check(&[], true);
        check(&[0], true);
        check(&[0, 0], false);
        check(&[100, 0], false);
        check(&[101, 0], true);
        check(&[101, 0, 0], false);
        check(&[101, 5_000, 300], true);
    }

    #[test]
    fn a_flush_takes_whole_callers_and_passes_over_those_who_went_away() {
        #[track_caller]
        fn check(callers: &[(usize, usize)], taken: usize) {
            let mut line = Line::default();
            let mut kept = Vec::new();
            for (jobs, bytes) in callers {
                let new = NewJob {
                    payload: "1".repeat(*bytes),
                    ..job()
                };
                let (answer, answered) = oneshot::channel();
                kept.push(answered);
                let jobs = vec![new; *jobs];
                line.waiting.push_back(Caller { jobs, answer });
            }
            assert_eq!(line.take().len(), taken);
            assert_eq!(line.waiting.len(), callers.len() - taken);
        }
        check(&[], 0);
        check(&[(1, 2), (1, 2)], 2);
        check(&[(600, 2), (400, 2), (1, 2)], 2);
        check(&[(600, 2), (401, 2)], 1);
        check(&[(1, BYTES_MAX / 2), (1, BYTES_MAX / 2), (1, 1)], 2);
        check(&[(1, BYTES_MAX - 1), (1, 2)], 1);

        let mut line = Line::default();
        let (answer, gone) = oneshot::channel();
        drop(gone);
        let jobs = vec![job()];
        line.waiting.push_back(Caller { jobs, answer });
        assert!(line.take().is_empty());
        assert!(line.waiting.is_empty());
    }
}
