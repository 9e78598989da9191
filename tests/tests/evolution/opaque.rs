//! Edits of types whose own code decides what they read: what is seen of them, and what is not.

use crate::edit::edit;

/// A date that is parsed from text, as those of date libraries are.
macro_rules! date {
    ($name:ident) => {
        #[derive(Clone)]
        pub(super) struct $name(pub(super) u16);

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&format!("{:04}-01-01", self.0))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct DateVisitor;
                impl serde::de::Visitor<'_> for DateVisitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a date")
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        let year = text
                            .strip_suffix("-01-01")
                            .and_then(|year| year.parse().ok());
                        year.map($name).ok_or_else(|| E::custom("no date"))
                    }
                }
                d.deserialize_str(DateVisitor)
            }
        }
    };
}

/// A list that is refused if nothing is in it.
macro_rules! not_empty {
    ($item:ty) => {
        type Items = Vec<$item>;

        #[derive(Clone, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "Items", into = "Items")]
        pub(super) struct P(pub(super) Items);

        impl TryFrom<Vec<$item>> for P {
            type Error = &'static str;
            fn try_from(items: Vec<$item>) -> Result<Self, &'static str> {
                match items.is_empty() {
                    true => Err("empty"),
                    false => Ok(Self(items)),
                }
            }
        }

        impl From<P> for Vec<$item> {
            fn from(list: P) -> Self {
                list.0
            }
        }
    };
}

/// An address that is checked when it is read.
macro_rules! email {
    ($sign:literal) => {
        #[derive(Clone, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub(super) struct Email(pub(super) String);

        impl TryFrom<String> for Email {
            type Error = &'static str;
            fn try_from(text: String) -> Result<Self, &'static str> {
                if text.contains($sign) {
                    Ok(Self(text))
                } else {
                    Err("no address")
                }
            }
        }

        impl From<Email> for String {
            fn from(email: Email) -> Self {
                email.0
            }
        }
    };
}

