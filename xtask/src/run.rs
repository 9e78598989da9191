//! Runs a command, shows its output as it comes, and keeps it.
//!
//! A process that the command leaves behind can hold the pipe open for ever; so the end of the
//! command counts, not the end of the pipe.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long the pipe may stay silent before the command is asked whether it has ended.
const SILENCE: Duration = Duration::from_millis(200);

/// A command that has ended.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    pub(crate) seconds: f64,
}

/// Runs `command` with both its streams in one pipe, so that their lines keep their order.
pub(crate) fn both_streams(mut command: Command) -> Result<Finished> {
    let (reader, writer) = std::io::pipe().context("open a pipe")?;
    command
        .stdout(writer.try_clone().context("clone the pipe")?)
        .stderr(writer);
    follow(command, |_| Ok(Box::new(reader)), None)
}

/// Runs `command`, keeps its standard output, and stops it after `limit`.
pub(crate) fn stdout_within(mut command: Command, limit: Duration) -> Result<Finished> {
    command.stdout(Stdio::piped());
    let take = |child: &mut std::process::Child| match child.stdout.take() {
        Some(stdout) => Ok(Box::new(stdout) as Box<dyn Read + Send>),
        None => bail!("the command has no standard output"),
    };
    follow(command, take, Some(limit))
}

fn follow(
    mut command: Command,
    source: impl FnOnce(&mut std::process::Child) -> Result<Box<dyn Read + Send>>,
    limit: Option<Duration>,
) -> Result<Finished> {
    let begun = Instant::now();
    let mut child = command
        .spawn()
        .with_context(|| format!("start {command:?}"))?;
    // The command holds our copy of the pipe's writing end; with it the pipe would never close.
    let shown = format!("{command:?}");
    drop(command);
    let lines = lines_of(source(&mut child)?);

    let mut output = String::new();
    loop {
        match lines.recv_timeout(SILENCE) {
            Ok(line) => {
                print!("{line}");
                std::io::stdout().flush().context("write to the terminal")?;
                output.push_str(&line);
            }
            Err(RecvTimeoutError::Timeout) if child.try_wait()?.is_some() => break,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if limit.is_some_and(|limit| begun.elapsed() > limit) {
            child.kill().context("stop the command")?;
            child.wait()?;
            bail!("{shown} was stopped after {} s", begun.elapsed().as_secs());
        }
    }
    let status = child.wait()?;
    Ok(Finished {
        status,
        output,
        seconds: begun.elapsed().as_secs_f64(),
    })
}

fn lines_of(source: Box<dyn Read + Send>) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut source = BufReader::new(source);
        let mut line = Vec::new();
        while matches!(source.read_until(b'\n', &mut line), Ok(1..)) {
            if send
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                return;
            }
            line.clear();
        }
    });
    receive
}
