//! Worker and producer processes on a real store, killed and frozen while they work, and a checker
//! of what must hold whatever was done to them.
//!
//! A supervisor starts the processes, which are this program again in another part. Each of them
//! appends to a [`ledger`] of its own, in whole lines, so that a kill loses nothing that was
//! written. Afterwards the ledgers and the store make one [`history`], and the [`checker`] says
//! what of it breaks an invariant.
//!
//! | invariant | what | here |
//! | --- | --- | --- |
//! | I1 | accepted jobs are in the store, in one state each, at every sample | checked |
//! | I2 | a done job had its effect, a transactional one exactly once; none is missing | checked |
//! | I3 | a second effect only where a lease was lost, of a process that was interrupted | checked |
//! | I4 | no way out of a final state; one end for each job | checked |
//! | I5 | what is written about a running job carries its token; refused is refused | checked |
//! | I6 | one lease for each job at a time | checked; there are no serial keys yet |
//! | I7 | attempts and crashes within their budgets, and all counted | checked |
//! | I8 | one live job for each dedupe key; one job for each request | checked |
//! | I9 | outcome, steps, outbox and invalidations together | there are no steps, outbox and invalidations yet; a transactional effect is I2 |
//! | I10 | outbox rows and business rows | there is no outbox yet |
//! | I11, I12 | invalidations, versions of cache entries | there is no invalidation yet |
//! | I13 | `superseded` writes nothing | the suite `it`, by hand-moved time |
//! | I14 | all that is due is final soon after the last fault | checked |
//! | I15 | an idle process is quiet | needs a long run |
//! | I16 | nothing secret in any output | the suite `it` |
//!
//! The points at which a process can die are named in the runtime, behind its feature `failpoints`
//! (decision 0025); the supervisor arms one in one process.

pub mod ledger;
pub mod jobs;
pub mod history;
pub mod checker;
pub mod place;
pub mod part;
pub mod rig;
pub mod reading;
pub mod load;
pub mod matrix;
pub mod summary;
pub mod plan;
