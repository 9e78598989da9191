//! Imports in the runtime point down the layers only, and never sideways where siblings must not
//! know each other.
//!
//! The table below is the one of `docs/architecture.md`. Unit tests inside a file are exempt:
//! they may set up a world.

use std::collections::BTreeSet;

use crate::assert_clean;
use crate::markdown::{codes, rows};
use crate::paths::paths_in;
use crate::source::shipped_code;
use crate::tree::Tree;

/// A module, or a module with everything inside it, and where it stands.
struct Row {
    layer: u8,
    /// Modules of one group may import one another.
    group: &'static str,
    module: &'static str,
    covers: Covers,
}

#[derive(PartialEq)]
enum Covers {
    /// The module's own file; what is inside needs rows of its own.
    ItsFile,
    /// The module and all inside it, which may import one another.
    Everything,
    /// The module and all inside it; the modules inside are stages and never import one another.
    Stages,
}

const TABLE: [Row; 29] = [
    // L0: words, data only.
    row(0, "words", "time", Covers::Everything),
    row(0, "words", "error", Covers::Everything),
    row(0, "words", "job", Covers::Everything),
    // L1: pure decisions.
    row(1, "rules", "rules", Covers::Everything),
    // L2: ports. The seam imports words only.
    row(2, "store", "store", Covers::ItsFile),
    row(2, "store", "store::versions", Covers::Everything),
    row(2, "store", "store::admin", Covers::Everything),
    row(2, "store", "store::wake", Covers::Everything),
    row(2, "store", "store::tx", Covers::Everything),
    row(2, "store", "store::round", Covers::Everything),
    row(2, "store", "store::apart", Covers::Everything),
    row(2, "store", "store::listing", Covers::Everything),
    row(2, "store", "store::migration", Covers::Everything),
    row(2, "observe", "observe", Covers::Everything),
    row(2, SEAM, "seam", Covers::Everything),
    row(2, "failpoint", "failpoint", Covers::Everything),
    // L3: backends, which never import each other.
    row(3, "memory", "store::memory", Covers::Everything),
    row(3, "sqlite", "store::sqlite", Covers::Everything),
    row(3, "postgres", "store::postgres", Covers::Everything),
    // L4: where refreshed values are published.
    row(4, "cache", "cache", Covers::Everything),
    // L5: an opened store with what goes with it.
    row(5, "backend", "backend", Covers::Everything),
    // L6: what a job's function touches.
    row(6, "handler", "handler", Covers::Everything),
    // L7: the street and its upkeep.
    row(7, "pipeline", "pipeline", Covers::Stages),
    row(7, "upkeep", "upkeep", Covers::Stages),
    // L8: wiring.
    row(8, "wiring", "queue", Covers::Everything),
    row(8, "wiring", "worker", Covers::Everything),
    row(8, "wiring", "lockfile", Covers::Everything),
    row(8, "wiring", "private", Covers::Everything),
    row(8, "wiring", ROOT, Covers::ItsFile),
];

/// What the crate root is called here.
const ROOT: &str = "lib";
const SEAM: &str = "seam";
const SOURCES: &str = "queue-runtime/src/";

const fn row(layer: u8, group: &'static str, module: &'static str, covers: Covers) -> Row {
    Row {
        layer,
        group,
        module,
        covers,
    }
}

fn complaints(tree: &Tree) -> Vec<String> {
    let modules: BTreeSet<String> = tree
        .below(SOURCES, ".rs")
        .filter(|(path, _)| !is_test_module(path))
        .map(|(path, _)| module_of(path))
        .collect();
    let mut complaints = Vec::new();
    for (path, text) in tree
        .below(SOURCES, ".rs")
        .filter(|(path, _)| !is_test_module(path))
    {
        let from = module_of(path);
        let Some(row) = row_of(&from) else {
            complaints.push(format!(
                "{path} has no row in the layer table: give it a row"
            ));
            continue;
        };
        let targets: BTreeSet<String> = paths_in(&shipped_code(text), &inside(&from))
            .iter()
            .map(|path| resolve(path, &modules))
            .filter(|to| *to != from)
            .collect();
        for to in targets {
            // A target without a row is reported where its own file is looked at.
            let Some(target) = row_of(&to) else { continue };
            if let Err(why) = allowed(row, &from, target, &to) {
                complaints.push(format!("{path} imports {to}: {why}"));
            }
        }
    }
    complaints
}

