//! From the claim to the handler: C05 to C09, C16, C18, C24, and processes that freeze.

use anyhow::{Result, ensure};
use queue_runtime::JobState::{Cancelled, Done, Processing, Queued};
use queue_runtime::job::OutcomeKind::{Lost, Success};

use super::world::World;
use crate::jobs::Kind;
use crate::rig::Signal;

pub(super) async fn uncommitted(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Noop).await?;
    world.victim(1, &[]).await?;

    let record = world.record(job).await?;
    let seen = (record.state, record.attempts, record.lock_token);
    ensure!(
        seen == (Queued, 0, None),
        "it is not ready as before: {record:?}"
    );
    ensure!(
        world.attempts(job).await?.is_empty(),
        "an attempt that never was"
    );
    world.finish().await?;
    world.assert_job(job, Done, &[Success], &[1]).await
}

pub(super) async fn unheard(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Noop).await?;
    world.victim(1, &[]).await?;

    world.assert_first_lease(job).await?;
    ensure!(world.starts(job)?.is_empty(), "its handler started");
    world.finish().await?;
    world.assert_job(job, Done, &[Lost, Success], &[2]).await
}

pub(super) async fn unheard_twice(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Noop).await?;
    world.victim(1, &[]).await?;
    world.victim(1, &[]).await?;

    let record = world.record(job).await?;
    let seen = (record.state, record.attempts, record.crashes);
    ensure!(
        seen == (Processing, 2, 1),
        "not one crash after two claims: {record:?}"
    );
    world.finish().await?;
    world
        .assert_job(job, Done, &[Lost, Lost, Success], &[3])
        .await
}

pub(super) async fn due_jobs(world: &mut World) -> Result<()> {
    const JOBS: u64 = 1_000;
    let bulk = world.start("bulk", &["jobs=1000", "delay_ms=300"], None)?;
    world.rig.line(&bulk, "made").await?;
    let victim = world.start("work", &[], Some("claim.uncommitted:3"))?;
    world.died(&victim).await?;

    ensure!(world.total().await? == JOBS, "the sum has changed");
    let successor = world.start("work", &[], None)?;
    world
        .until("all are done", async |queue| {
            let counts = queue.counts().await?;
            ensure!(counts.total() == JOBS, "the sum has changed: {counts:?}");
            Ok(counts.of(Done) == JOBS)
        })
        .await?;
    world.rig.stop(&successor).await
}

pub(super) async fn handler_unpolled(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Noop).await?;
    world.victim(1, &[]).await?;

    world.assert_first_lease(job).await?;
    world.finish().await?;
    ensure!(world.starts(job)? == [2], "the first attempt started");
    world.assert_job(job, Done, &[Lost, Success], &[2]).await
}

pub(super) async fn before_effect(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Noop).await?;
    world.victim(1, &[]).await?;

    world.assert_first_lease(job).await?;
    world.finish().await?;
    ensure!(world.starts(job)? == [1, 2], "not two attempts");
    world.assert_job(job, Done, &[Lost, Success], &[2]).await
}

/// The process dies with the effect taken and the end of the job not stored: both attempts took it.
pub(super) async fn after_effect(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Noop).await?;
    world.victim(1, &[]).await?;

    world.assert_first_lease(job).await?;
    world.finish().await?;
    world.assert_job(job, Done, &[Lost, Success], &[1, 2]).await
}

pub(super) async fn booked_uncommitted(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Booked).await?;
    world.victim(1, &[]).await?;

    world.assert_first_lease(job).await?;
    ensure!(
        world.booked(job).await? == 0,
        "an effect without its commit"
    );
    world.finish().await?;
    ensure!(world.booked(job).await? == 1, "not one effect");
    world.assert_job(job, Done, &[Lost, Success], &[]).await
}

pub(super) async fn booked_committed(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Booked).await?;
    world.victim(1, &[]).await?;

    let ended = world.record(job).await?;
    ensure!(ended.state == Done, "committed, and not done: {ended:?}");
    world.finish().await?;
    ensure!(world.record(job).await? == ended, "it did not stay done");
    ensure!(world.booked(job).await? == 1, "not one effect");
    ensure!(world.starts(job)? == [1], "it ran again");
    world.assert_job(job, Done, &[Success], &[]).await
}

