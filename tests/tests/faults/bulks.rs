//! Many jobs in one call: all of them or none, however many they are.

use queue_runtime::job::{NewJob, Settled};
use queue_runtime::{EnqueueError, Queue, job};
use queue_testkit::conformance::jobs::{LEASE, done, rescue};

use crate::dedupe_races::Tx;
use crate::world::{Subject, World};

on! { memory:
    real { o_131_a_bulk_of_any_size_is_not_stored_in_part }
    by_hand { o_130_one_stale_result_of_a_hundred_does_not_hold_up_the_rest }
}

on! { sqlite:
    real {
        o_131_a_bulk_of_any_size_is_not_stored_in_part
        o_131_a_bulk_of_a_transaction_that_is_rolled_back_leaves_nothing_behind
    }
    by_hand { o_130_one_stale_result_of_a_hundred_does_not_hold_up_the_rest }
}

on! { postgres:
    real {
        o_131_a_bulk_of_any_size_is_not_stored_in_part
        o_131_a_bulk_of_a_transaction_that_is_rolled_back_leaves_nothing_behind
    }
    by_hand { o_130_one_stale_result_of_a_hundred_does_not_hold_up_the_rest }
}

async fn o_130_one_stale_result_of_a_hundred_does_not_hold_up_the_rest(s: &Subject) {
    let jobs: Vec<NewJob> = (0..100).map(|_| s.job()).collect();
    s.insert(&jobs).await;
    let runs = s.claim_all().await;
    assert_eq!(runs.len(), 100);
    s.advance(LEASE);
    // One is taken over meanwhile.
    s.apply(rescue(&runs[40])).await;

    let results: Vec<_> = runs.iter().map(done).collect();
    let answers = s.settle(&results).await;

    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(*answer == Settled::Stale, n == 40, "{n}: {answer:?}");
    }
    let left = s.claim_all().await;
    let left: Vec<_> = left.iter().map(|run| run.id).collect();
    assert_eq!(left, [runs[40].id], "no other runs again");
    let again = s.settle(&results).await;
    assert_eq!(again, vec![Settled::Stale; 100]);
}

#[job]
async fn is_one_of_many(n: u32) {
    let _ = n;
}

fn many(jobs: u32) -> impl Iterator<Item = IsOneOfManyJob> {
    (0..jobs).map(|n| IsOneOfManyJob { n })
}

async fn stored(queue: &Queue) -> u64 {
    queue.counts().await.expect("it answers").total()
}

async fn o_131_a_bulk_of_any_size_is_not_stored_in_part(world: &World) {
    let queue = world.open().await;
    let mut total = 0;
    for jobs in [1, 5_000, 10_000] {
        let sent = queue.enqueue_all(many(jobs)).await.expect("enqueued");
        assert!(
            sent.iter()
                .all(|sent| matches!(sent, Ok(sent) if !sent.duplicate))
        );
        total += u64::from(jobs);
        assert_eq!((sent.len(), stored(&queue).await), (jobs as usize, total));
    }
    let refused = queue.enqueue_all(many(100_000)).await;
    let refused = refused.expect_err("more than one call takes");
    assert!(matches!(
        refused,
        EnqueueError::OutOfRange { what: "bulk", .. }
    ));
    let says = refused.to_string();
    assert!(
        says.contains("100000") && says.contains("10000 jobs; split it"),
        "{says}"
    );
    assert_eq!(stored(&queue).await, total, "nothing of it is stored");
}

/// A hundred thousand jobs that are undone, split as the library asks for, and some that stay.
async fn o_131_a_bulk_of_a_transaction_that_is_rolled_back_leaves_nothing_behind(world: &World) {
    let queue = world.open().await;
    let mut tx = Tx::begin(world, &queue).await;
    enqueue_bulks(&queue, &mut tx, 10).await;
    tx.rollback().await;
    assert_eq!(stored(&queue).await, 0);

    let mut tx = Tx::begin(world, &queue).await;
    enqueue_bulks(&queue, &mut tx, 2).await;
    tx.commit().await;
    assert_eq!(stored(&queue).await, 20_000);
}

async fn enqueue_bulks(queue: &Queue, tx: &mut Tx, bulks: usize) {
    for _ in 0..bulks {
        let sent = queue.enqueue_all(many(10_000));
        let sent = match tx {
            Tx::Sqlite(tx) => sent.in_tx(tx).await,
            Tx::Postgres(tx) => sent.in_tx(tx).await,
        };
        assert_eq!(sent.expect("enqueued").len(), 10_000);
    }
}
