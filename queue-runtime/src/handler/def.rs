//! The definition of a job: its name, policy and handler, as one static value.

use std::time::Duration;

use futures_util::future::BoxFuture;

use super::context::RunCx;
use super::data::DataMap;
use super::error::JobError;
use super::returns::JobValue;
use super::stored::{self, Upcast};
use crate::error::PayloadError;
use crate::job::shape::Traced;
use crate::job::{Backoff, DedupeUntil, JobType, OnDuplicate, PayloadReader, PayloadWriter};

/// A typed job: the payload type of a handler.
///
/// Implemented by `#[job]` for the payload struct that it writes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job",
    label = "not the payload of a job",
    note = "for `#[job] async fn send_welcome(..)` write `queue.enqueue(SendWelcomeJob {{ .. }})` or \
            `send_welcome::enqueue(&queue, ..)`; calling the function runs it at once"
)]
pub trait Job: Sized + Send + Sync + 'static {
    /// The definition.
    const DEF: &'static JobDef;

    /// Writes the payload's fields.
    ///
    /// # Errors
    /// If a value cannot be JSON.
    fn encode(&self, writer: &mut PayloadWriter) -> Result<(), PayloadError>;

    /// Reads the payload's fields.
    ///
    /// # Errors
    /// If a field is missing or is not what its type expects.
    fn decode(reader: &PayloadReader<'_>) -> Result<Self, PayloadError>;

    /// Reads a payload stored under the schema that this job has now.
    ///
    /// # Errors
    /// If it is not this job's.
    fn from_payload(payload: &str) -> Result<Self, PayloadError> {
        Self::from_stored(payload, Self::DEF.schema)
    }

    /// Reads a payload stored under any schema up to this job's, such as that of a dead letter, as a
    /// worker does: through the job's `upcast`, once per schema in between.
    ///
    /// # Errors
    /// If it is not this job's, if the upcast fails or panics, or if its schema is a newer one.
    fn from_stored(payload: &str, schema: u32) -> Result<Self, PayloadError> {
        stored::read(payload, schema)
    }

    /// The dedupe key, if the job has one.
    fn dedupe_key(&self) -> Option<String> {
        None
    }

    /// The idempotency key, if the job has one.
    fn idempotency_key(&self) -> Option<String> {
        None
    }

    /// The key of the cache entry that it refreshes, if any.
    fn cache_key(&self) -> Option<String> {
        None
    }

    /// The version of the data that it was made for; `None` also for a negative number.
    fn cache_version(&self) -> Option<u64> {
        None
    }
}

/// What a handler's run gives.
pub type RunResult = Result<JobValue, JobError>;

/// Runs a handler on a claimed job.
pub type RunFn = for<'a> fn(&'a RunCx) -> BoxFuture<'a, RunResult>;

/// Reads a payload that was stored under a schema and drops it, to see whether it can be read.
pub type CheckFn = fn(payload: &str, schema: u32) -> Result<(), PayloadError>;

/// Everything that is fixed about a job at compile time.
#[derive(Clone, Debug)]
pub struct JobDef {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) queue: &'static str,
    pub(crate) priority: i16,
    pub(crate) retries: u32,
    pub(crate) backoff: Backoff,
    pub(crate) timeout: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) dedupe_until: DedupeUntil,
    pub(crate) on_duplicate: OnDuplicate,
    pub(crate) idempotency_for: Duration,
    pub(crate) schema: u32,
    pub(crate) upcast: Option<Upcast>,
    pub(crate) fields: &'static [Field],
    pub(crate) needs: &'static [Need],
    pub(crate) refreshes_cache: bool,
    pub(crate) keys: KeyTexts,
    pub(crate) check: Option<CheckFn>,
    pub(crate) run: RunFn,
    pub(crate) source: Source,
}

impl JobDef {
    /// Starts a definition with every option at its default: queue `default`, priority 0, four
    /// retries, [`Backoff::DEFAULT`], five minutes for an attempt, no deadline, schema 1.
    pub const fn new(name: &'static str, run: RunFn, source: Source) -> Self {
        Self {
            name,
            aliases: &[],
            queue: "default",
            priority: 0,
            retries: 4,
            backoff: Backoff::DEFAULT,
            timeout: Some(Duration::from_mins(5)),
            deadline: None,
            dedupe_until: DedupeUntil::Finished,
            on_duplicate: OnDuplicate::Keep,
            idempotency_for: Duration::from_hours(1),
            schema: 1,
            upcast: None,
            fields: &[],
            needs: &[],
            refreshes_cache: false,
            keys: KeyTexts::NONE,
            check: None,
            run,
            source,
        }
    }

    /// Also runs rows stored under these names.
    #[must_use]
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Waits in this queue.
    #[must_use]
    pub const fn queue(mut self, queue: &'static str) -> Self {
        self.queue = queue;
        self
    }

