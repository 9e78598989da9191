//! What can happen in a history, as data that proptest can make and shrink.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use queue_runtime::job::DeadReason;

/// One step of a history. Jobs and leases are named by their position among all that there were,
/// counted round, so that every number means something however a history is shrunk.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Insert(Vec<Offer>),
    InsertAgain {
        job: usize,
    },
    Claim(Claim),
    Settle(Vec<(usize, Ending)>),
    Exchange(Vec<(usize, Ending)>, Claim),
    Extend {
        leases: Vec<usize>,
        seconds: u64,
    },
    Advance {
        millis: u64,
    },
    Rescue {
        limit: usize,
    },
    Cancel {
        job: usize,
    },
    Replay {
        job: usize,
        as_new: bool,
    },
    ReplayWith {
        job: usize,
        as_new: bool,
        edit: Editing,
    },
    Prune {
        seconds: u64,
        limit: usize,
    },
    /// A page of the final jobs in one of the final states; after a job, or the first one.
    Look {
        state: usize,
        after: Option<usize>,
        limit: usize,
    },
}

/// A job to insert, as small numbers.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) kind: usize,
    pub(crate) queue: usize,
    pub(crate) payload: usize,
    pub(crate) schema: u32,
    pub(crate) priority: i16,
    pub(crate) max_attempts: u32,
    pub(crate) due: When,
    pub(crate) deadline_seconds: Option<u64>,
    pub(crate) dedupe: Option<(usize, Until, Mode)>,
    pub(crate) idempotency: Option<(usize, usize, u64)>,
    pub(crate) cache: Option<(usize, u64)>,
}

/// Another payload, as small numbers.
#[derive(Clone, Debug)]
pub(crate) struct Editing {
    pub(crate) payload: usize,
    pub(crate) schema: u32,
    pub(crate) typed: Option<Typed>,
}

/// What a typed edit says besides.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) kind: usize,
    pub(crate) dedupe: Option<(usize, bool)>,
    pub(crate) cache: Option<(usize, u64)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    Now,
    After {
        seconds: u64,
    },
    /// So many milliseconds from now; an instant that has passed means now.
    At {
        millis: i64,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    Finished,
    Started,
    Seconds(u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    Keep,
    Replace,
    Rerun,
}

#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) worker: usize,
    pub(crate) limit: usize,
    /// Both queues, turned round or not.
    pub(crate) turned: bool,
    pub(crate) schema: u32,
    pub(crate) seconds: u64,
    /// From how many crashes a job is a suspect, and how many of them are taken.
    pub(crate) suspects: Option<(u32, usize)>,
}

/// How a run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    Done,
    Superseded,
    Retry { seconds: u64 },
    Snooze { seconds: u64 },
    HandedBack,
    Dead { reason: usize },
    CalledOff,
    Rescued,
}

/// Makes histories of up to 80 steps.
pub(crate) fn history() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..=80)
}

fn step() -> impl Strategy<Value = Step> {
    let endings = || vec((any_position(), ending()), 0..4);
    prop_oneof![
        8 => vec(offer(), 1..4).prop_map(Step::Insert),
        1 => any_position().prop_map(|job| Step::InsertAgain { job }),
        8 => claim().prop_map(Step::Claim),
        8 => endings().prop_map(Step::Settle),
        3 => (endings(), claim()).prop_map(|(endings, claim)| Step::Exchange(endings, claim)),
        3 => (vec(any_position(), 0..3), seconds())
            .prop_map(|(leases, seconds)| Step::Extend { leases, seconds }),
        6 => millis().prop_map(|millis| Step::Advance { millis }),
        4 => (0..4_usize).prop_map(|limit| Step::Rescue { limit }),
        3 => any_position().prop_map(|job| Step::Cancel { job }),
        4 => (any_position(), any::<bool>()).prop_map(|(job, as_new)| Step::Replay { job, as_new }),
        4 => (any_position(), any::<bool>(), editing())
            .prop_map(|(job, as_new, edit)| Step::ReplayWith { job, as_new, edit }),
        2 => (seconds(), 0..6_usize).prop_map(|(seconds, limit)| Step::Prune { seconds, limit }),
        1 => (0..3_usize, option::of(any_position()), 0..5_usize)
            .prop_map(|(state, after, limit)| Step::Look { state, after, limit }),
    ]
}

