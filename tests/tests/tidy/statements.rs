//! A statement has a file of its own, a header that states its contract, and one place that uses it.

use std::collections::BTreeSet;

use crate::assert_clean;
use crate::source::{Strings, without_comments};
use crate::tree::{Tree, resolve};

/// What a header says beside its first line, which says what the statement does. A statement that
/// one dialect alone has also says why the other needs none, in a line `-- only: …`.
const HEADER: [&str; 4] = ["params:", "returns:", "locks:", "index:"];

const SQLITE: &str = "queue-runtime/src/store/sqlite/sql/";
const POSTGRES: &str = "queue-runtime/src/store/postgres/sql/";

fn is_migration(path: &str) -> bool {
    path.contains("/migrations/")
}

fn contracts(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in tree.below("", ".sql") {
        let header: Vec<&str> = text
            .lines()
            .map_while(|line| line.strip_prefix("--"))
            .collect();
        let says = |label: &&str| {
            header
                .iter()
                .any(|line| line.trim_start().starts_with(*label))
        };
        let first = header.first().map_or("", |line| line.trim());
        if first.is_empty() || HEADER.iter().any(|label| first.starts_with(label)) {
            complaints.push(format!(
                "{path}: the first line says what it does, as a comment"
            ));
        }
        let code = bare(text);
        if !is_migration(path) {
            for label in HEADER.iter().filter(|label| !says(label)) {
                complaints.push(format!("{path}: the header has no line `-- {label}`"));
            }
            if code.trim().trim_end_matches(';').contains(';') || code.trim().is_empty() {
                complaints.push(format!("{path}: one statement to a file"));
            }
        }
        let words: Vec<&str> = words(&code);
        if words
            .windows(2)
            .any(|pair| matches!(pair, ["select" | "returning", "*"]))
        {
            complaints.push(format!("{path}: columns are listed, never `*`"));
        }
        let shouted: BTreeSet<&str> = words.into_iter().filter(|word| is_shouted(word)).collect();
        for word in shouted {
            complaints.push(format!("{path}: keyword `{word}` is not in lower case"));
        }
    }
    complaints
}

fn inclusions(tree: &Tree) -> Vec<String> {
    let included: Vec<String> = tree
        .below("", ".rs")
        .flat_map(|(path, text)| {
            let code = without_comments(text, Strings::Kept);
            let names: Vec<String> = code
                .split("include_str!(")
                .skip(1)
                .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
                .map(|name| resolve(path, name))
                .collect();
            names
        })
        .collect();
    tree.files()
        .filter(|(path, _)| path.ends_with(".sql") || path.ends_with(".lua"))
        .filter_map(
            |(path, _)| match included.iter().filter(|name| *name == path).count() {
                1 => None,
                0 => Some(format!("{path}: no `include_str!(\"…\")` names it")),
                count => Some(format!("{path}: included {count} times, not once")),
            },
        )
        .collect()
}

fn dialects(tree: &Tree) -> Vec<String> {
    let names = |folder| -> BTreeSet<String> {
        tree.below(folder, ".sql")
            .map(|(path, _)| path[folder.len()..].to_owned())
            .collect()
    };
    let (sqlite, postgres) = (names(SQLITE), names(POSTGRES));
    if sqlite.is_empty() || postgres.is_empty() {
        return Vec::new();
    }
    let missing = |name: &String| {
        let (here, there, who) = match sqlite.contains(name) {
            true => (SQLITE, POSTGRES, "SQLite"),
            false => (POSTGRES, SQLITE, "Postgres"),
        };
        let text = tree.text(&format!("{here}{name}")).unwrap_or("");
        let is_explained = text.lines().any(|line| line.starts_with("-- only: "));
        (!is_explained).then(|| {
            format!("{there}{name} is missing: {who} has it, and no line `-- only: ` says why")
        })
    };
    sqlite
        .symmetric_difference(&postgres)
        .filter_map(missing)
        .collect()
}

