//! The paths inside the crate that a piece of Rust code names, in `use` lines and elsewhere.
//!
//! Reads words and `::`, not the language: enough for `use` trees with groups, for `self`,
//! `super`, modules declared in the same file, and modules written inline.

use std::collections::BTreeSet;

/// Every path in `code` that starts at the crate root, here, above, or at a module declared here.
pub(crate) fn paths_in(code: &str, module: &[String]) -> Vec<Vec<String>> {
    let tokens = tokens(code);
    let declared = tokens
        .windows(3)
        .filter(|words| words[0] == "mod" && words[2] == ";");
    let children: BTreeSet<&str> = declared.map(|words| words[1]).collect();
    let mut inline: Vec<(String, u32)> = Vec::new();
    let mut depth = 0;
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let previous = at.checked_sub(1).map(|before| tokens[before]);
        match tokens[at] {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                inline.retain(|(_, opened)| *opened <= depth);
            }
            name if previous == Some("mod") && tokens.get(at + 1) == Some(&"{") => {
                inline.push((name.to_owned(), depth + 1));
            }
            name if tokens.get(at + 1) == Some(&"::") && !matches!(previous, Some("::" | ".")) => {
                let mut base = module.to_vec();
                base.extend(inline.iter().map(|(name, _)| name.clone()));
                if let Some(base) = start(name, base, &children) {
                    at = tree_of(&tokens, at + 1, &base, &mut found);
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Where a path begins, if `first` is a word that says so.
fn start(first: &str, mut here: Vec<String>, children: &BTreeSet<&str>) -> Option<Vec<String>> {
    match first {
        "crate" => return Some(vec![]),
        "self" => {}
        "super" => drop(here.pop()),
        child if children.contains(child) => here.push(child.to_owned()),
        _ => return None,
    }
    Some(here)
}

/// Reads `::a::{b, c::d}` from `at` on, collects full paths, and returns the place after it.
fn tree_of(tokens: &[&str], mut at: usize, base: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut path = base.to_vec();
    while tokens.get(at) == Some(&"::") {
        at += 1;
        match tokens.get(at) {
            Some(&"{") => return group_of(tokens, at + 1, &path, found),
            Some(&"super") => drop(path.pop()),
            Some(&segment) if is_word(segment) => path.push(segment.to_owned()),
            _ => break,
        }
        at += 1;
    }
    found.push(path);
    at
}

fn group_of(
    tokens: &[&str],
    mut at: usize,
    base: &[String],
    found: &mut Vec<Vec<String>>,
) -> usize {
    while let Some(&token) = tokens.get(at) {
        match token {
            "}" => return at + 1,
            "," => at += 1,
            "as" => at += 2,
            "self" | "*" => {
                found.push(base.to_vec());
                at += 1;
            }
            segment => {
                let mut path = base.to_vec();
                path.push(segment.to_owned());
                at = tree_of(tokens, at + 1, &path, found);
            }
        }
    }
    at
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::`, and single characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let inside = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            _ if inside(first) => rest.find(|c| !inside(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

#[test]
fn paths_are_found_in_every_form() {
    let check = |code: &str, expected: &[&str]| {
        let module = ["store".to_owned(), "sqlite".to_owned()];
        let found: Vec<String> = paths_in(code, &module)
            .iter()
            .map(|p| p.join("::"))
            .collect();
        assert_eq!(found, expected, "{code}");
    };
    check("use crate::job::JobId;", &["job::JobId"]);
    check(
        "use crate::{self, job::{ids::X as Y, *}, time};",
        &["", "job::ids::X", "job", "time"],
    );
    check("use super::super::time::T;", &["time::T"]);
    check(
        "fn f() -> self::R { super::memory::open() }",
        &["store::sqlite::R", "store::memory::open"],
    );
    check(
        "mod rows; use rows::R; let x = rows::S;",
        &["store::sqlite::rows::R", "store::sqlite::rows::S"],
    );
    check(
        "mod inner { use super::X; } use super::Y;",
        &["store::sqlite::X", "store::Y"],
    );
    check(
        "use std::x; pub(crate) fn f() { a.self_::b(); Self::new() }",
        &[],
    );
}