/// Unit tests that have a folder of their own.
fn is_test_module(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

fn allowed(from_row: &Row, from: &str, to_row: &Row, to: &str) -> Result<(), String> {
    let same_group = from_row.group == to_row.group && from_row.layer == to_row.layer;
    if same_group {
        return match (
            from_row.covers == Covers::Stages,
            from.split_once("::"),
            to.split_once("::"),
        ) {
            (true, Some((_, a)), Some((_, b))) if stage(a) != stage(b) => {
                Err("stages never import one another".to_owned())
            }
            _ => Ok(()),
        };
    }
    let highest = if from_row.group == SEAM {
        1
    } else {
        from_row.layer
    };
    if to_row.layer < highest {
        return Ok(());
    }
    Err(match to_row.layer.cmp(&from_row.layer) {
        std::cmp::Ordering::Equal => format!("both stand in layer {}", from_row.layer),
        _ => format!(
            "layer {} does not know layer {}",
            from_row.layer, to_row.layer
        ),
    })
}

fn stage(inside: &str) -> &str {
    inside.split("::").next().unwrap_or(inside)
}

fn row_of(module: &str) -> Option<&'static Row> {
    let covers = |row: &&Row| {
        module == row.module
            || (row.covers != Covers::ItsFile
                && module
                    .strip_prefix(row.module)
                    .is_some_and(|rest| rest.starts_with("::")))
    };
    TABLE
        .iter()
        .filter(covers)
        .max_by_key(|row| row.module.len())
}

/// `queue-runtime/src/store/sqlite/mod.rs` is `store::sqlite`; the crate root is `lib`.
fn module_of(path: &str) -> String {
    let inside = path.strip_prefix(SOURCES).unwrap_or(path);
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    inside
        .strip_suffix("/mod")
        .unwrap_or(inside)
        .replace('/', "::")
}

/// The segments of a module's own path; the crate root has none.
fn inside(module: &str) -> Vec<String> {
    if module == ROOT {
        Vec::new()
    } else {
        module.split("::").map(str::to_owned).collect()
    }
}

/// The innermost module that a path leads through; items of the crate root belong to the root.
fn resolve(path: &[String], modules: &BTreeSet<String>) -> String {
    let prefixes = (1..=path.len())
        .rev()
        .map(|length| path[..length].join("::"));
    prefixes
        .into_iter()
        .find(|prefix| modules.contains(prefix))
        .unwrap_or(ROOT.to_owned())
}

/// The table as the page on architecture shows it: layer and module, in order.
fn shown(page: &str) -> Vec<(u8, &str)> {
    let is_layer = |first: &str| first.len() == 2 && first.starts_with('L');
    rows(page, is_layer)
        .into_iter()
        .filter_map(|cells| Some((cells[0][1..].parse().ok()?, *cells.get(1)?)))
        .flat_map(|(layer, modules)| codes(modules).map(move |module| (layer, module)))
        .collect()
}

#[test]
fn the_page_on_architecture_shows_the_same_layers() {
    let page = Tree::of_repository().text("docs/architecture.md").unwrap();
    let table: Vec<(u8, &str)> = TABLE.iter().map(|row| (row.layer, row.module)).collect();
    assert_eq!(shown(page), table);
}

#[test]
fn a_page_with_other_layers_is_not_the_same() {
    let page = "| layer | x |\n| L1 | `rules` and `seam` | y |\n| L12 | `no` | y |\n";
    assert_eq!(shown(page), [(1, "rules"), (1, "seam")]);
}

#[test]
fn imports_point_down_the_layers() {
    assert_clean(&complaints(Tree::of_repository()));
}

