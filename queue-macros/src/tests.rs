//! Tests of the whole macro without the compiler: tokens in, tokens and errors out.

use proc_macro2::TokenStream;

use crate::errors::Errors;
use crate::parse::{Item, item, options};
use crate::{expand_job, validate};

/// A job with three payload and two injected arguments.
const REFERENCE_ATTR: &str = r#"queue = "mail", retries = 5, timeout = "60s", dedupe = "user_id""#;
const REFERENCE_FN: &str = r#"
    /// Sends a welcome mail.
    pub async fn send_welcome(
        ctx: JobContext,
        mailer: Data<Mailer>,
        user_id: UserId,
        email: &str,
        locale: Option<String>,
    ) -> Result<(), JobError> {
        mailer.send(email, ctx.attempt()).await?;
        Ok(())
    }
"#;

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("the case is made of tokens")
}

/// The messages for one attribute on one function, in order.
fn messages(attr: &str, function: &str) -> Vec<String> {
    let mut errors = Errors::default();
    let written = options(tokens(attr), &mut errors);
    match item(tokens(function)) {
        Item::Function(function) => validate::job(&written, &function, &mut errors),
        _ => panic!("the case is a function: {function}"),
    };
    errors.messages()
}

#[test]
fn the_reference_job_has_no_mistakes() {
    assert_eq!(messages(REFERENCE_ATTR, REFERENCE_FN), Vec::<String>::new());
}

#[test]
fn each_mistake_in_an_option_is_one_error_that_shows_the_accepted_form() {
    #[track_caller]
    fn check(attr: &str, expected: &[&str]) {
        let function = "async fn f(ctx: JobContext, user_id: u64, order: Order) {}";
        assert_eq!(messages(attr, function), expected, "{attr}");
    }
    check(
        "retrys = 5",
        &["unknown `#[job]` option `retrys`; did you mean `retries`?"],
    );
    check(
        "max_retries = 5",
        &["unknown `#[job]` option `max_retries`; write `retries`, as in `retries = 5`"],
    );
    check(
        "retries = 5, retries = 6",
        &["option `retries` is given twice; keep one of them"],
    );
    check(
        "retries",
        &["option `retries` needs a value, as in `retries = 5`"],
    );
    check(
        "retries =",
        &["option `retries` needs a value, as in `retries = 5`"],
    );
    check(
        "retries 5",
        &["expected `=` after `retries`, as in `retries = 5`"],
    );
    check(
        "retries(5)",
        &["`retries` takes a whole number, as in `retries = 5`"],
    );
    check(
        "dedupe_for = \"1h\"",
        &[
            "unknown `#[job]` option `dedupe_for`; write `dedupe_until`, as in `dedupe_until = \"1h\"`",
        ],
    );
    check(
        "schema = 2, upcast = |_, _| Ok(())",
        &[
            "`upcast` takes the name of a function, not a closure; write a `fn` and name it here, as in \
             `upcast = to_next_schema`",
        ],
    );
    check(
        "retries = 5;",
        &["`retries` takes a whole number, as in `retries = 5`"],
    );
    check(
        "retries = \"5\"",
        &["`retries` takes a whole number, as in `retries = 5`"],
    );
    check(
        "retries = 5000",
        &["`retries` must be from 0 to 1000; found 5000"],
    );
    check(
        "retries = -1",
        &["`retries` must be from 0 to 1000; found -1"],
    );
    check(
        "retries = 99999999999999999999",
        &["`retries` must be from 0 to 1000; found 99999999999999999999"],
    );
    check("priority = -100, schema = 1, retries = 0", &[]);
    check(
        "schema = 0",
        &["`schema` must be from 1 to 1000000; found 0"],
    );
    check("timeout = \"none\"", &[]);
    check(
        "timeout = 60",
        &["`timeout` takes a duration in a string, as in `timeout = \"60s\"`"],
    );
    check(
        "timeout = \"0s\"",
        &[
            "`timeout`: a duration of zero makes no sense here; write `timeout = \"none\"` for no limit",
        ],
    );
    check(
        "deadline = \"4000d\"",
        &["`deadline`: `4000d` is too long; the longest is `3653d`"],
    );
    check(
        "dedupe(user_id), dedupe_until = \"2000d\"",
        &["`dedupe_until`: `2000d` is too long; the longest is `366d`"],
    );
    check(
        "serial = \"user_id\"",
        &["`serial` is reserved for a later version"],
    );
    check(
        "name = \"a\", alias = \"b\", alias = \"b\"",
        &["the alias \"b\" is given twice; keep one of them"],
    );
    check(
        "name = \"a\", alias = \"a\"",
        &["the alias \"a\" is the job's own name; leave it out"],
    );
    check(
        "derive = Clone",
        &["`derive` takes a list of derives, as in `derive(Clone, PartialEq)`"],
    );
    check(
        "crate = facade",
        &["`crate` takes an absolute path, as in `crate = ::my_facade::queue_runtime`"],
    );
    check(
        "dedupe = \"user_id, order.id\", dedupe_until = \"1h\", on_duplicate = \"replace\"",
        &[],
    );
    check("dedupe(user_id, order.id.0)", &[]);
    check("dedupe = \"u-{user_id}\"", &[]);
    check(
        "dedupe = user_id",
        &["`dedupe` takes payload fields, as in `dedupe = \"user_id\"`"],
    );
    check(
        "dedupe_until = \"started\"",
        &["`dedupe_until` needs `dedupe` beside it, as in `dedupe = \"user_id\"`"],
    );
    check(
        "dedupe(user_id), on_duplicate = \"replce\"",
        &[
            "`on_duplicate`: unknown value \"replce\"; write \"keep\", \"replace\" or \"rerun\"; did you mean `replace`?",
        ],
    );
    check(
        "cache(user_id), version(user_id, order)",
        &["`version` takes exactly one payload field, as in `version = \"version\"`"],
    );
    check(
        "cache(user_id)",
        &["`cache` needs `version` beside it, as in `version = \"version\"`"],
    );
    check(
        "dedupe(ctx)",
        &[
            "`dedupe`: `ctx` is injected, so it is no payload field; payload fields are: `user_id`, `order`",
        ],
    );
    check(
        "dedupe = \"user_id, ordr.id\"",
        &[
            "`dedupe`: no payload field `ordr`; did you mean `order`?\n\"user_id, ordr.id\"\n          ^^^^",
        ],
    );
    check(
        "retries = a, queue = 5, name, nmae = \"n\"",
        &[
            "unknown `#[job]` option `nmae`; did you mean `name`?",
            "`retries` takes a whole number, as in `retries = 5`",
            "`queue` takes a string, as in `queue = \"mail\"`",
            "option `name` needs a value, as in `name = \"mail.welcome\"`",
        ],
    );
}

