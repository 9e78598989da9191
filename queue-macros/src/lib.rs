//! queue-macros.