#[test]
fn an_import_that_points_up_or_sideways_is_seen_in_every_form() {
    let tree = Tree::sample(&[
        (
            "queue-runtime/src/lib.rs",
            "mod job;\nmod rules;\npub use job::JobId;\npub use worker::W;",
        ),
        (
            "queue-runtime/src/time.rs",
            "//! [x](crate::seam)\nuse crate::job::JobId; // fine: words",
        ),
        (
            "queue-runtime/src/error.rs",
            "use crate::JobId; // through the root",
        ),
        (
            "queue-runtime/src/job/mod.rs",
            "mod ids;\npub use ids::JobId;\nuse self::ids::X;",
        ),
        (
            "queue-runtime/src/job/ids.rs",
            "use super::super::rules::backoff;",
        ),
        (
            "queue-runtime/src/rules.rs",
            "fn f() -> crate::store::Store {}\nuse crate::seam;",
        ),
        (
            "queue-runtime/src/seam.rs",
            "use crate::{job::JobId, rules::lease};",
        ),
        (
            "queue-runtime/src/store/mod.rs",
            "mod admin;\nmod memory;\npub use memory::M;",
        ),
        (
            "queue-runtime/src/store/admin.rs",
            "use super::Store;\nmod inner { use super::super::S; }",
        ),
        (
            "queue-runtime/src/store/memory.rs",
            "use crate::store::{self, sqlite::{rows::R as Q, X}};",
        ),
        (
            "queue-runtime/src/store/sqlite/mod.rs",
            "use crate::store::Store;\nuse super::memory::M;",
        ),
        (
            "queue-runtime/src/store/sqlite/rows.rs",
            "use super::X;\nuse crate::rules::*;",
        ),
        (
            "queue-runtime/src/store/extra.rs",
            "use crate::worker::Worker;",
        ),
        (
            "queue-runtime/src/pipeline/mod.rs",
            "mod claim;\nmod settle;\npub use settle::S;",
        ),
        (
            "queue-runtime/src/pipeline/claim.rs",
            "use super::{Street, settle::S};\nuse crate::cache::C;",
        ),
        (
            "queue-runtime/src/pipeline/settle.rs",
            "use crate::store::memory::M;\n#[cfg(test)]\nmod tests { use crate::worker::W; }",
        ),
        (
            "queue-runtime/src/cache/mod.rs",
            "pub(crate) use std::x::crate_y;\nuse crate::handler::V;",
        ),
        (
            "queue-runtime/src/worker.rs",
            "use crate::{pipeline::claim, queue::Queue};",
        ),
        ("queue-runtime/src/handler/mod.rs", "use crate::cache::C;"),
        (
            "queue-runtime/src/store/sqlite/tests/world.rs",
            "use crate::worker::W; // a world for tests",
        ),
        ("queue-runtime/src/queue.rs", "use crate::worker::W;"),
    ]);
    assert_eq!(
        complaints(&tree),
        [
            "queue-runtime/src/cache/mod.rs imports handler: layer 4 does not know layer 6",
            "queue-runtime/src/error.rs imports lib: layer 0 does not know layer 8",
            "queue-runtime/src/job/ids.rs imports rules: layer 0 does not know layer 1",
            "queue-runtime/src/pipeline/claim.rs imports pipeline::settle: stages never import one another",
            "queue-runtime/src/rules.rs imports seam: layer 1 does not know layer 2",
            "queue-runtime/src/rules.rs imports store: layer 1 does not know layer 2",
            "queue-runtime/src/seam.rs imports rules: layer 2 does not know layer 1",
            "queue-runtime/src/store/extra.rs has no row in the layer table: give it a row",
            "queue-runtime/src/store/memory.rs imports store::sqlite: both stand in layer 3",
            "queue-runtime/src/store/memory.rs imports store::sqlite::rows: both stand in layer 3",
            "queue-runtime/src/store/mod.rs imports store::memory: layer 2 does not know layer 3",
            "queue-runtime/src/store/sqlite/mod.rs imports store::memory: both stand in layer 3",
        ]
    );
}
