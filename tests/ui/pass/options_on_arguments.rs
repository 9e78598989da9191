//! `#[arg(..)]` decides how a field is stored and what an older payload may lack.

use queue_runtime::job;

#[path = "../support/mod.rs"]
mod support;

fn three() -> u32 {
    3
}

#[job]
async fn evolved(
    #[arg(rename = "uid")] user_id: u64,
    #[arg(alias = "mail", alias = "address")] email: &str,
    #[arg(default)] locale: String,
    #[arg(default = three, alias = "copies")] count: u32,
) {
    let _ = (user_id, email, locale, count);
}

pub fn main() {
    let made = evolved::new(7, "a", "de".to_owned(), 2);
    let expected = r#"{"uid":7,"email":"a","locale":"de","count":2}"#;
    assert_eq!(support::stored(&made), expected);

    let old: EvolvedJob = support::read(r#"{"uid":7,"address":"b"}"#);
    assert_eq!((old.email.as_str(), old.locale.as_str(), old.count), ("b", "", 3));
    let older: EvolvedJob = support::read(r#"{"uid":7,"mail":"c","copies":9}"#);
    assert_eq!((older.email.as_str(), older.count), ("c", 9));
}
