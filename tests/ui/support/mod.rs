//! What the compile-pass cases need to look at a generated job from outside.
#![allow(dead_code)]

use queue_runtime::Job;
use queue_runtime::private::{PayloadReader, PayloadWriter};
use serde_json::{Map, Value};

/// The payload as it would be stored.
pub fn stored<J: Job>(job: &J) -> Value {
    let mut writer = PayloadWriter::default();
    job.encode(&mut writer).expect("the payload of a case can be stored");
    Value::Object(writer.0)
}

/// The payload read back from what was stored.
pub fn read<J: Job>(stored: &Value) -> J {
    let fields: &Map<String, Value> = stored.as_object().expect("a payload is an object");
    J::decode(&PayloadReader(fields)).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs `future` to its end on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime without I/O needs nothing from the system")
        .block_on(future)
}
