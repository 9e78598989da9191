//! A handler that ends its job in its own transaction: the effect and the job's end are one.
//!
//! Every scenario runs on each store that has transactions.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use queue_runtime::job::{Change, JobResult, OutcomeKind, Settled, Settlement};
use queue_runtime::{
    Data, FenceError, JobContext, JobError, JobEvent, JobRecord, JobState, Queue, Worker, job,
};
use sqlx::{AssertSqlSafe, Executor, PgPool, SqlitePool};

use crate::world::{File, Server, final_events};

/// The database of the queue, as the application sees it.
enum Database {
    Sqlite(SqlitePool),
    Postgres(PgPool, String),
}

/// A transaction of the application's.
enum Tx {
    Sqlite(sqlx::Transaction<'static, sqlx::Sqlite>),
    Postgres(sqlx::Transaction<'static, sqlx::Postgres>),
}

impl Database {
    fn name(&self, table: &str) -> String {
        match self {
            Self::Sqlite(_) => table.to_owned(),
            Self::Postgres(_, schema) => format!("{schema}.{table}"),
        }
    }

    async fn execute(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.replace("effects", &self.name("effects")));
        match self {
            Self::Sqlite(pool) => pool.execute(sql).await.map(drop),
            Self::Postgres(pool, _) => pool.execute(sql).await.map(drop),
        }
        .expect("the application's statement is valid");
    }

    async fn effects(&self) -> i64 {
        let sql = AssertSqlSafe(format!("select count(*) from {}", self.name("effects")));
        match self {
            Self::Sqlite(pool) => sqlx::query_scalar(sql).fetch_one(pool).await,
            Self::Postgres(pool, _) => sqlx::query_scalar(sql).fetch_one(pool).await,
        }
        .expect("the application's statement is valid")
    }

    async fn begin(&self) -> Tx {
        match self {
            Self::Sqlite(pool) => Tx::Sqlite(
                pool.begin_with("begin immediate")
                    .await
                    .expect("a transaction"),
            ),
            Self::Postgres(pool, _) => Tx::Postgres(pool.begin().await.expect("a transaction")),
        }
    }
}

impl Tx {
    /// Makes the effect that must happen once.
    async fn effect(&mut self, database: &Database) {
        let sql = AssertSqlSafe(format!(
            "insert into {} (made) values (1)",
            database.name("effects")
        ));
        match self {
            Self::Sqlite(tx) => tx.execute(sql).await.map(drop),
            Self::Postgres(tx) => tx.execute(sql).await.map(drop),
        }
        .expect("the application's statement is valid");
    }

    async fn complete(&mut self, ctx: &JobContext) -> Result<(), FenceError> {
        match self {
            Self::Sqlite(tx) => ctx.complete_in(tx).await,
            Self::Postgres(tx) => ctx.complete_in(tx).await,
        }
    }

    async fn fence(&mut self, ctx: &JobContext) -> Result<(), FenceError> {
        match self {
            Self::Sqlite(tx) => ctx.fence_in(tx).await,
            Self::Postgres(tx) => ctx.fence_in(tx).await,
        }
    }

    async fn commit(self) {
        match self {
            Self::Sqlite(tx) => tx.commit().await,
            Self::Postgres(tx) => tx.commit().await,
        }
        .expect("committed");
    }
}

/// What the handler is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Commit,
    ForgetToCommit,
    FailAfterCommit,
    LoseTheLease { with: Write },
}

/// How a late worker would write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    Completing,
    Fenced,
}

struct Plan {
    database: Database,
    way: Way,
    queue: Queue,
    runs: AtomicU32,
}

#[job(retries = 1, backoff = "fixed(1ms)")]
async fn book(ctx: JobContext, #[inject] plan: Data<Plan>) -> Result<(), JobError> {
    let run = plan.runs.fetch_add(1, Ordering::SeqCst);
    let mut tx = plan.database.begin().await;
    tx.effect(&plan.database).await;
    match plan.way {
        Way::LoseTheLease { with } if run == 0 => {
            drop(tx);
            taken_back(&ctx, &plan.queue).await;
            let mut tx = plan.database.begin().await;
            tx.effect(&plan.database).await;
            match with {
                Write::Completing => tx.complete(&ctx).await?,
                Write::Fenced => tx.fence(&ctx).await?,
            }
            unreachable!("a late worker is refused");
        }
        _ => tx.complete(&ctx).await?,
    }
    if plan.way == Way::ForgetToCommit {
        return Ok(());
    }
    tx.commit().await;
    match plan.way {
        Way::FailAfterCommit => Err(JobError::retry("the answer to the commit was lost")),
        _ => Ok(()),
    }
}

/// Hands the running job back behind its handler's back, as a rescue would.
async fn taken_back(ctx: &JobContext, queue: &Queue) {
    let back = Settlement {
        id: ctx.job_id(),
        token: ctx.fence(),
        change: Change::Queued {
            delay: Duration::ZERO,
        },
        outcome: OutcomeKind::Lost,
        error: None,
        attempts: ctx.attempt(),
        crashes: 1,
        snoozes: 0,
        only_if_expired: false,
    };
    let settled = queue.store().settle(&[back]).await.expect("it answers");
    assert_eq!(settled, [Settled::Applied(JobState::Queued)]);
}

