//! The differences between two shapes, one by one, each with what it does to rows and to old
//! workers.
//!
//! Both shapes are walked side by side; where they have the same form, only their insides are told.

use super::reads::{Seen, Stored, View, reads_view, sharing};
use super::{Fault, Finding};
use crate::job::shape::{Enum, Member, Shape, Struct};

/// Lists what differs between the payloads of two builds.
pub(super) fn walk(old: &Struct, new: &Struct) -> Vec<Finding> {
    let (old, new) = (Shape::Struct(old.clone()), Shape::Struct(new.clone()));
    let mut walker = Walker {
        findings: Vec::new(),
        seen: Vec::new(),
    };
    walker.pair("$", &View::root(&old), &View::root(&new));
    walker.findings
}

struct Walker {
    findings: Vec<Finding>,
    seen: Seen,
}

/// A word for each direction, in the sentences below.
const OPAQUE: &str =
    "one of them decides by its own code what it reads, so they cannot be compared";
const UPCAST: &str = "read both forms, or raise `schema` and write an `upcast`";
const RAISE: &str = "raise `schema`: workers of the old build then leave these rows alone";

impl Walker {
    fn note(&mut self, path: &str, what: String, rows: Option<Fault>, workers: Option<Fault>) {
        self.findings.push(Finding {
            path: path.to_owned(),
            what,
            rows,
            workers,
        });
    }

    fn pair(&mut self, path: &str, old: &View<'_>, new: &View<'_>) {
        let pair = (std::ptr::from_ref(new.shape), std::ptr::from_ref(old.shape));
        let equal = old.shape == new.shape && !refers(old.shape);
        if equal || self.seen.contains(&pair) {
            return;
        }
        self.seen.push(pair);
        let mut inner = |step: &str, a: &Shape, b: &Shape| {
            self.pair(&format!("{path}{step}"), &old.to(a), &new.to(b));
        };
        match (old.shape, new.shape) {
            (Shape::Struct(a), Shape::Struct(b)) => self.fields(path, (old, a), (new, b)),
            (Shape::Enum(a), Shape::Enum(b)) => self.variants(path, (old, a), (new, b)),
            (Shape::Nullable(a), Shape::Nullable(b)) => inner("", a, b),
            (Shape::List(a), Shape::List(b)) => inner("[]", a, b),
            (Shape::Entries(k, v), Shape::Entries(a, b)) => {
                inner(".(key)", k, a);
                inner(".*", v, b);
            }
            (Shape::Tuple(a), Shape::Tuple(b)) if a.len() == b.len() => {
                for (at, (a, b)) in a.iter().zip(b).enumerate() {
                    inner(&format!("[{at}]"), a, b);
                }
            }
            (Shape::Nullable(a), b) if !nullable(b) => {
                let fault = fault("rows may hold `null`", "keep the `Option`");
                let what = "can no longer be null".to_owned();
                self.note(path, what, Some(fault), None);
                self.pair(path, &old.to(a), new);
            }
            (a, Shape::Nullable(b)) if !nullable(a) => {
                let fault = fault("old workers do not read `null`", RAISE);
                self.note(path, "may be null now".to_owned(), None, Some(fault));
                self.pair(path, old, &new.to(b));
            }
            _ => self.other(path, old, new),
        }
    }

    /// Two forms that have nothing in common, or no insides.
    fn other(&mut self, path: &str, old: &View<'_>, new: &View<'_>) {
        let (was, is) = (old.shape.words(), new.shape.words());
        let opaque = [old.shape, new.shape]
            .iter()
            .any(|shape| matches!(shape, Shape::Opaque(_)));
        let why = |sentence: String| if opaque { OPAQUE.to_owned() } else { sentence };
        let rows = (!reads_view(new, old, Stored::Rows, &mut Vec::new())).then(|| {
            fault(
                &why(format!("what was stored as {was} is not always {is}")),
                UPCAST,
            )
        });
        let workers = (!reads_view(old, new, Stored::Fresh, &mut Vec::new())).then(|| {
            fault(
                &why(format!("old workers expect {was}, and are given {is}")),
                RAISE,
            )
        });
        self.note(path, format!("{was} became {is}"), rows, workers);
    }

