//! settle.
