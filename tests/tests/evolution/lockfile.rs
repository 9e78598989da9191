//! The file: its text, its damage, and the check that reads and writes it.

use std::fs;
use std::path::PathBuf;

use queue_runtime::lockfile::{LockfileError, check, parse, render};
use queue_runtime::pipeline::declare::Registry;
use queue_runtime::{Job, JobError, job};
use queue_testkit::lockfile::{Mode, compare};
use serde::{Deserialize, Serialize};

use crate::jobs::registry;

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    lines: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    sku: String,
    count: u32,
}

mod first {
    use super::*;
    #[job(
        name = "ship:order",
        alias = "ship",
        retries = 5,
        timeout = "90s",
        dedupe = "order.id"
    )]
    pub(super) async fn ship(
        order: Order,
        #[arg(default, alias = "speed")] express: bool,
    ) -> Result<(), JobError> {
        let _ = (order.id, express);
        Ok(())
    }
}

mod with_more_retries {
    use super::*;
    #[job(
        name = "ship:order",
        alias = "ship",
        retries = 6,
        timeout = "90s",
        dedupe = "order.id"
    )]
    pub(super) async fn ship(
        order: Order,
        #[arg(default, alias = "speed")] express: bool,
    ) -> Result<(), JobError> {
        let _ = (order.id, express);
        Ok(())
    }
}

mod with_another_order {
    use super::*;

    #[derive(Serialize, Deserialize)]
    pub(super) struct Line {
        sku: u32,
        count: u32,
        gift: bool,
    }

    #[derive(Serialize, Deserialize)]
    pub(super) struct Order {
        id: u64,
        lines: Vec<Line>,
    }

    #[job(
        name = "ship:order",
        alias = "ship",
        retries = 5,
        timeout = "90s",
        dedupe = "order.id"
    )]
    pub(super) async fn ship(
        order: Order,
        #[arg(default, alias = "speed")] express: bool,
    ) -> Result<(), JobError> {
        let _ = (order.id, express);
        Ok(())
    }
}

const FIRST: &str = "\
# The jobs of this program, as the rows that may wait in a queue know them. Check this file in.
# A test compares it with the code. To bring it up to date: QUEUE_LOCKFILE=update cargo test
# Breaking changes are written only with QUEUE_LOCKFILE=accept-breaking.
format 1

job \"ship:order\"
  alias ship
  schema 1
  backoff exponential 2s to 5m +-20%
  dedupe order.id
  dedupe_until finished
  on_duplicate keep
  package queue-tests
  priority 0
  queue default
  retries 5
  timeout 90s
  payload
    express? (also speed): bool
    order: struct
      id: u64
      lines: list of struct
        count: u32
        sku: text
";

fn jobs<J: Job>() -> Registry {
    registry(J::DEF)
}

#[test]
fn the_file_reads_like_this_and_is_read_back() {
    let text = render(&jobs::<first::ShipJob>());
    assert_eq!(text, FIRST);
    let report = check(&jobs::<first::ShipJob>(), &text).expect("not damaged");
    assert!(report.current && report.changes.is_empty());
    let windows = text.replace('\n', "\r\n");
    assert_eq!(parse(&windows), parse(&text));
}

/// A file of its own that is gone with the test.
struct Place(tempfile::TempDir);

impl Place {
    fn new(text: Option<&str>) -> Self {
        let place = Self(tempfile::tempdir().expect("a folder"));
        if let Some(text) = text {
            fs::write(place.file(), text).expect("it can be written");
        }
        place
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("jobs.lock")
    }

    fn text(&self) -> Option<String> {
        fs::read_to_string(self.file()).ok()
    }

    fn compare<J: Job>(&self, mode: Mode) -> Result<(), String> {
        let told = compare(&jobs::<J>(), &self.file(), mode);
        told.map_err(|told| told.replace(&self.file().display().to_string(), "jobs.lock"))
    }
}

