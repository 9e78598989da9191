//! Finds out what the user wrote: the options of the attribute, the function, and the small languages
//! inside strings.
//!
//! Parsing never judges. A retry count of five thousand parses; `validate` refuses it. Each option is cut
//! out at the top-level commas and read alone, so that one broken option hides no other.

pub(crate) mod table;
pub(crate) mod options;
pub(crate) mod function;
pub(crate) mod duration;
pub(crate) mod backoff;
pub(crate) mod key;

pub(crate) use function::{Argument, Function, Item, item};
pub(crate) use options::{Form, Written, options};
