//! What holds of every shape: the file gives it back, nothing differs from itself, and the list of
//! differences says the same as the plain yes or no.

use proptest::prelude::*;
use queue_runtime::job::Contract;
use queue_runtime::job::shape::{Enum, Int, Member, Opaque, Shape, Struct, Variant};
use queue_runtime::lockfile::{parse, write};
use queue_runtime::rules::evolution::{Stored, compare, compare_jobs, reads};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-d]",
        1 => "[a-z_][a-z0-9_.-]{0,8}",
        1 => any::<String>(),
    ]
}

fn leaf() -> impl Strategy<Value = Shape> {
    let bits = prop_oneof![Just(8), Just(16), Just(32), Just(64), Just(128)];
    prop_oneof![
        Just(Shape::Bool),
        (any::<bool>(), bits).prop_map(|(signed, bits)| Shape::Int(Int { signed, bits })),
        Just(Shape::Float(32)),
        Just(Shape::Float(64)),
        Just(Shape::Char),
        Just(Shape::Text),
        Just(Shape::Binary),
        Just(Shape::Unit),
        Just(Shape::Anything),
        (name(), any::<String>()).prop_filter_map("a name", |(asked, about)| {
            (!asked.is_empty()).then_some(Shape::Opaque(Opaque { asked, about }))
        }),
    ]
}

fn members(shape: BoxedStrategy<Shape>) -> impl Strategy<Value = Vec<Member>> {
    let names = prop::collection::btree_set(name(), 1..3);
    let member = (names, any::<bool>(), shape).prop_map(|(names, required, shape)| {
        let mut names = names.into_iter();
        let name = names.next().expect("at least one");
        let aliases = names.collect();
        Member {
            name,
            aliases,
            required,
            shape,
        }
    });
    prop::collection::vec(member, 0..4).prop_map(|mut fields| {
        let mut seen = std::collections::BTreeSet::new();
        fields.retain(|field| field.names().all(|name| seen.insert(name.to_owned())));
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        fields
    })
}

/// Shapes as they are traced: an option holds no option.
fn shape() -> BoxedStrategy<Shape> {
    let nested = leaf().prop_recursive(4, 24, 4, |inner| {
        let variant = (name(), prop::option::of(inner.clone()));
        let variants = prop::collection::vec(variant, 0..4).prop_map(|variants| {
            let named: std::collections::BTreeMap<_, _> = variants.into_iter().collect();
            let variants = named
                .into_iter()
                .map(|(name, content)| Variant { name, content });
            variants.collect()
        });
        prop_oneof![
            inner.clone().prop_map(|shape| match shape {
                Shape::Nullable(_) => shape,
                shape => Shape::Nullable(Box::new(shape)),
            }),
            inner.clone().prop_map(|shape| Shape::List(Box::new(shape))),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Shape::Tuple),
            (inner.clone(), 2_usize..4).prop_map(|(shape, times)| Shape::Tuple(vec![shape; times])),
            (inner.clone(), inner.clone())
                .prop_map(|(key, value)| Shape::Entries(Box::new(key), Box::new(value))),
            (any::<bool>(), members(inner.boxed())).prop_map(|(closed, fields)| Shape::Struct(
                Struct {
                    name: None,
                    closed,
                    fields
                }
            )),
            (any::<bool>(), variants).prop_map(|(open, variants)| Shape::Enum(Enum {
                name: None,
                open,
                variants
            })),
        ]
    });
    nested.boxed()
}

/// A shape that holds itself, at places where it can.
fn recursive() -> impl Strategy<Value = Shape> {
    (shape(), name(), any::<bool>())
        .prop_map(|(beside, own, required)| {
            let member = |name: &str, required, shape| Member {
                name: name.into(),
                aliases: Vec::new(),
                required,
                shape,
            };
            let same = Shape::Nullable(Box::new(Shape::Same(own.clone())));
            Shape::Struct(Struct {
                name: Some(own),
                closed: false,
                fields: vec![
                    member("beside", required, beside),
                    member("same", false, same),
                ],
            })
        })
        .prop_filter("a name", |shape| match shape {
            Shape::Struct(object) => object.name.as_ref().is_some_and(|name| !name.is_empty()),
            _ => true,
        })
}

