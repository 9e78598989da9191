//! What happens to the file behind the store's back: locked by others, deleted, replaced, full.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::{Connection, Executor, SqliteConnection};

use super::world::{Hand, World, job, request};
use crate::error::{EnqueueError, OpenError, StoreError, StoreErrorKind};
use crate::job::JobId;
use crate::seam::Seam;
use crate::store::sqlite::SqliteStore;
use crate::store::sqlite::ops::Op;
use crate::store::{Admin, Cancelling, Store};
use crate::time::Timestamp;

/// A connection that keeps every other out, as a program does that uses the file alone.
async fn exclusive(world: &World) -> SqliteConnection {
    let mut conn = world.connection().await;
    conn.execute("pragma locking_mode = exclusive; begin immediate; select 1 from queue_meta")
        .await
        .unwrap();
    conn
}

/// A clock on which each look takes five seconds, as a try does that waits for a lock; counts
/// the pauses between tries.
#[derive(Debug)]
struct Slow {
    hand: Arc<Hand>,
    looks: AtomicU32,
    pauses: AtomicU32,
}

impl Seam for Slow {
    fn now(&self) -> Timestamp {
        self.hand.now()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(5) * self.looks.fetch_add(1, Ordering::Relaxed)
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        self.pauses.fetch_add(1, Ordering::Relaxed);
        self.hand.sleep(span)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> tokio::task::JoinHandle<()> {
        self.hand.spawn(task)
    }

    fn spawn_apart(&self, name: &str, task: BoxFuture<'static, ()>) -> std::io::Result<()> {
        self.hand.spawn_apart(name, task)
    }

    fn random(&self) -> u64 {
        self.hand.random()
    }

    fn job_id(&self) -> JobId {
        self.hand.job_id()
    }
}

#[tokio::test]
async fn opening_a_file_under_an_exclusive_lock_tries_a_hundred_times() {
    let world = World::new().await;
    world.store.close().await;
    let _lock = exclusive(&world).await;
    let seam = Arc::new(Slow {
        hand: Arc::clone(&world.hand),
        looks: AtomicU32::new(0),
        pauses: AtomicU32::new(0),
    });
    let options = world
        .options()
        .busy_timeout(Duration::from_millis(1))
        .seam(Arc::clone(&seam) as Arc<dyn Seam>);

    let OpenError::Store(error) = SqliteStore::open(options).await.unwrap_err() else {
        panic!("the store refuses");
    };

    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    let said = error.to_string();
    assert!(
        said.contains("another program holds the file's lock"),
        "{said}"
    );
    assert_eq!(seam.pauses.load(Ordering::Relaxed), 0, "2 s are over");
}

/// Makes the writer lose its connection, as a fault would.
async fn lose(store: &SqliteStore) {
    let sender = store.sender().unwrap();
    sender.send(Op::Break).await.map_err(drop).unwrap();
}

#[tokio::test]
async fn a_writer_that_lost_its_connection_opens_another() {
    let World { hand, store, dir } = World::new().await;
    // Tries that fail fast; the pauses between them pass on the clock that stands still.
    let options = store.options.clone();
    let options = options.busy_timeout(Duration::from_millis(1));
    store.close().await;
    let store = Arc::new(SqliteStore::open(options).await.unwrap());
    let world = World { hand, store, dir };
    lose(&world.store).await;
    world.store.insert(&[world.job()]).await.unwrap();

    // While it cannot, it says so and does not try again at every call.
    lose(&world.store).await;
    let lock = exclusive(&world).await;
    for error in [
        world.store.insert(&[world.job()]).await.unwrap_err(),
        world.store.heartbeat().await.err().unwrap(),
    ] {
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        let said = error.to_string();
        assert!(said.contains("another program holds"), "{said}");
    }
    lock.close().await.unwrap();
    let error = world.store.claim(&request(1)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("tried again soon"), "{error}");

    world.hand.advance(Duration::from_secs(5));
    assert_eq!(world.claim(9).await.len(), 1);
}

fn files(world: &World) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(world.dir.path()).unwrap();
    folder.map(|entry| entry.unwrap().path()).collect()
}

