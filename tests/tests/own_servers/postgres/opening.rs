//! Every way in which a server cannot be reached or does not let us in has words of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use queue_runtime::error::{OpenError, StoreError, StoreErrorKind};
use queue_runtime::store::Admin as _;
use queue_runtime::store::postgres::PostgresStore;
use sqlx::{Connection, Executor, PgConnection};

use super::world::{SECRET, options, refusal, server};

fn says(error: &StoreError, kind: StoreErrorKind, words: &[&str]) {
    let said = error.to_string();
    assert_eq!(error.kind(), kind, "{said}");
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[tokio::test]
async fn an_address_at_which_nobody_answers_says_why_and_that_trying_again_can_help() {
    use StoreErrorKind::Unavailable;

    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    drop(listener);
    let refused = format!("postgres://ada:{SECRET}@127.0.0.1:{port}/app");
    let error = refusal(options(&refused)).await;
    let server = format!("server ada@127.0.0.1:{port}/app");
    says(
        &error,
        Unavailable,
        &[&server, "nothing accepts connections", "try again"],
    );

    let unnamed = format!("postgres://ada:{SECRET}@no-such-host.invalid/app");
    let error = refusal(options(&unnamed)).await;
    says(
        &error,
        Unavailable,
        &["no-such-host.invalid", "cannot be resolved", "try again"],
    );

    // Accepts, and says nothing: the connection stands in the backlog.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = silent.local_addr().expect("bound").port();
    let black_hole = format!("postgres://ada:{SECRET}@127.0.0.1:{port}/app");
    let error = refusal(options(&black_hole)).await;
    let server = format!("server ada@127.0.0.1:{port}/app");
    says(&error, Unavailable, &[&server, "did not answer within 5s"]);
    drop(silent);

    let socket = format!("postgres://ada:{SECRET}@%2Fnowhere/app");
    let error = refusal(options(&socket)).await;
    says(&error, Unavailable, &["there is no such socket"]);
}

#[tokio::test]
async fn a_server_that_does_not_let_us_in_says_whom_and_where() {
    use StoreErrorKind::InvalidInput;

    let folder = tempfile::tempdir().expect("a temporary folder");
    let rules = folder.path().join("pg_hba.conf");
    let text = "host all postgres 127.0.0.1/32 trust\n\
                host app all 127.0.0.1/32 scram-sha-256\n";
    fs::write(&rules, text).expect("written");
    // The server is another user.
    for (path, mode) in [(folder.path(), 0o755), (&rules, 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    }
    let rules = rules.display().to_string();
    let Some(server) = server(&[
        ("hba_file", &rules),
        ("password_encryption", "scram-sha-256"),
    ]) else {
        return;
    };
    let mut conn = PgConnection::connect(&server.url()).await.expect("trusted");
    for made in [
        "create role ada login password 'right'",
        "create database app owner ada",
    ] {
        conn.execute(made).await.expect("made");
    }
    let at = |user: &str, password: &str, database: &str| {
        let port = server.port();
        options(&format!(
            "postgres://{user}:{password}@127.0.0.1:{port}/{database}"
        ))
    };
    let place = |user: &str, database: &str| {
        format!("server {user}@127.0.0.1:{}/{database}", server.port())
    };

    for (user, password) in [("ada", SECRET), ("nobody", SECRET)] {
        let error = refusal(at(user, password, "app")).await;
        says(
            &error,
            InvalidInput,
            &[&place(user, "app"), "Check user, password"],
        );
    }
    let error = refusal(at("ada", "right", "postgres")).await;
    says(
        &error,
        InvalidInput,
        &[&place("ada", "postgres"), "pg_hba.conf"],
    );
    let error = refusal(at("postgres", SECRET, "nowhere")).await;
    says(
        &error,
        InvalidInput,
        &[&place("postgres", "nowhere"), "does not exist", "Create it"],
    );
    // A server without TLS, or a library without.
    let port = server.port();
    let tls = format!("postgres://postgres:{SECRET}@127.0.0.1:{port}/postgres?sslmode=require");
    let error = refusal(options(&tls)).await;
    says(
        &error,
        InvalidInput,
        &[&place("postgres", "postgres"), "sslmode", "tls-rustls"],
    );

    let store = PostgresStore::open(at("ada", "right", "app").migrate(true)).await;
    store.expect("with the right password it opens");
}

#[tokio::test]
async fn a_server_that_takes_no_more_connections_says_so() {
    use StoreErrorKind::Unavailable;

    let few = [
        ("max_connections", "8"),
        ("superuser_reserved_connections", "0"),
    ];
    let Some(mut server) = server(&few) else {
        return;
    };
    let small = || options(&server.url()).connections(2).expect("a number");
    let mut held = Vec::new();
    while let Ok(conn) = PgConnection::connect(&server.url()).await {
        held.push(conn);
    }
    let error = refusal(small()).await;
    says(
        &error,
        Unavailable,
        &["takes no more connections", "max_connections"],
    );
    for conn in held {
        conn.close().await.expect("closed");
    }

    // And one that stops is told from one that was never there.
    let store = loop {
        match PostgresStore::open(small().migrate(true)).await {
            Ok(store) => break store,
            // The server has not noticed yet that they are gone.
            Err(OpenError::Store(error)) if error.is_transient() => {}
            Err(error) => panic!("{error}"),
        }
    };
    let url = server.url();
    server.stop_immediate().expect("stopped");
    let error = store.counts().await.expect_err("it is gone");
    assert!(error.is_transient(), "{error}");
    let error = refusal(options(&url)).await;
    says(&error, Unavailable, &["nothing accepts connections"]);
    server.restart().expect("it starts again");
    let mut counted = store.counts().await;
    while let Err(error) = &counted {
        assert!(error.is_transient(), "{error}");
        counted = store.counts().await;
    }
    assert_eq!(counted.expect("it answers").total(), 0);
}
