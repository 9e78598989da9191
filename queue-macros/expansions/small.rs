//! What `#[job]` writes for a job that is small. Kept equal by a test.

async fn clean_up(folder: String) {}
/// The payload of the job [`clean_up`](fn@clean_up), with its arguments as fields.
#[allow(dead_code, nonstandard_style, private_interfaces, clippy::type_complexity)]
struct CleanUpJob {
    /// The job's argument `folder`.
    folder: String,
}
impl ::core::fmt::Debug for CleanUpJob {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.write_str("CleanUpJob { folder: .. }")
    }
}
/// Makes and enqueues jobs that run [`clean_up`](fn@clean_up).
#[allow(dead_code, nonstandard_style)]
#[allow(missing_copy_implementations, missing_debug_implementations)]
struct clean_up {}
#[allow(dead_code, nonstandard_style, private_interfaces, clippy::all)]
impl clean_up {
    /// Makes the payload of one job, to be enqueued later.
    fn new(folder: String) -> CleanUpJob {
        CleanUpJob { folder }
    }
    /// Starts to enqueue one job; nothing happens until the answer is awaited.
    fn enqueue<'q>(
        queue: impl ::queue_runtime::private::EnqueueTarget<'q>,
        folder: String,
    ) -> ::queue_runtime::private::Enqueue<'q, CleanUpJob> {
        ::queue_runtime::private::Enqueue::new(queue, Self::new(folder))
    }
}
#[allow(deprecated, unused_imports, unused_variables, clippy::type_complexity)]
const _: () = {
    use ::queue_runtime::private as __q;
    static __JOB_DEF: __q::JobDef = __q::JobDef::new(
            "clean_up",
            __job_run,
            __q::Source {
                package: ::core::env!("CARGO_PKG_NAME"),
                module: ::core::module_path!(),
                file: ::core::file!(),
                line: ::core::line!(),
            },
        )
        .fields(
            &[__q::Field::new("folder", "String", <String as __q::PayloadArg>::traced)],
        )
        .needs(&[])
        .check(__q::check::<CleanUpJob>);
    impl __q::Job for CleanUpJob {
        const DEF: &'static __q::JobDef = &__JOB_DEF;
        fn encode(
            &self,
            w: &mut __q::PayloadWriter,
        ) -> __q::Result<(), __q::PayloadError> {
            <String as __q::PayloadArg>::put(&self.folder, "folder", w)?;
            __q::Ok(())
        }
        fn decode(r: &__q::PayloadReader<'_>) -> __q::Result<Self, __q::PayloadError> {
            __q::Ok(CleanUpJob {
                folder: <String as __q::PayloadArg>::take(r, "folder")?,
            })
        }
    }
    fn __job_run<'a>(cx: &'a __q::RunCx) -> __q::BoxFuture<'a, __q::RunResult> {
        __q::Box::pin(async move {
            let payload: CleanUpJob = __q::decode(cx)?;
            let call: __q::BoxFuture<'_, _> = __q::Box::pin(clean_up(payload.folder));
            __q::ended(
                <() as __q::JobReturn>::split(call.await),
                <<() as __q::JobReturn>::Ok as __q::JobOutput>::into_value,
                |error| {
                    use __q::{ByClassify as _, ByDefault as _};
                    (&__q::Probe(error)).class()
                },
                <<() as __q::JobReturn>::Err as __q::IntoJobError>::into_job_error,
            )
        })
    }
    __q::inventory::submit!(__q::Registration(& __JOB_DEF));
    const _: () = __q::abi_1();
};
