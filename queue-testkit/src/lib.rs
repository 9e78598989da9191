//! queue-testkit.
