//! Schemas, databases and roles of a test's own on the server that `QUEUE_TEST_POSTGRES_URL`
//! names, and a clock moved by hand.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgConnection};
use tokio::sync::watch;

use crate::error::{OpenError, StoreError};
use crate::job::{
    Change, Claimed, Dedupe, DedupeUntil, Due, JobId, JobType, NewJob, OnDuplicate, OutcomeKind,
    QueueName, Settlement, WorkerId,
};
use crate::seam::{Seam, SystemSeam};
use crate::store::postgres::{PostgresOptions, PostgresStore};
use crate::store::{ClaimRequest, Store, Suspects};
use crate::time::Timestamp;

/// Returns the server's address; `None` if the test is to be skipped.
pub(crate) fn server() -> Option<String> {
    let url = std::env::var("QUEUE_TEST_POSTGRES_URL").ok();
    if url.is_none() {
        let why = "QUEUE_TEST_POSTGRES_URL names no Postgres server; `cargo xtask test` starts one";
        assert!(std::env::var_os("CI").is_none(), "{why}");
        eprintln!("skipped: {why}");
    }
    url
}

/// A name that nobody else on the server has.
pub(crate) fn name() -> String {
    format!("unit_{:016x}", SystemSeam::new().random())
}

/// A database on the server, and what has to be removed from it in the end.
pub(crate) struct Ground {
    server: PgConnectOptions,
    pub(crate) connect: PgConnectOptions,
    undo: Vec<String>,
}

impl Ground {
    /// The database that all tests share; `None` if there is no server.
    pub(crate) fn shared() -> Option<Self> {
        let server = PgConnectOptions::from_str(&server()?).expect("the address is valid");
        Some(Self {
            connect: server.clone(),
            server,
            undo: Vec::new(),
        })
    }

    /// A database of its own with settings such as `timezone = 'Asia/Tokyo'`.
    pub(crate) async fn with_settings(settings: &[&str]) -> Option<Self> {
        let mut ground = Self::shared()?;
        let database = name();
        ground.run(&format!("create database {database}")).await;
        for setting in settings {
            ground
                .run(&format!("alter database {database} set {setting}"))
                .await;
        }
        ground
            .undo
            .push(format!("drop database {database} with (force)"));
        ground.connect = ground.connect.database(&database);
        Some(ground)
    }

    /// Chooses a schema, which is removed in the end if it was made.
    pub(crate) fn schema(&mut self) -> String {
        let schema = name();
        self.undo
            .push(format!("drop schema if exists {schema} cascade"));
        schema
    }

    /// Makes a role that may log in, and returns how to connect as it.
    pub(crate) async fn role(&mut self) -> (String, PgConnectOptions) {
        let role = name();
        self.run(&format!("create role {role} login")).await;
        self.undo
            .push(format!("drop owned by {role}; drop role {role}"));
        let connect = self.connect.clone().username(&role);
        (role, connect)
    }

    /// Opens a connection to the database, as the tests' superuser.
    pub(crate) async fn connection(&self) -> PgConnection {
        let connected = self.connect.connect().await;
        connected.expect("the server takes one more connection")
    }

    /// Runs statements on a connection of their own, as the tests' superuser.
    pub(crate) async fn run(&self, sql: &str) {
        run(&mut self.connection().await, sql).await;
    }

    /// How to open a store here.
    pub(crate) fn options(&self, schema: &str) -> PostgresOptions {
        options_of(&self.connect, schema)
    }

    /// Removes everything.
    pub(crate) async fn end(self) {
        let mut conn = self.connection().await;
        run(&mut conn, "set client_min_messages = error").await;
        let (databases, others): (Vec<_>, Vec<_>) = self
            .undo
            .iter()
            .rev()
            .partition(|undo| undo.starts_with("drop database"));
        for undo in others {
            run(&mut conn, undo).await;
        }
        drop(conn);
        let mut conn = self.server.connect().await.expect("the server answers");
        for undo in databases {
            run(&mut conn, undo).await;
        }
    }
}

/// Runs statements that must work.
pub(crate) async fn run(conn: &mut PgConnection, sql: &str) {
    let done = conn.execute(AssertSqlSafe(sql.to_owned())).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// How to open a store by way of a connection.
pub(crate) fn options_of(connect: &PgConnectOptions, schema: &str) -> PostgresOptions {
    let pool = PgPoolOptions::new().connect_lazy_with(connect.clone());
    PostgresOptions::from_pool(&pool)
        .schema(schema)
        .expect("the name is valid")
}

/// What opening a store is refused with.
pub(crate) async fn refusal(options: PostgresOptions) -> StoreError {
    match PostgresStore::open(options).await {
        Err(OpenError::Store(error)) => error,
        other => panic!("the store refuses, not {other:?}"),
    }
}

/// A clock moved by hand.
#[derive(Debug)]
pub(crate) struct Hand {
    now: AtomicI64,
    /// How often somebody has slept by it.
    pub(crate) sleeps: AtomicUsize,
    rushes: watch::Sender<bool>,
    system: SystemSeam,
}

impl Hand {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            now: AtomicI64::new(1_796_000_000_000),
            sleeps: AtomicUsize::new(0),
            rushes: watch::Sender::new(false),
            system: SystemSeam::new(),
        })
    }

    pub(crate) fn advance(&self, span: Duration) {
        let ms = i64::try_from(span.as_millis()).expect("a short span");
        self.now.fetch_add(ms, Ordering::SeqCst);
    }

    /// Ends all sleeps by it, those that have begun and those to come.
    pub(crate) fn rush(&self) {
        self.rushes.send_replace(true);
    }
}

