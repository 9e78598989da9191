//! Every statement of the store, read from `sql/` and bound to the table prefix once.
//!
//! The one placeholder in the files is `{q}`, the prefix of our tables; nothing else is ever put
//! into their text. A call to the connection's thread costs more than a small statement, so
//! those that always run together and take the same parameters are joined into one call.

use std::sync::Arc;

use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{AssertSqlSafe, Sqlite};

/// The prefix of our tables: the application's own tables share the file.
pub(super) const PREFIX: &str = "queue_";

/// A statement with its parameters.
pub(super) type SqlQuery = Query<'static, Sqlite, SqliteArguments>;

/// One statement, ready to be executed any number of times.
#[derive(Clone, Debug)]
pub(super) struct Sql(Arc<str>);

impl Sql {
    /// Takes a statement's file, without its header, so that less text is hashed per call.
    fn new(file: &str) -> Self {
        let body: Vec<&str> = file
            .lines()
            .filter(|line| !line.starts_with("--"))
            .collect();
        Self(Arc::from(body.join("\n").replace("{q}", PREFIX)))
    }

    /// Joins statements that take the same parameters into one call.
    fn then(&self, next: &Self) -> Self {
        Self(Arc::from(format!("{};\n{}", self.0, next.0)))
    }

    /// Starts a query; parameters are bound in the order of the file's header.
    pub(super) fn query(&self) -> SqlQuery {
        sqlx::query(AssertSqlSafe(Arc::clone(&self.0)))
    }

    /// The text as SQLite reads it.
    #[cfg(test)]
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

macro_rules! statements {
    ($($name:ident = $file:expr;)*) => {
        /// The statements, named as their files.
        #[derive(Debug)]
        pub(super) struct Statements {
            /// Opens a writing transaction and reads the store's time.
            pub(super) begin: Sql,
            /// `aside_attempts`, `aside_final`, `settle_remove`, `aside_keys`, `aside_promote`.
            pub(super) set_aside: Sql,
            /// `claim_attempts`, then `claim_take`.
            pub(super) claim_start: Sql,
            /// `settle_attempts`, then `settle_final`, then `settle_remove`.
            pub(super) settle_end: Sql,
            /// `settle_attempts`, then `settle_queued`.
            pub(super) settle_back: Sql,
            $(pub(super) $name: Sql,)*
        }

        impl Statements {
            /// Reads the files.
            pub(super) fn new() -> Self {
                let begin = Sql::new("begin immediate");
                let mut all = Self {
                    begin: begin.clone(),
                    set_aside: begin.clone(),
                    claim_start: begin.clone(),
                    settle_end: begin.clone(),
                    settle_back: begin.clone(),
                    $($name: Sql::new($file),)*
                };
                all.begin = begin.then(&all.clock);
                all.set_aside = all
                    .aside_attempts
                    .then(&all.aside_final)
                    .then(&all.settle_remove)
                    .then(&all.aside_keys)
                    .then(&all.aside_promote);
                all.claim_start = all.claim_attempts.then(&all.claim_take);
                let ended = &all.settle_attempts;
                all.settle_end = ended.then(&all.settle_final).then(&all.settle_remove);
                all.settle_back = ended.then(&all.settle_queued);
                all
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
    aside_attempts = include_str!("sql/aside_attempts.sql");
    aside_final = include_str!("sql/aside_final.sql");
    aside_keys = include_str!("sql/aside_keys.sql");
    aside_promote = include_str!("sql/aside_promote.sql");
    attempts = include_str!("sql/attempts.sql");
    cancel = include_str!("sql/cancel.sql");
    claim = include_str!("sql/claim.sql");
    claim_attempts = include_str!("sql/claim_attempts.sql");
    claim_take = include_str!("sql/claim_take.sql");
    clock = include_str!("sql/clock.sql");
    counts = include_str!("sql/counts.sql");
    data_version = include_str!("sql/data_version.sql");
    expired = include_str!("sql/expired.sql");
    extend = include_str!("sql/extend.sql");
    finished = include_str!("sql/finished.sql");
    fence = include_str!("sql/fence.sql");
    find = include_str!("sql/find.sql");
    insert = include_str!("sql/insert.sql");
    insert_key = include_str!("sql/insert_key.sql");
    insert_probe = include_str!("sql/insert_probe.sql");
    insert_rewrite = include_str!("sql/insert_rewrite.sql");
    insert_version = include_str!("sql/insert_version.sql");
    insert_window = include_str!("sql/insert_window.sql");
    job = include_str!("sql/job.sql");
    lock = include_str!("sql/lock.sql");
    migrations_applied = include_str!("sql/migrations_applied.sql");
    migrations_known = include_str!("sql/migrations_known.sql");
    migrations_record = include_str!("sql/migrations_record.sql");
    migrations_table = include_str!("sql/migrations_table.sql");
    newest_version = include_str!("sql/newest_version.sql");
    next_due = include_str!("sql/next_due.sql");
    pragmas = include_str!("sql/pragmas.sql");
    prune = include_str!("sql/prune.sql");
    prune_attempts = include_str!("sql/prune_attempts.sql");
    prune_keys = include_str!("sql/prune_keys.sql");
    prune_windows = include_str!("sql/prune_windows.sql");
    replay = include_str!("sql/replay.sql");
    replay_edit = include_str!("sql/replay_edit.sql");
    replay_holder = include_str!("sql/replay_holder.sql");
    replay_keys = include_str!("sql/replay_keys.sql");
    replay_remove = include_str!("sql/replay_remove.sql");
    settle = include_str!("sql/settle.sql");
    settle_attempts = include_str!("sql/settle_attempts.sql");
    settle_final = include_str!("sql/settle_final.sql");
    settle_keys = include_str!("sql/settle_keys.sql");
    settle_promote = include_str!("sql/settle_promote.sql");
    settle_queued = include_str!("sql/settle_queued.sql");
    settle_remove = include_str!("sql/settle_remove.sql");
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
