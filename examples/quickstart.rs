//! A job from its declaration to its end, on SQLite, with no server: a success, a retry, a
//! duplicate and a dead letter. The same on Postgres with `-- --database-url postgres://…`.
//
// run:
// run(postgres): -- --database-url {postgres}

use std::sync::atomic::{AtomicU32, Ordering};

use queue_runtime::{Data, JobError, JobId, JobState, Queue, Worker, job};

/// Stands for a mail service whose first connection breaks.
#[derive(Default)]
struct Mailer {
    connections: AtomicU32,
}

impl Mailer {
    async fn send(&self, email: &str) -> std::io::Result<()> {
        match self.connections.fetch_add(1, Ordering::Relaxed) {
            0 => Err(std::io::Error::other(format!(
                "connection reset while mailing {email}"
            ))),
            _ => Ok(()),
        }
    }
}

// Five retries make six attempts: the first and five more. `dedupe` lets at most one unfinished
// job exist per user. A plain `?` means: try again later.
#[job(retries = 5, timeout = "60s", dedupe = "user_id")]
async fn send_welcome(user_id: i64, email: &str, mailer: Data<Mailer>) -> Result<(), JobError> {
    println!("  mailing user {user_id}");
    mailer.send(email).await?;
    Ok(())
}

// What trying again cannot help is said outright, and becomes a dead letter at once.
#[job]
async fn charge_card(order: u32) -> Result<(), JobError> {
    Err(JobError::permanent(format!(
        "order {order}: the card was reported stolen"
    )))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // The queue is a file; a real program names a lasting one. Or it is on a Postgres server: what
    // a job means is the same.
    let folder = tempfile::tempdir()?;
    let file = format!("sqlite://{}/jobs.db", folder.path().display());
    let url = std::env::args()
        .skip_while(|argument| argument != "--database-url")
        .nth(1);
    let queue = Queue::open(url.unwrap_or(file)).migrate().await?;

    // Enqueueing is typed like the function, without what is injected.
    let ada = send_welcome::enqueue(&queue, 1, "ada@example.org").await?;
    let bob = send_welcome::enqueue(&queue, 2, "bob@example.org").await?;
    let again = send_welcome::enqueue(&queue, 1, "ada@example.org").await?;
    let order = charge_card::enqueue(&queue, 77).await?;
    assert!(again.duplicate && again.id == ada.id);

    // The worker finds its jobs by itself and is given what they share. A service would `run()`.
    let worker = Worker::builder(&queue).data(Mailer::default());
    worker.run_until_empty().await?;

    let jobs = [
        ("welcome 1", ada.id),
        ("welcome 2", bob.id),
        ("charge 77", order.id),
    ];
    println!(
        "\n{:<10} {:<12} {:>8}  last error",
        "job", "state", "attempts"
    );
    for (name, id) in jobs {
        let job = queue.job(id).await?.expect("it was enqueued above");
        let error = job.last_error.unwrap_or_default();
        println!(
            "{name:<10} {:<12} {:>5}/{:<2}  {error}",
            job.state, job.attempts, job.max_attempts
        );
    }
    println!(
        "welcome 1 was asked for twice; both answers were job {}",
        again.id
    );
    summary(&queue, jobs.map(|(_, id)| id), again.id == ada.id).await
}

/// The last line is for programs.
async fn summary(queue: &Queue, jobs: [JobId; 3], duplicate_answered: bool) -> anyhow::Result<()> {
    let (mut done, mut dead) = (0, 0);
    for id in jobs {
        let job = queue.job(id).await?.expect("it was enqueued above");
        done += u32::from(job.state == JobState::Done);
        dead += u32::from(job.state == JobState::DeadLetter);
    }
    println!(
        r#"{{"jobs":{},"done":{done},"dead_letter":{dead},"duplicate_answered":{duplicate_answered}}}"#,
        jobs.len()
    );
    Ok(())
}