#[test]
fn a_missing_file_is_written_only_on_request() {
    let place = Place::new(None);
    let told = place
        .compare::<first::ShipJob>(Mode::Check)
        .expect_err("no file");
    assert_eq!(
        told,
        "jobs.lock is missing. To write it, run this test with QUEUE_LOCKFILE=update, and check it in"
    );
    assert_eq!(place.text(), None);
    place
        .compare::<first::ShipJob>(Mode::Update)
        .expect("it is written");
    assert_eq!(place.text().as_deref(), Some(FIRST));
    place
        .compare::<first::ShipJob>(Mode::Check)
        .expect("no difference");
}

#[test]
fn a_safe_difference_fails_until_the_file_is_updated() {
    let place = Place::new(Some(FIRST));
    let told = place
        .compare::<with_more_retries::ShipJob>(Mode::Check)
        .expect_err("stale");
    let expected = "\
jobs.lock is out of date. Nothing breaks:

safe: job `ship:order`, retries: 5 became 6

Run this test with QUEUE_LOCKFILE=update, and check the file in.";
    assert_eq!(told, expected);
    assert_eq!(place.text().as_deref(), Some(FIRST), "it is only read");
    place
        .compare::<with_more_retries::ShipJob>(Mode::Update)
        .expect("it is written");
    place
        .compare::<with_more_retries::ShipJob>(Mode::Check)
        .expect("no difference");
}

#[test]
fn a_breaking_difference_is_told_with_its_cure_and_not_written_by_an_update() {
    let place = Place::new(Some(FIRST));
    let expected = "\
jobs.lock: these edits would strand jobs that wait, or break workers that still run the build before:

BREAKING: job `ship:order`, $.order.lines[].sku: text became u32
    waiting rows: what was stored as text is not always u32
    cure: read both forms, or raise `schema` and write an `upcast`
    old workers: old workers expect text, and are given u32
    cure: raise `schema`: workers of the old build then leave these rows alone
BREAKING: job `ship:order`, $.order.lines[].gift: required field added (bool)
    waiting rows: rows lack it
    cure: give it `#[serde(default)]`, make it an `Option`, or raise `schema` and write an `upcast`

If that strands nobody (no such job waits; or, where only old workers break, none runs beside this build): run this \
test with QUEUE_LOCKFILE=accept-breaking, and check the file in.";
    for mode in [Mode::Check, Mode::Update] {
        let told = place
            .compare::<with_another_order::ShipJob>(mode)
            .expect_err("breaking");
        assert_eq!(told, expected);
        assert_eq!(place.text().as_deref(), Some(FIRST));
    }
    place
        .compare::<with_another_order::ShipJob>(Mode::AcceptBreaking)
        .expect("it is written");
    place
        .compare::<with_another_order::ShipJob>(Mode::Check)
        .expect("no difference");
}

#[test]
fn a_job_that_is_gone_or_renamed_is_told_with_what_to_do() {
    let told = check(
        &jobs::<first::ShipJob>(),
        &FIRST
            .replace("\"ship:order\"", "gone")
            .replace("alias ship", "alias a"),
    );
    let told = told.expect("not damaged").to_string();
    let expected = "\
BREAKING: job `gone`, job: job removed
    waiting rows: rows of this type wait for ever: no worker of the new build claims them
    cure: if it is `ship:order` now, add `alias = \"gone\"` to that job; else keep the handler until no row of \
this type waits
safe: job `ship:order`, job: job added
";
    assert_eq!(told, expected);
}

#[test]
fn a_word_of_the_environment_that_nobody_knows_is_refused() {
    assert_eq!(Mode::of(Some("update")), Ok(Mode::Update));
    assert_eq!(
        Mode::of(Some("yes")),
        Err("QUEUE_LOCKFILE=yes: write `check`, `update` or `accept-breaking`".to_owned())
    );
}

#[test]
fn a_newer_format_is_refused_and_never_overwritten() {
    let newer = FIRST.replace("format 1", "format 2");
    assert_eq!(
        parse(&newer),
        Err(LockfileError::Newer { line: 4, format: 2 })
    );
    let place = Place::new(Some(&newer));
    for mode in [Mode::Check, Mode::Update, Mode::AcceptBreaking] {
        let told = place.compare::<first::ShipJob>(mode).expect_err("newer");
        let expected = "jobs.lock: line 4: format 2 of a newer queue-runtime; this one reads up to 1. Update \
            queue-runtime";
        assert_eq!(told, expected);
    }
    assert_eq!(place.text(), Some(newer));
}

