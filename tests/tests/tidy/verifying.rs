//! The page on verifying lists the rules as the code states them, in the same order.

use queue_runtime::job::Invariant;

use crate::assert_clean;
use crate::markdown::rows;
use crate::tree::Tree;

const PAGE: &str = "docs/verifying.md";

fn complaints(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let rows = rows(page, |first| first.starts_with('`'));
    let told: Vec<(String, String)> = rows
        .iter()
        .filter(|cells| cells.len() == 3 && !cells[2].is_empty())
        .map(|cells| (cells[0].to_owned(), cells[1].to_owned()))
        .collect();
    let known: Vec<(String, String)> = Invariant::ALL
        .iter()
        .map(|invariant| (format!("`{invariant}`"), invariant.rule().to_owned()))
        .collect();
    let lacks = known.iter().filter(|rule| !told.contains(rule));
    let has = told.iter().filter(|rule| !known.contains(rule));
    let mut complaints: Vec<String> = lacks
        .map(|(name, rule)| format!("{PAGE}: lacks {name}: {rule}"))
        .chain(has.map(|(name, rule)| format!("{PAGE}: there is no rule {name}: {rule}")))
        .collect();
    if complaints.is_empty() && told != known {
        complaints.push(format!("{PAGE}: the rules stand in another order"));
    }
    complaints
}

#[test]
fn the_page_on_verifying_equals_the_rules() {
    assert_clean(&complaints(Tree::of_repository()));
}

#[test]
fn a_page_that_lacks_a_rule_or_has_another_is_seen() {
    let page = Tree::of_repository().text(PAGE).expect("the page");
    let with = |from: &str, to: &str| {
        let sample = Tree::sample(&[(PAGE, &page.replace(from, to))]);
        complaints(&sample)
    };
    assert_eq!(with("| `key_end` |", "| key_end |").len(), 1);
    assert_eq!(with("`one_table`", "`two_tables`").len(), 2);
    assert_eq!(with("never both", "often both").len(), 2);
}