/// The statement without comments, string literals and quoted names.
fn bare(sql: &str) -> String {
    let mut code = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if first == '\'' || first == '"' {
            rest[1..].find(first).map_or(rest.len(), |at| at + 2)
        } else {
            code.push(first);
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    code
}

/// Words and single characters.
fn words(code: &str) -> Vec<&str> {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    let pieces = code
        .split_inclusive(|c: char| !inside(c))
        .flat_map(move |piece| {
            let word = piece.trim_end_matches(|c: char| !inside(c));
            [word, &piece[word.len()..]]
        });
    pieces
        .map(str::trim)
        .filter(|piece| !piece.is_empty())
        .collect()
}

fn is_shouted(word: &str) -> bool {
    word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

#[test]
fn every_statement_states_its_contract() {
    assert_clean(&contracts(Tree::of_repository()));
}

#[test]
fn every_statement_is_included_exactly_once() {
    assert_clean(&inclusions(Tree::of_repository()));
}

#[test]
fn both_dialects_have_the_same_statements() {
    assert_clean(&dialects(Tree::of_repository()));
}

#[test]
fn a_statement_without_its_contract_is_seen() {
    let good = "-- Takes due jobs; two callers never take the same.\n-- params: ?1 now, ms\n\
                -- returns: id\n-- locks: none; SELECT is fine here\n-- index: due\n\
                update {q}jobs set note = 'A; SELECT *' returning id, count(*);\n";
    let tree = Tree::sample(&[
        ("s/sql/good.sql", good),
        (
            "s/migrations/0001.sql",
            "-- Tables.\ncreate table a (b);\ncreate table c (d);\n",
        ),
        ("s/migrations/0002.sql", "CREATE table a (b);\n"),
        ("s/sql/bare.sql", "select id from jobs\n"),
        (
            "s/sql/two.sql",
            &good.replace("count(*);", "id; select *\nfrom x;"),
        ),
        (
            "s/sql/loud.sql",
            &good
                .replace("update", "UPDATE")
                .replace("-- index: due\n", ""),
        ),
    ]);
    assert_eq!(
        contracts(&tree),
        [
            "s/migrations/0002.sql: the first line says what it does, as a comment",
            "s/migrations/0002.sql: keyword `CREATE` is not in lower case",
            "s/sql/bare.sql: the first line says what it does, as a comment",
            "s/sql/bare.sql: the header has no line `-- params:`",
            "s/sql/bare.sql: the header has no line `-- returns:`",
            "s/sql/bare.sql: the header has no line `-- locks:`",
            "s/sql/bare.sql: the header has no line `-- index:`",
            "s/sql/loud.sql: the header has no line `-- index:`",
            "s/sql/loud.sql: keyword `UPDATE` is not in lower case",
            "s/sql/two.sql: one statement to a file",
            "s/sql/two.sql: columns are listed, never `*`",
        ]
    );
}

#[test]
fn a_statement_that_nobody_or_two_include_is_seen() {
    let tree = Tree::sample(&[
        (
            "s/sqlite/sql.rs",
            "const A: &str = include_str!(\"sql/once.sql\"); // include_str!(\"sql/none.sql\")",
        ),
        (
            "s/sqlite/rows.rs",
            "include_str!(\"sql/twice.sql\"); include_str!(\n    \"../sqlite/sql/twice.sql\");",
        ),
        ("s/sqlite/sql/none.sql", ""),
        ("s/sqlite/sql/once.sql", ""),
        ("s/sqlite/sql/twice.sql", ""),
    ]);
    assert_eq!(
        inclusions(&tree),
        [
            "s/sqlite/sql/none.sql: no `include_str!(\"…\")` names it",
            "s/sqlite/sql/twice.sql: included 2 times, not once",
        ]
    );
}

#[test]
fn a_statement_that_one_dialect_lacks_is_seen() {
    let both = [format!("{SQLITE}claim.sql"), format!("{POSTGRES}claim.sql")];
    let single = [
        format!("{SQLITE}settle.sql"),
        format!("{POSTGRES}extend.sql"),
    ];
    let explained = format!("{POSTGRES}migrations_schema.sql");
    let mut files: Vec<(&str, &str)> = both
        .iter()
        .chain(&single)
        .map(|path| (path.as_str(), ""))
        .collect();
    files.push((&explained, "-- Makes it.\n-- only: SQLite has none.\n"));
    let complaints = dialects(&Tree::sample(&files));
    assert_eq!(
        complaints,
        [
            format!(
                "{SQLITE}extend.sql is missing: Postgres has it, and no line `-- only: ` says why"
            ),
            format!(
                "{POSTGRES}settle.sql is missing: SQLite has it, and no line `-- only: ` says why"
            ),
        ]
    );
}
