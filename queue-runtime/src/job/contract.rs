//! What a job promises to rows that wait: the part of its definition that a deploy can break.

use super::shape::Struct;

/// A job as it is recorded in `jobs.lock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The stable name.
    pub name: String,
    /// Other names whose rows it runs, sorted.
    pub aliases: Vec<String>,
    /// The number of its payload's shape.
    pub schema: u32,
    /// Whether it rewrites payloads of older schemas before it reads them.
    pub upcast: bool,
    /// Its settings as texts, sorted by name: `queue`, `retries` and so on.
    pub settings: Vec<(String, String)>,
    /// What it reads.
    pub payload: Struct,
}

impl Contract {
    /// Every stored name that it runs.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.aliases.iter().map(String::as_str))
    }

    /// Returns a setting's text.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(known, _)| known == name);
        found.map(|(_, text)| text.as_str())
    }
}
