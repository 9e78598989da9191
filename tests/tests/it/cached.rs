//! A refresh job and the cache entry that it keeps.

use std::sync::Mutex;
use std::time::Duration;

use queue_runtime::job::OutcomeKind;
use queue_runtime::{Data, EnqueueError, JobError, JobState, Refreshed, Worker, job};

use crate::world::World;

/// The application's own table: the version and name of user 7, if there is one.
type Users = Data<Mutex<Option<(u64, String)>>>;

fn users(version: u64, name: &str) -> Users {
    Data::new(Mutex::new(Some((version, name.to_owned()))))
}

#[job(cache = "user:{user_id}", version = "version", retries = 0)]
async fn refresh_user(
    user_id: i64,
    version: u64,
    #[inject] users: Users,
) -> Result<Refreshed<String>, JobError> {
    assert_eq!((user_id, version > 0), (7, true));
    Ok(match users.lock().expect("no panic inside").clone() {
        Some((version, name)) => Refreshed::at(version, name),
        None => Refreshed::gone(),
    })
}

fn cached(world: &World) -> Option<(u64, String)> {
    world
        .queue
        .cache()
        .get::<String>("user:7")
        .map(|cached| (cached.version, cached.value))
}

fn worker(world: &World, users: &Users) -> queue_runtime::WorkerBuilder {
    Worker::builder(&world.queue)
        .job::<RefreshUserJob>()
        .shared(users.clone())
}

#[tokio::test]
async fn the_returned_value_is_published() {
    let world = World::new();
    let users = users(3, "Ada");
    let sent = refresh_user::enqueue(&world.queue, 7, 3)
        .await
        .expect("enqueued");
    world.run(worker(&world, &users), &[sent.id]).await;

    assert_eq!(cached(&world), Some((3, "Ada".to_owned())));
}

#[tokio::test]
async fn a_stale_refresh_is_superseded_without_using_an_attempt() {
    let world = World::new();
    let users = users(4, "Grace");
    let old = refresh_user::enqueue(&world.queue, 7, 3)
        .await
        .expect("enqueued");
    let new = refresh_user::enqueue(&world.queue, 7, 4)
        .await
        .expect("enqueued");
    world.run(worker(&world, &users), &[old.id, new.id]).await;

    let stale = world.job(old.id).await;
    assert_eq!((stale.state, stale.attempts), (JobState::Done, 0));
    assert_eq!(stale.last_outcome, Some(OutcomeKind::Superseded));
    assert_eq!(
        world.job(new.id).await.last_outcome,
        Some(OutcomeKind::Success)
    );
    assert_eq!(cached(&world), Some((4, "Grace".to_owned())));
}

#[tokio::test]
async fn a_read_from_a_lagging_replica_is_tried_again_and_never_published() {
    let world = World::new();
    let users = users(3, "old");
    let sent = refresh_user::enqueue(&world.queue, 7, 4)
        .await
        .expect("enqueued");
    let catches_up = async || {
        let job = world.job(sent.id).await;
        if job.snoozes == 2 && !job.state.is_final() {
            assert_eq!(cached(&world), None);
            *users.lock().expect("no panic inside") = Some((4, "new".to_owned()));
        }
        job.state.is_final()
    };
    world
        .run_until(worker(&world, &users), catches_up)
        .await
        .expect("ends well");

    assert_eq!(cached(&world), Some((4, "new".to_owned())));
    let job = world.job(sent.id).await;
    assert_eq!((job.attempts, job.snoozes >= 2), (1, true));
}

#[tokio::test]
async fn a_deleted_row_leaves_no_value_behind() {
    let world = World::new();
    let users = users(3, "Ada");
    let sent = refresh_user::enqueue(&world.queue, 7, 3)
        .await
        .expect("enqueued");
    world.run(worker(&world, &users), &[sent.id]).await;
    *users.lock().expect("no panic inside") = None;
    let sent = refresh_user::enqueue(&world.queue, 7, 4)
        .await
        .expect("enqueued");
    world.run(worker(&world, &users), &[sent.id]).await;

    assert_eq!(cached(&world), None);
}

#[tokio::test]
async fn a_value_is_stale_after_a_minute_and_gone_after_five() {
    let world = World::new();
    let users = users(3, "Ada");
    let sent = refresh_user::enqueue(&world.queue, 7, 3)
        .await
        .expect("enqueued");
    world.run(worker(&world, &users), &[sent.id]).await;
    let is_stale = || {
        world
            .queue
            .cache()
            .get::<String>("user:7")
            .map(|cached| cached.is_stale)
    };

    assert_eq!(is_stale(), Some(false));
    world.seam.advance(Duration::from_secs(60));
    assert_eq!(is_stale(), Some(true));
    world.seam.advance(Duration::from_mins(4));
    assert_eq!(is_stale(), None);
}

#[job(cache = "n:{id}", version = "version")]
async fn refresh_signed(id: i64, version: i64) -> Refreshed<i64> {
    Refreshed::at(version.unsigned_abs(), id)
}

#[tokio::test]
async fn a_version_below_zero_is_refused_and_nothing_is_stored() {
    let world = World::new();
    let error = refresh_signed::enqueue(&world.queue, 1, -1)
        .await
        .expect_err("below zero");
    assert!(
        matches!(
            error,
            EnqueueError::OutOfRange {
                what: "cache version",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(
        world
            .queue
            .counts()
            .await
            .expect("the store answers")
            .total(),
        0
    );
}

#[tokio::test]
async fn an_announced_version_makes_the_older_value_stale_at_once() {
    let world = World::new();
    let users = users(3, "Ada");
    let sent = refresh_user::enqueue(&world.queue, 7, 3)
        .await
        .expect("enqueued");
    world.run(worker(&world, &users), &[sent.id]).await;

    refresh_user::enqueue(&world.queue, 7, 4)
        .await
        .expect("enqueued");

    let seen = world
        .queue
        .cache()
        .get::<String>("user:7")
        .expect("it is still there");
    assert_eq!((seen.version, seen.is_stale), (3, true));
}

#[job(cache = "user:{user_id}", version = "version", retries = 0)]
async fn fails_to_refresh(user_id: i64, version: u64) -> Result<Refreshed<String>, JobError> {
    Err(JobError::permanent(format!(
        "user {user_id} at {version}: the database is away"
    )))
}

#[tokio::test]
async fn a_refresh_that_fails_leaves_the_entry_as_it_was() {
    let world = World::new();
    let users = users(3, "Ada");
    let sent = refresh_user::enqueue(&world.queue, 7, 3)
        .await
        .expect("enqueued");
    world.run(worker(&world, &users), &[sent.id]).await;

    let sent = fails_to_refresh::enqueue(&world.queue, 7, 4)
        .await
        .expect("enqueued");
    let worker = worker(&world, &users).job::<FailsToRefreshJob>();
    world.run(worker, &[sent.id]).await;

    assert_eq!(world.job(sent.id).await.state, JobState::DeadLetter);
    assert_eq!(cached(&world), Some((3, "Ada".to_owned())));
}
