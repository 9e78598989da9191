//! What the pages say is what the repository has: version, first program, examples, links.

use crate::assert_clean;
use crate::markdown::{first_program, local_links};
use crate::tree::{Tree, resolve};

const QUICKSTART: &str = "examples/quickstart.rs";

fn changelog(tree: &Tree) -> Vec<String> {
    let Some(version) = tree.text("Cargo.toml").and_then(workspace_version) else {
        return vec!["Cargo.toml: no version under [workspace.package]".to_owned()];
    };
    let heading = format!("## [{version}]");
    let text = tree.text("CHANGELOG.md").unwrap_or_default();
    match text
        .lines()
        .filter(|line| line.starts_with(&heading))
        .count()
    {
        1 => Vec::new(),
        count => vec![format!(
            "CHANGELOG.md: `{heading}` stands there {count} times, not once"
        )],
    }
}

fn workspace_version(manifest: &str) -> Option<&str> {
    let package = manifest
        .split("[workspace.package]")
        .nth(1)?
        .split("\n[")
        .next()?;
    let line = package
        .lines()
        .find_map(|line| line.strip_prefix("version"))?;
    line.split('"').nth(1)
}

fn first_program_of_readme(tree: &Tree) -> Vec<String> {
    let readme = tree.text("README.md").unwrap_or_default();
    match (first_program(readme, "rust"), tree.text(QUICKSTART)) {
        (None, None) => vec![format!(
            "neither README.md nor {QUICKSTART} shows a program"
        )],
        (Some(program), Some(example)) if program.trim_end() == example.trim_end() => Vec::new(),
        (Some(program), Some(example)) => {
            let same = program
                .lines()
                .zip(example.lines())
                .take_while(|(a, b)| a == b)
                .count();
            vec![format!(
                "README.md: its first program differs from {QUICKSTART} in line {}",
                same + 1
            )]
        }
        (None, Some(_)) => vec![format!("README.md: does not show {QUICKSTART}")],
        (Some(_), None) => vec![format!(
            "README.md: shows a program, but there is no {QUICKSTART}"
        )],
    }
}

fn examples(tree: &Tree) -> Vec<String> {
    let readme = tree.text("README.md").unwrap_or_default();
    let manifest = tree.text("examples/Cargo.toml").unwrap_or_default();
    let mut complaints = Vec::new();
    let files = tree.below("examples/", ".rs");
    for (path, _) in files.filter(|(path, _)| path.matches('/').count() == 1) {
        let name = path.trim_start_matches("examples/").trim_end_matches(".rs");
        if !readme
            .lines()
            .any(|line| line.contains(&format!("--example {name}")))
        {
            complaints.push(format!("README.md: does not list `--example {name}`"));
        }
        if !manifest.contains(&format!("name = \"{name}\"")) {
            complaints.push(format!(
                "examples/Cargo.toml: no [[example]] with name = \"{name}\""
            ));
        }
    }
    complaints
}

fn links(tree: &Tree) -> Vec<String> {
    let pages = tree.below("", ".md");
    pages
        .flat_map(|(path, text)| local_links(text).map(move |link| (path, link)))
        .filter(|(path, link)| !tree.has(&resolve(path, link)))
        .map(|(path, link)| format!("{path}: the link to {link} leads nowhere"))
        .collect()
}

#[test]
fn the_changelog_has_the_version_exactly_once() {
    assert_clean(&changelog(Tree::of_repository()));
}

#[test]
fn the_first_program_of_the_readme_is_the_quickstart() {
    assert_clean(&first_program_of_readme(Tree::of_repository()));
}

#[test]
fn every_example_is_listed_in_the_readme() {
    assert_clean(&examples(Tree::of_repository()));
}

#[test]
fn every_local_link_leads_somewhere() {
    assert_clean(&links(Tree::of_repository()));
}

#[test]
fn a_version_that_the_changelog_lacks_or_repeats_is_seen() {
    let manifest = "[workspace]\n[workspace.package]\nversion = \"0.2.0\"\n[x]\nversion = \"9\"\n";
    let check = |log: &str, expected: &[&str]| {
        let tree = Tree::sample(&[("Cargo.toml", manifest), ("CHANGELOG.md", log)]);
        assert_eq!(changelog(&tree), expected, "{log}");
    };
    check("## [0.2.0] - unreleased\n## [0.1.0]\n", &[]);
    check(
        "## [0.1.0]\n",
        &["CHANGELOG.md: `## [0.2.0]` stands there 0 times, not once"],
    );
    check(
        "## [0.2.0]\n## [0.2.0]\n",
        &["CHANGELOG.md: `## [0.2.0]` stands there 2 times, not once"],
    );
}

#[test]
fn a_readme_whose_program_went_its_own_way_is_seen() {
    let check = |readme: &str, example: Option<&str>, expected: &[&str]| {
        let mut files = vec![("README.md", readme)];
        files.extend(example.map(|text| (QUICKSTART, text)));
        assert_eq!(
            first_program_of_readme(&Tree::sample(&files)),
            expected,
            "{readme}"
        );
    };
    let readme = "# X\n```rust\nfn main() {\n}\n```\n";
    check(readme, Some("fn main() {\n}\n"), &[]);
    check(
        "# X\n",
        None,
        &["neither README.md nor examples/quickstart.rs shows a program"],
    );
    check(
        "# X\n",
        Some("fn main() {}\n"),
        &["README.md: does not show examples/quickstart.rs"],
    );
    check(
        readme,
        None,
        &["README.md: shows a program, but there is no examples/quickstart.rs"],
    );
    let differs = "README.md: its first program differs from examples/quickstart.rs in line 2";
    check(readme, Some("fn main() {\n    run();\n}\n"), &[differs]);
}

#[test]
fn an_example_that_nobody_lists_and_a_dead_link_are_seen() {
    let tree = Tree::sample(&[
        (
            "README.md",
            "`cargo run --example webhooks -- x.csv` [a](docs/a.md) [b](docs) [c](c.md#d)",
        ),
        (
            "docs/a.md",
            "[up](../README.md) [out](https://example.org) [here](#here)",
        ),
        ("examples/Cargo.toml", "[[example]]\nname = \"webhooks\"\n"),
        ("examples/webhooks.rs", ""),
        ("examples/forgotten.rs", ""),
        ("examples/src/lib.rs", ""),
    ]);
    assert_eq!(
        examples(&tree),
        [
            "README.md: does not list `--example forgotten`",
            "examples/Cargo.toml: no [[example]] with name = \"forgotten\"",
        ]
    );
    assert_eq!(links(&tree), ["README.md: the link to c.md leads nowhere"]);
}
