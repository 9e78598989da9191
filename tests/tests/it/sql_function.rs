//! The function by which programs in other languages enqueue on Postgres.

use std::sync::Mutex;

use futures_util::future::join_all;
use queue_runtime::{Data, JobId, JobState, Queue, Worker, job};
use sqlx::{AssertSqlSafe, PgPool, Row};
use uuid::Uuid;

use crate::world::{Server, final_events};

#[job(retries = 2)]
async fn greets(user_id: i64, email: String, #[inject] greeted: Data<Mutex<Vec<String>>>) {
    let mut greeted = greeted.lock().expect("no panic while greeting");
    greeted.push(format!("{user_id} {email}"));
}

/// A server, or nothing if the test is skipped.
async fn world() -> Option<(Server, Queue, PgPool)> {
    let server = Server::new()?;
    let (queue, pool) = (server.open().await, server.pool().await);
    Some((server, queue, pool))
}

async fn call(pool: &PgPool, schema: &str, arguments: &str) -> Result<(JobId, bool), sqlx::Error> {
    let sql = AssertSqlSafe(format!(
        "select id, duplicate from {schema}.enqueue({arguments})"
    ));
    let row = sqlx::query(sql).fetch_one(pool).await?;
    let id: Uuid = row.try_get(0)?;
    Ok((JobId::from_uuid(id), row.try_get(1)?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_was_enqueued_by_the_function_runs_like_any_other() {
    let Some((server, queue, pool)) = world().await else {
        return;
    };
    let arguments = r#"'greets', '{"user_id": 42, "email": "ada@example.org"}', priority => 7,
        max_attempts => 3, trace_context => 'here', deadline => interval '1 hour'"#;
    let (id, duplicate) = call(&pool, server.schema(), arguments)
        .await
        .expect("enqueued");
    assert!(!duplicate);
    assert_eq!(id.as_uuid().get_version_num(), 7);
    assert_eq!(id.as_uuid().get_variant(), uuid::Variant::RFC4122);

    let greeted = Data::new(Mutex::new(Vec::<String>::new()));
    Worker::builder(&queue)
        .job::<GreetsJob>()
        .shared(greeted.clone())
        .run_until(final_events(&queue, 1))
        .await
        .expect("ends well");

    let job = queue.job(id).await.expect("it answers").expect("kept");
    assert_eq!(
        (job.state, job.attempts, job.max_attempts),
        (JobState::Done, 1, 3)
    );
    assert_eq!(
        (job.priority, job.trace_context.as_deref()),
        (7, Some("here"))
    );
    assert!(job.deadline.is_some());
    assert_eq!(
        job.payload,
        r#"{"user_id": 42, "email": "ada@example.org"}"#
    );
    assert_eq!(*greeted.lock().expect("no panic"), ["42 ada@example.org"]);
    queue.close().await;
    pool.close().await;
    server.end().await;
}

#[tokio::test]
async fn a_job_of_the_function_is_part_of_its_callers_transaction() {
    let Some((server, queue, pool)) = world().await else {
        return;
    };
    let call = format!(
        "select id from {}.enqueue('greets', '{{}}')",
        server.schema()
    );
    let mut tx = pool.begin().await.expect("begun");
    let row = sqlx::query(AssertSqlSafe(call)).fetch_one(&mut *tx).await;
    let id = JobId::from_uuid(row.expect("enqueued").get(0));
    assert!(queue.job(id).await.expect("it answers").is_none());

    tx.rollback().await.expect("rolled back");
    assert_eq!(queue.counts().await.expect("it answers").total(), 0);
    queue.close().await;
    pool.close().await;
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_callers_with_one_key_make_one_job_and_are_all_told_of_it() {
    let Some((server, queue, pool)) = world().await else {
        return;
    };
    let arguments = r#"'greets', '{"user_id": 1, "email": "a"}', dedupe_key => 'user 1'"#;
    let callers = (0..20).map(|_| call(&pool, server.schema(), arguments));
    let answers = join_all(callers).await;

    let answers: Vec<_> = answers
        .into_iter()
        .map(|answer| answer.expect("answered"))
        .collect();
    let new = answers.iter().filter(|(_, duplicate)| !duplicate).count();
    assert_eq!(new, 1, "{answers:?}");
    assert!(answers.iter().all(|(id, _)| *id == answers[0].0));
    assert_eq!(queue.counts().await.expect("it answers").queued, 1);

    // The key that the function stores is the one that the library knows.
    let beside = greets::enqueue(&queue, 2, "b".to_owned())
        .dedupe_key("user 1")
        .await;
    assert_eq!(beside.expect("answered").id, answers[0].0);
    queue.close().await;
    pool.close().await;
    server.end().await;
}

#[tokio::test]
async fn what_the_library_would_refuse_the_function_refuses_too() {
    let Some((server, queue, pool)) = world().await else {
        return;
    };
    let refused = async |arguments: &str, words: &str| {
        let answer = call(&pool, server.schema(), arguments).await;
        let error = answer.expect_err(arguments).to_string();
        assert!(error.contains(words), "{arguments}: {error}");
    };
    refused("null, '{}'", "job type NULL").await;
    refused("'', '{}'", "must be 1-120 characters").await;
    refused("'a b', '{}'", "job type 'a b'").await;
    refused("'greets', '[]'", "must be a JSON object").await;
    refused("'greets', null", "must be a JSON object").await;
    refused("'greets', '{'", "invalid input syntax").await;
    refused("'greets', '{}', queue => 'Mail'", "queue name 'Mail'").await;
    refused("'greets', '{}', queue => 'a''b'", "queue name").await;
    refused("'greets', '{}', priority => 101", "priority 101").await;
    refused("'greets', '{}', max_attempts => 0", "max_attempts 0").await;
    refused("'greets', '{}', payload_schema => -1", "payload_schema -1").await;
    refused("'greets', '{}', dedupe_key => ''", "dedupe_key").await;
    refused("'greets', '{}', delay => interval '11 years'", "ten years").await;
    refused("'greets', '{}', run_at => 'infinity'", "ten years").await;
    refused("'greets', '{}', deadline => interval '-1 s'", "deadline").await;
    let large = format!(
        "'greets', json_build_object('text', repeat('x', {}))",
        1 << 20
    );
    refused(&large, "at most 1048576").await;
    assert_eq!(queue.counts().await.expect("it answers").total(), 0);

    // A time that has passed means at once.
    let past = call(
        &pool,
        server.schema(),
        "'greets', '{}', run_at => '1999-01-01'",
    )
    .await;
    let job = queue.job(past.expect("enqueued").0).await;
    let job = job.expect("it answers").expect("it exists");
    assert_eq!(job.run_at, job.created_at);
    queue.close().await;
    pool.close().await;
    server.end().await;
}
