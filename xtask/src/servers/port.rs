//! A loopback port that is free, and stays ours while our server is down.
//!
//! The kernel's own choice was refused: it comes from the range that outgoing connections get
//! their ports from. A client that calls a stopped server there again and again can be given that
//! very port, and then it is connected with itself.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, bail};

/// How often a server is started anew because its port was taken before it listened: the gap is
/// milliseconds, so several times in a row is a fault.
pub(crate) const TRIED: u32 = 5;

/// Below what Linux (32768), macOS and Windows (49152) give to outgoing connections.
const FIRST: u32 = 20_000;
const COUNT: u32 = 12_000;

/// Returns a port that nobody listens on; two calls in one process differ.
pub(crate) fn free() -> Result<u16> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let calls = (0..COUNT).map(|_| CALLS.fetch_add(1, Ordering::Relaxed));
    let ports = calls.map(|call| candidate(process::id(), call));
    match first_free(ports) {
        Some(port) => Ok(port),
        None => bail!("no loopback port from {FIRST} on is free ({COUNT} tried)"),
    }
}

fn first_free(mut ports: impl Iterator<Item = u16>) -> Option<u16> {
    ports.find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
}

/// Processes that follow one another begin far apart, so that neighbours do not meet.
fn candidate(process: u32, call: u32) -> u16 {
    let place = process.wrapping_mul(7_919).wrapping_add(call) % COUNT;
    u16::try_from(FIRST + place).expect("the range ends below 65536")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_never_one_that_an_outgoing_connection_gets() {
        for (process, call) in [(0, 0), (1, 7), (u32::MAX, u32::MAX), (4_194_304, 11_999)] {
            let port = candidate(process, call);
            assert!((20_000..32_000).contains(&port), "{port}");
        }
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_passed_over() -> Result<()> {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, free()?))?;
        let taken = taken.local_addr().map(|address| (taken, address.port()))?;
        let next = free()?;
        assert_eq!(first_free([taken.1, next].into_iter()), Some(next));
        Ok(())
    }
}
