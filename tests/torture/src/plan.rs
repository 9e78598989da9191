//! How much a run of everything tries.

use anyhow::{Context as _, Result};

use crate::load::{self, Load};
use crate::matrix;
use crate::part::Arguments;
use crate::place::StoreKind;
use crate::summary::Summary;

/// What is tried on one store.
#[derive(Clone, Copy, Debug)]
struct Share {
    store: StoreKind,
    /// Worlds for each cell of the matrix.
    trials: usize,
    load: Load,
}

/// How much is tried on a store, shortly or at length.
fn share(store: StoreKind, is_long: bool, seed: u64) -> Share {
    let (trials, jobs, kills) = match (is_long, store) {
        (false, _) => (3, 20_000, 10),
        // One writer at a time: the same load would take twice as long.
        (true, StoreKind::Sqlite) => (30, 200_000, 50),
        (true, StoreKind::Postgres) => (30, 300_000, 100),
    };
    Share {
        store,
        trials,
        load: Load {
            store,
            jobs,
            kills,
            crashes_max: load::CRASHES_MAX,
            seed,
        },
    }
}

/// Tries everything that the arguments ask for: `stores=<name>,<name>`, `seed=<n>`, `long=yes`. Stops
/// after the first store on which an invariant does not hold.
///
/// # Errors
/// If an argument is wrong, or something cannot be run to its end.
pub async fn all(arguments: &Arguments) -> Result<Summary> {
    let stores = arguments.get("stores").context("no stores=…")?;
    let (is_long, seed) = (
        arguments.get("long").is_some(),
        arguments.number("seed", 1)?,
    );
    let mut summary = Summary::default();
    for store in stores.split(',') {
        let Share {
            store,
            trials,
            load,
        } = share(store.parse()?, is_long, seed);
        println!("{store}: each cell {trials} times");
        summary.add(matrix::run(store, trials, None).await?);
        println!("{load:?}");
        let loaded = load::run(load).await?;
        println!("{store}: {}", loaded.line());
        summary.add(loaded);
        if summary.violations > 0 {
            break;
        }
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_tries_more_of_everything() {
        for store in [StoreKind::Sqlite, StoreKind::Postgres] {
            let (short, long) = (share(store, false, 1), share(store, true, 1));
            assert!(short.trials < long.trials && short.load.kills < long.load.kills);
            assert!(short.load.jobs < long.load.jobs);
        }
    }
}
