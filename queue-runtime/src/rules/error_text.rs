//! Error text fit to be stored: bounded, printable, never empty.

use std::any::Any;

/// The longest error text that is kept, in bytes.
pub const ERROR_BYTES_MAX: usize = 8 * 1024;

/// Cuts at a character boundary to [`ERROR_BYTES_MAX`], replaces NUL (which SQL text cannot
/// carry everywhere), and names an empty message.
pub fn fit(text: &str) -> String {
    const CUT: &str = "… (cut)";
    let text = if text.trim().is_empty() {
        "(no message)"
    } else {
        text
    };
    // Cut first: to go through megabytes would keep the handler's thread from everything else.
    let head = &text[..text.floor_char_boundary(ERROR_BYTES_MAX)];
    let kept = head.replace('\0', "\u{fffd}");
    if head.len() == text.len() && kept.len() <= ERROR_BYTES_MAX {
        return kept;
    }
    let end = kept.floor_char_boundary(ERROR_BYTES_MAX - CUT.len());
    format!("{}{CUT}", &kept[..end])
}

/// Returns what a panic said; a value that is no text is named as such and never dropped, since
/// its own drop may panic, outside of everything that catches.
pub(crate) fn panic_message(panic: Box<dyn Any + Send>) -> String {
    let text = match panic.downcast::<&str>() {
        Ok(text) => return (*text).to_owned(),
        Err(other) => other.downcast::<String>(),
    };
    match text {
        Ok(text) => *text,
        Err(other) => {
            std::mem::forget(other);
            "a value that is no text".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ten_megabyte_error_is_cut_on_a_character_boundary() {
        let kept = fit(&"é".repeat(5 * 1024 * 1024));
        assert!(kept.len() <= ERROR_BYTES_MAX && kept.len() > ERROR_BYTES_MAX - 4);
        assert!(kept.ends_with("é… (cut)"));
    }

    #[test]
    fn an_error_that_grows_beyond_the_bound_by_its_nuls_is_cut() {
        for nuls in [ERROR_BYTES_MAX / 2, ERROR_BYTES_MAX, 5 * 1024 * 1024] {
            let kept = fit(&"\0".repeat(nuls));
            assert!(kept.len() <= ERROR_BYTES_MAX && kept.len() > ERROR_BYTES_MAX - 4);
            assert!(kept.ends_with("\u{fffd}… (cut)"));
        }
        assert_eq!(fit(&"x".repeat(ERROR_BYTES_MAX)).len(), ERROR_BYTES_MAX);
    }

    #[test]
    fn an_error_without_words_is_named() {
        assert_eq!(fit(""), "(no message)");
        assert_eq!(fit(" \n"), "(no message)");
    }

    #[test]
    fn a_nul_in_an_error_is_replaced() {
        assert_eq!(fit("a\0b"), "a\u{fffd}b");
    }
}
