//! Edits of enums.

use crate::edit::edit;

edit! {
    a_variant_is_added: rows Safe, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { A, B(u8) } } [P::A, P::B(1)]
    new { #[derive(Serialize, Deserialize)] pub(super) enum P { A, B(u8), C { x: u8 } } } [P::C { x: 1 }]
}

edit! {
    a_variant_is_removed: rows Breaking, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { A, B } } [P::A, P::B]
    new { #[derive(Serialize, Deserialize)] pub(super) enum P { A } } [P::A]
}

edit! {
    a_variant_is_renamed: rows Breaking, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { Made } } [P::Made]
    new { #[derive(Serialize, Deserialize)] pub(super) enum P { Created } } [P::Created]
}

edit! {
    a_variant_is_renamed_with_an_alias: rows Safe, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { Made } } [P::Made]
    new { #[derive(Serialize, Deserialize)] pub(super) enum P { #[serde(alias = "Made")] Created } } [P::Created]
}

edit! {
    /// It is stored under the name that it had, but an alias looks like a variant.
    an_alias_of_a_variant_is_added: rows Safe, workers Careful;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { Made } } [P::Made]
    new { #[derive(Serialize, Deserialize)] pub(super) enum P { #[serde(alias = "Created")] Made } } [P::Made]
}

edit! {
    all_variants_are_renamed_by_a_rule: rows Breaking, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { InTransit } } [P::InTransit]
    new {
        #[derive(Serialize, Deserialize)] #[serde(rename_all = "snake_case")]
        pub(super) enum P { InTransit }
    } [P::InTransit]
}

edit! {
    variants_change_places: rows Safe, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { A, B } } [P::A, P::B]
    new { #[derive(Serialize, Deserialize)] pub(super) enum P { B, A } } [P::A, P::B]
}

edit! {
    a_variant_is_given_content: rows Breaking, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { A } } [P::A]
    new { #[derive(Serialize, Deserialize)] pub(super) enum P { A(u8) } } [P::A(1)]
}

edit! {
    content_of_a_variant_is_widened: rows Safe, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { A { x: u8 } } } [P::A { x: 1 }]
    new { #[derive(Serialize, Deserialize)] pub(super) enum P { A { x: u64 } } } [P::A { x: u64::MAX }]
}

edit! {
    a_required_field_of_a_variant_is_added: rows Breaking, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { A { x: u8 } } } [P::A { x: 1 }]
    new { #[derive(Serialize, Deserialize)] pub(super) enum P { A { x: u8, y: u8 } } } [P::A { x: 1, y: 2 }]
}

edit! {
    a_variant_holds_a_struct_instead_of_its_fields: rows Safe, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { A { x: u8 } } } [P::A { x: 1 }]
    new {
        #[derive(Serialize, Deserialize)] pub(super) struct Held { x: u8 }
        #[derive(Serialize, Deserialize)] pub(super) enum P { A(Held) }
    } [P::A(Held { x: 1 })]
}

edit! {
    an_item_of_a_variant_is_added: rows Breaking, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { A(u8, u8) } } [P::A(1, 2)]
    new { #[derive(Serialize, Deserialize)] pub(super) enum P { A(u8, u8, u8) } } [P::A(1, 2, 3)]
}

edit! {
    text_becomes_an_enum: rows Breaking, workers Safe;
    old { pub(super) type P = String; } ["a".into(), "anything".into()]
    new { #[derive(Serialize, Deserialize)] #[serde(rename_all = "lowercase")] pub(super) enum P { A, B } } [P::A, P::B]
}

edit! {
    an_enum_becomes_text: rows Safe, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { A, B } } [P::A, P::B]
    new { pub(super) type P = String; } ["anything".into()]
}

edit! {
    a_flag_becomes_an_enum: rows Breaking, workers Breaking;
    old { pub(super) type P = bool; } [true]
    new { #[derive(Serialize, Deserialize)] pub(super) enum P { On, Off } } [P::On, P::Off]
}

edit! {
    a_variant_is_added_where_old_workers_read_unknown_ones: rows Safe, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { A, #[serde(other)] Other } } [P::A, P::Other]
    new { #[derive(Serialize, Deserialize)] pub(super) enum P { A, B, #[serde(other)] Other } } [P::A, P::B]
}

edit! {
    a_recursive_variant_is_retyped: rows Breaking, workers Breaking;
    old {
        #[derive(Serialize, Deserialize)] pub(super) enum P { Not(Box<P>), Is(u8) }
    } [P::Not(Box::new(P::Is(1)))]
    new {
        #[derive(Serialize, Deserialize)] pub(super) enum P { Not(Box<P>), Is(String) }
    } [P::Not(Box::new(P::Is("x".into())))]
}

edit! {
    an_enum_as_the_key_of_a_map_loses_a_variant: rows Breaking, workers Safe;
    old {
        #[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)] pub(super) enum Key { A, B }
        pub(super) type P = BTreeMap<Key, u8>;
    } [[(Key::B, 1)].into()]
    new {
        #[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)] pub(super) enum Key { A }
        pub(super) type P = BTreeMap<Key, u8>;
    } [[(Key::A, 1)].into()]
}

edit! {
    unknown_variants_are_refused_again: rows Careful, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) enum P { A, #[serde(other)] Other } } [P::A]
    new { #[derive(Serialize, Deserialize)] pub(super) enum P { A, Other } } [P::A]
}
