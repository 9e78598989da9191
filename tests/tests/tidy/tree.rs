//! The repository as texts by path, read once; or a handful of texts made up by a test.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// Text files by their path from the root, with `/` between folders.
pub(crate) struct Tree(BTreeMap<String, String>);

/// Hidden folders that belong to the repository.
const HIDDEN: [&str; 4] = [".cargo", ".ci", ".config", ".github"];

impl Tree {
    /// The repository that this test runs in.
    pub(crate) fn of_repository() -> &'static Self {
        static REPOSITORY: LazyLock<Tree> = LazyLock::new(|| {
            let mut texts = BTreeMap::new();
            // Cargo's word at run time: the one at build time may be of another checkout that
            // shares the target folder.
            let here = env::var_os("CARGO_MANIFEST_DIR");
            let here = here.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
            let root = Path::new(&here).join("..");
            collect(&root, "", &mut texts);
            Tree(texts)
        });
        &REPOSITORY
    }

    /// A made-up tree.
    pub(crate) fn sample(files: &[(&str, &str)]) -> Self {
        let owned = |&(path, text): &(&str, &str)| (path.to_owned(), text.to_owned());
        Self(files.iter().map(owned).collect())
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// All files, by path.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Files whose name ends with `ending` somewhere below `folder`.
    pub(crate) fn below<'t>(
        &'t self,
        folder: &'t str,
        ending: &'t str,
    ) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.files()
            .filter(move |(path, _)| path.starts_with(folder) && path.ends_with(ending))
    }

    /// Whether a file or a folder of this name exists.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.0.contains_key(path) || self.0.keys().any(|known| known.starts_with(&folder))
    }
}

fn collect(folder: &Path, prefix: &str, texts: &mut BTreeMap<String, String>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("read {folder:?}: {error}"));
    for entry in entries {
        let entry = entry.unwrap_or_else(|error| panic!("read {folder:?}: {error}"));
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        // A folder, or in a second work tree a file that says where the folder is.
        if name == ".git" {
            continue;
        }
        if entry.path().is_dir() {
            let foreign = name == "target" || name == "node_modules";
            let hidden = name.starts_with('.') && !HIDDEN.contains(&name.as_str());
            if !foreign && !hidden {
                collect(&entry.path(), &format!("{path}/"), texts);
            }
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            // What is not UTF-8 is not a text, and no rule here is about it.
            texts.insert(path, text);
        }
    }
}

/// Resolves `relative`, as written in the file at `from`, to a path from the root.
pub(crate) fn resolve(from: &str, relative: &str) -> String {
    let mut folders: Vec<&str> = from.split('/').collect();
    folders.pop();
    for part in relative.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(folders.pop()),
            name => folders.push(name),
        }
    }
    folders.join("/")
}

#[test]
fn a_relative_path_is_resolved_from_the_file_that_names_it() {
    assert_eq!(
        resolve("a/src/b/mod.rs", "sql/claim.sql"),
        "a/src/b/sql/claim.sql"
    );
    assert_eq!(resolve("docs/lifecycle.md", "../README.md"), "README.md");
    assert_eq!(resolve("README.md", "./docs"), "docs");
}

#[test]
fn the_repository_is_read_from_its_root() {
    let tree = Tree::of_repository();
    assert!(
        tree.has("Cargo.toml") && tree.has("queue-runtime/src"),
        "not the root"
    );
    assert!(
        !tree.has("target") && !tree.has(".git"),
        "build output and history are not ours"
    );
}
