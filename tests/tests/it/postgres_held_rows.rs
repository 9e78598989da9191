//! A row that somebody else's transaction holds delays its own result; the worker goes on.

use std::time::Duration;

use queue_runtime::job::JobEvent;
use queue_runtime::store::postgres::PostgresOptions;
use queue_runtime::{Data, JobState, Queue, Worker, job};
use sqlx::{AssertSqlSafe, Executor, PgConnection};
use tokio::sync::{Mutex, mpsc};

use crate::postgres_server::soon;
use crate::world::Server;

/// Where a handler says which job runs, and waits for its leave to end.
struct Gate {
    begun: mpsc::UnboundedSender<u32>,
    leave: Mutex<mpsc::UnboundedReceiver<()>>,
}

#[job]
async fn passes(n: u32, #[inject] gate: Data<Gate>) {
    // The test has seen enough if nobody listens.
    let _ = gate.begun.send(n);
    if n == 0 {
        let _ = gate.leave.lock().await.recv().await;
    }
}

/// A queue on which nobody waits for a lock: who does so runs into the statement timeout.
async fn patient(server: &Server) -> Queue {
    let options = PostgresOptions::new(server.url())
        .expect("the address is valid")
        .migrate(true)
        .lock_timeout(Duration::from_hours(1));
    Queue::open_with(options).await.expect("opened")
}

async fn run(stranger: &mut PgConnection, sql: &str) {
    let done = stranger.execute(AssertSqlSafe(sql.to_owned())).await;
    done.expect("the statement is valid");
}

/// One attempt at a time, so that a slot which is not given back, or a claim that is lost with a
/// result, stops everything. The result is kept for the shutdown, too.
#[tokio::test]
async fn a_worker_goes_on_while_a_stranger_locks_the_row_of_an_ended_job() {
    let Some(server) = Server::new() else { return };
    let (queue, pool) = (patient(&server).await, server.pool().await);
    let mut events = queue.events();
    let (begun, mut has_begun) = mpsc::unbounded_channel();
    let (let_go, leave) = mpsc::unbounded_channel();
    let leave = Mutex::new(leave);
    let worker = Worker::builder(&queue)
        .job::<PassesJob>()
        .data(Gate { begun, leave })
        .concurrency(1);
    let held = passes::enqueue(&queue, 0).await.expect("enqueued");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let scenario = async {
        assert_eq!(soon("the first", has_begun.recv()).await, Some(0));
        let mut stranger = pool.acquire().await.expect("a connection");
        let lock = format!(
            "begin; select 1 from {}.jobs where id = '{}' for update",
            server.schema(),
            held.id
        );
        run(&mut stranger, &lock).await;
        let_go.send(()).expect("the handler waits");

        for n in 1..=20 {
            let next = passes::enqueue(&queue, n).await.expect("enqueued");
            soon("its neighbour", settled(&mut events, next.id)).await;
        }
        let job = queue.job(held.id).await.expect("it answers").expect("kept");
        assert_eq!(job.state, JobState::Processing);

        stop.send(()).expect("the worker runs");
        run(&mut stranger, "rollback").await;
        soon("the first", settled(&mut events, held.id)).await;
    };
    let until = async {
        let _ = stopped.await;
    };
    let (ended, ()) = tokio::join!(worker.run_until(until), scenario);
    ended.expect("ends well");

    let job = queue.job(held.id).await.expect("it answers").expect("kept");
    assert_eq!((job.state, job.attempts), (JobState::Done, 1));
    queue.close().await;
    server.end().await;
}

/// Waits until a job has ended well.
async fn settled(
    events: &mut tokio::sync::broadcast::Receiver<JobEvent>,
    wanted: queue_runtime::JobId,
) {
    loop {
        if let JobEvent::Settled { id, state, .. } = events.recv().await.expect("it lives")
            && id == wanted
        {
            return assert_eq!(state, JobState::Done);
        }
    }
}
