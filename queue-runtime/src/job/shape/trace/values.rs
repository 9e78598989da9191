//! Options, newtypes, lists, tuples and maps.

use super::super::guess::quoted;
use super::super::guide::{Asked, Kind, Step};
use super::super::{Shape, samples};
use super::{Learner, Place, opaque};

impl Learner<'_> {
    pub(super) fn option(&mut self, asked: &Asked) -> Place {
        let inner = self.inner(Step::Inside);
        let sample = Some("null".to_owned());
        // To JSON, an option of an option is one option.
        if matches!(inner.shape, Shape::Nullable(_)) {
            return inner;
        }
        if self.takes("null") && inner.sample.as_ref().is_none_or(|json| self.takes(json)) {
            let shape = Shape::Nullable(Box::new(inner.shape));
            return Place { shape, sample };
        }
        self.checked(asked, &Shape::Nullable(Box::new(inner.shape)))
    }

    pub(super) fn newtype(&mut self, asked: &Asked, name: &str) -> Place {
        // serde_json's way to be handed text as it stands.
        if name == "$serde_json::private::RawValue" {
            return Place {
                shape: Shape::Anything,
                sample: Some("null".into()),
            };
        }
        let inner = self.inner(Step::Inside);
        match &inner.sample {
            Some(json) if !self.takes(json) => self.checked(asked, &inner.shape),
            _ => inner,
        }
    }

    pub(super) fn list(&mut self, asked: &Asked) -> Place {
        let item = self.inner(Step::Item(Vec::new()));
        // Two, and more than a list of bounded length takes.
        let many = |json: &String| {
            [2, 40].map(|items| format!("[{}]", vec![json.as_str(); items].join(",")))
        };
        let many = item.sample.as_ref().map(many);
        if self.takes("[]") && many.iter().flatten().all(|json| self.takes(json)) {
            return Place {
                shape: Shape::List(Box::new(item.shape)),
                sample: Some("[]".into()),
            };
        }
        let one = item.sample.map(|json| format!("[{json}]"));
        Place {
            sample: one.filter(|json| self.takes(json)),
            ..self.checked(asked, &Shape::List(Box::new(item.shape)))
        }
    }

    pub(super) fn tuple(&mut self, asked: &Asked, len: usize) -> Place {
        let (items, samples) = self.items(len);
        let sample = samples.map(|samples| format!("[{}]", samples.join(",")));
        match &sample {
            Some(json) if !self.takes(json) => self.checked(asked, &Shape::Tuple(items)),
            _ => Place {
                shape: Shape::Tuple(items),
                sample,
            },
        }
    }

    /// The items of a tuple; those behind one that takes nothing stay unknown.
    pub(super) fn items(&mut self, len: usize) -> (Vec<Shape>, Option<Vec<String>>) {
        let mut shapes = Vec::new();
        let mut samples = Some(Vec::new());
        for _ in 0..len {
            let place = match &samples {
                Some(before) => self.inner(Step::Item(before.clone())),
                None => opaque("any", "it stands behind something that takes no sample"),
            };
            shapes.push(place.shape);
            samples = samples.zip(place.sample).map(|(mut samples, sample)| {
                samples.push(sample);
                samples
            });
        }
        (shapes, samples)
    }

    pub(super) fn map(&mut self, asked: &Asked) -> Place {
        self.way.push(Step::Key);
        let key = self.ask();
        self.way.pop();
        let Some(key) = key.filter(|key| key.kind != Kind::Identifier) else {
            return self.any(asked);
        };
        let (shape, in_map, in_json) = self.key(&key);
        let value = self.inner(Step::Value(in_map));
        let entry = |key: &str| Some(format!("{{{key}:{}}}", value.sample.as_ref()?));
        let takes = |json: Option<String>| json.is_none_or(|json| self.takes(&json));
        let is_plain = self.takes("{}") && in_json.iter().all(|key| takes(entry(key)));
        let shape = Shape::Entries(Box::new(shape), Box::new(value.shape));
        match is_plain {
            false => self.checked(asked, &shape),
            true => Place {
                shape,
                sample: Some("{}".into()),
            },
        }
    }

    /// A map's key: its shape, a sample as it is given to the type, and samples as they stand in
    /// JSON.
    pub(super) fn key(&mut self, asked: &Asked) -> (Shape, String, Vec<String>) {
        let place = self.inner(Step::Key);
        let samples = match &place.shape {
            Shape::Text | Shape::Int(_) => samples::plain(&asked.kind),
            _ => vec![place.sample.unwrap_or_else(|| "\"\"".to_owned())],
        };
        let in_json = samples.iter().map(|sample| match sample.starts_with('"') {
            true => sample.clone(),
            false => quoted(sample),
        });
        let in_json = in_json.collect();
        let first = samples.into_iter().next().unwrap_or_default();
        (place.shape, first, in_json)
    }
}
