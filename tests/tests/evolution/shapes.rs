//! What is seen of types, as it stands in the file.

use std::collections::{BTreeMap, HashMap};

use queue_runtime::job::Contract;
use queue_runtime::job::PayloadArg;
use queue_runtime::job::shape::{Member, Struct};
use queue_runtime::lockfile::write;
use serde::{Deserialize, Serialize};

/// The lines of a type's shape in the file, from its own line on.
fn lines<T: PayloadArg>() -> Vec<String> {
    let traced = T::traced().expect("the testkit turns the feature on");
    let field = Member {
        name: "value".into(),
        aliases: Vec::new(),
        required: true,
        shape: traced.shape,
    };
    let payload = Struct {
        name: None,
        closed: false,
        fields: vec![field],
    };
    let text = write(&[Contract {
        name: "work".into(),
        aliases: Vec::new(),
        schema: 1,
        upcast: false,
        settings: Vec::new(),
        payload,
    }]);
    let (_, shape) = text.split_once("    value: ").expect("the field");
    let lines = shape
        .lines()
        .map(|line| line.strip_prefix("    ").unwrap_or(line));
    lines.map(str::to_owned).collect()
}

#[test]
fn newtypes_and_pointers_are_what_they_hold() {
    #[derive(Serialize, Deserialize)]
    struct Id(Box<u64>);
    assert_eq!(lines::<Vec<Option<Id>>>(), ["list of option of u64"]);
}

#[test]
fn stored_names_are_shown_with_their_aliases_and_what_may_be_left_out() {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Line {
        #[serde(alias = "sku", alias = "a name")]
        article_no: String,
        #[serde(default)]
        count: u32,
        note: Option<String>,
        #[serde(skip)]
        _seen: bool,
    }
    assert_eq!(
        lines::<Line>(),
        [
            "closed struct",
            "  articleNo (also \"a name\", sku): text",
            "  count?: u32",
            "  note?: option of text",
        ]
    );
}

#[test]
fn every_variant_is_visited_wherever_the_enum_stands() {
    #[derive(Serialize, Deserialize, PartialEq, Eq, Hash)]
    enum Key {
        Red,
        Blue,
    }
    #[derive(Serialize, Deserialize)]
    enum Event {
        Made,
        Paid(u64),
        Moved(i32, i32),
        Named { name: String, of: Option<Key> },
    }
    assert_eq!(
        lines::<HashMap<Key, Vec<Event>>>(),
        [
            "map",
            "  key: enum",
            "    Blue",
            "    Red",
            "  value: list of enum",
            "    Made",
            "    Moved: 2 times i32",
            "    Named: struct",
            "      name: text",
            "      of?: option of enum",
            "        Blue",
            "        Red",
            "    Paid: u64",
        ]
    );
}

#[test]
fn a_type_inside_itself_is_referred_to_by_name() {
    #[derive(Serialize, Deserialize)]
    enum Rule {
        And(Box<Rule>, Box<Rule>),
        Has {
            field: String,
            not: Option<Box<Rule>>,
        },
        Any,
    }
    assert_eq!(
        lines::<Rule>(),
        [
            "enum Rule",
            "  And: 2 times same as Rule",
            "  Any",
            "  Has: struct",
            "    field: text",
            "    not?: option of same as Rule",
        ]
    );
}

#[test]
fn a_type_without_an_end_that_can_be_made_up_is_seen_as_far_as_it_goes() {
    #[derive(Serialize, Deserialize)]
    struct Endless {
        next: Box<Endless>,
        b: u8,
    }
    let seen = ["struct Endless", "  b: u8", "  next: same as Endless"];
    assert_eq!(lines::<Endless>()[1..], seen[1..]);
    assert_eq!(
        lines::<Endless>()[0],
        "closed struct Endless",
        "the stricter is assumed"
    );
}

#[test]
fn mutual_recursion_ends() {
    #[derive(Serialize, Deserialize)]
    struct Folder {
        entries: Vec<Entry>,
    }
    #[derive(Serialize, Deserialize)]
    struct Entry {
        folder: Option<Folder>,
        link: Option<Box<Entry>>,
    }
    assert_eq!(
        lines::<Folder>(),
        [
            "struct Folder",
            "  entries: list of struct Entry",
            "    folder?: option of same as Folder",
            "    link?: option of same as Entry",
        ]
    );
}

