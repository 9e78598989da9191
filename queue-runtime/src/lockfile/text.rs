//! Writes `jobs.lock`: one block a job, one line a field, so that a diff shows what changed.

use std::fmt::Write as _;

use super::FORMAT;
use crate::job::Contract;
use crate::job::shape::{Shape, Struct};

const HEADER: &str = "\
# The jobs of this program, as the rows that may wait in a queue know them. Check this file in.
# A test compares it with the code. To bring it up to date: QUEUE_LOCKFILE=update cargo test
# Breaking changes are written only with QUEUE_LOCKFILE=accept-breaking.
";

/// Returns the text of the file for these contracts, sorted by name.
pub fn write(contracts: &[Contract]) -> String {
    let mut sorted: Vec<&Contract> = contracts.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut out = Lines {
        text: format!("{HEADER}format {FORMAT}\n"),
        depth: 0,
    };
    for contract in sorted {
        out.text.push('\n');
        out.job(contract);
    }
    out.text
}

struct Lines {
    text: String,
    depth: usize,
}

impl Lines {
    fn line(&mut self, line: &str) {
        let indent = "  ".repeat(self.depth);
        let _ = writeln!(self.text, "{indent}{line}");
    }

    fn job(&mut self, contract: &Contract) {
        self.line(&format!("job {}", name(&contract.name)));
        self.depth += 1;
        for alias in &contract.aliases {
            self.line(&format!("alias {}", name(alias)));
        }
        let upcast = if contract.upcast { " upcast" } else { "" };
        self.line(&format!("schema {}{upcast}", contract.schema));
        for (setting, value) in &contract.settings {
            self.line(&format!("{setting} {}", quoted_if_odd(value)));
        }
        self.line("payload");
        self.fields(&contract.payload);
        self.depth -= 1;
    }

    fn fields(&mut self, object: &Struct) {
        self.depth += 1;
        for field in &object.fields {
            let mark = if field.required { "" } else { "?" };
            let aliases: Vec<String> = field.aliases.iter().map(|alias| name(alias)).collect();
            let also = if aliases.is_empty() {
                String::new()
            } else {
                format!(" (also {})", aliases.join(", "))
            };
            self.shape(
                &format!("{}{mark}{also}: ", name(&field.name)),
                &field.shape,
            );
        }
        self.depth -= 1;
    }

    /// A line for a shape, and indented lines for what is inside it.
    fn shape(&mut self, before: &str, shape: &Shape) {
        self.line(&format!("{before}{}", head(shape)));
        self.block(shape);
    }

    fn block(&mut self, shape: &Shape) {
        match shape {
            Shape::Nullable(inner) | Shape::List(inner) => self.block(inner),
            Shape::Entries(key, value) if has_block(key) => {
                self.depth += 1;
                self.shape("key: ", key);
                self.shape("value: ", value);
                self.depth -= 1;
            }
            Shape::Entries(_, value) => self.block(value),
            Shape::Tuple(items) if repeated(items) => self.block(&items[0]),
            Shape::Tuple(items) => {
                self.depth += 1;
                for (at, item) in items.iter().enumerate() {
                    self.shape(&format!("{at}: "), item);
                }
                self.depth -= 1;
            }
            Shape::Struct(object) => self.fields(object),
            Shape::Enum(choice) => {
                self.depth += 1;
                for variant in &choice.variants {
                    match &variant.content {
                        None => self.line(&name(&variant.name)),
                        Some(content) => self.shape(&format!("{}: ", name(&variant.name)), content),
                    }
                }
                self.depth -= 1;
            }
            _ => {}
        }
    }
}

/// What stands on a shape's own line.
fn head(shape: &Shape) -> String {
    let named = |word: &str, own: &Option<String>| match own {
        Some(own) => format!("{word} {}", name(own)),
        None => word.to_owned(),
    };
    match shape {
        Shape::Nullable(inner) => format!("option of {}", head(inner)),
        Shape::List(item) => format!("list of {}", head(item)),
        Shape::Entries(key, _) if has_block(key) => "map".into(),
        Shape::Entries(key, value) => format!("map of {} to {}", head(key), head(value)),
        Shape::Tuple(items) if repeated(items) => {
            format!("{} times {}", items.len(), head(&items[0]))
        }
        Shape::Tuple(_) => "tuple".into(),
        Shape::Struct(object) => {
            let word = if object.closed {
                "closed struct"
            } else {
                "struct"
            };
            named(word, &object.name)
        }
        Shape::Enum(choice) => {
            let word = if choice.open { "open enum" } else { "enum" };
            named(word, &choice.name)
        }
        Shape::Same(of) => format!("same as {}", name(of)),
        Shape::Opaque(opaque) => {
            let about = serde_json::Value::from(opaque.about.as_str());
            format!("opaque {} {about}", name(&opaque.asked))
        }
        _ => shape.words(),
    }
}

fn repeated(items: &[Shape]) -> bool {
    items.len() > 1 && items.iter().all(|item| *item == items[0])
}

/// Whether a shape needs lines of its own.
fn has_block(shape: &Shape) -> bool {
    match shape {
        Shape::Nullable(inner) | Shape::List(inner) => has_block(inner),
        Shape::Entries(key, value) => has_block(key) || has_block(value),
        Shape::Tuple(items) => !repeated(items) || has_block(&items[0]),
        Shape::Struct(_) | Shape::Enum(_) => true,
        _ => false,
    }
}

/// A name as it stands if it is a plain word, else as a JSON string.
fn name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        serde_json::Value::from(name).to_string()
    }
}

fn quoted_if_odd(text: &str) -> String {
    let odd = text.is_empty() || text.starts_with('"') || text.trim() != text;
    if odd || text.chars().any(char::is_control) {
        serde_json::Value::from(text).to_string()
    } else {
        text.to_owned()
    }
}
