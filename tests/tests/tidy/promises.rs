//! No page promises that a handler is executed exactly once.

use crate::assert_clean;
use crate::tree::Tree;

/// The words that a promise of it would use; written in halves, since this file is looked at too.
const CLAIM: [&str; 2] = [concat!("exactly", " once"), concat!("exactly", "-once")];

/// A sentence about it has to say what it is not.
const DENIALS: [&str; 6] = ["not", "never", "no", "nothing", "cannot", "nobody"];

fn complaints(tree: &Tree) -> Vec<String> {
    let pages = tree.below("", ".md");
    pages
        .flat_map(|(path, text)| sentences(text).map(move |sentence| (path, sentence)))
        .filter(|(_, sentence)| claims(sentence))
        .map(|(path, sentence)| format!("{path}: promises too much: `{sentence}`"))
        .collect()
}

/// Sentences with their lines joined; the cells of a table count as one.
fn sentences(text: &str) -> impl Iterator<Item = String> {
    text.split("\n\n").flat_map(|paragraph| {
        let table = paragraph.trim_start().starts_with('|');
        let end = if table { "\n" } else { ". " };
        let joined = match table {
            true => paragraph.to_owned(),
            false => paragraph.replace('\n', " "),
        };
        joined.split(end).map(str::to_owned).collect::<Vec<_>>()
    })
}

fn claims(sentence: &str) -> bool {
    let sentence = sentence.to_lowercase();
    let mut words = sentence.split(|c: char| !c.is_alphabetic());
    CLAIM.iter().any(|claim| sentence.contains(claim)) && !words.any(|word| DENIALS.contains(&word))
}

#[test]
fn no_page_promises_that_a_handler_runs_exactly_once() {
    assert_clean(&complaints(Tree::of_repository()));
}

#[test]
fn a_page_that_promises_too_much_is_seen() {
    let claim = CLAIM[0];
    let tree = Tree::sample(&[
        (
            "docs/a.md",
            &format!("# A\n\nFine. Jobs run\n{claim}. Good.\n"),
        ),
        ("docs/b.md", &format!("It is not\n\"{claim}\".\n")),
        (
            "docs/c.md",
            &format!("| x | {claim} |\n| y | never {claim} |\n"),
        ),
    ]);
    assert_eq!(
        complaints(&tree),
        [
            format!("docs/a.md: promises too much: `Jobs run {claim}`"),
            format!("docs/c.md: promises too much: `| x | {claim} |`"),
        ]
    );
}
