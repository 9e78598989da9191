//! Looking through everything for what breaks a rule, in one snapshot beside the writer.

use futures_util::TryStreamExt;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::SqliteStore;
use super::error::{Fault, store_error};
use super::rows::{self, Columns};
use super::statements::{SqlQuery, Statements};
use crate::error::StoreError;
use crate::job::{About, JobState, LeaseToken, OutcomeKind, Verified, WorkerId};
use crate::rules::invariants::{Bound, Findings, Held, Line, Started, Stories, Told};

impl SqliteStore {
    pub(super) async fn verified(&self, limit: usize) -> Result<Verified, StoreError> {
        let failed = |error| store_error("verify", error);
        // What is read first decides on the snapshot, which ends with the transaction.
        let mut tx = self.readers.begin().await.map_err(failed)?;
        let mut findings = Findings::new(limit);
        look(&mut tx, &self.statements, self.manual_now(), &mut findings)
            .await
            .map_err(|fault| fault.into_store("verify"))?;
        tx.rollback().await.map_err(failed)?;
        Ok(findings.verified())
    }
}

async fn look(
    conn: &mut SqliteConnection,
    statements: &Statements,
    manual_now: Option<i64>,
    findings: &mut Findings,
) -> Result<(), Fault> {
    let clock = statements.clock.query().bind(manual_now);
    let now = Columns::of(&clock.fetch_one(&mut *conn).await?).instant()?;

    each(conn, statements.verify_records.query(), |row| {
        match rows::record(row) {
            Ok(record) => findings.record(&record, Columns::at(row, rows::IS_LIVE).take()?, now),
            Err(Fault::Row(fault)) => findings.unreadable(Columns::of(row).about()?, fault),
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
        findings.twice(Columns::of(row).about()?);
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
    conn: &mut SqliteConnection,
    query: SqlQuery,
    mut read: impl FnMut(&SqliteRow) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut rows = query.fetch(conn);
    while let Some(row) = rows.try_next().await? {
        read(&row)?;
    }
    Ok(())
}

fn story_line(
    row: &SqliteRow,
    stories: &mut Stories<i64>,
    findings: &mut Findings,
) -> Result<(), Fault> {
    const ATTEMPT: i64 = 2;
    let mut columns = Columns::of(row);
    let (of, place): (i64, i64) = (columns.take()?, columns.take()?);
    if place != ATTEMPT {
        let line = match told(&mut columns) {
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
            const TOKEN: usize = 4;
            let token = LeaseToken::new(Columns::at(row, TOKEN).take()?);
            findings.unreadable_beside(About::Token(token), fault);
            stories.line(of, Line::Unreadable, findings);
        }
        Err(fault) => return Err(fault),
    }
    Ok(())
}

fn told(columns: &mut Columns<'_>) -> Result<Told, Fault> {
    Ok(Told {
        about: columns.about()?,
        state: columns.parsed::<JobState>("status")?,
        token: columns.take::<Option<i64>>()?.map(LeaseToken::new),
        attempts: columns.number("attempts")?,
        crashes: columns.number("crashes")?,
        snoozes: columns.number("snoozes")?,
    })
}

fn started(columns: &mut Columns<'_>) -> Result<Started, Fault> {
    let (_id, _state): (Option<&[u8]>, Option<&[u8]>) = (columns.take()?, columns.take()?);
    let token = LeaseToken::new(columns.take()?);
    let number = columns.number::<u32>("number")?.into();
    let (_crashes, _snoozes): (i64, i64) = (columns.take()?, columns.take()?);
    let is_open = columns.take()?;
    let outcome = columns.known::<OutcomeKind>()?;
    columns.parsed::<WorkerId>("worker")?;
    Ok(Started {
        token,
        number,
        is_open,
        outcome,
    })
}

fn held(columns: &mut Columns<'_>) -> Result<Held, Fault> {
    Ok(Held {
        job_type: columns.shown()?,
        key: columns.shown()?,
        holders: columns.number("count")?,
        behind: columns.number("count")?,
    })
}

fn bound(columns: &mut Columns<'_>) -> Result<Bound, Fault> {
    Ok(Bound {
        job_type: columns.shown()?,
        key: columns.shown()?,
        job: columns.shown()?,
        ends: columns.take()?,
        is_live: columns.take()?,
        type_of_job: columns.shown_opt()?,
    })
}
