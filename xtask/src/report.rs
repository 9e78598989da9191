//! Reads a test runner's output: which suites ran, how many tests passed, how long they took.
//!
//! Only numbers that the runner itself printed are reported. A failing test's own output may look
//! like the runner's; so a suite's last closing line counts, and text after the end is not read.

/// What one run of the tests came to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Report {
    pub(crate) suites: Vec<Suite>,
    /// Full names of the tests that ran, such as `memory::a_stale_token_cannot_settle`.
    pub(crate) tests: Vec<String>,
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) skipped: u32,
    /// The runner's closing line; absent when the runner did not get that far.
    pub(crate) closing: Option<String>,
}

/// One test binary.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Suite {
    pub(crate) name: String,
    pub(crate) tests: u32,
    pub(crate) seconds: f64,
}

/// Reads the output of `cargo test`, which closes each suite with a line of its own.
///
/// The closing line is their sum, in their form, and says that it is a sum.
pub(crate) fn of_cargo_test(output: &str) -> Report {
    let mut report = Report::default();
    let mut listing = false;
    let mut sections: Vec<(String, Option<Closing>)> = Vec::new();
    for line in output.lines() {
        if let Some(name) = suite_header(line) {
            sections.push((name, None));
            listing = false;
        } else if line.starts_with("running ") && line.contains(" test") {
            listing = true;
        } else if line.is_empty() {
            listing = false;
        } else if let Some((name, result)) = listed(line, listing) {
            if result != "ignored" {
                report.tests.push(name);
            }
        } else if let Some(closing) = closing(line)
            && let Some((_, last)) = sections.last_mut()
        {
            *last = Some(closing);
        }
    }
    let unclosed = sections.iter().any(|(_, closing)| closing.is_none());
    for (name, closing) in sections {
        let closing = closing.unwrap_or_default();
        report.passed += closing.passed;
        report.failed += closing.failed;
        report.skipped += closing.skipped;
        let tests = closing.passed + closing.failed;
        report.suites.push(Suite {
            name,
            tests,
            seconds: closing.seconds,
        });
    }
    if !unclosed && !report.suites.is_empty() {
        let verdict = if report.failed == 0 { "ok" } else { "FAILED" };
        report.closing = Some(format!(
            "test result: {verdict}. {} passed; {} failed; {} ignored; sum of {} suites",
            report.passed,
            report.failed,
            report.skipped,
            report.suites.len(),
        ));
    }
    report
}

/// Reads the output of `cargo nextest run`, which prints one line per test and one summary.
pub(crate) fn of_nextest(output: &str) -> Report {
    let mut report = Report::default();
    let lines: Vec<&str> = output.lines().collect();
    let Some(end) = lines
        .iter()
        .rposition(|line| line.starts_with("     Summary ["))
    else {
        return report;
    };
    for line in &lines[..end] {
        let Some(ended) = nextest_test(line) else {
            continue;
        };
        report.tests.push(ended.test);
        let at = match report
            .suites
            .iter()
            .position(|suite| suite.name == ended.suite)
        {
            Some(at) => at,
            None => {
                report.suites.push(Suite {
                    name: ended.suite,
                    ..Suite::default()
                });
                report.suites.len() - 1
            }
        };
        report.suites[at].tests += 1;
        report.suites[at].seconds += ended.seconds;
    }
    let summary = lines[end].trim();
    report.passed = number_before(summary, " passed");
    report.failed = [" failed", " timed out", " exec failed"]
        .iter()
        .map(|word| number_before(summary, word))
        .sum();
    report.skipped = number_before(summary, " skipped");
    report.closing = Some(summary.to_owned());
    report
}

#[derive(Default)]
struct Closing {
    passed: u32,
    failed: u32,
    skipped: u32,
    seconds: f64,
}

/// `     Running tests/tidy.rs (target/debug/deps/tidy-70e71e6fa2a2f986)` gives `tidy`.
fn suite_header(line: &str) -> Option<String> {
    let (_, binary) = line
        .strip_prefix("     Running ")?
        .strip_suffix(')')?
        .rsplit_once(" (")?;
    let file = binary.rsplit(['/', '\\']).next()?;
    let file = file.strip_suffix(".exe").unwrap_or(file);
    Some(
        file.rsplit_once('-')
            .map_or(file, |(name, _)| name)
            .to_owned(),
    )
}

/// `test memory::a_promise - should panic ... ok` gives the name and the result.
fn listed(line: &str, listing: bool) -> Option<(String, &str)> {
    let (name, result) = line
        .strip_prefix("test ")
        .filter(|_| listing)?
        .rsplit_once(" ... ")?;
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    let result = result.split([',', ' ']).next()?;
    Some((name.to_owned(), result))
}

fn closing(line: &str) -> Option<Closing> {
    let counts = line.strip_prefix("test result: ")?;
    let seconds = counts
        .rsplit_once("finished in ")
        .and_then(|(_, s)| s.strip_suffix('s'));
    Some(Closing {
        passed: number_before(counts, " passed"),
        failed: number_before(counts, " failed"),
        skipped: number_before(counts, " ignored"),
        seconds: seconds.and_then(|s| s.trim().parse().ok()).unwrap_or(0.0),
    })
}

