//! What still has to be read by a program, counted by the shape of its payload.

use crate::job::{JobType, QueueName};

/// How many jobs of a type, queue and payload schema may still have to be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The stored name of the kind of job.
    pub job_type: JobType,
    /// The queue that they are in: only workers that serve it run them.
    pub queue: QueueName,
    /// The number of the payload's shape.
    pub payload_schema: u32,
    /// Jobs that wait, whether due or not.
    pub queued: u64,
    /// Jobs under a lease: they are decoded again if they are tried again.
    pub processing: u64,
    /// Dead letters: they are decoded again if they are replayed.
    pub dead_letters: u64,
}

impl Waiting {
    /// Returns the number of those that wait or run, which is all but the dead letters.
    pub const fn live(&self) -> u64 {
        self.queued + self.processing
    }

    /// Returns the number of all of them.
    pub const fn total(&self) -> u64 {
        self.live() + self.dead_letters
    }
}

/// Waiting jobs of a type and payload schema that nobody here reads, in the queues that were asked
/// about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The stored name of the kind of job.
    pub job_type: JobType,
    /// The number of the payload's shape.
    pub payload_schema: u32,
    /// How many wait; of each queue at most [`UNREAD_MAX`] are counted.
    pub jobs: u64,
}

/// The most jobs of one queue, type and schema that [`unread`](super::Admin::unread) counts, so
/// that a crowd of them costs a worker little.
pub const UNREAD_MAX: u64 = 1_000;

/// The most queues with a type and schema in them that [`unread`](super::Admin::unread) counts jobs
/// of, so that many small crowds cost it little as well.
pub const UNREAD_LANES_MAX: usize = 2_000;
