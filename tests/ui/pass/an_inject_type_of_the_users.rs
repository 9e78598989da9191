//! `#[inject]` hands over any type that implements `Inject`; a plain type called `Data` is payload.

use queue_runtime::{Data as State, Job, JobContext, job};

#[path = "../support/mod.rs"]
mod support;

#[derive(serde::Serialize, serde::Deserialize)]
struct Data {
    text: String,
}

#[job]
async fn mixed(#[inject] state: State<u32>, data: Data, #[inject] ctx: JobContext) -> Result<String, String> {
    Ok(format!("{} {} {}", *state, data.text, ctx.attempt()))
}

fn main() {
    let made = mixed::new(Data { text: "a".into() });
    assert_eq!(support::stored(&made), serde_json::json!({ "data": { "text": "a" } }));
    assert_eq!(MixedJob::DEF.name(), "mixed");
    let called = mixed(State::new(1), made.data, JobContext::for_test());
    assert_eq!(support::block_on(called), Ok("1 a 1".to_owned()));
}
