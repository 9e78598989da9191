//! Keys under another name, so that the store behind does not hold them together.

/// Stands between a key and what makes it another one.
const MARK: &str = "\u{1f}known bad\u{1f}";

/// Makes another key of a key.
pub(super) fn disguised(key: &str, other: impl std::fmt::Display) -> String {
    format!("{key}{MARK}{other}")
}

/// Shows the key as it was given.
pub(super) fn undisguise(key: &mut Option<String>) {
    if let Some(at) = key.as_ref().and_then(|key| key.find(MARK)) {
        let shortened = key.as_mut();
        shortened.expect("it was found above").truncate(at);
    }
}
