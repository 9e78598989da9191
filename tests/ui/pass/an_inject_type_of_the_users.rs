//! `#[inject]` hands over any type that implements `Inject`; a plain type called `Data` is payload.

use queue_runtime::private::RunCx;
use queue_runtime::{Data as State, Inject, Job, JobContext, JobError, job};

#[path = "../support/mod.rs"]
mod support;

#[derive(serde::Serialize, serde::Deserialize)]
struct Data {
    text: String,
}

struct Tenant(String);

impl Inject for Tenant {
    fn inject(_: &RunCx) -> Result<Self, JobError> {
        Ok(Self("acme".to_owned()))
    }
}

#[job]
async fn mixed(
    #[inject] state: State<u32>,
    data: Data,
    #[inject] tenant: Tenant,
    #[inject] ctx: JobContext,
) -> Result<String, String> {
    Ok(format!("{} {} {} {}", *state, data.text, tenant.0, ctx.attempt()))
}

pub fn main() {
    let made = mixed::new(Data { text: "a".into() });
    assert_eq!(support::stored(&made), r#"{"data":{"text":"a"}}"#);
    let def = format!("{:?}", MixedJob::DEF);
    for argument in ["state", "tenant", "ctx"] {
        assert!(def.contains(&format!("Need {{ argument: \"{argument}\"")), "{def}");
    }
    let called = mixed(State::new(1), made.data, Tenant("x".into()), JobContext::for_test());
    assert_eq!(support::block_on(called), Ok("1 a x 1".to_owned()));
}
