//! What no compiler can see, the worker says at its start: two jobs of one name, and missing state.

use queue_runtime::{Data, Queue, Worker, job};

mod mail {
    #[queue_runtime::job(name = "send")]
    pub async fn by_mail() {}
}

mod text {
    #[queue_runtime::job(name = "send.text", alias = "send")]
    pub async fn by_text() {}
}

struct Mailer;

#[job]
async fn needs_state(mailer: Data<Mailer>) {
    drop(mailer);
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let queue = Queue::in_memory();

    let twice = Worker::builder(&queue).build().expect_err("two jobs are named `send`").to_string();
    assert!(twice.contains("two jobs are named `send`"), "{twice}");
    assert_eq!(twice.matches("faults_found_when_the_worker_is_built.rs").count(), 2, "{twice}");

    let listed = Worker::builder(&queue).job::<NeedsStateJob>().build();
    let missing = listed.expect_err("nobody gave a mailer").to_string();
    for named in ["`needs_state`", "`mailer`", "Mailer"] {
        assert!(missing.contains(named), "{named} in {missing}");
    }

    let given = Worker::builder(&queue).job::<NeedsStateJob>().data(Mailer).build();
    given.expect("the mailer was given");
}
