//! Edits that change the form of a value: lists, tuples, maps, options, and structs.

use crate::edit::edit;

edit! {
    a_list_becomes_a_set: rows Safe, workers Safe;
    old { pub(super) type P = Vec<u8>; } [vec![], vec![1, 1]]
    new { pub(super) type P = BTreeSet<u8>; } [[1, 2].into()]
}

edit! {
    a_pair_becomes_a_list: rows Safe, workers Breaking;
    old { pub(super) type P = (u8, u8); } [(1, 2)]
    new { pub(super) type P = Vec<u8>; } [vec![]]
}

edit! {
    an_item_of_a_tuple_is_added: rows Breaking, workers Breaking;
    old { pub(super) type P = (u8, String); } [(1, "x".into())]
    new { pub(super) type P = (u8, String, u8); } [(1, "x".into(), 2)]
}

edit! {
    items_of_a_tuple_change_places: rows Breaking, workers Breaking;
    old { pub(super) type P = (u8, String); } [(1, "x".into())]
    new { pub(super) type P = (String, u8); } [("x".into(), 1)]
}

edit! {
    a_tuple_gets_a_type_of_its_own: rows Safe, workers Safe;
    old { pub(super) type P = (u8, String); } [(1, "x".into())]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P(u8, String); } [P(1, "x".into())]
}

edit! {
    an_array_grows: rows Breaking, workers Breaking;
    old { pub(super) type P = [u8; 3]; } [[1, 2, 3]]
    new { pub(super) type P = [u8; 4]; } [[1, 2, 3, 4]]
}

edit! {
    /// serde_json reads a list as a struct too, in the order of the fields; nobody should rest on that.
    a_tuple_becomes_a_struct: rows Careful, workers Breaking;
    old { pub(super) type P = (u8, u8); } [(1, 2)]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { x: u8, y: u8 } } [P { x: 1, y: 2 }]
}

edit! {
    one_becomes_many: rows Breaking, workers Breaking;
    old { pub(super) type P = String; } ["x".into()]
    new { pub(super) type P = Vec<String>; } [vec!["x".into()]]
}

edit! {
    a_hash_map_becomes_a_tree: rows Safe, workers Safe;
    old { pub(super) type P = HashMap<String, u8>; } [[("x".to_owned(), 1)].into()]
    new { pub(super) type P = BTreeMap<String, u8>; } [[("x".to_owned(), 1)].into()]
}

edit! {
    a_struct_becomes_a_map: rows Careful, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8, b: u8 } } [P { a: 1, b: 2 }]
    new { pub(super) type P = BTreeMap<String, u8>; } [[("x".to_owned(), 1)].into()]
}

edit! {
    a_struct_that_never_had_other_fields_becomes_a_map: rows Safe, workers Breaking;
    old {
        #[derive(Serialize, Deserialize)] #[serde(deny_unknown_fields)] pub(super) struct P { a: u8, b: u8 }
    } [P { a: 1, b: 2 }]
    new { pub(super) type P = BTreeMap<String, u8>; } [[("x".to_owned(), 1)].into()]
}

edit! {
    pairs_become_a_map: rows Breaking, workers Breaking;
    old { pub(super) type P = Vec<(String, u8)>; } [vec![("x".into(), 1)]]
    new { pub(super) type P = BTreeMap<String, u8>; } [[("x".to_owned(), 1)].into()]
}

edit! {
    an_option_of_an_option_is_flattened: rows Safe, workers Safe;
    old { pub(super) type P = Option<Option<u8>>; } [None, Some(None), Some(Some(1))]
    new { pub(super) type P = Option<u8>; } [None, Some(1)]
}

edit! {
    items_may_be_null: rows Safe, workers Breaking;
    old { pub(super) type P = Vec<u8>; } [vec![1]]
    new { pub(super) type P = Vec<Option<u8>>; } [vec![None]]
}

edit! {
    a_unit_becomes_an_option: rows Safe, workers Breaking;
    old { pub(super) type P = (); } [()]
    new { pub(super) type P = Option<u8>; } [Some(1)]
}

edit! {
    a_character_becomes_text: rows Safe, workers Breaking;
    old { pub(super) type P = char; } ['é']
    new { pub(super) type P = String; } ["éé".into()]
}

edit! {
    anything_is_read_from_now_on: rows Safe, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8 } } [P { a: 1 }]
    new { pub(super) type P = serde_json::Value; } [serde_json::json!(null)]
}

edit! {
    anything_is_narrowed: rows Breaking, workers Safe;
    old { pub(super) type P = serde_json::Value; } [serde_json::json!({"x": [1]})]
    new { pub(super) type P = BTreeMap<String, u8>; } [[("x".to_owned(), 1)].into()]
}

edit! {
    borrowed_or_owned_text_is_one: rows Safe, workers Safe;
    old { pub(super) type P = String; } ["x".into()]
    new { pub(super) type P = std::borrow::Cow<'static, str>; } ["x".into()]
}
