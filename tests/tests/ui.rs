//! The `#[job]` attribute as the compiler sees it: what it accepts, what it refuses, and in which words.
//!
//! Each file under `ui/pass_alone` is a program that must compile and run as a crate of its own (the others
//! are in `accepted.rs`); each under `ui/fail` must be refused with exactly the errors beside it. After a change of wording, `TRYBUILD=overwrite` writes them anew;
//! read them before they are committed.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn jobs_that_need_a_crate_of_their_own_are_accepted() {
    trybuild::TestCases::new().pass("ui/pass_alone/*.rs");
}

#[test]
fn refused_jobs_are_refused_in_the_words_beside_them() {
    trybuild::TestCases::new().compile_fail("ui/fail/*.rs");
}

/// Each case opens with its number of mistakes, as in `//! One error: at the second one.`
#[test]
fn every_mistake_is_exactly_one_error() {
    let cases = cases("ui/fail");
    assert!(cases.len() >= 45, "only {} cases", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let (declared, found) = (declared(case), found(case));
            (declared != Some(found))
                .then(|| format!("{}: declares {declared:?}, has {found}", case.display()))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(&folder).expect("the folder of the cases is there");
    let paths = entries.map(|entry| entry.expect("a folder can be listed").path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

fn declared(case: &Path) -> Option<usize> {
    const NUMBERS: [&str; 8] = [
        "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight",
    ];
    let text = fs::read_to_string(case).expect("a case can be read");
    let word = text.strip_prefix("//! ")?.split(' ').next()?;
    NUMBERS
        .iter()
        .position(|number| *number == word)
        .map(|index| index + 1)
}

fn found(case: &Path) -> usize {
    let text = fs::read_to_string(case.with_extension("stderr")).unwrap_or_default();
    text.lines()
        .filter(|line| line.starts_with("error"))
        .count()
}
