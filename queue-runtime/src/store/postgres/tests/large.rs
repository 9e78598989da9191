//! What goes beyond the bounds of one statement is not left out.

use super::world::{World, done, jobs};
use crate::job::{JobState, Settled};
use crate::store::{Admin as _, Store as _};

#[tokio::test]
async fn more_settlements_than_one_statement_takes_are_all_applied() {
    const COUNT: usize = 10_050;
    let Some(world) = World::new().await else {
        return;
    };
    world.store.insert(&jobs(COUNT)).await.expect("inserted");
    let mut claimed = Vec::new();
    while claimed.len() < COUNT {
        let more = world.claim(COUNT).await;
        assert!(!more.is_empty(), "{} of {COUNT} are due", claimed.len());
        claimed.extend(more);
    }
    let settlements: Vec<_> = claimed.iter().map(done).collect();

    let answers = world.store.settle(&settlements).await.expect("settled");

    let applied = Settled::Applied(JobState::Done);
    assert!(answers.iter().all(|answer| *answer == applied));
    let counts = world.store.counts().await.expect("counted");
    assert_eq!((counts.done, counts.total()), (COUNT as u64, COUNT as u64));
    world.end().await;
}
