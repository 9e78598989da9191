//! From the result to its record: C10 to C15, C21, and a job that waits behind another.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use queue_runtime::JobState::{DeadLetter, Done, Processing, Queued};
use queue_runtime::job::OutcomeKind::{Lost, Retry, Success};
use queue_runtime::{JobId, JobRecord};

use super::world::World;
use crate::jobs::{Kind, PAUSE};
use crate::rig::Signal;

/// The result is not stored, so the job runs again.
pub(super) async fn not_stored(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Noop).await?;
    world.victim(1, &[]).await?;

    world.assert_first_lease(job).await?;
    world.finish().await?;
    world.assert_job(job, Done, &[Lost, Success], &[1, 2]).await
}

pub(super) async fn unheard(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Noop).await?;
    world.victim(1, &[]).await?;

    let ended = world.record(job).await?;
    ensure!(ended.state == Done, "its end was committed: {ended:?}");
    world.finish().await?;
    ensure!(world.record(job).await? == ended, "it did not stay done");
    world.assert_job(job, Done, &[Success], &[1]).await
}

/// Of many results some batches are stored. Those jobs are done; others run again if they ran.
pub(super) async fn some_batches(world: &mut World) -> Result<()> {
    let jobs = many(world).await?;
    world.victim(2, &["concurrency=4"]).await?;
    let ended = done(world, &jobs).await?;
    rest_after(world, &jobs, ended).await
}

pub(super) async fn some_batches_twice(world: &mut World) -> Result<()> {
    let jobs = many(world).await?;
    world.victim(2, &["concurrency=4"]).await?;
    let first = done(world, &jobs).await?;
    // Its first batch is stored, its second is not; a rescue's batch would count as one as well.
    world.until_expired().await?;
    world.victim(4, &["concurrency=4"]).await?;
    let ended = done(world, &jobs).await?;
    ensure!(
        first
            .iter()
            .all(|(job, record)| ended.get(job) == Some(record)),
        "what was done did not stay done"
    );
    ensure!(
        ended.len() > first.len(),
        "the second worker recorded nothing"
    );
    rest_after(world, &jobs, ended).await
}

async fn many(world: &mut World) -> Result<Vec<JobId>> {
    let mut jobs = Vec::new();
    for _ in 0..60 {
        jobs.push(world.ask(Kind::Pause).await?);
    }
    Ok(jobs)
}

async fn done(world: &World, jobs: &[JobId]) -> Result<BTreeMap<JobId, JobRecord>> {
    let mut done = BTreeMap::new();
    for job in jobs {
        let record = world.record(*job).await?;
        if record.state == Done {
            done.insert(*job, record);
        }
    }
    Ok(done)
}

async fn rest_after(
    world: &mut World,
    jobs: &[JobId],
    ended: BTreeMap<JobId, JobRecord>,
) -> Result<()> {
    ensure!(!ended.is_empty(), "no batch was stored before the last");
    let mut ran = Vec::new();
    for job in jobs.iter().filter(|job| !ended.contains_key(job)) {
        if !world.effects(*job)?.is_empty() {
            ran.push(*job);
        }
    }
    ensure!(!ran.is_empty(), "the last batch was empty");
    world.finish().await?;
    for job in jobs {
        match ended.get(job) {
            Some(before) => {
                ensure!(world.record(*job).await? == *before, "it did not stay done");
                let effects = world.effects(*job)?.len();
                let attempts = world.attempts(*job).await?.len();
                ensure!(
                    attempts >= effects && effects >= 1,
                    "{effects} effects in {attempts} attempts"
                );
            }
            None => {
                let again = world.effects(*job)?.len();
                let expected = 1 + usize::from(ran.contains(job));
                ensure!(again >= expected, "job {job} did not run again");
            }
        }
    }
    Ok(())
}

/// A retry is not stored: the job is rescued, and its second attempt succeeds.
pub(super) async fn retry_not_stored(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Flaky).await?;
    world.victim(1, &[]).await?;

    world.assert_first_lease(job).await?;
    world.finish().await?;
    world.assert_job(job, Done, &[Lost, Success], &[2]).await
}

