//! Processes that are killed, frozen and started again around one SQLite file, and what must
//! hold afterwards. The audit reads the store and a ledger that handlers append to.
#![allow(
    clippy::disallowed_methods,
    reason = "reads the output of real processes, and bounds how long it waits for them"
)]

mod audit;
mod child;
mod frozen;
mod rig;

use self::rig::{Rig, Wait};

/// Worker processes beside one another.
const WORKERS: usize = 4;

/// Faults in one run, and the requests that are made before each.
const FAULTS: u64 = 24;
const REQUESTS: u64 = 60;

/// The seed of the run: `QUEUE_CRASH_SEED`, or one.
fn seed() -> u64 {
    let given = std::env::var("QUEUE_CRASH_SEED").ok();
    given.map_or(1, |seed| seed.parse().expect("a number as the seed"))
}

#[tokio::test]
async fn no_accepted_job_is_lost_or_ends_twice_whatever_is_killed() {
    let seed = seed();
    println!("QUEUE_CRASH_SEED={seed}");
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut rig = Rig::new();
    rig.start("produce");
    for _ in 0..WORKERS {
        rig.start("work");
    }

    for _ in 0..FAULTS {
        rig.supply(REQUESTS).await;
        rig.wait_for_effects(dice.usize(5..40)).await;
        let victim = dice.usize(0..=WORKERS);
        match dice.u8(0..4) {
            0 if victim > 0 => {
                rig.freeze(victim);
                rig.wait(&Wait::Rescue).await;
                rig.thaw(victim);
            }
            _ => rig.kill_and_start_again(victim).await,
        }
    }

    rig.wait_until_all_is_final().await;
    rig.stop_workers_from(1).await;
    audit::check(&rig, FAULTS * REQUESTS).await;
}
