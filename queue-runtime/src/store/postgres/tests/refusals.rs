//! What opening is refused with names the fault and what to do, once each.

use std::error::Error;

use super::world::{Ground, name, options_of, refusal};
use crate::error::{OpenError, StoreErrorKind};
use crate::store::postgres::{PostgresOptions, PostgresStore};

#[tokio::test]
async fn a_schema_that_does_not_exist_is_told_from_one_without_a_queue() {
    let Some(mut ground) = Ground::shared() else {
        return;
    };
    let schema = ground.schema();
    let error = refusal(ground.options(&schema)).await;
    let said = error.to_string();
    assert_eq!(error.kind(), StoreErrorKind::Schema, "{said}");
    assert!(said.contains(&schema), "{said}");
    assert!(said.contains("there is no such schema"), "{said}");
    assert!(said.contains("`.migrate()`"), "{said}");

    ground.run(&format!("create schema {schema}")).await;
    let said = refusal(ground.options(&schema)).await.to_string();
    assert!(said.contains("has no queue in the schema"), "{said}");
    assert!(!said.contains("no such schema"), "{said}");
    ground.end().await;
}

#[tokio::test]
async fn a_database_that_lacks_letters_is_refused() {
    let Some(ground) = Ground::shared() else {
        return;
    };
    let database = name();
    let make = format!(
        "create database {database} encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0"
    );
    ground.run(&make).await;
    let connect = ground.connect.clone().database(&database);
    let error = refusal(options_of(&connect, "queue").migrate(true)).await;
    assert_eq!(error.kind(), StoreErrorKind::Unsupported);
    assert!(error.to_string().contains("LATIN1"), "{error}");
    ground.run(&format!("drop database {database}")).await;
    ground.end().await;
}

#[tokio::test]
async fn a_schema_that_does_not_exist_does_not_read_like_a_missing_right() {
    let Some(mut ground) = Ground::shared() else {
        return;
    };
    let schema = ground.schema();
    let (_, connect) = ground.role().await;

    let said = refusal(options_of(&connect, &schema)).await.to_string();
    assert!(said.contains("there is no such schema"), "{said}");
    assert!(!said.contains("right"), "{said}");

    let error = refusal(options_of(&connect, &schema).migrate(true)).await;
    let said = error.to_string();
    assert_eq!(error.kind(), StoreErrorKind::InvalidInput, "{said}");
    assert!(
        said.contains(&format!("there is no schema {schema:?}")),
        "{said}"
    );
    assert!(said.contains("permission denied for database"), "{said}");
    ground.end().await;
}

/// An error and its sources, as a program prints them.
fn chain(error: &OpenError) -> Vec<String> {
    let mut said = Vec::new();
    let mut next: Option<&dyn Error> = Some(error);
    while let Some(error) = next {
        said.push(error.to_string());
        next = error.source();
    }
    said
}

async fn refused(options: PostgresOptions) -> OpenError {
    PostgresStore::open(options)
        .await
        .expect_err("it does not open")
}

#[tokio::test]
async fn an_advice_is_given_once_in_the_chain_of_an_error() {
    let nobody = PostgresOptions::new("postgres://nobody@127.0.0.1:1/nothing").expect("valid");
    let mut refusals = vec![("nothing accepts connections", refused(nobody).await)];
    if let Some(ground) = Ground::shared() {
        let elsewhere = ground.connect.clone().database(&name());
        let elsewhere = refused(options_of(&elsewhere, "queue")).await;
        refusals.push(("Create it, or name another one", elsewhere));
    }
    for (advice, error) in refusals {
        let chain = chain(&error);
        let times = chain.iter().filter(|said| said.contains(advice)).count();
        assert_eq!(times, 1, "{chain:#?}");
        assert!(chain[0].contains(advice), "{chain:#?}");
        assert!(chain.len() > 1, "the cause is kept: {chain:#?}");
    }
}
