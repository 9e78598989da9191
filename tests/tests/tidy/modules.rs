//! A Rust file opens with a sentence for its reader, stays short, and has nothing left over.

use crate::assert_clean;
use crate::tree::Tree;

/// A file longer than this has two subjects.
const LINES_MAX: usize = 600;

/// Marks of unfinished work. Written in halves, since this file is looked at too.
const LEFT_OVER: [&str; 4] = [
    concat!("dbg", "!"),
    concat!("FIX", "ME"),
    concat!("to", "do!"),
    concat!("XX", "X"),
];

/// Programs for the compiler to refuse or accept: no modules of ours.
fn is_ui_case(path: &str) -> bool {
    path.starts_with("tests/") && path.contains("/ui/")
}

fn rust_files(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.below("", ".rs").filter(|(path, _)| !is_ui_case(path))
}

fn openings(tree: &Tree) -> Vec<String> {
    rust_files(tree)
        .filter(|(_, text)| !text.starts_with("//! "))
        .map(|(path, _)| format!("{path}: does not open with a `//!` sentence"))
        .collect()
}

fn left_overs(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in rust_files(tree) {
        for (number, line) in text.lines().enumerate() {
            for mark in LEFT_OVER.iter().filter(|mark| has_word(line, mark)) {
                complaints.push(format!("{path}:{}: `{mark}` left over", number + 1));
            }
        }
    }
    complaints
}

fn lengths(tree: &Tree) -> Vec<String> {
    tree.below("", ".rs")
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(path, lines)| format!("{path}: {lines} lines, over {LINES_MAX}"))
        .collect()
}

fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let begins = !line[..at].ends_with(part);
        let ends = !word.ends_with(part) || !line[at + word.len()..].starts_with(part);
        begins && ends
    })
}

#[test]
fn every_module_opens_with_a_sentence() {
    assert_clean(&openings(Tree::of_repository()));
}

#[test]
fn nothing_is_left_over() {
    assert_clean(&left_overs(Tree::of_repository()));
}

#[test]
fn no_rust_file_is_longer_than_a_reader_can_hold() {
    assert_clean(&lengths(Tree::of_repository()));
}

#[test]
fn a_module_without_a_sentence_a_left_over_and_a_long_file_are_seen() {
    let long = "//! Long.\n".repeat(LINES_MAX + 1);
    let left = LEFT_OVER.map(|mark| format!("//! Left.\n{mark}(1);\n"));
    let tree = Tree::sample(&[
        ("a/src/bare.rs", "use x;\n//! Late.\n"),
        (
            "a/src/lib.rs",
            "//! Fine: XXXL and my_todo!(), as words of their own.\n",
        ),
        ("a/src/long.rs", &long),
        ("a/src/m0.rs", &left[0]),
        ("a/src/m1.rs", &left[1]),
        ("a/src/m2.rs", &left[2]),
        ("a/src/m3.rs", &left[3]),
        ("tests/tests/ui/fail/no_docs.rs", "fn main() {}\n"),
    ]);
    assert_eq!(
        openings(&tree),
        ["a/src/bare.rs: does not open with a `//!` sentence"]
    );
    assert_eq!(lengths(&tree), ["a/src/long.rs: 601 lines, over 600"]);
    let expected: Vec<String> = (0..4)
        .map(|at| format!("a/src/m{at}.rs:2: `{}` left over", LEFT_OVER[at]))
        .collect();
    assert_eq!(left_overs(&tree), expected);
}