/// A position among the jobs or leases so far. Small numbers mean the newest.
fn any_position() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 0..4_usize, 1 => 0..64_usize]
}

fn seconds() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(10), Just(60)]
}

/// How long a key is remembered: often longer than a history lasts.
fn window() -> impl Strategy<Value = u64> {
    prop_oneof![1 => seconds(), 1 => Just(3_600)]
}

fn millis() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => Just(1),
        3 => Just(999),
        3 => Just(1_000),
        2 => Just(9_999),
        2 => Just(60_000),
        1 => Just(3_600_000)
    ]
}

fn offer() -> impl Strategy<Value = Offer> {
    let until = prop_oneof![
        3 => Just(Until::Finished),
        2 => Just(Until::Started),
        4 => window().prop_map(Until::Seconds),
    ];
    let mode = prop_oneof![Just(Mode::Keep), Just(Mode::Replace), Just(Mode::Rerun)];
    let whole = (
        (
            prop_oneof![2 => Just(0), 1 => Just(1_usize)],
            0..2_usize,
            0..3_usize,
            1..3_u32,
            -1..2_i16,
            1..4_u32,
        ),
        due(),
        option::weighted(0.2, seconds()),
        option::weighted(0.6, (0..2_usize, until, mode)),
        option::weighted(0.4, (0..2_usize, 0..2_usize, window())),
        option::weighted(0.3, (0..2_usize, 0..9_u64)),
    );
    whole.prop_map(
        |(small, due, deadline_seconds, dedupe, idempotency, cache)| {
            let (kind, queue, payload, schema, priority, max_attempts) = small;
            Offer {
                kind,
                queue,
                payload,
                schema,
                priority,
                max_attempts,
                due,
                deadline_seconds,
                dedupe,
                idempotency,
                cache,
            }
        },
    )
}

fn editing() -> impl Strategy<Value = Editing> {
    let typed = (
        prop_oneof![2 => Just(0), 1 => Just(1_usize)],
        option::weighted(0.8, (0..2_usize, any::<bool>())),
        option::weighted(0.3, (0..2_usize, 0..9_u64)),
    );
    let typed = typed.prop_map(|(kind, dedupe, cache)| Typed {
        kind,
        dedupe,
        cache,
    });
    let whole = (0..3_usize, 1..3_u32, option::weighted(0.7, typed));
    whole.prop_map(|(payload, schema, typed)| Editing {
        payload,
        schema,
        typed,
    })
}

fn due() -> impl Strategy<Value = When> {
    prop_oneof![
        6 => Just(When::Now),
        2 => seconds().prop_map(|seconds| When::After { seconds }),
        1 => (-1_000..60_000_i64).prop_map(|millis| When::At { millis }),
    ]
}

fn claim() -> impl Strategy<Value = Claim> {
    let suspects = option::weighted(0.3, (1..3_u32, 0..2_usize));
    let whole = (
        0..4_usize,
        0..5_usize,
        any::<bool>(),
        1..3_u32,
        seconds(),
        suspects,
    );
    whole.prop_map(|(worker, limit, turned, schema, seconds, suspects)| Claim {
        worker,
        limit,
        turned,
        schema,
        seconds,
        suspects,
    })
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        4 => Just(Ending::Done),
        1 => Just(Ending::Superseded),
        3 => seconds().prop_map(|seconds| Ending::Retry { seconds }),
        1 => seconds().prop_map(|seconds| Ending::Snooze { seconds }),
        1 => Just(Ending::HandedBack),
        2 => (0..DeadReason::ALL.len()).prop_map(|reason| Ending::Dead { reason }),
        1 => Just(Ending::CalledOff),
        1 => Just(Ending::Rescued),
    ]
}