#[test]
fn options_that_could_never_take_effect_together_are_one_error() {
    #[track_caller]
    fn check(attr: &str, expected: &[&str]) {
        let function = "async fn f(user_id: u64) -> Result<(), JobError> {}";
        assert_eq!(messages(attr, function), expected, "{attr}");
    }
    const DEADLINE: &str = "`deadline`: it is over before the first retry, which comes 1.6s after a failure at \
                            the earliest; write a longer one, a shorter `backoff`, or `retries = 0`";
    check("deadline = \"1600ms\"", &[DEADLINE]);
    check("deadline = \"1601ms\"", &[]);
    check("deadline = \"1s\", retries = 0", &[]);
    check("deadline = \"1s\", backoff = \"fixed(999ms)\"", &[]);
    check(
        "backoff = \"exponential(1m, max = 1h, jitter = 0%)\", deadline = \"59s\"",
        &[&DEADLINE.replace("1.6s", "60s")],
    );
    check("deadline = \"1m\", timeout = \"1h\"", &[]);
    // One that is wrong by itself is not judged against the others.
    check(
        "deadline = \"1s\", retries = 5000",
        &["`retries` must be from 0 to 1000; found 5000"],
    );

    check(
        "retries = 0, backoff = \"fixed(1s)\"",
        &[
            "`backoff` has no effect with `retries = 0`, which means that nothing is tried again; leave one of them out",
        ],
    );
    check(
        "retries = 0, retry_if = f",
        &[
            "`retry_if` has no effect with `retries = 0`, which means that nothing is tried again; leave one of them out",
        ],
    );
    assert_eq!(
        messages("retry_if = f", "async fn f() {}"),
        [
            "`retry_if` judges errors, and this job returns none; write `-> Result<(), E>`, or leave it out"
        ]
    );

    check("schema = 2, upcast = f", &[]);
    check(
        "upcast = f",
        &["`upcast` needs `schema` beside it, as in `schema = 2`"],
    );
    check(
        "schema = 1, upcast = f",
        &[
            "`upcast` reads payloads of a lower schema, and none is lower than 1; write the schema that the payload has now, as in `schema = 2`",
        ],
    );
    check(
        "schema = 0, upcast = f",
        &["`schema` must be from 1 to 1000000; found 0"],
    );
    check(
        "schema = 2, upcast = \"f\"",
        &["`upcast` takes a path to a function, as in `upcast = to_next_schema`"],
    );
    assert_eq!(
        messages("schema = 2, upcast = f", "async fn f(ctx: JobContext) {}"),
        ["`upcast` has nothing to change, since this job has no payload; leave it out"]
    );

    check(
        "dedupe(user_id), dedupe_until = \"started\", on_duplicate = \"replace\"",
        &[],
    );
    check(
        "dedupe(user_id), dedupe_until = \"finished\", on_duplicate = \"rerun\"",
        &[],
    );
    check(
        "dedupe(user_id), dedupe_until = \"started\", on_duplicate = \"rerun\"",
        &[
            "`on_duplicate`: \"rerun\" keeps a job waiting behind the one that runs, but with `dedupe_until = \"started\"` a job that runs holds no key, so the newcomer is stored in any case and may run beside it; leave one of the two options out",
        ],
    );
    check(
        "dedupe(user_id), dedupe_until = \"1h\", on_duplicate = \"rerun\"",
        &[
            "`on_duplicate`: \"rerun\" keeps a job waiting behind the one that runs, but a key that is held for a time stores no second job until the time is over; leave one of the two options out",
        ],
    );
}

