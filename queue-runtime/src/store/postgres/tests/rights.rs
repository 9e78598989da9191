//! Roles that may do less than everything.

use sqlx::postgres::PgConnectOptions;

use super::world::{Ground, World, done, job, jobs, options_of, refusal, request};
use crate::error::StoreErrorKind;
use crate::store::postgres::PostgresStore;
use crate::store::tests::lively::{JOBS, lively};
use crate::store::{Admin, Edit, Retention, Store, Versions};

/// What the documentation says a program needs that does not migrate.
const GRANTS: [&str; 3] = [
    "grant usage on schema {q} to {role}",
    "grant select, insert, update, delete on all tables in schema {q} to {role}",
    "grant usage on sequence {q}.lease_tokens to {role}",
];

/// A role with some grants on a world's schema.
async fn role(world: &mut World, grants: &[&str]) -> PgConnectOptions {
    let (role, connect) = world.ground.role().await;
    for grant in grants {
        world.run(&grant.replace("{role}", &role)).await;
    }
    connect
}

#[tokio::test]
async fn a_role_with_its_own_schema_migrates_without_rights_on_the_database() {
    let Some(mut ground) = Ground::shared() else {
        return;
    };
    let schema = ground.schema();
    let (role, connect) = ground.role().await;
    let options = options_of(&connect, &schema).migrate(true);
    let error = refusal(options.clone()).await;
    assert_eq!(error.kind(), StoreErrorKind::InvalidInput, "{error}");
    assert!(
        error.to_string().contains("permission denied for database"),
        "{error}"
    );

    ground
        .run(&format!("create schema {schema} authorization {role}"))
        .await;

    let store = PostgresStore::open(options).await.expect("migrated");
    store.insert(&jobs(1)).await.expect("stored");
    store.close().await;
    ground.end().await;
}

#[tokio::test]
async fn a_role_that_may_only_use_the_tables_can_do_everything_but_migrate() {
    let Some(mut world) = World::new().await else {
        return;
    };
    let connect = role(&mut world, &GRANTS).await;
    let options = options_of(&connect, &world.schema);

    let store = PostgresStore::open(options.clone().migrate(true))
        .await
        .expect("nothing is left to migrate");
    store.insert(&jobs(3)).await.expect("insert");
    let claimed = store.claim(&request(3)).await.expect("claim");
    let mut heartbeat = store.heartbeat().await.expect("heartbeat");
    let leases: Vec<_> = claimed.iter().map(crate::job::Claimed::lease).collect();
    let kept = heartbeat.extend(&leases, request(3).lease).await;
    assert_eq!(kept.expect("extend").len(), 3);
    let settlements: Vec<_> = claimed[..2].iter().map(done).collect();
    store.settle(&settlements).await.expect("settle");
    store.expired(5).await.expect("expired");
    store.next_due(&request(1)).await.expect("next_due");
    store.cancel(claimed[2].id).await.expect("cancel");
    store.replay(claimed[0].id, false).await.expect("replay");
    store.cancel(claimed[0].id).await.expect("cancel");
    let edit = Edit::new("{}", 1).expect("an object");
    let replayed = store.replay_with(claimed[0].id, false, &edit).await;
    replayed.expect("replay_with");
    store.prune(&Retention::default(), 5).await.expect("prune");
    store.newest_version("k").await.expect("newest_version");
    store.attempts(claimed[0].id).await.expect("attempts");
    let queue = std::slice::from_ref(&claimed[0].queue);
    store.unread(queue, &[]).await.expect("unread");
    store.waiting().await.expect("waiting");
    let verified = store.verify(9).await.expect("verify");
    assert!(verified.is_sound(), "{verified}");
    let (name, queue) = (&claimed[0].job_type, &claimed[0].queue);
    let sampled = store.waiting_sample(name, queue, 1, None, 5).await;
    sampled.expect("waiting_sample");
    assert_eq!(store.counts().await.expect("counts").total(), 3);
    store.close().await;
    world.end().await;
}

#[tokio::test]
async fn a_role_that_may_only_read_can_verify() {
    let Some(mut world) = World::new().await else {
        return;
    };
    lively(&world.store, job).await;
    let reads = [
        GRANTS[0],
        "grant select on all tables in schema {q} to {role}",
    ];
    let connect = role(&mut world, &reads).await;
    let store = PostgresStore::open(options_of(&connect, &world.schema)).await;
    let store = store.expect("it may look at the tables");

    let verified = store.verify(9).await.expect("verify");

    assert_eq!(
        (verified.is_sound(), verified.jobs),
        (true, JOBS.0),
        "{verified}"
    );
    store.close().await;
    world.end().await;
}

#[tokio::test]
async fn a_missing_grant_is_named() {
    let Some(mut world) = World::new().await else {
        return;
    };
    let none = role(&mut world, &[]).await;
    let error = refusal(options_of(&none, &world.schema)).await;
    assert_eq!(error.kind(), StoreErrorKind::InvalidInput);
    let said = error.to_string();
    assert!(said.contains("permission denied for schema"), "{said}");
    assert!(
        said.contains("Grant it usage on the queue's schema"),
        "{said}"
    );

    let lacks_sequence = role(&mut world, &GRANTS[..2]).await;
    let store = PostgresStore::open(options_of(&lacks_sequence, &world.schema))
        .await
        .expect("the tables may be read");
    store
        .insert(&jobs(1))
        .await
        .expect("no token is needed for that");
    let error = store
        .claim(&request(1))
        .await
        .expect_err("no token is to be had");
    assert_eq!(error.kind(), StoreErrorKind::InvalidInput);
    let said = error.to_string();
    assert!(
        said.contains("permission denied for sequence lease_tokens"),
        "{said}"
    );
    assert_eq!(store.counts().await.expect("counted").queued, 1);
    store.close().await;

    let reads_only = role(
        &mut world,
        &[
            GRANTS[0],
            "grant select on all tables in schema {q} to {role}",
        ],
    )
    .await;
    let store = PostgresStore::open(options_of(&reads_only, &world.schema))
        .await
        .expect("the tables may be read");
    let error = store.insert(&jobs(1)).await.expect_err("refused");
    assert!(
        error
            .to_string()
            .contains("permission denied for table jobs"),
        "{error}"
    );
    assert!(!error.is_transient());
    store.close().await;
    world.end().await;
}

#[tokio::test]
async fn more_connections_than_the_server_leaves_are_refused_with_both_numbers() {
    let Some(mut ground) = Ground::shared() else {
        return;
    };
    let schema = ground.schema();
    let (role, connect) = ground.role().await;
    let rights = format!("create schema {schema} authorization {role}");
    ground.run(&rights).await;
    ground
        .run(&format!("alter role {role} connection limit 6"))
        .await;
    let options = || options_of(&connect, &schema).migrate(true);

    let refused = refusal(options().connections(5).expect("a number")).await;
    let said = refused.to_string();
    assert_eq!(refused.kind(), StoreErrorKind::InvalidInput, "{said}");
    assert!(
        said.contains("are 7") && said.contains("this role 6"),
        "{said}"
    );

    let fits = PostgresStore::open(options().connections(4).expect("a number")).await;
    fits.expect("six are enough").close().await;
    ground.end().await;
}
