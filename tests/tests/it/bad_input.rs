//! Refused enqueues: each says what, which rule and how to fix it, and stores nothing.

use std::time::Duration;

use queue_runtime::{EnqueueError, Enqueued, Timestamp, job};
use serde::{Deserialize, Serialize};

use crate::world::World;

#[job]
async fn takes_text(text: String) {
    drop(text);
}

#[job]
async fn takes_lines(order: Order) {
    drop(order);
}

#[derive(Serialize, Deserialize)]
struct Order {
    lines: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    name: String,
    price: f64,
}

#[job]
async fn takes_nested(tree: serde_json::Value) {
    drop(tree);
}

async fn refused(world: &World, answer: Result<Enqueued, EnqueueError>, expected: &str) {
    let error = answer.expect_err(expected).to_string();
    assert!(
        error.starts_with(expected),
        "{error:?} does not start with {expected:?}"
    );
    assert_eq!(
        world
            .queue
            .counts()
            .await
            .expect("the store answers")
            .total(),
        0
    );
}

fn line(name: &str, price: f64) -> Line {
    Line {
        name: name.to_owned(),
        price,
    }
}

#[tokio::test]
async fn a_payload_says_the_place_that_breaks_the_rule() {
    let world = World::new();
    let order = |last| Order {
        lines: vec![line("a", 1.0), last],
    };
    let nul = takes_lines::enqueue(&world.queue, order(line("b\0", 1.0))).await;
    let at = "payload of job type \"takes_lines\" at $.order.lines[1]";
    refused(&world, nul, &format!("{at}.name: text must not hold NUL")).await;
    for price in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let answer = takes_lines::enqueue(&world.queue, order(line("b", price))).await;
        refused(
            &world,
            answer,
            &format!("{at}.price: {price} is not representable"),
        )
        .await;
    }
    let key = serde_json::json!({ "a": [{ "k\0": 1 }] });
    let answer = takes_nested::enqueue(&world.queue, key).await;
    refused(
        &world,
        answer,
        r#"payload of job type "takes_nested" at $.tree.a[0].k\u0000: a key"#,
    )
    .await;
}

#[tokio::test]
async fn a_payload_one_byte_too_large_says_its_size() {
    let world = World::new();
    let limit = 1024 * 1024;
    let around = r#"{"text":""}"#.len();
    let fits = "x".repeat(limit - around);
    let answer = takes_text::enqueue(&world.queue, format!("{fits}x")).await;
    let expected = "payload of job type \"takes_text\" has 1048577 bytes: at most 1048576";
    refused(&world, answer, expected).await;
    takes_text::enqueue(&world.queue, fits)
        .await
        .expect("exactly the limit fits");
}

#[tokio::test]
async fn a_payload_one_level_too_deep_is_refused() {
    let world = World::new();
    let nested =
        |levels: usize| (0..levels).fold(serde_json::json!(1), |v, _| serde_json::json!([v]));
    let answer = takes_nested::enqueue(&world.queue, nested(64)).await;
    refused(
        &world,
        answer,
        "payload of job type \"takes_nested\" at $.tree[0][0]",
    )
    .await;
    takes_nested::enqueue(&world.queue, nested(63))
        .await
        .expect("64 levels with the payload's own");
}

