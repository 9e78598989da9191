//! What each release would strand of the jobs that wait: the two of the examples, and some
//! that were made without care.

use queue_runtime::Queue;
use queue_runtime::lockfile::deploy::{Deployable, Reason, deployable};
use queue_runtime::pipeline::declare::Registry;
use queue_runtime::private::{Registration, inventory};

use crate::{AFTER, BEFORE};

/// The program of the release before, whose jobs are declared here a second time.
#[path = "../../../examples/deploying/before/src/main.rs"]
#[allow(
    dead_code,
    clippy::print_stdout,
    reason = "only its jobs are of use here"
)]
mod before;

/// The program of the release after, likewise.
#[path = "../../../examples/deploying/after/src/main.rs"]
#[allow(
    dead_code,
    clippy::print_stdout,
    reason = "only its jobs are of use here"
)]
mod after;

/// The same edits as in the release after, without what makes them safe.
pub(crate) const CARELESS: &str = "careless";

mod careless {
    use queue_runtime::job;

    // Another shape, without a number and an `upcast`.
    #[job(idempotency = "invoice")]
    async fn send_invoice(invoice: i64, recipients: Vec<String>) {
        let _ = (invoice, recipients);
    }

    // Another queue. Its rows stay in the former one, which is served for the sake of the others.
    #[job(idempotency = "sku", queue = "stock")]
    async fn sync_stock(sku: String, count: u32) {
        let _ = (sku, count);
    }

    // Another name, without an alias.
    #[job(idempotency = "user")]
    async fn send_digest(user: i64) {
        let _ = user;
    }
}

/// The jobs of the release before, all of them in a queue of their own.
pub(crate) const MOVED: &str = "moved";

mod moved {
    use queue_runtime::job;

    #[job(idempotency = "invoice", queue = "shop")]
    async fn send_invoice(invoice: i64, email: String) {
        let _ = (invoice, email);
    }

    #[job(idempotency = "sku", queue = "shop")]
    async fn sync_stock(sku: String, count: u32) {
        let _ = (sku, count);
    }

    #[job(idempotency = "day", queue = "shop")]
    async fn old_report(day: String) {
        let _ = day;
    }

    #[job(idempotency = "user", queue = "shop")]
    async fn digest(user: i64) {
        let _ = user;
    }
}

/// More than there are jobs.
const ALL: usize = 10_000;

/// The jobs of a release, and of no other.
fn registry(release: &str) -> Registry {
    let module = format!("{}::{release}", module_path!());
    let defs = inventory::iter::<Registration>().map(|found| found.0);
    Registry::of(defs.filter(|def| def.declared_at().module == module)).expect("its jobs")
}

/// Asks whether a release may be deployed on what waits.
pub(crate) async fn judged(queue: &Queue, release: &str) -> Deployable {
    let registry = registry(release);
    let store = queue.store();
    let verdict = deployable(store.as_ref(), &registry, &registry.queues(), ALL).await;
    verdict.expect("the store answers")
}

/// What a release would strand: the type, how many live jobs, and why in a few words.
pub(crate) async fn stranded(queue: &Queue, release: &str) -> Vec<(String, u64, String)> {
    let verdict = judged(queue, release).await;
    assert_eq!(
        verdict.is_allowed(),
        verdict.stranded.is_empty(),
        "{verdict}"
    );
    let told = verdict.stranded.iter().map(|stranded| {
        let why = match &stranded.reason {
            Reason::UnknownType => "unknown".to_owned(),
            Reason::QueueNotServed { queue } => format!("{queue} is not served"),
            Reason::NewerSchema { reads } => format!("reads {reads}"),
            Reason::Unreadable { refused, tried, .. } => format!("{refused} of {tried} refused"),
            other => other.to_string(),
        };
        (
            stranded.rows.job_type.to_string(),
            stranded.rows.live(),
            why,
        )
    });
    told.collect()
}

/// A row of what [`stranded`] says.
pub(crate) fn row(job_type: &str, live: u64, why: &str) -> (String, u64, String) {
    (job_type.to_owned(), live, why.to_owned())
}

/// Both releases run all that waits.
pub(crate) async fn check_nothing_is_stranded(queue: &Queue) {
    for release in [BEFORE, AFTER] {
        assert_eq!(stranded(queue, release).await, [], "{release}");
    }
}
