//! Enums.

use super::super::guess::quoted;
use super::super::guide::{Asked, Kind, Step};
use super::super::{Enum, Shape, Variant};
use super::names::about;
use super::{Learner, Place, opaque};

impl Learner<'_> {
    pub(super) fn choice(
        &mut self,
        asked: &Asked,
        name: &str,
        names: &'static [&'static str],
    ) -> Place {
        if let Some(again) = self.again(asked) {
            return again;
        }
        self.begin(asked, name);
        let mut learnt: Vec<(&'static str, Option<Shape>, Option<String>)> = Vec::new();
        for &name in names {
            learnt.push(self.variant(name));
            self.offer(&learnt);
        }
        // A variant that holds the enum itself may only now have a sample.
        let open = self.open.last();
        if open.is_some_and(|open| open.referred && open.sample.is_some()) {
            for (at, name) in names.iter().enumerate() {
                if learnt[at].2.is_none() {
                    learnt[at] = self.variant(name);
                }
            }
        }
        let sample = self.open.last().and_then(|open| open.sample.clone());
        let name = self.end();
        let mut samples = learnt.iter().filter_map(|(_, _, sample)| sample.as_ref());
        if !samples.all(|json| self.takes(json)) {
            return opaque("enum", &about(asked));
        }
        let mut variants: Vec<Variant> = learnt
            .into_iter()
            .map(|(name, content, _)| Variant {
                name: name.to_owned(),
                content,
            })
            .collect();
        variants.sort_by(|a, b| a.name.cmp(&b.name));
        let shape = Shape::Enum(Enum {
            name,
            open: self.takes("\"\\u0001unknown\""),
            variants,
        });
        Place { shape, sample }
    }

    /// Makes the first sample that the enum takes known to places inside it.
    fn offer(&mut self, learnt: &[(&'static str, Option<Shape>, Option<String>)]) {
        if self.open.last().is_some_and(|open| open.sample.is_none()) {
            let mut samples = learnt.iter().filter_map(|(_, _, sample)| sample.as_ref());
            let taken = samples.find(|json| self.takes(json)).cloned();
            if let Some(open) = self.open.last_mut() {
                open.sample = taken;
            }
        }
    }

    /// A variant's name, content, and a sample of the enum.
    fn variant(&mut self, name: &'static str) -> (&'static str, Option<Shape>, Option<String>) {
        let at = self.way.len();
        self.way.push(Step::Variant(name));
        let asked = self.ask();
        let (content, sample) = match asked.map(|asked| asked.kind) {
            Some(Kind::Unit) => (None, Some(quoted(name))),
            Some(Kind::Newtype(_)) => {
                let inner = self.inner(Step::Inside);
                (Some(inner.shape), held(name, inner.sample))
            }
            Some(Kind::Tuple(len)) => {
                let (items, samples) = self.items(len);
                let sample = samples.map(|samples| format!("[{}]", samples.join(",")));
                (Some(Shape::Tuple(items)), held(name, sample))
            }
            Some(Kind::Struct(_, fields)) => {
                let before = format!("{{{}:", quoted(name));
                match self.object(fields, (&before, "}"), at) {
                    Err(parts) => {
                        let about = format!("{name}: {}", parts.told());
                        (Some(opaque("struct", &about).shape), None)
                    }
                    Ok((object, sample)) => (Some(Shape::Struct(object)), held(name, sample)),
                }
            }
            _ => (
                Some(opaque("any", "it asks for nothing foreseen").shape),
                None,
            ),
        };
        self.way.pop();
        (name, content, sample)
    }
}

fn held(variant: &str, content: Option<String>) -> Option<String> {
    content.map(|json| format!("{{{}:{json}}}", quoted(variant)))
}