/// The shape inside an argument, so that the rule about arguments themselves stays out of it.
fn contract(shape: Shape) -> Contract {
    let member = |shape| Member {
        name: "value".into(),
        aliases: Vec::new(),
        required: true,
        shape,
    };
    let inner = Struct {
        name: None,
        closed: false,
        fields: vec![member(shape)],
    };
    Contract {
        name: "work".into(),
        aliases: Vec::new(),
        schema: 1,
        upcast: false,
        settings: vec![("queue".into(), "default".into())],
        payload: Struct {
            name: None,
            closed: false,
            fields: vec![member(Shape::Struct(inner))],
        },
    }
}

fn pair() -> impl Strategy<Value = (Shape, Shape)> {
    prop_oneof![
        (shape(), shape()),
        (recursive(), recursive()),
        // Alike but for the outermost: so that insides are compared too.
        (
            members(shape()),
            members(shape()),
            any::<bool>(),
            any::<bool>()
        )
            .prop_map(|(a, b, closed, also)| {
                let shape = |closed, fields| {
                    Shape::Struct(Struct {
                        name: None,
                        closed,
                        fields,
                    })
                };
                (shape(closed, a), shape(also, b))
            }),
    ]
}

fn filled(text: String) -> String {
    if text.trim().is_empty() {
        "x".into()
    } else {
        text
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(
        shapes in prop::collection::vec(prop_oneof![shape(), recursive().boxed()], 0..3),
        names in prop::collection::btree_set(name(), 3),
        aliases in prop::collection::btree_set(name(), 0..3),
        value in any::<String>(),
        (schema, upcast) in (1..9_u32, any::<bool>()),
    ) {
        let contracts: Vec<Contract> = shapes.into_iter().zip(names).map(|(shape, name)| Contract {
            name: filled(name),
            aliases: aliases.iter().cloned().collect(),
            schema,
            upcast,
            settings: vec![("dedupe".into(), value.clone()), ("queue".into(), "default".into())],
            ..contract(shape)
        }).collect();
        let mut unique = contracts;
        unique.sort_by(|a, b| a.name.cmp(&b.name));
        unique.dedup_by(|a, b| a.name == b.name);
        let text = write(&unique);
        prop_assert_eq!(parse(&text).map_err(|e| format!("{e} in\n{text}")), Ok(unique));
    }

    #[test]
    fn nothing_differs_from_itself(shape in prop_oneof![shape(), recursive().boxed()]) {
        prop_assert!(reads(&shape, &shape, Stored::Rows));
        prop_assert!(reads(&shape, &shape, Stored::Fresh));
        let contracts = [contract(shape)];
        prop_assert_eq!(compare(&contracts, &contracts), []);
    }

    #[test]
    fn the_differences_say_the_same_as_yes_or_no((old, new) in pair()) {
        let (old, new) = (contract(old), contract(new));
        let changes = compare_jobs(&old, &new);
        let whole = |contract: &Contract| contract.payload.fields[0].shape.clone();
        let rows = reads(&whole(&new), &whole(&old), Stored::Rows);
        let workers = reads(&whole(&old), &whole(&new), Stored::Fresh);
        prop_assert_eq!(changes.iter().all(|change| !change.rows.is_breaking()), rows, "{:#?}", changes);
        prop_assert_eq!(changes.iter().all(|change| !change.workers.is_breaking()), workers, "{:#?}", changes);
    }

    #[test]
    fn a_schema_with_an_upcast_covers_every_payload((old, new) in pair()) {
        let new = Contract { schema: 2, upcast: true, ..contract(new) };
        let changes = compare_jobs(&contract(old), &new);
        prop_assert!(!changes.iter().any(|change| change.is_breaking()), "{:#?}", changes);
    }

    #[test]
    fn a_damaged_text_is_an_error_and_never_a_panic(shape in shape(), at in any::<prop::sample::Index>(), with in any::<String>()) {
        let text = write(&[contract(shape)]);
        let mut at = at.index(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let _ = parse(&format!("{}{with}{}", &text[..at], &text[at..]));
        let _ = parse(&text[..at]);
    }
}
