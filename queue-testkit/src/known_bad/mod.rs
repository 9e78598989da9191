//! Stores with one deliberate fault each, to prove that the suite would notice.
//!
//! A suite that never fails proves nothing. Each [`Fault`] is a mistake that real job stores have
//! made, planted before a store that keeps its promises; [`Planted`] opens such a store wherever
//! a [`Fixture`] is asked for. One mistake is not a store's but a worker's: [`OneRuntime`]. For
//! tests of the suite only, behind the feature `known-bad`.

mod twist;
mod planted;
mod guards;
mod batches;
mod clocks;
mod disguise;
mod dedupe;
mod requests;
mod one_runtime;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use queue_runtime::error::BoxError;
use queue_runtime::seam::Seam;
use queue_runtime::store::Store;

pub use one_runtime::OneRuntime;

use self::planted::PlantedStore;
use self::twist::Twist;
use crate::conformance::Fixture;

/// One deliberate mistake of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// None: the same store in the same wrapping, to compare with.
    Nothing,
    /// A result is applied to whatever run the job is in, not to the run that it came from.
    SettleById,
    /// A rescue takes whatever run the job is in, not the one whose lease was seen to run out.
    RescueById,
    /// A rescue does not look again whether the lease has run out.
    RescueOfARenewedLease,
    /// A dedupe key is looked up first and stored afterwards, with nothing to hold the two
    /// together.
    CheckThenInsert,
    /// Leases are granted and judged by the clock of the process, which goes ten minutes before
    /// the store's.
    ClockOfTheProcess,
    /// The first item of a batch that cannot be done ends the batch.
    BatchEndedByItsFirstBadItem,
    /// An attempt is counted when it ends, so a crash loses the count.
    AttemptNotCounted,
    /// An idempotency key goes when its window has passed, although its job is unfinished.
    RequestForgotten,
}

impl Fault {
    /// Every fault, without [`Nothing`](Self::Nothing).
    pub const ALL: [Self; 8] = [
        Self::SettleById,
        Self::RescueById,
        Self::RescueOfARenewedLease,
        Self::CheckThenInsert,
        Self::ClockOfTheProcess,
        Self::BatchEndedByItsFirstBadItem,
        Self::AttemptNotCounted,
        Self::RequestForgotten,
    ];

    /// Says in a few words what goes wrong in a store that has it.
    pub const fn breaks(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::SettleById => "a worker that lost its lease ends the run of another one",
            Self::RescueById => "a late rescue takes the next run from its worker",
            Self::RescueOfARenewedLease => "a lease renewed a moment ago is taken from its worker",
            Self::CheckThenInsert => "two live jobs hold one dedupe key",
            Self::ClockOfTheProcess => "leases end at other times than the store says",
            Self::BatchEndedByItsFirstBadItem => "one stale item hinders all after it",
            Self::AttemptNotCounted => "a job that kills its worker never uses up its attempts",
            Self::RequestForgotten => "one request makes two jobs",
        }
    }

    /// Names the case of the suite that is there for this fault, whoever else notices it.
    pub const fn caught_by(self) -> Option<&'static str> {
        Some(match self {
            Self::Nothing => return None,
            Self::SettleById => "a_late_settle_from_a_rescued_run_changes_nothing",
            Self::RescueById => "a_rescue_with_an_old_token_does_not_take_the_next_run",
            Self::RescueOfARenewedLease => "a_rescue_of_a_lease_renewed_a_moment_ago_is_refused",
            Self::CheckThenInsert => "a_hundred_equal_dedupe_keys_are_one_live_job",
            Self::ClockOfTheProcess => "a_lease_lasts_as_long_as_its_request_says",
            Self::BatchEndedByItsFirstBadItem => "a_refused_rescue_does_not_hinder_the_others",
            Self::AttemptNotCounted => "every_claim_counts_an_attempt",
            Self::RequestForgotten => "a_prune_removes_keys_whose_window_has_passed_and_no_others",
        })
    }

    fn twist(self) -> Arc<dyn Twist> {
        match self {
            Self::Nothing => Arc::new(twist::Straight),
            Self::SettleById => Arc::new(guards::ById { rescues: false }),
            Self::RescueById => Arc::new(guards::ById { rescues: true }),
            Self::RescueOfARenewedLease => Arc::new(guards::AnyLease),
            Self::CheckThenInsert => Arc::new(dedupe::CheckThenInsert::default()),
            Self::ClockOfTheProcess => Arc::new(clocks::OfTheProcess::default()),
            Self::BatchEndedByItsFirstBadItem => Arc::new(batches::EndedByABadItem),
            Self::AttemptNotCounted => Arc::new(batches::AttemptNotCounted),
            Self::RequestForgotten => Arc::new(requests::Forgotten::default()),
        }
    }
}

/// Opens the stores of another fixture with a fault planted before them.
pub struct Planted<F> {
    fixture: F,
    /// What the fault has to remember outlives a store that is opened again.
    twist: Arc<dyn Twist>,
}

impl<F: Fixture> Planted<F> {
    /// Plants a fault before every store of a fixture.
    pub fn new(fixture: F, fault: Fault) -> Self {
        Self {
            fixture,
            twist: fault.twist(),
        }
    }
}

impl<F> fmt::Debug for Planted<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planted").finish_non_exhaustive()
    }
}

#[async_trait]
impl<F: Fixture> Fixture for Planted<F> {
    async fn open(&self, seam: Arc<dyn Seam>) -> Result<Arc<dyn Store>, BoxError> {
        let store = self.fixture.open(seam).await?;
        Ok(Arc::new(PlantedStore::new(store, Arc::clone(&self.twist))))
    }

    fn missing(&self) -> Option<String> {
        self.fixture.missing()
    }

    async fn discard(&self) -> Result<(), BoxError> {
        self.fixture.discard().await
    }
}
