//! What a type that is not looked into is called.

use super::super::guide::Asked;

/// What identifies a type with rules of its own: its visitor if it has one of its own, else its
/// name.
pub(super) fn about(asked: &Asked) -> String {
    let visitor = short(asked.visitor);
    let serde = ["serde::", "serde_core::", "serde_json::"];
    let of_serde = serde.iter().any(|path| asked.visitor.starts_with(path));
    let own = !of_serde && !visitor.starts_with("__");
    if own {
        return visitor.trim_end_matches("Visitor").to_owned();
    }
    let mut owner = short(asked.owner);
    for wrapper in ["PhantomData<", "Option<", "Box<", "Arc<", "Rc<"] {
        let inner = owner.strip_prefix(wrapper);
        if let Some(inner) = inner.and_then(|inner| inner.strip_suffix('>')) {
            owner = inner.to_owned();
        }
    }
    if owner.starts_with("__") || owner.contains("__DeserializeWith") {
        // `deserialize_with`: its function is not shown.
        return format!("custom: {}", asked.expects);
    }
    owner
}

/// A type's name without the paths of modules, which change when code is moved.
fn short(name: &str) -> String {
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, c) in name.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    let mut text = String::new();
    for part in name[start..].split_inclusive(['<', '>', ',', ' ', '(', ')', '[', ']', '&']) {
        let tail = part.rfind("::").map_or(part, |at| &part[at + 2..]);
        text.push_str(tail);
    }
    text
}
