//! What a job shows together with its history.

use super::Findings;
use crate::job::{About, Invariant, JobState, LeaseToken, OutcomeKind};

/// A line of what a store tells of its histories.
#[derive(Debug)]
pub enum Line {
    /// A job that can be read.
    OneJob(Told),
    /// A job or an attempt that cannot.
    Unreadable,
    /// An attempt.
    Attempt(Started),
}

/// Puts the lines of each job together. A store tells the job first, then its attempts by their
/// tokens; jobs may come in any order.
#[derive(Debug)]
pub struct Stories<K> {
    of: Option<K>,
    job: Option<Told>,
    is_unreadable: bool,
    attempts: Vec<Started>,
}

impl<K> Default for Stories<K> {
    fn default() -> Self {
        Self {
            of: None,
            job: None,
            is_unreadable: false,
            attempts: Vec::new(),
        }
    }
}

impl<K: PartialEq> Stories<K> {
    /// Adds a line about the job that `of` stands for; looks at the one before when it is another.
    pub fn line(&mut self, of: K, line: Line, findings: &mut Findings) {
        if self.of.as_ref() != Some(&of) {
            self.end(findings);
            self.of = Some(of);
        }
        match line {
            // Of a job that is live and final, the live one counts.
            Line::OneJob(told) => drop(self.job.get_or_insert(told)),
            Line::Unreadable => self.is_unreadable = true,
            Line::Attempt(started) => self.attempts.push(started),
        }
    }

    /// Says whether the job of the last line, or an attempt of its, could not be read.
    pub fn is_unreadable(&self, of: &K) -> bool {
        self.is_unreadable && self.of.as_ref() == Some(of)
    }

    /// Looks at the job whose lines came last.
    pub fn end(&mut self, findings: &mut Findings) {
        let job = self.job.take();
        let attempts = std::mem::take(&mut self.attempts);
        let is_unreadable = std::mem::take(&mut self.is_unreadable);
        match job {
            // What is missing may be what could not be read.
            _ if is_unreadable => {}
            Some(job) => findings.story(&job, &attempts),
            None => findings.lost(&attempts),
        }
    }
}

/// What of a job its history is compared with.
#[derive(Debug)]
pub struct Told {
    /// What findings about it name.
    pub about: About,
    /// Where it stands.
    pub state: JobState,
    /// Its newest lease token.
    pub token: Option<LeaseToken>,
    /// Runs that it counts.
    pub attempts: u64,
    /// Crashes that it counts.
    pub crashes: u64,
    /// Snoozes that it counts.
    pub snoozes: u64,
}

/// One attempt of a history.
#[derive(Debug)]
pub struct Started {
    /// The token of the claim that started it.
    pub token: LeaseToken,
    /// Its number, from 1.
    pub number: u64,
    /// Whether it has no end yet.
    pub is_open: bool,
    /// `None` while it runs, and for a word that this library does not know.
    pub outcome: Option<OutcomeKind>,
}

impl Findings {
    fn story(&mut self, job: &Told, attempts: &[Started]) {
        let mut broken = counters(job, attempts);
        broken.extend(order(attempts).map(|seen| (Invariant::AttemptOrder, seen)));
        broken.extend(newest(job, attempts).map(|seen| (Invariant::NewestAttempt, seen)));
        broken.extend(higher(job, attempts).map(|seen| (Invariant::NewestToken, seen)));
        broken.extend(open(job, attempts).map(|seen| (Invariant::OpenAttempt, seen)));
        for (invariant, seen) in broken {
            self.add(invariant, job.about.clone(), seen);
        }
    }

    /// Takes note of attempts whose job is not stored.
    fn lost(&mut self, attempts: &[Started]) {
        for attempt in attempts {
            let about = About::Token(attempt.token);
            let seen = "its attempt is stored, and its job is not".to_owned();
            self.add(Invariant::AttemptJob, about, seen);
        }
    }
}

/// A replay sets counters to zero and keeps the history, so they may be lower and never higher.
fn counters(job: &Told, attempts: &[Started]) -> Vec<(Invariant, String)> {
    let ended_as = |kind| {
        let might = |attempt: &&Started| attempt.outcome.is_none_or(|outcome| outcome == kind);
        attempts.iter().filter(might).count() as u64
    };
    let counted = [
        (
            Invariant::Attempts,
            job.attempts,
            attempts.len() as u64,
            "attempts",
        ),
        (
            Invariant::Crashes,
            job.crashes,
            ended_as(OutcomeKind::Lost),
            "crashes",
        ),
        (
            Invariant::Snoozes,
            job.snoozes,
            ended_as(OutcomeKind::Snooze),
            "snoozes",
        ),
    ];
    counted
        .into_iter()
        .filter(|(_, counted, shown, _)| counted > shown)
        .map(|(invariant, counted, shown, what)| {
            let seen = format!("it counts {counted} {what}, and its history shows {shown}");
            (invariant, seen)
        })
        .collect()
}

