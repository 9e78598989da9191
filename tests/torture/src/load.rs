//! Load with random kills: every job and every effect is accounted for afterwards.

mod faults;
mod tail;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use queue_runtime::{JobId, JobState, Queue};
use tokio::time::Instant;

use self::faults::{Fault, Faults};
use self::tail::Tail;
use crate::checker::{self, Invariant};
use crate::history::{History, Record, Sample};
use crate::part::{LEASE, RESCUE};
use crate::place::StoreKind;
use crate::reading;
use crate::rig::{PATIENCE, Rig, Signal};
use crate::summary::Summary;

/// Worker processes beside one another.
const WORKERS: usize = 4;

/// Producer processes beside one another.
const PRODUCERS: usize = 2;

/// How far producers may be ahead of what is final.
const AHEAD: u64 = 2_000;

/// Between two looks at the store.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Jobs of a page that are remembered as final at each look.
const REMEMBERED: usize = 50;

/// How long a frozen process stays so: three leases.
const FROZEN: Duration = Duration::from_secs(3);

/// The longest delay of the mix, and what a retry or a new process takes.
const SLOWEST: Duration = Duration::from_secs(5);

/// How much is done to how many jobs.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The store.
    pub store: StoreKind,
    /// Requests.
    pub jobs: u64,
    /// Processes that are killed, asked to stop, or frozen.
    pub kills: u64,
    /// The crashes in a row at which the workers give a job up.
    pub crashes_max: u32,
    /// What decides the order of kinds, the victims, and the moments.
    pub seed: u64,
}

/// The crashes in a row that a job may have under a load, unless asked otherwise: no number is too
/// many. A crash is counted for every job that a worker held, and of the jobs of the mix one in two
/// hundred aborts its worker: with the default of workers, some that did nothing meet three of them.
/// Those that abort have three attempts.
pub const CRASHES_MAX: u32 = 100;

/// Runs it, and prints what it breaks.
///
/// # Errors
/// If it cannot be run to its end.
pub async fn run(load: Load) -> Result<Summary> {
    let mut running = Running::begin(load).await?;
    let drained = match running.until_rest().await {
        Ok(drained) => drained,
        Err(error) => {
            for boot in running.workers.iter().chain(&running.producers) {
                eprintln!("{boot}: {}", running.rig.log(boot));
            }
            running.queue.close().await;
            running.rig.end().await?;
            return Err(error);
        }
    };
    let Running {
        mut rig,
        queue,
        workers,
        samples,
        early,
        ..
    } = running;
    for boot in workers {
        rig.stop(&boot).await?;
    }
    let mut history = reading::history(&rig, &queue).await?;
    history.samples = samples;
    history.crashes_max = load.crashes_max;
    history.drained = Some(drained);
    for (id, record) in early {
        history.jobs.entry(id).or_default().was_final = Some(record);
    }
    let summary = report(load, &history);
    queue.close().await;
    rig.end().await?;
    Ok(summary)
}

/// Prints the first violations with the jobs that show them, and sums up.
fn report(load: Load, history: &History) -> Summary {
    let violations = checker::check(history);
    for violation in violations.iter().take(10) {
        println!("{} {violation}", load.store);
        if let Some(job) = violation.job {
            println!("{}", history.tell(job));
        }
    }
    let lost = |violation: &&checker::Violation| {
        violation.invariant == Invariant::I2 && violation.said.contains("is not there")
    };
    Summary {
        jobs: history
            .jobs
            .values()
            .filter(|seen| seen.record.is_some())
            .count() as u64,
        kills: load.kills,
        lost: violations.iter().filter(lost).count(),
        double_effects: history.double_effects(),
        re_runs: history.re_runs(),
        violations: violations.len(),
        seeds: vec![load.seed],
        ..Summary::default()
    }
}

/// A load under way.
struct Running {
    load: Load,
    rig: Rig,
    queue: Queue,
    tail: Tail,
    /// The boots that are there, by place.
    workers: Vec<String>,
    producers: Vec<String>,
    /// How many processes were started so far.
    boots: usize,
    supplied: u64,
    samples: Vec<Sample>,
    early: BTreeMap<JobId, Record>,
    frozen: Vec<(Instant, String)>,
    last_fault: Instant,
}

