//! The page on a job's life says what the rule does: same outcomes, same states, same counts.
//!
//! The rows that start at `processing` and end an attempt are compared with what
//! `rules::transition::settle` answers for every outcome in every situation that matters.

use std::collections::BTreeSet;
use std::time::Duration;

use queue_runtime::job::{JobState, LeaseToken, Outcome, Settlement};
use queue_runtime::rules::transition::{RetryPolicy, Standing, settle};
use queue_runtime::time::Timestamp;

use crate::assert_clean;
use crate::markdown::rows;
use crate::tree::Tree;

const PAGE: &str = "docs/lifecycle.md";

/// What else happens to a running job; these do not end its attempt.
const BETWEEN: [&str; 2] = ["heartbeat", "cancel"];

/// A row as `event → state: counts`.
type Row = String;

fn complaints(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let told = rows_of_page(page);
    let done = rows_of_rule();
    let missing = done
        .difference(&told)
        .map(|row| format!("{PAGE}: has no row `{row}`"));
    let wrong = told
        .difference(&done)
        .map(|row| format!("{PAGE}: the rule does not do `{row}`"));
    missing.chain(wrong).collect()
}

fn rows_of_page(page: &str) -> BTreeSet<Row> {
    rows(page, |from| from == "`processing`")
        .into_iter()
        .filter(|cells| cells.len() == 6 && !BETWEEN.contains(&cells[1]))
        .map(|cells| {
            format!(
                "{} → {}: {}",
                cells[1],
                cells[2].trim_matches('`'),
                cells[5]
            )
        })
        .collect()
}

fn rows_of_rule() -> BTreeSet<Row> {
    let mut rows = BTreeSet::new();
    for outcome in outcomes() {
        for standing in standings() {
            let settlement = settle(&standing, &outcome, &RetryPolicy::default(), NOW, 0);
            let state = settlement.change.state();
            let counts = counts(&standing, &settlement, state);
            rows.insert(format!("{} → {state}: {counts}", event(&outcome)));
        }
    }
    rows
}

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

/// A job with all budgets left, and one for each budget that can be used up.
fn standings() -> [Standing; 5] {
    let fresh = Standing {
        id: "0193b5a0-7c3e-7000-8000-000000000000"
            .parse()
            .expect("a UUID"),
        token: LeaseToken::new(7),
        attempts: 2,
        max_attempts: 9,
        crashes: 1,
        snoozes: 5,
        deadline: None,
    };
    [
        fresh,
        Standing {
            attempts: 9,
            ..fresh
        },
        Standing {
            crashes: 2,
            ..fresh
        },
        Standing {
            snoozes: 1_000,
            ..fresh
        },
        Standing {
            deadline: Some(NOW),
            ..fresh
        },
    ]
}

fn outcomes() -> [Outcome; 13] {
    let error = || "no route".to_owned();
    let delay = Duration::from_secs(5);
    [
        Outcome::Success,
        Outcome::Superseded { newest: 4 },
        Outcome::Retry { error: error() },
        Outcome::RetryAfter {
            delay,
            error: error(),
        },
        Outcome::TimedOut { limit: delay },
        Outcome::Panicked { error: error() },
        Outcome::Snooze { delay },
        Outcome::Permanent { error: error() },
        Outcome::Undecodable { error: error() },
        Outcome::DeadlinePassed,
        Outcome::Cancelled { reason: None },
        Outcome::HandedBack,
        Outcome::Lost,
    ]
}

/// The page's word for an outcome. A new outcome does not compile until it has one; give it a
/// place in `outcomes` too.
fn event(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Success => "success",
        Outcome::Superseded { .. } => "superseded",
        Outcome::Retry { .. } => "retry",
        Outcome::RetryAfter { .. } => "retry after",
        Outcome::TimedOut { .. } => "timed out",
        Outcome::Panicked { .. } => "panicked",
        Outcome::Snooze { .. } => "snooze",
        Outcome::Permanent { .. } => "permanent",
        Outcome::Undecodable { .. } => "undecodable",
        Outcome::DeadlinePassed => "deadline passed",
        Outcome::Cancelled { .. } => "cancelled",
        Outcome::HandedBack => "handed back",
        Outcome::Lost => "lost",
    }
}

/// What the change does to the budgets. Of a final job only what was given back or added is told.
fn counts(before: &Standing, after: &Settlement, state: JobState) -> String {
    let told = [
        (after.attempts < before.attempts, "attempt given back"),
        (after.snoozes > before.snoozes, "snooze + 1"),
        (after.crashes > before.crashes, "crashes + 1"),
        (after.crashes == 0 && !state.is_final(), "crashes = 0"),
    ];
    let told: Vec<&str> = told
        .into_iter()
        .filter(|(so, _)| *so)
        .map(|(_, words)| words)
        .collect();
    if told.is_empty() {
        "–".to_owned()
    } else {
        told.join(", ")
    }
}

#[test]
fn the_page_on_a_jobs_life_equals_the_rule() {
    assert_clean(&complaints(Tree::of_repository()));
}

#[test]
fn a_row_that_is_wrong_or_missing_is_seen() {
    let page = Tree::of_repository().text(PAGE).unwrap();
    let wrong = "| `processing` | lost | `done` | rescue | token | crashes + 1 |";
    let lines: Vec<&str> = page
        .lines()
        .map(|line| {
            if line.starts_with("| `processing` | permanent |") {
                wrong
            } else {
                line
            }
        })
        .collect();
    let found = complaints(&Tree::sample(&[(PAGE, &lines.join("\n"))]));
    assert_eq!(
        found,
        [
            "docs/lifecycle.md: has no row `permanent → dead_letter: –`",
            "docs/lifecycle.md: the rule does not do `lost → done: crashes + 1`",
        ]
    );
}
