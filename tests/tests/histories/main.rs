//! Random histories, played on the store in memory and on SQLite step by step: every reply is the
//! same, every record is the same at the end, and the rules of a job's life hold at every step.
//!
//! A failure prints the seed and the shortest history that shows it.

mod steps;
mod world;
mod rules;

use std::env;
use std::fmt::Write as _;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use queue_runtime::seam::{Seam as _, SystemSeam};

use self::steps::Step;
use self::world::World;

/// Histories for each run of the test; more by `HISTORIES=1000`.
const HISTORIES: u64 = 64;

#[test]
fn memory_and_sqlite_tell_the_same_story() {
    let number = |name| {
        env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let count = number("HISTORIES").unwrap_or(HISTORIES);
    let first = number("HISTORIES_SEED").unwrap_or_else(|| SystemSeam::new().random() >> 16);
    for seed in first..first + count {
        if let Err(story) = explore(seed) {
            panic!("HISTORIES_SEED={seed} HISTORIES=1 shows it again:\n{story}");
        }
    }
}

/// Plays one history made from a seed; shrinks it if it breaks something.
fn explore(seed: u64) -> Result<(), String> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: 1,
        max_shrink_iters: 2_000,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let played = runner.run(&steps::history(), |steps| {
        play(&steps).map_err(TestCaseError::fail)
    });
    played.map_err(|error| match error {
        TestError::Fail(reason, steps) => {
            let mut story = format!("{reason}\nafter these steps:\n");
            for step in steps {
                let _ = writeln!(story, "  {step:?}");
            }
            story
        }
        TestError::Abort(reason) => reason.to_string(),
    })
}

fn play(steps: &[Step]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut world = World::open().await?;
        for step in steps {
            let step_result = world.play(step).await;
            step_result.map_err(|broken| format!("{broken}\nat {step:?}"))?;
        }
        world.end().await
    })
}
