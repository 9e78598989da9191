//! Random histories, played on a store and on the store in memory step by step: every reply is
//! the same, every record is the same at the end, and the rules of a job's life hold at every
//! step.
//!
//! A failure prints the seed and the shortest history that shows it. A store may count its lease
//! tokens as it likes: they are compared by the claim that they came from.

mod steps;
mod offers;
mod tokens;
mod world;
mod tally;
mod rules;

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use queue_runtime::seam::{Seam as _, SystemSeam};
use queue_testkit::conformance::{
    Fixture, MemoryFixture, PostgresFixture, SqliteFixture, is_skipped,
};

use self::steps::Step;
use self::world::World;

/// Compares a store with the one in memory, in a module named after the store. The histories are
/// shared out among the tests, which run side by side.
macro_rules! histories {
    ($store:ident, $fixture:expr $(; $($also:ident),+)?) => {
        mod $store {
            use super::*;

            const PARTS: u64 = 1 $($(+ { let _ = stringify!($also); 1 })+)?;

            #[test]
            fn tells_the_same_story_as_memory() {
                compare(stringify!($store), HISTORIES / PARTS, || $fixture);
            }

            $($(
                #[test]
                fn $also() {
                    compare(stringify!($store), HISTORIES / PARTS, || $fixture);
                }
            )+)?
        }
    };
}

histories!(sqlite, SqliteFixture::new());
// Each history has connections of its own, on which every statement is planned anew.
histories!(
    postgres, PostgresFixture::recycled();
    tells_another_hundred_stories_alike,
    tells_a_third_hundred_stories_alike
);

/// Histories for each store.
const HISTORIES: u64 = 300;

/// Plays so many histories, more by `HISTORIES=1000`, and shows the first that tells the stores
/// apart.
fn compare<F: Fixture>(store: &'static str, count: u64, fixture: impl Fn() -> F) {
    if is_skipped(&fixture()) {
        return;
    }
    let number = |name| {
        env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let count = number("HISTORIES").unwrap_or(count);
    let first = number("HISTORIES_SEED").unwrap_or_else(|| SystemSeam::new().random() >> 16);
    for seed in first..first + count {
        if let Err(story) = explore(seed, |steps| play(store, fixture(), steps)) {
            panic!("HISTORIES_SEED={seed} HISTORIES=1 shows it again:\n{story}");
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the system gives a test its runtime");
    let dropped = runtime.block_on(PostgresFixture::drop_recycled());
    dropped.expect("the schemas are ours to drop");
}

/// A history that reaches little proves little. Played on two stores in memory, from fixed seeds.
#[test]
fn the_histories_reach_everything_that_is_to_be_compared() {
    let mut reached = BTreeSet::new();
    for seed in 0..HISTORIES {
        let played = explore(seed, |steps| {
            reached.extend(play("memory", MemoryFixture, steps)?);
            Ok(())
        });
        played.expect("two stores in memory are alike");
    }
    let missed = tally::missing(&reached);
    assert!(missed.is_empty(), "never reached: {missed:#?}");
}

/// Plays one history made from a seed; shrinks it if it breaks something.
fn explore<T>(seed: u64, mut play: impl FnMut(&[Step]) -> Result<T, String>) -> Result<(), String> {
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
    let play = std::cell::RefCell::new(&mut play);
    let played = runner.run(&steps::history(), |steps| {
        let mut play = play.borrow_mut();
        play(&steps).map(drop).map_err(TestCaseError::fail)
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

/// Plays a history on fresh stores, and returns what it has reached.
fn play(
    store: &'static str,
    fixture: impl Fixture,
    steps: &[Step],
) -> Result<BTreeSet<String>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let mut world = runtime.block_on(World::open(store, fixture))?;
    let played = runtime.block_on(async {
        for step in steps {
            let step_result = world.play(step).await;
            step_result.map_err(|broken| format!("{broken}\nat {step:?}"))?;
        }
        world.end().await
    });
    runtime.block_on(world.close());
    played.map(|()| world.reached())
}
