//! The check as a program calls it, on the jobs of this binary.

use queue_runtime::{JobError, job};

#[derive(serde::Serialize, serde::Deserialize)]
struct Address {
    street: String,
    zip: Option<String>,
}

#[job(retries = 2, schema = 3, alias = "send_parcel", dedupe = "parcel")]
async fn ship_parcel(parcel: u64, to: Address) -> Result<(), JobError> {
    let _ = (parcel, to.street, to.zip);
    Ok(())
}

#[job]
async fn sweep() -> Result<(), JobError> {
    Ok(())
}

#[test]
fn no_edit_strands_waiting_jobs() {
    queue_testkit::lockfile::check!("tests/jobs.lock");
}

#[test]
#[should_panic(
    expected = "no-such.lock is missing. To write it, run this test with QUEUE_LOCKFILE=update"
)]
fn a_missing_file_fails_by_its_name() {
    if std::env::var_os("QUEUE_LOCKFILE").is_some() {
        panic!(
            "no-such.lock is missing. To write it, run this test with QUEUE_LOCKFILE=update: not while updating"
        );
    }
    queue_testkit::lockfile::check!("tests/no-such.lock");
}
