//! The page on errors says what the classifier does, fault by fault and status by status.

use queue_runtime::rules::classify::{Class, Fault, class};

use crate::assert_clean;
use crate::markdown::rows;
use crate::tree::Tree;

const PAGE: &str = "docs/errors.md";

/// The faults without a number.
const FAULTS: [Fault; 7] = [
    Fault::MarkedPermanent,
    Fault::Io,
    Fault::Timeout,
    Fault::ConnectionLost,
    Fault::Validation,
    Fault::RowNotFound,
    Fault::ConstraintViolation,
];

/// Every status that three digits can name.
const STATUSES: std::ops::Range<u16> = 0..1_000;

fn complaints(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let told = rows(page, |fault| fault.starts_with('`') && is_fault(fault));
    let told: Vec<(&str, &str)> = told
        .iter()
        .filter(|cells| cells.len() == 3)
        .map(|cells| (cells[0].trim_matches('`'), cells[2]))
        .collect();
    let mut complaints = Vec::new();
    for fault in FAULTS {
        let name = format!("{fault:?}");
        let row = told.iter().find(|(told, _)| *told == name);
        complaints.extend(complaint(&name, row, fault));
    }
    for status in STATUSES {
        // The first row that covers a status is the one that counts, as in a `match`.
        let row = told.iter().find(|(told, _)| covers(told, status));
        let name = format!("HttpStatus({status})");
        complaints.extend(complaint(&name, row, Fault::HttpStatus(status)));
    }
    let known = |name: &str| {
        name.starts_with("HttpStatus(") || FAULTS.iter().any(|fault| format!("{fault:?}") == name)
    };
    let unknown = told.iter().filter(|(name, _)| !known(name));
    complaints.extend(unknown.map(|(name, _)| format!("{PAGE}: there is no fault `{name}`")));
    complaints
}

/// Whether a cell names a fault: one word in capitals, perhaps with a number.
fn is_fault(cell: &str) -> bool {
    let name = cell.trim_matches('`');
    let word = name.split('(').next().unwrap_or(name);
    word.starts_with(|c: char| c.is_ascii_uppercase()) && word.chars().all(char::is_alphabetic)
}

fn complaint(name: &str, row: Option<&(&str, &str)>, fault: Fault) -> Option<String> {
    let expected = match class(fault) {
        Class::Retry => "tried again",
        Class::Permanent => "dead letter",
        Class::Unknown => "not known, so tried again",
    };
    match row {
        None => Some(format!("{PAGE}: has no row for `{name}`")),
        Some((_, told)) if *told == expected => None,
        Some((_, told)) => Some(format!("{PAGE}: `{name}` is {expected}, not {told}")),
    }
}

/// Whether `HttpStatus(404)` or `HttpStatus(400..=499)` covers a status.
fn covers(told: &str, status: u16) -> bool {
    let numbers = told
        .strip_prefix("HttpStatus(")
        .and_then(|rest| rest.strip_suffix(')'));
    let Some(numbers) = numbers else { return false };
    let (low, high) = numbers.split_once("..=").unwrap_or((numbers, numbers));
    match (low.parse::<u16>(), high.parse::<u16>()) {
        (Ok(low), Ok(high)) => (low..=high).contains(&status),
        _ => false,
    }
}

#[test]
fn the_page_on_errors_equals_the_classifier() {
    assert_clean(&complaints(Tree::of_repository()));
}

#[test]
fn a_fault_that_is_told_wrongly_or_not_at_all_is_seen() {
    let page = Tree::of_repository().text(PAGE).unwrap();
    let lines: Vec<String> = page
        .lines()
        .filter(|line| !line.starts_with("| `Io`"))
        .map(|line| line.replace("| `RowNotFound` |", "| `RowMissing` |"))
        .map(|line| line.replace("`HttpStatus(429)`", "`HttpStatus(430)`"))
        .collect();
    let found = complaints(&Tree::sample(&[(PAGE, &lines.join("\n"))]));
    assert_eq!(
        found,
        [
            "docs/errors.md: has no row for `Io`",
            "docs/errors.md: has no row for `RowNotFound`",
            "docs/errors.md: `HttpStatus(429)` is tried again, not dead letter",
            "docs/errors.md: `HttpStatus(430)` is dead letter, not tried again",
            "docs/errors.md: there is no fault `RowMissing`",
        ]
    );
}
