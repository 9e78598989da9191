//! The tests that pages name: whether one of that name exists, and whether it stands where its
//! path says.

use std::collections::BTreeSet;

use crate::tree::Tree;

/// Where the first word of a path leads, if it is not a test binary.
const ROOTS: [(&str, &str); 4] = [
    ("conformance", "queue-testkit/src/conformance"),
    ("queue_runtime", "queue-runtime/src"),
    ("queue_testkit", "queue-testkit/src"),
    ("torture", "tests/torture/tests/torture"),
];

/// The functions of a tree by their names.
pub(crate) struct NamedTests<'t> {
    tree: &'t Tree,
    functions: BTreeSet<&'t str>,
}

impl<'t> NamedTests<'t> {
    pub(crate) fn of(tree: &'t Tree) -> Self {
        let names = tree.below("", ".rs").flat_map(|(_, text)| functions(text));
        let functions = names.collect();
        Self { tree, functions }
    }

    /// A test is a function, perhaps with its module before it; a compile-time case is a file.
    pub(crate) fn has(&self, test: &str) -> bool {
        let name = test.rsplit("::").next().unwrap_or(test);
        if test.contains('/') {
            self.tree.has(test)
        } else {
            self.functions.contains(name)
        }
    }

    /// As [`has`](Self::has), and the modules before the name are the file that it stands in.
    pub(crate) fn has_at(&self, test: &str) -> bool {
        if test.contains('/') {
            return self.tree.has(test);
        }
        let Some((modules, name)) = test.rsplit_once("::") else {
            return false;
        };
        let (first, below) = modules.split_once("::").unwrap_or((modules, ""));
        let root = ROOTS.iter().find(|(word, _)| *word == first);
        let root = root.map_or_else(
            || format!("tests/tests/{first}"),
            |(_, at)| (*at).to_owned(),
        );
        let files = match below {
            "" => vec![format!("{root}.rs"), format!("{root}/main.rs")],
            below => {
                // Unit tests stand in a module at the end of what they test.
                let within = below.strip_suffix("::tests").unwrap_or(below);
                let file = |below: &str| format!("{root}/{}.rs", below.replace("::", "/"));
                vec![file(below), file(within)]
            }
        };
        let mut texts = files.iter().filter_map(|file| self.tree.text(file));
        texts.any(|text| functions(text).any(|function| function == name))
    }
}

fn functions(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split("fn ").skip(1).map(|rest| {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        &rest[..end.unwrap_or(rest.len())]
    });
    names.filter(|name| !name.is_empty())
}

#[test]
fn a_test_is_found_by_its_name_and_at_its_path() {
    let tree = Tree::sample(&[
        ("tests/tests/rules.rs", "fn decides() {}"),
        ("tests/tests/it/leases.rs", "async fn runs_once() {}"),
        (
            "tests/tests/known_bad/main.rs",
            "async fn loses_nothing() {}",
        ),
        (
            "queue-testkit/src/conformance/claim.rs",
            "pub async fn takes() {}",
        ),
        (
            "queue-runtime/src/store/sqlite/tests/file.rs",
            "fn opens() {}",
        ),
        ("tests/ui/fail/no.rs", ""),
    ]);
    let tests = NamedTests::of(&tree);
    for there in [
        "rules::decides",
        "it::leases::runs_once",
        "known_bad::loses_nothing",
        "conformance::claim::takes",
        "queue_runtime::store::sqlite::tests::file::opens",
        "tests/ui/fail/no.rs",
    ] {
        assert!(tests.has(there) && tests.has_at(there), "{there}");
    }
    for elsewhere in ["runs_once", "it::runs_once", "it::claim::takes"] {
        assert!(
            tests.has(elsewhere) && !tests.has_at(elsewhere),
            "{elsewhere}"
        );
    }
    assert!(!tests.has("rules::decides_nothing"));
}
