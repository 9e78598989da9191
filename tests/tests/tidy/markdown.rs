//! The little of Markdown that the rules read: tables, code in backticks, links, fenced programs.

/// The cells of each table row whose first cell is `wanted`; header and rule lines included.
pub(crate) fn rows(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<Vec<&str>> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix('|')?.strip_suffix('|'))
        .map(|row| row.split('|').map(str::trim).collect::<Vec<_>>())
        .filter(|cells| cells.first().is_some_and(|first| wanted(first)))
        .collect()
}

/// What stands in single backticks.
pub(crate) fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The targets of links, without their anchors; links to other hosts are left out.
pub(crate) fn local_links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://") && !target.starts_with('#'))
        .map(|target| target.split('#').next().unwrap_or(target))
}

/// The first program fenced as `language`.
pub(crate) fn first_program<'t>(text: &'t str, language: &str) -> Option<&'t str> {
    let fence = format!("```{language}\n");
    let begin = text.find(&fence)? + fence.len();
    let end = text[begin..].find("\n```")? + 1;
    Some(&text[begin..begin + end])
}

#[test]
fn tables_codes_links_and_programs_are_found() {
    let text = "| id | x |\n| --- | --- |\n| R-001 | `a`, [b](../c.md#d) and [e](https://f) |\n\
                ```rust\nfn a() {}\n```\n```rust\nfn b() {}\n```\n";
    let found = rows(text, |id| id.starts_with("R-"));
    assert_eq!(found, [["R-001", "`a`, [b](../c.md#d) and [e](https://f)"]]);
    assert_eq!(codes(found[0][1]).collect::<Vec<_>>(), ["a"]);
    assert_eq!(local_links(text).collect::<Vec<_>>(), ["../c.md"]);
    assert_eq!(first_program(text, "rust"), Some("fn a() {}\n"));
    assert_eq!(first_program(text, "sql"), None);
}