impl Running {
    async fn begin(load: Load) -> Result<Self> {
        let rig = Rig::new(load.store)?;
        let queue = rig.place.make().await?;
        let mut running = Self {
            load,
            tail: Tail::new(rig.folder()),
            rig,
            queue,
            workers: Vec::new(),
            producers: Vec::new(),
            boots: 0,
            supplied: 0,
            samples: Vec::new(),
            early: BTreeMap::new(),
            frozen: Vec::new(),
            last_fault: Instant::now(),
        };
        for place in 0..PRODUCERS {
            let boot = running.producer(place).await?;
            running.producers.push(boot);
        }
        for _ in 0..WORKERS {
            let boot = running.worker()?;
            running.workers.push(boot);
        }
        Ok(running)
    }

    fn worker(&mut self) -> Result<String> {
        self.boots += 1;
        let boot = format!("w{}", self.boots);
        let arguments = [format!("crashes_max={}", self.load.crashes_max)];
        self.rig.start("work", &boot, &arguments, None)?;
        Ok(boot)
    }

    /// Starts a producer, which goes on where the one before it in its place stopped.
    async fn producer(&mut self, place: usize) -> Result<String> {
        self.boots += 1;
        let boot = format!("p{place}-{}", self.boots);
        let arguments = [
            format!("line=p{place}-"),
            format!("first={place}"),
            format!("step={PRODUCERS}"),
            format!("seed={}", self.load.seed),
        ];
        self.rig.start("produce", &boot, &arguments, None)?;
        if self.supplied > 0 {
            let until = self.supplied.to_string();
            self.rig.tell(&boot, &until).await?;
        }
        Ok(boot)
    }

    /// Works, with faults, until everything is final; returns how long that took from the last
    /// fault or request on, and how long it may.
    async fn until_rest(&mut self) -> Result<(Duration, Duration)> {
        let Load {
            jobs, kills, seed, ..
        } = self.load;
        let begun = Instant::now();
        let mut faults = Faults::new(jobs, kills, seed);
        let mut last_news = (0, Instant::now());
        let mut drain: Option<(Instant, u64)> = None;
        loop {
            self.listen().await?;
            let (live, ended) = self.look().await?;
            self.supply(ended).await?;
            if let Some(fault) = faults.due(ended, self.workers.len(), self.producers.len()) {
                self.strike(fault).await?;
            }
            self.thaw().await?;
            if ended != last_news.0 {
                last_news = (ended, Instant::now());
            }
            ensure!(
                last_news.1.elapsed() < PATIENCE,
                "nothing becomes final any more: {live} jobs are live, {ended} final"
            );
            let made = format!("made {jobs}");
            let all_made = self.supplied == jobs
                && self
                    .producers
                    .iter()
                    .all(|boot| self.rig.has_said(boot, &made));
            if !all_made || !faults.are_over() || !self.frozen.is_empty() {
                continue;
            }
            if drain.is_none_or(|(since, _)| since < self.last_fault) {
                drain = Some((Instant::now(), live));
            }
            if live == 0 {
                let (since, left) = drain.unwrap_or((Instant::now(), 0));
                let pace = begun.elapsed().div_f64(jobs.max(1) as f64);
                let work = pace.mul_f64(2.0 * left as f64) + SLOWEST;
                return Ok((since.elapsed(), 3 * LEASE + 2 * RESCUE + work));
            }
        }
    }

