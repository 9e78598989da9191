//! The statements of each layout, each in a file of its own.

/// Where jobs live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The bare loop: one table, no lease, no history.
    Raw,
    /// Waiting and leased jobs in one table.
    A,
    /// Waiting and leased jobs in two tables.
    B,
}

/// How a claim finds and locks its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Lanes are found at each claim, candidates read without locks and locked one by one.
    Full,
    /// Lanes and where each goes on are remembered by the client.
    Bound,
    /// Lanes are found at each claim, each locks as many as the claim may take.
    Greedy,
}

pub(crate) const RAW_CLAIM: &str = include_str!("sql/raw/claim.sql");
pub(crate) const RAW_COMPLETE: &str = include_str!("sql/raw/complete.sql");

const A_CLAIM_FULL: &str = include_str!("sql/a/claim_full.sql");
const A_CLAIM_LANES: &str = include_str!("sql/a/claim_lanes.sql");
const A_CLAIM_GREEDY: &str = include_str!("sql/a/claim_greedy.sql");
const B_CLAIM_FULL: &str = include_str!("sql/b/claim_full.sql");
const B_CLAIM_LANES: &str = include_str!("sql/b/claim_lanes.sql");

impl Layout {
    pub(crate) fn tables(self) -> &'static str {
        match self {
            Self::Raw => include_str!("sql/raw/migrations/0001_tables.sql"),
            Self::A => include_str!("sql/a/migrations/0001_tables.sql"),
            Self::B => include_str!("sql/b/migrations/0001_tables.sql"),
        }
    }

    pub(crate) fn fill(self) -> &'static str {
        match self {
            Self::Raw => include_str!("sql/raw/fill.sql"),
            Self::A => include_str!("sql/a/fill.sql"),
            Self::B => include_str!("sql/b/fill.sql"),
        }
    }

    pub(crate) fn fill_finished(self) -> &'static str {
        match self {
            Self::Raw | Self::A => include_str!("sql/a/fill_finished.sql"),
            Self::B => include_str!("sql/b/fill_finished.sql"),
        }
    }

    pub(crate) fn claim(self, form: Form) -> &'static str {
        match (self, form) {
            (Self::Raw, _) => RAW_CLAIM,
            (Self::A, Form::Full) => A_CLAIM_FULL,
            (Self::A, Form::Bound) => A_CLAIM_LANES,
            (Self::A, Form::Greedy) => A_CLAIM_GREEDY,
            (Self::B, Form::Bound) => B_CLAIM_LANES,
            (Self::B, Form::Full | Form::Greedy) => B_CLAIM_FULL,
        }
    }

    pub(crate) fn discover(self) -> &'static str {
        match self {
            Self::Raw | Self::A => include_str!("sql/a/discover.sql"),
            Self::B => include_str!("sql/b/discover.sql"),
        }
    }

    pub(crate) fn settle(self) -> &'static str {
        match self {
            Self::Raw => RAW_COMPLETE,
            Self::A => include_str!("sql/a/settle.sql"),
            Self::B => include_str!("sql/b/settle.sql"),
        }
    }

    pub(crate) fn expired(self) -> &'static str {
        match self {
            Self::Raw | Self::A => include_str!("sql/a/expired.sql"),
            Self::B => include_str!("sql/b/expired.sql"),
        }
    }
}
