//! The verbs of a store, each a transaction or a statement of its own but for those that share one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgRow;

use super::actions::{Cancel, Exchange, Exchanged, Expired, Prune};
use super::claim::Claim;
use super::connect::Form;
use super::error::{self, closed};
use super::heartbeat::PostgresHeartbeat;
use super::insert::{Insert, is_plain};
use super::instant::At;
use super::replay::Replay;
use super::rows::{self, Columns, limit};
use super::statements::Parameters;
use super::{PostgresStore, Read, all, aside, claim, connect, schema};
use crate::error::{StoreError, StoreErrorKind};
use crate::job::{
    Attempt, Claimed, JobId, JobRecord, JobState, JobType, NewJob, QueueName, Settled, Settlement,
    Verified,
};
use crate::store::listing::Listing;
use crate::store::{
    Admin, Cancelling, ClaimRequest, Counts, Edit, Heartbeat, Inserted, Pruned, Replaying,
    Retention, Store, Unread, Versions, Waiting, WakeListener,
};
use crate::time::Timestamp;

#[async_trait]
impl Store for PostgresStore {
    async fn insert(&self, jobs: &[NewJob]) -> Result<Vec<Inserted>, StoreError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        if is_plain(jobs) {
            return self.inserter.insert(jobs).await;
        }
        let insert = Insert {
            statements: &self.statements,
            now: self.manual_now(),
            jobs,
        };
        let inserted = self.transact(&self.pools.common, "insert", insert).await?;
        self.inserter.tell(jobs, &inserted);
        Ok(inserted)
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        if request.limit == 0 {
            return Ok(Vec::new());
        }
        let (_, claimed) = self.exchanged("claim", &[], Some(request)).await?;
        Ok(claimed)
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Settled>, StoreError> {
        if settlements.is_empty() {
            return Ok(Vec::new());
        }
        let (settled, _) = self.exchanged("settle", settlements, None).await?;
        Ok(settled)
    }

    async fn exchange(
        &self,
        settlements: &[Settlement],
        request: &ClaimRequest,
    ) -> Result<(Vec<Settled>, Vec<Claimed>), StoreError> {
        self.exchanged("exchange", settlements, Some(request)).await
    }

    async fn heartbeat(&self) -> Result<Box<dyn Heartbeat>, StoreError> {
        if self.pools.are_closed() {
            return Err(closed("heartbeat"));
        }
        let heartbeat = PostgresHeartbeat::open(
            self.options.clone(),
            Arc::clone(&self.statements),
            self.begin.clone(),
        )
        .await?;
        Ok(Box::new(heartbeat))
    }

    async fn expired(&self, count: usize) -> Result<Vec<JobRecord>, StoreError> {
        let look = Expired {
            inside: self.inside(),
            limit: count,
        };
        let (expired, set_aside, wake) = self.transact(&self.pools.worker, "expired", look).await?;
        aside::tell(&set_aside);
        if wake {
            self.woke();
        }
        Ok(expired)
    }

    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
        let asked = claim::Asked::new(request);
        let parameters = Parameters::none()
            .and(asked.queues)
            .and(asked.job_types)
            .and(asked.schemas)
            .and(i64::from(request.suspects.crashes))
            .and(limit(request.suspects.limit))
            .and(self.manual_now());
        let sql = &self.statements.next_due;
        let read = Read { sql, parameters };
        let worker = &self.pools.worker;
        let rows = self.execute(worker, "next_due", read).await?;
        let spans = all("next_due", &rows, |row| {
            let mut columns = Columns::of(row);
            let now = columns.instant()?;
            Ok(columns.instant_opt()?.map(|due| due.since(now)))
        })?;
        Ok(spans.into_iter().flatten().next())
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        if self.pools.are_closed() {
            return Err(closed("migrate"));
        }
        let mut conn = connect::connect(&self.options, "migrate").await?;
        let schema = &self.options.schema;
        schema::migrate(&mut conn, &self.begin, &self.statements, schema).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let parameters = Parameters::none().and(self.manual_now());
        let rows = self.read("now", &self.statements.clock, parameters).await?;
        let read = all("now", &rows, |row| Columns::of(row).instant())?;
        read.into_iter().next().ok_or_else(|| {
            StoreError::new(
                StoreErrorKind::Corrupt,
                "now",
                "Postgres gave no row where there is always one",
            )
        })
    }

    fn wakes(&self) -> WakeListener {
        self.wakes.listen()
    }

    async fn close(&self) {
        self.wakes.close().await;
        self.pools.close(&self.options).await;
    }
}

impl PostgresStore {
    async fn exchanged(
        &self,
        operation: &'static str,
        settlements: &[Settlement],
        request: Option<&ClaimRequest>,
    ) -> Result<(Vec<Settled>, Vec<Claimed>), StoreError> {
        let inside = self.inside();
        let request = request.filter(|request| request.limit > 0);
        let asked = request.map(|request| {
            let asked = claim::Asked::new(request);
            let (known, ticket) = self.lanes.recall(&asked, self.options.seam.elapsed());
            (request, asked, known, ticket)
        });
        let claim = asked.as_ref().map(|(request, asked, known, ticket)| Claim {
            statements: inside.statements,
            now: inside.now,
            request,
            asked,
            known: known.as_deref(),
            spare: ticket.spare,
        });
        let wanted = claim.as_ref().map_or(0, Claim::wanted);
        let work = Exchange {
            inside,
            settlements,
            claim,
            skips_held: false,
        };
        let Exchanged {
            settled,
            claiming,
            wake,
        } = self.exchange_around_held(operation, work).await?;
        if let Some((_, asked, _, ticket)) = asked {
            self.lanes.adapt(wanted, claiming.claimed.len());
            if let Some(lanes) = claiming.lanes {
                self.lanes.remember(ticket, asked, lanes);
            }
        }
        aside::tell(&claiming.set_aside);
        if wake {
            self.woke();
        }
        Ok((settled, claiming.claimed))
    }

