//! Edits of payloads and jobs, each labelled with what it does to rows that wait and to old workers.
//!
//! The labels are proved twice: what the comparison of the two builds says has to agree with the
//! label, and the label with what decoding really does to values of the one type in the other.
#![allow(
    dead_code,
    reason = "payloads are stored and read; nobody uses what is in them"
)]

mod edit;
mod fields;
mod numbers;
mod choices;
mod forms;
mod opaque;
mod jobs;
mod shapes;
mod lockfile;
mod properties;
mod deploy;
