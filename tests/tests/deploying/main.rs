//! A rolling deploy with two real programs, `examples/deploying/before` and `after`: two releases of
//! one application on one store, under load, forward and back.
#![allow(
    clippy::disallowed_methods,
    reason = "starts real processes, reads what they print, and bounds how long it waits for them"
)]
#![allow(
    clippy::duplicate_mod,
    reason = "both releases, which are modules of `builds`, have the same program around their jobs"
)]

mod audit;
mod builds;
mod fleet;
mod place;

use queue_runtime::error::StoreErrorKind;
use queue_runtime::{OpenError, Queue};

use self::builds::{CARELESS, MOVED, check_nothing_is_stranded, judged, row, stranded};
use self::fleet::Fleet;
use self::place::Place;

/// The names of the releases.
pub(crate) const BEFORE: &str = "before";
pub(crate) const AFTER: &str = "after";

/// Makes a test of each scenario for each store that several processes can open.
macro_rules! on_each_store {
    ($($scenario:ident)*) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $scenario() {
                    let place = super::Place::sqlite();
                    super::$scenario(&place).await;
                }
            )*
        }

        mod postgres {
            $(
                #[tokio::test]
                async fn $scenario() {
                    let Some(place) = super::Place::postgres() else { return };
                    super::$scenario(&place).await;
                    place.end().await;
                }
            )*
        }
    };
}

on_each_store! {
    a_rolling_deploy_and_its_way_back_lose_no_job
    a_careless_release_is_told_before_it_is_deployed_what_it_would_strand
    a_program_below_what_the_tables_need_is_refused_at_its_start
    a_request_that_the_next_release_repeats_in_another_shape_is_a_conflict
}

async fn a_rolling_deploy_and_its_way_back_lose_no_job(place: &Place) {
    let fleet = Fleet::new(place).await;
    fleet.migrate(BEFORE).await;
    let queue = place.open().await;
    let mut accepted = 0;

    // The release that is there, under load; then the next one beside it.
    let old = [fleet.worker(BEFORE).await, fleet.worker(BEFORE).await];
    let old_load = fleet.producer(BEFORE, 0, 800);
    fleet.ran(50).await;
    fleet.migrate(AFTER).await;
    let new = [fleet.worker(AFTER).await, fleet.worker(AFTER).await];
    let new_load = fleet.producer(AFTER, 10_000, 600);
    fleet.ran(200).await;

    // What a newer library changes about the tables does not stop old workers, who alone know old
    // reports, nor keep another from starting.
    place.migrate_beyond(1, place.known()).await;
    accepted += fleet.producer(BEFORE, 1_000, 40).accepted().await;
    fleet.knows_all(&queue, AFTER).await;
    let late = fleet.worker(BEFORE).await;
    accepted += old_load.accepted().await + new_load.accepted().await;

    // They leave one by one, until only the one that came after the change is left.
    for worker in old {
        worker.stop().await;
    }
    accepted += fleet.producer(BEFORE, 2_000, 40).accepted().await;
    fleet.waits(&queue, 0).await;
    assert!(late.stop().await >= 10, "old reports had no other worker");

    // New workers run what an old producer stores, all but the job that they lack.
    accepted += fleet.producer(BEFORE, 3_000, 80).accepted().await;
    fleet.waits(&queue, 20).await;
    let lacking = [row("old_report", 20, "unknown")];
    assert_eq!(stranded(&queue, AFTER).await, lacking);
    assert_eq!(stranded(&queue, BEFORE).await, []);
    for worker in new {
        worker.stop().await;
    }

    // Back: old workers run what they know of what the new release has stored.
    accepted += fleet.producer(AFTER, 20_000, 80).accepted().await;
    let newer = [
        row("new_report", 20, "unknown"),
        row("send_digest", 20, "unknown"),
        row("send_invoice", 20, "reads 1"),
    ];
    assert_eq!(stranded(&queue, BEFORE).await, newer);
    assert_eq!(stranded(&queue, AFTER).await, lacking);
    let old = [fleet.worker(BEFORE).await, fleet.worker(BEFORE).await];
    fleet.waits(&queue, 60).await;
    assert_eq!(stranded(&queue, BEFORE).await, newer);
    assert_eq!(stranded(&queue, AFTER).await, []);
    for worker in old {
        for (name, ..) in &newer {
            worker.says(name).await;
        }
        worker.stop().await;
    }

    // And forward again.
    let new = [fleet.worker(AFTER).await, fleet.worker(AFTER).await];
    fleet.waits(&queue, 0).await;
    for worker in new {
        worker.stop().await;
    }
    check_nothing_is_stranded(&queue).await;
    let repeated = fleet.producer(BEFORE, 0, 40).accepted().await;
    assert_eq!(repeated, 0, "these requests were made at the beginning");
    audit::check(&queue, fleet.ledger(), accepted).await;
    queue.close().await;
}

