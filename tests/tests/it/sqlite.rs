//! The queue beside the application's own tables: one file, one transaction.

use queue_runtime::{EnqueueError, JobState, OpenError, Queue, Worker, job};

use crate::world::{File, World, final_events};

#[job]
async fn ships(order: i64) {
    let _ = order;
}

async fn orders(queue: &Queue) -> i64 {
    let mut tx = queue.begin().await.expect("a transaction");
    sqlx::query_scalar("select count(*) from orders")
        .fetch_one(&mut *tx)
        .await
        .expect("a count")
}

async fn with_table() -> (File, Queue) {
    let file = File::new();
    let queue = file.open().await;
    let mut tx = queue.begin().await.expect("a transaction");
    sqlx::query("create table orders (id integer primary key)")
        .execute(&mut *tx)
        .await
        .expect("a table");
    tx.commit().await.expect("committed");
    (file, queue)
}

#[tokio::test]
async fn a_commit_keeps_the_order_and_its_job() {
    let (_file, queue) = with_table().await;
    let mut tx = queue.begin().await.expect("a transaction");
    sqlx::query("insert into orders values (1)")
        .execute(&mut *tx)
        .await
        .expect("a row");
    let sent = ships::enqueue(&queue, 1)
        .in_tx(&mut tx)
        .await
        .expect("staged");
    assert_eq!(
        queue.job(sent.id).await.expect("it answers"),
        None,
        "not visible before the commit"
    );
    tx.commit().await.expect("committed");

    assert_eq!(orders(&queue).await, 1);
    let done = final_events(&queue, 1);
    Worker::builder(&queue)
        .job::<ShipsJob>()
        .run_until(done)
        .await
        .expect("ends well");
    let job = queue
        .job(sent.id)
        .await
        .expect("it answers")
        .expect("it exists");
    assert_eq!(job.state, JobState::Done);
    queue.close().await;
}

#[tokio::test]
async fn a_rollback_leaves_neither() {
    let (_file, queue) = with_table().await;
    let mut tx = queue.begin().await.expect("a transaction");
    sqlx::query("insert into orders values (1)")
        .execute(&mut *tx)
        .await
        .expect("a row");
    ships::enqueue(&queue, 1)
        .in_tx(&mut tx)
        .await
        .expect("staged");
    tx.rollback().await.expect("rolled back");

    assert_eq!(orders(&queue).await, 0);
    assert_eq!(queue.counts().await.expect("it answers").total(), 0);
    queue.close().await;
}

#[tokio::test]
async fn a_rolled_back_enqueue_is_not_told_as_an_event() {
    let (_file, queue) = with_table().await;
    let mut events = queue.events();
    let mut tx = queue.begin().await.expect("a transaction");
    ships::enqueue(&queue, 1)
        .in_tx(&mut tx)
        .await
        .expect("staged");
    tx.rollback().await.expect("rolled back");

    assert!(events.try_recv().is_err());
    queue.close().await;
}

#[tokio::test]
async fn an_enqueue_repeated_under_its_id_is_one_job() {
    let (_file, queue) = with_table().await;
    let first = ships::enqueue(&queue, 1);
    let id = first.job_id();
    assert_eq!(first.await.expect("enqueued").id, id);

    // As after an answer that was lost.
    let again = ships::enqueue(&queue, 1).id(id).await.expect("answered");

    assert_eq!((again.id, again.duplicate), (id, true));
    let other = ships::enqueue(&queue, 2)
        .id(id)
        .await
        .expect_err("another job's id");
    assert!(matches!(other, EnqueueError::IdTaken { .. }), "{other}");
    assert_eq!(queue.counts().await.expect("it answers").total(), 1);
    queue.close().await;
}

#[tokio::test]
async fn a_transaction_of_another_database_is_refused_and_nothing_is_written() {
    let (_file, queue) = with_table().await;
    let (_other_file, other) = with_table().await;
    let mut tx = other.begin().await.expect("a transaction");

    let error = ships::enqueue(&queue, 1)
        .in_tx(&mut tx)
        .await
        .expect_err("another database");

    assert!(
        matches!(error, EnqueueError::OtherDatabase { .. }),
        "{error}"
    );
    tx.commit().await.expect("committed");
    for queue in [&queue, &other] {
        assert_eq!(queue.counts().await.expect("it answers").total(), 0);
        queue.close().await;
    }
}

#[tokio::test]
async fn a_queue_in_memory_refuses_a_transaction_of_a_file() {
    let world = World::new();
    let (_file, other) = with_table().await;
    let mut tx = other.begin().await.expect("a transaction");
    let error = ships::enqueue(&world.queue, 1)
        .in_tx(&mut tx)
        .await
        .expect_err("another store");
    assert!(
        matches!(error, EnqueueError::OtherDatabase { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn jobs_survive_the_process_that_enqueued_them() {
    let file = File::new();
    let queue = file.open().await;
    let sent = ships::enqueue(&queue, 1).await.expect("enqueued");
    queue.close().await;

    let queue = file.open().await;
    let done = final_events(&queue, 1);
    Worker::builder(&queue)
        .job::<ShipsJob>()
        .run_until(done)
        .await
        .expect("ends well");
    let job = queue
        .job(sent.id)
        .await
        .expect("it answers")
        .expect("it exists");
    assert_eq!((job.state, job.attempts), (JobState::Done, 1));
    queue.close().await;
}

async fn refused(url: &str, expected: &str) {
    let error = Queue::open(url).await.expect_err(expected);
    assert!(error.to_string().contains(expected), "{url}: {error}");
}

#[tokio::test]
async fn an_address_that_names_no_store_says_what_one_looks_like() {
    refused("", "store address").await;
    refused("mysql://db/jobs", "sqlite:").await;
    refused("mysql://db/jobs", "postgres:").await;
    refused("redis://me:hunter2@db", "\"redis://…\"").await;
    refused("sqlite::memory:", "memory").await;
    for odd in [" ", "MEMORY:", "memory:x", "sqlite://a\0b", "file:jobs.db"] {
        refused(odd, "store address").await;
    }
    let secret = Queue::open("sqlite://me:hunter2@host/jobs.db")
        .await
        .expect_err("a host");
    assert!(!secret.to_string().contains("hunter2"), "{secret}");
    let secret = Queue::open("postgres://me:hunter2@/jobs")
        .await
        .expect_err("no host");
    assert!(matches!(secret, OpenError::InvalidUrl { .. }), "{secret}");
    assert!(!secret.to_string().contains("hunter2"), "{secret}");
}

#[tokio::test]
async fn a_path_that_cannot_be_a_queue_says_why() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| format!("sqlite://{}/{name}", folder.path().display());
    refused(&at(""), "is a directory").await;
    refused(&at("missing/jobs.db"), "missing").await;
    let text = folder.path().join("notes.txt");
    std::fs::write(
        &text,
        "this is no database, whatever its name says. ".repeat(100),
    )
    .expect("written");
    refused(&at("notes.txt"), "not a database").await;
}
