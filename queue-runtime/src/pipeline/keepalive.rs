//! keepalive.
