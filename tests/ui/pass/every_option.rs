//! Every option in one attribute.

use queue_runtime::{Job, JobError, PayloadFields, Refreshed, job};

#[path = "../support/mod.rs"]
mod support;

fn is_temporary(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::TimedOut
}

fn from_version_one(from: u32, fields: &mut PayloadFields) -> Result<(), JobError> {
    assert_eq!(from, 1);
    fields.rename("product", "product_id")?;
    Ok(())
}

#[job(
    name = "catalog.refresh:v2",
    alias = "catalog.refresh",
    alias = "refresh",
    queue = "cache",
    retries = 1000,
    backoff = "exponential(500ms, max = 1h, jitter = 0%)",
    timeout = "1h30m",
    deadline = "2d",
    priority = -100,
    dedupe(product_id, shop.id),
    dedupe_until = "10m",
    on_duplicate = "replace",
    idempotency = "{product_id}/{version}",
    idempotency_for = "24h",
    cache = "product-{product_id}",
    version = "version",
    retry_if = is_temporary,
    schema = 2,
    upcast = from_version_one,
    payload = RefreshProduct,
    derive(Clone, Debug, PartialEq, serde::Serialize),
    crate = ::queue_runtime,
)]
async fn refresh_product(
    product_id: u64,
    shop: Shop,
    version: u64,
) -> Result<Refreshed<String>, std::io::Error> {
    Err(std::io::Error::other(format!("{product_id} {} {version}", shop.id)))
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Shop {
    id: String,
}

#[job(
    backoff = "fixed(5s, jitter = 10%)",
    timeout = "none",
    dedupe = "id",
    on_duplicate = "rerun",
)]
async fn other_values(id: u64) {
    let _ = id;
}

pub fn main() {
    assert_eq!(RefreshProduct::DEF.name(), "catalog.refresh:v2");
    let def = format!("{:?}", RefreshProduct::DEF);
    for set in [
        r#"aliases: ["catalog.refresh", "refresh"]"#,
        r#"queue: "cache""#,
        "priority: -100",
        "retries: 1000",
        "Exponential { base: 500ms, max: 3600s, jitter_percent: 0 }",
        "timeout: Some(5400s)",
        "deadline: Some(172800s)",
        "dedupe_until: Window(600s)",
        "on_duplicate: Replace",
        "idempotency_for: 86400s",
        "schema: 2",
        "upcast: Some(",
        "refreshes_cache: true",
        r#"Field { name: "product_id", type_text: "u64" }"#,
    ] {
        assert!(def.contains(set), "{set} in {def}");
    }
    let other = format!("{:?}", OtherValuesJob::DEF);
    for set in [
        "Fixed { delay: 5s, jitter_percent: 10 }",
        "timeout: None",
        "dedupe_until: Finished",
        "on_duplicate: Rerun",
        r#"queue: "default""#,
        "retries: 4",
        "upcast: None",
    ] {
        assert!(other.contains(set), "{set} in {other}");
    }

    let made = refresh_product::new(7, Shop { id: "eu".into() }, 3);
    assert_eq!(made.dedupe_key().as_deref(), Some("[\"7\",\"eu\"]"));
    assert_eq!(made.idempotency_key().as_deref(), Some("7/3"));
    assert_eq!(made.cache_key().as_deref(), Some("product-7"));
    assert_eq!(made.cache_version(), Some(3));
    assert_eq!(support::read::<RefreshProduct>(&support::stored(&made)), made);
    let older = support::stored(&made).replace("product_id", "product");
    assert_eq!(RefreshProduct::from_stored(&older, 1), Ok(made));
}
