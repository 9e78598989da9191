//! Group commit, isolation of bad operations, loss of the connection, closing.

use futures_util::future::join_all;
use sqlx::Executor;

use super::world::{World, done, request};
use crate::error::StoreErrorKind;
use crate::job::{JobState, JobType, Settled};
use crate::store::sqlite::{SqliteOptions, SqliteStore};
use crate::store::{Admin, Inserted, Store};

/// Makes every insert of a job of this type fail inside SQLite.
async fn poison(world: &World, job_type: &str) {
    let sql = format!(
        "create trigger poison before insert on queue_jobs when new.job_type = '{job_type}' \
         begin select raise(abort, 'poisoned'); end"
    );
    let mut conn = world.connection().await;
    conn.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
}

#[tokio::test]
async fn concurrent_inserts_share_a_commit() {
    let world = World::new().await;
    let jobs: Vec<_> = (0..200).map(|_| [world.job()]).collect();
    let before = world.store.commits();
    let answers = join_all(jobs.iter().map(|job| world.store.insert(job))).await;
    for (job, answer) in jobs.iter().zip(answers) {
        assert_eq!(answer.unwrap(), [Inserted::New { id: job[0].id }]);
    }
    // How many share one depends on how fast the caller's thread is beside the writer's.
    let commits = world.store.commits() - before;
    assert!(commits <= 50, "{commits} commits for 200 inserts");
    assert_eq!(world.store.counts().await.unwrap().queued, 200);
}

#[tokio::test]
async fn a_mixed_batch_answers_each_operation_its_own() {
    let world = World::new().await;
    let first = world.job();
    world
        .store
        .insert(std::slice::from_ref(&first))
        .await
        .unwrap();
    let claimed = world.claim(1).await;
    let (second, third) = (world.job(), world.job());
    let (settlements, five) = ([done(&claimed[0])], request(5));
    let (inserted, exchanged, cancelled, settled) = tokio::join!(
        world.store.insert(std::slice::from_ref(&second)),
        world.store.exchange(&settlements, &five),
        world.store.cancel(third.id),
        world.store.settle(&settlements),
    );
    assert_eq!(inserted.unwrap(), [Inserted::New { id: second.id }]);
    let (first_settled, taken) = exchanged.unwrap();
    assert_eq!(first_settled, [Settled::Applied(JobState::Done)]);
    assert_eq!(taken.iter().map(|c| c.id).collect::<Vec<_>>(), [second.id]);
    assert!(taken[0].token > claimed[0].token);
    assert_eq!(cancelled.unwrap(), crate::store::Cancelling::NotFound);
    assert_eq!(settled.unwrap(), [Settled::Stale]);
}

#[tokio::test]
async fn a_bad_operation_does_not_hurt_its_neighbours() {
    let world = World::new().await;
    poison(&world, "poison").await;
    let mut jobs: Vec<_> = (0..9).map(|_| [world.job()]).collect();
    jobs[4][0].job_type = JobType::new("poison").unwrap();
    let before = world.store.commits();
    // While somebody else holds the lock, all of them gather: one batch if the writer has not
    // taken the first of them yet, else two.
    let mut lock = world.connection().await;
    lock.execute("begin immediate").await.unwrap();
    let inserts = join_all(jobs.iter().map(|job| world.store.insert(job)));
    let release = async { lock.execute("commit").await.map(drop) };
    let (answers, released) = tokio::join!(inserts, release);
    released.unwrap();
    for (place, answer) in answers.into_iter().enumerate() {
        match place {
            4 => assert_eq!(answer.unwrap_err().operation(), "insert"),
            _ => assert_eq!(
                answer.unwrap(),
                [Inserted::New {
                    id: jobs[place][0].id
                }]
            ),
        }
    }
    assert!(world.store.commits() - before <= 2);
    assert_eq!(world.store.counts().await.unwrap().total(), 8);
    assert_eq!(world.store.job(jobs[4][0].id).await.unwrap(), None);
}

