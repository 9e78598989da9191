//! Whether the server can have all the connections that this store may open.

use sqlx::postgres::PgConnection;

use super::error::Fault;
use super::options::PostgresOptions;
use super::rows::Columns;
use super::statements::Statements;

/// Connections beside the pools': one that listens, one for a worker's heartbeat.
const BESIDE: i64 = 2;

/// Returns what is wrong with the number of connections, if it is more than there can be. Behind
/// a pooler the server's number says nothing.
pub(super) async fn fault(
    conn: &mut PgConnection,
    statements: &Statements,
    options: &PostgresOptions,
) -> Result<Option<String>, Fault> {
    if options.behind_pooler {
        return Ok(None);
    }
    let row = statements.capacity.query().fetch_one(&mut *conn).await?;
    let there_are: i64 = Columns::of(&row).take()?;
    let wanted = i64::from(options.connections) + BESIDE;
    Ok((wanted > there_are).then(|| {
        format!(
            "connections = {} and {BESIDE} beside them, to listen and for a heartbeat, are \
             {wanted}: the server leaves this role {there_are} on this database. Lower \
             `connections`, or raise max_connections or the limit of the role or database",
            options.connections
        )
    }))
}
