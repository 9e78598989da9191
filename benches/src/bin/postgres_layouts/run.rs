//! Connections that claim and settle until the table is empty, beside one that looks for lost leases.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow};
use sqlx::{Connection, Executor, Row};
use uuid::Uuid;

use crate::lanes::Lanes;
use crate::moment::Moment;
use crate::server;
use crate::statements::{Form, Layout};
use crate::world;

/// After so long a run ends, whatever is left.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is measured once.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) layout: Layout,
    pub(crate) form: Form,
    pub(crate) batch: usize,
    pub(crate) claimers: usize,
    pub(crate) jobs: usize,
    pub(crate) lanes: usize,
    pub(crate) bytes: usize,
    pub(crate) snapshot: bool,
    /// How many more than the batch a claim looks at in each lane, in batches.
    pub(crate) spare: usize,
    pub(crate) commits: Commits,
    /// Whether the claimers' connections forbid what a plan can go wrong by.
    pub(crate) pinned: bool,
}

/// How claim and settlement commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commits {
    /// One each, both on the disk.
    Two,
    /// The claim's commit does not wait for the disk.
    LazyClaim,
    /// The settlement and the next claim share one.
    Exchange,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    pub(crate) per_second: f64,
    pub(crate) slices: Vec<f64>,
    pub(crate) claims: usize,
    /// Claims that returned fewer than asked although more were due.
    pub(crate) short: usize,
    pub(crate) locked_in_vain: usize,
    pub(crate) searches: usize,
    pub(crate) searching: Duration,
    /// Microseconds of processor time that the claimers' server processes used for each job.
    pub(crate) cpu: f64,
    /// Bytes of write-ahead log for each job, whoever wrote them.
    pub(crate) log: f64,
}

/// A claimed job, as far as these loops care.
#[derive(Debug)]
pub(crate) struct Job {
    id: Uuid,
    token: i64,
    pub(crate) job_type: String,
    pub(crate) priority: i16,
    pub(crate) key: (Moment, Uuid),
}

#[derive(Debug)]
struct Shared {
    case: Case,
    types: Vec<String>,
    claimed: AtomicUsize,
    settled: AtomicUsize,
    begun: Instant,
    marks: Mutex<Vec<(Duration, usize)>>,
    sum: Mutex<Outcome>,
}

/// Fills the tables, drains them, and says how fast each fifth of the jobs went.
pub(crate) async fn measure(url: &str, case: &Case) -> Result<Outcome> {
    world::fresh(url, case.layout, case.jobs, case.lanes, case.bytes).await?;
    let held = match case.snapshot {
        true => Some(world::hold_snapshot(url).await?),
        false => None,
    };
    let (mut conns, mut backends) = (Vec::new(), Vec::new());
    for _ in 0..case.claimers {
        let mut conn = claimer(url, case.pinned).await?;
        backends.push(server::backend(&mut conn).await?);
        conns.push(conn);
    }
    let mut searcher = PgConnection::connect(url).await?;
    let log = server::log_position(&mut searcher).await?;
    let shared = Arc::new(Shared {
        case: case.clone(),
        types: (0..case.lanes.div_ceil(4))
            .map(|n| format!("type_{n}"))
            .collect(),
        claimed: AtomicUsize::new(0),
        settled: AtomicUsize::new(0),
        begun: Instant::now(),
        marks: Mutex::new(vec![(Duration::ZERO, 0)]),
        sum: Mutex::default(),
    });
    let search = tokio::spawn(search(searcher, case.layout));
    let loops: Vec<_> = conns
        .drain(..)
        .map(|conn| tokio::spawn(drain(conn, Arc::clone(&shared))))
        .collect();
    for drained in loops {
        conns.push(drained.await??);
    }
    search.abort();
    let cpu: Duration = backends.iter().map(|pid| server::cpu(*pid)).sum();
    let mut outcome = shared.sum.lock().expect("no holder panics").clone();
    outcome.log = server::log_position(&mut conns[0]).await? - log;
    if let Some(conn) = held {
        conn.close().await?;
    }
    let marks = shared.marks.lock().expect("no holder panics").clone();
    let (took, settled) = marks.last().copied().context("nothing was settled")?;
    outcome.per_second = settled as f64 / took.as_secs_f64();
    outcome.cpu = cpu.as_secs_f64() * 1e6 / settled as f64;
    outcome.log /= settled as f64;
    outcome.slices = slices(&marks, case.jobs);
    Ok(outcome)
}

/// Opens a claimer's connection.
async fn claimer(url: &str, pinned: bool) -> Result<PgConnection> {
    let mut options: PgConnectOptions = url.parse()?;
    if pinned {
        options = options.options([
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("jit", "off"),
        ]);
    }
    Ok(PgConnection::connect_with(&options).await?)
}

