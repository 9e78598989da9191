//! What three jobs expand to, as a person would write it, and how large it may become.
//!
//! The texts stand in `expansions/`. After a change of what is generated,
//! `UPDATE_EXPANSIONS=1 cargo test -p queue-macros` writes them anew; read them before they are committed.

use std::fmt::Write as _;
use std::{env, fs, path::Path};

use crate::expand_job;

/// The variable that has the texts written anew.
const UPDATE: &str = "UPDATE_EXPANSIONS";

/// The largest expansion of a job with three payload and two injected arguments, the function included.
const LINES_MAX: usize = 180;
const BYTES_MAX: usize = 9 * 1024;

/// Such a job, with the options of most jobs.
const USUAL_ATTR: &str = r#"
    name = "mail.welcome",
    queue = "mail",
    retries = 5,
    backoff = "exponential(1s, max = 1m)",
    timeout = "60s",
    dedupe = "user_id",
    on_duplicate = "rerun"
"#;
const USUAL_FN: &str = r#"
    /// Sends a welcome mail.
    pub async fn send_welcome(
        ctx: JobContext,
        mailer: Data<Mailer>,
        /// Who has signed up.
        user_id: UserId,
        email: &str,
        #[arg(default)] locale: Option<String>,
    ) -> Result<(), JobError> {
        mailer.send(email, ctx.attempt()).await?;
        Ok(())
    }
"#;

/// The expansion, formatted.
fn expansion(attr: &str, function: &str) -> String {
    let tokens = |text: &str| text.parse().expect("the case is made of tokens");
    let expanded = expand_job(tokens(attr), tokens(function));
    let file = syn::parse2(expanded).expect("what the macro writes is Rust");
    prettyplease::unparse(&file)
}

/// Compares with the text in `expansions/`, or writes it.
#[track_caller]
fn check(name: &str, attr: &str, function: &str) {
    let head =
        format!("//! What `#[job]` writes for a job that is {name}. Kept equal by a test.\n\n");
    let found = head + &expansion(attr, function);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("expansions/{name}.rs"));
    if env::var_os(UPDATE).is_some() {
        fs::write(&file, &found).expect("the folder is there and can be written to");
        return;
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == expected,
        "expansions/{name}.rs is not what the job expands to:\n{}\
         With {UPDATE}=1 the text is written anew.",
        difference(&expected, &found)
    );
}

/// The lines that differ, `-` for what the file has and `+` for what was found.
fn difference(expected: &str, found: &str) -> String {
    let (mut old, mut new): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), found.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    old.drain(..head);
    new.drain(..head);
    let ends = old.iter().rev().zip(new.iter().rev());
    let tail = ends.take_while(same).count();
    old.truncate(old.len() - tail);
    new.truncate(new.len() - tail);
    let mut text = format!("  from line {}:\n", head + 1);
    for (sign, lines) in [('-', old), ('+', new)] {
        for line in lines {
            let _ = writeln!(text, "{sign} {line}");
        }
    }
    text
}

#[test]
fn a_small_job_expands_to_what_is_written_down() {
    check("small", "", "async fn clean_up(folder: String) {}");
}

#[test]
fn a_usual_job_expands_to_what_is_written_down() {
    check("usual", USUAL_ATTR, USUAL_FN);
}

#[test]
fn a_job_with_keys_a_cache_and_an_upcast_expands_to_what_is_written_down() {
    check(
        "cached",
        r#"
            dedupe(product_id, shop.id),
            idempotency = "{product_id}/{version}",
            idempotency_for = "24h",
            cache = "product-{product_id}",
            version = "version",
            retry_if = is_temporary,
            schema = 3,
            upcast = to_next_schema,
            payload = RefreshProduct,
            derive(Clone, Debug)
        "#,
        r#"
            #[cfg(feature = "shop")]
            pub(crate) async fn refresh_product(
                product_id: u64,
                #[arg(rename = "store", alias = "branch")] shop: Shop,
                #[arg(default = first_version)] version: u64,
            ) -> Result<Refreshed<Product>, ShopError> {
                load(product_id, shop, version).await
            }
        "#,
    );
}

#[test]
fn a_job_of_five_arguments_expands_to_at_most_180_lines_and_9_kilobytes() {
    let text = expansion(USUAL_ATTR, USUAL_FN);
    let (lines, bytes) = (text.lines().count(), text.len());
    assert!(lines <= LINES_MAX, "{lines} lines");
    assert!(bytes <= BYTES_MAX, "{bytes} bytes");
}

#[test]
fn a_crate_of_a_hundred_jobs_stays_within_a_hundred_times_that() {
    const JOBS: usize = 100;
    let (mut lines, mut bytes) = (0, 0);
    for number in 0..JOBS {
        let attr = USUAL_ATTR.replace("mail.welcome", &format!("mail.welcome.{number}"));
        let function = USUAL_FN.replace("send_welcome", &format!("send_welcome_{number}"));
        let text = expansion(&attr, &function);
        lines += text.lines().count();
        bytes += text.len();
    }
    assert!(lines <= JOBS * LINES_MAX, "{lines} lines");
    assert!(bytes <= JOBS * BYTES_MAX, "{bytes} bytes");
}

#[test]
fn a_difference_shows_the_lines_that_changed_and_no_other() {
    let said = difference("a\nb\nc\nd\n", "a\nx\ny\nd\n");
    assert_eq!(said, "  from line 2:\n- b\n- c\n+ x\n+ y\n");
    assert_eq!(difference("a\n", ""), "  from line 1:\n- a\n");
    assert_eq!(difference("a\na\n", "a\n"), "  from line 2:\n- a\n");
}
