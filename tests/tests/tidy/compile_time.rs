//! The page on what is checked when names each compile-fail case once, and only tests that exist.

use std::collections::BTreeMap;

use crate::assert_clean;
use crate::markdown::{codes, rows};
use crate::named_tests::NamedTests;
use crate::tree::Tree;

const PAGE: &str = "docs/compile-time.md";
const CASES: &str = "tests/ui/fail/";

fn complaints(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let tests = NamedTests::of(tree);
    let mut complaints = Vec::new();
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    let is_heading = |first: &str| first == "mistake" || first.starts_with("---");
    for cells in rows(page, |first| !is_heading(first)) {
        let [mistake, .., shown] = cells.as_slice() else {
            complaints.push(format!("{PAGE}: a row with one cell"));
            continue;
        };
        if codes(shown).next().is_none() {
            complaints.push(format!("{PAGE}: nothing shows `{mistake}`"));
        }
        for name in codes(shown) {
            if name.contains("::") {
                if !tests.has_at(name) {
                    complaints.push(format!("{PAGE}: there is no test `{name}`"));
                }
                continue;
            }
            *named.entry(name).or_default() += 1;
            if !tree.has(&format!("{CASES}{name}.rs")) {
                complaints.push(format!("{PAGE}: there is no case `{name}`"));
            }
        }
    }
    for (path, _) in tree.below(CASES, ".rs") {
        let name = path.trim_start_matches(CASES).trim_end_matches(".rs");
        match named.get(name).copied().unwrap_or_default() {
            1 => {}
            count => complaints.push(format!("{PAGE}: names `{name}` {count} times, not once")),
        }
    }
    complaints
}

#[test]
fn the_page_on_what_is_checked_when_names_every_case_and_no_other() {
    assert_clean(&complaints(Tree::of_repository()));
}

#[test]
fn a_case_that_is_forgotten_or_invented_is_seen() {
    let page = "\
| mistake | found by | shown by |
| --- | --- | --- |
| a | macro | `one` `two` |
| b | macro | `two` `gone` |
| c | macro | none |

| mistake | shown by |
| --- | --- |
| d | `it::building::tells` `it::building::tells_not` |
";
    let tree = Tree::sample(&[
        (PAGE, page),
        ("tests/ui/fail/one.rs", ""),
        ("tests/ui/fail/two.rs", ""),
        ("tests/ui/fail/three.rs", ""),
        ("tests/tests/it/building.rs", "fn tells() {}"),
    ]);
    assert_eq!(
        complaints(&tree),
        [
            "docs/compile-time.md: there is no case `gone`",
            "docs/compile-time.md: nothing shows `c`",
            "docs/compile-time.md: there is no test `it::building::tells_not`",
            "docs/compile-time.md: names `three` 0 times, not once",
            "docs/compile-time.md: names `two` 2 times, not once",
        ]
    );
}