fn assert_gone(error: &StoreError) {
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    assert!(!error.is_transient(), "a worker ends with it");
    let said = error.to_string();
    assert!(said.contains("was deleted or replaced"), "{said}");
    assert!(said.contains("jobs.db"), "{said}");
}

#[cfg(unix)]
#[tokio::test]
async fn jobs_are_accepted_into_a_deleted_file() {
    let world = World::new().await;
    world.store.insert(&[world.job()]).await.unwrap();
    let lease = world.claim(1).await[0].lease();
    let mut heartbeat = world.store.heartbeat().await.unwrap();
    let mut begun = world.store.begin().await.unwrap();
    for file in files(&world) {
        std::fs::remove_file(file).unwrap();
    }

    let staged = world.store.insert_in(&mut begun, &[world.job()]).await;
    let EnqueueError::Store(staged) = staged.unwrap_err() else {
        panic!("the store refuses");
    };
    begun.rollback().await.unwrap();
    let beat = heartbeat.extend(&[lease], Duration::from_mins(1)).await;
    let errors = [
        staged,
        world.store.insert(&[world.job()]).await.unwrap_err(),
        world.store.insert(&[world.job()]).await.unwrap_err(),
        world.store.claim(&request(1)).await.unwrap_err(),
        world.store.begin().await.err().unwrap(),
        world.store.heartbeat().await.err().unwrap(),
        beat.unwrap_err(),
    ];

    errors.iter().for_each(assert_gone);
    assert_eq!(
        files(&world),
        Vec::<PathBuf>::new(),
        "no empty store is made in its place"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn jobs_are_accepted_into_a_file_that_another_has_replaced() {
    let world = World::new().await;
    let other = World::new().await;
    other.store.close().await;
    for file in files(&world) {
        // Kept elsewhere, so that its number is not given to the new file.
        let name = file.file_name().unwrap();
        std::fs::rename(&file, other.dir.path().join(name).with_extension("old")).unwrap();
    }
    let path = world.dir.path().join("jobs.db");
    std::fs::copy(other.dir.path().join("jobs.db"), path).unwrap();

    for _ in 0..2 {
        assert_gone(&world.store.insert(&[world.job()]).await.unwrap_err());
    }
    let again = SqliteStore::open(world.options()).await.unwrap();
    assert_eq!(again.counts().await.unwrap().total(), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_comes_back_is_not_used_again() {
    let world = World::new().await;
    let here = world.dir.path().join("jobs.db");
    let away = world.dir.path().join("away");
    std::fs::rename(&here, &away).unwrap();
    assert_gone(&world.store.insert(&[world.job()]).await.unwrap_err());
    std::fs::rename(&away, &here).unwrap();

    let job = world.job();
    world
        .store
        .insert(std::slice::from_ref(&job))
        .await
        .unwrap();

    assert!(world.store.job(job.id).await.unwrap().is_some());
}

#[tokio::test]
async fn a_full_disk_is_never_left_because_no_commit_empties_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let url = format!("sqlite://{}?mode=rwc", path.display());
    let connect: sqlx::sqlite::SqliteConnectOptions = url.parse().unwrap();
    let pool = sqlx::SqlitePool::connect_lazy_with(connect.pragma("max_page_count", "60"));
    let store = SqliteStore::from_pool(&pool).await.unwrap();
    let hand = Hand::new();
    let log = || {
        let log = std::fs::metadata(dir.path().join("jobs.db-wal"));
        log.map_or(0, |log| log.len())
    };
    let bulk: Vec<_> = (0..2_000).map(|_| job(&*hand, "mail")).collect();
    store.insert(&bulk[..50]).await.unwrap();
    let error = store.insert(&bulk).await.unwrap_err();
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert!(log() > 0, "the log takes its part of the space");

    // A transaction that needs no space.
    let said = store.cancel(hand.job_id()).await.unwrap();

    assert_eq!((said, log()), (Cancelling::NotFound, 0));
    store.close().await;
    pool.close().await;
    let mut conn = SqliteConnection::connect(&url).await.unwrap();
    let stored: i64 = sqlx::query_scalar("select count(*) from queue_jobs")
        .fetch_one(&mut conn)
        .await
        .unwrap();
    assert_eq!(stored, 50);
}
