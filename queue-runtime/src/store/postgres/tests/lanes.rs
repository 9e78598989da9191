//! What a claim remembers for the next one hides nobody.

use std::time::Duration;

use super::world::{World, ids, jobs, request};
use crate::job::{Due, QueueName};
use crate::store::{ClaimRequest, Store};

#[tokio::test]
async fn a_job_that_becomes_due_between_two_claims_is_overtaken_by_nobody() {
    let Some(world) = World::new().await else {
        return;
    };
    let mut batch = jobs(4);
    let first = QueueName::new("first").expect("a name");
    batch[3].queue = first.clone();
    batch[3].due = Due::After(Duration::from_secs(1));
    world.store.insert(&batch).await.expect("stored");
    let request = ClaimRequest {
        queues: vec![first, QueueName::default_queue()],
        ..request(1)
    };
    let claim = async || {
        let claimed = world.store.claim(&request).await;
        ids(&claimed.expect("the server answers"))
    };
    assert_eq!(claim().await, [batch[0].id], "the other is not due");

    world.hand.advance(Duration::from_secs(1));

    assert_eq!(claim().await, [batch[3].id], "its queue comes first");
    assert_eq!(claim().await, [batch[1].id]);
    world.end().await;
}
