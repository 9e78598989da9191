//! Learns the shape of a type by deserializing it again and again, each time to look at one place.
//!
//! A type comes in, its [`Shape`] comes out: never an error. Code of the user that panics, refuses
//! what is made up, or asks for something unforeseen becomes [`Shape::Opaque`]. What is asked for
//! comes from a [`Guide`]; what is taken is tried with `serde_json`, which also reads real
//! payloads.
//!
//! It does not see rules that no sample breaks, such as "at most a million", nor what `Serialize`
//! writes.

use std::any::type_name;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::DeserializeOwned;

use super::guess;
use super::guide::{Asked, End, Guide, Kind, Notes, Step, Stop};
use super::{Opaque, Shape, samples};
use names::about;

mod values;
mod objects;
mod choices;
mod names;

/// Types inside one another: as deep as payloads may be.
const DEPTH_MAX: usize = crate::job::PAYLOAD_DEPTH_MAX;

/// Places looked at in one type. Generated types with thousands would take seconds.
const PLACES_MAX: usize = 2_000;

/// Learns the shape of `T`.
pub fn trace<T: DeserializeOwned>() -> Shape {
    let run = |guide: Guide<'_>| T::deserialize(guide).map(drop);
    let mut learner = Learner {
        run: &run,
        root: type_name::<T>(),
        way: Vec::new(),
        open: Vec::new(),
        places: 0,
    };
    learner.learn().shape
}

/// What is known about one place.
struct Place {
    shape: Shape,
    /// JSON that is taken there, if any is known.
    sample: Option<String>,
}

/// A struct or enum that is being learnt.
struct Open {
    visitor: &'static str,
    name: String,
    referred: bool,
    sample: Option<String>,
}

struct Learner<'r> {
    run: &'r dyn Fn(Guide<'_>) -> Result<(), Stop>,
    root: &'static str,
    way: Vec<Step>,
    open: Vec<Open>,
    places: usize,
}