edit! {
    a_field_beside_a_date_is_added: rows Breaking, workers Safe;
    old { date!(Date); #[derive(Serialize, Deserialize)] pub(super) struct P { at: Date } } [P { at: Date(2024) }]
    new {
        date!(Date);
        #[derive(Serialize, Deserialize)] pub(super) struct P { at: Date, to: Date }
    } [P { at: Date(2024), to: Date(2025) }]
}

edit! {
    an_option_beside_a_date_is_added: rows Safe, workers Safe;
    old { date!(Date); #[derive(Serialize, Deserialize)] pub(super) struct P { at: Date } } [P { at: Date(2024) }]
    new {
        date!(Date);
        #[derive(Serialize, Deserialize)] pub(super) struct P { at: Date, to: Option<Date> }
    } [P { at: Date(2024), to: None }]
}

edit! {
    a_date_gets_a_type_of_its_own: rows Safe, workers Safe;
    old { date!(P); } [P(2024)]
    new { date!(Date); #[derive(Serialize, Deserialize)] pub(super) struct P(Date); } [P(Date(2024))]
}

edit! {
    text_becomes_a_date: rows Breaking, workers Careful;
    old { pub(super) type P = String; } ["tomorrow".into()]
    new { date!(P); } [P(2024)]
}

edit! {
    a_date_becomes_a_number: rows Breaking, workers Breaking;
    old { date!(P); } [P(2024)]
    new { pub(super) type P = u64; } [2024]
}

edit! {
    a_date_may_be_missing: rows Safe, workers Breaking;
    old { date!(Date); #[derive(Serialize, Deserialize)] pub(super) struct P { at: Date } } [P { at: Date(2024) }]
    new {
        date!(Date);
        #[derive(Serialize, Deserialize)] pub(super) struct P { at: Option<Date> }
    } [P { at: None }]
}

edit! {
    text_is_checked_from_now_on: rows Breaking, workers Careful;
    old { pub(super) type P = String; } ["x".into()]
    new { email!('@'); pub(super) type P = Email; } [Email("a@b".into())]
}

edit! {
    one_check_becomes_another: rows Breaking, workers Breaking;
    old { email!('@'); pub(super) type P = Email; } [Email("a@b".into())]
    new { date!(P); } [P(2024)]
}

edit! {
    /// The limit: a check that changes inside a type of one name.
    a_check_becomes_stricter: rows Unseen, workers Safe;
    old { email!('@'); pub(super) type P = Email; } [Email("a@b".into())]
    new { email!("@b.example"); pub(super) type P = Email; } [Email("a@b.example".into())]
}

edit! {
    a_variant_of_a_tagged_enum_is_added: rows Careful, workers Breaking;
    old { #[derive(Serialize, Deserialize)] #[serde(tag = "type")] pub(super) enum P { A { x: u8 } } } [P::A { x: 1 }]
    new { #[derive(Serialize, Deserialize)] #[serde(tag = "type")] pub(super) enum P { A { x: u8 }, B } } [P::B]
}

edit! {
    a_variant_of_a_tagged_enum_is_removed: rows Breaking, workers Careful;
    old { #[derive(Serialize, Deserialize)] #[serde(tag = "type")] pub(super) enum P { A, B } } [P::A, P::B]
    new { #[derive(Serialize, Deserialize)] #[serde(tag = "type")] pub(super) enum P { A } } [P::A]
}

edit! {
    a_required_field_of_a_tagged_enum_is_added: rows Breaking, workers Careful;
    old { #[derive(Serialize, Deserialize)] #[serde(tag = "type")] pub(super) enum P { A { x: u8 } } } [P::A { x: 1 }]
    new {
        #[derive(Serialize, Deserialize)] #[serde(tag = "type")]
        pub(super) enum P { A { x: u8, y: String } }
    } [P::A { x: 1, y: "x".into() }]
}

edit! {
    a_field_of_a_tagged_enum_is_retyped: rows Breaking, workers Breaking;
    old { #[derive(Serialize, Deserialize)] #[serde(tag = "type")] pub(super) enum P { A { x: u8 } } } [P::A { x: 1 }]
    new {
        #[derive(Serialize, Deserialize)] #[serde(tag = "type")] pub(super) enum P { A { x: String } }
    } [P::A { x: "x".into() }]
}

edit! {
    a_tag_is_renamed: rows Breaking, workers Breaking;
    old { #[derive(Serialize, Deserialize)] #[serde(tag = "type")] pub(super) enum P { A } } [P::A]
    new { #[derive(Serialize, Deserialize)] #[serde(tag = "kind")] pub(super) enum P { A } } [P::A]
}

edit! {
    content_beside_a_tag_is_retyped: rows Breaking, workers Breaking;
    old { #[derive(Serialize, Deserialize)] #[serde(tag = "t", content = "c")] pub(super) enum P { A(u8), B } } [P::A(1)]
    new {
        #[derive(Serialize, Deserialize)] #[serde(tag = "t", content = "c")] pub(super) enum P { A(String), B }
    } [P::A("x".into())]
}

edit! {
    a_tag_moves_outside: rows Breaking, workers Breaking;
    old { #[derive(Serialize, Deserialize)] #[serde(tag = "type")] pub(super) enum P { A { x: u8 } } } [P::A { x: 1 }]
    new { #[derive(Serialize, Deserialize)] pub(super) enum P { A { x: u8 } } } [P::A { x: 1 }]
}

edit! {
    a_form_of_an_untagged_enum_is_removed: rows Breaking, workers Careful;
    old { #[derive(Serialize, Deserialize)] #[serde(untagged)] pub(super) enum P { N(u32), S(String) } } [P::N(1), P::S("x".into())]
    new { #[derive(Serialize, Deserialize)] #[serde(untagged)] pub(super) enum P { N(u32) } } [P::N(1)]
}

edit! {
    /// The limit: serde shows nothing of the objects that an untagged enum reads.
    an_object_of_an_untagged_enum_is_removed: rows Unseen, workers Safe;
    old {
        #[derive(Serialize, Deserialize)] #[serde(untagged)] pub(super) enum P { N(u32), O { id: u8 } }
    } [P::N(1), P::O { id: 1 }]
    new { #[derive(Serialize, Deserialize)] #[serde(untagged)] pub(super) enum P { N(u32) } } [P::N(1)]
}

edit! {
    a_required_field_of_a_flattened_struct_is_added: rows Breaking, workers Careful;
    old {
        #[derive(Serialize, Deserialize)] struct Rest { b: u8 }
        #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8, #[serde(flatten)] rest: Rest }
    } [P { a: 1, rest: Rest { b: 2 } }]
    new {
        #[derive(Serialize, Deserialize)] struct Rest { b: u8, c: u8 }
        #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8, #[serde(flatten)] rest: Rest }
    } [P { a: 1, rest: Rest { b: 2, c: 3 } }]
}

edit! {
    fields_are_flattened_into_one_struct: rows Careful, workers Careful;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8, b: u8 } } [P { a: 1, b: 2 }]
    new {
        #[derive(Serialize, Deserialize)] struct Rest { b: u8 }
        #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8, #[serde(flatten)] rest: Rest }
    } [P { a: 1, rest: Rest { b: 2 } }]
}

edit! {
    a_type_that_panics_on_odd_text_is_opaque: rows Safe, workers Safe;
    old {
        #[derive(Clone, Serialize, Deserialize)] #[serde(from = "String", into = "String")] pub(super) struct P(String);
        impl From<String> for P {
            fn from(text: String) -> Self { assert!(text.starts_with('a'), "odd text"); Self(text) }
        }
        impl From<P> for String { fn from(p: P) -> Self { p.0 } }
    } [P("a".into())]
    new {
        #[derive(Clone, Serialize, Deserialize)] #[serde(from = "String", into = "String")] pub(super) struct P(String);
        impl From<String> for P {
            fn from(text: String) -> Self { assert!(text.starts_with('a'), "odd text"); Self(text) }
        }
        impl From<P> for String { fn from(p: P) -> Self { p.0 } }
    } [P("a".into())]
}

edit! {
    /// A type that checks its parts together is not taken for the plain struct that it is read from.
    parts_are_checked_together_from_now_on: rows Breaking, workers Careful;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { from: u8, to: Option<u8> } }
        [P { from: 1, to: None }]
    new {
        #[derive(Clone, Serialize, Deserialize)] struct Raw { from: u8, to: Option<u8> }
        #[derive(Clone, Serialize, Deserialize)] #[serde(try_from = "Raw", into = "Raw")]
        pub(super) struct P(u8, Option<u8>);
        impl TryFrom<Raw> for P {
            type Error = &'static str;
            fn try_from(raw: Raw) -> Result<Self, &'static str> {
                if raw.to.is_none_or(|to| raw.from < to) { return Err("empty"); }
                Ok(Self(raw.from, raw.to))
            }
        }
        impl From<P> for Raw { fn from(p: P) -> Self { Self { from: p.0, to: p.1 } } }
    } [P(1, Some(0))]
}

// A retyped field of a struct that a tag decides about, and of one inside it.
edit! {
    a_field_below_a_tag_is_retyped: rows Breaking, workers Breaking;
    old {
        #[derive(Serialize, Deserialize)] pub(super) struct Line { sku: u32 }
        #[derive(Serialize, Deserialize)] #[serde(tag = "type")] pub(super) enum P { Sold { line: Line }, Gone }
    } [P::Sold { line: Line { sku: 7 } }, P::Gone]
    new {
        #[derive(Serialize, Deserialize)] pub(super) struct Line { sku: String }
        #[derive(Serialize, Deserialize)] #[serde(tag = "type")] pub(super) enum P { Sold { line: Line }, Gone }
    } [P::Sold { line: Line { sku: "7".into() } }, P::Gone]
}

edit! {
    a_field_below_a_tag_is_added: rows Breaking, workers Careful;
    old {
        #[derive(Serialize, Deserialize)] pub(super) struct Line { sku: u32 }
        #[derive(Serialize, Deserialize)] #[serde(tag = "t", content = "c")] pub(super) enum P { Sold(Vec<Line>) }
    } [P::Sold(vec![Line { sku: 7 }])]
    new {
        #[derive(Serialize, Deserialize)] pub(super) struct Line { sku: u32, count: u8 }
        #[derive(Serialize, Deserialize)] #[serde(tag = "t", content = "c")] pub(super) enum P { Sold(Vec<Line>) }
    } [P::Sold(vec![Line { sku: 7, count: 1 }])]
}

edit! {
    the_values_of_a_map_with_checked_keys_are_retyped: rows Breaking, workers Breaking;
    old { pub(super) type P = BTreeMap<std::net::IpAddr, u32>; } [[([127, 0, 0, 1].into(), 1)].into()]
    new { pub(super) type P = BTreeMap<std::net::IpAddr, String>; } [[([127, 0, 0, 1].into(), "x".into())].into()]
}

edit! {
    a_checked_type_gets_other_rules_under_its_name: rows Breaking, workers Breaking;
    old { email!('@'); pub(super) type P = Email; } [Email("a@b.example".into())]
    new { email!('/'); pub(super) type P = Email; } [Email("http://localhost/".into())]
}

edit! {
    the_items_of_a_checked_list_are_retyped: rows Breaking, workers Breaking;
    old { not_empty!(u32); } [P(vec![7])]
    new { not_empty!(String); } [P(vec!["7".into()])]
}

edit! {
    items_of_an_untagged_list_are_retyped: rows Breaking, workers Breaking;
    old {
        #[derive(Serialize, Deserialize)] #[serde(untagged)] pub(super) enum P { One(bool), Many(Vec<u32>) }
    } [P::Many(vec![1]), P::One(true)]
    new {
        #[derive(Serialize, Deserialize)] #[serde(untagged)] pub(super) enum P { One(bool), Many(Vec<String>) }
    } [P::Many(vec!["1".into()]), P::One(true)]
}

#[test]
fn a_type_that_goes_on_after_every_error_does_not_hold_the_look_up_for_ever() {
    struct Lenient;
    impl<'de> serde::Deserialize<'de> for Lenient {
        fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            struct Any;
            impl<'de> serde::de::Visitor<'de> for Any {
                type Value = Lenient;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("a list, of which what cannot be read is left out")
                }
                fn visit_seq<A: serde::de::SeqAccess<'de>>(
                    self,
                    mut items: A,
                ) -> Result<Lenient, A::Error> {
                    while !matches!(items.next_element::<u8>(), Ok(None)) {}
                    Ok(Lenient)
                }
            }
            d.deserialize_seq(Any)
        }
    }
    let shape = queue_runtime::job::shape::trace::<Lenient>();
    assert!(shape.words().contains("list"), "{shape:?}");
}