    /// Waits a moment for a row that somebody else's transaction holds; then settles what is free,
    /// and claims, without it.
    async fn exchange_around_held(
        &self,
        operation: &'static str,
        work: Exchange<'_>,
    ) -> Result<Exchanged, StoreError> {
        let worker = &self.pools.worker;
        if work.settlements.is_empty() {
            return self.transact(worker, operation, work).await;
        }
        let how = (Form::Transaction, &self.begin_brief);
        match connect::run(worker, &self.options, how, operation, work).await {
            Err(error) if error::is_lock_timeout(&error) => {
                let skips_held = true;
                let work = Exchange { skips_held, ..work };
                self.transact(worker, operation, work).await
            }
            done => done,
        }
    }

    async fn replayed(
        &self,
        operation: &'static str,
        id: JobId,
        as_new: bool,
        edit: Option<&Edit>,
    ) -> Result<Replaying, StoreError> {
        let work = Replay {
            inside: self.inside(),
            id,
            as_new,
            edit,
        };
        let answer = self.transact(&self.pools.common, operation, work).await?;
        if answer == Replaying::Replayed {
            self.woke();
        }
        Ok(answer)
    }
}

#[async_trait]
impl Admin for PostgresStore {
    async fn job(&self, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        let parameters = Parameters::none().and(*id.as_uuid());
        let rows = self.read("job", &self.statements.job, parameters).await?;
        Ok(all("job", &rows, rows::record)?.pop())
    }

    async fn finished(
        &self,
        state: JobState,
        before: Option<(Timestamp, JobId)>,
        count: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        let mut listing = Listing::new(before, count);
        while let Some((before, left)) = listing.wanted() {
            let (at, id) = before.map(|(at, id)| (At(at), *id.as_uuid())).unzip();
            let parameters = Parameters::none()
                .and(state.as_str())
                .and(at)
                .and(id)
                .and(limit(left));
            let sql = &self.statements.finished;
            let rows = self.read("finished", sql, parameters).await?;
            listing.add(all("finished", &rows, rows::finished)?);
        }
        Ok(listing.jobs())
    }

    async fn attempts(&self, id: JobId) -> Result<Vec<Attempt>, StoreError> {
        let parameters = Parameters::none().and(*id.as_uuid());
        let sql = &self.statements.attempts;
        let rows = self.read("attempts", sql, parameters).await?;
        all("attempts", &rows, rows::attempt)
    }

    async fn cancel(&self, id: JobId) -> Result<Cancelling, StoreError> {
        let inside = self.inside();
        let (answer, wake) = self
            .transact(&self.pools.common, "cancel", Cancel { inside, id })
            .await?;
        if wake {
            self.woke();
        }
        Ok(answer)
    }

    async fn replay(&self, id: JobId, as_new: bool) -> Result<Replaying, StoreError> {
        self.replayed("replay", id, as_new, None).await
    }

    async fn replay_with(
        &self,
        id: JobId,
        as_new: bool,
        edit: &Edit,
    ) -> Result<Replaying, StoreError> {
        self.replayed("replay_with", id, as_new, Some(edit)).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let read = |row: &PgRow| {
            let mut columns = Columns::of(row);
            Ok((
                columns.parsed::<JobState>("status")?,
                columns.number::<u64>("count")?,
            ))
        };
        let sql = &self.statements.counts;
        let rows = self.read("counts", sql, Parameters::none()).await?;
        let mut counts = Counts::default();
        for (state, count) in all("counts", &rows, read)? {
            *counts.of_mut(state) += count;
        }
        Ok(counts)
    }

    async fn unread(
        &self,
        queues: &[QueueName],
        known: &[(JobType, u32)],
    ) -> Result<Vec<Unread>, StoreError> {
        self.counted_unread(queues, known).await
    }

    async fn waiting(&self) -> Result<Vec<Waiting>, StoreError> {
        self.counted_waiting().await
    }

    async fn waiting_sample(
        &self,
        job_type: &JobType,
        queue: &QueueName,
        schema: u32,
        after: Option<JobId>,
        count: usize,
    ) -> Result<Vec<JobRecord>, StoreError> {
        self.listed_waiting(job_type, queue, schema, after, count)
            .await
    }

    async fn verify(&self, limit: usize) -> Result<Verified, StoreError> {
        self.verified(limit).await
    }

    async fn prune(&self, retention: &Retention, count: usize) -> Result<Pruned, StoreError> {
        let work = Prune {
            inside: self.inside(),
            retention,
            limit: count,
        };
        self.transact(&self.pools.worker, "prune", work).await
    }
}

#[async_trait]
impl Versions for PostgresStore {
    async fn newest_version(&self, cache_key: &str) -> Result<Option<u64>, StoreError> {
        let sql = &self.statements.newest_version;
        let parameters = Parameters::none().and(cache_key);
        let rows = self.read("newest_version", sql, parameters).await?;
        let read = |row: &PgRow| Columns::of(row).number("version");
        Ok(all("newest_version", &rows, read)?.pop())
    }
}
