//! Numbers that grow with every attempt or claim, where 32 or 64 bits could run out.

use std::time::Duration;

use queue_runtime::job::{Backoff, LeaseToken};
use queue_runtime::rules::backoff;
use queue_runtime::{JobState, Queue, Worker, job};
use sqlx::{AssertSqlSafe, Executor};

use crate::world::{World, claim_as, finals, job};

on! { sqlite:
    real { o_121_lease_tokens_do_not_end_at_32_bits }
}

on! { postgres:
    real { o_121_lease_tokens_do_not_end_at_32_bits }
}

#[test]
fn o_120_no_number_of_attempts_makes_a_pause_shorter() {
    let max = Duration::from_hours(30 * 24);
    for base in [Duration::from_millis(1), Duration::from_hours(24)] {
        let exponential = Backoff::Exponential {
            base,
            max,
            jitter_percent: 0,
        };
        let mut before = base;
        for attempt in (1..2_000).chain([u32::MAX - 1, u32::MAX]) {
            let pause = backoff::delay(exponential, attempt, u64::MAX);
            assert!(
                pause >= before && pause <= max,
                "attempt {attempt}: {pause:?}"
            );
            before = pause;
        }
        assert_eq!(before, max);
    }
}

#[job(dedupe = "n", retries = 0)]
async fn is_numbered(n: u64) {
    let _ = n;
}

/// Counts lease tokens on from a number, as after so many claims; there must have been one.
async fn tokens_go_on_from(world: &World, queue: &Queue, token: i64) {
    if let (Some(pool), Some(schema)) = (world.pool().await, world.schema()) {
        let next = format!("select setval('{schema}.lease_tokens', {token})");
        let moved = pool.execute(AssertSqlSafe(next)).await;
        moved.expect("the sequence is there");
        return pool.close().await;
    }
    let mut tx = queue.begin().await.expect("a transaction");
    let next = format!("update sqlite_sequence set seq = {token} where name like '%attempts'");
    let moved = tx.execute(AssertSqlSafe(next)).await;
    assert_eq!(moved.expect("the table is there").rows_affected(), 1);
    tx.commit().await.expect("committed");
}

/// Enqueues that are answered by an existing job use no token up; ids are no counters.
async fn o_121_lease_tokens_do_not_end_at_32_bits(world: &World) {
    let lease = Duration::from_mins(1);
    let queue = world.open().await;
    let take_one = async || {
        let taken = claim_as(&queue, "by-hand@1", "is_numbered", lease).await;
        assert_eq!(taken.len(), 1);
        taken[0].token
    };
    is_numbered::enqueue(&queue, 0).await.expect("enqueued");
    let first = take_one().await;
    for _ in 0..100 {
        let again = is_numbered::enqueue(&queue, 0).await.expect("answered");
        assert!(again.duplicate);
    }
    is_numbered::enqueue(&queue, 1).await.expect("enqueued");
    assert_eq!(take_one().await, LeaseToken::new(first.get() + 1));

    for bits in [31, 32] {
        let edge = 1 << bits;
        tokens_go_on_from(world, &queue, edge - 3).await;
        let ids: Vec<_> = (0..6)
            .map(|n| IsNumberedJob { n: edge as u64 + n })
            .collect();
        let sent = queue.enqueue_all(ids).await.expect("enqueued");
        let worker = Worker::builder(&queue).job::<IsNumberedJob>();
        let ended = worker.run_until(finals(&[&queue], sent.len())).await;
        ended.expect("ends well");
        let mut tokens = Vec::new();
        for sent in sent {
            let job = job(&queue, sent.expect("no conflict").id).await;
            assert_eq!((job.state, job.attempts), (JobState::Done, 1));
            tokens.push(job.lock_token.expect("it was claimed").get());
        }
        tokens.sort_unstable();
        assert_eq!(tokens, (edge - 2..edge + 4).collect::<Vec<i64>>());
    }
}
