//! Enqueues of one key at the same moment: one job, and nobody is told what is not so.

use queue_runtime::{Enqueued, JobId, Queue, job};

use crate::world::{World, together};

on! { memory:
    real { o_032_many_clients_with_the_same_keys_make_one_job_of_each }
}

on! { sqlite:
    real {
        o_031_a_key_of_a_transaction_that_is_rolled_back_goes_to_another_enqueue
        o_032_many_clients_with_the_same_keys_make_one_job_of_each
    }
}

on! { postgres:
    real {
        o_031_a_key_of_a_transaction_that_is_rolled_back_goes_to_another_enqueue
        o_032_many_clients_with_the_same_keys_make_one_job_of_each
    }
}

#[job(dedupe = "user")]
async fn greets(user: u64) {
    let _ = user;
}

/// A transaction of the application's on the queue's database.
pub(crate) enum Tx {
    Sqlite(sqlx::Transaction<'static, sqlx::Sqlite>),
    Postgres(sqlx::Transaction<'static, sqlx::Postgres>),
}

impl Tx {
    pub(crate) async fn begin(world: &World, queue: &Queue) -> Self {
        match world.pool().await {
            None => Self::Sqlite(queue.begin().await.expect("a transaction")),
            Some(pool) => Self::Postgres(pool.begin().await.expect("a transaction")),
        }
    }

    async fn greet(&mut self, queue: &Queue, user: u64) -> Enqueued {
        let sent = greets::enqueue(queue, user);
        let sent = match self {
            Self::Sqlite(tx) => sent.in_tx(tx).await,
            Self::Postgres(tx) => sent.in_tx(tx).await,
        };
        sent.expect("enqueued")
    }

    pub(crate) async fn rollback(self) {
        match self {
            Self::Sqlite(tx) => tx.rollback().await,
            Self::Postgres(tx) => tx.rollback().await,
        }
        .expect("rolled back");
    }

    pub(crate) async fn commit(self) {
        match self {
            Self::Sqlite(tx) => tx.commit().await,
            Self::Postgres(tx) => tx.commit().await,
        }
        .expect("committed");
    }
}

/// One transaction that takes the key and rolls back, four enqueues that meet it meanwhile; five
/// times.
async fn o_031_a_key_of_a_transaction_that_is_rolled_back_goes_to_another_enqueue(world: &World) {
    let queue = world.open().await;
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(world.open().await);
    }
    for user in 0..5 {
        let mut tx = Tx::begin(world, &queue).await;
        let undone = tx.greet(&queue, user).await;
        let meeting = others.clone().into_iter().map(|other| {
            let meets = async move { greets::enqueue(&other, user).await.expect("answered") };
            tokio::spawn(meets)
        });
        let meeting: Vec<_> = meeting.collect();
        world.locks_are_waited_for(4).await;
        assert!(meeting.iter().all(|meets| !meets.is_finished()));

        tx.rollback().await;

        let mut sent = Vec::new();
        for meets in meeting {
            sent.push(meets.await.expect("no panic"));
        }
        let id = one_is_new_and_answers_for_the_others(&sent);
        assert_ne!(id, undone.id);
        let stored = queue.job(undone.id).await.expect("it answers");
        assert_eq!(stored, None);
        assert_eq!(queue.counts().await.expect("it answers").total(), user + 1);
    }
}

fn one_is_new_and_answers_for_the_others(sent: &[Enqueued]) -> JobId {
    let new: Vec<JobId> = sent
        .iter()
        .filter(|sent| !sent.duplicate)
        .map(|sent| sent.id)
        .collect();
    let [id] = new[..] else {
        panic!("exactly one is new: {sent:?}")
    };
    assert!(sent.iter().all(|sent| sent.id == id), "{sent:?}");
    id
}

/// Sixteen clients over four handles, forty keys.
async fn o_032_many_clients_with_the_same_keys_make_one_job_of_each(world: &World) {
    let mut queues = Vec::new();
    for _ in 0..4 {
        queues.push(world.open().await);
    }
    for user in 0..40 {
        let sent = together(16, |client| {
            let queue = queues[client % 4].clone();
            async move { greets::enqueue(&queue, user).await.expect("answered") }
        })
        .await;
        one_is_new_and_answers_for_the_others(&sent);
    }
    assert_eq!(queues[0].counts().await.expect("it answers").total(), 40);
}
