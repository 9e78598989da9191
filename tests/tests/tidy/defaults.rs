//! The defaults that a page tells are those of the code.

use futures_util::future::BoxFuture;
use queue_runtime::handler::{JobDef, RunCx, RunResult, Source};
use queue_runtime::{Queue, Worker};

use crate::assert_clean;
use crate::markdown::rows;
use crate::tree::Tree;

const PAGE: &str = "docs/architecture.md";

/// What the page calls a number, how it writes it, and how the code shows it.
const TOLD: [(&str, &str, &str); 20] = [
    ("retries", "4", " retries: 4,"),
    ("back-off", "2 s, doubled up to 5 min, ± 20 %", EXPONENTIAL),
    ("time limit of an attempt", "5 min", " timeout: Some(300s),"),
    ("priority", "0", " priority: 0,"),
    ("deadline", "none", " deadline: None,"),
    (
        "dedupe key held",
        "until finished",
        " dedupe_until: Finished,",
    ),
    ("on a duplicate", "keep", " on_duplicate: Keep,"),
    ("idempotency window", "1 h", " idempotency_for: 3600s,"),
    ("attempts at once", "50", " concurrency: 50,"),
    ("lease", "60 s", " lease: 60s,"),
    ("heartbeat", "15 s", " heartbeat: 15s "),
    ("poll of an idle worker", "1 s", " poll: 1s,"),
    ("rescue", "15 s", " rescue_every: 15s,"),
    ("prune", "10 min", " prune_every: 600s,"),
    ("grace", "30 s", " grace: 30s,"),
    ("crashes in a row", "3", " crashes_max: 3,"),
    ("snoozes", "1,000", " snoozes_max: 1000 "),
    ("done jobs kept", "7 days", " done: 604800s,"),
    ("cancelled jobs kept", "7 days", " cancelled: 604800s,"),
    ("dead letters kept", "90 days", " dead_letter: 7776000s "),
];

const EXPONENTIAL: &str = " backoff: Exponential { base: 2s, max: 300s, jitter_percent: 20 },";

fn complaints(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let code = code();
    let mut complaints = Vec::new();
    for (what, value, shown) in TOLD {
        if !code.contains(shown) {
            complaints.push(format!("{what}: the code does not show `{}`", shown.trim()));
        }
        let told = rows(page, |first| first == what);
        if !told.iter().any(|cells| cells.get(1) == Some(&value)) {
            complaints.push(format!("{PAGE}: does not say that `{what}` is {value}"));
        }
    }
    complaints
}

/// A plain job's definition and a plain worker's configuration, as the code shows them.
fn code() -> String {
    fn run(_: &RunCx) -> BoxFuture<'_, RunResult> {
        Box::pin(async { Ok(Default::default()) })
    }
    let source = Source {
        package: "p",
        module: "m",
        file: "f",
        line: 1,
    };
    let job = JobDef::new("plain", run, source);
    format!("{job:?} {:?}", Worker::builder(&Queue::in_memory()))
}

#[test]
fn the_page_on_architecture_tells_the_defaults() {
    assert_clean(&complaints(Tree::of_repository()));
}

#[test]
fn a_default_that_is_told_wrongly_is_seen() {
    let page = Tree::of_repository().text(PAGE).unwrap();
    let page = page.replace("| lease | 60 s |", "| lease | 30 s |");
    let found = complaints(&Tree::sample(&[(PAGE, &page)]));
    assert_eq!(
        found,
        ["docs/architecture.md: does not say that `lease` is 60 s"]
    );
}
