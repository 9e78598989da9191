//! A fault that users of other queues reported is answered by a test that exists, or by a reason.

use std::collections::BTreeSet;

use crate::assert_clean;
use crate::markdown::{codes, rows};
use crate::named_tests::NamedTests;
use crate::tree::Tree;

const PAGE: &str = "docs/fault-reports.md";

/// The labels of the page, each once.
const IDS: &[&str] = &[
    "O-001", "O-002", "O-003", "O-004", "O-005", "O-006", "O-007", "O-008", // run twice
    "O-009", "O-010", "O-011", // starving heartbeats
    "O-012", "O-013", "O-014", "O-015", "O-016", "O-017", // lost
    "O-018", "O-019", "O-020", "O-021", "O-022", "O-023", // workers that are gone
    "O-024", "O-025", "O-026", "O-027", // counted wrongly
    "O-028", "O-029", "O-030", // crashing workers
    "O-031", "O-032", "O-033", // racing enqueues
    "O-034", "O-035", "O-036", "O-037", "O-038", // keys
    "O-039", "O-040", // newer changes
    "O-041", "O-042", "O-043", // limits of what runs at once
    "O-056", "O-057", // clocks
    "O-058", "O-059", "O-060", "O-061", // time limits
    "O-062", "O-063", "O-064", "O-065", // stopping
    "O-066", "O-067", "O-068", "O-069", "O-070", "O-071", // connections
    "O-072", "O-073", "O-074", // poolers and pools
    "O-075", "O-076", // deadlocks
    "O-077", "O-078", "O-079", "O-080", "O-081", // slow claims
    "O-085", "O-086", "O-087", // growth
    "O-088", "O-089", "O-090", "O-091", "O-092", "O-093", // payloads
    "O-094", "O-095", "O-096", "O-097", // deploys
    "O-098", "O-099", // error texts
    "O-100", "O-101", // panics
    "O-102", "O-103", "O-104", "O-105", // tables
    "O-106", "O-107", // schemas
    "O-115", "O-116", // locks of a file
    "O-120", "O-121", // overflows
    "O-123", // registration
    "O-129", // cancels
    "O-130", "O-131", // bulks
    "O-132", // unseen
];

/// What a row says that names no test; the reason follows.
const REASON: &str = "no test: ";

fn complaints(tree: &Tree, ids: &[&str]) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let tests = NamedTests::of(tree);
    let mut complaints = Vec::new();
    let mut seen = BTreeSet::new();
    for cells in rows(page, |first| first.starts_with("O-")) {
        let [id, report, _, _, shown] = cells.as_slice() else {
            let count = cells.len();
            complaints.push(format!("{}: a row has five cells, not {count}", cells[0]));
            continue;
        };
        if !ids.contains(id) {
            complaints.push(format!("{id}: not in the list of labels"));
        }
        if !seen.insert(*id) {
            complaints.push(format!("{id}: stands there twice"));
        }
        if !report.split(", ").all(is_report) {
            complaints.push(format!("{id}: `{report}` names no report as owner/repo#1"));
        }
        if codes(shown).next().is_none() && !shown.contains(REASON) {
            complaints.push(format!("{id}: no test and no reason"));
        }
        for test in codes(shown).filter(|test| !tests.has_at(test)) {
            complaints.push(format!("{id}: there is no test `{test}`"));
        }
    }
    let forgotten = ids.iter().filter(|id| !seen.contains(*id));
    complaints.extend(forgotten.map(|id| format!("{PAGE} has no row for {id}")));
    complaints
}

/// Says whether a text is `owner/repository#number`, or `owner/repository@commit`.
fn is_report(text: &str) -> bool {
    let is_word = |word: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !word.is_empty() && word.chars().all(fits)
    };
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    let is_commit = |text: &str| (7..=40).contains(&text.len()) && is_hex(text);
    let Some((repository, place)) = text.split_once(['#', '@']) else {
        return false;
    };
    let names_place = match text.contains('#') {
        true => is_number(place),
        false => is_commit(place),
    };
    let parts = repository.split_once('/');
    names_place && parts.is_some_and(|(owner, name)| is_word(owner) && is_word(name))
}

fn is_hex(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
}

#[test]
fn every_fault_report_names_a_test_that_exists_or_a_reason() {
    assert_clean(&complaints(Tree::of_repository(), IDS));
}

#[test]
fn a_fault_report_without_an_answer_is_seen() {
    let page = "\
| id | report | the fault | here | shown by |
| --- | --- | --- | --- | --- |
| O-001 | a/b#1, c-d/e.f#2, a/b@c0df1df | runs twice | not here | `it::leases::runs_once` |
| O-002 | a/b#1 | runs twice | not here | `leases::runs_once` |
| O-002 | a/b#1 | runs twice | not here | no test: there is no such thing |
| O-003 | a/b@main | runs twice | not here | `it::leases::runs_once` |
| O-004 | a/b#1 | runs twice | not here | (pending) |
| O-006 | a/b#1 | runs twice | not here | – |
| O-007 | a/b#1 | runs twice | – |
| O-009 | a/b#1 | runs twice | not here | no test: none is needed |
";
    let tree = Tree::sample(&[
        (PAGE, page),
        ("tests/tests/it/leases.rs", "async fn runs_once() {}"),
    ]);
    let ids = ["O-001", "O-002", "O-003", "O-004", "O-006", "O-008"];
    assert_eq!(
        complaints(&tree, &ids),
        [
            "O-002: there is no test `leases::runs_once`",
            "O-002: stands there twice",
            "O-003: `a/b@main` names no report as owner/repo#1",
            "O-004: no test and no reason",
            "O-006: no test and no reason",
            "O-007: a row has five cells, not 4",
            "O-009: not in the list of labels",
            "docs/fault-reports.md has no row for O-008",
        ]
    );
}
