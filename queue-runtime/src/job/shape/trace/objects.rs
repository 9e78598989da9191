//! Structs, and variants with named fields.

use super::super::guess::{self, quoted};
use super::super::guide::{Asked, Step};
use super::super::{Member, Shape, Struct};
use super::{Learner, Place};

impl Learner<'_> {
    pub(super) fn structure(
        &mut self,
        asked: &Asked,
        name: &str,
        fields: &'static [&'static str],
    ) -> Place {
        if let Some(again) = self.again(asked) {
            return again;
        }
        self.begin(asked, name);
        let learnt = self.object(fields, ("", ""), self.way.len());
        let name = self.end();
        match learnt {
            Err(parts) => self.checked(asked, &parts),
            Ok((object, sample)) => Place {
                shape: Shape::Struct(Struct { name, ..object }),
                sample,
            },
        }
    }

    /// Learns the fields of a struct or of a variant, with a sample of it. JSON is tried between
    /// the two texts of `around`, at the first `at` steps of the way. An error is its fields, if they
    /// are refused together.
    pub(super) fn object(
        &mut self,
        names: &'static [&'static str],
        around: (&str, &str),
        at: usize,
    ) -> Result<(Struct, Option<String>), Shape> {
        let places = names
            .iter()
            .map(|&name| (name, self.inner(Step::Field(name))));
        let places: Vec<(&'static str, Place)> = places.collect();
        let way = &self.way[..at];
        let fields = Fields {
            places: &places,
            try_object: &|object| {
                self.try_json_at(way, &format!("{}{object}{}", around.0, around.1))
            },
        };
        fields.learn()
    }
}

/// The places of an object's stored names.
struct Fields<'l> {
    places: &'l [(&'static str, Place)],
    /// Tries an object as a whole.
    try_object: &'l dyn Fn(&str) -> Result<(), String>,
}

/// What an object without some of its fields is answered.
enum Needs<'l> {
    /// These, with their samples, are all that it needs.
    Just(Vec<Given<'l>>),
    /// A field of which no sample is known; others may be needed too.
    Unknown,
    /// It refuses them together.
    Refused,
}

/// A field's name and its value as JSON.
type Given<'l> = (&'static str, &'l str);

impl<'l> Fields<'l> {
    fn learn(&self) -> Result<(Struct, Option<String>), Shape> {
        let refused = || {
            let fields = self.members(|_| true);
            Shape::Struct(Struct {
                name: None,
                closed: false,
                fields,
            })
        };
        let (given, closed) = match self.needs() {
            Needs::Refused => return Err(refused()),
            // What cannot be tried is taken for the stricter.
            Needs::Unknown => (None, true),
            Needs::Just(given) => {
                if self.try_fields(&self.all()).is_err() {
                    return Err(refused());
                }
                let mut more = given.clone();
                more.push(("\u{1}unknown", "null"));
                let closed = self.try_fields(&more).is_err();
                (Some(given), closed)
            }
        };
        let required = |name: &str| match &given {
            Some(given) => given.iter().any(|(known, _)| *known == name),
            None => true,
        };
        let object = Struct {
            name: None,
            closed,
            fields: self.members(required),
        };
        Ok((object, given.as_deref().map(written)))
    }

    fn members(&self, required: impl Fn(&str) -> bool) -> Vec<Member> {
        let named: Vec<(&'static str, &'static str, &Place)> = self
            .places
            .iter()
            .map(|(name, place)| (self.own_name(name), *name, place))
            .collect();
        let aliases = |of: &str| {
            let aliases = named
                .iter()
                .filter(|(own, name, _)| *own == of && *name != of);
            let mut aliases: Vec<String> = aliases.map(|(_, name, _)| (*name).to_owned()).collect();
            aliases.sort();
            aliases
        };
        let mut members: Vec<Member> = named
            .iter()
            .filter(|(own, name, _)| own == name)
            .map(|(_, name, place)| Member {
                name: (*name).to_owned(),
                aliases: aliases(name),
                required: required(name),
                shape: place.shape.clone(),
            })
            .collect();
        members.sort_by(|a, b| a.name.cmp(&b.name));
        members
    }

    /// The name of the field that is read from `name`: a value given twice is refused under it.
    fn own_name(&self, name: &'static str) -> &'static str {
        let own = || {
            let sample = self.sample(name)?;
            let said = self.try_fields(&[(name, sample), (name, sample)]).err()?;
            self.known(guess::named(&said, "duplicate field")?)
        };
        own().unwrap_or(name)
    }

    /// Adds what is said to be missing, one by one.
    fn needs(&self) -> Needs<'l> {
        let mut given: Vec<Given<'l>> = Vec::new();
        for _ in 0..=self.places.len() {
            let Err(said) = self.try_fields(&given) else {
                return Needs::Just(given);
            };
            let missing = guess::named(&said, "missing field").and_then(|name| self.known(name));
            let Some(name) = missing else {
                return Needs::Refused;
            };
            let Some(sample) = self.sample(name) else {
                return Needs::Unknown;
            };
            given.push((name, sample));
        }
        Needs::Refused
    }

    /// Every field of which a sample is known, under its own name.
    fn all(&self) -> Vec<Given<'l>> {
        let own = self
            .places
            .iter()
            .filter(|(name, _)| self.own_name(name) == *name);
        own.filter_map(|(name, place)| Some((*name, place.sample.as_deref()?)))
            .collect()
    }

    fn known(&self, name: &str) -> Option<&'static str> {
        let mut names = self.places.iter().map(|(known, _)| *known);
        names.find(|known| *known == name)
    }

    fn sample(&self, name: &str) -> Option<&'l str> {
        let place = self.places.iter().find(|(known, _)| *known == name);
        place.and_then(|(_, place)| place.sample.as_deref())
    }

    fn try_fields(&self, fields: &[Given<'_>]) -> Result<(), String> {
        (self.try_object)(&written(fields))
    }
}

fn written(fields: &[Given<'_>]) -> String {
    let fields = fields
        .iter()
        .map(|(name, json)| format!("{}:{json}", quoted(name)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}
