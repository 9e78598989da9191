//! With `crate`, generated code finds the runtime under another name or behind a facade.

extern crate queue_runtime as renamed;

use renamed::Job as _;

pub mod facade {
    pub use queue_runtime as queue;
}

#[renamed::job(crate = ::renamed, dedupe = "id-{id}")]
async fn direct(id: u64) {
    let _ = id;
}

#[facade::queue::job(crate = crate::facade::queue)]
async fn behind_a_facade(id: u64) {
    let _ = id;
}

macro_rules! through_a_macro {
    () => {
        #[renamed::job(crate = $crate::facade::queue)]
        async fn by_dollar_crate(id: u64) {
            let _ = id;
        }
    };
}

through_a_macro!();

fn main() {
    assert_eq!(direct::new(1).dedupe_key().as_deref(), Some("id-1"));
    assert_eq!(BehindAFacadeJob::DEF.name(), "behind_a_facade");
    assert_eq!(ByDollarCrateJob::DEF.name(), "by_dollar_crate");
}
