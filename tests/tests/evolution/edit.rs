//! One edit: two types, values of both, and two labels that are put to the proof.

use queue_runtime::job::shape::{Member, Shape, Struct};
use queue_runtime::job::{Contract, PayloadArg, PayloadReader, PayloadWriter};
use queue_runtime::rules::evolution::{Change, compare_jobs};

/// What an edit does in one direction, and what the comparison is expected to say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Label {
    /// Everything is read, and is said to be.
    Safe,
    /// Something is not read, and is said not to be.
    Breaking,
    /// These values are read, but nobody can know that of all: said to be breaking.
    Careful,
    /// Something is not read, and nothing is said but that the place is not seen.
    Unseen,
}

/// Two builds of one payload.
pub(crate) struct Edit {
    pub(crate) old: Contract,
    pub(crate) new: Contract,
    /// Whether each text that the old build stores is read by the new one.
    pub(crate) rows: Vec<Result<(), String>>,
    /// Whether each text that the new build stores is read by the old one.
    pub(crate) workers: Vec<Result<(), String>>,
}

impl Edit {
    /// Two types as the argument `value` of a job.
    pub(crate) fn of<Old: PayloadArg, New: PayloadArg>(old: Vec<Old>, new: Vec<New>) -> Self {
        Self {
            old: contract::<Old>(),
            new: contract::<New>(),
            rows: read_as::<Old, New>(&old),
            workers: read_as::<New, Old>(&new),
        }
    }

    pub(crate) fn changes(&self) -> Vec<Change> {
        compare_jobs(&self.old, &self.new)
    }

    /// Holds both labels against what is said and against what is read.
    pub(crate) fn prove(&self, rows: Label, workers: Label) {
        let changes = self.changes();
        let said = changes.iter().any(|change| change.rows.is_breaking());
        prove("rows", rows, said, &self.rows, self);
        let said = changes.iter().any(|change| change.workers.is_breaking());
        prove("workers", workers, said, &self.workers, self);
    }
}

fn prove(direction: &str, label: Label, said: bool, read: &[Result<(), String>], edit: &Edit) {
    assert!(!read.is_empty(), "no values to prove it with");
    let refused = read.iter().find_map(|read| read.as_ref().err());
    let (says_breaking, is_refused) = match label {
        Label::Safe => (false, false),
        Label::Breaking => (true, true),
        Label::Careful => (true, false),
        Label::Unseen => (false, true),
    };
    assert_eq!(
        refused.is_some(),
        is_refused,
        "{direction}: labelled {label:?}, and decoding said {refused:?}"
    );
    assert_eq!(
        said,
        says_breaking,
        "{direction}: labelled {label:?}, and the comparison said {:#?}\nof {:#?}\nand {:#?}",
        edit.changes(),
        edit.old.payload,
        edit.new.payload
    );
    if label == Label::Unseen {
        assert!(
            edit.old
                .payload
                .fields
                .iter()
                .any(|field| has_opaque(&field.shape)),
            "{direction}: not seen, and not said to be"
        );
    }
}

fn has_opaque(shape: &Shape) -> bool {
    matches!(shape, Shape::Opaque(_)) || shape.inside().iter().any(|(_, inner)| has_opaque(inner))
}

fn contract<T: PayloadArg>() -> Contract {
    let traced = T::traced().expect("the testkit turns the feature on");
    Contract {
        name: "work".into(),
        aliases: Vec::new(),
        schema: 1,
        upcast: false,
        settings: Vec::new(),
        payload: Struct {
            name: None,
            closed: false,
            fields: vec![Member {
                name: "value".into(),
                aliases: Vec::new(),
                required: !traced.optional,
                shape: traced.shape,
            }],
        },
    }
}

/// Stores values the way a job does, and reads them the way another build does.
fn read_as<Written: PayloadArg, Read: PayloadArg>(values: &[Written]) -> Vec<Result<(), String>> {
    let stored = values.iter().map(|value| {
        let mut writer = PayloadWriter::new();
        value.put("value", &mut writer).expect("it can be stored");
        writer.finish()
    });
    stored
        .map(|row| {
            let reader = PayloadReader::new(&row).expect("an object");
            let read = Read::take(&reader, "value").map(drop);
            read.map_err(|error| format!("{error} in {row}"))
        })
        .collect()
}

/// A test named after an edit: the type `P` before and after, with values of each.
macro_rules! edit {
    (
        $(#[$doc:meta])*
        $name:ident: rows $rows:ident, workers $workers:ident;
        old { $($old:item)* } [$($old_value:expr),* $(,)?]
        new { $($new:item)* } [$($new_value:expr),* $(,)?]
    ) => {
        $(#[$doc])*
        mod $name {
            mod old {
                #[allow(unused_imports, reason = "not each edit needs each")]
                use std::collections::*;
                #[allow(unused_imports, reason = "not each edit needs each")]
                use serde::{Deserialize, Serialize};
                $($old)*
                pub(super) fn values() -> Vec<P> { vec![$($old_value),*] }
            }
            mod new {
                #[allow(unused_imports, reason = "not each edit needs each")]
                use std::collections::*;
                #[allow(unused_imports, reason = "not each edit needs each")]
                use serde::{Deserialize, Serialize};
                $($new)*
                pub(super) fn values() -> Vec<P> { vec![$($new_value),*] }
            }

            #[test]
            fn is_judged_as_it_is_read() {
                use $crate::edit::{Edit, Label};
                Edit::of(old::values(), new::values()).prove(Label::$rows, Label::$workers);
            }
        }
    };
}
pub(crate) use edit;