/// What was seen of one job.
struct Seen {
    job: JobRecord,
    outcomes: Vec<Option<OutcomeKind>>,
    results: Vec<JobResult>,
    effects: i64,
    runs: u32,
}

/// Runs one job to its end.
async fn run(queue: Queue, database: Database, way: Way) -> Seen {
    database
        .execute("create table effects (made integer not null)")
        .await;
    let plan = Data::new(Plan {
        database,
        way,
        queue: queue.clone(),
        runs: AtomicU32::new(0),
    });
    let mut events = queue.events();
    let sent = book::enqueue(&queue).await.expect("enqueued");
    Worker::builder(&queue)
        .job::<BookJob>()
        .shared(plan.clone())
        .poll(Duration::from_millis(20))
        .run_until(final_events(&queue, 1))
        .await
        .expect("ends well");
    let results = std::iter::from_fn(|| events.try_recv().ok())
        .filter_map(|event| match event {
            JobEvent::Settled { result, error, .. } => {
                assert_eq!(error.is_some(), result != JobResult::Success);
                Some(result)
            }
            _ => None,
        })
        .collect();
    let attempts = queue.attempts(sent.id).await.expect("it answers");
    let seen = Seen {
        job: queue.job(sent.id).await.expect("it answers").expect("kept"),
        outcomes: attempts.iter().map(|attempt| attempt.outcome).collect(),
        results,
        effects: plan.database.effects().await,
        runs: plan.runs.load(Ordering::SeqCst),
    };
    queue.close().await;
    seen
}

async fn the_effect_and_the_end_are_committed_together(queue: Queue, database: Database) {
    let seen = run(queue, database, Way::Commit).await;

    assert_eq!((seen.job.state, seen.job.attempts), (JobState::Done, 1));
    assert_eq!(seen.outcomes, [Some(OutcomeKind::Success)]);
    assert_eq!(seen.results, [JobResult::Success]);
    assert_eq!((seen.effects, seen.runs), (1, 1));
}

async fn a_transaction_that_was_not_committed_is_no_success(queue: Queue, database: Database) {
    let seen = run(queue, database, Way::ForgetToCommit).await;

    assert_eq!(
        (seen.job.state, seen.job.attempts),
        (JobState::DeadLetter, 2)
    );
    let error = seen.job.last_error.expect("it says why");
    assert!(error.contains("did not commit"), "{error}");
    assert_eq!(seen.results, [JobResult::Retry, JobResult::DeadLetter]);
    assert_eq!((seen.effects, seen.runs), (0, 2));
}

async fn a_commit_whose_answer_was_lost_is_not_made_twice(queue: Queue, database: Database) {
    let seen = run(queue, database, Way::FailAfterCommit).await;

    assert_eq!((seen.job.state, seen.job.attempts), (JobState::Done, 1));
    assert_eq!(seen.results, [JobResult::Success]);
    assert_eq!((seen.effects, seen.runs), (1, 1));
}

async fn a_late_worker_cannot_complete(queue: Queue, database: Database) {
    let with = Write::Completing;
    let seen = run(queue, database, Way::LoseTheLease { with }).await;

    assert_eq!((seen.job.state, seen.job.attempts), (JobState::Done, 2));
    assert_eq!((seen.effects, seen.runs), (1, 2));
}

async fn a_late_worker_cannot_write_behind_a_fence(queue: Queue, database: Database) {
    let with = Write::Fenced;
    let seen = run(queue, database, Way::LoseTheLease { with }).await;

    assert_eq!((seen.job.state, seen.job.attempts), (JobState::Done, 2));
    assert_eq!((seen.effects, seen.runs), (1, 2));
}

/// Makes a test of each scenario for one store.
macro_rules! on {
    ($store:ident: $($scenario:ident)+) => {
        mod $store {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    super::$store(async |queue, database| super::$scenario(queue, database).await)
                        .await;
                }
            )+
        }
    };
}

on! { sqlite:
    the_effect_and_the_end_are_committed_together
    a_transaction_that_was_not_committed_is_no_success
    a_commit_whose_answer_was_lost_is_not_made_twice
    a_late_worker_cannot_complete
    a_late_worker_cannot_write_behind_a_fence
}

on! { postgres:
    the_effect_and_the_end_are_committed_together
    a_transaction_that_was_not_committed_is_no_success
    a_commit_whose_answer_was_lost_is_not_made_twice
    a_late_worker_cannot_complete
    a_late_worker_cannot_write_behind_a_fence
}

async fn sqlite(scenario: impl AsyncFnOnce(Queue, Database)) {
    let file = File::new();
    let queue = file.open().await;
    let pool = SqlitePool::connect(&file.url()).await.expect("it opens");
    scenario(queue, Database::Sqlite(pool)).await;
}

async fn postgres(scenario: impl AsyncFnOnce(Queue, Database)) {
    let Some(server) = Server::new() else { return };
    let (queue, pool) = (server.open().await, server.pool().await);
    let schema = server.schema().to_owned();
    scenario(queue, Database::Postgres(pool, schema)).await;
    server.end().await;
}

