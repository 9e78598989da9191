//! Rust source without its comments, with or without what its strings say.

/// Whether the text inside string literals is kept.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Strings {
    Kept,
    Emptied,
}

/// Returns `source` without comments; line breaks stay where they are.
pub(crate) fn without_comments(source: &str, strings: Strings) -> String {
    let mut rest = source;
    let mut code = String::with_capacity(source.len());
    while let Some(first) = rest.chars().next() {
        let (length, shown) = match literal_or_comment(rest, code.chars().next_back()) {
            Some(Piece::Comment(length)) => (length, breaks(&rest[..length])),
            Some(Piece::Text(length)) if strings == Strings::Emptied => {
                (length, format!("\"\"{}", breaks(&rest[..length])))
            }
            // A brace or a quote as a character is not one of the code's.
            Some(Piece::Character(length)) if strings == Strings::Emptied => (length, "''".into()),
            Some(Piece::Text(length) | Piece::Character(length)) => {
                (length, rest[..length].to_owned())
            }
            None => (first.len_utf8(), first.to_string()),
        };
        code.push_str(&shown);
        rest = &rest[length..];
    }
    code
}

/// The code of a file without comments, string contents and inline test modules.
pub(crate) fn shipped_code(source: &str) -> String {
    let mut code = without_comments(source, Strings::Emptied);
    while let Some(begin) = test_module(&code) {
        let Some(open) = code[begin..].find(['{', ';']).map(|at| begin + at) else {
            break;
        };
        let end = if code[open..].starts_with('{') {
            closing_brace(&code, open)
        } else {
            open + 1
        };
        code.replace_range(begin..end, "");
    }
    code
}

fn test_module(code: &str) -> Option<usize> {
    const ATTRIBUTE: &str = "#[cfg(test)]";
    code.match_indices(ATTRIBUTE).map(|(at, _)| at).find(|at| {
        let after = code[at + ATTRIBUTE.len()..].trim_start();
        after.starts_with("mod ") || after.starts_with("pub(crate) mod ")
    })
}

fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, character) in code[open..].char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + at + 1;
        }
    }
    code.len()
}

enum Piece {
    Comment(usize),
    Text(usize),
    Character(usize),
}

/// What starts at the head of `rest`, with its length in bytes.
fn literal_or_comment(rest: &str, before: Option<char>) -> Option<Piece> {
    if rest.starts_with("//") {
        return Some(Piece::Comment(rest.find('\n').unwrap_or(rest.len())));
    }
    if rest.starts_with("/*") {
        return Some(Piece::Comment(block_comment(rest)));
    }
    if rest.starts_with('"') {
        return Some(Piece::Text(quoted(rest)));
    }
    if rest.starts_with('\'') {
        return character(rest).map(Piece::Character);
    }
    // `r"…"`, `r#"…"#` and their `b` and `c` forms, but not an identifier that ends with `r`.
    if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let raw = ["br", "cr", "r"]
        .iter()
        .find_map(|prefix| rest.strip_prefix(prefix))?;
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let body = raw[hashes..].strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(hashes));
    let end = body
        .find(&closing)
        .map_or(body.len(), |at| at + closing.len());
    Some(Piece::Text(rest.len() - body.len() + end))
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `'x'` and `'\n'` are characters; `'a` of a lifetime is not.
fn character(rest: &str) -> Option<usize> {
    let inner = &rest[1..];
    if inner.starts_with('\\') {
        return inner[2..].find('\'').map(|at| at + 4);
    }
    let length = inner.chars().next()?.len_utf8();
    inner[length..].starts_with('\'').then_some(length + 2)
}

fn breaks(text: &str) -> String {
    "\n".repeat(text.matches('\n').count())
}

#[test]
fn comments_and_strings_go_and_everything_else_stays() {
    let check = |source: &str, expected: &str| {
        assert_eq!(
            without_comments(source, Strings::Emptied),
            expected,
            "{source}"
        );
    };
    check("a // crate::b\nc", "a \nc");
    check("a /* x /* y */\n z */ b", "a \n b");
    check(
        r#"f("a \" // b", 'x', '"', '\'', 'a)"#,
        r#"f("", '', '', '', 'a)"#,
    );
    check(
        "r#\"crate::a \" // \"# + br\"x\" + for\"y\"",
        "\"\" + \"\" + for\"\"",
    );
    assert_eq!(
        without_comments("f(\"//\") // x", Strings::Kept),
        "f(\"//\") "
    );
}

#[test]
fn a_test_module_is_not_shipped_code() {
    let source = "use a;\n#[cfg(test)]\nmod tests { use b; fn x() { \"}\" } }\nfn c() {}\n";
    assert_eq!(shipped_code(source), "use a;\n\nfn c() {}\n");
    assert_eq!(
        shipped_code("#[cfg(test)]\nuse a;\n"),
        "#[cfg(test)]\nuse a;\n"
    );
}