#[test]
fn two_types_of_one_name_inside_one_another_are_told_apart() {
    #[derive(Serialize, Deserialize)]
    struct Page<T> {
        item: T,
        next: Option<Box<Page<T>>>,
    }
    assert_eq!(
        lines::<Page<Page<u8>>>(),
        [
            "struct Page",
            "  item: struct Page2",
            "    item: u8",
            "    next?: option of same as Page2",
            "  next?: option of same as Page",
        ]
    );
}

#[test]
fn a_thousand_fields_inside_one_another_end_and_say_so() {
    #[derive(Serialize, Deserialize)]
    struct Wide<T> {
        a: T,
        b: T,
        c: T,
        d: T,
        e: T,
        f: T,
        g: T,
        h: T,
    }
    type Huge = Wide<Wide<Wide<Wide<Wide<u8>>>>>;
    assert!(
        lines::<Huge>()
            .iter()
            .any(|line| line.contains("not looked at: too large"))
    );
}

#[test]
fn maps_tuples_and_plain_values_are_shown_as_they_are_stored() {
    type All = (
        u128,
        i8,
        f32,
        char,
        (),
        [u8; 3],
        BTreeMap<u64, bool>,
        serde_json::Value,
    );
    assert_eq!(
        lines::<All>(),
        [
            "tuple",
            "  0: u128",
            "  1: i8",
            "  2: f32",
            "  3: char",
            "  4: unit",
            "  5: 3 times u8",
            "  6: map of u64 to bool",
            "  7: any",
        ]
    );
}

#[test]
fn a_type_that_decides_by_the_json_says_what_it_lets_be_seen() {
    #[derive(Serialize, Deserialize)]
    #[serde(tag = "type")]
    enum Tagged {
        Made { id: u32, name: String },
        Gone,
    }
    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u32),
        Flag(bool),
    }
    assert_eq!(
        lines::<Tagged>(),
        [r#"opaque any "Tagged: by `type`: Made {id: u32, name: a string}, Gone {}""#]
    );
    assert_eq!(
        lines::<Either>(),
        [r#"opaque any "Either: takes false 0 1 256 65536""#]
    );
}

#[test]
fn tagged_enums_and_flattened_structs_show_what_their_required_fields_hold() {
    #[derive(Serialize, Deserialize)]
    struct From {
        row: u64,
        seen: Option<bool>,
    }
    #[derive(Serialize, Deserialize)]
    enum Why {
        Broken,
        Other { text: String },
    }
    #[derive(Serialize, Deserialize)]
    #[serde(tag = "type")]
    enum Within {
        Moved {
            from: From,
            many: Vec<From>,
            to: u64,
            by: std::collections::BTreeMap<String, u8>,
        },
        Gone {
            why: Why,
        },
        Ping,
    }
    #[derive(Serialize, Deserialize)]
    #[serde(tag = "type", content = "data")]
    enum Beside {
        Made(From),
        Gone { id: u64, row: f64 },
        Ping,
    }
    #[derive(Serialize, Deserialize)]
    struct Flat {
        id: u8,
        #[serde(flatten)]
        from: From,
    }
    assert_eq!(
        lines::<Within>(),
        ["opaque any \"Within: by `type`: \
          Moved {from: {row: u64}, many: list of {row: u64}, to: u64, by: map to u8}, \
          Gone {why: one of Broken | Other of {text: a string}}, Ping {}\""]
    );
    assert_eq!(
        lines::<Beside>(),
        ["opaque any \"Beside: by `type`: \
          Made {data: {row: u64}}, Gone {data: {id: u64, row: f64}}, Ping {}\""]
    );
    assert_eq!(lines::<Flat>(), ["opaque any \"Flat: {id: u8, row: u64}\""]);
}

#[test]
fn what_stands_behind_something_that_takes_no_sample_is_still_seen_in_a_struct() {
    #[derive(Serialize)]
    struct Never;
    impl<'de> Deserialize<'de> for Never {
        fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            let text = String::deserialize(d)?;
            Err(serde::de::Error::custom(format!("{text} is refused")))
        }
    }
    #[derive(Serialize, Deserialize)]
    struct Beside {
        never: Never,
        order: Option<u8>,
    }
    // Which fields may be left out could not be tried, so none may.
    assert_eq!(
        lines::<Beside>(),
        [
            "closed struct",
            "  never: opaque text \"Never: takes none that was tried\"",
            "  order: option of u8"
        ]
    );
    assert_eq!(
        lines::<(u8, Never, u8)>(),
        [
            "tuple",
            "  0: u8",
            "  1: opaque text \"Never: takes none that was tried\"",
            "  2: opaque any \"it stands behind something that takes no sample\"",
        ]
    );
}
