//! Renews leases over a connection of its own, so that no busy pool can starve it. It never waits
//! for a row: what a transaction of the handler's own holds is answered as held.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use super::connect::{self, Begin};
use super::error::Fault;
use super::instant::At;
use super::options::PostgresOptions;
use super::rows::{Columns, span_ms};
use super::statements::Statements;
use crate::error::StoreError;
use crate::failpoint;
use crate::job::{Lease, LeaseToken};
use crate::store::{Extended, Heartbeat};

/// How long a renewal may take: a lease lasts at least three heartbeats, so a late answer still
/// leaves time for another try.
const RENEWAL_MAX: Duration = Duration::from_secs(5);

/// The way by which leases are renewed.
pub(super) struct PostgresHeartbeat {
    options: PostgresOptions,
    statements: Arc<Statements>,
    begin: Begin,
    conn: Option<PgConnection>,
}

impl PostgresHeartbeat {
    /// Opens the connection.
    pub(super) async fn open(
        options: PostgresOptions,
        statements: Arc<Statements>,
        begin: Begin,
    ) -> Result<Self, StoreError> {
        let conn = connect::connect(&options, "heartbeat").await?;
        Ok(Self {
            options,
            statements,
            begin,
            conn: Some(conn),
        })
    }

    /// Renews in one short transaction.
    async fn renew(
        &self,
        conn: &mut PgConnection,
        leases: &[Lease],
        lease: Duration,
    ) -> Result<HashMap<Lease, Extended>, Fault> {
        let (ids, tokens): (Vec<Uuid>, Vec<i64>) = leases
            .iter()
            .map(|lease| (*lease.id.as_uuid(), lease.token.get()))
            .unzip();
        let now = self.options.clock.as_ref().map(|clock| At(clock.now()));
        let mut tx = self.begin.on(conn).await?;
        let rows = self
            .statements
            .extend
            .query()
            .bind(ids)
            .bind(tokens)
            .bind(span_ms(lease))
            .bind(now)
            .fetch_all(&mut *tx)
            .await?;
        failpoint::point!("heartbeat.uncommitted");
        tx.commit().await?;
        rows.iter()
            .map(|row| {
                let mut columns = Columns::of(row);
                let id = columns.id()?;
                let token = LeaseToken::new(columns.take()?);
                let answer = match (columns.take()?, columns.take()?) {
                    (false, _) => Extended::Held,
                    (true, true) => Extended::Cancel,
                    (true, false) => Extended::Kept,
                };
                Ok((Lease { id, token }, answer))
            })
            .collect()
    }
}

#[async_trait]
impl Heartbeat for PostgresHeartbeat {
    async fn extend(
        &mut self,
        leases: &[Lease],
        lease: Duration,
    ) -> Result<Vec<Extended>, StoreError> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        // Taken out while it is in use: a call that is dropped or fails half-way leaves an answer
        // on its way, which only a new connection is sure to be rid of.
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => connect::connect(&self.options, "extend").await?,
        };
        let renewal = self.renew(&mut conn, leases, lease);
        let renewed = connect::within(&*self.options.seam, RENEWAL_MAX, "extend", renewal)
            .await?
            .map_err(|fault| fault.into_store("extend"))?;
        self.conn = Some(conn);
        let answer = |lease: &Lease| renewed.get(lease).copied().unwrap_or(Extended::Lost);
        Ok(leases.iter().map(answer).collect())
    }
}
