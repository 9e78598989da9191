//! The `#[job]` attribute of queue-runtime, which turns an async function into a typed background job.
//!
//! Use it through `queue_runtime`, which re-exports everything here; the generated code and the runtime
//! fit together only in equal versions.
//!
//! Inside, tokens travel one way: `parse` finds out what was written, `validate` judges it and builds the
//! `model`, `expand` writes the items. `parse` never judges, `validate` never emits tokens, `expand` never
//! fails.

mod errors;
mod suggest;
mod spelling;
mod parse;
mod model;
mod validate;
mod expand;
mod classify;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod expansions;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use errors::Errors;
use parse::Item;

/// Turns an async function into a background job.
///
/// ```text
/// #[job(queue = "mail", retries = 5, timeout = "60s", dedupe = "user_id")]
/// pub async fn send_welcome(
///     ctx: JobContext,
///     mailer: Data<Mailer>,
///     user_id: UserId,
///     email: &str,
/// ) -> Result<(), JobError> {
///     mailer.send(email, ctx.attempt()).await?;
///     Ok(())
/// }
///
/// send_welcome::enqueue(&queue, user_id, "ada@example.org").await?;
/// queue.enqueue(SendWelcomeJob { user_id, email: "ada@example.org".into() }).await?;
/// send_welcome(JobContext::for_test(), Data::new(FakeMailer), user_id, "ada@example.org").await?;
/// ```
///
/// The function stays what it was and can be called directly, as the last line does. Beside it appear:
///
/// - `send_welcome::enqueue(&queue, ..)`, which takes the payload arguments as the function takes them and
///   does nothing until it is awaited, and `send_welcome::new(..)`, which only makes the payload;
/// - the payload struct `SendWelcomeJob`, with the function's visibility (`cleanup_job` gives `CleanupJob`).
///   Its `Debug` shows no values unless `derive(Debug)` asks for them;
/// - the registration, by which a worker in the same program finds the job.
///
/// To pass the job on from its module, re-export everything of that name: `pub use send_welcome::*` if the
/// module is called like the job, otherwise `pub use jobs::send_welcome`.
///
/// # Arguments
///
/// An argument is injected if its type is `JobContext` or `Data<..>`, or if it is marked `#[inject]`; every
/// other argument is payload. A payload type needs serde's `Serialize` and `Deserialize`, is owned, and
/// `Send + Sync`; `&str` is stored as a `String`. What stands on an argument:
///
/// | attribute | effect |
/// | --- | --- |
/// | `/// text` | becomes the doc of the struct's field |
/// | `#[inject]` | the worker supplies the value; the type implements `Inject` |
/// | `#[arg(default)]`, `#[arg(default = path)]` | the value for stored payloads that lack the field |
/// | `#[arg(rename = "uid")]` | the field's name in the stored payload |
/// | `#[arg(alias = "uid")]` | another name that is read too; may repeat |
///
/// A stored payload may hold unknown fields, and a missing `Option<T>` is `None`.
///
/// # Options
///
/// | option | value | default |
/// | --- | --- | --- |
/// | `name` | string, 1 to 120 of `A-Z a-z 0-9 . _ : - /`; what is stored | the function's name |
/// | `alias` | string; a former name whose stored jobs this function runs; may repeat | none |
/// | `queue` | string, 1 to 63 of `a-z 0-9 . _ -` | `"default"` |
/// | `retries` | 0 to 1000, after the first attempt: `retries = 5` makes six attempts | 4 |
/// | `backoff` | `"fixed(5s)"`, `"exponential(2s, max = 5m, jitter = 20%)"` | `exponential(2s, max = 5m, jitter = 20%)` |
/// | `timeout` | duration of one attempt, or `"none"` | `"5m"` |
/// | `deadline` | duration after the enqueue, from when it is not tried again | none |
/// | `priority` | -100 to 100, higher first | 0 |
/// | `dedupe` | a key: while one job has it, no second is enqueued | none |
/// | `dedupe_until` | `"finished"`, `"started"`, or a duration; needs `dedupe` | `"finished"` |
/// | `on_duplicate` | `"keep"`, `"replace"` (the waiting one), `"rerun"` (keep one waiting behind the running one); needs `dedupe` | `"keep"` |
/// | `idempotency` | a key: one request, one job | none |
/// | `idempotency_for` | how long that is remembered; needs `idempotency` | `"1h"` |
/// | `cache` | a key: the entry that the job's result refreshes; needs `version` | none |
/// | `version` | one payload field with the entity's version; needs `cache` | none |
/// | `retry_if` | path to a `fn(&E) -> bool`: whether this error is worth another attempt | decided by the error |
/// | `schema` | 1 to 1000000, the number of the payload's shape | 1 |
/// | `upcast` | path to a `fn(from: u32, fields: &mut PayloadFields) -> Result<(), JobError>`, which brings a payload from one schema to the next; needs `schema` | none: an older payload is read as it is |
/// | `payload` | a name for the payload struct | the function's, in camel case, with `Job` |
/// | `derive(..)` | derives for the payload struct, as in `derive(Clone, PartialEq)` | none |
/// | `crate` | absolute path to queue-runtime, if it is renamed or re-exported | `::queue_runtime` |
///
/// Reserved for a later version: `refresh`, `invalidates`, `newest`, `serial`, `limit`, `rate`,
/// `cron`, `tz`, `missed`, `overlap`, `state`.
///
/// **Durations** are one or more `<digits><unit>` without spaces; the units are `ms`, `s`, `m`, `h` and `d`:
/// `"90s"`, `"1h30m"`. The longest is `36500d`, of a deadline `3653d`, and of `dedupe_until` and
/// `idempotency_for` `366d`.
///
/// **Keys** name payload arguments as the function calls them, whatever they are stored as, and fields inside
/// them. `dedupe = "user_id, order.id"` and `dedupe(user_id, order.id)` are lists, whose values never run into
/// each other; `dedupe = "user-{user_id}"` is a template as in `format!`. Each value implements `KeyPart`:
/// integers, `bool`, `char`, strings and options of them do, floats and maps do not. In a template it also
/// implements `Display`. An argument in a key counts as used.
///
/// **Schemas** number the shape of the payload. A worker takes no job of a higher schema than it reads. A job of
/// a lower one goes through `upcast`, once per step, before it is decoded: stored under schema 1 and read by a
/// job of schema 3, it is given to `upcast(1, ..)` and then to `upcast(2, ..)`. An error or a panic there, and a
/// payload that does not fit, make the job a dead letter that keeps the payload as it was stored.
///
/// # Results
///
/// A job returns nothing or a `Result<T, E>`, under any alias. `T` is anything serde can write; it is not
/// kept. `E` is `JobError` or anything that converts into `Box<dyn Error + Send + Sync>`. An error is
/// retried unless trying again cannot help: because `JobError::permanent`, [`Classify`](macro@Classify) or
/// `retry_if` says so, or because the runtime recognises it. A job with `cache` returns `Refreshed<T>` or
/// `Result<Refreshed<T>, E>`; the runtime publishes the value, the job never writes the cache.
///
/// # What is found at compile time
///
/// Unknown, repeated and misspelt options; values of the wrong kind or out of range; durations and backoffs
/// that cannot be read; options that need another one, or could never take effect beside another; keys that
/// name no payload field, or a field that cannot be a key; functions of another signature behind an option; arguments that cannot be stored or injected; results and errors that cannot be recorded;
/// a future that is not `Send`; and every `enqueue` with wrong, swapped or missing arguments. All mistakes that
/// the attribute finds by itself show in one build, each at its place.
///
/// Not found at compile time, but when the worker is built: state that no `Data<T>` provides, and two jobs of
/// one name.
#[proc_macro_attribute]
pub fn job(
    attr: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand_job(attr.into(), item.into()).into()
}