    fn fields(&mut self, path: &str, old: (&View<'_>, &Struct), new: (&View<'_>, &Struct)) {
        let top = path == "$";
        let ((old_view, old), (new_view, new)) = (old, new);
        if old.closed != new.closed {
            let rows = new.closed.then(|| {
                fault(
                    "rows from before a field was removed may still hold it",
                    "leave `deny_unknown_fields` out, or raise `schema` and write an `upcast`",
                )
            });
            let word = if new.closed {
                "are refused"
            } else {
                "are read"
            };
            self.note(path, format!("unknown fields {word} now"), rows, None);
        }
        let mut gone = Vec::new();
        for field in &old.fields {
            let targets = sharing(&new.fields, field);
            match &targets[..] {
                [] => gone.push(field),
                [target] if sharing(&old.fields, target).len() == 1 => {
                    let at = format!("{path}.{}", field.name);
                    self.names(&at, field, target);
                    self.presence(&at, field, target, top);
                    self.pair(&at, &old_view.to(&field.shape), &new_view.to(&target.shape));
                }
                _ => {
                    let why = "two stored names of it are two fields in the other build";
                    let (rows, workers) = (fault(why, UPCAST), fault(why, RAISE));
                    let at = format!("{path}.{}", field.name);
                    let what = "fields were merged or split".to_owned();
                    self.note(&at, what, Some(rows), Some(workers));
                }
            }
        }
        let came = |field: &&Member| sharing(&old.fields, field).is_empty();
        let came: Vec<&Member> = new.fields.iter().filter(came).collect();
        for field in &gone {
            let to = came.iter().find(|other| other.shape == field.shape);
            self.removed(path, field, to.copied(), new.closed);
        }
        for field in came {
            let from = gone.iter().find(|other| other.shape == field.shape);
            self.added(path, field, from.copied(), (top, old.closed));
        }
    }

    fn names(&mut self, path: &str, old: &Member, new: &Member) {
        if old.name == new.name && old.aliases == new.aliases {
            return;
        }
        let lost: Vec<&str> = old
            .names()
            .filter(|name| new.names().all(|known| known != *name))
            .collect();
        let what = if old.name != new.name {
            format!("`{}` is stored as `{}` now", old.name, new.name)
        } else if lost.is_empty() {
            format!("also read as `{}`", new.aliases.join("`, `"))
        } else {
            format!("no longer read as `{}`", lost.join("`, `"))
        };
        let rows = (!lost.is_empty()).then(|| {
            let names = lost.join("`, `");
            fault(
                &format!("rows may hold it as `{names}`"),
                &format!("keep `{names}` as an alias"),
            )
        });
        let workers = old
            .names()
            .all(|name| name != new.name)
            .then(|| fault(&format!("old workers look for `{}`", old.name), RAISE));
        self.note(path, what, rows, workers);
    }

    fn presence(&mut self, path: &str, old: &Member, new: &Member, top: bool) {
        if old.required == new.required {
            return;
        }
        if new.required {
            let cure = default_cure(top);
            let fault = fault("rows may lack it", &cure);
            self.note(path, "is required now".to_owned(), Some(fault), None);
        } else {
            // Every argument is stored; inside one, `skip_serializing_if` may leave a field out.
            let workers = (!top).then(|| {
                fault(
                    "old workers need it, and the new build may leave it out",
                    RAISE,
                )
            });
            self.note(path, "may be left out now".to_owned(), None, workers);
        }
    }