#[tokio::test]
async fn a_transaction_on_another_database_completes_nothing() {
    let file = File::new();
    let elsewhere = file.open().await;
    let mut tx = elsewhere.begin().await.expect("a transaction");
    let ctx = JobContext::for_test();

    let refused = ctx.complete_in(&mut tx).await.expect_err("in memory");
    assert!(
        matches!(refused, FenceError::OtherDatabase { .. }),
        "{refused}"
    );
    let refused = ctx.fence_in(&mut tx).await.expect_err("in memory");
    assert!(
        matches!(refused, FenceError::OtherDatabase { .. }),
        "{refused}"
    );
    tx.rollback().await.expect("rolled back");
    elsewhere.close().await;
}

#[tokio::test]
async fn an_end_without_a_transaction_is_refused() {
    let file = File::new();
    let queue = file.open().await;
    let pool = sqlx::SqlitePool::connect(&file.url())
        .await
        .expect("opened");
    ends_bare(&queue, Bare::Sqlite(pool.clone())).await;
    queue.close().await;
    pool.close().await;
    let Some(server) = Server::new() else { return };
    let queue = server.open().await;
    let pool = server.pool().await;
    ends_bare(&queue, Bare::Postgres(pool.clone())).await;
    queue.close().await;
    pool.close().await;
    server.end().await;
}

/// Connections on which no transaction is open.
enum Bare {
    Sqlite(sqlx::SqlitePool),
    Postgres(PgPool),
}

/// A job whose handler completes it where nothing could be committed with it is not done.
async fn ends_bare(queue: &Queue, bare: Bare) {
    let refused = Data::new(Mutex::new(Vec::<String>::new()));
    let sent = end_bare::enqueue(queue).await.expect("enqueued");
    Worker::builder(queue)
        .job::<EndBareJob>()
        .data(bare)
        .shared(refused.clone())
        .run_until(final_events(queue, 1))
        .await
        .expect("ends well");
    let said = refused.lock().expect("no panic").join("; ");
    assert_eq!(said.matches("no open transaction").count(), 2, "{said}");
    let job = queue.job(sent.id).await.expect("it answers").expect("kept");
    assert_eq!(job.state, JobState::DeadLetter);
    assert_eq!(job.last_error.as_deref(), Some("the write has failed"));
}

#[job]
async fn end_bare(
    ctx: JobContext,
    #[inject] bare: Data<Bare>,
    #[inject] refused: Data<Mutex<Vec<String>>>,
) -> Result<(), JobError> {
    let answers = match &*bare {
        Bare::Sqlite(pool) => {
            let mut conn = pool.acquire().await?;
            [
                ctx.complete_in(&mut conn).await,
                ctx.fence_in(&mut conn).await,
            ]
        }
        Bare::Postgres(pool) => {
            let mut conn = pool.acquire().await?;
            [
                ctx.complete_in(&mut conn).await,
                ctx.fence_in(&mut conn).await,
            ]
        }
    };
    let said = answers.map(|answer| answer.expect_err("nothing would be held").to_string());
    refused.lock().expect("no panic").extend(said);
    Err(JobError::permanent("the write has failed"))
}

#[tokio::test]
async fn a_fence_without_a_transaction_is_refused_on_postgres() {
    let Some(server) = Server::new() else { return };
    let queue = server.open().await;
    let pool = server.pool().await;
    let mut conn = pool.acquire().await.expect("a connection");
    let refused = Data::new(Mutex::new(None::<String>));
    let sent = fence_bare::enqueue(&queue).await.expect("enqueued");
    Worker::builder(&queue)
        .job::<FenceBareJob>()
        .shared(Data::new(pool.clone()))
        .shared(refused.clone())
        .run_until(final_events(&queue, 1))
        .await
        .expect("ends well");
    let refused = refused.lock().expect("no panic").take();
    let said = refused.expect("it was refused");
    assert!(said.contains("no open transaction"), "{said}");
    let job = queue.job(sent.id).await.expect("it answers").expect("kept");
    assert_eq!(job.state, JobState::Done);
    // The caller's own transaction, begun by hand, stays open over the queue's part in it.
    conn.execute("begin").await.expect("begun");
    let inside = fence_bare::enqueue(&queue).in_tx(&mut conn).await;
    let inside = inside.expect("enqueued");
    assert!(queue.job(inside.id).await.expect("it answers").is_none());
    conn.execute("rollback").await.expect("rolled back");
    assert!(queue.job(inside.id).await.expect("it answers").is_none());
    queue.close().await;
    drop(conn);
    server.end().await;
}

#[job]
async fn fence_bare(
    ctx: JobContext,
    #[inject] pool: Data<PgPool>,
    #[inject] refused: Data<Mutex<Option<String>>>,
) -> Result<(), JobError> {
    let mut conn = pool.acquire().await?;
    let answer = ctx.fence_in(&mut conn).await;
    let said = answer.expect_err("nothing would be locked").to_string();
    *refused.lock().expect("no panic") = Some(said);
    Ok(())
}
