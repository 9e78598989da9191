//! What takes a server of a test's own, or a pooler before it: wrong passwords, addresses at which
//! nobody answers, poolers that drop what they are told.
#![allow(
    clippy::disallowed_methods,
    reason = "real servers are waited for on the real clock"
)]

mod postgres;
