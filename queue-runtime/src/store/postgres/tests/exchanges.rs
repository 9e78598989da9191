//! What a claim knows from the one before never hides what its own exchange has just sent back.

use std::time::Duration;

use super::world::{World, done, ids, job, request};
use crate::job::{Change, NewJob, OutcomeKind, Settlement};
use crate::store::Store;

#[tokio::test]
async fn an_exchange_claims_the_urgent_job_that_it_has_just_sent_back() {
    let Some(world) = World::new().await else {
        return;
    };
    let urgent = NewJob {
        priority: 100,
        ..job()
    };
    world.add(&urgent).await;
    let first = world.claim(1).await.remove(0);
    for new in [&job(), &job()] {
        world.add(new).await;
    }
    // It is filled, so the next claim goes on from it, in the one lane that has jobs by now.
    assert_eq!(world.claim(1).await.len(), 1);

    let again = Settlement {
        change: Change::Queued {
            delay: Duration::ZERO,
        },
        outcome: OutcomeKind::Retry,
        ..done(&first)
    };
    let (_, claimed) = world
        .store
        .exchange(&[again], &request(1))
        .await
        .expect("exchanged");
    assert_eq!(ids(&claimed), [urgent.id]);
    world.end().await;
}
