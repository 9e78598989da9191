//! What the compile-pass cases need to look at a generated job from outside.
#![allow(dead_code)]

use queue_runtime::Job;
use queue_runtime::private::{PayloadReader, PayloadWriter};

/// The payload as it would be stored.
pub fn stored<J: Job>(job: &J) -> String {
    let mut writer = PayloadWriter::new();
    job.encode(&mut writer)
        .expect("the payload of a case can be stored");
    writer.finish()
}

/// The payload read back from what was stored.
pub fn read<J: Job>(stored: &str) -> J {
    let reader = PayloadReader::new(stored).expect("a payload is an object");
    J::decode(&reader).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs `future` to its end on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime without I/O needs nothing from the system")
        .block_on(future)
}
