//! Databases whose tables are not all ours, or not all there.

use sqlx::{AssertSqlSafe, Executor};

use super::world::World;
use crate::error::{OpenError, StoreErrorKind};
use crate::store::Store;
use crate::store::sqlite::SqliteStore;

/// What opening says about a store that somebody has worked on by hand.
async fn refusal(world: &World) -> String {
    let OpenError::Store(error) = SqliteStore::open(world.options()).await.unwrap_err() else {
        panic!("the store refuses");
    };
    assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
    error.to_string()
}

#[tokio::test]
async fn a_store_without_one_of_its_tables_is_opened_and_fails_later() {
    for table in ["queue_jobs", "queue_attempts", "queue_versions"] {
        let world = World::new().await;
        let mut conn = world.connection().await;
        conn.execute(AssertSqlSafe(format!("drop table {table}")))
            .await
            .unwrap();

        let said = refusal(&world).await;

        let words = format!("migrate: the table {table} is missing");
        assert!(said.starts_with(&words), "{said}");
        assert!(said.contains("Restore the file from a backup"), "{said}");
        assert!(world.store.migrate().await.is_err());
    }
}

#[tokio::test]
async fn tables_without_their_list_of_changes_are_refused_without_a_name() {
    for change in [
        "drop table queue_migrations",
        "delete from queue_migrations",
    ] {
        let world = World::new().await;
        let mut conn = world.connection().await;
        conn.execute(change).await.unwrap();

        let said = refusal(&world).await;

        assert!(said.contains("has a queue_"), "{said}");
        assert!(said.contains("no queue_migrations"), "{said}");
    }
}

#[tokio::test]
async fn a_table_of_another_program_with_our_name_is_refused_without_saying_so() {
    for foreign in [
        "create table Queue_Jobs (n)",
        "create view queue_jobs as select 1 as n",
        "create table queue_migrations (n); insert into queue_migrations values (1)",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let world = World::new().await;
        let options =
            crate::store::sqlite::SqliteOptions::new(dir.path().join("app.db").to_str().unwrap())
                .unwrap();
        let mut conn = sqlx::ConnectOptions::connect(&options.connect_options())
            .await
            .unwrap();
        conn.execute(AssertSqlSafe(foreign)).await.unwrap();

        let OpenError::Store(error) = SqliteStore::open(options).await.unwrap_err() else {
            panic!("the store refuses");
        };

        assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
        let said = error.to_string();
        assert!(said.contains("a file of its own"), "{said}");
        assert!(
            said.contains("queue_jobs") || foreign.contains("(n); insert"),
            "{said}"
        );
        drop(world);
    }
}
