//! Looking through everything for what breaks a rule, in one snapshot that locks nothing.

use futures_util::TryStreamExt;
use sqlx::postgres::{PgConnection, PgRow};
use uuid::Uuid;

use super::PostgresStore;
use super::actions::Inside;
use super::connect::{self, Begin, Form, Work};
use super::error::Fault;
use super::rows::{self, Columns};
use super::statements::SqlQuery;
use crate::error::StoreError;
use crate::job::{About, JobState, LeaseToken, OutcomeKind, Verified, WorkerId};
use crate::rules::invariants::{Bound, Findings, Held, Line, Started, Stories, Told};

impl PostgresStore {
    pub(super) async fn verified(&self, limit: usize) -> Result<Verified, StoreError> {
        let begin = Begin::snapshot(&self.options);
        let how = (Form::Transaction, &begin);
        let verify = Verify {
            inside: self.inside(),
            limit,
        };
        connect::run(&self.pools.common, &self.options, how, "verify", verify).await
    }
}

/// Looks through everything.
struct Verify<'a> {
    inside: Inside<'a>,
    /// The largest number of findings of one rule.
    limit: usize,
}

impl Work for Verify<'_> {
    type Done = Verified;

    /// Those about all jobs, all histories and all tokens.
    const LONG: u32 = 3;

    async fn run(&self, conn: &mut PgConnection) -> Result<Verified, Fault> {
        let mut findings = Findings::new(self.limit);
        look(conn, self.inside, &mut findings).await?;
        Ok(findings.verified())
    }
}

async fn look(
    conn: &mut PgConnection,
    Inside { statements, now }: Inside<'_>,
    findings: &mut Findings,
) -> Result<(), Fault> {
    let clock = statements.clock.query().bind(now);
    let now = Columns::of(&clock.fetch_one(&mut *conn).await?).instant()?;

    each(conn, statements.verify_records.query(), |row| {
        match rows::record(row) {
            Ok(record) => findings.record(&record, Columns::at(row, rows::IS_LIVE).take()?, now),
            Err(Fault::Row(fault)) => findings.unreadable(About::OneJob(rows::id(row)?), fault),
            Err(fault) => return Err(fault),
        }
        Ok(())
    })
    .await?;

    let mut stories = Stories::default();
    each(conn, statements.verify_histories.query(), |row| {
        story_line(row, &mut stories, findings)
    })
    .await?;
    stories.end(findings);

    each(conn, statements.verify_twice.query(), |row| {
        findings.twice(About::OneJob(rows::id(row)?));
        Ok(())
    })
    .await?;
    each(conn, statements.verify_tokens.query(), |row| {
        let mut columns = Columns::of(row);
        findings.shared_token(LeaseToken::new(columns.take()?), columns.number("count")?);
        Ok(())
    })
    .await?;
    each(conn, statements.verify_counter.query(), |row| {
        let mut columns = Columns::of(row);
        findings.counter(columns.take()?, columns.take()?);
        Ok(())
    })
    .await?;
    each(conn, statements.verify_dedupe.query(), |row| {
        findings.held(held(&mut Columns::of(row))?);
        Ok(())
    })
    .await?;
    each(conn, statements.verify_keys.query(), |row| {
        findings.idempotency_key(bound(&mut Columns::of(row))?);
        Ok(())
    })
    .await?;
    each(conn, statements.verify_windows.query(), |row| {
        findings.window(bound(&mut Columns::of(row))?);
        Ok(())
    })
    .await
}

/// Reads rows one by one, so that a large store is never held whole.
async fn each(
    conn: &mut PgConnection,
    query: SqlQuery,
    mut read: impl FnMut(&PgRow) -> Result<(), Fault> + Send,
) -> Result<(), Fault> {
    let mut rows = query.fetch(conn);
    while let Some(row) = rows.try_next().await? {
        read(&row)?;
    }
    Ok(())
}

fn story_line(
    row: &PgRow,
    stories: &mut Stories<Uuid>,
    findings: &mut Findings,
) -> Result<(), Fault> {
    const ATTEMPT: i32 = 2;
    let mut columns = Columns::of(row);
    let (of, place): (Uuid, i32) = (columns.take()?, columns.take()?);
    if place != ATTEMPT {
        let about = About::OneJob(rows::id(row)?);
        let line = match told(about, &mut columns) {
            Ok(told) => Line::OneJob(told),
            Err(Fault::Row(_)) => Line::Unreadable, // told of by its record
            Err(fault) => return Err(fault),
        };
        stories.line(of, line, findings);
        return Ok(());
    }
    match started(&mut columns) {
        Ok(started) => stories.line(of, Line::Attempt(started), findings),
        Err(Fault::Row(fault)) => {
            // An attempt in the row of a job that cannot be read is told of by its record.
            if !stories.is_unreadable(&of) {
                const TOKEN: usize = 3;
                let token = LeaseToken::new(Columns::at(row, TOKEN).take()?);
                findings.unreadable_beside(About::Token(token), fault);
            }
            stories.line(of, Line::Unreadable, findings);
        }
        Err(fault) => return Err(fault),
    }
    Ok(())
}

fn told(about: About, columns: &mut Columns<'_>) -> Result<Told, Fault> {
    Ok(Told {
        about,
        state: columns.parsed::<JobState>("status")?,
        token: columns.take::<Option<i64>>()?.map(LeaseToken::new),
        attempts: columns.number("attempts")?,
        crashes: columns.number("crashes")?,
        snoozes: columns.number("snoozes")?,
    })
}

fn started(columns: &mut Columns<'_>) -> Result<Started, Fault> {
    let _state: Option<&str> = columns.take()?;
    let token = LeaseToken::new(columns.take()?);
    let number = columns.number::<u32>("number")?.into();
    let (_crashes, _snoozes): (i64, i64) = (columns.take()?, columns.take()?);
    let is_open = columns.take()?;
    let outcome = columns.known::<OutcomeKind>()?;
    columns.parsed_opt::<WorkerId>("worker")?;
    Ok(Started {
        token,
        number,
        is_open,
        outcome,
    })
}

fn held(columns: &mut Columns<'_>) -> Result<Held, Fault> {
    Ok(Held {
        job_type: columns.take()?,
        key: columns.take()?,
        holders: columns.number("count")?,
        behind: columns.number("count")?,
    })
}

fn bound(columns: &mut Columns<'_>) -> Result<Bound, Fault> {
    Ok(Bound {
        job_type: columns.take()?,
        key: columns.take()?,
        job: columns.take()?,
        ends: columns.take()?,
        is_live: columns.take()?,
        type_of_job: columns.take()?,
    })
}
