//! A type of the user's that is called `Refreshed` is a result like any other.

use queue_runtime::{Job, JobError, job};

#[derive(serde::Serialize)]
struct Refreshed<T>(T);

#[job]
async fn fallible(user_id: u64) -> Result<Refreshed<u64>, JobError> {
    Ok(Refreshed(user_id))
}

#[job]
async fn in_a_list(user_id: u64) -> Result<Vec<Refreshed<u64>>, JobError> {
    Ok(vec![Refreshed(user_id)])
}

pub fn main() {
    assert_eq!(fallible::new(7).cache_key(), None);
    assert_eq!(in_a_list::new(7).cache_key(), None);
}