#[test]
fn each_mistake_in_the_function_is_one_error_that_shows_the_accepted_form() {
    #[track_caller]
    fn check(function: &str, expected: &str) {
        assert_eq!(messages("", function), [expected], "{function}");
    }
    check(
        "fn f() {}",
        "a `#[job]` function is async; write `async fn`, and put blocking work into `tokio::task::spawn_blocking`",
    );
    check(
        "async fn f<'a>(a: &'a str, b: Cow<'a, str>, c: &'a Conf) {}",
        "a job has no lifetime parameters, since its payload is stored; take owned arguments, or `&str` without a lifetime",
    );
    check(
        "async fn f(a: &Conf) {}",
        "a payload is stored, so it cannot be borrowed as `&Conf`; write `Conf` (shared state is taken as `Data<Conf>`)",
    );
    check(
        "async fn f(a: &[u8]) {}",
        "a payload is stored, so it cannot be borrowed as `&[u8]`; write `Vec<u8>`",
    );
    check(
        "async fn f(a: &mut String) {}",
        "a payload is stored, so it cannot be borrowed as `&mut String`; write `String`",
    );
    check(
        "async fn f(a: &'static str) {}",
        "a payload is read back from the store, so it is never `'static`; write `&str`",
    );
    check(
        "async fn f(a: Option<&str>) {}",
        "a payload is stored, so its types own what they hold; `Option<&str>` borrows",
    );
    check(
        "async fn f(a: impl Into<String>) {}",
        "a job is stored and called later, so an argument has one concrete type, not `impl Into<String>`; write the type",
    );
    check(
        "async fn f(ctx: &JobContext) {}",
        "an injected argument is handed over by value; write `JobContext`",
    );
    check(
        "async fn f((a, b): (u8, u8)) {}",
        "an argument of a job is a plain name; take it apart in the body",
    );
    check(
        "async fn f(_: u8) {}",
        "a payload argument needs a name, under which it is stored; write `name: T`",
    );
    check(
        "async fn f(#[arg(defualt)] a: u8) {}",
        "unknown `#[arg]` option `defualt`; did you mean `default`?",
    );
    check(
        "async fn f(#[arg(rename = 5)] a: u8) {}",
        "`rename` takes a string, as in `rename = \"uid\"`",
    );
    check(
        "async fn f(#[arg(alias = \"a\\\"b\")] a: u8) {}",
        "`alias` holds `\\\"`; write a plain name, as in `alias = \"uid\"`",
    );
    check(
        "async fn f(#[arg(rename = \"b\")] a: u8, b: u8) {}",
        "`b` would be stored as \"b\", as `a` is; give it another name",
    );
    check(
        "async fn f(#[arg(default)] ctx: JobContext) {}",
        "`#[arg(..)]` has no effect on an injected argument, which is not stored; remove it",
    );
}

#[test]
fn a_wrong_option_leaves_the_items_in_place_and_a_wrong_signature_leaves_the_function() {
    let wrong_option =
        expand_job(tokens("retries = 5000"), tokens("async fn f(a: u8) {}")).to_string();
    assert!(wrong_option.contains("struct FJob"), "{wrong_option}");
    assert!(wrong_option.contains("submit"), "{wrong_option}");

    let wrong_signature =
        expand_job(TokenStream::new(), tokens("fn f(#[arg(default)] a: u8) {}")).to_string();
    assert!(
        !wrong_signature.contains("struct FJob"),
        "{wrong_signature}"
    );
    assert!(
        wrong_signature.starts_with("fn f (# [allow (unused_variables)] a : u8) { }"),
        "{wrong_signature}"
    );
}

