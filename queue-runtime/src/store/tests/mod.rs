//! What the tests of several stores share.

pub(super) mod lively;
