//! Databases whose tables are not there, not all there, not ours, or made by somebody else.

use futures_util::future::{join, join_all};
use sqlx::{AssertSqlSafe, Connection, Row};

use super::world::{Ground, World, jobs, name, options_of, refusal};
use crate::error::StoreErrorKind;
use crate::store::postgres::statements::Statements;
use crate::store::postgres::{PostgresStore, schema};
use crate::store::{Admin, Store};

/// O-103, O-105: the list of changes is made under the lock as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_first_starts_at_once_make_the_tables_once() {
    for _ in 0..5 {
        let Some(mut ground) = Ground::shared() else {
            return;
        };
        let schema = ground.schema();
        let options = ground.options(&schema).migrate(true);

        let opened = join_all((0..8).map(|_| PostgresStore::open(options.clone()))).await;

        let mut ids: Vec<String> = Vec::new();
        for store in opened {
            let store = store.expect("all start");
            assert_eq!(store.counts().await.expect("it answers").total(), 0);
            ids.push(store.store_id.clone());
            store.close().await;
        }
        ids.dedup();
        assert_eq!(ids.len(), 1, "all see one store");
        let made = format!("select count(*) from {schema}.migrations");
        let made: i64 = sqlx::query_scalar(AssertSqlSafe(made))
            .fetch_one(&mut ground.connection().await)
            .await
            .expect("it is there");
        assert_eq!(usize::try_from(made), Ok(schema::migrations("x").len()));
        ground.end().await;
    }
}

#[tokio::test]
async fn a_migration_waits_for_one_of_its_own_schema_only() {
    let Some(mut ground) = Ground::shared() else {
        return;
    };
    let (held, free) = (ground.schema(), ground.schema());
    let mut other = ground.connection().await;
    let mut tx = other.begin().await.expect("a transaction");
    let lock = Statements::new(&held, false).migrations_lock.query();
    let lock = lock.bind(schema::lock_key(&held)).execute(&mut *tx).await;
    lock.expect("nobody else has it");

    PostgresStore::open(ground.options(&free).migrate(true))
        .await
        .expect("another schema's lock is not in the way");
    let soon = std::time::Duration::from_millis(200);
    let options = ground.options(&held).migrate(true);
    let error = refusal(options.clone().lock_timeout(soon)).await;
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");

    let (waited, ended) = join(PostgresStore::open(options), tx.rollback()).await;
    ended.expect("rolled back");
    waited.expect("its turn comes");
    ground.end().await;
}

