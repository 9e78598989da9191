//! A guarantee is named together with the tests that show it.

use crate::assert_clean;
use crate::markdown::{codes, rows};
use crate::named_tests::NamedTests;
use crate::tree::Tree;

const PAGE: &str = "docs/guarantees.md";

fn complaints(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let tests = NamedTests::of(tree);
    let mut complaints = Vec::new();
    let mut seen = 0;
    let heads = [
        "what is locked",
        "what could be lost or doubled",
        "long run",
    ];
    // Runs are not guarantees: their rows begin with a date.
    let is_row = |first: &str| {
        let is_date = first.starts_with(|c: char| c.is_ascii_digit());
        !first.starts_with("---") && !heads.contains(&first) && !is_date
    };
    for cells in rows(page, is_row) {
        seen += 1;
        let named: Vec<&str> = cells
            .iter()
            .flat_map(|cell| codes(cell))
            .filter(|code| code.contains("::"))
            .collect();
        if named.is_empty() {
            complaints.push(format!("{}: no test is named", cells[0]));
        }
        for test in named.into_iter().filter(|test| !tests.has_at(test)) {
            complaints.push(format!("{}: there is no test `{test}`", cells[0]));
        }
    }
    if seen == 0 {
        complaints.push(format!("{PAGE} has no rows"));
    }
    complaints
}

#[test]
fn every_guarantee_names_tests_that_exist() {
    assert_clean(&complaints(Tree::of_repository()));
}

#[test]
fn a_guarantee_without_a_test_and_one_with_a_wrong_name_are_found() {
    let page = "| what could be lost or doubled | shown by |\n| --- | --- |\n| a job | nothing |\n\
                | a result | `it::nowhere::no_such_test` |\n";
    let tree = Tree::sample(&[(PAGE, page)]);
    assert_eq!(
        complaints(&tree),
        [
            "a job: no test is named",
            "a result: there is no test `it::nowhere::no_such_test`"
        ]
    );
}