impl Seam for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::SeqCst))
    }

    fn elapsed(&self) -> Duration {
        self.system.elapsed()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        self.sleeps.fetch_add(1, Ordering::SeqCst);
        let (slept, mut rushes) = (self.system.sleep(span), self.rushes.subscribe());
        Box::pin(async move {
            tokio::select! {
                () = slept => {}
                Ok(_) = rushes.wait_for(|rushes| *rushes) => {}
            }
        })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> tokio::task::JoinHandle<()> {
        self.system.spawn(task)
    }

    fn spawn_apart(&self, name: &str, task: BoxFuture<'static, ()>) -> std::io::Result<()> {
        self.system.spawn_apart(name, task)
    }

    fn random(&self) -> u64 {
        self.system.random()
    }

    fn job_id(&self) -> JobId {
        self.system.job_id()
    }
}

/// A store in a schema that nobody else has.
pub(crate) struct World {
    pub(crate) store: PostgresStore,
    pub(crate) schema: String,
    pub(crate) hand: Arc<Hand>,
    pub(crate) ground: Ground,
}

impl World {
    /// Opens a fresh store on a clock moved by hand; `None` if there is no server.
    pub(crate) async fn new() -> Option<Self> {
        Self::with(|options| options).await
    }

    /// As [`new`](Self::new), with further options.
    pub(crate) async fn with(
        change: impl FnOnce(PostgresOptions) -> PostgresOptions,
    ) -> Option<Self> {
        Some(Self::on(Ground::shared()?, change).await)
    }

    /// As [`with`](Self::with), in a certain database.
    pub(crate) async fn on(
        mut ground: Ground,
        change: impl FnOnce(PostgresOptions) -> PostgresOptions,
    ) -> Self {
        let schema = ground.schema();
        let hand = Hand::new();
        let options = ground
            .options(&schema)
            .clock(Arc::clone(&hand) as Arc<dyn Seam>)
            .migrate(true);
        let store = PostgresStore::open(change(options))
            .await
            .expect("the server makes a schema");
        Self {
            store,
            schema,
            hand,
            ground,
        }
    }

    /// Opens a connection beside the store's.
    pub(crate) async fn connection(&self) -> PgConnection {
        self.ground.connection().await
    }

    /// Runs statements in which `{q}` stands for the schema.
    pub(crate) async fn run(&self, sql: &str) {
        self.ground.run(&self.sql(sql)).await;
    }

    /// A text in which `{q}` stands for the schema.
    pub(crate) fn sql(&self, sql: &str) -> String {
        sql.replace("{q}", &format!("\"{}\"", self.schema))
    }

    /// Waits until a statement of the store waits for a lock.
    pub(crate) async fn until_somebody_waits(&self, conn: &mut PgConnection) {
        self.until_waiting(1, conn).await;
    }

    /// Waits until so many statements of the store wait for a lock.
    pub(crate) async fn until_waiting(&self, count: i64, conn: &mut PgConnection) {
        let blocked = format!(
            "select count(*) from pg_stat_activity
             where wait_event_type = 'Lock' and query like '%{}%'",
            self.schema
        );
        let mut waiting = 0;
        while waiting < count {
            let counted = sqlx::query_scalar(AssertSqlSafe(blocked.clone()));
            waiting = counted.fetch_one(&mut *conn).await.expect("it answers");
        }
    }

    /// Inserts a job.
    pub(crate) async fn add(&self, job: &NewJob) {
        let added = self.store.insert(std::slice::from_ref(job)).await;
        added.expect("the server answers");
    }

    /// Claims as `w1`.
    pub(crate) async fn claim(&self, limit: usize) -> Vec<Claimed> {
        let claimed = self.store.claim(&request(limit)).await;
        claimed.expect("the server answers")
    }

    /// Removes everything.
    pub(crate) async fn end(self) {
        self.store.close().await;
        self.ground.end().await;
    }
}

/// A job of the type `mail` in the queue `default`, due now.
pub(crate) fn job() -> NewJob {
    NewJob {
        id: SystemSeam::new().job_id(),
        job_type: JobType::new("mail").expect("a name"),
        queue: QueueName::default_queue(),
        payload: r#"{"to":"ada@example.org"}"#.to_owned(),
        payload_schema: 1,
        priority: 0,
        max_attempts: 5,
        due: Due::Now,
        deadline: None,
        dedupe: None,
        idempotency: None,
        cache: None,
        trace_context: None,
    }
}

/// Jobs in the order of their ids.
pub(crate) fn jobs(count: usize) -> Vec<NewJob> {
    let seam = SystemSeam::new();
    let new = |_| NewJob {
        id: seam.job_id(),
        ..job()
    };
    (0..count).map(new).collect()
}

/// A job with a dedupe key.
pub(crate) fn keyed(key: &str) -> NewJob {
    NewJob {
        dedupe: Some(Dedupe {
            key: key.to_owned(),
            until: DedupeUntil::Finished,
            on_duplicate: OnDuplicate::Keep,
        }),
        ..job()
    }
}

pub(crate) fn request(limit: usize) -> ClaimRequest {
    ClaimRequest {
        worker: WorkerId::new("w1").expect("a name"),
        queues: vec![QueueName::default_queue()],
        job_types: vec![(JobType::new("mail").expect("a name"), 1)],
        limit,
        lease: Duration::from_mins(1),
        suspects: Suspects::NONE,
    }
}

/// The settlement of a run that went well.
pub(crate) fn done(claimed: &Claimed) -> Settlement {
    Settlement {
        id: claimed.id,
        token: claimed.token,
        change: Change::Done,
        outcome: OutcomeKind::Success,
        error: None,
        attempts: claimed.attempt,
        crashes: 0,
        snoozes: 0,
        only_if_expired: false,
    }
}

pub(crate) fn ids(claimed: &[Claimed]) -> Vec<JobId> {
    claimed.iter().map(|run| run.id).collect()
}