#[test]
fn a_damaged_file_is_an_error_that_names_the_line() {
    let damages = [
        (
            "format 1",
            "formal 1",
            "line 4: `format` expected, `formal` found",
        ),
        ("format 1", "format one", "line 4: `one` is no number"),
        (
            "job \"ship:order\"",
            "jib a",
            "line 6: `job` expected, `jib` found",
        ),
        (
            "job \"ship:order\"",
            "job \"ship",
            "line 6: a quoted text is not ended",
        ),
        ("  schema 1\n", "", "line 17: no `schema` before it"),
        (
            "  schema 1",
            "  schema 1 downcast",
            "line 8: `downcast` is too much",
        ),
        (
            "  retries 5",
            "  queue other",
            "line 16: `queue` stands here twice",
        ),
        ("  retries 5", "  retries", "line 16: a value is missing"),
        (
            "  retries 5",
            "   retries 5",
            "line 16: is not indented by steps of two spaces",
        ),
        (
            "  retries 5",
            "<<<<<<< HEAD",
            "line 16: a merge was not finished here",
        ),
        (
            "      id: u64",
            "      id: u65",
            "line 21: `u65` is no shape",
        ),
        ("      id: u64", "      id u64", "line 21: `:` expected"),
        (
            "      id: u64",
            "      lines: u64",
            "line 22: field `lines` stands here twice",
        ),
        (
            "      id: u64",
            "        id: u64",
            "line 21: is indented too far",
        ),
        (
            "list of struct",
            "list off struct",
            "line 22: `of` expected, `off` found",
        ),
        (
            "sku: text",
            "sku: same as Order",
            "line 24: nothing around it is called `Order`",
        ),
        ("sku: text", "sku: map", "line 25: `key:` is missing"),
        (
            "sku: text",
            "sku: 99999999999 times u8",
            "line 24: `99999999999` is no shape",
        ),
    ];
    for (from, to, expected) in damages {
        let damaged = FIRST.replacen(from, to, 1);
        assert_ne!(damaged, FIRST, "{from} stands in the file");
        let told = parse(&damaged).expect_err(expected);
        assert_eq!(told.to_string(), expected);
    }
    let (cut, _) = FIRST.split_once("  payload").expect("it has one");
    let told = parse(cut).expect_err("cut off");
    assert_eq!(
        told.to_string(),
        "line 18: `payload` of job `ship:order` is missing"
    );
    assert_eq!(
        parse("").expect_err("empty").to_string(),
        "line 1: `format 1` is missing"
    );
    let deep = FIRST.replace(
        "sku: text",
        &format!("sku: {}text", "list of ".repeat(100_000)),
    );
    let told = parse(&deep).expect_err("too deep");
    assert_eq!(
        told.to_string(),
        "line 24: shapes are too deep inside one another"
    );
}

#[test]
fn places_that_are_not_seen_are_listed() {
    #[job(name = "visit")]
    async fn visit(at: Vec<Option<std::net::IpAddr>>, by: String) -> Result<(), JobError> {
        let _ = (at, by);
        Ok(())
    }
    let text = render(&jobs::<VisitJob>());
    let report = check(&jobs::<VisitJob>(), &text).expect("not damaged");
    assert!(report.current);
    assert_eq!(
        report.unseen,
        ["visit $.at[] (IpAddr: takes 127.0.0.1 ::1)"]
    );
}

#[test]
fn the_page_shows_what_is_written_and_said() {
    let page = include_str!("../../../docs/lockfile.md");
    assert!(page.contains(&FIRST.replace("queue-tests", "my-jobs")));
    let report = check(&jobs::<with_another_order::ShipJob>(), FIRST).expect("not damaged");
    assert!(page.contains(&report.to_string()), "{report}");
}
