//! Databases whose settings are not those of a fresh server, and names that are not ours: what a
//! queue does depends on neither.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, Row};

use super::world::{Ground, done, job, jobs, keyed, request, run};
use crate::error::{EnqueueError, StoreError};
use crate::job::{Due, NewJob, Settled};
use crate::seam::{Seam, SystemSeam};
use crate::store::postgres::PostgresStore;
use crate::store::{Admin, Inserted, Store};

/// Things in the way of a statement that does not say whose it means: tables and functions of our
/// names and of Postgres's, and every operator that Postgres itself has not between our types,
/// which would fit better than one that needs a cast.
const HOSTILE: &str = "
create schema hostile;
create table hostile.jobs (n int);
create table hostile.meta (name text, value text);
insert into hostile.meta values ('store_id', 'evil');
create table hostile.migrations (version int);
create function hostile.harm() returns void language plpgsql as
  $$ begin raise exception 'a stranger was called'; end $$;
create function hostile.later(timestamptz, bigint) returns timestamptz language plpgsql as
  $$ begin perform hostile.harm(); return null; end $$;
create function hostile.date_trunc(text, timestamptz) returns timestamptz language plpgsql as
  $$ begin perform hostile.harm(); return null; end $$;
create function hostile.statement_timestamp() returns timestamptz language plpgsql as
  $$ begin perform hostile.harm(); return null; end $$;
create function hostile.gen_random_uuid() returns uuid language plpgsql as
  $$ begin perform hostile.harm(); return null; end $$;
create function hostile.is_equal(uuid, uuid) returns boolean language plpgsql as
  $$ begin perform hostile.harm(); return null; end $$;
create operator hostile.= (function = hostile.is_equal, leftarg = uuid, rightarg = uuid);
create function hostile.nextval(text) returns bigint language plpgsql as
  $$ begin perform hostile.harm(); return null; end $$;
create function hostile.pg_advisory_xact_lock(bigint) returns void language plpgsql as
  $$ begin perform hostile.harm(); end $$;
do $do$
declare
  types text[] := '{boolean,smallint,integer,bigint,real,double precision,numeric,text,varchar,name,uuid,date,timestamp,timestamptz,interval}';
  l text; r text; o text;
