//! What is done beside the street: rescue (C17), tables (C22), retention (C23).

use anyhow::{Result, ensure};
use queue_runtime::JobState::{Cancelled, Done, Queued};
use queue_runtime::job::OutcomeKind::{Lost, Success};
use queue_runtime::{JobId, JobRecord};

use super::world::World;
use crate::jobs::Kind;
use crate::part::LEASE;
use crate::rig::Signal;

/// A job that is done, and one whose worker was killed.
async fn done_and_lost(world: &mut World) -> Result<(JobRecord, JobId)> {
    let (done, lost) = (world.ask(Kind::Noop).await?, world.ask(Kind::Held).await?);
    let worker = world.start("work", &[], None)?;
    world.rig.line(&worker, "holding").await?;
    world.until_is(done, Done).await?;
    world.rig.kill(&worker).await?;
    Ok((world.record(done).await?, lost))
}

pub(super) async fn rescuer(world: &mut World) -> Result<()> {
    let (done, lost) = done_and_lost(world).await?;
    world.victim(1, &[]).await?;
    after_rescuers(world, done, lost).await
}

pub(super) async fn rescuers_twice(world: &mut World) -> Result<()> {
    let (done, lost) = done_and_lost(world).await?;
    world.victim(1, &[]).await?;
    world.victim(1, &[]).await?;
    after_rescuers(world, done, lost).await
}

async fn after_rescuers(world: &mut World, done: JobRecord, lost: JobId) -> Result<()> {
    world.assert_first_lease(lost).await?;
    world.finish().await?;
    ensure!(
        world.record(done.id).await? == done,
        "a final row was touched"
    );
    world.assert_job(lost, Done, &[Lost, Success], &[2]).await
}

/// A rescuer freezes for three leases with a job on its list that another one rescues meanwhile.
pub(super) async fn frozen_rescuer(world: &mut World) -> Result<()> {
    let (done, lost) = done_and_lost(world).await?;
    let armed = format!("{}:freeze", world.point);
    let frozen = world.start("work", &[], Some(&armed))?;
    world.rig.froze(&frozen).await?;
    if world.is_locked().await? {
        return super::again();
    }
    let other = world.start("work", &[], None)?;
    world.until_is(lost, Done).await?;
    let ended = world.record(lost).await?;
    world
        .until("three leases have passed", async |queue| {
            let now = queue.store().now().await?;
            Ok(ended
                .finished_at
                .is_some_and(|end| now.since(end) > 2 * LEASE))
        })
        .await?;
    world.rig.stop(&other).await?;

    world.rig.signal(&frozen, Signal::Cont).await?;
    let next = world.ask(Kind::Noop).await?;
    world.until_is(next, Done).await?;
    world.rig.stop(&frozen).await?;
    ensure!(
        world.record(lost).await? == ended,
        "a final row was touched"
    );
    ensure!(
        world.record(done.id).await? == done,
        "a final row was touched"
    );
    world.assert_job(lost, Done, &[Lost, Success], &[2]).await
}

/// A rescuer freezes with a job on its list that another one rescues, and runs when the first goes on.
pub(super) async fn late_rescuer(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::HeldTwice).await?;
    let killed = world.start("work", &[], None)?;
    world.rig.line(&killed, "holding").await?;
    world.rig.kill(&killed).await?;
    let armed = format!("{}:freeze", world.point);
    let frozen = world.start("work", &[], Some(&armed))?;
    world.rig.froze(&frozen).await?;
    if world.is_locked().await? {
        return super::again();
    }
    // It has no slot beside the job, so what comes after is for the one that goes on.
    let other = world.start("work", &["concurrency=1"], None)?;
    world.rig.line(&other, "holding").await?;

    world.rig.signal(&frozen, Signal::Cont).await?;
    let next = world.ask(Kind::Noop).await?;
    world.until_is(next, Done).await?;
    world.rig.stop(&frozen).await?;
    world.assert_second_lease(job).await?;
    world.rig.tell(&other, "go").await?;
    world.until_is(job, Done).await?;
    world.rig.stop(&other).await?;
    world.assert_job(job, Done, &[Lost, Success], &[2]).await
}

/// A process dies while it makes the tables; the next one brings them up to date.
pub(super) async fn migration(world: &mut World) -> Result<()> {
    dies_migrating(world, 1).await?;
    works(world).await
}

/// The same, in the second of several changes.
pub(super) async fn second_migration(world: &mut World) -> Result<()> {
    dies_migrating(world, 2).await?;
    works(world).await
}

pub(super) async fn migration_twice(world: &mut World) -> Result<()> {
    dies_migrating(world, 1).await?;
    dies_migrating(world, 1).await?;
    works(world).await
}

async fn dies_migrating(world: &mut World, nth: u32) -> Result<()> {
    let armed = format!("{}:{nth}", world.point);
    let victim = world.start("produce", &["line=produce"], Some(&armed))?;
    world.died(&victim).await
}

async fn works(world: &mut World) -> Result<()> {
    world.make().await?;
    ensure!(world.total().await? == 0, "new tables hold jobs");
    let job = world.ask(Kind::Asked).await?;
    world.finish().await?;
    world.assert_job(job, Done, &[Success], &[1]).await
}

/// A worker dies while it removes what is old: nothing is removed. Another removes it, and nothing
/// that is live.
pub(super) async fn prune(world: &mut World) -> Result<()> {
    let later = world.ask(Kind::Later).await?;
    let mut old = Vec::new();
    for _ in 0..5 {
        old.push(world.ask(Kind::Noop).await?);
    }
    let worker = world.start("work", &[], None)?;
    for job in &old {
        world.until_is(*job, Done).await?;
    }
    world.rig.stop(&worker).await?;
    let waiting = world.record(later).await?;
    world.victim(1, &["kept_ms=1"]).await?;

    ensure!(
        world.total().await? == 6,
        "a row of a transaction that was not committed is gone"
    );
    for job in &old {
        world.assert_job(*job, Done, &[Success], &[1]).await?;
    }
    let successor = world.start("work", &["kept_ms=1"], None)?;
    world
        .until("what is old is gone", async |queue| {
            Ok(queue.counts().await?.of(Done) == 0)
        })
        .await?;
    world.rig.stop(&successor).await?;
    world.pruned = old;
    ensure!(
        world.record(later).await? == waiting,
        "a live row was touched"
    );
    ensure!(waiting.state == Queued, "{waiting:?}");
    for job in &world.pruned {
        ensure!(
            world.attempts(*job).await?.is_empty(),
            "attempts of a job that is gone"
        );
    }
    world.otherwise.push(later);
    let called_off = world.queue()?.cancel(later).await?;
    ensure!(called_off == Cancelled, "it is {called_off}");
    Ok(())
}
