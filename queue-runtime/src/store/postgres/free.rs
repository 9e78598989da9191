//! Settles what can be settled at once, where somebody else's transaction holds some of it: a row
//! that is held delays nothing but its own settlement.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::postgres::PgConnection;

use super::error::Fault;
use super::finish::{AttemptKey, BATCH_MAX};
use super::instant::At;
use super::rows::{Columns, column, ids};
use super::settle::{key, named, settle};
use super::statements::Statements;
use crate::job::{Settled, Settlement};

/// How long settlements wait for a row before those that are free go on without it. Our own
/// transactions, such as a renewal of the leases, are over sooner.
pub(super) const WAIT_MAX: Duration = Duration::from_millis(200);

/// Settles inside the open transaction what nobody holds, and answers the rest as held; also says
/// whether a job became claimable.
pub(super) async fn settle_free(
    conn: &mut PgConnection,
    statements: &Statements,
    now: Option<At>,
    settlements: &[Settlement],
) -> Result<(Vec<Settled>, bool), Fault> {
    let found = look(conn, statements, settlements).await?;
    let is_free = |settlement: &Settlement| found.get(&key(settlement)).copied();
    let free: Vec<_> = settlements
        .iter()
        .filter(|settlement| is_free(settlement) == Some(true))
        .cloned()
        .collect();
    let (settled, wake) = settle(conn, statements, now, &free).await?;
    let mut settled = settled.into_iter();
    let answers = settlements.iter().map(|settlement| {
        let answer = match is_free(settlement) {
            Some(true) => settled.next(),
            // A rescue leaves alone what somebody holds.
            Some(false) if !settlement.only_if_expired => Some(Settled::Held),
            _ => None,
        };
        answer.unwrap_or(Settled::Stale)
    });
    Ok((answers.collect(), wake))
}

/// Says of each attempt that holds its job whether it can end at once.
async fn look(
    conn: &mut PgConnection,
    statements: &Statements,
    settlements: &[Settlement],
) -> Result<HashMap<AttemptKey, bool>, Fault> {
    let mut settlements: Vec<_> = settlements.iter().collect();
    // In one order over all chunks.
    settlements.sort_by_key(|settlement| settlement.id);
    let mut found = HashMap::new();
    for settlements in settlements.chunks(BATCH_MAX) {
        let rows = statements
            .settle_free
            .query()
            .bind(ids(settlements.iter().map(|settlement| settlement.id)))
            .bind(column(settlements, |settlement| settlement.token.get()))
            .fetch_all(&mut *conn)
            .await?;
        for row in &rows {
            let mut columns = Columns::of(row);
            let key = named(&mut columns)?;
            found.insert(key, columns.take()?);
        }
    }
    Ok(found)
}
