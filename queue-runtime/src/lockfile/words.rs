//! A line of `jobs.lock`, word by word.

use super::LockfileError;

pub(super) type Parsed<T> = Result<T, LockfileError>;

#[derive(Clone, Copy)]
pub(super) struct Line<'t> {
    /// From 1.
    pub(super) number: usize,
    /// Steps of indentation.
    pub(super) depth: usize,
    pub(super) text: &'t str,
}

impl Line<'_> {
    pub(super) fn damaged(&self, rule: impl Into<String>) -> LockfileError {
        LockfileError::Damaged {
            line: self.number,
            rule: rule.into(),
        }
    }
}

/// The rest of a line.
pub(super) struct Words<'t> {
    pub(super) line: Line<'t>,
    rest: &'t str,
}

impl<'t> Words<'t> {
    pub(super) fn of(line: Line<'t>) -> Self {
        let rest = line.text;
        Self { line, rest }
    }

    /// The next run of characters that is no sign; empty at the end.
    pub(super) fn word(&mut self) -> &'t str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find([' ', ':', ',', '?', ')']);
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    pub(super) fn name(&mut self) -> Parsed<String> {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with('"') {
            let mut texts = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
            let Some(Ok(text)) = texts.next() else {
                return Err(self.line.damaged("a quoted text is not ended"));
            };
            self.rest = &self.rest[texts.byte_offset()..];
            return Ok(text);
        }
        match self.word() {
            "" => Err(self.line.damaged("a name is missing")),
            word => Ok(word.to_owned()),
        }
    }

    pub(super) fn optional_name(&mut self) -> Parsed<Option<String>> {
        if self.rest.trim_start().is_empty() {
            return Ok(None);
        }
        let name = self.name()?;
        self.end().map(|()| Some(name))
    }

    /// A setting's value: the rest of the line.
    pub(super) fn value(&mut self) -> Parsed<String> {
        let rest = self.rest.trim();
        if rest.starts_with('"') {
            let value = self.name()?;
            return self.end().map(|()| value);
        }
        self.rest = "";
        match rest {
            "" => Err(self.line.damaged("a value is missing")),
            _ => Ok(rest.to_owned()),
        }
    }

    pub(super) fn number(&mut self) -> Parsed<u32> {
        let word = self.word();
        word.parse()
            .map_err(|_| self.line.damaged(format!("`{word}` is no number")))
    }

    pub(super) fn keyword(&mut self, keyword: &str) -> Parsed<()> {
        match self.word() {
            word if word == keyword => Ok(()),
            word => Err(self
                .line
                .damaged(format!("`{keyword}` expected, `{word}` found"))),
        }
    }

    pub(super) fn optional(&mut self, keyword: &str) -> bool {
        let before = self.rest;
        let found = self.word() == keyword;
        if !found {
            self.rest = before;
        }
        found
    }

    pub(super) fn sign(&mut self, sign: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    pub(super) fn expect(&mut self, sign: char) -> Parsed<()> {
        match self.sign(sign) {
            true => Ok(()),
            false => Err(self.line.damaged(format!("`{sign}` expected"))),
        }
    }

    pub(super) fn end(&mut self) -> Parsed<()> {
        match self.rest.trim() {
            "" => Ok(()),
            rest => Err(self.line.damaged(format!("`{rest}` is too much"))),
        }
    }
}