    fn removed(&mut self, path: &str, field: &Member, to: Option<&Member>, closed: bool) {
        let rows = closed.then(|| {
            fault(
                "rows hold it, and unknown fields are refused",
                "keep it, or raise `schema` and write an `upcast`",
            )
        });
        let workers = field.required.then(|| fault("old workers need it", RAISE));
        let hint = to.map_or_else(String::new, |to| {
            format!(
                "; if it is `{}` now, keep `{}` as an alias there, or what rows hold is lost",
                to.name, field.name
            )
        });
        let at = format!("{path}.{}", field.name);
        self.note(&at, format!("field removed{hint}"), rows, workers);
    }

    fn added(
        &mut self,
        path: &str,
        field: &Member,
        from: Option<&Member>,
        (top, closed): (bool, bool),
    ) {
        let rows = field.required.then(|| {
            let cure = match from {
                Some(old) => format!(
                    "if it was `{}`, keep that name as an alias; else {}",
                    old.name,
                    default_cure(top)
                ),
                None => default_cure(top),
            };
            fault("rows lack it", &cure)
        });
        let workers = closed.then(|| fault("old workers refuse unknown fields", RAISE));
        let word = if field.required {
            "required"
        } else {
            "optional"
        };
        let what = format!("{word} field added ({})", field.shape.words());
        self.note(&format!("{path}.{}", field.name), what, rows, workers);
    }

    fn variants(&mut self, path: &str, old: (&View<'_>, &Enum), new: (&View<'_>, &Enum)) {
        let ((old_view, old), (new_view, new)) = (old, new);
        if old.open != new.open {
            let word = if new.open { "are read" } else { "are refused" };
            let rows = old.open.then(|| {
                fault(
                    "rows may hold a variant that an earlier build had",
                    "keep the variant with `#[serde(other)]`, or raise `schema` and write an `upcast`",
                )
            });
            self.note(path, format!("unknown variants {word} now"), rows, None);
        }
        for variant in &old.variants {
            let at = format!("{path}.{}", variant.name);
            let found = new.variants.iter().find(|v| v.name == variant.name);
            match (&variant.content, found.map(|v| &v.content)) {
                (None, Some(None)) => {}
                (Some(a), Some(Some(b))) => self.pair(&at, &old_view.to(a), &new_view.to(b)),
                (content, None) => {
                    let read = new.open && content.is_none();
                    let cure = format!(
                        "keep the variant, or add `alias = \"{}\"` to the one that it is now",
                        variant.name
                    );
                    let rows = (!read).then(|| fault("rows may hold it", &cure));
                    self.note(&at, "variant removed".to_owned(), rows, None);
                }
                (was, _) => {
                    let word = if was.is_some() { "lost" } else { "was given" };
                    let rows = fault("rows hold the other form", UPCAST);
                    let workers = fault("old workers expect the other form", RAISE);
                    let what = format!("variant {word} its content");
                    self.note(&at, what, Some(rows), Some(workers));
                }
            }
        }
        for variant in &new.variants {
            if old.variants.iter().all(|v| v.name != variant.name) {
                let read = old.open && variant.content.is_none();
                let workers = (!read).then(|| fault("old workers do not know it", RAISE));
                let at = format!("{path}.{}", variant.name);
                self.note(&at, "variant added".to_owned(), None, workers);
            }
        }
    }
}

/// Whether something inside leads to a shape around it, which may differ.
fn refers(shape: &Shape) -> bool {
    matches!(shape, Shape::Same(_)) || shape.inside().iter().any(|(_, inner)| refers(inner))
}

/// What reads `null` by its form.
fn nullable(shape: &Shape) -> bool {
    matches!(shape, Shape::Nullable(_) | Shape::Unit | Shape::Anything)
}

fn fault(why: &str, cure: &str) -> Fault {
    Fault {
        why: why.to_owned(),
        cure: cure.to_owned(),
    }
}

fn default_cure(top: bool) -> String {
    let attribute = if top {
        "#[arg(default)]"
    } else {
        "#[serde(default)]"
    };
    format!("give it `{attribute}`, make it an `Option`, or raise `schema` and write an `upcast`")
}