    /// Hears what processes say until it is time for the next look. One that was aborted is
    /// replaced; one that ended otherwise is a fault of ours.
    async fn listen(&mut self) -> Result<()> {
        let end = Instant::now() + LOOK_AGAIN;
        while let Some((boot, said)) = self
            .rig
            .hear(end.saturating_duration_since(Instant::now()))
            .await
        {
            if said.is_some() {
                continue;
            }
            let Some(place) = self.workers.iter().position(|worker| *worker == boot) else {
                if self.producers.contains(&boot) {
                    bail!("{boot} ended: {}", self.rig.log(&boot));
                }
                continue;
            };
            let log = self.rig.log(&boot);
            let status = self.rig.ended(&boot).await?;
            ensure!(status.code().is_none(), "{boot} ended with {status}: {log}");
            self.rig.note_interrupted(&boot);
            self.last_fault = Instant::now();
            self.workers[place] = self.worker()?;
        }
        Ok(())
    }

    /// Looks at the store: counts, and remembers jobs that are final. Returns how many are live and
    /// how many final.
    async fn look(&mut self) -> Result<(u64, u64)> {
        let (told, _) = self.tail.read()?;
        let counts = self.queue.counts().await?;
        let (_, asked) = self.tail.read()?;
        self.samples.push(Sample {
            told,
            counted: counts.total(),
            asked,
        });
        for state in [JobState::Done, JobState::DeadLetter] {
            for job in self.queue.store().finished(state, None, REMEMBERED).await? {
                let seen = self.early.entry(job.id);
                seen.or_insert_with(|| reading::record(&job));
            }
        }
        let live = counts.of(JobState::Queued) + counts.of(JobState::Processing);
        Ok((live, counts.total() - live))
    }

    /// Lets the producers go on, so that the workers always have enough and never too much.
    async fn supply(&mut self, ended: u64) -> Result<()> {
        let until = self.load.jobs.min(ended + AHEAD);
        if until > self.supplied {
            self.supplied = until;
            for boot in self.producers.clone() {
                self.rig.tell(&boot, &until.to_string()).await?;
            }
        }
        Ok(())
    }

    async fn strike(&mut self, fault: Fault) -> Result<()> {
        match fault {
            Fault::KillProducer(place) => {
                let boot = self.producers[place].clone();
                self.rig.kill(&boot).await?;
                self.producers[place] = self.producer(place).await?;
            }
            Fault::Kill(place) => {
                let boot = self.workers[place].clone();
                self.rig.kill(&boot).await?;
                self.workers[place] = self.worker()?;
            }
            Fault::Stop(place) => {
                let boot = self.workers[place].clone();
                self.rig.line(&boot, "ready").await?;
                self.rig.signal(&boot, Signal::Term).await?;
                // It may be frozen, and would not hear it.
                self.rig.signal(&boot, Signal::Cont).await?;
                let log = self.rig.log(&boot);
                let status = self.rig.ended(&boot).await?;
                // A poisonous job may be faster than the signal.
                ensure!(
                    status.success() || status.code().is_none(),
                    "{boot} ended with {status}: {log}"
                );
                if !status.success() {
                    self.rig.note_interrupted(&boot);
                }
                self.workers[place] = self.worker()?;
            }
            Fault::Freeze(place) => {
                let boot = self.workers[place].clone();
                self.rig.signal(&boot, Signal::Stop).await?;
                if self.cuts_off_everybody().await {
                    for boot in &self.workers {
                        self.rig.note_interrupted(boot);
                    }
                }
                self.frozen.push((Instant::now() + FROZEN, boot));
            }
        }
        self.last_fault = Instant::now();
        Ok(())
    }

    /// Whether a frozen process holds the lock of a file, so that nobody else can renew a lease.
    async fn cuts_off_everybody(&self) -> bool {
        if self.load.store != StoreKind::Sqlite {
            return false;
        }
        let begun = tokio::time::timeout(LEASE / 2, self.queue.begin()).await;
        !matches!(begun, Ok(Ok(_)))
    }

    async fn thaw(&mut self) -> Result<()> {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.frozen)
            .into_iter()
            .partition(|(end, _)| *end <= now);
        self.frozen = later;
        let due: Vec<(Instant, String)> = due;
        for (_, boot) in due {
            if self.workers.contains(&boot) {
                let thawed = self.rig.signal(&boot, Signal::Cont).await;
                thawed.with_context(|| format!("thaw {boot}"))?;
            }
            self.last_fault = Instant::now();
        }
        Ok(())
    }
}
