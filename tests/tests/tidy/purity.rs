//! Decisions are pure: `rules/` has no async, no clock and no I/O, in its tests neither.

use crate::assert_clean;
use crate::source::{Strings, without_comments};
use crate::tree::Tree;

/// What a decision never needs: it is given time, seeds and rows as values.
const FORBIDDEN: [&str; 10] = [
    "async ",
    ".await",
    "SystemTime",
    "Instant",
    "tokio::",
    "sqlx::",
    "std::fs",
    "std::net",
    "std::thread",
    "std::env",
];

fn complaints(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in tree.below("queue-runtime/src/rules", ".rs") {
        let code = without_comments(text, Strings::Emptied);
        for (number, line) in code.lines().enumerate() {
            for word in FORBIDDEN.iter().filter(|word| line.contains(**word)) {
                let word = word.trim();
                complaints.push(format!(
                    "{path}:{}: `{word}` in a pure decision",
                    number + 1
                ));
            }
        }
    }
    complaints
}

#[test]
fn decisions_are_pure() {
    assert_clean(&complaints(Tree::of_repository()));
}

#[test]
fn a_clock_or_an_await_in_a_decision_is_seen() {
    let tree = Tree::sample(&[
        (
            "queue-runtime/src/rules/lease.rs",
            "// Instant\nuse std::time::Instant;\nasync fn x() {}\n",
        ),
        (
            "queue-runtime/src/rules/backoff.rs",
            "const X: &str = \"tokio::\";\n",
        ),
        ("queue-runtime/src/seam.rs", "use std::time::Instant;\n"),
    ]);
    assert_eq!(
        complaints(&tree),
        [
            "queue-runtime/src/rules/lease.rs:2: `Instant` in a pure decision",
            "queue-runtime/src/rules/lease.rs:3: `async` in a pure decision",
        ]
    );
}
