//! Whether a type of one shape reads everything that was stored by a type of another.
//!
//! Two shapes come in, yes or no comes out. No also stands for "cannot be known": what is opaque
//! reads only its equal. It is assumed that a type writes what it reads, as derived code does.

use crate::job::shape::{Enum, Member, Shape, Struct};

/// Which stored texts are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Every row that the writing build can read, so also rows of builds before it: under aliases,
    /// and without what may be left out.
    Rows,
    /// What the writing build itself stores.
    Fresh,
}

/// A shape, and the named shapes around it that [`Shape::Same`] may refer to.
#[derive(Clone, Debug)]
pub(super) struct View<'s> {
    pub(super) shape: &'s Shape,
    above: Vec<&'s Shape>,
}

impl<'s> View<'s> {
    pub(super) fn root(shape: &'s Shape) -> Self {
        let above = Vec::new();
        Self { shape, above }
    }

    /// A shape directly inside this one; a reference leads to what it refers to.
    pub(super) fn to(&self, inner: &'s Shape) -> Self {
        let mut above = self.above.clone();
        if name_of(self.shape).is_some() {
            above.push(self.shape);
        }
        let mut shape = inner;
        if let Shape::Same(name) = inner {
            let found = |above: &&Shape| name_of(above) == Some(name);
            if let Some(at) = above.iter().rposition(found) {
                shape = above[at];
                above.truncate(at);
            }
        }
        Self { shape, above }
    }
}

fn name_of(shape: &Shape) -> Option<&String> {
    match shape {
        Shape::Struct(object) => object.name.as_ref(),
        Shape::Enum(choice) => choice.name.as_ref(),
        _ => None,
    }
}

/// Says whether `reader` reads every text that is stored under `writer`.
pub fn reads(reader: &Shape, writer: &Shape, stored: Stored) -> bool {
    let mut seen = Vec::new();
    reads_view(&View::root(reader), &View::root(writer), stored, &mut seen)
}

/// Pairs of shapes that are being compared: a pair that is met inside itself adds nothing.
pub(super) type Seen = Vec<(*const Shape, *const Shape)>;

pub(super) fn reads_view(r: &View<'_>, w: &View<'_>, stored: Stored, seen: &mut Seen) -> bool {
    let pair = (std::ptr::from_ref(r.shape), std::ptr::from_ref(w.shape));
    if name_of(r.shape).or(name_of(w.shape)).is_some() {
        if seen.contains(&pair) {
            return true;
        }
        seen.push(pair);
    }
    let mut inner = |a: &Shape, b: &Shape| reads_view(&r.to(a), &w.to(b), stored, seen);
    match (r.shape, w.shape) {
        (Shape::Anything, _) => true,
        (Shape::Opaque(a), Shape::Opaque(b)) => a == b,
        (Shape::Nullable(a), Shape::Nullable(b)) => inner(a, b),
        (Shape::Nullable(_), Shape::Unit) => true,
        (Shape::Nullable(a), _) => reads_view(&r.to(a), w, stored, seen),
        (a, b) if is_plain(a) && a == b => true,
        (Shape::Int(a), Shape::Int(b)) => a.covers(*b),
        (Shape::Float(bits), Shape::Int(int)) => int.bits < if *bits == 64 { 64 } else { 32 },
        (Shape::Float(a), Shape::Float(b)) => a >= b,
        (Shape::Text, Shape::Char) => true,
        (Shape::Text, Shape::Enum(choice)) => choice.variants.iter().all(|v| v.content.is_none()),
        (Shape::List(a), Shape::List(b)) => inner(a, b),
        (Shape::List(a), Shape::Tuple(items)) => items.iter().all(|b| inner(a, b)),
        (Shape::Tuple(a), Shape::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| inner(a, b))
        }
        (Shape::Entries(k, v), Shape::Entries(a, b)) => inner(k, a) && inner(v, b),
        (Shape::Entries(key, value), Shape::Struct(object)) => {
            // Rows from before a field was removed may still hold it, whatever it was.
            let known = object.closed || stored == Stored::Fresh || **value == Shape::Anything;
            let fields = &object.fields;
            known && **key == Shape::Text && fields.iter().all(|f| inner(value, &f.shape))
        }
        (Shape::Struct(a), Shape::Struct(b)) => fields_read(a, b, stored, inner),
        (Shape::Enum(a), Shape::Enum(b)) => variants_read(a, b, stored, inner),
        _ => false,
    }
}

/// Shapes without insides.
fn is_plain(shape: &Shape) -> bool {
    use Shape::{Binary, Bool, Char, Float, Int, Text, Unit};
    matches!(
        shape,
        Bool | Int(_) | Float(_) | Char | Text | Binary | Unit
    )
}

fn fields_read(
    reader: &Struct,
    writer: &Struct,
    stored: Stored,
    mut inner: impl FnMut(&Shape, &Shape) -> bool,
) -> bool {
    let rows = stored == Stored::Rows;
    // Rows from before a field was removed may still hold it.
    if reader.closed && !writer.closed && rows {
        return false;
    }
    for field in &writer.fields {
        match &sharing(&reader.fields, field)[..] {
            [] if reader.closed => return false,
            [] => {}
            [target] => {
                let found = |name| target.names().any(|known| known == name);
                let named = match stored {
                    Stored::Rows => field.names().all(found),
                    Stored::Fresh => found(&field.name),
                };
                let alone = sharing(&writer.fields, target).len() == 1;
                let there = field.required || !target.required;
                if !(named && alone && there && inner(&target.shape, &field.shape)) {
                    return false;
                }
            }
            _ => return false,
        }
    }
    let unmet = |field: &&Member| field.required && sharing(&writer.fields, field).is_empty();
    !reader.fields.iter().any(|field| unmet(&field))
}

/// The fields that have a stored name in common with `field`.
pub(super) fn sharing<'f>(fields: &'f [Member], field: &Member) -> Vec<&'f Member> {
    let shares = |other: &&Member| {
        other
            .names()
            .any(|name| field.names().any(|own| own == name))
    };
    fields.iter().filter(shares).collect()
}

fn variants_read(
    reader: &Enum,
    writer: &Enum,
    stored: Stored,
    mut inner: impl FnMut(&Shape, &Shape) -> bool,
) -> bool {
    // Rows may hold a variant that an earlier build had.
    if writer.open && !reader.open && stored == Stored::Rows {
        return false;
    }
    writer.variants.iter().all(|written| {
        let found = reader.variants.iter().find(|v| v.name == written.name);
        match (found.map(|v| &v.content), &written.content) {
            (None, content) => reader.open && content.is_none(),
            (Some(None), None) => true,
            (Some(Some(a)), Some(b)) => inner(a, b),
            _ => false,
        }
    })
}
