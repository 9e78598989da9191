//! A page that quotes a file says what the file says: code below `<!-- from <path> -->`.

use crate::assert_clean;
use crate::tree::Tree;

/// Stands before the path of a quoted file, on a line of its own above the fence.
const MARK: &str = "\n<!-- from ";

/// How a page shows code that is not a whole program.
const FENCE: &str = "```rust,ignore";

/// A page whose pieces of code are all quotes.
const QUOTES_ONLY: &str = "docs/deploying.md";

fn complaints(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in tree.below("", ".md") {
        complaints.extend(wrong_quotes(tree, path, text));
        let (marks, fences) = (text.matches(MARK).count(), text.matches(FENCE).count());
        if path == QUOTES_ONLY && (marks == 0 || marks != fences) {
            complaints.push(format!("{path}: {fences} pieces of code, {marks} quotes"));
        }
    }
    complaints
}

fn wrong_quotes(tree: &Tree, page: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for rest in text.split(MARK).skip(1) {
        let (path, below) = rest.split_once(" -->").unwrap_or((rest, ""));
        let fenced = below.trim_start().strip_prefix(FENCE);
        let code = fenced.and_then(|fenced| fenced.split("\n```").next());
        match (tree.text(path), code) {
            (None, _) => complaints.push(format!("{page}: quotes {path}, which is not there")),
            (_, None) => {
                complaints.push(format!("{page}: no `` {FENCE} `` below the mark of {path}"))
            }
            // With the end of the line before it, so that it begins and ends with whole lines.
            (Some(file), Some(code)) if file.contains(&format!("{code}\n")) => {}
            (Some(_), Some(code)) => {
                let first = code.trim_start().lines().next().unwrap_or_default();
                complaints.push(format!("{page}: {path} does not say `{first}` and so on"));
            }
        }
    }
    complaints
}

#[test]
fn what_a_page_quotes_is_what_the_file_says() {
    assert_clean(&complaints(Tree::of_repository()));
}

#[test]
fn a_quote_that_went_its_own_way_is_seen() {
    let check = |page: &str, expected: &[&str]| {
        let tree = Tree::sample(&[
            ("docs/deploying.md", page),
            ("a.rs", "//! A.\nfn a() {\n    b()\n}\n"),
        ]);
        assert_eq!(complaints(&tree), expected, "{page}");
    };
    let quote = |code: &str| format!("# A\n<!-- from a.rs -->\n\n```rust,ignore\n{code}\n```\n");
    check(&quote("fn a() {\n    b()\n}"), &[]);
    let differs = "docs/deploying.md: a.rs does not say `fn a() {` and so on";
    check(&quote("fn a() {\n    c()\n}"), &[differs]);
    check(&quote("fn a() {\n    b("), &[differs]);
    check(
        "# A\n<!-- from b.rs -->\n```rust,ignore\n```\n",
        &["docs/deploying.md: quotes b.rs, which is not there"],
    );
    check(
        "# A\n<!-- from a.rs -->\n```rust\n```\n",
        &[
            "docs/deploying.md: no `` ```rust,ignore `` below the mark of a.rs",
            "docs/deploying.md: 0 pieces of code, 1 quotes",
        ],
    );
    check(
        "```rust,ignore\nfn a() {\n```\n",
        &["docs/deploying.md: 1 pieces of code, 0 quotes"],
    );
}
