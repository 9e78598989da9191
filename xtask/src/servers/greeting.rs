//! Waits until a Postgres port serves: asks it in the first words of the protocol, and no more.
//!
//! This is what `pg_isready` does and one step further: it waits for the server's word that it is
//! ready for a query, so that a pooler answers only when the server behind it does. Programs of
//! the server's own were refused for this, since not every distribution of binaries has them.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::process::Process;

/// Recovery of a small data folder included; a busy machine has been seen to need seconds.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// How often a starting server is greeted.
const GREET_EVERY: Duration = Duration::from_millis(20);

/// A server on the loopback interface answers in well under a millisecond, unless it starts.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Far above what a server says before it is ready: some fifteen short settings.
const MESSAGES_MAX: usize = 200;
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Protocol 3.0.
const VERSION: u32 = 3 << 16;

/// Waits until `process` says that it is ready and `port` answers.
///
/// An error holds the end of the server's log.
pub(crate) fn wait_until_answered(
    process: &Process,
    port: u16,
    says_ready: impl Fn() -> bool,
) -> Result<()> {
    let begun = Instant::now();
    while !(says_ready() && is_answered(port)) {
        let reason = match process.is_running() {
            false => "ended before it served",
            true if begun.elapsed() > READY_WITHIN => "does not serve after a minute",
            true => {
                thread::sleep(GREET_EVERY);
                continue;
            }
        };
        let log = process.log_tail();
        bail!("the server on port {port} {reason}:\n{log}");
    }
    Ok(())
}

/// Whether the server on `port` is ready for a query of user and database `postgres`.
fn is_answered(port: u16) -> bool {
    greet(port).unwrap_or(false)
}

fn greet(port: u16) -> io::Result<bool> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut server = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
    server.set_read_timeout(Some(ANSWER_WITHIN))?;
    server.write_all(&startup())?;
    let ready = reaches_ready(&mut server)?;
    // A farewell, so that the server's log has no word about a lost client.
    server.write_all(&[b'X', 0, 0, 0, 4])?;
    Ok(ready)
}

fn startup() -> Vec<u8> {
    let mut body = VERSION.to_be_bytes().to_vec();
    body.extend_from_slice(b"user\0postgres\0database\0postgres\0\0");
    let length = u32::try_from(body.len() + 4).expect("a short message");
    [&length.to_be_bytes()[..], &body].concat()
}

/// Reads messages until the server is ready for a query, or says why it is not.
fn reaches_ready(server: &mut impl Read) -> io::Result<bool> {
    for _ in 0..MESSAGES_MAX {
        let mut head = [0; 5];
        server.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let length = u32::from_be_bytes(length) as usize;
        if !(4..MESSAGE_BYTES_MAX).contains(&length) {
            return Ok(false);
        }
        let mut body = vec![0; length - 4];
        server.read_exact(&mut body)?;
        match kind {
            b'Z' => return Ok(true),
            b'E' => return Ok(false),
            _ => {}
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_that_it_is_ready_counts() {
        let check = |answer: &[u8], expected: Option<bool>| {
            let found = reaches_ready(&mut &answer[..]).ok();
            assert_eq!(found, expected, "{answer:?}");
        };
        let authenticated = [b'R', 0, 0, 0, 8, 0, 0, 0, 0];
        let ready = [b'Z', 0, 0, 0, 5, b'I'];
        let starting_up = [b'E', 0, 0, 0, 5, 0];
        check(&[&authenticated[..], &ready].concat(), Some(true));
        check(&authenticated, None);
        check(&starting_up, Some(false));
        check(&[&authenticated[..], &starting_up].concat(), Some(false));
        check(b"HTTP/1.1 400 Bad Request", Some(false));
        check(&[], None);
    }
}
