//! Words that a person asks for, wherever they stand.
//!
//! Case, width, punctuation, list marks and line ends do not count; words do:
//! `Ada` is not in `adapter`. Scripts without spaces between words have no
//! such borders.

use crate::text::shingles::{is_unspaced, normalise};

/// A phrase to look for. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase {
    normal: String,
}

impl Phrase {
    /// `None` when there is no letter or digit in it.
    pub(crate) fn new(words: &str) -> Option<Self> {
        let normal = normalise(words);
        normal
            .chars()
            .any(char::is_alphanumeric)
            .then_some(Self { normal })
    }

    /// Whether `text` says it, on one line or over several.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let text = normalise(text);
        let mut from = 0;
        while let Some(at) = text[from..].find(&self.normal) {
            let (start, end) = (from + at, from + at + self.normal.len());
            let starts = is_border(text[..start].chars().next_back(), first(&self.normal));
            let ends = is_border(self.normal.chars().next_back(), first(&text[end..]));
            if starts && ends {
                return true;
            }
            from = start + first(&self.normal).map_or(1, char::len_utf8);
        }
        false
    }
}

fn first(text: &str) -> Option<char> {
    text.chars().next()
}

/// Whether a word ends between two neighbours.
fn is_border(before: Option<char>, after: Option<char>) -> bool {
    let (Some(before), Some(after)) = (before, after) else {
        return true;
    };
    let is_inside = before.is_alphanumeric() && after.is_alphanumeric();
    !is_inside || is_unspaced(before) || is_unspaced(after)
}

#[cfg(test)]
mod tests {
    use super::Phrase;

    #[test]
    fn whole_words_count_whatever_their_case_width_and_lines() {
        for (phrase, text, expected) in [
            (
                "deploy on Fridays",
                "- We DEPLOY on\n  fridays, always",
                true,
            ),
            ("Ada", "the adapter", false),
            ("Ada", "ask (ada)!", true),
            ("ＡＤＡ", "ask Ada", true),
            ("Größe", "die GRÖSSE", false),
            ("Größe", "die GRÖẞE zählt", true),
            ("数据库", "我们的数据库是 Postgres", true),
            ("port 8080", "port 80801", false),
            ("a.b", "see a.b now", true),
        ] {
            let phrase = Phrase::new(phrase).unwrap();
            assert_eq!(phrase.is_in(text), expected, "{phrase:?} {text:?}");
        }
        assert_eq!(Phrase::new(" - *"), None);
    }
}
