//! Every statement is understood by a fresh database.

use sqlx::{AssertSqlSafe, Executor, SqlSafeStr};

use super::world::World;
use crate::store::postgres::statements::Statements;

#[tokio::test]
async fn every_statement_prepares_on_a_fresh_database() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut conn = world.connection().await;
    let statements = Statements::new(&world.schema, false);
    assert!(statements.all().len() > 30);
    for (name, sql) in statements.all() {
        let text = AssertSqlSafe(sql.text().to_owned()).into_sql_str();
        let prepared = conn.prepare(text).await;
        prepared.unwrap_or_else(|error| panic!("{name}.sql: {error}"));
    }
    world.end().await;
}
