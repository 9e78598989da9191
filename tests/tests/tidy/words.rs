//! The tree speaks to its users: no names of the place where it was written, no registry hosts.

use crate::assert_clean;
use crate::tree::Tree;

/// Where somebody's own files lie. Written in halves, since this file is looked at too.
const FOREIGN: [&str; 4] = [
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/Use", "rs/"),
];

/// Named by Cargo in the lock file, and by nobody else.
const REGISTRY: &str = concat!("crates", ".io");

fn complaints(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in tree.files() {
        let locked = path == "Cargo.lock" || path.ends_with("/Cargo.lock");
        for (number, line) in text.lines().enumerate() {
            let registry = (!locked).then_some(&REGISTRY);
            for word in FOREIGN
                .iter()
                .chain(registry)
                .filter(|word| stands_in(line, word))
            {
                complaints.push(format!("{path}:{}: `{word}`", number + 1));
            }
        }
    }
    complaints
}

/// Whether `word` stands in `line`, and not as the tail of a longer word.
fn stands_in(line: &str, word: &str) -> bool {
    let longer = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(longer))
}

#[test]
fn the_tree_names_no_place_that_a_clone_does_not_have() {
    assert_clean(&complaints(Tree::of_repository()));
}

#[test]
fn a_foreign_word_is_seen_wherever_it_stands() {
    let hosts = format!("see index.{REGISTRY}\n");
    let foreign = FOREIGN.map(|word| format!("fine\nsee {word}x\n"));
    let tree = Tree::sample(&[
        ("Cargo.lock", &format!("registry+{REGISTRY}-index")),
        ("docs/0.md", &foreign[0]),
        ("docs/1.md", &foreign[1]),
        ("docs/2.md", &foreign[2]),
        ("docs/3.md", &foreign[3]),
        ("docs/4.md", "src_home/ and network/ are other places"),
        ("docs/5.toml", &hosts),
    ]);
    let mut expected: Vec<String> = (0..4)
        .map(|at| format!("docs/{at}.md:2: `{}`", FOREIGN[at]))
        .collect();
    expected.push(format!("docs/5.toml:1: `{REGISTRY}`"));
    assert_eq!(complaints(&tree), expected);
}
