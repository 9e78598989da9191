//! What `#[job]` writes for a job that is usual. Kept equal by a test.

/// Sends a welcome mail.
pub async fn send_welcome(
    ctx: JobContext,
    mailer: Data<Mailer>,
    #[allow(unused_variables)]
    user_id: UserId,
    email: &str,
    locale: Option<String>,
) -> Result<(), JobError> {
    mailer.send(email, ctx.attempt()).await?;
    Ok(())
}
/// The payload of the job [`send_welcome`](fn@send_welcome), with its arguments as fields.
#[allow(dead_code, nonstandard_style, private_interfaces, clippy::type_complexity)]
pub struct SendWelcomeJob {
    /// Who has signed up.
    pub user_id: UserId,
    /// The job's argument `email`.
    pub email: ::queue_runtime::private::String,
    /// The job's argument `locale`.
    pub locale: Option<String>,
}
impl ::core::fmt::Debug for SendWelcomeJob {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.write_str("SendWelcomeJob { user_id: .., email: .., locale: .. }")
    }
}
/// Makes and enqueues jobs that run [`send_welcome`](fn@send_welcome).
#[allow(dead_code, nonstandard_style)]
#[allow(missing_copy_implementations, missing_debug_implementations)]
pub struct send_welcome {}
#[allow(dead_code, nonstandard_style, private_interfaces, clippy::all)]
impl send_welcome {
    /// Makes the payload of one job, to be enqueued later.
    pub fn new(user_id: UserId, email: &str, locale: Option<String>) -> SendWelcomeJob {
        SendWelcomeJob {
            user_id,
            email: ::std::borrow::ToOwned::to_owned(email),
            locale,
        }
    }
    /// Starts to enqueue one job; nothing happens until the answer is awaited.
    pub fn enqueue<'q>(
        queue: impl ::queue_runtime::private::EnqueueTarget<'q>,
        user_id: UserId,
        email: &str,
        locale: Option<String>,
    ) -> ::queue_runtime::private::Enqueue<'q, SendWelcomeJob> {
        ::queue_runtime::private::Enqueue::new(queue, Self::new(user_id, email, locale))
    }
}
#[allow(deprecated, unused_imports, unused_variables, clippy::type_complexity)]
const _: () = {
    use ::queue_runtime::private as __q;
    static __JOB_DEF: __q::JobDef = __q::JobDef::new(
            "mail.welcome",
            __job_run,
            __q::Source {
                package: ::core::env!("CARGO_PKG_NAME"),
                module: ::core::module_path!(),
                file: ::core::file!(),
                line: ::core::line!(),
            },
        )
        .fields(
            &[
                __q::Field::new(
                    "user_id",
                    "UserId",
                    <UserId as __q::PayloadArg>::traced,
                ),
                __q::Field::new(
                    "email",
                    "String",
                    <__q::String as __q::PayloadArg>::traced,
                ),
                __q::Field::new(
                        "locale",
                        "Option<String>",
                        <Option<String> as __q::PayloadArg>::traced,
                    )
                    .default(),
            ],
        )
        .needs(
            &[
                __q::Need {
                    argument: "ctx",
                    type_name: <JobContext as __q::Inject>::type_name,
                    present: <JobContext as __q::Inject>::present,
                },
                __q::Need {
                    argument: "mailer",
                    type_name: <Data<Mailer> as __q::Inject>::type_name,
                    present: <Data<Mailer> as __q::Inject>::present,
                },
            ],
        )
        .check(__q::check::<SendWelcomeJob>)
        .queue("mail")
        .retries(5u32)
        .timeout(__q::Some(__q::Duration::from_millis(60000u64)))
        .backoff(__q::Backoff::Exponential {
            base: __q::Duration::from_millis(1000u64),
            max: __q::Duration::from_millis(60000u64),
            jitter_percent: 20u8,
        })
        .on_duplicate(__q::OnDuplicate::Rerun)
        .keys(__q::Some("user_id"), __q::None, __q::None);
    impl __q::Job for SendWelcomeJob {
        const DEF: &'static __q::JobDef = &__JOB_DEF;
        fn encode(
            &self,
            w: &mut __q::PayloadWriter,
        ) -> __q::Result<(), __q::PayloadError> {
            <UserId as __q::PayloadArg>::put(&self.user_id, "user_id", w)?;
            <__q::String as __q::PayloadArg>::put(&self.email, "email", w)?;
            <Option<String> as __q::PayloadArg>::put(&self.locale, "locale", w)?;
            __q::Ok(())
        }
        fn decode(r: &__q::PayloadReader<'_>) -> __q::Result<Self, __q::PayloadError> {
            __q::Ok(SendWelcomeJob {
                user_id: <UserId as __q::PayloadArg>::take(r, "user_id")?,
                email: <__q::String as __q::PayloadArg>::take(r, "email")?,
                locale: <Option<
                    String,
                > as __q::PayloadArg>::take_or(
                    r,
                    &["locale"],
                    <Option<String> as ::core::default::Default>::default,
                )?,
            })
        }
        fn dedupe_key(&self) -> __q::Option<__q::String> {
            let mut k = __q::KeyWriter::new();
            <UserId as __q::KeyPart>::write(&self.user_id, &mut k);
            __q::Some(k.finish())
        }
    }
    fn __job_run<'a>(cx: &'a __q::RunCx) -> __q::BoxFuture<'a, __q::RunResult> {
        __q::Box::pin(async move {
            let payload: SendWelcomeJob = __q::decode(cx)?;
            let injected_0 = <JobContext as __q::Inject>::inject(cx)?;
            let injected_1 = <Data<Mailer> as __q::Inject>::inject(cx)?;
            let call: __q::BoxFuture<'_, _> = __q::Box::pin(
                send_welcome(
                    injected_0,
                    injected_1,
                    payload.user_id,
                    &payload.email,
                    payload.locale,
                ),
            );
            __q::ended(
                <Result<(), JobError> as __q::JobReturn>::split(call.await),
                <<Result<
                    (),
                    JobError,
                > as __q::JobReturn>::Ok as __q::JobOutput>::into_value,
                |error| {
                    use __q::{ByClassify as _, ByDefault as _};
                    (&__q::Probe(error)).class()
                },
                <<Result<
                    (),
                    JobError,
                > as __q::JobReturn>::Err as __q::IntoJobError>::into_job_error,
            )
        })
    }
    __q::inventory::submit!(__q::Registration(& __JOB_DEF));
    const _: () = __q::abi_1();
};
