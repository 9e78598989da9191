//! queue-runtime.
