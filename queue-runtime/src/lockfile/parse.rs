//! Reads `jobs.lock`. A text that is not one is an error with the number of the line.

use super::FORMAT;
use super::words::{Line, Parsed, Words};
use crate::job::Contract;
use crate::job::shape::{Enum, Int, Member, Opaque, Shape, Struct, Variant};

/// The file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockfileError {
    /// A newer version of this library wrote it.
    #[error(
        "line {line}: format {format} of a newer queue-runtime; this one reads up to {FORMAT}. Update \
         queue-runtime"
    )]
    Newer {
        /// The line, from 1.
        line: usize,
        /// The format that it has.
        format: u32,
    },
    /// It breaks a rule.
    #[error("line {line}: {rule}")]
    Damaged {
        /// The line, from 1; the one behind the last if something is missing at the end.
        line: usize,
        /// The rule that it breaks.
        rule: String,
    },
}

/// Shapes inside one another. Payloads may be 64 deep, and each level can be an option of a list.
const DEPTH_MAX: usize = 256;

/// Items of a tuple written as `3 times u8`.
const TIMES_MAX: usize = 4_096;

/// Reads the text of a file.
///
/// # Errors
/// The first damaged line, or that it has a newer form.
pub fn parse(text: &str) -> Parsed<Vec<Contract>> {
    let mut parser = Parser::new(text)?;
    parser.format()?;
    let mut contracts: Vec<Contract> = Vec::new();
    while let Some(line) = parser.take(0) {
        let mut words = Words::of(line);
        words.keyword("job")?;
        let name = words.name()?;
        words.end()?;
        if contracts.iter().any(|known| known.name == name) {
            return Err(line.damaged(format!("job `{name}` stands here twice")));
        }
        contracts.push(parser.job(name)?);
    }
    match parser.peek() {
        Some(line) => Err(line.damaged("is indented too far")),
        None => Ok(contracts),
    }
}