#[tokio::test]
async fn a_bulk_with_one_bad_job_stores_nothing() {
    let world = World::new().await;
    poison(&world, "poison").await;
    let mut jobs: Vec<_> = (0..9).map(|_| world.job()).collect();
    jobs[8].job_type = JobType::new("poison").unwrap();
    world.store.insert(&jobs).await.unwrap_err();
    assert_eq!(world.store.counts().await.unwrap().total(), 0);
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_store_was_dropped_without_closing() {
    let world = World::new().await;
    let job = world.job();
    world
        .store
        .insert(std::slice::from_ref(&job))
        .await
        .unwrap();
    let claimed = world.claim(1).await;
    let World { store, dir, hand } = world;
    let options = store.options.clone();
    drop(store);

    let again = SqliteStore::open(options).await.unwrap();
    let record = again.job(job.id).await.unwrap().unwrap();
    assert_eq!(record.lock_token, Some(claimed[0].token));
    let settled = again.settle(&[done(&claimed[0])]).await.unwrap();
    assert_eq!(settled, [Settled::Applied(JobState::Done)]);
    drop((dir, hand));
}

#[tokio::test]
async fn tokens_rise_across_reopening_and_pruning() {
    let world = World::new().await;
    world.store.insert(&[world.job()]).await.unwrap();
    let first = world.claim(1).await.remove(0);
    world.store.settle(&[done(&first)]).await.unwrap();
    let at_once = std::time::Duration::ZERO;
    let retention = crate::store::Retention {
        done: at_once,
        cancelled: at_once,
        dead_letter: at_once,
    };
    assert_eq!(world.store.prune(&retention, 10).await.unwrap().jobs, 1);
    assert_eq!(world.store.attempts(first.id).await.unwrap(), []);
    world.store.close().await;

    let again = SqliteStore::open(world.options()).await.unwrap();
    again.insert(&[world.job()]).await.unwrap();
    let second = again.claim(&request(1)).await.unwrap().remove(0);
    assert!(second.token > first.token);
}

#[tokio::test]
async fn a_closed_store_has_finished_what_it_accepted_and_refuses_the_rest() {
    let world = World::new().await;
    let jobs: Vec<_> = (0..20).map(|_| [world.job()]).collect();
    let inserts = join_all(jobs.iter().map(|job| world.store.insert(job)));
    let (answers, ()) = tokio::join!(inserts, world.store.close());
    assert!(answers.iter().all(Result::is_ok));
    let refused = [
        world.store.insert(&[world.job()]).await.err(),
        world.store.claim(&request(1)).await.err(),
        world.store.job(jobs[0][0].id).await.err(),
        world.store.counts().await.err(),
        world.store.now().await.err(),
        world.store.migrate().await.err(),
        world.store.heartbeat().await.err(),
        world.store.begin().await.err(),
    ];
    for error in refused {
        let error = error.expect("the store is closed");
        assert_eq!(error.kind(), StoreErrorKind::Closed, "{error}");
    }
    world.store.close().await;
    let again = SqliteStore::open(world.options()).await.unwrap();
    assert_eq!(again.counts().await.unwrap().queued, 20);
}

#[tokio::test]
async fn an_insert_and_a_commit_of_somebody_else_wake_a_listener() {
    let world = World::new().await;
    let mut listener = world.store.wakes();
    world.store.insert(&[world.job()]).await.unwrap();
    listener.wait().await;

    let other = SqliteStore::open(world.options()).await.unwrap();
    other.insert(&[world.job()]).await.unwrap();
    listener.wait().await;
    assert_eq!(world.claim(9).await.len(), 2);
}

#[tokio::test]
async fn a_blocked_runtime_does_not_leave_the_database_locked() {
    use crate::job::Lease;
    use crate::seam::Seam;
    let world = World::new().await;
    world.store.insert(&[world.job()]).await.unwrap();
    let lease: Lease = world.claim(1).await[0].lease();
    let mut heartbeat = world.store.heartbeat().await.unwrap();

    // An insert that is under way when this, the only thread of the runtime, stops.
    let (store, job) = (std::sync::Arc::clone(&world.store), world.job());
    let insert = async move { drop(store.insert(&[job]).await) };
    drop(world.hand.spawn(Box::pin(insert)));
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    let (said, hears) = std::sync::mpsc::channel();
    let beat = async move {
        let span = std::time::Duration::from_mins(1);
        said.send(heartbeat.extend(&[lease], span).await)
            .expect("the test listens");
    };
    world.hand.spawn_apart("beat", Box::pin(beat)).unwrap();
    let answer = hears.recv().expect("the lease was renewed");
    assert_eq!(answer.unwrap(), [crate::store::Extended::Kept]);
}

#[tokio::test]
async fn a_full_disk_is_said_to_be_full_and_loses_nothing_that_was_answered() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}?mode=rwc", dir.path().join("jobs.db").display());
    let connect: sqlx::sqlite::SqliteConnectOptions = url.parse().unwrap();
    let pool = sqlx::SqlitePool::connect_lazy_with(connect.pragma("max_page_count", "60"));
    let store = SqliteStore::from_pool(&pool).await.unwrap();
    let hand = super::world::Hand::new();
    let mut accepted = 0;
    let error = loop {
        let mut job = super::world::job(&*hand, "mail");
        job.payload = format!(r#"{{"text":"{}"}}"#, "x".repeat(2_000));
        match store.insert(&[job]).await {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 1_000, "60 pages hold less");
    };
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert_eq!(store.counts().await.unwrap().queued, accepted);
}

