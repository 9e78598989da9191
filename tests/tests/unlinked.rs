//! A program that depends on two libraries with jobs and names only one of them: the linker leaves the
//! other out.

use mail_jobs as _;
use queue_runtime::job::Contract;
use queue_runtime::job::shape::Struct;
use queue_runtime::lockfile;
use queue_runtime::pipeline::declare::Registry;
use queue_runtime::{Queue, Worker};

/// A file with these jobs of these packages.
fn lock(jobs: &[(&str, &str)]) -> &'static str {
    let contract = |(name, package): &(&str, &str)| Contract {
        name: (*name).to_owned(),
        aliases: Vec::new(),
        schema: 1,
        upcast: false,
        settings: vec![("package".to_owned(), (*package).to_owned())],
        payload: Struct {
            name: None,
            closed: false,
            fields: Vec::new(),
        },
    };
    let contracts: Vec<Contract> = jobs.iter().map(contract).collect();
    String::leak(lockfile::write(&contracts))
}

#[test]
fn a_library_that_nothing_refers_to_is_named_with_the_line_that_links_it() {
    let all = lock(&[
        ("billing.charge", "billing-jobs"),
        ("mail.receipt", "mail-jobs"),
        ("mail.removed", "mail-jobs"),
    ]);
    let queue = Queue::in_memory();
    let built = Worker::builder(&queue).expects(all).build();
    let error = built.expect_err("jobs are missing").to_string();
    for told in [
        "job `billing.charge` of package `billing-jobs` is not linked. Add `use billing_jobs as _;` to the program's \
         main file",
        "job `mail.removed` stands in jobs.lock, and this program does not have it",
    ] {
        assert!(error.contains(told), "{error}");
    }
    assert!(!error.contains("mail.receipt"), "{error}");
}

#[test]
fn a_program_that_has_all_jobs_of_its_file_lacks_none() {
    let registry = Registry::discover().expect("names that differ");
    let missing = lockfile::missing(&registry, lock(&[("mail.receipt", "mail-jobs")]));
    assert_eq!(missing, Ok(Vec::new()));
}

#[test]
fn a_damaged_file_is_refused_with_its_line() {
    let queue = Queue::in_memory();
    let built = Worker::builder(&queue)
        .expects("format 1\n\n<<<<<<<\n")
        .build();
    let error = built.expect_err("it is damaged").to_string();
    assert!(error.contains("jobs.lock: line 3"), "{error}");
}