pub(super) async fn heartbeat_uncommitted(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Held).await?;
    let victim = world.start("work", &[], Some(world.point))?;
    world.rig.line(&victim, "holding").await?;
    let before = world.record(job).await?;
    world.died(&victim).await?;

    ensure!(world.record(job).await? == before, "something has changed");
    world.finish().await?;
    world.assert_job(job, Done, &[Lost, Success], &[2]).await
}

pub(super) async fn second_heartbeat_uncommitted(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Held).await?;
    let armed = format!("{}:2", world.point);
    let victim = world.start("work", &[], Some(&armed))?;
    world.rig.line(&victim, "holding").await?;
    world.died(&victim).await?;

    let mut after = world.record(job).await?;
    let claimed = after.started_at;
    let lease = after
        .locked_until
        .zip(claimed)
        .map(|(end, start)| end.since(start));
    ensure!(
        lease.is_some_and(|lease| lease > crate::part::LEASE),
        "the first renewal was committed, and the lease ends {lease:?} after the claim"
    );
    after.locked_until = None;
    world.assert_first_lease(job).await?;
    world.finish().await?;
    world.assert_job(job, Done, &[Lost, Success], &[2]).await
}

pub(super) async fn cancel_untold(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Held).await?;
    world.otherwise.push(job);
    let victim = world.start("work", &[], Some(world.point))?;
    world.rig.line(&victim, "holding").await?;
    let told = world.queue()?.cancel(job).await?;
    ensure!(told == Processing, "it was told to be {told}");
    world.died(&victim).await?;

    world.assert_first_lease(job).await?;
    world.finish().await?;
    world.assert_job(job, Cancelled, &[Lost], &[]).await
}

/// A process freezes in a handler; another finishes the job; the first goes on, and stops its handler.
pub(super) async fn frozen_in_a_handler(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Held).await?;
    let frozen = world.start("work", &[], None)?;
    world.rig.line(&frozen, "holding").await?;
    world.freeze_without_lock(&frozen).await?;
    let other = world.start("work", &[], None)?;
    world.until_is(job, Done).await?;
    let ended = world.record(job).await?;

    world.rig.signal(&frozen, Signal::Cont).await?;
    world.rig.line(&frozen, "dropped").await?;
    world.rig.stop(&frozen).await?;
    world.rig.stop(&other).await?;
    ensure!(
        world.record(job).await? == ended,
        "it did not stay as it was"
    );
    world.assert_job(job, Done, &[Lost, Success], &[2]).await
}

/// A process freezes with a result that it has not sent; another finishes the job; the first goes on,
/// and its result is refused.
pub(super) async fn frozen_with_a_result(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Noop).await?;
    let armed = format!("{}:freeze", world.point);
    let frozen = world.start("work", &["tell=lost"], Some(&armed))?;
    world.rig.froze(&frozen).await?;
    if world.is_locked().await? {
        return super::again();
    }
    let other = world.start("work", &[], None)?;
    world.until_is(job, Done).await?;
    let ended = world.record(job).await?;

    world.rig.signal(&frozen, Signal::Cont).await?;
    world.rig.line(&frozen, &format!("lost {job} 1")).await?;
    world.rig.stop(&frozen).await?;
    world.rig.stop(&other).await?;
    ensure!(
        world.record(job).await? == ended,
        "it did not stay as it was"
    );
    world.assert_job(job, Done, &[Lost, Success], &[1, 2]).await
}

/// A process freezes with a result that it has not sent; another runs the job again; the first goes
/// on meanwhile, and its result does not end that run.
pub(super) async fn late_result(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::HeldLate).await?;
    let armed = format!("{}:freeze", world.point);
    let frozen = world.start("work", &["tell=lost"], Some(&armed))?;
    world.rig.froze(&frozen).await?;
    if world.is_locked().await? {
        return super::again();
    }
    let other = world.start("work", &[], None)?;
    world.rig.line(&other, "holding").await?;

    world.rig.signal(&frozen, Signal::Cont).await?;
    world.rig.line(&frozen, &format!("lost {job} 1")).await?;
    world.assert_second_lease(job).await?;
    world.rig.tell(&other, "go").await?;
    world.until_is(job, Done).await?;
    world.rig.stop(&frozen).await?;
    world.rig.stop(&other).await?;
    world.assert_job(job, Done, &[Lost, Success], &[1, 2]).await
}
