//! Whether a build may be deployed on what waits in a store.

use async_trait::async_trait;
use queue_runtime::error::StoreError;
use queue_runtime::job::{JobId, JobRecord, JobType};
use queue_runtime::lockfile::deploy::{Reason, Rows, Sample, WaitingRows, deployable, judge};
use queue_runtime::pipeline::declare::Registry;
use queue_runtime::{Job, JobError, Queue, job};

#[job(name = "deploy.ship", alias = "deploy.send", schema = 2)]
async fn ship(order: u32, address: Option<String>) -> Result<(), JobError> {
    let _ = (order, address);
    Ok(())
}

/// Code of the user that does not expect what it is given.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
#[serde(from = "u8", into = "u8")]
struct Small(u8);

impl From<u8> for Small {
    fn from(number: u8) -> Self {
        assert!(number < 9, "too large");
        Self(number)
    }
}

impl From<Small> for u8 {
    fn from(small: Small) -> Self {
        small.0
    }
}

#[job(name = "deploy.count")]
async fn count(small: Small) -> Result<(), JobError> {
    let _ = small;
    Ok(())
}

#[test]
fn a_decoder_that_panics_refuses() {
    let registry = Registry::of([CountJob::DEF]).expect("one job");
    let samples = [
        sample("deploy.count", 1, r#"{"small":8}"#),
        sample("deploy.count", 1, r#"{"small":9}"#),
    ];
    let verdict = judge(&registry, &[rows("deploy.count", 1, 2, 0)], &samples);
    assert!(
        verdict
            .to_string()
            .ends_with(": $: panicked while it was read: too large\n"),
        "{verdict}"
    );
}

#[job(name = "deploy.ship_by_name")]
async fn ship_by_name(order: String) -> Result<(), JobError> {
    let _ = order;
    Ok(())
}

fn registry() -> Registry {
    Registry::of([ShipJob::DEF]).expect("one job")
}

fn rows(job_type: &str, schema: u32, live: u64, dead_letters: u64) -> WaitingRows {
    WaitingRows {
        job_type: JobType::new(job_type).expect("a name"),
        schema,
        live,
        dead_letters,
    }
}

fn sample(job_type: &str, schema: u32, payload: &str) -> Sample {
    Sample {
        id: "01890000-0000-7000-8000-000000000000"
            .parse()
            .expect("an id"),
        job_type: JobType::new(job_type).expect("a name"),
        schema,
        payload: payload.to_owned(),
    }
}

#[test]
fn rows_that_are_read_hold_nothing_up() {
    let verdict = judge(
        &registry(),
        &[rows("deploy.ship", 2, 3, 0), rows("deploy.send", 1, 1, 0)],
        &[
            sample("deploy.ship", 2, r#"{"order":1,"address":"x"}"#),
            sample("deploy.send", 1, r#"{"order":1}"#),
        ],
    );
    assert!(verdict.is_allowed() && verdict.stranded.is_empty());
    assert_eq!(verdict.tried, 2);
    assert_eq!(
        verdict.to_string(),
        "nothing that waits would be stranded; 2 payloads tried\n"
    );
}

#[test]
fn an_unknown_type_a_newer_schema_and_a_refused_payload_are_told_apart() {
    let verdict = judge(
        &registry(),
        &[
            rows("deploy.gone", 1, 7, 0),
            rows("deploy.ship", 1, 2, 0),
            rows("deploy.ship", 3, 1, 0),
        ],
        &[
            sample("deploy.ship", 1, r#"{"order":1}"#),
            sample("deploy.ship", 1, r#"{"order":-1}"#),
            // Not read as schema 1, and of a schema that is not tried.
            sample("deploy.ship", 3, "{}"),
        ],
    );
    assert!(!verdict.is_allowed());
    let told = "\
`deploy.gone` schema 1: 7 waiting, 0 dead letters: no job of this build has that name or alias
`deploy.ship` schema 1: 2 waiting, 0 dead letters: 1 of 2 payloads tried are refused, such as that of job \
01890000-0000-7000-8000-000000000000: $.order: invalid value: integer `-1`, expected u32 (field `order: u32`)
`deploy.ship` schema 3: 1 waiting, 0 dead letters: this build reads up to schema 2
";
    assert_eq!(verdict.to_string(), told);
}

#[test]
fn dead_letters_alone_are_told_and_allowed() {
    let verdict = judge(&registry(), &[rows("deploy.gone", 1, 0, 4)], &[]);
    assert!(verdict.is_allowed());
    assert_eq!(verdict.stranded[0].reason, Reason::UnknownType);
}

/// Answers from jobs that were really stored.
struct Stored {
    records: Vec<JobRecord>,
}

#[async_trait]
impl Rows for Stored {
    async fn waiting(&self) -> Result<Vec<WaitingRows>, StoreError> {
        let mut kinds: Vec<WaitingRows> = Vec::new();
        for record in &self.records {
            let (name, schema) = (&record.job_type, record.payload_schema);
            match kinds
                .iter_mut()
                .find(|k| k.job_type == *name && k.schema == schema)
            {
                Some(kind) => kind.live += 1,
                None => kinds.push(rows(name.as_str(), schema, 1, 0)),
            }
        }
        Ok(kinds)
    }

    async fn waiting_sample(
        &self,
        job_type: &JobType,
        schema: u32,
        after: Option<JobId>,
        count: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        let mut found: Vec<JobRecord> = self.records.clone();
        found.retain(|r| r.job_type == *job_type && r.payload_schema == schema);
        found.sort_by_key(|record| record.id);
        found.retain(|record| after.is_none_or(|after| record.id > after));
        found.truncate(count);
        Ok(found)
    }
}

#[tokio::test]
async fn a_refused_payload_behind_the_first_page_is_found() {
    let queue = Queue::open("memory:").await.expect("a queue");
    let mut records = Vec::new();
    for number in 0..1_201 {
        let order = if number == 1_200 {
            "x".to_owned()
        } else {
            number.to_string()
        };
        let job = ship_by_name::enqueue(&queue, order)
            .await
            .expect("it is stored");
        records.push(
            queue
                .job(job.id)
                .await
                .expect("it answers")
                .expect("it is there"),
        );
    }
    for record in &mut records {
        // The build that is judged has another idea of the payload.
        record.job_type = JobType::new("deploy.ship").expect("a name");
        record.payload = record
            .payload
            .replace('"', "")
            .replace("order", "\"order\"");
    }
    let stored = Stored { records };
    let some = deployable(&stored, &registry(), 1_200)
        .await
        .expect("an answer");
    assert!(some.is_allowed(), "{some}");
    assert_eq!(some.tried, 1_200);
    let all = deployable(&stored, &registry(), usize::MAX)
        .await
        .expect("an answer");
    assert!(!all.is_allowed());
    assert!(matches!(
        all.stranded[0].reason,
        Reason::Unreadable {
            refused: 1,
            sampled: 1_201,
            ..
        }
    ));
}