begin
  foreach l in array types loop foreach r in array types loop
    execute format('create function hostile.harm(%s, %s) returns boolean language plpgsql as
      $$ begin perform hostile.harm(); return null; end $$', l, r);
    foreach o in array '{=,<>,<,<=,>,>=,+,-,*,||}'::text[] loop
      if not exists (
        select from pg_operator
        where oprname = o and oprleft = l::regtype and oprright = r::regtype
      ) then
        execute format('create operator hostile.%s (function = hostile.harm, leftarg = %s,
          rightarg = %s)', o, l, r);
      end if;
    end loop;
  end loop; end loop;
end
$do$;
";

/// A day in the life of a queue: every verb that workers and producers use, on both kinds of
/// statements.
async fn lives(ground: &Ground, is_pooled: bool) -> Result<(), StoreError> {
    let options = ground.options("queue").behind_pooler(is_pooled);
    let opened = PostgresStore::open(options.migrate(true)).await;
    let store = opened.map_err(|error| match error {
        crate::error::OpenError::Store(error) => error,
        other => panic!("{other}"),
    })?;
    let before = store.counts().await?;
    let keyed = keyed("user:42");
    let mut later = job();
    later.due = Due::After(Duration::from_hours(1));
    store.insert(&jobs(2)).await?;
    store.insert(&[keyed.clone(), later.clone()]).await?;
    let again = NewJob {
        id: SystemSeam::new().job_id(),
        ..keyed.clone()
    };
    let answer = store.insert(&[again]).await?;
    assert!(matches!(answer[..], [Inserted::Duplicate { existing, .. }] if existing == keyed.id));
    let claimed = store.claim(&request(10)).await?;
    assert_eq!(claimed.len(), 3);
    let leases: Vec<_> = claimed.iter().map(crate::job::Claimed::lease).collect();
    let mut heartbeat = store.heartbeat().await?;
    heartbeat.extend(&leases, Duration::from_mins(2)).await?;
    assert_eq!(store.expired(10).await?, []);
    let due = store
        .next_due(&request(1))
        .await?
        .expect("one is due later");
    assert!(due > Duration::from_mins(59), "{due:?}");
    let settlements: Vec<_> = claimed.iter().map(done).collect();
    for answer in store.settle(&settlements).await? {
        assert!(matches!(answer, Settled::Applied(_)));
    }
    store.cancel(later.id).await?;
    store.replay(later.id, false).await?;
    assert!(store.job(later.id).await?.is_some());
    let replayed = store.claim(&request(10)).await?;
    store.settle(&[done(&replayed[0])]).await?;

    assert_eq!(store.counts().await?.total(), before.total() + 4);
    store.close().await;
    Ok(())
}

/// Enqueues in a transaction of the application's, with the session that it has.
async fn enqueues_inside(ground: &Ground) -> Result<(), EnqueueError> {
    let store = PostgresStore::open(ground.options("queue")).await;
    let store = store.expect("it was made");
    let mut conn = ground.connection().await;
    let mut tx = conn.begin().await.expect("a transaction");
    let mut all = jobs(2);
    all.extend([keyed("user:43"), keyed("user:44")]);
    store.insert_in(&mut tx, &all).await?;
    tx.commit().await.expect("committed");
    let claimed = store.claim(&request(10)).await?;
    assert_eq!(claimed.len(), 4);
    let mut tx = conn.begin().await.expect("a transaction");
    for run in &claimed {
        store
            .fence_in(&mut tx, run.lease())
            .await
            .expect("it is ours");
        store
            .complete_in(&mut tx, &done(run))
            .await
            .expect("completed");
    }
    tx.commit().await.expect("committed");
    store.close().await;
    Ok(())
}

/// O-106, O-107: whatever stands in the search path, even before the built-in names, changes
/// nothing.
#[tokio::test]
async fn a_search_path_full_of_strangers_changes_nothing() {
    for path in ["hostile", "hostile, public, pg_catalog", "''"] {
        let setting = format!("search_path = {path}");
        let Some(ground) = Ground::with_settings(&[]).await else {
            return;
        };
        ground.run(HOSTILE).await;
        let database = ground
            .connect
            .get_database()
            .expect("it has one")
            .to_owned();
        ground
            .run(&format!("alter database {database} set {setting}"))
            .await;
        for is_pooled in [false, true] {
            let lived = lives(&ground, is_pooled).await;
            lived.unwrap_or_else(|error| {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                panic!("{path}, pooled {is_pooled}: {error}: {source:?}")
            });
        }
        // Who puts the built-in names last has done so for all that the transaction does.
        if !path.ends_with("pg_catalog") {
            enqueues_inside(&ground).await.expect("enqueued");
        }
        ground.end().await;
    }
}

#[tokio::test]
async fn the_defaults_of_a_database_for_transactions_change_nothing() {
    let Some(ground) = Ground::with_settings(&[]).await else {
        return;
    };
    let database = ground.connect.get_database().expect("it has one");
    for setting in [
        "default_transaction_isolation = 'serializable'",
        "default_transaction_isolation = 'repeatable read'",
        "default_transaction_deferrable = on",
        "standard_conforming_strings = off",
        "bytea_output = 'escape'",
        "intervalstyle = 'iso_8601'",
        "plan_cache_mode = force_custom_plan",
        "lc_messages = 'de_DE.UTF-8'",
        "row_security = off",
        "extra_float_digits = -15",
    ] {
        // What a server does not have it refuses; then there is nothing to see.
        let mut conn = ground.connection().await;
        let set = format!("alter database {database} set {setting}");
        if sqlx::query(AssertSqlSafe(set))
            .execute(&mut conn)
            .await
            .is_ok()
        {
            for is_pooled in [false, true] {
                let lived = lives(&ground, is_pooled).await;
                lived.unwrap_or_else(|error| panic!("{setting}: {error}"));
            }
            if !setting.contains("repeatable") && !setting.contains("serializable") {
                enqueues_inside(&ground).await.expect("enqueued");
            }
        }
        ground
            .run(&format!("alter database {database} reset all"))
            .await;
    }
    ground.end().await;
}

/// O-055: every stored instant is one, whatever clock the server shows to people.
#[tokio::test]
async fn the_time_zone_of_server_and_session_is_in_no_stored_instant() {
    let settings = ["timezone = 'Asia/Tokyo'", "datestyle = 'SQL, DMY'"];
    let Some(ground) = Ground::with_settings(&settings).await else {
        return;
    };
    lives(&ground, false).await.expect("it lives");
    let mut conn = ground.connection().await;
    run(&mut conn, "set timezone = 'America/St_Johns'").await;

    let columns = "
        select table_name::text, column_name::text, data_type::text
        from information_schema.columns
        where table_schema = 'queue'
          and (data_type like 'time%' or data_type like '%date%' or column_name like '%\\_at')";
    let columns = sqlx::query(columns)
        .fetch_all(&mut conn)
        .await
        .expect("listed");
    assert!(columns.len() > 15);
    let mut seen = 0;
    for column in columns {
        let [table, name, kind] = [0, 1, 2].map(|place| column.get::<String, _>(place));
        assert_eq!(kind, "timestamp with time zone", "{table}.{name}");
        let off = format!(
            "select extract(epoch from max(greatest({name} - now(), now() - {name})))::float8
             from queue.{table}"
        );
        let off: Option<f64> = sqlx::query_scalar(AssertSqlSafe(off))
            .fetch_one(&mut conn)
            .await
            .expect("read");
        seen += usize::from(off.is_some());
        // Only the lease of a minute is not now; a zone would be hours away.
        assert!(
            off.is_none_or(|off| off < 120.0),
            "{table}.{name}: {off:?} s"
        );
    }
    assert!(seen > 5, "{seen} columns had an instant");
    ground.end().await;
}

#[tokio::test]
async fn a_database_that_is_read_only_by_default_is_said_to_be() {
    let Some(ground) = Ground::with_settings(&[]).await else {
        return;
    };
    lives(&ground, false).await.expect("it lives");
    let store = PostgresStore::open(ground.options("queue"))
        .await
        .expect("opened");
    store.insert(&jobs(1)).await.expect("stored");
    let database = ground.connect.get_database().expect("it has one");
    let fence = format!("alter database {database} set default_transaction_read_only =");
    ground.run(&format!("{fence} on")).await;
    store.close().await;

    let store = PostgresStore::open(ground.options("queue"))
        .await
        .expect("may be read");
    for refused in [
        store.insert(&jobs(1)).await.map(drop),
        store.insert(&[keyed("k")]).await.map(drop),
        store.claim(&request(1)).await.map(drop),
    ] {
        let error = refused.expect_err("nothing may be written");
        assert!(error.is_transient(), "{error}");
        assert!(error.to_string().contains("read-only"), "{error}");
        assert!(
            error.to_string().contains("default_transaction_read_only"),
            "{error}"
        );
    }
    store.counts().await.expect("reading is free");
    store.close().await;

    let reset = format!("begin read write; {fence} off; commit");
    ground.run(&reset).await;
    let store = PostgresStore::open(ground.options("queue"))
        .await
        .expect("opened");
    assert_eq!(store.claim(&request(9)).await.expect("claimed").len(), 1);
    store.close().await;
    ground.end().await;
}
