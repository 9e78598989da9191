//! The suite catches every deliberate fault, on every store.
//!
//! One test for each fault and store runs the suite in this process, prints which cases caught
//! the fault, and asks that the case which is there for it is among them. The same store in the
//! same wrapping without a fault is caught by none. To see the lists:
//! `cargo test -p queue-tests --test known_bad memory -- --nocapture`; for the other stores with
//! `KNOWN_BAD=whole`, without which only the cases that are there for a fault run on them.
#![allow(
    clippy::disallowed_methods,
    reason = "a case that hangs is left behind, and a worker is blocked, on a thread of its own"
)]
#![allow(
    clippy::print_stdout,
    reason = "the lists of cases are wanted for a page"
)]

mod run;
mod heartbeat;

use queue_testkit::conformance::{MemoryFixture, PostgresFixture, SqliteFixture, is_skipped};
use queue_testkit::known_bad::Fault;

/// Plants every fault in a store in turn, in a module named after the store.
///
/// After the semicolon: the families that only some stores promise, as for `conformance_suite!`.
macro_rules! known_bad {
    ($store:ident, $fixture:expr; $($family:ident),+) => {
        mod $store {
            use super::*;

            const ALSO: &[&str] = &[$(stringify!($family)),+];

            fn is_caught(fault: Fault) {
                run::is_caught(stringify!($store), fault, || $fixture, ALSO);
            }

            each_fault!(test_of_each);

            #[test]
            fn a_store_without_a_fault_is_caught_by_no_case() {
                if is_skipped(&$fixture) {
                    return;
                }
                let wanted = run::Wanted::on(stringify!($store));
                let caught = run::caught(Fault::Nothing, || $fixture, ALSO, wanted);
                assert!(caught.is_empty(), "caught without a fault: {caught:#?}");
            }

            #[test]
            fn a_heartbeat_on_the_handlers_runtime_loses_its_lease() {
                if is_skipped(&$fixture) {
                    return;
                }
                heartbeat::loses_its_lease_on_one_runtime($fixture, ALSO.contains(&"durable"));
            }
        }
    };
}

/// The test's name for each fault.
macro_rules! each_fault {
    ($to:ident) => {
        $to! {
            a_settlement_guarded_by_id_only_is_caught: SettleById,
            a_rescue_guarded_by_id_only_is_caught: RescueById,
            a_rescue_that_steals_a_renewed_lease_is_caught: RescueOfARenewedLease,
            a_dedupe_that_checks_and_then_inserts_is_caught: CheckThenInsert,
            a_lease_by_the_clock_of_the_process_is_caught: ClockOfTheProcess,
            a_batch_ended_by_its_first_bad_item_is_caught: BatchEndedByItsFirstBadItem,
            an_attempt_that_is_not_counted_is_caught: AttemptNotCounted,
            a_request_forgotten_before_its_job_ends_is_caught: RequestForgotten,
        }
    };
}

macro_rules! test_of_each {
    ($($name:ident: $fault:ident,)+) => {
        $(
            #[test]
            fn $name() {
                is_caught(Fault::$fault);
            }
        )+
    };
}

macro_rules! list_of_all {
    ($($name:ident: $fault:ident,)+) => { [$(Fault::$fault),+] };
}

known_bad!(memory, MemoryFixture; wakes);
known_bad!(sqlite, SqliteFixture::new(); wakes, durable);
known_bad!(postgres, PostgresFixture::new(); wakes, durable);

#[test]
fn the_page_on_testing_names_the_case_that_is_there_for_each_fault() {
    let page = include_str!("../../../docs/testing.md");
    for fault in Fault::ALL {
        let case = fault.caught_by().expect("a fault has a case");
        assert!(page.contains(&format!("| `{case}` |")), "{fault:?}: {case}");
    }
}

#[test]
fn every_fault_has_its_test() {
    assert_eq!(each_fault!(list_of_all), Fault::ALL);
}
