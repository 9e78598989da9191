//! Enqueues: C01 to C04.

use anyhow::{Context as _, Result, ensure};
use queue_runtime::JobState::Done;
use queue_runtime::job::OutcomeKind::Success;

use super::world::World;
use crate::ledger::{self, Entry};

/// Arguments of a producer whose requests have idempotency keys.
const ASKED: [&str; 2] = ["line=produce", "kind=asked"];

/// A producer dies in its only request, and another makes that again.
async fn repeated(world: &mut World, stored: u64) -> Result<()> {
    let victim = world.start("produce", &ASKED, Some(world.point))?;
    world.rig.tell(&victim, "1").await?;
    world.died(&victim).await?;
    ensure!(
        world.total().await? == stored,
        "not {stored} jobs are stored"
    );

    let successor = world.start("produce", &ASKED, None)?;
    world.rig.tell(&successor, "1").await?;
    world.rig.line(&successor, "made").await?;
    world.rig.kill(&successor).await?;
    let (mut asked, mut accepted) = (None, Vec::new());
    for (_, entry) in ledger::read(world.rig.folder())? {
        match entry {
            Entry::Intent(_, _, job) => asked = asked.or(Some(job)),
            Entry::Accepted(_, job, duplicate) => accepted.push((job, duplicate)),
            _ => {}
        }
    }
    let job = asked.context("the producer asked for nothing")?;
    let last = accepted.last().copied();
    ensure!(
        last == Some((job, true)),
        "the repeat was not answered with the first job {job}: {accepted:?}"
    );
    ensure!(world.total().await? == 1, "one request, and not one job");
    world.finish().await?;
    world.assert_job(job, Done, &[Success], &[1]).await
}

pub(super) async fn unsent(world: &mut World) -> Result<()> {
    repeated(world, 0).await
}

pub(super) async fn unanswered(world: &mut World) -> Result<()> {
    repeated(world, 1).await
}

pub(super) async fn staged(world: &mut World) -> Result<()> {
    let victim = world.start("bulk", &["jobs=1", "in_tx=yes"], Some(world.point))?;
    world.died(&victim).await?;
    let rows = world.rig.place.orders(world.queue()?).await?;
    ensure!(
        (world.total().await?, rows) == (0, 0),
        "something of a transaction that was not committed: {rows} rows"
    );

    let successor = world.start("bulk", &["jobs=1", "in_tx=yes"], None)?;
    world.rig.line(&successor, "made").await?;
    let rows = world.rig.place.orders(world.queue()?).await?;
    ensure!(
        (world.total().await?, rows) == (1, 1),
        "not the whole transaction"
    );
    world.finish().await
}

/// A bulk of several statements is stored as a whole or not at all.
async fn halfway(world: &mut World, arguments: &[&str]) -> Result<()> {
    let victim = world.start("bulk", arguments, Some(world.point))?;
    world.died(&victim).await?;
    ensure!(world.total().await? == 0, "a part of a bulk is stored");

    let successor = world.start("bulk", arguments, None)?;
    world.rig.line(&successor, "made").await?;
    ensure!(world.total().await? == 1_100, "not the whole bulk");
    world.finish().await?;
    let counts = world.queue()?.counts().await?;
    ensure!(counts.of(Done) == 1_100, "not all have run: {counts:?}");
    Ok(())
}

pub(super) async fn own_bulk(world: &mut World) -> Result<()> {
    halfway(world, &["jobs=1100"]).await
}

pub(super) async fn callers_bulk(world: &mut World) -> Result<()> {
    halfway(world, &["jobs=1100", "in_tx=yes"]).await
}
