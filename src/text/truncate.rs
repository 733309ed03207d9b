//! Cutting text to a budget: in the middle, or into lossless fragments.
//!
//! # Limits
//!
//! The marker of a middle cut is not counted in the budget (reference 7.1):
//! callers whose limit is hard take its 44 bytes off first.

use crate::domain::limits::BYTES_PER_TOKEN;

/// Bytes that `…18446744073709551615 tokens truncated…` would need.
#[cfg(test)]
const MARKER_BYTES_MAX: usize = 44;

/// Keeps the beginning and the end within `tokens` estimated tokens and says
/// in between how many are gone: `…4030 tokens truncated…`.
pub(crate) fn middle_tokens(text: &str, tokens: usize) -> String {
    let budget = tokens.saturating_mul(BYTES_PER_TOKEN);
    middle(text, budget, |_| {
        let missing = (text.len() - budget).div_ceil(BYTES_PER_TOKEN);
        format!("…{missing} tokens truncated…")
    })
}

/// Keeps the beginning and the end within `bytes` bytes and says in between
/// how many characters are gone: `…12 chars truncated…`.
pub(crate) fn middle_bytes(text: &str, bytes: usize) -> String {
    middle(text, bytes, |removed| {
        format!("…{} chars truncated…", removed.chars().count())
    })
}

/// Splits `text` into parts of at most `bytes_max` bytes that joined give
/// `text` again. No part is empty; empty text has no parts.
///
/// A part is longer than `bytes_max` only where a single character is.
pub(crate) fn fragments(text: &str, bytes_max: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let first_char_bytes = rest.chars().next().map_or(1, char::len_utf8);
        let end = rest.floor_char_boundary(bytes_max).max(first_char_bytes);
        let (part, tail) = rest.split_at(end);
        parts.push(part);
        rest = tail;
    }
    parts
}

/// Left half rounded down, right half the rest, both at character borders.
fn middle(text: &str, budget: usize, marker: impl FnOnce(&str) -> String) -> String {
    if text.len() <= budget {
        return text.to_owned();
    }
    let left_bytes = budget / 2;
    let right_bytes = budget - left_bytes;
    let prefix_end = text.floor_char_boundary(left_bytes);
    let suffix_start = text.ceil_char_boundary(text.len() - right_bytes);
    let marker = marker(&text[prefix_end..suffix_start]);
    format!("{}{marker}{}", &text[..prefix_end], &text[suffix_start..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{MARKER_BYTES_MAX, fragments, middle_bytes, middle_tokens};

    #[test]
    fn a_long_summary_is_cut_as_the_reference_does() {
        let summary = "a".repeat(26_119);
        let cut = middle_tokens(&summary, 2_500);
        let marker = "…4030 tokens truncated…";
        assert_eq!(cut.len(), 10_000 + marker.len());
        assert_eq!(&cut[5_000..5_000 + marker.len()], marker);
    }

    #[test]
    fn text_within_budget_is_unchanged() {
        assert_eq!(middle_tokens(&"a".repeat(10_000), 2_500).len(), 10_000);
        assert_eq!(middle_bytes("", 0), "");
    }

    #[test]
    fn a_budget_of_nothing_leaves_the_marker() {
        assert_eq!(middle_tokens("abcde", 0), "…2 tokens truncated…");
        assert_eq!(middle_bytes("äöü", 0), "…3 chars truncated…");
    }

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(middle_bytes("ääää", 5), "ä…2 chars truncated…ä");
        assert_eq!(middle_bytes("日本語日本語", 7), "日…4 chars truncated…語");
    }

    #[test]
    fn fragments_of_one_wide_character_still_end() {
        assert_eq!(fragments("日本", 1), ["日", "本"]);
        assert_eq!(fragments("", 5), Vec::<&str>::new());
    }

    proptest! {
        #[test]
        fn a_cut_keeps_both_ends_and_its_budget(text in "\\PC{0,200}", bytes in 0_usize..100) {
            let cut = middle_bytes(&text, bytes);
            prop_assert!(cut.len() <= bytes.max(text.len().min(bytes)) + MARKER_BYTES_MAX);
            prop_assert!(text.len() > bytes || cut == text);
        }

        #[test]
        fn fragments_lose_nothing(text in "\\PC{0,300}", bytes in 4_usize..50) {
            let parts = fragments(&text, bytes);
            prop_assert!(parts.iter().all(|part| part.len() <= bytes && !part.is_empty()));
            prop_assert_eq!(parts.concat(), text);
        }
    }
}
