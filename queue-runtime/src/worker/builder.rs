//! Configures a worker and checks everything about it before it starts.

use std::any::type_name;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::Worker;
use super::hooks::{HookList, Hooks};
use crate::error::{BuildError, WorkerError};
use crate::handler::{Data, DataMap, Job, JobDef};
use crate::job::{QueueName, WorkerId};
use crate::lockfile;
use crate::pipeline::declare::Registry;
use crate::queue::Queue;
use crate::rules::lease::LeaseTimes;
use crate::rules::transition::RetryPolicy;
use crate::store::Retention;

/// The most attempts that one worker runs at once.
const CONCURRENCY_MAX: usize = 100_000;

/// The numbers of a worker.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) concurrency: usize,
    pub(super) times: LeaseTimes,
    pub(super) poll: Duration,
    pub(super) rescue_every: Duration,
    pub(super) prune_every: Duration,
    pub(super) grace: Duration,
    pub(super) limits: RetryPolicy,
    pub(super) retention: Retention,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            concurrency: 50,
            times: LeaseTimes::default(),
            poll: Duration::from_secs(1),
            rescue_every: Duration::from_secs(15),
            prune_every: Duration::from_mins(10),
            grace: Duration::from_secs(30),
            limits: RetryPolicy::default(),
            retention: Retention::default(),
        }
    }
}

/// Collects the parts of a [`Worker`]; see [`Worker::builder`].
#[derive(Debug)]
#[must_use = "a worker does nothing until it runs"]
pub struct WorkerBuilder {
    queue: Queue,
    name: String,
    queues: Option<Vec<String>>,
    listed: Vec<&'static JobDef>,
    /// With the name of the payload type, for the line to write.
    required: Vec<(&'static JobDef, &'static str)>,
    expected: Vec<&'static str>,
    data: DataMap,
    hooks: HookList,
    config: Config,
}

impl WorkerBuilder {
    pub(super) fn new(queue: &Queue) -> Self {
        Self {
            queue: queue.clone(),
            name: "worker".to_owned(),
            queues: None,
            listed: Vec::new(),
            required: Vec::new(),
            expected: Vec::new(),
            data: DataMap::default(),
            hooks: HookList::default(),
            config: Config::default(),
        }
    }

    /// Refuses to build a worker that lacks a job of this `jobs.lock`, and says which line links the
    /// library that has it. A library that nothing refers to is left out by the linker, jobs and all.
    ///
    /// ```no_run
    /// # use queue_runtime::{Queue, Worker};
    /// # let queue = Queue::in_memory();
    /// # const LOCK: &str = "";
    /// // const LOCK: &str = include_str!("../jobs.lock");
    /// let worker = Worker::builder(&queue).expects(LOCK).build()?;
    /// # Ok::<(), queue_runtime::BuildError>(())
    /// ```
    pub fn expects(mut self, lockfile: &'static str) -> Self {
        self.expected.push(lockfile);
        self
    }

