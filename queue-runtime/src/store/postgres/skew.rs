//! Compares the server's clock with this machine's, once, for people: nothing is decided by it,
//! since every stored instant is the server's.

use std::time::Duration;

use sqlx::postgres::PgConnection;

use super::error::Fault;
use super::instant::At;
use super::options::PostgresOptions;
use super::rows::Columns;
use super::statements::Statements;
use crate::time::Timestamp;

/// How far the clocks may be apart before somebody should know: logs of both machines are then
/// hard to lay side by side, and times that a program computes itself are off by as much.
const APART_MAX: Duration = Duration::from_secs(5);

/// Warns if the clocks are too far apart. Where a test gives the time there is nothing to compare.
pub(super) async fn compare(
    conn: &mut PgConnection,
    statements: &Statements,
    options: &PostgresOptions,
) -> Result<(), Fault> {
    if options.clock.is_some() {
        return Ok(());
    }
    let before = options.seam.now();
    let row = statements
        .clock
        .query()
        .bind(None::<At>)
        .fetch_one(&mut *conn)
        .await?;
    let server = Columns::of(&row).instant()?;
    let after = options.seam.now();
    if let Some((apart, which)) = apart(before, server, after) {
        tracing::warn!(
            server = options.server(),
            difference_ms = u64::try_from(apart.as_millis()).unwrap_or(u64::MAX),
            "the server's clock is {which} this machine's; the queue goes by the server's"
        );
    }
    Ok(())
}

/// How far the server's clock was from ours, asked between two looks at ours, if that is too far.
fn apart(
    before: Timestamp,
    server: Timestamp,
    after: Timestamp,
) -> Option<(Duration, &'static str)> {
    let (ahead, behind) = (server.since(after), before.since(server));
    match (ahead > APART_MAX, behind > APART_MAX) {
        (true, _) => Some((ahead, "ahead of")),
        (_, true) => Some((behind, "behind")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_slow_answer_cannot_explain_is_a_difference() {
        let check = |before, server, after, expected: Option<(u64, &'static str)>| {
            let at = Timestamp::from_millis;
            let found = apart(at(before), at(server), at(after));
            let expected = expected.map(|(ms, which)| (Duration::from_millis(ms), which));
            assert_eq!(found, expected, "{before} {server} {after}");
        };
        check(0, 0, 0, None);
        check(0, 5_000, 0, None);
        check(0, 5_001, 0, Some((5_001, "ahead of")));
        check(5_001, 0, 5_001, Some((5_001, "behind")));
        check(0, 20_000, 30_000, None);
        check(30_000, 0, 90_000, Some((30_000, "behind")));
    }
}
