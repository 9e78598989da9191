//! Edits of the fields of a struct inside a payload.

use crate::edit::edit;

edit! {
    an_option_is_added: rows Safe, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8 } } [P { a: 1 }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8, b: Option<String> } }
        [P { a: 1, b: None }, P { a: 1, b: Some("x".into()) }]
}

edit! {
    a_field_with_a_default_is_added: rows Safe, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8 } } [P { a: 1 }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8, #[serde(default)] b: Vec<u8> } }
        [P { a: 1, b: vec![2] }]
}

edit! {
    a_required_field_is_added: rows Breaking, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8 } } [P { a: 1 }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8, b: String } }
        [P { a: 1, b: "x".into() }]
}

edit! {
    an_option_read_by_a_function_is_required: rows Breaking, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8 } } [P { a: 1 }]
    new {
        #[derive(Serialize, Deserialize)]
        pub(super) struct P { a: u8, #[serde(deserialize_with = "plain")] b: Option<u8> }
        fn plain<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<u8>, D::Error> {
            Option::deserialize(d)
        }
    } [P { a: 1, b: None }]
}

edit! {
    an_option_is_added_where_old_workers_refuse_the_unknown: rows Safe, workers Breaking;
    old { #[derive(Serialize, Deserialize)] #[serde(deny_unknown_fields)] pub(super) struct P { a: u8 } }
        [P { a: 1 }]
    new {
        #[derive(Serialize, Deserialize)] #[serde(deny_unknown_fields)]
        pub(super) struct P { a: u8, b: Option<u8> }
    } [P { a: 1, b: None }]
}

edit! {
    a_required_field_is_removed: rows Safe, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8, b: u8 } } [P { a: 1, b: 2 }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8 } } [P { a: 1 }]
}

edit! {
    an_option_is_removed: rows Safe, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8, b: Option<u8> } }
        [P { a: 1, b: None }, P { a: 1, b: Some(2) }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8 } } [P { a: 1 }]
}

edit! {
    a_field_is_removed_where_the_unknown_is_refused: rows Breaking, workers Safe;
    old {
        #[derive(Serialize, Deserialize)] #[serde(deny_unknown_fields)]
        pub(super) struct P { a: u8, b: Option<u8> }
    } [P { a: 1, b: None }]
    new { #[derive(Serialize, Deserialize)] #[serde(deny_unknown_fields)] pub(super) struct P { a: u8 } }
        [P { a: 1 }]
}

edit! {
    a_field_is_renamed: rows Breaking, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { sku: String } } [P { sku: "x".into() }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { article: String } }
        [P { article: "x".into() }]
}

edit! {
    a_field_is_renamed_with_an_alias: rows Safe, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { sku: String } } [P { sku: "x".into() }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { #[serde(alias = "sku")] article: String } }
        [P { article: "x".into() }]
}

edit! {
    /// The rolling way: first read both names, then write the new one.
    a_field_is_renamed_after_old_workers_learnt_the_name: rows Safe, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { #[serde(alias = "article")] sku: String } }
        [P { sku: "x".into() }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { #[serde(alias = "sku")] article: String } }
        [P { article: "x".into() }]
}

edit! {
    a_field_is_renamed_in_rust_alone: rows Safe, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { sku: String } } [P { sku: "x".into() }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { #[serde(rename = "sku")] article: String } }
        [P { article: "x".into() }]
}

edit! {
    an_alias_is_added: rows Safe, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { sku: String } } [P { sku: "x".into() }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { #[serde(alias = "article")] sku: String } }
        [P { sku: "x".into() }]
}

edit! {
    /// Rows of builds before may wait under the alias; this build's own do not.
    an_alias_is_removed: rows Careful, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { #[serde(alias = "article")] sku: String } }
        [P { sku: "x".into() }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { sku: String } } [P { sku: "x".into() }]
}

edit! {
    all_fields_are_renamed_by_a_rule: rows Breaking, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { order_id: u8 } } [P { order_id: 1 }]
    new {
        #[derive(Serialize, Deserialize)] #[serde(rename_all = "camelCase")]
        pub(super) struct P { order_id: u8 }
    } [P { order_id: 1 }]
}

edit! {
    a_rule_that_renames_nothing_is_added: rows Safe, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { id: u8 } } [P { id: 1 }]
    new {
        #[derive(Serialize, Deserialize)] #[serde(rename_all = "camelCase")]
        pub(super) struct P { id: u8 }
    } [P { id: 1 }]
}

edit! {
    fields_change_places: rows Safe, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8, b: String } }
        [P { a: 1, b: "x".into() }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { b: String, a: u8 } }
        [P { a: 1, b: "x".into() }]
}

edit! {
    an_option_becomes_required: rows Breaking, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: Option<u8> } }
        [P { a: None }, P { a: Some(1) }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8 } } [P { a: 1 }]
}

edit! {
    a_field_becomes_an_option: rows Safe, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8 } } [P { a: 1 }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { a: Option<u8> } }
        [P { a: None }, P { a: Some(1) }]
}