    /// Gives the handlers a value that they take as `Data<T>`. A `Data<T>` or `Arc<T>` that is
    /// shared with other parts of the program goes through [`shared`](Self::shared).
    ///
    /// ```standalone_crate
    /// use queue_runtime::{Data, Queue, Worker, job};
    ///
    /// struct Mailer;
    ///
    /// #[job]
    /// async fn send_welcome(user_id: i64, mailer: Data<Mailer>) {
    ///     let _ = (user_id, mailer);
    /// }
    ///
    /// let queue = Queue::in_memory();
    /// let worker = Worker::builder(&queue).data(Mailer).build()?;
    /// # Ok::<(), queue_runtime::BuildError>(())
    /// ```
    pub fn data<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.data.insert(Data::new(value));
        self
    }

    /// Gives the handlers a value that other parts of the program share, as a `Data<T>` or an
    /// `Arc<T>`. They take it as `Data<T>`, as if it had been given to [`data`](Self::data).
    ///
    /// ```standalone_crate
    /// use std::sync::Arc;
    /// use std::sync::atomic::AtomicU64;
    ///
    /// use queue_runtime::{Data, Queue, Worker, job};
    ///
    /// #[job]
    /// async fn count(by: u64, total: Data<AtomicU64>) {
    ///     total.fetch_add(by, std::sync::atomic::Ordering::Relaxed);
    /// }
    ///
    /// let total = Arc::new(AtomicU64::new(0));
    /// let queue = Queue::in_memory();
    /// let worker = Worker::builder(&queue).shared(Arc::clone(&total)).build()?;
    /// # Ok::<(), queue_runtime::BuildError>(())
    /// ```
    pub fn shared<T: Send + Sync + 'static>(mut self, value: impl Into<Data<T>>) -> Self {
        self.data.insert(value.into());
        self
    }

    /// Serves these queues, taking turns. Without this: every queue that a registered job names.
    pub fn queues<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.queues = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Runs at most this many attempts at once; 1 to 100,000, 50 unless said otherwise.
    pub fn concurrency(mut self, attempts: usize) -> Self {
        self.config.concurrency = attempts;
        self
    }

    /// Lists a job explicitly. Once one is listed, only listed jobs are run; without a list,
    /// every job that is linked into the program is found.
    pub fn job<J: Job>(mut self) -> Self {
        self.listed.push(J::DEF);
        self
    }

    /// Makes sure that a job is among those that were found; naming it also links its crate.
    pub fn require<J: Job>(mut self) -> Self {
        self.required.push((J::DEF, type_name::<J>()));
        self
    }

    /// Names the worker in logs and history; a boot id is added, so names need not differ.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How long a claim lasts without renewal (elsewhere called visibility timeout): how long a
    /// crashed worker's jobs stay hidden. At least three heartbeats; 60 s unless said otherwise.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.config.times.lease = lease;
        self
    }

    /// How often leases are renewed; 15 s unless said otherwise.
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.config.times.heartbeat = every;
        self
    }

    /// How long an idle worker waits at most before it looks for work; 1 s unless said
    /// otherwise. Within one process new work is signalled and not waited for.
    pub fn poll(mut self, at_most: Duration) -> Self {
        self.config.poll = at_most;
        self
    }

    /// How often jobs of dead workers are looked for; 15 s unless said otherwise.
    pub fn rescue_every(mut self, interval: Duration) -> Self {
        self.config.rescue_every = interval;
        self
    }

    /// How long a shutdown may take in all, from when it is asked for; 30 s unless said
    /// otherwise. A fifth of it, at least 1 s and at most 5 s, is kept for recording; for the rest
    /// of it running attempts may go on (25 s of 30 s). What still runs then is stopped and handed
    /// back, which costs no attempt. With less than a second of grace attempts are stopped at once
    /// and the second for recording comes on top.
    pub fn grace(mut self, budget: Duration) -> Self {
        self.config.grace = budget;
        self
    }

    /// Makes a job a dead letter once it took its worker down this often in a row; 3 unless
    /// said otherwise.
    pub fn crashes_max(mut self, crashes: u32) -> Self {
        self.config.limits.crashes_max = crashes;
        self
    }

    /// Makes a job a dead letter once it asked to be put off more often than this; 1,000 unless
    /// said otherwise.
    pub fn snoozes_max(mut self, snoozes: u32) -> Self {
        self.config.limits.snoozes_max = snoozes;
        self
    }

    /// How often final jobs that are older than their retention are removed; 10 minutes unless
    /// said otherwise.
    pub fn prune_every(mut self, interval: Duration) -> Self {
        self.config.prune_every = interval;
        self
    }

    /// How long final jobs are kept.
    pub fn retention(mut self, retention: Retention) -> Self {
        self.config.retention = retention;
        self
    }

    /// Adds code that runs around attempts.
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.hooks.add(Arc::new(hooks));
        self
    }

    /// Checks everything and makes the worker.
    ///
    /// # Errors
    /// [`BuildError`] with every fault at once: no or doubled jobs, missing state, numbers that
    /// do not fit one another.
    pub fn build(self) -> Result<Worker, BuildError> {
        let mut faults = self.number_faults();
        let registry = self.registry().unwrap_or_else(|found| {
            faults.extend(found);
            Registry::default()
        });
        let queues = self.served(&registry, &mut faults);
        faults.extend(registry.missing_data(&self.data, &queues));
        let boot = self.queue.backend().seam().random();
        let id = WorkerId::new(format!("{}@{boot:016x}", self.name)).map_err(|e| e.to_string());
        match id {
            Ok(id) if faults.is_empty() => {
                tracing::info!(
                    worker_id = %id, jobs = registry.describe(), queues = ?queues,
                    concurrency = self.config.concurrency, "worker built"
                );
                let Self {
                    queue,
                    data,
                    hooks,
                    config,
                    ..
                } = self;
                Ok(Worker::new(
                    queue, id, queues, registry, data, hooks, config,
                ))
            }
            Ok(_) => Err(BuildError { faults }),
            Err(fault) => {
                faults.push(fault);
                Err(BuildError { faults })
            }
        }
    }

    /// Builds the worker and runs it until `shutdown` is ready; see [`Worker::run_until`].
    ///
    /// # Errors
    /// As [`build`](Self::build) and [`Worker::run_until`].
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<(), WorkerError> {
        self.build()?.run_until(shutdown).await
    }

    /// Builds the worker and runs it until the process is told to end; see [`Worker::run`].
    ///
    /// # Errors
    /// As [`build`](Self::build) and [`Worker::run_until`].
    pub async fn run(self) -> Result<(), WorkerError> {
        self.build()?.run().await
    }

    /// Builds the worker and runs it until none of the jobs that it could run waits, and nothing
    /// runs; see
    /// [`Worker::run_until_empty`].
    ///
    /// # Errors
    /// As [`build`](Self::build) and [`Worker::run_until`].
    pub async fn run_until_empty(self) -> Result<(), WorkerError> {
        self.build()?.run_until_empty().await
    }

    fn registry(&self) -> Result<Registry, Vec<String>> {
        let registry = match self.listed.as_slice() {
            [] => Registry::discover()?,
            listed => Registry::of(listed.iter().copied())?,
        };
        let (how, rest) = match self.listed.as_slice() {
            [] => (
                "no `#[job]` made it, so list it",
                ", and every other job of this worker",
            ),
            _ => ("this worker runs the jobs that are listed, so list it", ""),
        };
        let missing: Vec<_> = self
            .required
            .iter()
            .filter(|(def, _)| !registry.defs().any(|found| std::ptr::eq(found, *def)))
            .map(|(def, payload)| {
                format!(
                    "job `{}` ({}) is required but not registered: {how} with \
                     `.job::<{payload}>()`{rest}",
                    def.name, def.source
                )
            })
            .collect();
        let expected = self.expected.iter().map(|text| {
            let missing = lockfile::missing(&registry, text);
            missing.unwrap_or_else(|error| vec![format!("jobs.lock: {error}")])
        });
        let missing: Vec<_> = missing.into_iter().chain(expected.flatten()).collect();
        if missing.is_empty() {
            Ok(registry)
        } else {
            Err(missing)
        }
    }

    fn served(&self, registry: &Registry, faults: &mut Vec<String>) -> Vec<QueueName> {
        let declared = registry.queues();
        let Some(names) = &self.queues else {
            return declared;
        };
        if names.is_empty() {
            faults.push(
                "queues: an empty list serves nothing. Name a queue, or leave `.queues(..)` out \
                 to serve every queue that a job names"
                    .to_owned(),
            );
        }
        let mut queues = Vec::new();
        for name in names {
            if !declared.iter().any(|queue| queue.as_str() == name) {
                tracing::warn!(
                    queue = name,
                    "this queue is served, but no registered job names it: is it misspelt? It gets \
                     jobs only from `.queue(..)` when enqueueing"
                );
            }
            match QueueName::new(name) {
                Ok(queue) if queues.contains(&queue) => {}
                Ok(queue) => queues.push(queue),
                Err(error) => faults.push(error.to_string()),
            }
        }
        queues
    }

    fn number_faults(&self) -> Vec<String> {
        let Config {
            concurrency,
            times,
            poll,
            rescue_every,
            prune_every,
            grace,
            limits,
            ..
        } = &self.config;
        let mut faults = times.faults();
        if !(1..=CONCURRENCY_MAX).contains(concurrency) {
            faults.push(format!(
                "concurrency {concurrency}: must be from 1 to {CONCURRENCY_MAX}"
            ));
        }
        let (short, long) = (Duration::from_millis(1), Duration::from_hours(1));
        for (what, span) in [
            ("poll", poll),
            ("rescue_every", rescue_every),
            ("prune_every", prune_every),
        ] {
            if *span < short || *span > long {
                faults.push(format!(
                    "{what} {span:?}: must be from {short:?} to {long:?}"
                ));
            }
        }
        if *grace > long {
            faults.push(format!("grace {grace:?}: must be at most {long:?}"));
        }
        if limits.crashes_max == 0 {
            faults.push("crashes_max 0: must be at least 1".to_owned());
        }
        faults
    }
}
