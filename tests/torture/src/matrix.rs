//! The crash matrix: at each point of a job's life a process dies, and what must hold afterwards is
//! asserted, for that point, on each store.
//!
//! A trial is a world of its own. A point that the process did not come to fails its cell. After the
//! assertions of a cell the checker evaluates every invariant over its world.

mod world;
mod enqueue;
mod claim;
mod settle;
mod upkeep;
#[cfg(test)]
mod tests;

use std::fmt;

use anyhow::{Context as _, Result};
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{self, StreamExt as _};

use self::world::World;
use crate::place::StoreKind;
use crate::summary::Summary;

/// Worlds at the same time.
const AT_ONCE: usize = 4;

/// How often a trial is begun anew whose process froze with the lock of a file, by accident.
const AGAIN_MAX: usize = 10;

/// A row of the matrix.
struct Cell {
    /// Its number; a letter tells the cells of one number apart.
    label: &'static str,
    point: &'static str,
    /// What must hold afterwards.
    holds: &'static str,
    run: fn(&mut World) -> LocalBoxFuture<'_, Result<()>>,
    /// Whether the trial begins before the tables are made.
    is_bare: bool,
    /// The only store that has the point so often.
    only: Option<StoreKind>,
}

/// Makes rows: label, point, the trial, what must hold.
macro_rules! cells {
    ($($label:literal $point:literal $file:ident::$run:ident $holds:literal;)*) => {
        [$(Cell {
            label: $label,
            point: $point,
            holds: $holds,
            run: |world| Box::pin($file::$run(world)),
            is_bare: false,
            only: None,
        }),*]
    };
}

/// Every cell. C19 (schedules) and C20 (outbox) have nothing to die in yet.
fn cells() -> Vec<Cell> {
    let street = cells! {
        "C01" "enqueue.unsent" enqueue::unsent "nothing stored; the repeat makes one job";
        "C02" "enqueue.staged" enqueue::staged "neither the caller's row nor the job";
        "C03" "enqueue.unanswered" enqueue::unanswered "one job; the repeat is answered with it";
        "C04" "insert.halfway" enqueue::own_bulk "all of the bulk or nothing";
        "C04t" "insert.halfway" enqueue::callers_bulk "all of the bulk or nothing, in a transaction";
        "C05" "claim.uncommitted" claim::uncommitted "ready, no attempt";
        "C06" "claim.unheard" claim::unheard "claimed anew after its lease, one crash";
        "C06d" "claim.unheard" claim::unheard_twice "the same twice: two crashes";
        "C07" "handler.unpolled" claim::handler_unpolled "no effect of the first attempt";
        "C08" "handler.before_effect" claim::before_effect "one effect in total";
        "C09" "handler.after_effect" claim::after_effect "an effect of each attempt";
        "C09t" "handler.uncommitted" claim::booked_uncommitted "one transactional effect, of the second attempt";
        "C09u" "handler.committed" claim::booked_committed "one transactional effect, no second attempt";
        "C10" "settle.unsent" settle::not_stored "an effect of each attempt";
        "C11" "settle.uncommitted" settle::not_stored "an effect of each attempt";
        "C12" "settle.unheard" settle::unheard "one effect, final, no second attempt";
        "C13" "settle.uncommitted" settle::some_batches "stored batches final, the others again";
        "C13d" "settle.uncommitted" settle::some_batches_twice "the same twice";
        "C14" "settle.requeued" settle::retry_not_stored "no retry; rescued, then done";
        "C14s" "settle.unheard" settle::retry_stored "one retry, when the store says";
        "C15" "settle.uncommitted" settle::dead_letter_not_stored "a dead letter by the crash, once";
        "C15s" "settle.unheard" settle::dead_letter_stored "a dead letter, once";
        "C16" "heartbeat.uncommitted" claim::heartbeat_uncommitted "the lease as before";
        "C16s" "heartbeat.uncommitted" claim::second_heartbeat_uncommitted "the lease as extended before";
        "C17" "rescue.decided" upkeep::rescuer "rescued by a peer; no final row touched";
        "C17d" "rescue.decided" upkeep::rescuers_twice "the same after two rescuers";
        "C17f" "rescue.decided" upkeep::frozen_rescuer "a late rescue is refused";
        "C17g" "rescue.decided" upkeep::late_rescuer "a late rescue does not take the next run";
        "C18" "claim.uncommitted" claim::due_jobs "all due jobs run; the sum is constant";
        "C18p" "promote.uncommitted" settle::promotion "the one behind waits until the end is stored";
        "C21" "shutdown.unflushed" settle::unflushed "only what was not recorded runs again";
        "C23" "prune.uncommitted" upkeep::prune "nothing gone; later, nothing live gone";
        "C24" "cancel.untold" claim::cancel_untold "cancelled, once";
        "F1" "(frozen in a handler)" claim::frozen_in_a_handler "the late handler is stopped";
        "F2" "settle.unsent" claim::frozen_with_a_result "the late result is refused";
        "F3" "settle.unsent" claim::late_result "the late result does not end the next run";
    };
    let tables = cells! {
        "C22a" "migrate.begun" upkeep::migration "the next start makes the tables";
        "C22b" "migrate.changed" upkeep::migration "the next start makes the tables";
        "C22c" "migrate.recorded" upkeep::migration "the next start makes the tables";
        "C22d" "migrate.committed" upkeep::migration "the next start makes the tables";
        "C22e" "migrate.changed" upkeep::migration_twice "the same after two that died";
    };
    let second = cells! {
        "C22f" "migrate.changed" upkeep::second_migration "the next start makes the rest";
        "C22g" "migrate.recorded" upkeep::second_migration "the next start makes the rest";
    };
    let bare = |cell| Cell {
        is_bare: true,
        ..cell
    };
    let postgres = |cell| Cell {
        only: Some(StoreKind::Postgres),
        ..bare(cell)
    };
    let tables = tables.into_iter().map(bare);
    street
        .into_iter()
        .chain(tables)
        .chain(second.into_iter().map(postgres))
        .collect()
}