    /// Runs before jobs of lower priority; -100 to 100.
    #[must_use]
    pub const fn priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    /// Is tried again this often after the first attempt.
    #[must_use]
    pub const fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Waits so long between attempts.
    #[must_use]
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Stops an attempt after this long; `None` never does.
    #[must_use]
    pub const fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Is not tried again this long after it was enqueued.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Holds its dedupe key this long.
    #[must_use]
    pub const fn dedupe_until(mut self, until: DedupeUntil) -> Self {
        self.dedupe_until = until;
        self
    }

    /// Answers a newcomer with the same dedupe key in this way.
    #[must_use]
    pub const fn on_duplicate(mut self, on_duplicate: OnDuplicate) -> Self {
        self.on_duplicate = on_duplicate;
        self
    }

    /// Remembers an idempotency key this long.
    #[must_use]
    pub const fn idempotency_for(mut self, window: Duration) -> Self {
        self.idempotency_for = window;
        self
    }

    /// Numbers the shape of its payload.
    #[must_use]
    pub const fn schema(mut self, schema: u32) -> Self {
        self.schema = schema;
        self
    }

    /// Changes payloads stored under a lower schema before they are read.
    #[must_use]
    pub const fn upcast(mut self, upcast: Upcast) -> Self {
        self.upcast = Some(upcast);
        self
    }

    /// Names its payload's fields.
    #[must_use]
    pub const fn fields(mut self, fields: &'static [Field]) -> Self {
        self.fields = fields;
        self
    }

    /// Lists the shared state that its handler takes.
    #[must_use]
    pub const fn needs(mut self, needs: &'static [Need]) -> Self {
        self.needs = needs;
        self
    }

    /// Returns a value to publish under its cache key.
    #[must_use]
    pub const fn cache(mut self) -> Self {
        self.refreshes_cache = true;
        self
    }

    /// Describes its keys.
    #[must_use]
    pub const fn keys(
        mut self,
        dedupe: Option<&'static str>,
        idempotency: Option<&'static str>,
        cache: Option<&'static str>,
    ) -> Self {
        self.keys = KeyTexts {
            dedupe,
            idempotency,
            cache,
        };
        self
    }

    /// Can say whether a stored payload is read.
    #[must_use]
    pub const fn check(mut self, check: CheckFn) -> Self {
        self.check = Some(check);
        self
    }

    /// Returns the stable name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Says whether it runs jobs that were stored under this name: its own or an alias.
    pub fn runs(&self, job_type: &JobType) -> bool {
        let name = job_type.as_str();
        name == self.name || self.aliases.contains(&name)
    }

    /// Returns how many runs may start: the first and the retries.
    pub const fn max_attempts(&self) -> u32 {
        self.retries.saturating_add(1)
    }

    /// Returns the number of its payload's shape.
    pub const fn payload_schema(&self) -> u32 {
        self.schema
    }

    /// Returns the payload's fields.
    pub const fn payload_fields(&self) -> &'static [Field] {
        self.fields
    }

    /// Returns where it was declared.
    pub const fn declared_at(&self) -> &Source {
        &self.source
    }
}

/// A payload field: its stored name and its type as written.
#[derive(Clone, Copy)]
pub struct Field {
    /// The stored name.
    pub name: &'static str,
    /// The type as written in the source.
    pub type_text: &'static str,
    /// Other stored names that are read as this field.
    pub aliases: &'static [&'static str],
    /// Whether a payload without it is given a default.
    pub default: bool,
    /// Learns its shape; `None` without the feature `shapes`.
    pub shape: fn() -> Option<Traced>,
}

impl Field {
    /// Describes a field that is stored under one name and has no default.
    pub const fn new(
        name: &'static str,
        type_text: &'static str,
        shape: fn() -> Option<Traced>,
    ) -> Self {
        Self {
            name,
            type_text,
            aliases: &[],
            default: false,
            shape,
        }
    }

    /// Is also read under these names.
    #[must_use]
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Is given a default where a payload lacks it.
    #[must_use]
    pub const fn default(mut self) -> Self {
        self.default = true;
        self
    }
}

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Field")
            .field("name", &self.name)
            .field("type_text", &self.type_text)
            .finish()
    }
}

/// A job's keys as they are declared, for people and for comparing two builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTexts {
    /// The dedupe key: a template, or the fields of a list.
    pub dedupe: Option<&'static str>,
    /// The idempotency key.
    pub idempotency: Option<&'static str>,
    /// The key of the cache entry that it refreshes.
    pub cache: Option<&'static str>,
}

impl KeyTexts {
    /// A job without keys.
    pub const NONE: Self = Self {
        dedupe: None,
        idempotency: None,
        cache: None,
    };
}

/// Shared state that a handler takes as an argument.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// The argument's name.
    pub argument: &'static str,
    /// Names the type that must be given to the worker.
    pub type_name: fn() -> &'static str,
    /// Says whether the worker was given it.
    pub present: fn(&DataMap) -> bool,
}

/// Where a job was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The package.
    pub package: &'static str,
    /// The module path.
    pub module: &'static str,
    /// The file.
    pub file: &'static str,
    /// The line of the attribute.
    pub line: u32,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One discovered job; `#[job]` submits these to `inventory`.
#[derive(Debug)]
pub struct Registration(pub &'static JobDef);

inventory::collect!(Registration);
