//! Finds the word that was probably meant, for "did you mean" hints.
//!
//! Knows nothing about what the words stand for.

/// The candidate nearest to `word`, if it is near enough to be worth saying.
///
/// Near enough is one edit per three characters, and at least one: more would offer `queue` for `cache`.
pub(crate) fn closest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let edits_max = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (edits(word, candidate), candidate))
        .filter(|(edits, _)| *edits <= edits_max)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// `"; did you mean `x`?"` or nothing, to be put behind a message.
pub(crate) fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    closest(word, candidates)
        .map(|found| format!("; did you mean `{found}`?"))
        .unwrap_or_default()
}

/// Words in backticks, joined by commas, for "one of" lists.
pub(crate) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn `left` into `right`
/// (optimal string alignment).
fn edits(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    // `before` and `last` are the two rows above the one being filled; a swap looks back two rows.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, from) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in right.iter().enumerate() {
            let replaced = last[j] + usize::from(from != to);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *from == right[j - 1] && left[i - 1] == *to {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_finds_the_word_and_a_different_word_finds_nothing() {
        #[track_caller]
        fn check(word: &str, expected: Option<&str>) {
            let words = [
                "name",
                "queue",
                "retries",
                "timeout",
                "user_id",
                "exponential",
            ];
            assert_eq!(closest(word, words), expected, "{word}");
        }
        check("retrys", Some("retries"));
        check("nmae", Some("name"));
        check("exponental", Some("exponential"));
        check("user_idd", Some("user_id"));
        check("tiemout", Some("timeout"));
        check("cache", None);
        check("x", None);
        check("", None);
    }

    #[test]
    fn a_swap_of_neighbours_counts_as_one_edit() {
        assert_eq!(edits("nmae", "name"), 1);
        assert_eq!(edits("abc", ""), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("same", "same"), 0);
    }
}