/// A retry is stored: it is tried again once, when the store says.
pub(super) async fn retry_stored(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Flaky).await?;
    world.victim(1, &[]).await?;

    let waiting = world.record(job).await?;
    ensure!(
        (waiting.state, waiting.attempts) == (Queued, 1),
        "no retry: {waiting:?}"
    );
    let failed = world.attempts(job).await?;
    let paused = failed[0].finished_at.map(|end| waiting.run_at.since(end));
    ensure!(
        paused.is_some_and(|paused| paused >= PAUSE * 3 / 4 && paused <= PAUSE * 2),
        "the retry is due {paused:?} after the failure, and not {PAUSE:?}"
    );
    world.finish().await?;
    world.assert_job(job, Done, &[Retry, Success], &[2]).await?;
    let attempts = world.attempts(job).await?;
    ensure!(
        attempts[1].started_at >= waiting.run_at,
        "it ran before it was due"
    );
    Ok(())
}

/// A dead letter is not stored: the attempt was the last, so the crash is the end.
pub(super) async fn dead_letter_not_stored(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Failing).await?;
    world.victim(3, &[]).await?;

    let record = world.record(job).await?;
    ensure!(
        (record.state, record.attempts) == (Processing, 3),
        "{record:?}"
    );
    world.finish().await?;
    in_one_place(world, job).await?;
    world
        .assert_job(job, DeadLetter, &[Retry, Retry, Lost], &[])
        .await
}

pub(super) async fn dead_letter_stored(world: &mut World) -> Result<()> {
    let job = world.ask(Kind::Failing).await?;
    world.victim(3, &[]).await?;

    let ended = world.record(job).await?;
    ensure!(ended.state == DeadLetter, "{ended:?}");
    world.finish().await?;
    ensure!(world.record(job).await? == ended, "it did not stay dead");
    in_one_place(world, job).await?;
    world
        .assert_job(job, DeadLetter, &[Retry, Retry, Retry], &[])
        .await
}

async fn in_one_place(world: &World, job: JobId) -> Result<()> {
    let dead = world.queue()?.dead_letters(10).await?;
    let found = (
        world.total().await?,
        dead.len(),
        dead.first().map(|dead| dead.id),
    );
    ensure!(
        found == (1, 1, Some(job)),
        "not in exactly one place: {found:?}"
    );
    Ok(())
}

/// A worker that stops dies before it has recorded what finished meanwhile.
pub(super) async fn unflushed(world: &mut World) -> Result<()> {
    let before = world.ask(Kind::Noop).await?;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(world.ask(Kind::Held).await?);
    }
    let victim = world.start("work", &[], Some(world.point))?;
    for n in 1..5 {
        world.rig.line(&victim, &format!("holding {n}")).await?;
    }
    world.until_is(before, Done).await?;
    let recorded = world.record(before).await?;
    world.rig.line(&victim, "ready").await?;
    world.rig.signal(&victim, Signal::Term).await?;
    world.rig.line(&victim, "stopping").await?;
    world.rig.tell(&victim, "go").await?;
    world.died(&victim).await?;

    let mut ran = Vec::new();
    for job in &held {
        ran.push(world.effects(*job)?.len());
    }
    ensure!(ran.contains(&1), "nothing finished meanwhile: {ran:?}");
    world.finish().await?;
    ensure!(
        world.record(before).await? == recorded,
        "what was recorded ran again"
    );
    for (job, ran) in held.into_iter().zip(ran) {
        let effects: &[u32] = if ran == 1 { &[1, 2] } else { &[2] };
        world
            .assert_job(job, Done, &[Lost, Success], effects)
            .await?;
    }
    world.assert_job(before, Done, &[Success], &[1]).await
}

/// The end of a job and the turn of the one behind it are stored together or not at all.
pub(super) async fn promotion(world: &mut World) -> Result<()> {
    let first = world.ask(Kind::Behind).await?;
    let victim = world.start("work", &[], Some(world.point))?;
    world.rig.line(&victim, "holding").await?;
    let second = world.ask(Kind::Behind).await?;
    let waiting = world.record(second).await?;
    ensure!(
        (waiting.state, waiting.dedupe_slot) == (Queued, 1),
        "{waiting:?}"
    );
    world.rig.tell(&victim, "go").await?;
    world.died(&victim).await?;

    world.assert_first_lease(first).await?;
    ensure!(
        world.record(second).await? == waiting,
        "the one behind has its turn already"
    );
    world.finish().await?;
    world
        .assert_job(first, Done, &[Lost, Success], &[1, 2])
        .await?;
    world.assert_job(second, Done, &[Success], &[1]).await
}