/// Looks for lost leases once a second, as a rescuer does; the bare loop has none.
async fn search(mut conn: PgConnection, layout: Layout) -> Result<()> {
    if layout == Layout::Raw {
        return Ok(());
    }
    loop {
        sqlx::query(layout.expired())
            .bind(100_i64)
            .bind(None::<Moment>)
            .fetch_all(&mut conn)
            .await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn drain(mut conn: PgConnection, shared: Arc<Shared>) -> Result<PgConnection> {
    let mut lanes = Lanes::default();
    let mut sum = Outcome::default();
    let case = &shared.case;
    let mut held: Vec<Job> = Vec::new();
    while shared.settled.load(Ordering::Relaxed) < case.jobs && shared.begun.elapsed() < PATIENCE {
        let exchange = case.commits == Commits::Exchange;
        if exchange {
            conn.execute("begin").await?;
        }
        settle(&mut conn, &shared, &held).await?;
        let settled = held.len();
        if case.form == Form::Bound && case.layout != Layout::Raw && lanes.are_old() {
            lanes
                .discover(&mut conn, case.layout, &shared.types)
                .await?;
        }
        if case.commits == Commits::LazyClaim {
            conn.execute("begin; set local synchronous_commit = off")
                .await?;
        }
        let (jobs, in_vain) = claim(&mut conn, &shared, &lanes).await?;
        if case.commits != Commits::Two {
            conn.execute("commit").await?;
        }
        if exchange {
            mark(&shared, settled);
        }
        held = jobs;
        lanes.pass(&held);
        sum.claims += 1;
        sum.locked_in_vain += in_vain;
        let claimed = shared.claimed.fetch_add(held.len(), Ordering::Relaxed) + held.len();
        if held.len() < case.batch {
            // Others may be about to take as much as they asked for; what lies beyond was free.
            sum.short += usize::from(claimed + case.claimers * case.batch < case.jobs);
            lanes.forget();
        }
        if held.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let mut total = shared.sum.lock().expect("no holder panics");
    total.claims += sum.claims;
    total.short += sum.short;
    total.locked_in_vain += sum.locked_in_vain;
    total.searches += lanes.searches;
    total.searching += lanes.searching;
    drop(total);
    Ok(conn)
}

async fn claim(
    conn: &mut PgConnection,
    shared: &Shared,
    lanes: &Lanes,
) -> Result<(Vec<Job>, usize)> {
    let case = &shared.case;
    let limit = i64::try_from(case.batch)?;
    let spare = i64::try_from(case.batch * case.spare)?;
    let statement = sqlx::query(case.layout.claim(case.form));
    if case.layout == Layout::Raw {
        let rows = statement
            .bind("default")
            .bind(limit)
            .fetch_all(conn)
            .await?;
        let jobs = rows.iter().map(bare).collect::<Result<_>>()?;
        return Ok((jobs, 0));
    }
    let statement = match case.form {
        Form::Bound => {
            let columns = lanes.columns();
            statement
                .bind(columns.places)
                .bind(columns.queues)
                .bind(columns.types)
                .bind(columns.schemas)
                .bind(columns.crashes)
                .bind(columns.priorities)
                .bind(columns.run_ats)
                .bind(columns.ids)
        }
        Form::Full | Form::Greedy => statement
            .bind(vec!["default".to_owned()])
            .bind(shared.types.clone())
            .bind(vec![1_i32; shared.types.len()]),
    };
    let rows = statement
        .bind(limit)
        .bind(spare)
        .bind(2_i32)
        .bind(1_i64)
        .bind("worker-1")
        .bind(60_000_i64)
        .bind(None::<Moment>)
        .fetch_all(conn)
        .await?;
    let jobs: Vec<Job> = rows.iter().map(job).collect::<Result<_>>()?;
    let locked: i64 = match (case.form, rows.first()) {
        (Form::Greedy, Some(row)) => row.try_get(20)?,
        _ => i64::try_from(jobs.len())?,
    };
    let in_vain = usize::try_from(locked)?.saturating_sub(jobs.len());
    Ok((jobs, in_vain))
}

async fn settle(conn: &mut PgConnection, shared: &Shared, jobs: &[Job]) -> Result<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    let case = &shared.case;
    let ids: Vec<Uuid> = jobs.iter().map(|job| job.id).collect();
    let statement = sqlx::query(case.layout.settle()).bind(ids);
    if case.layout == Layout::Raw {
        statement.execute(&mut *conn).await?;
    } else {
        let applied = statement
            .bind(jobs.iter().map(|job| job.token).collect::<Vec<_>>())
            .bind(vec!["success"; jobs.len()])
            .bind(vec![None::<&str>; jobs.len()])
            .bind(None::<Moment>)
            .fetch_all(&mut *conn)
            .await?;
        anyhow::ensure!(applied.len() == jobs.len(), "a settlement was stale");
    }
    if case.commits != Commits::Exchange {
        mark(shared, jobs.len());
    }
    Ok(())
}

/// Notes that so many more jobs are settled and committed.
fn mark(shared: &Shared, jobs: usize) {
    let settled = shared.settled.fetch_add(jobs, Ordering::Relaxed) + jobs;
    let mut marks = shared.marks.lock().expect("no holder panics");
    marks.push((shared.begun.elapsed(), settled));
}

/// The rate of each fifth of the jobs, as far as they were settled.
fn slices(marks: &[(Duration, usize)], jobs: usize) -> Vec<f64> {
    let mut slices = Vec::new();
    let (mut since, mut before) = (Duration::ZERO, 0);
    for &(at, settled) in marks {
        if settled >= (slices.len() + 1) * jobs / 5 && settled > before {
            slices.push((settled - before) as f64 / (at - since).as_secs_f64());
            (since, before) = (at, settled);
        }
    }
    slices
}

fn bare(row: &PgRow) -> Result<Job> {
    let id: Uuid = row.try_get(0)?;
    Ok(Job {
        id,
        token: 0,
        job_type: String::new(),
        priority: 0,
        key: (Moment::ORIGIN, id),
    })
}

fn job(row: &PgRow) -> Result<Job> {
    let id: Uuid = row.try_get(0)?;
    Ok(Job {
        id,
        token: row.try_get(19)?,
        job_type: row.try_get(1)?,
        priority: row.try_get(11)?,
        key: (row.try_get(10)?, id),
    })
}
