//! Edits of whole jobs: two declarations of one job, and rows of each in the other.

use queue_runtime::handler::JobDef;
use queue_runtime::job::{JobType, PayloadWriter};
use queue_runtime::lockfile::contracts;
use queue_runtime::pipeline::declare::Registry;
use queue_runtime::rules::evolution::{Change, Verdict, compare};
use queue_runtime::{Job, JobError};

use crate::edit::Label;

pub(crate) fn registry(def: &'static JobDef) -> Registry {
    Registry::of([def]).expect("a job without faults")
}

/// Stores payloads with one build and runs them with another: a row is claimed if its type and schema
/// are known, and then read.
fn run<Written: Job, Runs: Job>(values: &[Written]) -> Vec<Result<(), String>> {
    let (def, claims) = (
        Written::DEF,
        registry(Runs::DEF).claimable(&Default::default()),
    );
    let job_type = JobType::new(def.name()).expect("a name");
    let schema = registry(def).claimable(&Default::default());
    let (_, schema) = schema
        .into_iter()
        .find(|(name, _)| *name == job_type)
        .expect("its own");
    let stored = values.iter().map(|value| {
        let mut writer = PayloadWriter::new();
        value.encode(&mut writer).expect("it can be stored");
        writer.finish()
    });
    stored
        .map(
            |row| match claims.iter().find(|(name, _)| *name == job_type) {
                None => Err("nobody claims the type".to_owned()),
                Some((_, reads)) if *reads < schema => Err("nobody claims the schema".to_owned()),
                Some(_) => Runs::from_payload(&row)
                    .map(drop)
                    .map_err(|error| format!("{error} in {row}")),
            },
        )
        .collect()
}

/// Old workers leave what they do not claim to others, so that breaks nothing.
fn left_alone(run: Vec<Result<(), String>>) -> Vec<Result<(), String>> {
    let claimed = |error: String| match error.starts_with("nobody claims") {
        true => Ok(()),
        false => Err(error),
    };
    run.into_iter().map(|run| run.or_else(claimed)).collect()
}

pub(crate) fn changes<Old: Job, New: Job>() -> Vec<Change> {
    compare(
        &contracts(&registry(Old::DEF)),
        &contracts(&registry(New::DEF)),
    )
}

fn prove<Old: Job, New: Job>(old: Vec<Old>, new: Vec<New>, labels: (Label, Label)) {
    let changes = changes::<Old, New>();
    let directions = [
        (
            "rows",
            labels.0,
            run::<Old, New>(&old),
            changes.iter().any(|c| c.rows.is_breaking()),
        ),
        (
            "workers",
            labels.1,
            left_alone(run::<New, Old>(&new)),
            changes.iter().any(|c| c.workers.is_breaking()),
        ),
    ];
    for (direction, label, ran, said) in directions {
        let refused = ran.iter().any(Result::is_err);
        let expected = match label {
            Label::Safe => (false, false),
            Label::Breaking => (true, true),
            Label::Careful => (true, false),
            Label::Unseen => (false, true),
        };
        assert_eq!(
            (said, refused),
            expected,
            "{direction}: {label:?}, {ran:?}, {changes:#?}"
        );
    }
}

macro_rules! job_edit {
    (
        $name:ident: rows $rows:ident, workers $workers:ident;
        old { $($old:item)* } [$($old_value:expr),* $(,)?]
        new { $($new:item)* } [$($new_value:expr),* $(,)?]
    ) => {
        mod $name {
            mod old {
                use super::super::*;
                $($old)*
                pub(super) fn values() -> Vec<WorkJob> { vec![$($old_value),*] }
            }
            mod new {
                use super::super::*;
                $($new)*
                pub(super) fn values() -> Vec<WorkJob> { vec![$($new_value),*] }
            }

            #[test]
            fn is_judged_as_it_is_read() {
                use super::{Label, prove};
                prove(old::values(), new::values(), (Label::$rows, Label::$workers));
            }
        }
    };
}

type Done = Result<(), JobError>;

use queue_runtime::job;

