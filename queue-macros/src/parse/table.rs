//! The table of options: what exists, what it takes, and how to write it.
//!
//! Error messages take their words from here, so that an option is described in one way everywhere.

/// One row of the table of options.
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    /// What the value is, to complete "`retries` takes …".
    pub(crate) takes: &'static str,
    pub(crate) example: &'static str,
    pub(crate) status: Status,
}

/// Whether an option works, and how often it may stand in one attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Once,
    Repeatable,
    Reserved,
}

/// Every option of `#[job(..)]`, in the order of the documentation.
pub(crate) const OPTIONS: &[Spec] = &[
    once("name", "a string", "name = \"mail.welcome\""),
    Spec {
        status: Status::Repeatable,
        ..once("alias", "a string", "alias = \"mail.hello\"")
    },
    once("queue", "a string", "queue = \"mail\""),
    once("retries", "a whole number", "retries = 5"),
    once(
        "backoff",
        "a string",
        "backoff = \"exponential(2s, max = 5m)\"",
    ),
    once("timeout", "a duration in a string", "timeout = \"60s\""),
    once("deadline", "a duration in a string", "deadline = \"1h\""),
    once("priority", "a whole number", "priority = 10"),
    once("dedupe", "payload fields", "dedupe = \"user_id\""),
    once("dedupe_until", "a string", "dedupe_until = \"started\""),
    once("on_duplicate", "a string", "on_duplicate = \"replace\""),
    once(
        "idempotency",
        "payload fields",
        "idempotency = \"request_id\"",
    ),
    once(
        "idempotency_for",
        "a duration in a string",
        "idempotency_for = \"24h\"",
    ),
    once(
        "cache",
        "payload fields",
        "cache = \"product-{product_id}\"",
    ),
    once("version", "one payload field", "version = \"version\""),
    once(
        "retry_if",
        "a path to a function",
        "retry_if = is_temporary",
    ),
    once("schema", "a whole number", "schema = 2"),
    once("upcast", "a path to a function", "upcast = to_next_schema"),
    once(
        "payload",
        "a name for the payload struct",
        "payload = WelcomeMail",
    ),
    once("derive", "a list of derives", "derive(Clone, PartialEq)"),
    once(
        "crate",
        "an absolute path",
        "crate = ::my_facade::queue_runtime",
    ),
    reserved("refresh"),
    reserved("invalidates"),
    reserved("newest"),
    reserved("serial"),
    reserved("limit"),
    reserved("rate"),
    reserved("cron"),
    reserved("tz"),
    reserved("missed"),
    reserved("overlap"),
    reserved("state"),
];

/// What to write for an option of another framework, by the name that it has there.
pub(crate) fn foreign(name: &str) -> Option<&'static str> {
    let instead = match name {
        "max_attempts" | "attempts" => {
            "write `retries`, which does not count the first attempt: `retries = 4` makes five"
        }
        "retry" | "max_retries" => "write `retries`, as in `retries = 5`",
        "unique" | "unique_for" | "unique_by" | "job_key" => {
            "write `dedupe`, as in `dedupe = \"user_id\"`, and `dedupe_until` for how long"
        }
        "dedupe_for" | "dedupe_window" => "write `dedupe_until`, as in `dedupe_until = \"1h\"`",
        "ttl" | "expires_in" => {
            "write `deadline`, as in `deadline = \"1h\"`: after it, the job is not tried again"
        }
        "delay" | "scheduled_at" | "schedule" | "run_at" => {
            "when a job runs is said where it is enqueued, as in \
             `send::enqueue(&queue, ..).delay(..)`"
        }
        "concurrency" => {
            "how many jobs run at once is the worker's, as in \
             `Worker::builder(&queue).concurrency(10)`"
        }
        _ => return None,
    };
    Some(instead)
}

const fn once(name: &'static str, takes: &'static str, example: &'static str) -> Spec {
    Spec {
        name,
        takes,
        example,
        status: Status::Once,
    }
}

const fn reserved(name: &'static str) -> Spec {
    Spec {
        name,
        takes: "",
        example: "",
        status: Status::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_name_is_no_option() {
        let named = OPTIONS.iter().filter(|spec| foreign(spec.name).is_some());
        assert_eq!(named.count(), 0);
    }

    #[test]
    fn no_option_is_listed_twice() {
        let mut names: Vec<&str> = OPTIONS.iter().map(|spec| spec.name).collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
    }
}