/// Implements `Classify` for an error type: which of its values are worth another attempt.
///
/// ```text
/// #[derive(Debug, thiserror::Error, Classify)]
/// enum MailError {
///     #[job(permanent)]
///     #[error("no such address")]
///     NoSuchAddress,
///     #[job(retry)]
///     #[error("the server is busy")]
///     Busy,
///     #[error("something else")]
///     Other(#[from] std::io::Error),
/// }
/// ```
///
/// A job that returns this error dead-letters on `NoSuchAddress` at once and retries on `Busy`. Unmarked
/// variants are treated like any other error. On a struct the mark stands above the struct. If queue-runtime
/// is renamed, write `#[job(crate = ::path)]` above the type.
#[proc_macro_derive(Classify, attributes(job))]
pub fn classify(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    classify::classify(input.into()).into()
}

/// The item, the generated items if the function can be a job, and one error per mistake.
fn expand_job(attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let mut output = match parse::item(item.clone()) {
        Item::Function(function) => {
            let written = parse::options(attr, &mut errors);
            let job = validate::job(&written, &function, &mut errors);
            let items = job.as_ref().map(expand::items);
            let in_keys = || job.iter().flat_map(|job| job.keys.fields());
            // A key that could not be read may name any argument.
            let is_used = |name: &_| errors.count() > 0 || in_keys().any(|used| used == name);
            let function = function.cleaned(is_used);
            quote!(#function #items)
        }
        Item::Other { keyword } => {
            let found = keyword
                .as_ref()
                .map_or_else(|| "this item".to_owned(), |word| format!("a `{word}`"));
            let place = keyword.map_or_else(|| item.clone(), |word| word.into_token_stream());
            errors.at(
                place,
                format!("`#[job]` goes on an `async fn`, not on {found}"),
            );
            item
        }
        Item::Unreadable(error) => {
            errors.push(error);
            item
        }
    };
    output.extend(errors.into_tokens());
    output
}
