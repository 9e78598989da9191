//! Which store the environment names. Each case is a process of its own, since the environment is
//! the process's.

use std::ffi::OsStr;

use queue_runtime::Queue;

use crate::processes::child;
use crate::world::File;

/// What a child process does: opens what its environment names, and writes to a file what came
/// of it.
pub(crate) async fn opens_what_is_named(answer: &str) -> i32 {
    let said = match Queue::from_env().await {
        Ok(queue) => {
            queue.close().await;
            "opened".to_owned()
        }
        Err(error) => error.to_string(),
    };
    std::fs::write(answer, said).expect("the folder is the test's");
    0
}

/// What a process with these variables says.
fn said(variables: &[(&str, &OsStr)]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let answer = folder.path().join("answer");
    let mut child = child("from_env", answer.to_str().expect("a plain path"));
    child.env_remove("QUEUE_URL").env_remove("DATABASE_URL");
    child.envs(variables.iter().copied());
    assert!(child.status().expect("a process").success());
    std::fs::read_to_string(answer).expect("it has answered")
}

#[test]
fn queue_url_wins_over_database_url_which_is_read_without_it() {
    let (queue, database) = (File::new(), File::new());
    let (queue_url, database_url) = (queue.url(), database.url());
    let database_url = ("DATABASE_URL", OsStr::new(&database_url));

    assert_eq!(
        said(&[("QUEUE_URL", OsStr::new(&queue_url)), database_url]),
        "opened"
    );
    assert_eq!((queue.exists(), database.exists()), (true, false));

    assert_eq!(said(&[database_url]), "opened");
    assert!(database.exists());
}

#[test]
fn an_environment_that_names_no_store_says_what_to_write() {
    assert_eq!(
        said(&[]),
        "environment variable QUEUE_URL: not set; write an address such as `sqlite://jobs.db`"
    );
}

#[cfg(unix)]
#[test]
fn a_name_that_is_not_text_is_refused_and_not_shown() {
    use std::os::unix::ffi::OsStrExt;

    let url = OsStr::from_bytes(b"sqlite://secret-\xff.db");
    let database = File::new();
    let database_url = database.url();

    let said = said(&[
        ("QUEUE_URL", url),
        ("DATABASE_URL", OsStr::new(&database_url)),
    ]);

    assert_eq!(
        said,
        "environment variable QUEUE_URL: its value is not valid UTF-8 (the value is not shown)"
    );
    assert!(!database.exists(), "it was not passed over");
}
