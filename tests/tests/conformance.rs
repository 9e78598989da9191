//! One suite for every store that comes with the library: what a verb means does not change with
//! the store.

use queue_testkit::conformance::{MemoryFixture, PostgresFixture, SqliteFixture};
use queue_testkit::conformance_suite;

conformance_suite!(memory, MemoryFixture; wakes);
conformance_suite!(sqlite, SqliteFixture::new(); wakes, durable);
conformance_suite!(postgres, PostgresFixture::new(); wakes, durable);
