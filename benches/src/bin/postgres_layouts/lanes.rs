//! What a claiming client remembers: the lanes that have jobs, and where each goes on.

use std::time::{Duration, Instant};

use anyhow::Result;
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use uuid::Uuid;

use crate::moment::Moment;
use crate::run::Job;
use crate::statements::Layout;

/// How long lanes are believed, because a job may appear before the place where its lane goes on.
const BELIEVED: Duration = Duration::from_secs(1);

/// A lane's jobs differ in nothing but when they are due.
#[derive(Debug)]
pub(crate) struct Lane {
    place: i64,
    queue: String,
    job_type: String,
    payload_schema: i32,
    crashes: i32,
    priority: i16,
    from: (Moment, Uuid),
}

/// The lanes that were found last, and when.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    pub(crate) all: Vec<Lane>,
    found: Option<Instant>,
    /// How often they were looked for, and how long that took.
    pub(crate) searches: usize,
    pub(crate) searching: Duration,
}

impl Lanes {
    pub(crate) fn are_old(&self) -> bool {
        self.found.is_none_or(|found| found.elapsed() >= BELIEVED)
    }

    /// Makes the next claim look for them again.
    pub(crate) fn forget(&mut self) {
        self.found = None;
    }

    pub(crate) async fn discover(
        &mut self,
        conn: &mut PgConnection,
        layout: Layout,
        types: &[String],
    ) -> Result<()> {
        let begun = Instant::now();
        let rows = sqlx::query(layout.discover())
            .bind(["default".to_owned()].as_slice())
            .bind(types)
            .bind(vec![1_i32; types.len()])
            .fetch_all(&mut *conn)
            .await?;
        self.all = rows.iter().map(lane).collect::<Result<_>>()?;
        self.searches += 1;
        self.searching += begun.elapsed();
        self.found = Some(Instant::now());
        Ok(())
    }

    /// Moves each lane past the jobs that were taken.
    pub(crate) fn pass(&mut self, jobs: &[Job]) {
        for job in jobs {
            let lane = self
                .all
                .iter_mut()
                .find(|lane| lane.priority == job.priority && lane.job_type == job.job_type);
            if let Some(lane) = lane {
                lane.from = lane.from.max(job.key);
            }
        }
    }

    /// The lanes as the claim takes them.
    pub(crate) fn columns(&self) -> Columns {
        let mut columns = Columns::default();
        for lane in &self.all {
            columns.places.push(lane.place);
            columns.queues.push(lane.queue.clone());
            columns.types.push(lane.job_type.clone());
            columns.schemas.push(lane.payload_schema);
            columns.crashes.push(lane.crashes);
            columns.priorities.push(lane.priority);
            columns.run_ats.push(lane.from.0);
            columns.ids.push(lane.from.1);
        }
        columns
    }
}

/// The lanes as the claim takes them: an array for each column.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) places: Vec<i64>,
    pub(crate) queues: Vec<String>,
    pub(crate) types: Vec<String>,
    pub(crate) schemas: Vec<i32>,
    pub(crate) crashes: Vec<i32>,
    pub(crate) priorities: Vec<i16>,
    pub(crate) run_ats: Vec<Moment>,
    pub(crate) ids: Vec<Uuid>,
}

fn lane(row: &PgRow) -> Result<Lane> {
    Ok(Lane {
        place: row.try_get(0)?,
        queue: row.try_get(1)?,
        job_type: row.try_get(2)?,
        payload_schema: row.try_get(3)?,
        crashes: row.try_get(4)?,
        priority: row.try_get(5)?,
        from: (row.try_get(6)?, row.try_get(7)?),
    })
}