async fn a_careless_release_is_told_before_it_is_deployed_what_it_would_strand(place: &Place) {
    let fleet = Fleet::new(place).await;
    fleet.migrate(BEFORE).await;
    let accepted = fleet.producer(BEFORE, 0, 120).accepted().await;
    let queue = place.open().await;

    let verdict = judged(&queue, CARELESS).await;

    assert!(!verdict.is_allowed());
    let told = verdict.to_string();
    assert!(told.ends_with("\n60 of 120 payloads tried\n"), "{told}");
    let expected = [
        row("digest", 30, "unknown"),
        row("old_report", 30, "unknown"),
        row("send_invoice", 30, "30 of 30 refused"),
    ];
    assert_eq!(stranded(&queue, CARELESS).await, expected);
    let types = ["digest", "old_report", "send_invoice", "sync_stock"];
    let left = types.map(|name| row(name, 30, "default is not served"));
    assert_eq!(stranded(&queue, MOVED).await, left);
    // With care the same edits strand nothing, but for the job that is gone.
    let gone = [row("old_report", 30, "unknown")];
    assert_eq!(stranded(&queue, AFTER).await, gone);
    let counts = queue.counts().await.expect("the store answers");
    assert_eq!((counts.queued, counts.total()), (accepted, accepted));
    queue.close().await;
}

async fn a_program_below_what_the_tables_need_is_refused_at_its_start(place: &Place) {
    let fleet = Fleet::new(place).await;
    fleet.migrate(BEFORE).await;
    let accepted = fleet.producer(BEFORE, 0, 40).accepted().await;
    let queue = place.open().await;

    let needed = place.known() + 1;
    place.migrate_beyond(1, needed).await;

    let wanted = format!("needs a library of schema {needed} at least. Update this program");
    for role in ["work", "produce", "migrate"] {
        let said = fleet.refused(BEFORE, role).await;
        assert!(said.contains(&wanted), "{role}: {said}");
    }
    match Queue::open(place.url()).await {
        Err(OpenError::Store(error)) => assert_eq!(error.kind(), StoreErrorKind::Schema),
        other => panic!("{other:?}"),
    }
    let counts = queue.counts().await.expect("the store answers");
    assert_eq!((counts.queued, counts.total()), (accepted, accepted));
    assert_eq!(fleet.ledger(), []);
    queue.close().await;
}

async fn a_request_that_the_next_release_repeats_in_another_shape_is_a_conflict(place: &Place) {
    let fleet = Fleet::new(place).await;
    fleet.migrate(BEFORE).await;
    let accepted = fleet.producer(BEFORE, 0, 1).accepted().await;

    let said = fleet.refused(AFTER, "produce").await;

    let wanted = "for another payload; these fields differ: email, recipients";
    assert!(said.contains(wanted), "{said}");
    let queue = place.open().await;
    let counts = queue.counts().await.expect("the store answers");
    assert_eq!((counts.queued, counts.total()), (accepted, accepted));
    queue.close().await;
}
