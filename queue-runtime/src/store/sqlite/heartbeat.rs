//! Renews leases over a connection of its own, so that no long batch of the writer's and no
//! transaction of the application's pool can starve it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::Executor;
use sqlx::sqlite::SqliteConnection;

use super::connect;
use super::error::Fault;
use super::options::SqliteOptions;
use super::rows::{Columns, json, span_ms};
use super::statements::Statements;
use super::turn::Turn;
use crate::error::StoreError;
use crate::failpoint;
use crate::job::{JobId, Lease, LeaseToken};
use crate::store::{Extended, Heartbeat};

/// The way by which leases are renewed.
#[derive(Debug)]
pub(super) struct SqliteHeartbeat {
    options: SqliteOptions,
    statements: Arc<Statements>,
    turn: Arc<Turn>,
    conn: Option<SqliteConnection>,
}

impl SqliteHeartbeat {
    /// Opens the connection.
    pub(super) async fn open(
        options: SqliteOptions,
        statements: Arc<Statements>,
        turn: Arc<Turn>,
    ) -> Result<Self, StoreError> {
        let conn = connect::connect(&options, &statements, "heartbeat").await?;
        Ok(Self {
            options,
            statements,
            turn,
            conn: Some(conn),
        })
    }

    /// Renews in one short transaction.
    async fn renew(
        &self,
        conn: &mut SqliteConnection,
        leases: &[Lease],
        lease: Duration,
    ) -> Result<HashMap<Lease, bool>, Fault> {
        let _asking = self.turn.ask();
        conn.execute("begin immediate").await?;
        let batch: Vec<_> = leases
            .iter()
            .map(|lease| (lease.id.to_string(), lease.token.get()))
            .collect();
        let now = self
            .options
            .clock
            .as_ref()
            .map(|clock| clock.now().as_millis());
        let rows = self
            .statements
            .extend
            .query()
            .bind(json(&batch))
            .bind(span_ms(lease))
            .bind(now)
            .fetch_all(&mut *conn)
            .await?;
        failpoint::point!("heartbeat.uncommitted");
        conn.execute("commit").await?;
        rows.iter()
            .map(|row| {
                let mut columns = Columns::of(row);
                let id: JobId = columns.parsed("id")?;
                let token = LeaseToken::new(columns.take()?);
                Ok((Lease { id, token }, columns.take()?))
            })
            .collect()
    }
}

#[async_trait]
impl Heartbeat for SqliteHeartbeat {
    async fn extend(
        &mut self,
        leases: &[Lease],
        lease: Duration,
    ) -> Result<Vec<Extended>, StoreError> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        // Taken out while it is in use: a call that is dropped or fails half-way leaves a
        // transaction open, which only a new connection is sure to be rid of.
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => connect::connect(&self.options, &self.statements, "extend").await?,
        };
        let renewed = self
            .renew(&mut conn, leases, lease)
            .await
            .map_err(|fault| fault.into_store("extend"))?;
        // Kept in a file that is gone is not kept.
        self.options.verify_file("extend")?;
        self.conn = Some(conn);
        let answer = |lease: &Lease| match renewed.get(lease) {
            Some(true) => Extended::Cancel,
            Some(false) => Extended::Kept,
            None => Extended::Lost,
        };
        Ok(leases.iter().map(answer).collect())
    }
}
