//! A result that the database refuses for good takes no neighbours along, and ends no worker.

use std::time::Duration;

use queue_runtime::job::JobEvent;
use queue_runtime::{Data, JobId, JobState, Queue, Worker, job};
use sqlx::{AssertSqlSafe, Executor, PgPool};

use crate::postgres_server::soon;
use crate::world::Server;

/// Ends once as many attempts run as are to end together.
#[job]
async fn ends_together(n: u32, #[inject] all_run: Data<tokio::sync::Barrier>) {
    let _ = n;
    all_run.wait().await;
}

async fn run(pool: &PgPool, sql: String) {
    pool.execute(AssertSqlSafe(sql))
        .await
        .expect("the statement is valid");
}

async fn state_of(queue: &Queue, id: JobId) -> (JobState, u32) {
    let job = queue.job(id).await.expect("it answers").expect("kept");
    (job.state, job.attempts)
}

/// The application refers to a job's row, which therefore cannot leave its table.
#[tokio::test]
async fn a_job_that_cannot_be_ended_takes_no_neighbours_along() {
    const JOBS: u32 = 5;
    let Some(server) = Server::new() else { return };
    let (queue, pool) = (server.open().await, server.pool().await);
    let mut sent = Vec::new();
    for n in 0..JOBS {
        sent.push(
            ends_together::enqueue(&queue, n)
                .await
                .expect("enqueued")
                .id,
        );
    }
    let schema = server.schema();
    let tie = format!(
        "create table {schema}.orders (job uuid references {schema}.jobs (id));
         insert into {schema}.orders values ('{}')",
        sent[2]
    );
    run(&pool, tie).await;
    let mut events = queue.events();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = Worker::builder(&queue)
        .job::<EndsTogetherJob>()
        .data(tokio::sync::Barrier::new(JOBS as usize))
        .rescue_every(Duration::from_secs(1));
    let scenario = async {
        let mut left = JOBS - 1;
        while left > 0 {
            let event = soon("an end", events.recv()).await.expect("it lives");
            left -= u32::from(matches!(
                event,
                JobEvent::Settled {
                    state: JobState::Done,
                    ..
                }
            ));
        }
        // Its lease runs out beside that of a job whose worker is gone. The rescue may not end it
        // either, and takes the other over all the same.
        let later = ends_together::enqueue(&queue, JOBS).delay(Duration::from_hours(1));
        let lost = later.await.expect("enqueued").id;
        let leases_end = format!(
            "update {schema}.jobs
             set locked_until = now() - interval '1 minute', crashes = 2
             where id = '{}';
             update {schema}.jobs
             set status = 'processing', locked_until = now() - interval '1 second',
               locked_by = 'gone@1', lock_token = nextval('{schema}.lease_tokens'),
               started_at = now(), attempts = 1
             where id = '{lost}'",
            sent[2]
        );
        run(&pool, leases_end).await;
        loop {
            let event = soon("a rescue", events.recv()).await.expect("it lives");
            if matches!(event, JobEvent::Rescued { id, .. } if id == lost) {
                break;
            }
        }
        stop.send(()).expect("the worker runs");
    };
    let until = async {
        let _ = stopped.await;
    };
    let (ended, ()) = tokio::join!(worker.run_until(until), scenario);

    ended.expect("no loop of it has ended");
    for (n, id) in sent.iter().enumerate() {
        let wanted = if n == 2 {
            JobState::Processing
        } else {
            JobState::Done
        };
        assert_eq!(state_of(&queue, *id).await, (wanted, 1), "{n}");
    }
    run(&pool, format!("drop table {schema}.orders")).await;
    queue.close().await;
    server.end().await;
}

/// A hundred are as many as a rescue takes at once.
#[tokio::test]
async fn a_crowd_of_jobs_that_cannot_be_ended_hides_no_lost_job_from_the_rescue() {
    const TIED: u32 = 100;
    let Some(server) = Server::new() else { return };
    let (queue, pool) = (server.open().await, server.pool().await);
    let all = (0..=TIED).map(|n| EndsTogetherJob { n });
    queue.enqueue_all(all).await.expect("enqueued");
    let schema = server.schema();
    // All leases have ended; the one that can be ended has ended last.
    let leases_end = format!(
        "update {schema}.jobs
         set status = 'processing', locked_until = now() - interval '1 minute', crashes = 2,
           locked_by = 'gone@1', lock_token = nextval('{schema}.lease_tokens'),
           started_at = now(), attempts = 1;
         update {schema}.jobs
         set locked_until = now() - interval '1 second', crashes = 0
         where payload like '%{TIED}%';
         create table {schema}.orders (job uuid references {schema}.jobs (id));
         insert into {schema}.orders
         select id from {schema}.jobs where crashes = 2"
    );
    run(&pool, leases_end).await;
    let mut events = queue.events();
    let worker = Worker::builder(&queue)
        .job::<EndsTogetherJob>()
        .data(tokio::sync::Barrier::new(1));
    let done = async {
        loop {
            let event = soon("the rescue", events.recv()).await.expect("it lives");
            if matches!(event, JobEvent::Rescued { .. }) {
                break;
            }
        }
    };
    worker
        .run_until(done)
        .await
        .expect("no loop of it has ended");

    let counts = queue.counts().await.expect("it answers");
    assert_eq!(counts.processing, u64::from(TIED), "{counts:?}");
    run(&pool, format!("drop table {schema}.orders")).await;
    queue.close().await;
    server.end().await;
}
