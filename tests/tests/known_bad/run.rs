//! Runs the cases one by one as values, and says which of them failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Once, mpsc};
use std::thread;
use std::time::Duration;

use queue_testkit::conformance::{Case, Fixture, cases, is_skipped};
use queue_testkit::known_bad::{Fault, Planted};

/// A case takes a second or two at most; one that takes this long hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// Cases that run at once: most of them wait for a disk or a server.
const LANES: usize = 4;

const CASE_THREAD: &str = "case";
/// What a runtime calls its threads unless it is told otherwise.
const RUNTIME_THREAD: &str = "tokio-rt-worker";

/// Asserts that the suite catches a fault, and prints by which cases.
#[track_caller]
pub(crate) fn is_caught<F: Fixture>(
    store: &str,
    fault: Fault,
    fixture: impl Fn() -> F + Sync,
    also: &[&str],
) {
    if is_skipped(&fixture()) {
        return;
    }
    let wanted = Wanted::on(store);
    let caught = caught(fault, fixture, also, wanted);
    println!("{fault:?} on {store}: {}", fault.breaks());
    println!("  caught by {} cases", caught.len());
    for case in &caught {
        println!("    {case}");
    }
    // A store that cannot even be opened is no proof of the suite. Where few cases run, the one
    // without a fault tells that.
    let all = cases(also).len();
    let is_whole = wanted == Wanted::Whole;
    assert!(
        !is_whole || caught.len() < all / 2,
        "{} of {all} cases fail",
        caught.len()
    );
    let there_for_it = fault.caught_by().expect("a case is there for each fault");
    let end = format!("::{there_for_it}");
    let is_caught = caught.iter().any(|case| case.ends_with(&end));
    assert!(is_caught, "`{there_for_it}` lets {fault:?} pass");
}

/// Which cases run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The whole suite.
    Whole,
    /// Those that are there for a fault, of whichever fault.
    ThereForAFault,
}

impl Wanted {
    /// The whole suite in memory, where it takes a second; elsewhere if `KNOWN_BAD=whole` asks for
    /// it. A fault lies before the store, so the other cases would say the same again.
    pub(crate) fn on(store: &str) -> Self {
        let asked = std::env::var("KNOWN_BAD").is_ok_and(|wanted| wanted == "whole");
        match store == "memory" || asked {
            true => Self::Whole,
            false => Self::ThereForAFault,
        }
    }

    fn includes(self, case: &str) -> bool {
        let is_there = |fault: &Fault| {
            let there_for_it = fault.caught_by();
            there_for_it.is_some_and(|name| name == case || name.ends_with(&format!("::{case}")))
        };
        self == Self::Whole || Fault::ALL.iter().any(is_there)
    }
}

/// Runs the suite on a store with a fault, each case on a fresh one, and returns the cases that
/// failed, with their families.
pub(crate) fn caught<F: Fixture>(
    fault: Fault,
    fixture: impl Fn() -> F + Sync,
    also: &[&str],
    wanted: Wanted,
) -> Vec<String> {
    quieten();
    let mut cases = cases(also);
    cases.retain(|case| wanted.includes(case.name()));
    let next = AtomicUsize::new(0);
    let lane = || {
        let mut caught = Vec::new();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = format!("{}::{}", case.family(), case.name());
            match ends(*case, Planted::new(fixture(), fault)) {
                End::Kept => {}
                End::Broken => caught.push(name),
                End::Hangs => caught.push(format!("{name} (hangs)")),
            }
        }
        caught
    };
    let mut caught: Vec<String> = thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        let joined = lanes.into_iter().map(|lane| lane.join());
        joined
            .flat_map(|caught| caught.expect("a lane only runs cases"))
            .collect()
    });
    caught.sort();
    caught
}

enum End {
    Kept,
    Broken,
    Hangs,
}

/// Runs a case on a thread of its own, which is left behind if the case hangs.
fn ends(case: Case, fixture: impl Fixture) -> End {
    let (tell, told) = mpsc::channel();
    let body = move || {
        let kept = catch_unwind(AssertUnwindSafe(|| case.run(fixture))).is_ok();
        // Whoever listened may have lost patience.
        let _ = tell.send(kept);
    };
    let started = thread::Builder::new()
        .name(CASE_THREAD.to_owned())
        .spawn(body);
    started.expect("the system gives a test its threads");
    match told.recv_timeout(PATIENCE) {
        Ok(true) => End::Kept,
        Ok(false) => End::Broken,
        Err(_) => End::Hangs,
    }
}

/// A case is expected to fail: it says nothing when it does.
fn quieten() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let here = thread::current();
            if !matches!(here.name(), Some(CASE_THREAD | RUNTIME_THREAD)) {
                loud(panic);
            }
        }));
    });
}
