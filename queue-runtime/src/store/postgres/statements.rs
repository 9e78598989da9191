//! Every statement of the store, read from `sql/` and bound to the schema once.
//!
//! The one placeholder in the files is `{q}`, the quoted schema; nothing else is ever put into
//! their text. On direct connections statements are prepared once and kept; behind a pooler that
//! changes servers between transactions nothing is kept.

use std::sync::Arc;

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Arguments, AssertSqlSafe, Encode, Postgres, Type};

/// A statement with its parameters.
pub(super) type SqlQuery = Query<'static, Postgres, PgArguments>;

/// One statement, ready to be executed any number of times.
#[derive(Clone, Debug)]
pub(super) struct Sql {
    text: Arc<str>,
    is_kept: bool,
}

impl Sql {
    /// Takes a statement's file, without its header, so that less text is hashed per call.
    fn new(file: &str, schema: &str, is_kept: bool) -> Self {
        let body: Vec<&str> = file
            .lines()
            .filter(|line| !line.trim_start().starts_with("--"))
            .collect();
        Self {
            text: Arc::from(bound(&body.join("\n"), schema)),
            is_kept,
        }
    }

    /// Starts a query; parameters are bound in the order of the file's header.
    pub(super) fn query(&self) -> SqlQuery {
        sqlx::query(AssertSqlSafe(Arc::clone(&self.text))).persistent(self.is_kept)
    }

    /// Starts a query with all its parameters.
    pub(super) fn with(&self, parameters: Parameters) -> SqlQuery {
        sqlx::query_with(AssertSqlSafe(Arc::clone(&self.text)), parameters.0)
            .persistent(self.is_kept)
    }

    /// The text as Postgres reads it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Parameters that a query may be started with more than once.
#[derive(Clone, Default)]
pub(super) struct Parameters(PgArguments);

impl Parameters {
    /// Starts with none.
    pub(super) fn none() -> Self {
        Self::default()
    }

    /// Adds the next one.
    pub(super) fn and<'t, T: Encode<'t, Postgres> + Type<Postgres>>(mut self, value: T) -> Self {
        let added = self.0.add(value);
        added.expect("text, numbers and instants always have a binary form");
        self
    }
}

/// Puts the quoted schema into a file's text. Its name is checked when the options are made, so
/// it holds no quote.
pub(super) fn bound(file: &str, schema: &str) -> String {
    file.replace("{q}", &format!("\"{schema}\""))
}

macro_rules! statements {
    ($($name:ident = $file:expr;)*) => {
        /// The statements, named as their files.
        #[derive(Debug)]
        pub(super) struct Statements {
            $(pub(super) $name: Sql,)*
        }

        impl Statements {
            /// Reads the files.
            pub(super) fn new(schema: &str, is_kept: bool) -> Self {
                Self {
                    $($name: Sql::new($file, schema, is_kept),)*
                }
            }

            /// Every statement with its name, for the tests that prepare them all.
            #[cfg(test)]
            pub(super) fn all(&self) -> Vec<(&'static str, &Sql)> {
                vec![$((stringify!($name), &self.$name),)*]
            }
        }
    };
}

statements! {
    aside_final = include_str!("sql/aside_final.sql");
    attempts = include_str!("sql/attempts.sql");
    cancel = include_str!("sql/cancel.sql");
    capacity = include_str!("sql/capacity.sql");
    claim = include_str!("sql/claim.sql");
    clock = include_str!("sql/clock.sql");
    counts = include_str!("sql/counts.sql");
    expired = include_str!("sql/expired.sql");
    extend = include_str!("sql/extend.sql");
    fence = include_str!("sql/fence.sql");
    find = include_str!("sql/find.sql");
    finished = include_str!("sql/finished.sql");
    insert = include_str!("sql/insert.sql");
    insert_behind = include_str!("sql/insert_behind.sql");
    insert_key = include_str!("sql/insert_key.sql");
    insert_probe = include_str!("sql/insert_probe.sql");
    insert_rewrite = include_str!("sql/insert_rewrite.sql");
    insert_version = include_str!("sql/insert_version.sql");
    insert_window = include_str!("sql/insert_window.sql");
    job = include_str!("sql/job.sql");
    lanes = include_str!("sql/lanes.sql");
    lock = include_str!("sql/lock.sql");
    migrations_applied = include_str!("sql/migrations_applied.sql");
    migrations_known = include_str!("sql/migrations_known.sql");
    migrations_lock = include_str!("sql/migrations_lock.sql");
    migrations_record = include_str!("sql/migrations_record.sql");
    migrations_schema = include_str!("sql/migrations_schema.sql");
    migrations_table = include_str!("sql/migrations_table.sql");
    newest_version = include_str!("sql/newest_version.sql");
    next_due = include_str!("sql/next_due.sql");
    notify = include_str!("sql/notify.sql");
    prune = include_str!("sql/prune.sql");
    prune_attempts = include_str!("sql/prune_attempts.sql");
    prune_bound = include_str!("sql/prune_bound.sql");
    prune_keys = include_str!("sql/prune_keys.sql");
    prune_windows = include_str!("sql/prune_windows.sql");
    replay = include_str!("sql/replay.sql");
    replay_edit = include_str!("sql/replay_edit.sql");
    replay_holder = include_str!("sql/replay_holder.sql");
    replay_keys = include_str!("sql/replay_keys.sql");
    settle = include_str!("sql/settle.sql");
    settle_done = include_str!("sql/settle_done.sql");
    settle_final = include_str!("sql/settle_final.sql");
    settle_free = include_str!("sql/settle_free.sql");
    settle_keys = include_str!("sql/settle_keys.sql");
    settle_promote = include_str!("sql/settle_promote.sql");
    settle_queued = include_str!("sql/settle_queued.sql");
    store_id = include_str!("sql/store_id.sql");
    tables = include_str!("sql/tables.sql");
    unread = include_str!("sql/unread.sql");
    verify_counter = include_str!("sql/verify_counter.sql");
    verify_dedupe = include_str!("sql/verify_dedupe.sql");
    verify_histories = include_str!("sql/verify_histories.sql");
    verify_keys = include_str!("sql/verify_keys.sql");
    verify_records = include_str!("sql/verify_records.sql");
    verify_tokens = include_str!("sql/verify_tokens.sql");
    verify_twice = include_str!("sql/verify_twice.sql");
    verify_windows = include_str!("sql/verify_windows.sql");
    waiting = include_str!("sql/waiting.sql");
    waiting_sample = include_str!("sql/waiting_sample.sql");
}