impl Learner<'_> {
    fn learn(&mut self) -> Place {
        self.places += 1;
        if self.places > PLACES_MAX || self.way.len() > DEPTH_MAX {
            return opaque("any", "not looked at: too large");
        }
        let Some(asked) = self.ask() else {
            return opaque("any", "it asks for nothing foreseen");
        };
        match asked.kind.clone() {
            Kind::Bool => self.leaf(&asked, Shape::Bool),
            Kind::Int(int) => self.leaf(&asked, Shape::Int(int)),
            Kind::Float(bits) => self.leaf(&asked, Shape::Float(bits)),
            Kind::Char => self.leaf(&asked, Shape::Char),
            Kind::Text => self.leaf(&asked, Shape::Text),
            Kind::Bytes => self.leaf(&asked, Shape::Binary),
            Kind::Unit => self.leaf(&asked, Shape::Unit),
            Kind::Ignored => self.leaf(&asked, Shape::Anything),
            Kind::Any | Kind::Identifier => self.any(&asked),
            Kind::Option => self.option(&asked),
            Kind::Newtype(name) => self.newtype(&asked, name),
            Kind::Seq => self.list(&asked),
            Kind::Tuple(len) => self.tuple(&asked, len),
            Kind::Map => self.map(&asked),
            // Its content is read by other means, depending on the tag.
            Kind::Struct(..) if asked.expects.starts_with("adjacently tagged enum") => {
                self.any(&asked)
            }
            Kind::Struct(name, fields) => self.structure(&asked, name, fields),
            Kind::Enum(name, variants) => self.choice(&asked, name, variants),
        }
    }

    fn inner(&mut self, step: Step) -> Place {
        self.way.push(step);
        let place = self.learn();
        self.way.pop();
        place
    }

    /// Asks what is wanted at the end of the way.
    fn ask(&self) -> Option<Asked> {
        self.run(&self.way, End::Ask).asked.into_inner()
    }

    /// Tries JSON at the end of the way; an error is what was said against it.
    fn try_json(&self, json: &str) -> Result<(), String> {
        self.try_json_at(&self.way, json)
    }

    fn try_json_at(&self, way: &[Step], json: &str) -> Result<(), String> {
        let fed = self.run(way, End::Feed(json)).fed.into_inner();
        fed.unwrap_or_else(|| Err("not reached".to_owned()))
    }

    fn takes(&self, json: &str) -> bool {
        self.try_json(json).is_ok()
    }

    fn run(&self, steps: &[Step], end: End<'_>) -> Notes {
        let notes = Notes::new(self.root);
        let guide = Guide {
            steps,
            end,
            notes: &notes,
        };
        // A panic of the user's code says what a refusal says.
        let result = catch_unwind(AssertUnwindSafe(|| (self.run)(guide)));
        let taken = match result {
            Ok(Ok(())) => Ok(()),
            Ok(Err(stop)) => Err(stop.0),
            Err(_) => Err("it panicked".to_owned()),
        };
        if matches!(end, End::Feed(_)) && notes.fed.borrow().is_none() {
            notes.fed.replace(Some(taken));
        }
        notes
    }

    fn leaf(&self, asked: &Asked, shape: Shape) -> Place {
        let plain = samples::plain(&asked.kind);
        if plain.iter().all(|json| self.takes(json)) {
            let sample = plain.into_iter().next();
            return Place { shape, sample };
        }
        let picky = samples::picky(&asked.kind).iter().map(|&json| json.into());
        let sample = plain.into_iter().chain(picky).find(|json| self.takes(json));
        let habits = samples::habits(&asked.kind, |json| self.takes(json));
        Place {
            shape: opaque(&shape.words(), &format!("{}: {habits}", about(asked))).shape,
            sample,
        }
    }

    /// A type that refuses what its parts take: by its name, with what it is made of.
    fn checked(&self, asked: &Asked, parts: &Shape) -> Place {
        let words = parts.words();
        let word = words.split(' ').next().unwrap_or_default();
        opaque(word, &format!("{}: {}", about(asked), parts.told()))
    }

    /// A type that looks at the JSON before it decides.
    fn any(&self, asked: &Asked) -> Place {
        let plain = samples::plain(&Kind::Any);
        if asked.kind == Kind::Any && plain.iter().all(|json| self.takes(json)) {
            return Place {
                shape: Shape::Anything,
                sample: Some("null".into()),
            };
        }
        let guess = guess::look(&|json: &str| self.try_json(json));
        let about = match guess.about {
            Some(said) => format!("{}: {said}", about(asked)),
            None => about(asked),
        };
        Place {
            shape: opaque("any", &about).shape,
            sample: guess.sample,
        }
    }

    /// A type that is being learnt already.
    fn again(&mut self, asked: &Asked) -> Option<Place> {
        let found = |open: &&mut Open| open.visitor == asked.visitor;
        let open = self.open.iter_mut().rev().find(found)?;
        open.referred = true;
        Some(Place {
            shape: Shape::Same(open.name.clone()),
            sample: open.sample.clone(),
        })
    }

    /// Whatever is learnt until `end` is inside this type.
    fn begin(&mut self, asked: &Asked, name: &str) {
        // Another type of this name may be around it.
        let mut unique = name.to_owned();
        let mut number = 2;
        while self.open.iter().any(|open| open.name == unique) {
            unique = format!("{name}{number}");
            number += 1;
        }
        self.open.push(Open {
            visitor: asked.visitor,
            name: unique,
            referred: false,
            sample: None,
        });
    }

    /// The type's name, if something inside refers to it.
    fn end(&mut self) -> Option<String> {
        let open = self.open.pop()?;
        open.referred.then_some(open.name)
    }
}

fn opaque(asked: &str, about: &str) -> Place {
    let shape = Shape::Opaque(Opaque {
        asked: asked.to_owned(),
        about: about.to_owned(),
    });
    Place {
        shape,
        sample: None,
    }
}
