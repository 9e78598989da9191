//! Jobs that take their worker down: each is tried as often as it may be, and no more.

use queue_runtime::job::{DeadReason, OutcomeKind};
use queue_runtime::{JobId, JobRecord, JobState, Queue};

use crate::child::{Child, runs_out_of_stack, takes_its_process_down};
use crate::world::{World, job};

on! { sqlite:
    real {
        o_029_a_job_of_one_attempt_that_kills_its_worker_is_not_tried_again
        o_030_a_job_that_runs_out_of_stack_is_not_tried_for_ever
    }
}

on! { postgres:
    real {
        o_029_a_job_of_one_attempt_that_kills_its_worker_is_not_tried_again
        o_030_a_job_that_runs_out_of_stack_is_not_tried_for_ever
    }
}

/// Starts workers one after another, until one of them lives to see the end of the job.
async fn deaths_of_its_workers(world: &World) -> u32 {
    let mut deaths = 0;
    while !Child::start("dies", world).ended().await.success() {
        deaths += 1;
        assert!(deaths < 10, "it is tried for ever");
    }
    deaths
}

/// Every attempt is in the history as lost.
async fn ended_as_lost(queue: &Queue, id: JobId, attempts: u32) -> JobRecord {
    let ended = job(queue, id).await;
    let standing = (ended.state, ended.attempts, ended.crashes);
    assert_eq!(standing, (JobState::DeadLetter, attempts, attempts));
    let history = queue.attempts(id).await.expect("it answers");
    let outcomes: Vec<_> = history.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(outcomes, vec![Some(OutcomeKind::Lost); attempts as usize]);
    ended
}

async fn o_029_a_job_of_one_attempt_that_kills_its_worker_is_not_tried_again(world: &World) {
    let queue = world.open().await;
    let sent = takes_its_process_down::enqueue(&queue).retries(0).await;
    let id = sent.expect("enqueued").id;

    assert_eq!(deaths_of_its_workers(world).await, 1);

    let ended = ended_as_lost(&queue, id, 1).await;
    assert_eq!(ended.dead_reason, Some(DeadReason::AttemptsExhausted));
}

async fn o_030_a_job_that_runs_out_of_stack_is_not_tried_for_ever(world: &World) {
    let queue = world.open().await;
    let sent = runs_out_of_stack::enqueue(&queue).await;
    let id = sent.expect("enqueued").id;

    assert_eq!(deaths_of_its_workers(world).await, 3);

    let ended = ended_as_lost(&queue, id, 3).await;
    assert_eq!(ended.dead_reason, Some(DeadReason::Crashed));
    let worker = &queue.attempts(id).await.expect("it answers")[0].worker;
    assert!(worker.as_str().starts_with("worker@"), "{worker} is named");
}
