//! Edits of numbers and ids.

use crate::edit::edit;

edit! {
    an_unsigned_number_is_widened: rows Safe, workers Breaking;
    old { pub(super) type P = u8; } [0, u8::MAX]
    new { pub(super) type P = u32; } [0, u32::MAX]
}

edit! {
    a_signed_number_is_widened: rows Safe, workers Breaking;
    old { pub(super) type P = i32; } [i32::MIN, i32::MAX]
    new { pub(super) type P = i64; } [i64::MIN, i64::MAX]
}

edit! {
    an_unsigned_number_becomes_a_wider_signed_one: rows Safe, workers Breaking;
    old { pub(super) type P = u32; } [0, u32::MAX]
    new { pub(super) type P = i64; } [-1]
}

edit! {
    an_unsigned_number_becomes_a_signed_one: rows Breaking, workers Breaking;
    old { pub(super) type P = u64; } [u64::MAX]
    new { pub(super) type P = i64; } [-1]
}

edit! {
    a_number_is_narrowed: rows Breaking, workers Safe;
    old { pub(super) type P = u64; } [u64::MAX]
    new { pub(super) type P = u16; } [u16::MAX]
}

edit! {
    a_number_outgrows_64_bits: rows Safe, workers Breaking;
    old { pub(super) type P = u64; } [u64::MAX]
    new { pub(super) type P = u128; } [u128::MAX]
}

edit! {
    a_size_is_a_number_of_64_bits: rows Safe, workers Safe;
    old { pub(super) type P = usize; } [usize::MAX]
    new { pub(super) type P = u64; } [u64::MAX]
}

edit! {
    a_small_whole_number_gets_a_fraction: rows Safe, workers Breaking;
    old { pub(super) type P = i32; } [i32::MIN, i32::MAX]
    new { pub(super) type P = f64; } [0.5]
}

edit! {
    /// Read, but rounded: 2^64 - 1 has no float of its own.
    a_large_whole_number_gets_a_fraction: rows Careful, workers Breaking;
    old { pub(super) type P = u64; } [u64::MAX]
    new { pub(super) type P = f64; } [0.5]
}

edit! {
    a_fraction_is_cut_off: rows Breaking, workers Safe;
    old { pub(super) type P = f64; } [0.5]
    new { pub(super) type P = u32; } [1]
}

edit! {
    a_float_is_widened: rows Safe, workers Careful;
    old { pub(super) type P = f32; } [0.1, f32::MAX]
    new { pub(super) type P = f64; } [0.1, 1e300]
}

edit! {
    a_number_becomes_text: rows Breaking, workers Breaking;
    old { pub(super) type P = u64; } [1]
    new { pub(super) type P = String; } ["1".into()]
}

edit! {
    a_number_gets_a_type_of_its_own: rows Safe, workers Safe;
    old { pub(super) type P = u64; } [1]
    new { #[derive(Serialize, Deserialize)] pub(super) struct P(u64); } [P(u64::MAX)]
}

edit! {
    an_id_loses_its_type: rows Safe, workers Safe;
    old { #[derive(Serialize, Deserialize)] #[serde(transparent)] pub(super) struct P { id: u64 } } [P { id: 1 }]
    new { pub(super) type P = u64; } [1]
}

edit! {
    zero_is_refused_from_now_on: rows Breaking, workers Careful;
    old { pub(super) type P = u32; } [0]
    new { pub(super) type P = std::num::NonZeroU32; } [P::MAX]
}

edit! {
    a_flag_becomes_a_number: rows Breaking, workers Breaking;
    old { pub(super) type P = bool; } [true]
    new { pub(super) type P = u8; } [1]
}

edit! {
    the_keys_of_a_map_are_widened: rows Safe, workers Breaking;
    old { pub(super) type P = BTreeMap<u8, bool>; } [[(u8::MAX, true)].into()]
    new { pub(super) type P = BTreeMap<u64, bool>; } [[(u64::MAX, true)].into()]
}
