//! The rig's program, run as a test: the crash matrix with three trials, and a load with random kills,
//! on each store that several processes can open.
//!
//! The program is built here, with points at which its processes can die. No other suite has them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use queue_testkit::conformance::{PostgresFixture, is_skipped};
use xtask::programs::Build;

/// The seed of the load: `QUEUE_TORTURE_SEED`, or one.
const SEED: &str = "QUEUE_TORTURE_SEED";

/// Makes a test of each scenario for each store.
macro_rules! on_each_store {
    ($($scenario:ident)*) => {
        mod sqlite {
            $(
                #[test]
                fn $scenario() {
                    super::$scenario("sqlite");
                }
            )*
        }

        mod postgres {
            $(
                #[test]
                fn $scenario() {
                    if !super::is_skipped(&super::PostgresFixture::new()) {
                        super::$scenario("postgres");
                    }
                }
            )*
        }
    };
}

on_each_store! {
    what_must_hold_holds_at_every_point_at_which_a_process_can_die
    no_accepted_job_is_lost_or_ends_twice_whatever_is_killed
}

fn what_must_hold_holds_at_every_point_at_which_a_process_can_die(store: &str) {
    let summary = Program::built().run(&["matrix", &format!("store={store}"), "trials=3"]);
    assert!(summary.contains(r#""violations":0"#), "{summary}");
}

fn no_accepted_job_is_lost_or_ends_twice_whatever_is_killed(store: &str) {
    let seed = std::env::var(SEED).unwrap_or_else(|_| "1".to_owned());
    println!("{SEED}={seed}");
    let arguments = [
        "load",
        &format!("store={store}"),
        "jobs=20000",
        "kills=10",
        &format!("seed={seed}"),
    ];
    let summary = Program::built().run(&arguments);
    let none = [r#""lost":0"#, r#""violations":0"#];
    assert!(none.iter().all(|none| summary.contains(none)), "{summary}");
}

#[test]
fn a_program_without_the_feature_holds_no_name_of_a_point() {
    let program = Program::built();
    let points = program.run_for(&["points"]);
    let points: Vec<&str> = points.lines().collect();
    assert!(points.len() > 20, "{points:?}");
    let plain = Build {
        names: &["deploy-before"],
        target: Some(&target()),
        ..Build::default()
    };
    let plain = &plain.run().expect("it builds")["deploy-before"];
    let plain = std::fs::read(plain).expect("a program");
    let armed = std::fs::read(&program.path).expect("a program");
    let holds = |bytes: &[u8], text: &str| {
        let mut windows = bytes.windows(text.len());
        windows.any(|window| window == text.as_bytes())
    };

    assert!(holds(&plain, "queue-heartbeat"), "the runtime is not in it");
    for text in points.into_iter().chain(["QUEUE_FAILPOINT"]) {
        assert!(holds(&armed, text), "{text} is not in the rig's program");
        assert!(
            !holds(&plain, text),
            "{text} is in a program without the feature"
        );
    }
}

/// Where this test was built.
fn target() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let target = test.ancestors().nth(3);
    target.expect("<target>/<profile>/deps").to_owned()
}

/// The rig's program in a place of its own, where no other build replaces it while it runs.
struct Program {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Program {
    fn built() -> Self {
        let target = target();
        let build = Build {
            names: &["torture"],
            features: &["queue-torture/failpoints"],
            target: Some(&target),
            ..Build::default()
        };
        let built = build.run().expect("the rig's program builds");
        let folder = tempfile::tempdir_in(&target).expect("a temporary folder");
        let path = folder.path().join("torture");
        let from: &Path = &built["torture"];
        std::fs::hard_link(from, &path).expect("a second name on one disk");
        Self {
            path,
            _folder: folder,
        }
    }

    /// Runs it, and returns what it prints.
    fn run_for(&self, arguments: &[&str]) -> String {
        let ran = Command::new(&self.path)
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .expect("it starts");
        let said = String::from_utf8(ran.stdout).expect("text");
        assert!(
            ran.status.success(),
            "{arguments:?}: {}\n{said}",
            ran.status
        );
        said
    }

    /// Runs it, prints what it says, and returns the last line.
    fn run(&self, arguments: &[&str]) -> String {
        let said = self.run_for(arguments);
        println!("{said}");
        said.lines().last().unwrap_or_default().to_owned()
    }
}