struct Parser<'t> {
    lines: Vec<Line<'t>>,
    next: usize,
    /// Names of the structs and enums around the line that is read.
    around: Vec<String>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Parsed<Self> {
        let mut lines = Vec::new();
        for (number, whole) in (1..).zip(text.lines()) {
            let trimmed = whole.trim_start_matches(' ');
            let indent = whole.len() - trimmed.len();
            let line = Line {
                number,
                depth: indent / 2,
                text: trimmed.trim_end(),
            };
            if line.text.is_empty() || line.text.starts_with('#') {
                continue;
            }
            if ["<<<<<<<", "=======", ">>>>>>>"]
                .iter()
                .any(|mark| line.text.starts_with(mark))
            {
                return Err(line.damaged("a merge was not finished here"));
            }
            if indent % 2 != 0 || line.text.starts_with('\t') {
                return Err(line.damaged("is not indented by steps of two spaces"));
            }
            lines.push(line);
        }
        Ok(Self {
            lines,
            next: 0,
            around: Vec::new(),
        })
    }

    fn peek(&self) -> Option<Line<'t>> {
        self.lines.get(self.next).copied()
    }

    /// The next line if it is at this depth.
    fn take(&mut self, depth: usize) -> Option<Line<'t>> {
        let line = self.peek().filter(|line| line.depth == depth)?;
        self.next += 1;
        Some(line)
    }

    /// What is missing behind the last line that was read.
    fn missing(&self, what: &str) -> LockfileError {
        let before = self.next.checked_sub(1).and_then(|at| self.lines.get(at));
        LockfileError::Damaged {
            line: before.map_or(1, |line| line.number + 1),
            rule: format!("{what} is missing"),
        }
    }

    fn format(&mut self) -> Parsed<()> {
        let line = self.take(0).ok_or_else(|| self.missing("`format 1`"))?;
        let mut words = Words::of(line);
        words.keyword("format")?;
        let format = words.number()?;
        match format {
            1..=FORMAT => words.end(),
            0 => Err(line.damaged("there is no format 0")),
            _ => Err(LockfileError::Newer {
                line: line.number,
                format,
            }),
        }
    }

    fn job(&mut self, name: String) -> Parsed<Contract> {
        let mut aliases = Vec::new();
        let mut schema = None;
        let mut settings: Vec<(String, String)> = Vec::new();
        while let Some(line) = self.take(1) {
            let mut words = Words::of(line);
            let word = words.word();
            match word {
                "alias" => {
                    aliases.push(words.name()?);
                    words.end()?;
                }
                "schema" if schema.is_none() => {
                    let number = words.number()?;
                    let upcast = words.optional("upcast");
                    words.end()?;
                    schema = Some((number, upcast));
                }
                "payload" => {
                    words.end()?;
                    let fields = self.fields(2)?;
                    let (schema, upcast) =
                        schema.ok_or_else(|| line.damaged("no `schema` before it"))?;
                    aliases.sort();
                    settings.sort();
                    return Ok(Contract {
                        name,
                        aliases,
                        schema,
                        upcast,
                        settings,
                        payload: Struct {
                            name: None,
                            closed: false,
                            fields,
                        },
                    });
                }
                _ if settings.iter().any(|(known, _)| known == word) || word == "schema" => {
                    return Err(line.damaged(format!("`{word}` stands here twice")));
                }
                _ => settings.push((word.to_owned(), words.value()?)),
            }
        }
        Err(self.missing(&format!("`payload` of job `{name}`")))
    }

    fn fields(&mut self, depth: usize) -> Parsed<Vec<Member>> {
        let mut fields: Vec<Member> = Vec::new();
        while let Some(line) = self.take(depth) {
            let mut words = Words::of(line);
            let name = words.name()?;
            let required = !words.sign('?');
            let mut aliases = Vec::new();
            if words.optional("(also") {
                loop {
                    aliases.push(words.name()?);
                    if !words.sign(',') {
                        break;
                    }
                }
                words.expect(')')?;
            }
            words.expect(':')?;
            let known = |name: &str| fields.iter().any(|field| field.names().any(|n| n == name));
            if let Some(twice) = std::iter::once(&name)
                .chain(&aliases)
                .find(|name| known(name))
            {
                return Err(line.damaged(format!("field `{twice}` stands here twice")));
            }
            let shape = self.shape(words, depth)?;
            aliases.sort();
            fields.push(Member {
                name,
                aliases,
                required,
                shape,
            });
        }
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(fields)
    }

    /// A shape whose line is at `depth`, with the lines inside it.
    fn shape(&mut self, mut words: Words<'t>, depth: usize) -> Parsed<Shape> {
        let shape = self.head(&mut words, depth, 0)?;
        if let Some(line) = self.peek().filter(|line| line.depth > depth) {
            return Err(line.damaged("is indented too far"));
        }
        Ok(shape)
    }

    fn head(&mut self, words: &mut Words<'t>, depth: usize, nested: usize) -> Parsed<Shape> {
        let line = words.line;
        if depth + nested > DEPTH_MAX {
            return Err(line.damaged("shapes are too deep inside one another"));
        }
        let word = words.word();
        let mut inner = |words: &mut Words<'t>| self.head(words, depth, nested + 1).map(Box::new);
        match word {
            "option" => words
                .keyword("of")
                .and_then(|()| inner(words))
                .map(Shape::Nullable),
            "list" => words
                .keyword("of")
                .and_then(|()| inner(words))
                .map(Shape::List),
            "map" if words.optional("of") => {
                let key = inner(words)?;
                words.keyword("to")?;
                Ok(Shape::Entries(key, inner(words)?))
            }
            "map" => {
                words.end()?;
                let key = self.entry("key", depth + 1)?;
                let value = self.entry("value", depth + 1)?;
                Ok(Shape::Entries(Box::new(key), Box::new(value)))
            }
            "tuple" => {
                words.end()?;
                let mut items = Vec::new();
                while self.peek().is_some_and(|line| line.depth == depth + 1) {
                    items.push(self.entry(&items.len().to_string(), depth + 1)?);
                }
                Ok(Shape::Tuple(items))
            }
            "closed" => {
                words.keyword("struct")?;
                self.structure(words, depth, true)
            }
            "struct" => self.structure(words, depth, false),
            "open" => {
                words.keyword("enum")?;
                self.choice(words, depth, true)
            }
            "enum" => self.choice(words, depth, false),
            "same" => {
                words.keyword("as")?;
                let name = words.name()?;
                if !self.around.contains(&name) {
                    return Err(line.damaged(format!("nothing around it is called `{name}`")));
                }
                Ok(Shape::Same(name))
            }
            "opaque" => Ok(Shape::Opaque(Opaque {
                asked: words.name()?,
                about: words.name()?,
            })),
            _ => match word.parse::<usize>() {
                Ok(times) if (2..=TIMES_MAX).contains(&times) => {
                    words.keyword("times")?;
                    let item = inner(words)?;
                    Ok(Shape::Tuple(vec![*item; times]))
                }
                _ => plain(word).ok_or_else(|| line.damaged(format!("`{word}` is no shape"))),
            },
        }
    }

    fn entry(&mut self, key: &str, depth: usize) -> Parsed<Shape> {
        let line = self
            .take(depth)
            .ok_or_else(|| self.missing(&format!("`{key}:`")))?;
        let mut words = Words::of(line);
        words.keyword(key)?;
        words.expect(':')?;
        self.shape(words, depth)
    }

    fn structure(&mut self, words: &mut Words<'t>, depth: usize, closed: bool) -> Parsed<Shape> {
        let name = words.optional_name()?;
        self.around.extend(name.clone());
        let fields = self.fields(depth + 1)?;
        if name.is_some() {
            self.around.pop();
        }
        Ok(Shape::Struct(Struct {
            name,
            closed,
            fields,
        }))
    }

    fn choice(&mut self, words: &mut Words<'t>, depth: usize, open: bool) -> Parsed<Shape> {
        let name = words.optional_name()?;
        self.around.extend(name.clone());
        let mut variants: Vec<Variant> = Vec::new();
        while let Some(line) = self.take(depth + 1) {
            let mut words = Words::of(line);
            let name = words.name()?;
            if variants.iter().any(|variant| variant.name == name) {
                return Err(line.damaged(format!("variant `{name}` stands here twice")));
            }
            let content = match words.sign(':') {
                true => Some(self.shape(words, depth + 1)?),
                false => words.end().map(|()| None)?,
            };
            variants.push(Variant { name, content });
        }
        if name.is_some() {
            self.around.pop();
        }
        variants.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Shape::Enum(Enum {
            name,
            open,
            variants,
        }))
    }
}

fn plain(word: &str) -> Option<Shape> {
    Some(match word {
        "bool" => Shape::Bool,
        "char" => Shape::Char,
        "text" => Shape::Text,
        "bytes" => Shape::Binary,
        "unit" => Shape::Unit,
        "any" => Shape::Anything,
        "f32" => Shape::Float(32),
        "f64" => Shape::Float(64),
        _ => {
            let (signed, bits) = match word.split_at_checked(1)? {
                ("i", bits) => (true, bits),
                ("u", bits) => (false, bits),
                _ => return None,
            };
            let bits = ["8", "16", "32", "64", "128"]
                .into_iter()
                .find(|b| *b == bits)?;
            let bits = bits.parse().ok()?;
            Shape::Int(Int { signed, bits })
        }
    })
}
