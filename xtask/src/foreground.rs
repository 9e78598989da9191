//! `cargo xtask postgres`: a throw-away server for as long as somebody wants it.
//!
//! For developers who run `cargo test` or `cargo nextest` themselves, and for scripts, which read
//! the URL from the one line of the standard output. It ends when the input closes. An interrupt
//! ends this program, and the server follows as it does whenever its owner is gone.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use xtask::servers::{Options, Postgres, install};

/// How soon it is noticed that the server ended by itself.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Starts a server, prints its URL, and stops it when the input closes.
pub(crate) fn postgres(arguments: &[&str]) -> Result<()> {
    let options = options(arguments)?;
    install::postgres(options.bin.as_deref())?;
    let mut server = Postgres::start(options)?;
    println!("{}", server.url());
    io::stdout().flush().context("print the URL")?;
    eprintln!("stops at Ctrl-C or when the input closes");

    let closed = input_closes();
    while let Err(RecvTimeoutError::Timeout) = closed.recv_timeout(LOOK_EVERY) {
        if !server.process().is_running() {
            bail!(
                "the server ended by itself:\n{}",
                server.process().log_tail()
            );
        }
    }
    server.stop()
}

fn options(arguments: &[&str]) -> Result<Options> {
    let mut options = Options::default();
    let mut rest = arguments;
    while let [word, after @ ..] = rest {
        rest = match (*word, after) {
            ("--durable", after) => {
                options.durable = true;
                after
            }
            ("--bin", [folder, after @ ..]) => {
                options.bin = Some(PathBuf::from(folder));
                after
            }
            ("--bin", []) => bail!("--bin: expected the folder of initdb and postgres"),
            _ => bail!("postgres: unknown argument `{word}`; see `cargo xtask help`"),
        };
    }
    Ok(options)
}

/// Hears of the end of the standard input; what comes before is not looked at.
fn input_closes() -> mpsc::Receiver<()> {
    let (open, closed) = mpsc::channel();
    thread::spawn(move || {
        // An input that cannot be read is as good as closed.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        drop(open);
    });
    closed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durable_and_the_folder_of_the_programs_are_taken_in_any_order() -> Result<()> {
        let check = |arguments: &[&str], durable, bin: Option<&str>| -> Result<()> {
            let options = options(arguments)?;
            assert_eq!(options.durable, durable, "{arguments:?}");
            assert_eq!(options.bin, bin.map(PathBuf::from), "{arguments:?}");
            Ok(())
        };
        check(&[], false, None)?;
        check(&["--durable"], true, None)?;
        check(&["--durable", "--bin", "/pg/bin"], true, Some("/pg/bin"))?;
        check(&["--bin", "/pg/bin", "--durable"], true, Some("/pg/bin"))?;
        assert!(options(&["--bin"]).is_err());
        assert!(options(&["--fast"]).is_err());
        Ok(())
    }
}
