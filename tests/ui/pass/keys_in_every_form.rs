//! Lists in a string, lists of tokens, and templates give the keys that were meant.

use queue_runtime::{Job, job};

#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    id: u64,
    lines: (String, u32),
}

fn order() -> Order {
    Order { id: 9, lines: ("a,b".to_owned(), 2) }
}

#[job(dedupe = "user_id, order.id, order.lines.0")]
async fn text_list(user_id: u64, order: Order) {
    drop((user_id, order));
}

#[job(dedupe(user_id, order.id, order.lines.0))]
async fn token_list(user_id: u64, order: Order) {
    drop((user_id, order));
}

#[job(dedupe = "{{{user_id:>4}}} of {email} and {user_id}")]
async fn template(user_id: u64, email: &str) {
    let _ = (user_id, email);
}

#[job(dedupe = "left, right")]
async fn pair(left: &str, right: &str) {
    let _ = (left, right);
}

pub fn main() {
    let expected = Some("[\"7\",\"9\",\"a,b\"]");
    assert_eq!(text_list::new(7, order()).dedupe_key().as_deref(), expected);
    assert_eq!(token_list::new(7, order()).dedupe_key().as_deref(), expected);
    assert_eq!(template::new(7, "a").dedupe_key().as_deref(), Some("{   7} of a and 7"));
    assert_ne!(pair::new("a", "b,c").dedupe_key(), pair::new("a,b", "c").dedupe_key());
    assert_eq!(pair::new("a", "b").idempotency_key(), None);
}