job_edit! {
    an_argument_is_added: rows Breaking, workers Safe;
    old { #[job] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
    new { #[job] pub(super) async fn work(a: u8, b: u8) -> Done { let _ = (a, b); Ok(()) } } [WorkJob { a: 1, b: 2 }]
}

job_edit! {
    an_argument_with_a_default_is_added: rows Safe, workers Safe;
    old { #[job] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
    new {
        #[job] pub(super) async fn work(a: u8, #[arg(default)] b: u8) -> Done { let _ = (a, b); Ok(()) }
    } [WorkJob { a: 1, b: 2 }]
}

job_edit! {
    an_optional_argument_is_added: rows Safe, workers Safe;
    old { #[job] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
    new {
        #[job] pub(super) async fn work(a: u8, b: Option<String>) -> Done { let _ = (a, b); Ok(()) }
    } [WorkJob { a: 1, b: None }, WorkJob { a: 1, b: Some("x".into()) }]
}

job_edit! {
    an_argument_is_removed: rows Safe, workers Breaking;
    old { #[job] pub(super) async fn work(a: u8, b: u8) -> Done { let _ = (a, b); Ok(()) } } [WorkJob { a: 1, b: 2 }]
    new { #[job] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
}

job_edit! {
    an_argument_is_renamed: rows Breaking, workers Breaking;
    old { #[job] pub(super) async fn work(sku: u8) -> Done { let _ = sku; Ok(()) } } [WorkJob { sku: 1 }]
    new { #[job] pub(super) async fn work(article: u8) -> Done { let _ = article; Ok(()) } } [WorkJob { article: 1 }]
}

job_edit! {
    an_argument_is_renamed_in_rust_alone: rows Safe, workers Safe;
    old { #[job] pub(super) async fn work(sku: u8) -> Done { let _ = sku; Ok(()) } } [WorkJob { sku: 1 }]
    new {
        #[job] pub(super) async fn work(#[arg(rename = "sku")] article: u8) -> Done { let _ = article; Ok(()) }
    } [WorkJob { article: 1 }]
}

job_edit! {
    an_argument_is_renamed_with_an_alias: rows Safe, workers Breaking;
    old { #[job] pub(super) async fn work(sku: u8) -> Done { let _ = sku; Ok(()) } } [WorkJob { sku: 1 }]
    new {
        #[job] pub(super) async fn work(#[arg(alias = "sku")] article: u8) -> Done { let _ = article; Ok(()) }
    } [WorkJob { article: 1 }]
}

job_edit! {
    arguments_change_places: rows Safe, workers Safe;
    old { #[job] pub(super) async fn work(a: u8, b: &str) -> Done { let _ = (a, b); Ok(()) } }
        [WorkJob { a: 1, b: "x".into() }]
    new { #[job] pub(super) async fn work(b: String, a: u8) -> Done { let _ = (a, b); Ok(()) } }
        [WorkJob { a: 1, b: "x".into() }]
}

job_edit! {
    a_default_is_added_to_an_argument: rows Safe, workers Safe;
    old { #[job] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
    new { #[job] pub(super) async fn work(#[arg(default)] a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
}

job_edit! {
    a_default_is_removed_from_an_argument: rows Careful, workers Safe;
    old { #[job] pub(super) async fn work(#[arg(default)] a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
    new { #[job] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
}

job_edit! {
    an_argument_is_widened: rows Safe, workers Breaking;
    old { #[job] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: u8::MAX }]
    new { #[job] pub(super) async fn work(a: u32) -> Done { let _ = a; Ok(()) } } [WorkJob { a: u32::MAX }]
}

job_edit! {
    an_argument_is_widened_under_a_higher_schema: rows Safe, workers Safe;
    old { #[job] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: u8::MAX }]
    new { #[job(schema = 2)] pub(super) async fn work(a: u32) -> Done { let _ = a; Ok(()) } } [WorkJob { a: u32::MAX }]
}

job_edit! {
    an_argument_is_retyped_under_a_higher_schema_without_an_upcast: rows Breaking, workers Safe;
    old { #[job] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
    new {
        #[job(schema = 2)] pub(super) async fn work(a: String) -> Done { let _ = a; Ok(()) }
    } [WorkJob { a: "x".into() }]
}

job_edit! {
    the_schema_is_lowered: rows Breaking, workers Safe;
    old { #[job(schema = 2)] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
    new { #[job] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
}

job_edit! {
    the_job_is_renamed: rows Breaking, workers Safe;
    old { #[job(name = "mail")] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
    new { #[job(name = "post")] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
}

job_edit! {
    the_job_is_renamed_with_an_alias: rows Safe, workers Safe;
    old { #[job(name = "mail")] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
    new {
        #[job(name = "post", alias = "mail")] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) }
    } [WorkJob { a: 1 }]
}

job_edit! {
    an_alias_of_the_job_is_removed: rows Careful, workers Safe;
    old {
        #[job(name = "post", alias = "mail")] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) }
    } [WorkJob { a: 1 }]
    new { #[job(name = "post")] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
}

job_edit! {
    the_policy_changes: rows Safe, workers Safe;
    old { #[job(name = "mail")] pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) } } [WorkJob { a: 1 }]
    new {
        #[job(name = "mail", retries = 9, timeout = "1h", priority = 5, deadline = "2d",
            backoff = "fixed(5s)", dedupe = "a")]
        pub(super) async fn work(a: u8) -> Done { let _ = a; Ok(()) }
    } [WorkJob { a: 1 }]
}

#[test]
fn rows_of_a_queue_that_no_job_names_any_more_are_stranded() {
    mod old {
        use super::*;
        #[job(name = "mail", queue = "mail")]
        pub(super) async fn work() {}
    }
    mod new {
        use super::*;
        #[job(name = "mail", queue = "slow")]
        pub(super) async fn work() {}
        #[job(queue = "mail")]
        pub(super) async fn stays() {}
    }
    let was = contracts(&registry(old::WorkJob::DEF));
    let alone = compare(&was, &contracts(&registry(new::WorkJob::DEF)));
    let [change] = &alone[..] else {
        panic!("{alone:?}")
    };
    let Verdict::Breaking(fault) = &change.rows else {
        panic!("{change:?}")
    };
    assert_eq!(change.what, "mail became slow");
    assert_eq!(
        fault.why,
        "they stay in queue `mail`, which no job names any more"
    );

    let both = Registry::of([new::WorkJob::DEF, new::StaysJob::DEF]).expect("without faults");
    let among = compare(&was, &contracts(&both));
    assert_eq!(
        among[0].what,
        "mail became slow; waiting rows stay in `mail`, which another job names"
    );
    assert!(!among.iter().any(Change::is_breaking), "{among:?}");
}

#[test]
fn a_renamed_job_that_answers_for_requests_says_that_repeats_make_second_jobs() {
    mod old {
        use super::*;
        #[job(name = "charge", idempotency = "order")]
        pub(super) async fn work(order: u64) {
            let _ = order;
        }
    }
    mod new {
        use super::*;
        #[job(name = "charge_card", alias = "charge", idempotency = "order")]
        pub(super) async fn work(order: u64) {
            let _ = order;
        }
    }
    let changes = changes::<old::WorkJob, new::WorkJob>();
    assert!(
        changes[0].what.contains("repeated makes a second job"),
        "{changes:?}"
    );
}

mod what_is_said_of_a_policy {
    use super::*;

    mod old {
        use super::*;
        #[job(name = "mail", dedupe = "a")]
        pub(super) async fn work(a: u8, b: u8) -> Done {
            let _ = (a, b);
            Ok(())
        }
    }

    mod new {
        use super::*;
        #[job(
            name = "mail",
            dedupe(a, b),
            queue = "slow",
            idempotency = "{a}/{b}",
            retries = 9
        )]
        pub(super) async fn work(a: u8, b: u8) -> Done {
            let _ = (a, b);
            Ok(())
        }
    }

    #[test]
    fn a_moved_queue_and_a_new_key_are_remarked_on() {
        let changes = changes::<old::WorkJob, new::WorkJob>();
        let told: Vec<String> = changes
            .iter()
            .map(|c| format!("{}: {}", c.path, c.what))
            .collect();
        assert_eq!(
            told,
            [
                "dedupe: a became a, b; waiting rows keep the keys they have, so for a while an old and a new \
                 job do not see that they are the same",
                "idempotency: none became {a}/{b}; waiting rows keep the keys they have, so for a while an old \
                 and a new job do not see that they are the same",
                "idempotency_for: none became 1h",
                "retries: 4 became 9",
                "queue: default became slow",
            ]
        );
    }
}