#[test]
fn a_half_typed_body_is_passed_on_unread() {
    let expanded =
        expand_job(TokenStream::new(), tokens("async fn f(a: u8) { a. let }")).to_string();
    assert!(expanded.contains("{ a . let }"), "{expanded}");
    assert!(!expanded.contains("compile_error"), "{expanded}");
}

#[test]
fn a_key_says_what_to_write_for_a_stored_name_an_option_and_a_path_through_one() {
    #[track_caller]
    fn check(key: &str, expected: &str) {
        let function = "async fn f(id: Option<u64>, order: Option<Order>, lines: Vec<Line>,
            #[arg(rename = \"uid\", alias = \"user\")] user_id: u64) {}";
        let said = messages(&format!("dedupe = \"{key}\""), function);
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!(said[0].lines().next(), Some(expected));
    }
    check(
        "u:{id}-{user_id}",
        "`dedupe`: `id` may be absent, which no template can show; write the list form, \
         `dedupe = \"id, user_id\"`",
    );
    check(
        "uid",
        "`dedupe`: `uid` is a stored name, and a key takes the names of arguments; write `user_id`",
    );
    check(
        "u:{user}",
        "`dedupe`: `user` is a stored name, and a key takes the names of arguments; write `user_id`",
    );
    check(
        "order.id",
        "`dedupe`: a path cannot go through an `Option`, which `order` is; take `id` as an argument of \
         its own",
    );
    check(
        "user_id, lines.0",
        "`dedupe`: a path cannot go through a `Vec`, which `lines` is; take that part as an argument of its own",
    );
}

#[test]
fn a_function_of_the_wrong_form_hides_no_mistake_in_a_key() {
    #[track_caller]
    fn check(function: &str, expected: &[&str]) {
        let said = messages("dedupe = \"user_idd\"", function);
        let first_lines: Vec<_> = said.iter().filter_map(|said| said.lines().next()).collect();
        assert_eq!(first_lines, expected, "{function}");
    }
    let unknown = "`dedupe`: no payload field `user_idd`; did you mean `user_id`?";
    check(
        "fn f(user_id: u64) {}",
        &[
            "a `#[job]` function is async; write `async fn`, and put blocking work into \
             `tokio::task::spawn_blocking`",
            unknown,
        ],
    );
    check(
        "async fn f(user_id: u64, names: &[String]) {}",
        &[
            "a payload is stored, so it cannot be borrowed as `&[String]`; write `Vec<String>`",
            unknown,
        ],
    );
    // A borrowed argument that the key does name, and one whose name nobody knows: no second error.
    check(
        "async fn f(user_idd: &[String]) {}",
        &["a payload is stored, so it cannot be borrowed as `&[String]`; write `Vec<String>`"],
    );
    check(
        "async fn f((user_idd, b): (u64, u64)) {}",
        &["an argument of a job is a plain name; take it apart in the body"],
    );
}

#[test]
fn serde_on_an_argument_is_answered_with_what_to_write() {
    #[track_caller]
    fn check(attr: &str, expected: &str) {
        let function = format!("async fn f({attr} user_id: u64) {{}}");
        assert_eq!(messages("", &function), [expected]);
        let written = expand_job(TokenStream::new(), tokens(&function)).to_string();
        assert!(!written.contains("# [serde"), "{written}");
    }
    check(
        "#[serde(default)]",
        "`#[serde(..)]` has no effect on an argument of a job; write `#[arg(default)]`",
    );
    check(
        "#[serde(rename = \"uid\", alias = \"user\")]",
        "`#[serde(..)]` has no effect on an argument of a job; write \
         `#[arg(rename = \"uid\", alias = \"user\")]`",
    );
    check(
        "#[serde(with = \"hex\")]",
        "`#[serde(..)]` has no effect on an argument of a job; `#[arg(..)]` takes `default`, `rename`, \
         `alias`, and whatever else serde can do goes on a type of your own",
    );
    check(
        "#[inject] #[serde(default)]",
        "`#[serde(..)]` has no effect on an injected argument, which is not stored; remove it",
    );
}

#[test]
fn a_second_job_attribute_is_one_error_and_is_taken_off() {
    let function =
        "#[queue_runtime::job(retries = 3)] #[job(retries = 4)] async fn f(user_id: u64) {}";
    let expected =
        "`#[job]` stands on this function more than once; keep one of them, with all the options";
    assert_eq!(messages("", function), [expected]);
    let written = expand_job(TokenStream::new(), tokens(function)).to_string();
    assert!(!written.contains("retries"), "{written}");
}
