//! Fix and replay: a stored job runs again with another payload, typed like its handler.

use queue_runtime::error::{EnqueueError, JobActionError};
use queue_runtime::job::DeadReason;
use queue_runtime::store::Edit;
use queue_runtime::{Data, Job, JobError, JobId, JobState, Queue, Refreshed, Worker, job};
use std::sync::Mutex;

use crate::world::World;

/// What the handlers were given, in order.
type Diary = Data<Mutex<Vec<String>>>;

#[job(name = "mails")]
async fn mails_formerly(address: &str) {
    let _ = address;
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Address {
    mailbox: String,
    host: String,
}

#[job(name = "mails", schema = 2)]
async fn mails(address: Address, #[inject] diary: Diary) {
    let text = format!("{}@{}", address.mailbox, address.host);
    diary.lock().expect("no panic while writing").push(text);
}

fn ada() -> Address {
    Address {
        mailbox: "ada".to_owned(),
        host: "example.org".to_owned(),
    }
}

#[tokio::test]
async fn an_undecodable_dead_letter_runs_with_the_payload_that_was_put_right() {
    let world = World::new();
    let sent = mails_formerly::enqueue(&world.queue, "ada@example.org");
    let id = sent.await.expect("enqueued").id;
    let diary = Diary::new(Mutex::default());
    let worker = || {
        let worker = Worker::builder(&world.queue);
        worker.job::<MailsJob>().shared(diary.clone())
    };
    world.run(worker(), &[id]).await;
    let dead = world.job(id).await;
    assert_eq!(dead.dead_reason, Some(DeadReason::Undecodable));

    let fixed = MailsJob { address: ada() };
    world.queue.replay_with(id, fixed).await.expect("replayed");

    let waiting = world.job(id).await;
    assert_eq!((waiting.state, waiting.attempts), (JobState::Queued, 0));
    assert_eq!(waiting.payload_schema, 2);
    assert_eq!(waiting.last_error, dead.last_error, "its history is kept");
    world.run(worker(), &[id]).await;
    assert_eq!(world.job(id).await.state, JobState::Done);
    assert_eq!(*diary.lock().expect("no panic"), ["ada@example.org"]);
    assert_eq!(world.queue.attempts(id).await.expect("it answers").len(), 2);
}

#[job]
async fn pays(order: u32) {
    let _ = order;
}

#[job(alias = "pays")]
async fn pays_invoice(order: u32) {
    let _ = order;
}

/// Enqueues a job and calls it off, so that it can be replayed.
async fn called_off<J: Job>(queue: &Queue, job: J) -> JobId {
    let id = queue.enqueue(job).await.expect("enqueued").id;
    queue.cancel(id).await.expect("it waited");
    id
}

#[tokio::test]
async fn an_edit_of_another_type_names_both_and_changes_nothing() {
    let world = World::new();
    let id = called_off(&world.queue, PaysJob { order: 7 }).await;
    let before = world.job(id).await;

    let refused = world
        .queue
        .replay_with(id, MailsJob { address: ada() })
        .await;

    let error = refused.expect_err("another type");
    assert!(
        matches!(&error, JobActionError::OtherType { stored, edited: "mails", .. }
            if stored.as_str() == "pays"),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(
        text.contains("\"pays\"") && text.contains("\"mails\""),
        "{text}"
    );
    assert_eq!(world.job(id).await, before);
}

#[tokio::test]
async fn a_job_under_an_older_name_of_its_type_is_edited() {
    let world = World::new();
    let id = called_off(&world.queue, PaysJob { order: 7 }).await;

    let edit = PaysInvoiceJob { order: 8 };
    world.queue.replay_with(id, edit).await.expect("an alias");

    let job = world.job(id).await;
    assert_eq!(
        (job.job_type.as_str(), job.payload.as_str()),
        ("pays", r#"{"order":8}"#)
    );
}

#[tokio::test]
async fn only_a_final_job_that_is_not_done_is_edited() {
    let world = World::new();
    let live = pays::enqueue(&world.queue, 7).await.expect("enqueued").id;
    let error = world.queue.replay_with(live, PaysJob { order: 8 }).await;
    let state = JobState::Queued;
    assert!(
        matches!(error, Err(JobActionError::NotReplayable { state: found, .. }) if found == state),
        "{error:?}"
    );
    let nobody = called_off(&World::new().queue, PaysJob { order: 7 }).await;
    let error = World::new()
        .queue
        .replay_with(nobody, PaysJob { order: 8 })
        .await;
    assert!(
        matches!(error, Err(JobActionError::NotFound(id)) if id == nobody),
        "{error:?}"
    );
}

#[job(dedupe = "{user}", idempotency = "{request}")]
async fn greets_user(user: String, request: String, text: serde_json::Value) {
    let _ = (user, request, text);
}

fn greeting(user: &str, request: &str, text: impl Into<serde_json::Value>) -> GreetsUserJob {
    GreetsUserJob {
        user: user.to_owned(),
        request: request.to_owned(),
        text: text.into(),
    }
}

#[tokio::test]
async fn an_edit_that_no_enqueue_would_store_changes_nothing() {
    let world = World::new();
    let id = called_off(&world.queue, greeting("ada", "r", "hi")).await;
    let before = world.job(id).await;
    let nested = (0..70).fold(serde_json::Value::Null, |inner, _| {
        serde_json::json!([inner])
    });
    let edits = [
        (greeting("ada", "r", "x".repeat(1024 * 1024)), "has 1048"),
        (
            greeting("ada", "r", "a\0b"),
            "$.text: text must not hold NUL",
        ),
        (greeting("ada", "r", nested), "at most 64 levels deep"),
        (
            greeting("", "r", "hi"),
            "dedupe key \"\": must not be empty",
        ),
        (
            greeting(&"a".repeat(2_000), "r", "hi"),
            "must be at most 1024 bytes",
        ),
    ];
    for (edit, words) in edits {
        let error = world.queue.replay_with(id, edit).await.expect_err(words);
        assert!(
            matches!(error, JobActionError::InvalidEdit { .. }),
            "{error:?}"
        );
        let text = error.to_string();
        assert!(text.contains(words), "{words}: {text}");
        assert!(text.contains(&id.to_string()), "{text}");
    }
    assert_eq!(world.job(id).await, before);
}

#[tokio::test]
async fn an_edit_elsewhere_leaves_a_key_that_was_given_by_hand() {
    let world = World::new();
    let sent = world.queue.enqueue(greeting("ada", "r", "hi"));
    let id = sent.dedupe_key("by hand").await.expect("enqueued").id;
    world.queue.cancel(id).await.expect("it waited");

    let edit = greeting("ada", "r", "hello");
    world.queue.replay_with(id, edit).await.expect("replayed");

    assert_eq!(world.job(id).await.dedupe_key.as_deref(), Some("by hand"));
}

#[tokio::test]
async fn an_edit_of_its_fields_moves_the_dedupe_key() {
    let world = World::new();
    let id = called_off(&world.queue, greeting("ada", "r1", "hi")).await;
    let others = [("ada", "r2"), ("bob", "r3")];
    let mut live = Vec::new();
    for (user, request) in others {
        let sent = world.queue.enqueue(greeting(user, request, "hi")).await;
        live.push(sent.expect("enqueued").id);
    }
    let before = world.job(id).await;

    let onto_bob = world
        .queue
        .replay_with(id, greeting("bob", "r1", "hi"))
        .await;
    let error = onto_bob.expect_err("bob has a live job");
    assert!(
        matches!(error, JobActionError::Duplicate { live: found, .. } if found == live[1]),
        "{error:?}"
    );
    assert_eq!(world.job(id).await, before);

    let eve = greeting("eve", "r1", "hi");
    world
        .queue
        .replay_with(id, eve)
        .await
        .expect("eve has none");
    let newcomer = world.queue.enqueue(greeting("eve", "r4", "hi")).await;
    let newcomer = newcomer.expect("answered");
    assert!(newcomer.duplicate && newcomer.id == id);
}

/// The key answers for the request as its caller made it.
#[tokio::test]
async fn an_edited_job_still_answers_for_the_request_that_it_was() {
    let world = World::new();
    let id = called_off(&world.queue, greeting("ada", "r", "hi")).await;

    let edit = greeting("bob", "another", "hello");
    world.queue.replay_with(id, edit).await.expect("replayed");

    assert_eq!(world.job(id).await.idempotency_key.as_deref(), Some("r"));
    let repeat = world.queue.enqueue(greeting("ada", "r", "hi")).await;
    let repeat = repeat.expect("a repeat of the request");
    assert!(repeat.duplicate && repeat.id == id);
    let other = world.queue.enqueue(greeting("ada", "r", "hello")).await;
    let refused = matches!(other, Err(EnqueueError::IdempotencyConflict { .. }));
    assert!(refused, "{other:?}");
}

#[job(dedupe = "user", dedupe_until = "started", retries = 0)]
async fn meets(user: u32, ok: bool) -> Result<(), JobError> {
    match ok {
        true => Ok(()),
        false => Err(JobError::permanent(format!("{user} did not come"))),
    }
}

#[tokio::test]
async fn a_key_that_was_given_up_is_not_taken_back_by_an_edit_elsewhere() {
    let world = World::new();
    let id = meets::enqueue(&world.queue, 7, false).await;
    let id = id.expect("enqueued").id;
    let worker = Worker::builder(&world.queue).job::<MeetsJob>();
    world.run(worker, &[id]).await;
    let live = meets::enqueue(&world.queue, 7, true).await;
    assert!(!live.expect("enqueued").duplicate);

    let edit = MeetsJob { user: 7, ok: true };
    world.queue.replay_with(id, edit).await.expect("no key");

    assert_eq!(world.job(id).await.dedupe_key, None);
}

#[job(cache = "user:{user}", version = "version")]
async fn shows_user(user: u32, version: u64) -> Refreshed<String> {
    Refreshed::at(version, format!("user {user}"))
}

#[tokio::test]
async fn an_edited_refresh_is_for_the_entry_and_version_of_its_new_payload() {
    let world = World::new();
    let id = called_off(
        &world.queue,
        ShowsUserJob {
            user: 7,
            version: 3,
        },
    )
    .await;

    let edit = ShowsUserJob {
        user: 8,
        version: 5,
    };
    world.queue.replay_with(id, edit).await.expect("replayed");

    let cache = world.job(id).await.cache.expect("it refreshes an entry");
    assert_eq!((cache.key.as_str(), cache.version), ("user:8", 5));
    let newest = world.queue.store().newest_version("user:8").await;
    assert_eq!(newest.expect("it answers"), Some(5));
    world
        .run(Worker::builder(&world.queue).job::<ShowsUserJob>(), &[id])
        .await;
    let seen = world
        .queue
        .cache()
        .get::<String>("user:8")
        .expect("published");
    assert_eq!((seen.version, seen.value.as_str()), (5, "user 8"));
}

#[tokio::test]
async fn a_tool_without_types_replaces_the_text() {
    let world = World::new();
    let id = called_off(&world.queue, greeting("ada", "r", "hi")).await;
    let text = r#"{"user":"bob","request":"r","text":"hello"}"#;

    let edit = Edit::new(text, 1).expect("an object");
    let store = world.queue.store();
    store
        .replay_with(id, false, &edit)
        .await
        .expect("it answers");

    let job = world.job(id).await;
    assert_eq!((job.state, job.payload.as_str()), (JobState::Queued, text));
    assert_eq!(job.dedupe_key.as_deref(), Some("ada"), "as it is stored");
}
