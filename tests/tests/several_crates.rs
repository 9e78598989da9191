//! A program whose jobs stand in libraries: one of them enqueues the other's jobs, and knows the runtime under another
//! name.

use std::sync::Mutex;

use billing_jobs::{SendReceiptJob, charge};
use mail_jobs::{Address, Outbox};
use queue_runtime::pipeline::declare::Registry;
use queue_runtime::{Data, Job, JobState};
use queue_testkit::{TestQueue, assert_enqueued};

queue_runtime::link_jobs!(mail_jobs, billing_jobs);

fn ada() -> Address {
    Address {
        name: "Ada".to_owned(),
    }
}

#[test]
fn the_jobs_of_every_linked_library_are_found_with_their_places() {
    let registry = Registry::discover().expect("names that differ");
    let places: Vec<(&str, &str)> = registry
        .defs()
        .map(|def| (def.name(), def.declared_at().package))
        .collect();
    assert_eq!(
        places,
        [
            ("billing.charge", "billing-jobs"),
            ("billing.clean_up", "billing-jobs"),
            ("mail.clean_up", "mail-jobs"),
            ("mail.receipt", "mail-jobs"),
        ]
    );
}

#[tokio::test]
async fn a_job_of_one_library_enqueues_one_of_another() {
    let test = TestQueue::new();
    let outbox: Data<Outbox> = Data::new(Mutex::default());
    charge::enqueue(test.queue(), ada(), 700)
        .await
        .expect("enqueued");
    let again = charge::enqueue(test.queue(), ada(), 900).await;
    assert!(again.expect("answered").duplicate);

    let runs = test
        .drain(|worker| worker.shared(outbox.clone()))
        .await
        .expect("it runs");

    let ends: Vec<_> = runs
        .iter()
        .map(|run| (run.job_type.as_str(), run.state))
        .collect();
    assert_eq!(
        ends,
        [
            ("billing.charge", JobState::Done),
            ("mail.receipt", JobState::Done)
        ]
    );
    let sent = outbox.lock().expect("nobody panics while sending").clone();
    assert_eq!(sent, ["Ada: 700"]);
}

#[tokio::test]
async fn jobs_of_one_function_name_are_two_jobs() {
    let test = TestQueue::new();
    let outbox: Data<Outbox> = Data::new(Mutex::default());
    mail_jobs::upkeep::clean_up::enqueue(test.queue())
        .await
        .expect("enqueued");
    billing_jobs::upkeep::clean_up::enqueue(test.queue())
        .await
        .expect("enqueued");

    test.drain(|worker| worker.shared(outbox.clone()))
        .await
        .expect("it runs");

    let mut done = outbox.lock().expect("nobody panics while cleaning").clone();
    done.sort();
    assert_eq!(done, ["billing is clean", "mail is clean"]);
}

/// As a unit test in another crate does it, with a payload that was passed on.
#[tokio::test]
async fn functions_and_payloads_of_a_library_are_used_as_ones_own() {
    let outbox: Data<Outbox> = Data::new(Mutex::default());
    mail_jobs::send_receipt(ada(), 5, outbox.clone())
        .await
        .expect("sent");
    assert_eq!(outbox.lock().expect("nobody panics").len(), 1);

    let test = TestQueue::new();
    let (to, cents) = (ada(), 5);
    test.queue()
        .enqueue(SendReceiptJob { to, cents })
        .await
        .expect("enqueued");
    assert_enqueued!(test, SendReceiptJob { cents: 5, .. });

    let older = r#"{"to":{"name":"Ada"},"euros":7}"#;
    let job =
        billing_jobs::ChargeJob::from_stored(older, 1).expect("it can be brought to schema 2");
    assert_eq!((job.to, job.cents), (ada(), 700));
}