fn order(attempts: &[Started]) -> Option<String> {
    let follows = |older: &Started, newer: &Started| {
        let (older, newer) = (older.number, newer.number);
        newer == older || newer == older.saturating_add(1) || newer == 1
    };
    let pair = attempts
        .windows(2)
        .find(|pair| !follows(&pair[0], &pair[1]))?;
    let [older, newer] = pair else { return None };
    Some(format!(
        "attempt {} of token {} comes after attempt {} of token {}",
        newer.number, newer.token, older.number, older.token
    ))
}

fn newest(job: &Told, attempts: &[Started]) -> Option<String> {
    let Some(token) = job.token else {
        let is_done = job.state == JobState::Done;
        return is_done.then(|| "it is done, and was never started".to_owned());
    };
    let is_known = attempts.iter().any(|attempt| attempt.token == token);
    (!is_known).then(|| format!("its token is {token}, and its history has no such attempt"))
}

fn higher(job: &Told, attempts: &[Started]) -> Option<String> {
    let last = attempts.last()?.token;
    match job.token {
        Some(token) if last <= token => None,
        Some(token) => Some(format!("its token is {token}, and its history has {last}")),
        None => Some(format!("it has no token, and its history has {last}")),
    }
}

fn open(job: &Told, attempts: &[Started]) -> Option<String> {
    let state = job.state;
    let runs =
        |attempt: &Started| state == JobState::Processing && job.token == Some(attempt.token);
    let odd = attempts
        .iter()
        .find(|attempt| attempt.is_open != runs(attempt))?;
    let token = odd.token;
    Some(match odd.is_open {
        true => format!("it is {state}, and its attempt of token {token} is open"),
        false => format!("it runs under the token {token}, whose attempt has ended"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(token: i64, number: u64) -> Started {
        Started {
            token: LeaseToken::new(token),
            number,
            is_open: false,
            outcome: Some(OutcomeKind::Retry),
        }
    }

    #[test]
    fn a_number_rises_by_one_stays_or_starts_again() {
        let check = |numbers: &[u64], expected: Option<&str>| {
            let attempts = (1..).zip(numbers).map(|(token, n)| started(token, *n));
            let attempts: Vec<_> = attempts.collect();
            assert_eq!(order(&attempts).as_deref(), expected, "{numbers:?}");
        };
        check(&[], None);
        check(&[1, 2, 3], None);
        check(&[1, 1, 2, 2], None);
        check(&[1, 2, 1, 1, 2], None);
        check(&[4, 5], None);
        check(
            &[1, 3],
            Some("attempt 3 of token 2 comes after attempt 1 of token 1"),
        );
        check(
            &[1, 2, 3, 2],
            Some("attempt 2 of token 4 comes after attempt 3 of token 3"),
        );
    }

    #[test]
    fn a_word_that_is_not_known_may_mean_whatever_was_counted() {
        let told = Told {
            about: About::Row("x".to_owned()),
            state: JobState::Queued,
            token: None,
            attempts: 1,
            crashes: 1,
            snoozes: 1,
        };
        let newer = Started {
            outcome: None,
            ..started(1, 1)
        };
        assert_eq!(counters(&told, &[newer]), []);
        let broken = counters(&told, &[started(1, 1)]);
        let broken: Vec<_> = broken.iter().map(|(invariant, _)| *invariant).collect();
        assert_eq!(broken, [Invariant::Crashes, Invariant::Snoozes]);
    }

    #[test]
    fn attempts_of_a_job_that_cannot_be_read_are_nobodys_fault() {
        let mut findings = Findings::new(9);
        let mut stories = Stories::default();
        stories.line(1, Line::Unreadable, &mut findings);
        stories.line(1, Line::Attempt(started(1, 1)), &mut findings);
        stories.line(2, Line::Attempt(started(2, 1)), &mut findings);
        stories.end(&mut findings);

        let verified = findings.verified();

        assert_eq!(
            verified.to_string(),
            "jobs checked: 0, violations: 1, warnings: 0\nviolation: attempt_job: lease token 2: \
             its attempt is stored, and its job is not"
        );
    }
}
