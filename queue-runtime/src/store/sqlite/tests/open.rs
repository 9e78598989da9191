//! Opening: settings, migrations, and every way in which a path can be wrong.

use std::path::Path;

use sqlx::{ConnectOptions, Connection, Executor, Row};

use super::world::World;
use crate::error::{OpenError, StoreErrorKind};
use crate::store::sqlite::{SqliteOptions, SqliteStore, Synchronous, schema};
use crate::store::{Admin, Store};

async fn refusal(options: SqliteOptions) -> (StoreErrorKind, String) {
    match SqliteStore::open(options).await.unwrap_err() {
        OpenError::Store(error) => (error.kind(), error.to_string()),
        other => panic!("{other}"),
    }
}

fn at(path: &Path) -> SqliteOptions {
    SqliteOptions::new(path.to_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_first_starts_at_once_are_safe() {
    for _ in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let options = at(&dir.path().join("jobs.db"));
        let starts: Vec<_> = (0..8)
            .map(|_| {
                let options = options.clone();
                let seam = options.seam.clone();
                let (send, opened) = tokio::sync::oneshot::channel();
                drop(seam.spawn(Box::pin(async move {
                    let _ = send.send(SqliteStore::open(options).await);
                })));
                opened
            })
            .collect();
        let mut ids = Vec::new();
        for opened in starts {
            let store = opened.await.unwrap().unwrap();
            assert_eq!(store.counts().await.unwrap().total(), 0);
            ids.push(store.store_id.clone());
        }
        ids.dedup();
        assert_eq!(ids.len(), 1, "all see one store");
    }
}

#[tokio::test]
async fn every_connection_has_the_settings() {
    for (synchronous, expected) in [(Synchronous::Full, 2), (Synchronous::Normal, 1)] {
        let dir = tempfile::tempdir().unwrap();
        let options = at(&dir.path().join("jobs.db")).synchronous(synchronous);
        let store = SqliteStore::open(options).await.unwrap();
        for pool in [&store.readers, &store.transactions] {
            let row = store.statements.pragmas.query().fetch_one(pool).await;
            let row = row.unwrap();
            assert_eq!(row.get::<String, _>(0), "wal");
            assert_eq!(row.get::<i64, _>(1), expected);
            assert_eq!(row.get::<i64, _>(2), 1);
            assert_eq!(row.get::<i64, _>(3), 5_000);
        }
    }
}

#[tokio::test]
async fn a_newer_schema_is_served_unless_it_needs_a_newer_library() {
    let world = World::new().await;
    let newest = schema::migrations().len();
    let mut conn = world.connection().await;
    conn.execute("insert into queue_migrations values (90, 'later', 0, 1)")
        .await
        .unwrap();
    SqliteStore::open(world.options()).await.unwrap();

    conn.execute("insert into queue_migrations values (91, 'much later', 0, 77)")
        .await
        .unwrap();
    let (kind, said) = refusal(world.options()).await;
    assert_eq!(kind, StoreErrorKind::Schema);
    assert_eq!(
        said,
        format!(
            "migrate: this library knows schema {newest}, the database has schema 91, which \
             needs a library of schema 77 at least. Update this program"
        )
    );
}

#[tokio::test]
async fn an_in_memory_database_is_refused_with_a_way_out() {
    for address in ["sqlite::memory:", ":memory:", "sqlite://x?mode=memory"] {
        let error = SqliteOptions::new(address).unwrap_err();
        assert!(matches!(&error, OpenError::InvalidUrl { .. }), "{error}");
        assert!(error.to_string().contains("temporary folder"), "{error}");
    }
    let pool = sqlx::SqlitePool::connect("sqlite::memory:").await.unwrap();
    let error = SqliteStore::from_pool(&pool).await.unwrap_err();
    assert!(error.to_string().contains("temporary folder"), "{error}");
}

#[test]
fn an_address_of_another_store_is_refused_without_its_password() {
    let error = SqliteOptions::new("postgres://ada:secret@db/x").unwrap_err();
    let said = error.to_string();
    assert!(said.contains("postgres://") && said.contains("sqlite://jobs.db"));
    assert!(!said.contains("secret"), "{said}");
    assert!(SqliteOptions::new("sqlite://").is_err());
    assert!(SqliteOptions::new("").is_err());
}

#[tokio::test]
async fn each_wrong_path_has_an_error_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let file = dir.join("notes.txt");
    std::fs::write(&file, "these are notes and no database\n".repeat(200)).unwrap();
    let cases = [
        (at(dir), StoreErrorKind::InvalidInput, "is a directory"),
        (
            at(&dir.join("missing/jobs.db")),
            StoreErrorKind::InvalidInput,
            "does not exist. Create it first",
        ),
        (
            at(&file.join("jobs.db")),
            StoreErrorKind::InvalidInput,
            "is not a directory",
        ),
        (
            at(&dir.join("absent.db")).create(false),
            StoreErrorKind::InvalidInput,
            "does not exist, and making it",
        ),
        (
            at(&file),
            StoreErrorKind::Corrupt,
            "the file is not a database",
        ),
    ];
    for (options, kind, words) in cases {
        let (was, said) = refusal(options).await;
        assert_eq!(was, kind, "{said}");
        assert!(said.contains(words), "{said}");
        assert!(said.contains("database "), "names the path: {said}");
    }
    assert!(!dir.join("absent.db").exists());
}

#[tokio::test]
async fn a_file_opened_read_only_is_refused() {
    let world = World::new().await;
    let path = world.dir.path().join("jobs.db");
    let url = format!("sqlite://{}?mode=ro", path.display());
    // A store that is complete may be read, but nothing can be accepted.
    let store = SqliteStore::open(SqliteOptions::new(&url).unwrap())
        .await
        .unwrap();
    let error = store.insert(&[world.job()]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains("read-only"), "{error}");
}

#[tokio::test]
async fn a_damaged_file_is_said_to_be_damaged() {
    let world = World::new().await;
    world.store.close().await;
    let path = world.dir.path().join("jobs.db");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100..4_000].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let (kind, said) = refusal(world.options()).await;
    assert_eq!(kind, StoreErrorKind::Corrupt, "{said}");
    assert!(said.contains("damaged"), "{said}");
}

#[tokio::test]
async fn the_store_shares_the_file_of_a_pool_of_the_application() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}?mode=rwc", dir.path().join("app.db").display());
    let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
    pool.execute("create table orders (id integer primary key)")
        .await
        .unwrap();
    let store = SqliteStore::from_pool(&pool).await.unwrap();
    assert_eq!(store.counts().await.unwrap().total(), 0);
    let mut conn = store.options.connect_options().connect().await.unwrap();
    conn.execute("insert into orders values (1)").await.unwrap();
    conn.close().await.unwrap();
}

#[tokio::test]
async fn sqlites_clock_is_the_clock_unless_one_is_given() {
    use crate::seam::{Seam, SystemSeam};
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(at(&dir.path().join("jobs.db")))
        .await
        .unwrap();
    let seam = SystemSeam::new();
    let before = seam.now();
    let now = store.now().await.unwrap();
    let after = seam.now();
    assert!(before <= now && now <= after, "{before} {now} {after}");
}
