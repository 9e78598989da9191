//! Throw-away servers really start, end, and leave nothing behind.
//!
//! Without Postgres on the machine a test says so and passes; where `CI` is set it fails.

#![cfg(unix)]

use std::env;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use xtask::servers::{Options, PgBouncer, PoolMode, Postgres, find};

/// Whether this machine lacks a program of `found`, and need not have it.
fn is_missing<T>(found: &Result<T>) -> bool {
    let in_ci = env::var_os("CI").is_some_and(|set| !set.is_empty());
    match found {
        Err(error) if !in_ci => {
            println!("skipped: {error:#}");
            true
        }
        _ => false,
    }
}

fn server() -> Result<Option<Postgres>> {
    if is_missing(&find::postgres(None)) {
        return Ok(None);
    }
    Postgres::start(Options::default()).map(Some)
}

fn is_answered(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Whether a process of this id exists.
fn exists(id: u32) -> bool {
    let mut asked = Command::new("sh");
    asked.args(["-c", &format!("kill -0 {id}")]);
    let status = asked.stderr(Stdio::null()).status();
    status.expect("a shell is on every Unix").success()
}

/// The answer to one statement, by `psql`; `None` where there is no `psql`.
fn query(url: &str, statement: &str) -> Result<Option<String>> {
    if Command::new("psql").arg("--version").output().is_err() {
        return Ok(None);
    }
    let asked = Command::new("psql")
        .args(["-X", "-A", "-t", "-q", "-c", statement, url])
        .output()
        .context("start psql")?;
    ensure!(
        asked.status.success(),
        "{}",
        String::from_utf8_lossy(&asked.stderr)
    );
    Ok(Some(String::from_utf8(asked.stdout)?.trim().to_owned()))
}

/// A program of its own that owns a server, and the folder that the server's folder is in.
struct Owner {
    program: Child,
    url: String,
    folder: tempfile::TempDir,
}

impl Owner {
    /// `cargo xtask postgres`, once it has printed its URL.
    fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        // Like the system's own: if we are root, the server runs as another user.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o1777))?;
        let mut program = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .arg("postgres")
            .env("TMPDIR", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = program.stdout.take().context("a pipe")?;
        let mut url = String::new();
        BufReader::new(stdout).read_line(&mut url)?;
        Ok(Self {
            program,
            url: url.trim().to_owned(),
            folder,
        })
    }

    fn port(&self) -> Result<u16> {
        let (_, port) = self.url.rsplit_once(':').context("a URL with a port")?;
        Ok(port.trim_end_matches("/postgres").parse()?)
    }

    fn left_behind(&self) -> Result<usize> {
        Ok(fs::read_dir(self.folder.path())?.count())
    }
}

#[test]
fn a_server_follows_its_owner_that_is_killed_and_leaves_no_folder() -> Result<()> {
    if is_missing(&find::postgres(None)) {
        return Ok(());
    }
    let mut owner = Owner::start()?;
    assert!(is_answered(owner.port()?), "{}", owner.url);
    assert_eq!(owner.left_behind()?, 1);

    owner.program.kill()?;
    owner.program.wait()?;

    // Nobody is left to tell us; far above what it takes.
    let begun = Instant::now();
    while owner.left_behind()? > 0 {
        ensure!(
            begun.elapsed() < Duration::from_secs(60),
            "the folder stays"
        );
        thread::sleep(Duration::from_millis(10));
    }
    assert!(!is_answered(owner.port()?));
    Ok(())
}

#[test]
fn the_chore_prints_one_url_and_stops_its_server_when_the_input_closes() -> Result<()> {
    if is_missing(&find::postgres(None)) {
        return Ok(());
    }
    let mut owner = Owner::start()?;
    assert!(is_answered(owner.port()?), "{}", owner.url);
    if let Some(answer) = query(&owner.url, "select 1")? {
        assert_eq!(answer, "1");
    }

    drop(owner.program.stdin.take());

    assert!(owner.program.wait()?.success());
    assert!(!is_answered(owner.port()?));
    assert_eq!(owner.left_behind()?, 0);
    Ok(())
}

#[test]
fn a_dropped_server_leaves_no_process_and_no_port() -> Result<()> {
    let Some(server) = server()? else {
        return Ok(());
    };
    let (port, id) = (server.port(), server.process().id());
    assert!(is_answered(port));
    assert!(exists(id));

    drop(server);

    assert!(!is_answered(port));
    assert!(!exists(id));
    Ok(())
}

#[test]
fn a_server_comes_back_on_its_port_with_its_data_however_it_ended() -> Result<()> {
    let Some(mut server) = server()? else {
        return Ok(());
    };
    let url = server.url();
    query(&url, "create table kept (ending text)")?;
    type End = fn(&mut Postgres) -> Result<()>;
    // What the server knew of its end; a killed one knew nothing.
    let ends: [(&str, End, &str); 3] = [
        ("stop", Postgres::stop, "fast shutdown"),
        (
            "stop_immediate",
            Postgres::stop_immediate,
            "immediate shutdown",
        ),
        ("kill", Postgres::kill, ""),
    ];
    for (name, end, request) in ends {
        let id = server.process().id();
        query(&url, &format!("insert into kept values ('{name}')"))?;

        end(&mut server)?;

        let log = server.process().log_tail();
        assert!(log.contains(request), "{name}: {log}");
        assert_eq!(log.contains(" shutdown"), !request.is_empty(), "{log}");
        assert!(!server.process().is_running(), "{name}");
        assert!(!exists(id), "{name}");
        assert!(!is_answered(server.port()), "{name}");

        server.restart()?;

        assert_eq!(server.url(), url);
        assert_ne!(server.process().id(), id, "{name}");
    }
    let kept = query(&url, "select string_agg(ending, ' ') from kept")?;
    if let Some(kept) = kept {
        assert_eq!(kept, "stop stop_immediate kill");
    }
    Ok(())
}

#[test]
fn a_server_that_cannot_start_shows_the_end_of_its_log() -> Result<()> {
    if is_missing(&find::postgres(None)) {
        return Ok(());
    }
    let refused = Postgres::start(Options {
        settings: vec![("no_such_setting".to_owned(), "1".to_owned())],
        ..Options::default()
    });
    let message = format!("{:#}", refused.expect_err("the setting is unknown"));
    assert!(message.contains("ended before it served"), "{message}");
    assert!(message.contains("no_such_setting"), "{message}");
    Ok(())
}

#[test]
fn servers_stand_side_by_side_and_only_a_durable_one_waits_for_the_disk() -> Result<()> {
    let Some(quick) = server()? else {
        return Ok(());
    };
    let durable = Postgres::start(Options {
        durable: true,
        ..Options::default()
    })?;

    assert_ne!(quick.port(), durable.port());
    for (server, expected) in [(quick, "off on off"), (durable, "on on on")] {
        let settings = query(
            &server.url(),
            "select concat_ws(' ', current_setting('fsync'), \
             current_setting('synchronous_commit'), current_setting('full_page_writes'))",
        )?;
        if let Some(settings) = settings {
            assert_eq!(settings, expected);
        }
    }
    Ok(())
}

#[test]
fn a_pooler_answers_for_the_server_behind_it_until_it_is_stopped() -> Result<()> {
    let Some(mut server) = server()? else {
        return Ok(());
    };
    if is_missing(&find::pgbouncer()) {
        return Ok(());
    }
    let mut pooler = PgBouncer::start(&server, PoolMode::Transaction)?;
    let check = |pooler: &PgBouncer| -> Result<()> {
        assert!(is_answered(pooler.port()));
        if let Some(answer) = query(&pooler.url(), "select 1")? {
            assert_eq!(answer, "1");
        }
        Ok(())
    };
    check(&pooler)?;

    server.kill()?;
    server.restart()?;

    check(&pooler)?;

    pooler.stop()?;

    assert!(!is_answered(pooler.port()));
    assert!(!exists(pooler.process().id()));
    Ok(())
}

#[test]
fn a_pooler_refuses_a_start_up_parameter_that_is_unusual() -> Result<()> {
    let Some(server) = server()? else {
        return Ok(());
    };
    if is_missing(&find::pgbouncer()) {
        return Ok(());
    }
    let pooler = PgBouncer::start(&server, PoolMode::Transaction)?;
    let unusual = format!("{}?options=-c%20geqo%3Doff", pooler.url());
    if query(&pooler.url(), "select 1")?.is_none() {
        return Ok(());
    }
    let refused = query(&unusual, "select 1").expect_err("the parameter is unusual");
    assert!(
        refused
            .to_string()
            .contains("unsupported startup parameter"),
        "{refused}"
    );
    Ok(())
}