/// A trial that says nothing, since a process froze where it could not be left.
#[derive(Debug)]
struct Again;

impl fmt::Display for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the process froze with the lock of the file")
    }
}

fn again() -> Result<()> {
    Err(anyhow::Error::msg(Again))
}

/// Tries every cell on a store, so many times each, or only those of a label; prints a table.
///
/// # Errors
/// If this program was built without points to die at.
pub async fn run(store: StoreKind, trials: usize, only: Option<&str>) -> Result<Summary> {
    anyhow::ensure!(
        cfg!(feature = "failpoints"),
        "this program was built without the feature `failpoints`"
    );
    let cells: Vec<Cell> = cells()
        .into_iter()
        .filter(|cell| cell.only.is_none_or(|of| of == store))
        .filter(|cell| only.is_none_or(|label| cell.label == label))
        .collect();
    let mut summary = Summary {
        cells: cells.len(),
        trials: cells.len() * trials,
        ..Summary::default()
    };
    let tried = cells.iter().flat_map(|cell| (0..trials).map(move |_| cell));
    let tried = stream::iter(tried).map(async |cell| (cell.label, trial(cell, store).await));
    let tried: Vec<_> = tried.buffered(AT_ONCE).collect().await;
    for cell in &cells {
        let failed: Vec<_> = tried
            .iter()
            .filter(|(label, _)| *label == cell.label)
            .filter_map(|(_, done)| done.as_ref().err())
            .collect();
        summary.violations += failed.len();
        let verdict = match failed.len() {
            0 => "ok".to_owned(),
            count => format!("FAILED {count} of {trials}"),
        };
        println!(
            "{:<5} {:<24} {store:<9} {verdict:<8} {}",
            cell.label, cell.point, cell.holds
        );
        for error in failed {
            println!("  {error:#}");
        }
    }
    Ok(summary)
}

/// Tries a cell in a world of its own.
async fn trial(cell: &Cell, store: StoreKind) -> Result<()> {
    for _ in 0..AGAIN_MAX {
        let mut world = World::bare(store, cell.point)?;
        let done = held(cell, &mut world).await;
        let done = match done {
            Err(error) if !error.is::<Again>() => {
                let told = world.tell().await;
                Err(error).context(told)
            }
            done => done,
        };
        let ended = world.end().await;
        match done {
            Err(error) if error.is::<Again>() => continue,
            done => return done.and(ended),
        }
    }
    Err(anyhow::Error::msg(Again))
}

async fn held(cell: &Cell, world: &mut World) -> Result<()> {
    if !cell.is_bare {
        world.make().await?;
    }
    (cell.run)(world).await?;
    world.check().await
}
