//! A requirement counts as fulfilled only by a test or a page that exists.

use std::collections::BTreeSet;

use crate::assert_clean;
use crate::markdown::{codes, local_links, rows};
use crate::named_tests::NamedTests;
use crate::tree::{Tree, resolve};

const PAGE: &str = "docs/requirements.md";

/// `done` names what shows it; `open` may name nothing; the others say in words what differs.
const STATES: [&str; 4] = ["done", "partly", "differently", "open"];

/// How many requirements of each kind there are: named ones, and ones derived from them.
const KINDS: [(&str, usize, u32); 2] = [("R-", 3, 242), ("X-", 2, 32)];

fn complaints(tree: &Tree) -> Vec<String> {
    let Some(page) = tree.text(PAGE) else {
        return vec![format!("{PAGE} is missing")];
    };
    let tests = NamedTests::of(tree);
    let mut complaints = Vec::new();
    let mut seen = BTreeSet::new();
    let is_row = |first: &str| first != "id" && !first.starts_with("---");
    for cells in rows(page, is_row) {
        let [id, _, shown, state] = cells.as_slice() else {
            complaints.push(format!(
                "{}: a row has four cells, not {}",
                cells[0],
                cells.len()
            ));
            continue;
        };
        if !is_known(id) {
            complaints.push(format!("{id}: not an id; the forms are R-001 and X-01"));
        }
        if !seen.insert(*id) {
            complaints.push(format!("{id}: stands there twice"));
        }
        if !STATES.contains(state) {
            complaints.push(format!(
                "{id}: state `{state}` is none of {}",
                STATES.join(", ")
            ));
        }
        let named = codes(shown).count() + local_links(shown).count();
        if *state == "done" && named == 0 {
            complaints.push(format!("{id}: done, but no test and no page is named"));
        }
        for test in codes(shown).filter(|test| !tests.has(test)) {
            complaints.push(format!("{id}: there is no test `{test}`"));
        }
        for link in local_links(shown).filter(|link| !tree.has(&resolve(PAGE, link))) {
            complaints.push(format!("{id}: there is no page {link}"));
        }
    }
    if seen.is_empty() {
        complaints.push(format!("{PAGE} has no rows"));
    }
    complaints
}

/// A requirement that the page forgets.
fn missing(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let told: BTreeSet<&str> = rows(page, is_known)
        .into_iter()
        .map(|cells| cells[0])
        .collect();
    let ids = KINDS.iter().flat_map(|(prefix, digits, last)| {
        (1..=*last).map(move |n| format!("{prefix}{n:0digits$}"))
    });
    ids.filter(|id| !told.contains(id.as_str()))
        .map(|id| format!("{PAGE} has no row for {id}"))
        .collect()
}

fn is_known(id: &str) -> bool {
    KINDS.iter().any(|(prefix, digits, last)| {
        id.strip_prefix(prefix).is_some_and(|number| {
            number.len() == *digits && number.parse().is_ok_and(|n: u32| (1..=*last).contains(&n))
        })
    })
}

#[test]
fn every_fulfilled_requirement_names_a_test_or_a_page_that_exists() {
    assert_clean(&complaints(Tree::of_repository()));
}

#[test]
fn every_requirement_has_a_row() {
    assert_clean(&missing(Tree::of_repository()));
}

#[test]
fn a_requirement_that_the_page_forgets_is_seen() {
    let all = Tree::of_repository().text(PAGE).unwrap();
    let page = all.replace("| R-017 |", "| R-17 |");
    let found = missing(&Tree::sample(&[(PAGE, &page)]));
    assert_eq!(found, ["docs/requirements.md has no row for R-017"]);
}

#[test]
fn a_requirement_that_names_nothing_real_is_seen() {
    let page = "\
| id | requirement | shown by | state |
| --- | --- | --- | --- |
| R-001 | runs | `memory::runs`, [page](architecture.md) | done |
| R-002 | is honest | – | open |
| R-002 | again | `missing` | partly |
| R-243 | too many | – | open |
| X-1 | too short | – | open |
| X-01 | empty | – | done |
| X-02 | dead page | [x](gone.md) | done |
| X-03 | odd | – | nearly |
| X-04 | short | open |
| X-05 | refused | `tests/tests/ui/fail/no.rs` | done |
| X-06 | refused | `tests/tests/ui/fail/yes.rs` | done |
";
    let tree = Tree::sample(&[
        (PAGE, page),
        ("docs/architecture.md", ""),
        ("tests/tests/a.rs", "async fn runs() {}"),
        ("tests/tests/ui/fail/yes.rs", ""),
    ]);
    assert_eq!(
        complaints(&tree),
        [
            "R-002: stands there twice",
            "R-002: there is no test `missing`",
            "R-243: not an id; the forms are R-001 and X-01",
            "X-1: not an id; the forms are R-001 and X-01",
            "X-01: done, but no test and no page is named",
            "X-02: there is no page gone.md",
            "X-03: state `nearly` is none of done, partly, differently, open",
            "X-04: a row has four cells, not 3",
            "X-05: there is no test `tests/tests/ui/fail/no.rs`",
        ]
    );
}