#[tokio::test]
async fn options_outside_their_bounds_say_them() {
    let world = World::new();
    let enqueue = || takes_text::enqueue(&world.queue, String::new());
    let years = |n: u64| Duration::from_hours(n * 366 * 24);
    refused(
        &world,
        enqueue().queue("").await,
        "queue name \"\": must be 1-63",
    )
    .await;
    refused(&world, enqueue().queue("q".repeat(64)).await, "queue name").await;
    refused(
        &world,
        enqueue().queue("a/b").await,
        "queue name \"a/b\": must be of",
    )
    .await;
    refused(
        &world,
        enqueue().queue("a\n").await,
        r#"queue name "a\n": must be of"#,
    )
    .await;
    refused(
        &world,
        enqueue().priority(101).await,
        "priority 101: must be from -100 to 100",
    )
    .await;
    refused(
        &world,
        enqueue().retries(1_001).await,
        "retries 1001: must be from 0 to 1000",
    )
    .await;
    refused(
        &world,
        enqueue().delay(years(11)).await,
        "delay 347846400s: must be",
    )
    .await;
    let far = Timestamp::from_millis(i64::MAX);
    refused(
        &world,
        enqueue().run_at(far).await,
        "run_at 9223372036854775807 ms: must be",
    )
    .await;
    let ancient = Timestamp::from_millis(-188_000_000_000_000);
    refused(&world, enqueue().run_at(ancient).await, "run_at -3988").await;
    refused(
        &world,
        enqueue().deadline(Duration::ZERO).await,
        "deadline 0ns: must be",
    )
    .await;
    refused(
        &world,
        enqueue().dedupe_key("").await,
        "dedupe key \"\": must not be empty",
    )
    .await;
    refused(
        &world,
        enqueue().dedupe_key("k\0").await,
        r#"dedupe key "k\0": must not hold NUL"#,
    )
    .await;
    let long = "k".repeat(1_025);
    refused(
        &world,
        enqueue().dedupe_key(long.as_str()).await,
        "dedupe key \"kkk",
    )
    .await;
    refused(
        &world,
        enqueue().idempotency_key("").await,
        "idempotency key \"\": must not",
    )
    .await;
    let keyed = || enqueue().idempotency_key("k");
    let zero = keyed().idempotency_for(Duration::ZERO).await;
    refused(&world, zero, "idempotency window 0ns: must be").await;
    let ages = keyed().idempotency_for(years(200)).await;
    refused(&world, ages, "idempotency window").await;
}

#[tokio::test]
async fn a_time_that_has_passed_means_at_once() {
    let world = World::new();
    let sent = takes_text::enqueue(&world.queue, String::new())
        .run_at(Timestamp::EPOCH)
        .await;
    let job = world.job(sent.expect("accepted").id).await;
    assert_eq!(job.run_at, job.created_at);
}

#[tokio::test]
async fn a_bulk_with_one_bad_item_stores_nothing_and_says_which() {
    let world = World::new();
    let jobs = (0..1_000).map(|n| {
        let text = if n == 417 {
            "\0".to_owned()
        } else {
            n.to_string()
        };
        TakesTextJob { text }
    });
    let error = world.queue.enqueue_all(jobs).await.expect_err("one is bad");
    assert!(
        error
            .to_string()
            .starts_with("item 417: payload of job type"),
        "{error}"
    );
    assert!(matches!(error, EnqueueError::Item { index: 417, .. }));
    assert_eq!(
        world
            .queue
            .counts()
            .await
            .expect("the store answers")
            .total(),
        0
    );
}

#[tokio::test]
async fn a_payload_thousands_of_levels_deep_is_refused_without_using_up_the_stack() {
    let world = World::new();
    let nested = (0..9_000).fold(serde_json::json!(1), |value, _| {
        serde_json::Value::Array(vec![value])
    });
    let answer = takes_nested::enqueue(&world.queue, nested).await;
    let expected = "payload of job type \"takes_nested\" at $.tree[0][0][0]";
    refused(&world, answer, expected).await;
}

#[derive(Serialize, Deserialize)]
struct Wrapped(Option<Box<Wrapped>>);

#[job]
async fn takes_wrapped(wrapped: Wrapped) {
    drop(wrapped);
}

#[tokio::test]
async fn wrappers_that_add_no_level_are_bounded_as_well() {
    let world = World::new();
    let wrapped = (0..5_000).fold(Wrapped(None), |inner, _| Wrapped(Some(Box::new(inner))));
    let answer = takes_wrapped::enqueue(&world.queue, wrapped).await;
    refused(
        &world,
        answer,
        "payload of job type \"takes_wrapped\" at $.wrapped: must be",
    )
    .await;
}