#[tokio::test]
async fn a_transaction_is_bounded_by_its_rows() {
    let world = World::new().await;
    let bulks: Vec<Vec<_>> = (0..6)
        .map(|_| (0..1_500).map(|_| world.job()).collect())
        .collect();
    let before = world.store.commits();
    let answers = join_all(bulks.iter().map(|bulk| world.store.insert(bulk))).await;
    assert!(
        answers
            .iter()
            .all(|answer| answer.as_ref().unwrap().len() == 1_500)
    );
    assert!(world.store.commits() - before >= 3);
    assert_eq!(world.store.counts().await.unwrap().queued, 9_000);
}

#[tokio::test]
async fn two_stores_on_one_file_never_claim_the_same_job_or_give_the_same_token() {
    let world = World::new().await;
    let other = SqliteStore::open(world.options()).await.unwrap();
    let jobs: Vec<_> = (0..300).map(|_| world.job()).collect();
    world.store.insert(&jobs).await.unwrap();
    let seven = request(7);
    let mut claimed = Vec::new();
    loop {
        let (ours, theirs) = tokio::join!(world.store.claim(&seven), other.claim(&seven));
        let before = claimed.len();
        claimed.extend(ours.unwrap());
        claimed.extend(theirs.unwrap());
        if claimed.len() == before {
            break;
        }
    }
    let ids: std::collections::HashSet<_> = claimed.iter().map(|c| c.id).collect();
    let tokens: std::collections::HashSet<_> = claimed.iter().map(|c| c.token).collect();
    assert_eq!((claimed.len(), ids.len(), tokens.len()), (300, 300, 300));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_and_a_transaction_get_their_turn_beside_a_busy_writer() {
    use crate::seam::{Seam, SystemSeam};
    let World { store, dir, .. } = World::new().await;
    store.close().await;
    // Real pauses: SQLite makes real ones while it waits for the lock.
    let path = dir.path().join("jobs.db");
    let options = SqliteOptions::new(path.to_str().unwrap()).unwrap();
    let store = std::sync::Arc::new(SqliteStore::open(options).await.unwrap());
    let seam: std::sync::Arc<dyn Seam> = std::sync::Arc::new(SystemSeam::new());
    let job = super::world::job(&*seam, "mail");
    store.insert(&[job]).await.unwrap();
    let lease = store.claim(&request(1)).await.unwrap()[0].lease();
    let mut heartbeat = store.heartbeat().await.unwrap();

    let (stop, stopped) = tokio::sync::watch::channel(());
    for _ in 0..3 {
        let (store, on, stopped) = (store.clone(), seam.clone(), stopped.clone());
        drop(seam.spawn(Box::pin(async move {
            while stopped.has_changed().is_ok() {
                let jobs: Vec<_> = (0..500).map(|_| super::world::job(&*on, "mail")).collect();
                store.insert(&jobs).await.unwrap();
            }
        })));
    }
    for _ in 0..5 {
        let span = std::time::Duration::from_mins(1);
        let said = heartbeat.extend(&[lease], span).await.unwrap();
        assert_eq!(said, [crate::store::Extended::Kept]);
        store.begin().await.unwrap().rollback().await.unwrap();
    }
    drop(stop);
    store.close().await;
}
