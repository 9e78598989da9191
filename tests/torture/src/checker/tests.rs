//! A checker that cannot fail is a defect: a violation of each invariant is planted in a history
//! that is sound without it.

use std::time::Duration;

use queue_runtime::job::{Attempt, LeaseToken, OutcomeKind, WorkerId};
use queue_runtime::{JobId, JobState, Timestamp};

use super::{Invariant, check};
use crate::history::{History, Record, Sample, Seen};
use crate::jobs::Kind;
use crate::ledger::{Entry, Run};

fn id(last: u32) -> JobId {
    format!("01890000-0000-7000-8000-{last:012}")
        .parse()
        .expect("an id")
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// An attempt of a second, of worker `w1` if its token is odd and of `w2` otherwise.
fn attempt(number: u32, token: i64, outcome: OutcomeKind) -> Attempt {
    let worker = if token % 2 == 1 { "w1@1" } else { "w2@1" };
    Attempt {
        token: LeaseToken::new(token),
        number,
        worker: WorkerId::new(worker).expect("a name"),
        started_at: at(token * 1_000),
        finished_at: Some(at(token * 1_000 + 999)),
        outcome: Some(outcome),
        error: None,
    }
}

const LOST: u32 = 1;
const PLAIN: u32 = 2;
const BOOKED: u32 = 3;
const FAILING: u32 = 4;

/// Four jobs: one that ran twice since `w1` was killed, one that ran once, a transactional one, and
/// one that fails each time. Jobs 1 and 2 have one dedupe key, one after the other.
fn sound() -> History {
    use OutcomeKind::{Lost, Retry, Success};
    let mut history = History {
        counted: 4,
        crashes_max: 3,
        drained: Some((Duration::from_secs(1), Duration::from_secs(3))),
        ..History::default()
    };
    history.interrupted.insert("w1".to_owned());
    history.samples.push(Sample {
        told: 2,
        counted: 3,
        asked: 4,
    });
    let kinds = [Kind::Noop, Kind::Asked, Kind::Booked, Kind::Failing];
    for (job, kind) in (1..).zip(kinds) {
        history.add_lines([
            ("p0".to_owned(), Entry::Intent(job.into(), kind, id(job))),
            ("p0".to_owned(), Entry::Accepted(job.into(), id(job), false)),
        ]);
    }
    history.add_lines([("p0".to_owned(), Entry::Accepted(2, id(PLAIN), true))]);
    for (job, attempt, token) in [(LOST, 1, 1), (LOST, 2, 2), (PLAIN, 1, 4)] {
        let boot = if token == 1 { "w1" } else { "w2" };
        let run = Run {
            job: id(job),
            attempt,
            token,
        };
        history.add_lines([Entry::Start(run), Entry::Effect(run)].map(|e| (boot.to_owned(), e)));
    }
    let stored: [(u32, Vec<Attempt>); 4] = [
        (LOST, vec![attempt(1, 1, Lost), attempt(2, 2, Success)]),
        (PLAIN, vec![attempt(1, 4, Success)]),
        (BOOKED, vec![attempt(1, 6, Success)]),
        (FAILING, vec![attempt(1, 8, Retry), attempt(2, 10, Retry)]),
    ];
    for (job, attempts) in stored {
        let last = attempts.last().expect("there is one").clone();
        let is_dead = job == FAILING;
        let seen = history.jobs.entry(id(job)).or_default();
        seen.record = Some(Record {
            state: if is_dead {
                JobState::DeadLetter
            } else {
                JobState::Done
            },
            attempts: attempts.len() as u32,
            attempts_max: if is_dead { 2 } else { 5 },
            crashes: 0,
            token: Some(last.token.get()),
            dedupe_key: [LOST, PLAIN].contains(&job).then(|| "k".to_owned()),
            started_at: Some(attempts[0].started_at),
            finished_at: last.finished_at,
        });
        seen.attempts = Some(attempts);
        seen.was_final = seen.record.clone();
        let ended = Entry::Final(id(job), last.token.get(), JobState::Done);
        seen.lines.push(("w2".to_owned(), ended));
    }
    history.jobs.entry(id(BOOKED)).or_default().booked = vec![6];
    history
}

fn seen(history: &mut History, job: u32) -> &mut Seen {
    history.jobs.entry(id(job)).or_default()
}

fn record(history: &mut History, job: u32) -> &mut Record {
    seen(history, job).record.as_mut().expect("it is stored")
}

fn attempts(history: &mut History, job: u32) -> &mut Vec<Attempt> {
    seen(history, job)
        .attempts
        .as_mut()
        .expect("they are known")
}

/// Plants something in a sound history, and says which invariants break.
#[track_caller]
fn planted(expected: &[Invariant], plant: impl FnOnce(&mut History)) {
    let mut history = sound();
    plant(&mut history);
    let violations = check(&history);
    let mut broken: Vec<_> = violations.iter().map(|found| found.invariant).collect();
    broken.sort();
    broken.dedup();
    assert_eq!(broken, expected, "{violations:?}");
}

#[test]
fn a_sound_history_breaks_nothing() {
    assert_eq!(check(&sound()), []);
}

#[test]
fn i1_a_sample_that_misses_an_accepted_job_or_counts_one_of_nobody_is_found() {
    planted(&[Invariant::I1], |history| history.samples[0].counted = 1);
    planted(&[Invariant::I1], |history| history.samples[0].counted = 5);
    planted(&[Invariant::I1], |history| history.counted = 5);
    planted(&[Invariant::I1, Invariant::I2], |history| {
        seen(history, PLAIN).record = None;
        history.counted = 3;
    });
}

#[test]
fn i2_a_missing_job_and_a_missing_or_a_second_effect_are_found() {
    planted(&[Invariant::I2], |history| {
        seen(history, BOOKED).record = None;
        seen(history, BOOKED).booked.clear();
        history.counted = 3;
    });
    planted(&[Invariant::I2], |history| {
        let lines = &mut seen(history, PLAIN).lines;
        lines.retain(|(_, entry)| !matches!(entry, Entry::Effect(_)));
    });
    planted(&[Invariant::I2], |history| {
        seen(history, BOOKED).booked.push(6)
    });
    planted(&[Invariant::I2], |history| {
        seen(history, BOOKED).booked.clear()
    });
    planted(&[Invariant::I2], |history| {
        history.requests.entry(4).or_default().is_refused = true;
    });
    planted(&[Invariant::I2, Invariant::I4], |history| {
        record(history, BOOKED).state = JobState::DeadLetter;
    });
}

#[test]
fn i3_a_repeat_without_a_lost_lease_or_without_a_fault_is_found() {
    planted(&[Invariant::I3, Invariant::I7], |history| {
        attempts(history, LOST)[0].outcome = Some(OutcomeKind::Snooze);
    });
    planted(&[Invariant::I3], |history| {
        history.interrupted.clear();
    });
    planted(&[Invariant::I3], |history| {
        let effect = Run {
            job: id(PLAIN),
            attempt: 1,
            token: 4,
        };
        history.add_lines([("w2".to_owned(), Entry::Effect(effect))]);
    });
}

#[test]
fn i4_a_second_end_a_way_back_and_a_wrong_end_are_found() {
    planted(&[Invariant::I4], |history| {
        record(history, PLAIN).finished_at = Some(at(99_000));
    });
    planted(&[Invariant::I4], |history| {
        let again = Entry::Final(id(PLAIN), 5, JobState::Done);
        history.add_lines([("w1".to_owned(), again)]);
    });
    planted(&[Invariant::I4], |history| {
        let early = record(history, FAILING);
        early.state = JobState::Cancelled;
        seen(history, FAILING).was_final = seen(history, FAILING).record.clone();
    });
    planted(&[Invariant::I3, Invariant::I4], |history| {
        attempts(history, LOST)[0].outcome = Some(OutcomeKind::Success);
    });
    planted(&[Invariant::I4], |history| {
        attempts(history, PLAIN)[0].outcome = None;
        attempts(history, PLAIN)[0].finished_at = None;
    });
}

#[test]
fn i5_a_write_under_another_token_is_found() {
    planted(&[Invariant::I5], |history| {
        record(history, BOOKED).token = Some(5);
        seen(history, BOOKED).was_final = None;
    });
    planted(&[Invariant::I5], |history| {
        let stranger = Run {
            job: id(PLAIN),
            attempt: 1,
            token: 3,
        };
        history.add_lines([("w2".to_owned(), Entry::Start(stranger))]);
    });
    planted(&[Invariant::I5], |history| {
        history.add_lines([("w2".to_owned(), Entry::Lost(id(PLAIN), 4))]);
    });
    planted(&[Invariant::I5], |history| {
        attempts(history, FAILING).swap(0, 1);
        record(history, FAILING).token = Some(8);
        seen(history, FAILING).was_final = None;
        for attempt in attempts(history, FAILING) {
            attempt.started_at = at(8_000);
            attempt.finished_at = Some(at(8_000));
        }
    });
}

#[test]
fn i6_two_leases_at_once_are_found() {
    planted(&[Invariant::I6], |history| {
        attempts(history, LOST)[1].started_at = at(1_500);
    });
}

#[test]
fn i7_a_budget_that_is_exceeded_or_an_attempt_that_is_not_counted_is_found() {
    planted(&[Invariant::I7], |history| {
        record(history, FAILING).attempts_max = 1;
        seen(history, FAILING).was_final = None;
    });
    planted(&[Invariant::I7], |history| {
        record(history, LOST).attempts = 1;
        seen(history, LOST).was_final = None;
    });
    planted(&[Invariant::I7], |history| {
        record(history, LOST).crashes = 4;
        seen(history, LOST).was_final = None;
    });
    planted(&[Invariant::I7], |history| {
        attempts(history, FAILING)[1].outcome = Some(OutcomeKind::Lost);
        history.interrupted.insert("w2".to_owned());
    });
}

#[test]
fn i8_two_jobs_of_a_key_at_once_and_two_jobs_of_a_request_are_found() {
    planted(&[Invariant::I8], |history| {
        record(history, PLAIN).started_at = Some(at(2_500));
        seen(history, PLAIN).was_final = None;
    });
    planted(&[Invariant::I8], |history| {
        history.add_lines([("p0".to_owned(), Entry::Accepted(1, id(PLAIN), false))]);
    });
    planted(&[Invariant::I8], |history| {
        let request = history.requests.entry(2).or_default();
        request.accepted = vec![(id(PLAIN), false); 2];
    });
}

#[test]
fn i14_a_world_that_comes_to_rest_too_late_is_found() {
    planted(&[Invariant::I14], |history| {
        history.drained = Some((Duration::from_secs(4), Duration::from_secs(3)));
    });
}
