//! One suite for every store that comes with the library: what a verb means does not change with
//! the store.

use queue_testkit::conformance::MemoryFixture;
use queue_testkit::conformance_suite;

conformance_suite!(memory, MemoryFixture; wakes);
