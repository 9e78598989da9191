//! Every statement is understood by a fresh database, and names indexes that there are.

use std::collections::BTreeSet;

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

#[tokio::test]
async fn every_index_that_a_header_names_exists_and_every_index_is_named() {
    let Some(world) = World::new().await else {
        return;
    };
    let indexes = world.indexes().await;
    let mut named = BTreeSet::new();
    for (name, _) in Statements::new(&world.schema, false).all() {
        let header = header(name);
        let promised = promised(name, &indexes);
        let is_apart = ["none", "catalogue"]
            .iter()
            .any(|word| header.contains(word));
        assert!(is_apart || !promised.is_empty(), "{name}.sql: {header}");
        for word in header.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            let is_index = word.contains('_') && !is_table(word);
            assert!(
                !is_index || indexes.iter().any(|index| index == word),
                "{name}.sql names {word}: {indexes:?}"
            );
        }
        named.extend(promised);
    }
    let idle: Vec<_> = indexes
        .iter()
        .filter(|index| !index.ends_with("_pkey") && !named.contains(*index))
        .collect();
    assert_eq!(idle, [""; 0], "indexes that no statement names");
    world.end().await;
}

fn is_table(word: &str) -> bool {
    ["finished_jobs", "idempotency_keys", "dedupe_windows"].contains(&word)
}

/// What a statement's header says about indexes.
fn header(name: &str) -> String {
    let path = format!(
        "{}/src/store/postgres/sql/{name}.sql",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (_, rest) = text
        .split_once("-- index: ")
        .expect("every header has the line");
    let mut lines = rest.lines();
    let mut said = lines.next().unwrap_or("").to_owned();
    for line in lines.map_while(|line| line.strip_prefix("--   ")) {
        said.push(' ');
        said.push_str(line);
    }
    said
}

/// The indexes that a statement's header promises to use, out of those that there are;
/// `primary key` stands for that of the table it is about.
pub(crate) fn promised(name: &str, indexes: &[String]) -> Vec<String> {
    let said = header(name);
    let mut promised: Vec<String> = said
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| indexes.iter().any(|index| index == word))
        .map(str::to_owned)
        .collect();
    let both = ["jobs_pkey", "finished_jobs_pkey"].map(str::to_owned);
    if said.contains("both tables") || said.contains("both job tables") {
        promised.extend(both);
    }
    if said.contains("both key tables") {
        let keys = ["idempotency_keys_pkey", "dedupe_windows_pkey"];
        promised.extend(keys.map(str::to_owned));
    }
    if said.contains("primary key of jobs") {
        promised.push("jobs_pkey".to_owned());
    } else if said.contains("primary key") && !said.contains("primary keys") {
        promised.push("primary key".to_owned());
    }
    promised
}

/// Reads what indexes there are.
pub(crate) trait HasIndexes {
    async fn indexes(&self) -> Vec<String>;
}

impl HasIndexes for World {
    async fn indexes(&self) -> Vec<String> {
        let sql = "select indexname::text from pg_indexes where schemaname = $1 order by 1";
        let mut conn = self.connection().await;
        let indexes: Vec<String> = sqlx::query_scalar(sql)
            .bind(&self.schema)
            .fetch_all(&mut conn)
            .await
            .expect("the catalogue answers");
        assert!(indexes.len() > 10, "{indexes:?}");
        indexes
    }
}
