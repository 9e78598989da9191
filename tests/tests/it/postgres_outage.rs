//! A Postgres server that stops, is killed and comes back: workers wait for it and go on.

use std::time::{Duration, Instant};

use queue_runtime::{Data, EnqueueError, Queue, Worker, job};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use xtask::servers::Postgres;

use crate::postgres_server::{own_server, soon, with_server};

/// Where a handler says which job has run.
type Ran = Data<mpsc::UnboundedSender<u32>>;

#[job]
async fn counts(n: u32, #[inject] ran: Ran) {
    // The test has seen enough if nobody listens.
    let _ = ran.send(n);
}

/// Enqueues as often as it takes while the server is away.
async fn enqueue(queue: &Queue, n: u32) {
    while let Err(error) = counts::enqueue(queue, n).await {
        let is_passing = matches!(&error, EnqueueError::Store(error) if error.is_transient());
        assert!(is_passing, "{error}");
        tokio::task::yield_now().await;
    }
}

/// O-068: nobody has to start a worker again because its server was.
#[tokio::test]
async fn o_068_a_worker_outlives_every_restart_of_its_server() {
    let Some(server) = own_server().await else {
        return;
    };
    let queue = Queue::open(server.url()).migrate().await.expect("opened");
    let other = Queue::open(server.url()).await.expect("opened");
    let (ran, mut has_run) = mpsc::unbounded_channel::<u32>();
    // The poll is so long that jobs of another process have to be heard of.
    let worker = Worker::builder(&queue)
        .job::<CountsJob>()
        .data(ran)
        .poll(Duration::from_mins(10))
        .lease(Duration::from_secs(3))
        .heartbeat(Duration::from_secs(1))
        .rescue_every(Duration::from_millis(300));
    let (count, mut counted) = watch::channel(0);
    let jobs = async {
        for n in 1.. {
            enqueue(&other, n).await;
            while has_run.recv().await.expect("the worker lives") != n {}
            count.send_replace(n);
        }
    };
    let restarts = async {
        let mut server = server;
        let ways: [fn(&mut Postgres) -> anyhow::Result<()>; 3] =
            [Postgres::stop, Postgres::stop_immediate, Postgres::kill];
        for way in ways.into_iter().cycle().take(9) {
            let seen = *counted.borrow();
            let more = counted.wait_for(|count| *count > seen + 10);
            soon("ten more jobs", more).await.expect("jobs go on");
            // At whatever moment of a job this is.
            server = with_server(server, way).await;
            server = with_server(server, Postgres::restart).await;
        }
        let seen = *counted.borrow();
        let more = counted.wait_for(|count| *count > seen + 10);
        soon("ten more jobs", more).await.expect("jobs go on");
        server
    };
    // Kept until the worker has ended.
    let mut kept = None;
    let all = async {
        tokio::select! {
            () = jobs => {}
            server = restarts => kept = Some(server),
        }
    };
    worker.run_until(all).await.expect("ends well");
    other.close().await;
    queue.close().await;
}

/// Time on a processor that this thread has used, with it all tasks of the test.
fn processor_time() -> Option<Duration> {
    let used = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = used.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// O-070: during an outage a worker is not ready and leaves the server and the processor alone.
#[tokio::test]
async fn o_070_a_worker_without_its_server_is_not_ready_waits_and_resumes() {
    let Some(server) = own_server().await else {
        return;
    };
    let queue = Queue::open(server.url()).migrate().await.expect("opened");
    let other = Queue::open(server.url()).await.expect("opened");
    let (ran, mut has_run) = mpsc::unbounded_channel::<u32>();
    let worker = Worker::builder(&queue)
        .job::<CountsJob>()
        .data(ran)
        .poll(Duration::from_millis(100))
        .build()
        .expect("it fits");
    let mut ready = worker.ready();
    let outage = async {
        soon("readiness", ready.wait_for(|ready| *ready))
            .await
            .expect("it lives");
        let server = with_server(server, Postgres::stop).await;
        soon("the loss", ready.wait_for(|ready| !ready))
            .await
            .expect("it lives");

        // Whoever calls meanwhile is turned away at once, so only our own pauses hold us back.
        let door = TcpListener::bind(("127.0.0.1", server.port())).await;
        let door = door.expect("the port is free");
        let (begun, used) = (Instant::now(), processor_time());
        for _ in 0..15 {
            drop(soon("a call", door.accept()).await.expect("a call"));
        }
        let (took, used) = (begun.elapsed(), processor_time().zip(used));
        assert!(took > Duration::from_millis(500), "15 calls in {took:?}");
        if let Some((after, before)) = used {
            let used = after - before;
            assert!(used < took / 10, "{used:?} on a processor in {took:?}");
        }
        assert!(!*ready.borrow());
        drop(door);

        let server = with_server(server, Postgres::restart).await;
        soon("readiness", ready.wait_for(|ready| *ready))
            .await
            .expect("it lives");
        enqueue(&other, 7).await;
        let resumed = soon("the job", has_run.recv()).await;
        assert_eq!(resumed, Some(7));
        server
    };
    let mut kept = None;
    let until = async { kept = Some(outage.await) };
    worker.run_until(until).await.expect("ends well");
    other.close().await;
    queue.close().await;
}