/// O-104: the lock is the transaction's, so a migration that is given up leaves none behind.
#[tokio::test]
async fn a_migration_that_is_given_up_half_way_holds_up_nobody() {
    let Some(mut ground) = Ground::shared() else {
        return;
    };
    let schema = ground.schema();
    let options = ground.options(&schema).migrate(true);
    for polls in 1..60 {
        let mut opening = Box::pin(PostgresStore::open(options.clone()));
        let mut is_ready = false;
        for _ in 0..polls {
            is_ready |= futures_util::poll!(&mut opening).is_ready();
            if is_ready {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(opening);
        if is_ready {
            break;
        }
    }

    let store = PostgresStore::open(options)
        .await
        .expect("nobody is in the way");

    assert_eq!(store.counts().await.expect("it answers").total(), 0);
    store.close().await;
    ground.end().await;
}

#[tokio::test]
async fn an_empty_database_is_told_how_to_get_its_tables() {
    let Some(mut ground) = Ground::shared() else {
        return;
    };
    let schema = ground.schema();
    for made in ["", "create schema {q}", "create table {q}.orders (n int)"] {
        ground.run(&made.replace("{q}", &schema)).await;
        let error = refusal(ground.options(&schema)).await;
        assert_eq!(error.kind(), StoreErrorKind::Schema);
        let said = error.to_string();
        assert!(
            said.contains(&format!("no queue in the schema {schema:?}")),
            "{said}"
        );
        assert!(said.contains("`.migrate()`"), "{said}");
        assert!(
            said.contains("`store::postgres::schema::printed`"),
            "{said}"
        );
    }
    ground.end().await;
}

#[tokio::test]
async fn a_newer_schema_is_served_unless_it_needs_a_newer_library() {
    let Some(world) = World::new().await else {
        return;
    };
    let newest = schema::migrations(&world.schema).len();
    let insert = "insert into {q}.migrations (version, name, compatible_from) values";
    world.run(&format!("{insert} (90, 'later', 1)")).await;
    let options = world.ground.options(&world.schema);
    for migrate in [false, true] {
        PostgresStore::open(options.clone().migrate(migrate))
            .await
            .expect("it still serves us");
    }

    world.run(&format!("{insert} (91, 'much later', 77)")).await;

    for migrate in [false, true] {
        let error = refusal(options.clone().migrate(migrate)).await;
        assert_eq!(error.kind(), StoreErrorKind::Schema);
        assert_eq!(
            error.to_string(),
            format!(
                "migrate: this library knows schema {newest}, the database has schema 91, which \
                 needs a library of schema 77 at least. Update this program"
            )
        );
    }
    world.end().await;
}

#[tokio::test]
async fn an_older_schema_is_refused_until_somebody_asks_for_the_upgrade() {
    let Some(world) = World::new().await else {
        return;
    };
    world.store.insert(&jobs(1)).await.expect("stored");
    let back = "drop function {q}.enqueue; delete from {q}.migrations where version > 1";
    world.run(back).await;
    let options = world.ground.options(&world.schema);

    let error = refusal(options.clone()).await;

    assert_eq!(error.kind(), StoreErrorKind::Schema);
    let said = error.to_string();
    assert!(said.contains("lack the change 2 (enqueue)"), "{said}");
    assert!(said.contains("`.migrate()` to upgrade them"), "{said}");
    for migrate in [true, false] {
        let store = PostgresStore::open(options.clone().migrate(migrate)).await;
        let store = store.expect("upgraded");
        assert_eq!(store.counts().await.expect("counted").total(), 1);
        store.close().await;
    }
    world.end().await;
}

#[tokio::test]
async fn a_store_without_one_of_its_tables_is_opened_and_fails_later() {
    for table in ["jobs", "attempts", "versions", "meta"] {
        let Some(world) = World::new().await else {
            return;
        };
        world.run(&format!("drop table {{q}}.{table}")).await;
        for migrate in [false, true] {
            let options = world.ground.options(&world.schema).migrate(migrate);
            let error = refusal(options).await;
            assert_eq!(error.kind(), StoreErrorKind::Schema);
            let said = error.to_string();
            assert!(said.contains(&format!(".{table} is missing")), "{said}");
        }
        world.end().await;
    }
}

#[tokio::test]
async fn a_schema_of_another_program_is_refused_and_left_as_it_was() {
    for foreign in [
        "create table {q}.jobs (n int)",
        "create view {q}.jobs as select 1 as n",
        "create table {q}.migrations (n int); insert into {q}.migrations values (1)",
        "create sequence {q}.versions",
    ] {
        let Some(mut ground) = Ground::shared() else {
            return;
        };
        let schema = ground.schema();
        let foreign = format!("create schema {{q}}; {foreign}").replace("{q}", &schema);
        ground.run(&foreign).await;
        let before = shape(&ground, &schema).await;

        let error = refusal(ground.options(&schema).migrate(true)).await;

        assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
        assert!(error.to_string().contains("a schema of its own"), "{error}");
        assert_eq!(shape(&ground, &schema).await, before);
        ground.end().await;
    }
}

/// O-105: what was begun is undone.
#[tokio::test]
async fn a_migration_that_fails_half_way_leaves_nothing() {
    let Some(mut ground) = Ground::shared() else {
        return;
    };
    let schema = ground.schema();
    // In the way of the last table's index only.
    let foreign =
        format!("create schema {schema}; create type {schema}.dedupe_windows_expiry as (n int)");
    ground.run(&foreign).await;
    let before = shape(&ground, &schema).await;

    refusal(ground.options(&schema).migrate(true)).await;
    assert_eq!(shape(&ground, &schema).await, before);

    ground
        .run(&format!("drop type {schema}.dedupe_windows_expiry"))
        .await;
    PostgresStore::open(ground.options(&schema).migrate(true))
        .await
        .expect("nothing is in the way any more");
    ground.end().await;
}

#[tokio::test]
async fn the_printed_script_makes_what_a_migration_makes() {
    let Some(mut ground) = Ground::shared() else {
        return;
    };
    let (by_hand, by_us) = (ground.schema(), ground.schema());
    ground.run(&schema::printed(&by_hand)).await;
    drop(
        PostgresStore::open(ground.options(&by_us).migrate(true))
            .await
            .expect("the server makes a schema"),
    );

    let made = shape(&ground, &by_hand).await;

    assert!(made.len() > 120, "{made:?}");
    assert_eq!(made, shape(&ground, &by_us).await);
    let store = PostgresStore::open(ground.options(&by_hand))
        .await
        .expect("it is a queue");
    store.insert(&jobs(3)).await.expect("it takes jobs");
    store.close().await;
    ground.end().await;
}

/// Everything that the catalogue says about a schema, without its name.
async fn shape(ground: &Ground, schema: &str) -> Vec<String> {
    let all = "
        select concat_ws(' ', table_name, column_name, data_type, collation_name, is_nullable,
                         column_default)
        from information_schema.columns where table_schema = $1
        union all
        select indexdef from pg_indexes where schemaname = $1
        union all
        select concat_ws(' ', c.relname, c.relkind, array_to_string(c.reloptions, ','))
        from pg_class c where c.relnamespace = to_regnamespace($1)
        union all
        select concat_ws(' ', conrelid::regclass::text, conname, pg_get_constraintdef(oid))
        from pg_constraint where connamespace = to_regnamespace($1)
        union all
        select pg_get_functiondef(oid) from pg_proc where pronamespace = to_regnamespace($1)
        order by 1";
    let rows = sqlx::query(all)
        .bind(schema)
        .fetch_all(&mut ground.connection().await)
        .await
        .expect("the catalogue answers");
    rows.iter()
        .map(|row| row.get::<String, _>(0).replace(schema, "{q}"))
        .collect()
}

/// The names of a schema are quoted everywhere (O-106).
#[tokio::test]
async fn a_schema_with_capitals_and_one_without_are_two_queues() {
    let Some(ground) = Ground::with_settings(&[]).await else {
        return;
    };
    let small = name();
    let large = small.to_uppercase();
    let reserved = "select";
    let mut stores = Vec::new();
    for (place, schema) in [&small, &large, reserved].into_iter().enumerate() {
        let options = options_of(&ground.connect, schema).migrate(true);
        let store = PostgresStore::open(options).await.expect("made");
        store.insert(&jobs(place + 1)).await.expect("stored");
        stores.push(store);
    }

    for (place, store) in stores.iter().enumerate() {
        let claimed = store
            .claim(&super::world::request(10))
            .await
            .expect("claimed");
        assert_eq!(claimed.len(), place + 1, "its own and no others");
        let settlements: Vec<_> = claimed.iter().map(super::world::done).collect();
        store.settle(&settlements).await.expect("settled");
        assert_eq!(
            store.counts().await.expect("counted").total(),
            place as u64 + 1
        );
        let store_ids = stores
            .iter()
            .filter(|other| other.store_id == store.store_id);
        assert_eq!(store_ids.count(), 1);
    }
    for store in stores {
        store.close().await;
    }
    ground.end().await;
}
