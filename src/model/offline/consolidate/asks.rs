//! Which entries a note is about that corrects or forgets.
//!
//! The offline rules and the judge of every result ask the same here before
//! an entry of a person's may change, so that neither takes out what the
//! other has to refuse.

use std::iter::once;

use crate::domain::note::{Note, NoteKind};
use crate::model::offline::consolidate::line;
use crate::model::offline::consolidate::note_text::{content, old_value, without_asking};
use crate::model::offline::consolidate::tokens::{Features, Matcher, common};
use crate::text::note_kind::effective_kind;

/// Least part of a forget note's words that a matching entry has.
const FORGET_PART_MIN: f64 = 0.75;

/// Least part of an entry's words that a forget note quotes.
const FORGET_QUOTED_MIN: f64 = 0.85;

/// Least part of a correction's words that its entry has, or the reverse.
const CORRECT_PART_MIN: f64 = 0.6;

/// How much a word of a correction counts that no entry has: it is rather the
/// new value than what the entry is about.
const NEW_VALUE_WEIGHT: f64 = 0.5;

/// How well an entry fits that has the very value that a correction replaces:
/// better than any other.
pub(super) const NAMED_SCORE: f64 = 3.0;

/// A forget note of so few words means entries that have all of them.
const SHORT_QUERY_MAX: usize = 2;

/// A quoted entry needs this many words to be recognised by them.
const QUOTED_TOKENS_MIN: usize = 4;

/// What a note asks for, and of which entries.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asking {
    kind: NoteKind,
    /// Sorted tokens of all its words that are not mere asking.
    query: Vec<u64>,
    /// Those of `query` that hold a digit.
    numbers: Vec<u64>,
    /// What the note says is replaced, in its own quotation marks, folded.
    old_value: Option<String>,
}

impl Asking {
    pub(crate) fn of(note: &Note) -> Self {
        let text = note.text.unredacted();
        let query = Features::of(&without_asking(text));
        Self {
            kind: effective_kind(note),
            numbers: query.numbers(),
            old_value: old_value(text),
            query: content(&query),
        }
    }

    pub(crate) const fn kind(&self) -> NoteKind {
        self.kind
    }

    /// Whether it asks to change or remove this entry, whatever other entries
    /// there are. `entry` may have bullet, references and mark.
    pub(crate) fn is_about(&self, entry: &str) -> bool {
        self.is_about_features(&Features::of(line::core(entry)))
    }

    pub(super) fn is_about_features(&self, entry: &Features) -> bool {
        let alone = Matcher::new(once(entry));
        match self.kind {
            NoteKind::Remember => false,
            NoteKind::Correct => self.corrects(&alone, entry).is_some(),
            NoteKind::Forget => self.forgets(&alone, entry),
        }
    }

    pub(super) fn forgets(&self, matcher: &Matcher, entry: &Features) -> bool {
        if self.kind != NoteKind::Forget || self.query.is_empty() {
            return false;
        }
        let entry = content(entry);
        let is_quoted = QUOTED_TOKENS_MIN <= entry.len()
            && matcher.part_of(&entry, &self.query, 1.0) >= FORGET_QUOTED_MIN;
        if self.query.len() <= SHORT_QUERY_MAX {
            return is_quoted || common(&self.query, &entry) == self.query.len();
        }
        is_quoted || matcher.part_of(&self.query, &entry, 1.0) >= FORGET_PART_MIN
    }

    /// How well a correction fits an entry; `None` when it does not. The new
    /// value is not in the entry, so numbers that it lacks do not count.
    pub(super) fn corrects(&self, matcher: &Matcher, entry: &Features) -> Option<f64> {
        if let Some(old) = &self.old_value
            && has_words(&entry.folded, old)
        {
            return Some(NAMED_SCORE);
        }
        let numbers = entry.numbers();
        let entry = content(entry);
        let mut query = self.query.clone();
        query.retain(|token| {
            self.numbers.binary_search(token).is_err() || entry.binary_search(token).is_ok()
        });
        let common = common(&query, &entry);
        let changes_number = !self.numbers.is_empty() && !numbers.is_empty();
        if common == 0 || (common == 1 && !changes_number && entry.len() > 1) {
            return None;
        }
        let of_note = matcher.part_of(&query, &entry, NEW_VALUE_WEIGHT);
        let of_entry = matcher.part_of(&entry, &query, 1.0);
        (of_note.max(of_entry) >= CORRECT_PART_MIN).then_some(of_note + of_entry)
    }
}

/// Whether the folded `words` stand in `folded` as whole words, in order.
pub(super) fn has_words(folded: &str, words: &str) -> bool {
    !words.is_empty() && format!(" {folded} ").contains(&format!(" {words} "))
}

#[cfg(test)]
mod tests {
    use super::Asking;
    use crate::domain::path::TreePath;
    use crate::text::note;

    #[track_caller]
    fn check(note: &str, entry: &str, expected: bool) {
        let path = TreePath::parse("extensions/ad_hoc/notes/2025-12-01T10-00-00-a.md").unwrap();
        let note = note::parse(&path, note).unwrap();
        assert_eq!(
            Asking::of(&note).is_about(entry),
            expected,
            "{note:?} {entry:?}"
        );
    }

    #[test]
    fn a_note_is_about_entries_that_have_its_words() {
        for (note, entry, expected) in [
            (
                "Forget: Grace",
                "- by hand: the ledger is Grace's [Task 2]",
                true,
            ),
            ("Forget Grace", "- the ledger is Ada's", false),
            ("Vergiss Postgres", "- die Datenbank ist Postgres 16", true),
            ("忘记 Postgres", "- 数据库是 Postgres", true),
            (
                "Postgres のことは忘れて",
                "- データベースは Postgres です",
                true,
            ),
            (
                "forget that we deploy on fridays",
                "- We deploy on Fridays only",
                true,
            ),
            (
                "forget that we deploy on fridays",
                "- Fridays are free",
                false,
            ),
            (
                "---\nkind: correct\n---\nthe port is 9090",
                "- the port is 8080",
                true,
            ),
            (
                "---\nkind: correct\n---\nthe port is 9090",
                "- tabs are wide",
                false,
            ),
            ("the ledger is Grace's", "- the ledger is Grace's", false),
        ] {
            check(note, entry, expected);
        }
    }
}