struct Ended {
    suite: String,
    test: String,
    seconds: f64,
}

/// `        PASS [   0.010s] (1/4) queue-tests::conformance memory::a_promise`, counter optional.
fn nextest_test(line: &str) -> Option<Ended> {
    let (status, rest) = line.split_once(" [")?;
    let status = status.trim_start();
    let known = ["PASS", "FAIL", "LEAK", "TIMEOUT", "ABORT"];
    // A status stands right-aligned in the first twelve columns; a test's own output does not.
    let aligned = line.find(" [") == Some(12);
    if !aligned || !(known.contains(&status) || status.starts_with("SIG")) {
        return None;
    }
    let (seconds, rest) = rest.split_once("s]")?;
    let seconds = seconds.trim().parse().ok()?;
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(counted) => counted.split_once(") ")?.1.trim_start(),
        None => rest,
    };
    let (binary, test) = rest.split_once(' ')?;
    Some(Ended {
        suite: suite_of(binary),
        test: test.trim().to_owned(),
        seconds,
    })
}

/// Nextest's name for a binary (`package`, `package::target`, `package::bin/name`) in Cargo's form.
fn suite_of(binary: &str) -> String {
    match binary.split_once("::") {
        Some((_, target)) => target.rsplit('/').next().unwrap_or(target).to_owned(),
        None => binary.replace('-', "_"),
    }
}

/// The number that stands directly before `word`; 0 when the word is not there.
fn number_before(line: &str, word: &str) -> u32 {
    let Some((before, _)) = line.split_once(word) else {
        return 0;
    };
    let digits = before
        .rsplit(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(name: &str, tests: u32, seconds: f64) -> Suite {
        Suite {
            name: name.to_owned(),
            tests,
            seconds,
        }
    }

    const CARGO: &str = "\
    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.01s
     Running unittests src/lib.rs (target/debug/deps/queue_runtime-8c458aebf1df4170)

running 4 tests
test memory::left_for_later ... ignored, needs a server
test memory::ok_one ... ok
test memory::bad ... FAILED
test memory::sp - should panic ... ok

failures:

---- memory::bad stdout ----
test memory::pretended ... ok
test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.00s

failures:
    memory::bad

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.09s

error: test failed, to rerun pass `--lib`
     Running tests/tidy.rs (target/debug/deps/tidy-70e71e6fa2a2f986)

running 1 test
test sqlite::a_b ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s
";

    #[test]
    fn cargo_test_is_summed_over_its_suites_and_only_from_its_own_lines() {
        let report = of_cargo_test(CARGO);
        assert_eq!(
            report.suites,
            [suite("queue_runtime", 3, 0.09), suite("tidy", 1, 1.5)]
        );
        assert_eq!(
            report.tests,
            ["memory::ok_one", "memory::bad", "memory::sp", "sqlite::a_b"]
        );
        assert_eq!((report.passed, report.failed, report.skipped), (3, 1, 1));
        let closing = "test result: FAILED. 3 passed; 1 failed; 1 ignored; sum of 2 suites";
        assert_eq!(report.closing.as_deref(), Some(closing));
    }

    #[test]
    fn a_suite_that_died_before_its_closing_line_leaves_no_closing_line() {
        let died = CARGO.replace("test result: ok. 1 passed", "Segmentation fault");
        assert_eq!(of_cargo_test(&died).closing, None);
        assert_eq!(
            of_cargo_test("error: could not compile `queue-runtime`\n"),
            Report::default()
        );
    }

    const NEXTEST: &str = "\
    Starting 4 tests across 2 binaries (1 test skipped)
        PASS [   0.010s] (1/4) queue-runtime memory::ok_one
        SLOW [> 60.000s] (───) queue-tests::it sqlite::a_b
        PASS [  61.140s] (2/4) queue-tests::it sqlite::a_b
     SIGKILL [   0.500s] xtask::bin/xtask report::tests::x
        FAIL [   0.187s] (4/4) queue-runtime memory::bad
  stdout ───

    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.18s
    PASS [ 1.000s] (9/9) pretended memory::x

────────────
     Summary [   0.190s] 4 tests run: 2 passed (1 slow), 1 failed, 1 timed out, 1 skipped
        FAIL [   0.187s] (4/4) queue-runtime memory::bad
error: test run failed
";

    #[test]
    fn nextest_is_read_from_its_summary_and_its_lines_per_test() {
        let report = of_nextest(NEXTEST);
        assert_eq!(
            report.suites,
            [
                suite("queue_runtime", 2, 0.197),
                suite("it", 1, 61.14),
                suite("xtask", 1, 0.5)
            ]
        );
        let ran = [
            "memory::ok_one",
            "sqlite::a_b",
            "report::tests::x",
            "memory::bad",
        ];
        assert_eq!(report.tests, ran);
        assert_eq!((report.passed, report.failed, report.skipped), (2, 2, 1));
        let closing =
            "Summary [   0.190s] 4 tests run: 2 passed (1 slow), 1 failed, 1 timed out, 1 skipped";
        assert_eq!(report.closing.as_deref(), Some(closing));
    }

    #[test]
    fn nextest_without_a_summary_has_no_closing_line() {
        assert_eq!(
            of_nextest("error: no such command: `nextest`\n"),
            Report::default()
        );
    }
}