edit! {
    an_option_is_left_out_when_empty: rows Safe, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: Option<u8> } }
        [P { a: None }, P { a: Some(1) }]
    new {
        #[derive(Serialize, Deserialize)]
        pub(super) struct P { #[serde(skip_serializing_if = "Option::is_none")] a: Option<u8> }
    } [P { a: None }, P { a: Some(1) }]
}

edit! {
    a_list_may_be_left_out_when_empty: rows Safe, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: Vec<u8> } } [P { a: vec![] }]
    new {
        #[derive(Serialize, Deserialize)]
        pub(super) struct P { #[serde(default, skip_serializing_if = "Vec::is_empty")] a: Vec<u8> }
    } [P { a: vec![] }]
}

edit! {
    /// It is always stored, but `Deserialize` does not show that.
    a_default_is_added_to_a_field: rows Safe, workers Careful;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8 } } [P { a: 1 }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { #[serde(default)] a: u8 } } [P { a: 1 }]
}

edit! {
    a_default_is_removed_from_a_field_that_is_left_out: rows Breaking, workers Safe;
    old {
        #[derive(Serialize, Deserialize)]
        pub(super) struct P { #[serde(default, skip_serializing_if = "Vec::is_empty")] a: Vec<u8> }
    } [P { a: vec![] }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { a: Vec<u8> } } [P { a: vec![] }]
}

edit! {
    all_fields_get_a_default: rows Safe, workers Careful;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8, b: u8 } } [P { a: 1, b: 2 }]
    new {
        #[derive(Serialize, Deserialize, Default)] #[serde(default)]
        pub(super) struct P { a: u8, b: u8 }
    } [P { a: 1, b: 2 }]
}

edit! {
    /// This build's own rows are read; those of the build before it may have more fields.
    unknown_fields_are_refused_from_now_on: rows Careful, workers Safe;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8 } } [P { a: 1 }]
    new { #[derive(Serialize, Deserialize)] #[serde(deny_unknown_fields)] pub(super) struct P { a: u8 } }
        [P { a: 1 }]
}

edit! {
    unknown_fields_are_read_from_now_on: rows Safe, workers Safe;
    old { #[derive(Serialize, Deserialize)] #[serde(deny_unknown_fields)] pub(super) struct P { a: u8 } }
        [P { a: 1 }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8 } } [P { a: 1 }]
}

edit! {
    a_field_deep_inside_is_retyped: rows Breaking, workers Breaking;
    old {
        #[derive(Serialize, Deserialize)] struct Line { sku: u32 }
        #[derive(Serialize, Deserialize)] struct Order { lines: Vec<Line> }
        #[derive(Serialize, Deserialize)] pub(super) struct P { orders: BTreeMap<String, Option<Order>> }
    } [P { orders: [("x".into(), Some(Order { lines: vec![Line { sku: 1 }] }))].into() }]
    new {
        #[derive(Serialize, Deserialize)] struct Line { sku: String }
        #[derive(Serialize, Deserialize)] struct Order { lines: Vec<Line> }
        #[derive(Serialize, Deserialize)] pub(super) struct P { orders: BTreeMap<String, Option<Order>> }
    } [P { orders: [("x".into(), Some(Order { lines: vec![Line { sku: "y".into() }] }))].into() }]
}

edit! {
    a_field_of_a_recursive_type_is_added: rows Breaking, workers Safe;
    old {
        #[derive(Serialize, Deserialize)] pub(super) struct P { children: Vec<P> }
    } [P { children: vec![P { children: vec![] }] }]
    new {
        #[derive(Serialize, Deserialize)] pub(super) struct P { children: Vec<P>, depth: u8 }
    } [P { children: vec![], depth: 1 }]
}

edit! {
    types_are_renamed_and_boxed: rows Safe, workers Safe;
    old {
        #[derive(Serialize, Deserialize)] struct Address { street: String }
        #[derive(Serialize, Deserialize)] pub(super) struct P { at: Address, next: Option<Box<P>> }
    } [P { at: Address { street: "x".into() }, next: None }]
    new {
        #[derive(Serialize, Deserialize)] struct Place { street: Box<str> }
        #[derive(Serialize, Deserialize)] struct Stop { at: Box<Place>, next: Option<Box<Stop>> }
        #[derive(Serialize, Deserialize)] pub(super) struct P { at: Place, next: Option<Box<Stop>> }
    } [P { at: Place { street: "x".into() }, next: None }]
}

edit! {
    /// Two types of one name and the same fields inside one another are not one type.
    a_generic_type_inside_itself_is_retyped: rows Breaking, workers Breaking;
    old {
        #[derive(Serialize, Deserialize)] struct Page<T> { item: T }
        #[derive(Serialize, Deserialize)] pub(super) struct P(Page<Page<u8>>);
    } [P(Page { item: Page { item: 1 } })]
    new {
        #[derive(Serialize, Deserialize)] struct Page<T> { item: T }
        #[derive(Serialize, Deserialize)] pub(super) struct P(Page<Page<bool>>);
    } [P(Page { item: Page { item: true } })]
}

edit! {
    two_fields_become_one: rows Breaking, workers Breaking;
    old { #[derive(Serialize, Deserialize)] pub(super) struct P { a: u8, b: u8 } } [P { a: 1, b: 2 }]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P { #[serde(alias = "b")] a: u8 } } [P { a: 1 }]
}
