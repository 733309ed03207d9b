//! What a person's doings say about what may come in: withhold it, or release
//! it again.
//!
//! Pure. The last word about a thing counts, so commits are asked from the
//! newest to the oldest, and asking the same commits again says the same.

use std::collections::BTreeMap;

use crate::consolidate::edits::Consequences;
use crate::consolidate::past::TakenBack;
use crate::domain::entry::Entry;
use crate::domain::withheld::{EntryHashes, Withheld, WithheldReason, WithheldWhat};
use crate::notes::withheld_set::WithheldSet;
use crate::store::message::Input;
use crate::text::shingles;

/// One word about one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Withhold(WithheldReason),
    /// Ends what was withheld for this reason, and for no other.
    Release(WithheldReason),
}

/// The last word about each thing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words {
    /// Threads and versions of inputs.
    sources: BTreeMap<WithheldWhat, Word>,
    /// By normalised words, with the text.
    entries: BTreeMap<String, (Word, String)>,
}

/// What words change about what is withheld.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) new: Vec<(WithheldReason, WithheldWhat)>,
    pub(crate) released: Vec<Withheld>,
}

impl Words {
    /// About what an edit removed.
    pub(crate) fn about_edit(&mut self, told: &Consequences, word: Word) {
        for (thread_id, until) in &told.forgotten {
            let thread = WithheldWhat::Thread {
                thread_id: thread_id.clone(),
                until: *until,
            };
            self.sources.entry(thread).or_insert(word);
        }
        self.about_entries(&told.removed, word);
    }

    /// About all that a baseline brought.
    pub(crate) fn about_baseline(&mut self, brought: &TakenBack, word: Word) {
        for (thread_id, until) in &brought.sessions {
            let thread = WithheldWhat::Thread {
                thread_id: thread_id.clone(),
                until: *until,
            };
            self.sources.entry(thread).or_insert(word);
        }
        self.about_inputs(&brought.inputs, word);
        self.about_entries(&brought.entries, word);
    }

    fn about_inputs(&mut self, inputs: &[Input], word: Word) {
        for input in inputs {
            let version = WithheldWhat::Input {
                path: input.path.clone(),
                blob: input.blob,
            };
            self.sources.entry(version).or_insert(word);
        }
    }

    pub(crate) fn about_entries(&mut self, entries: &[Entry], word: Word) {
        for entry in entries {
            let words = shingles::normalise(&entry.text);
            let said = || (word, entry.text.clone());
            self.entries.entry(words).or_insert_with(said);
        }
    }

    /// What follows, given what is withheld already. `salt` is asked once for
    /// each new entry.
    pub(crate) fn settle(&self, withheld: &WithheldSet, salt: impl Fn() -> [u8; 16]) -> Settled {
        let held = withheld.as_slice().iter();
        let released: Vec<Withheld> = held.filter(|it| self.releases(it)).cloned().collect();
        let left = withheld.without(&released);
        let mut new = Vec::new();
        for (what, word) in &self.sources {
            let is_blocked = match what {
                WithheldWhat::Input { path, blob } => left.blocks_input(path, *blob),
                WithheldWhat::Thread { thread_id, until } => left.blocks_thread(thread_id, *until),
                WithheldWhat::Entry(_) => true,
            };
            if let (Word::Withhold(reason), false) = (word, is_blocked) {
                new.push((*reason, what.clone()));
            }
        }
        for (word, text) in self.entries.values() {
            if let (Word::Withhold(reason), false) = (word, left.blocks_entry(text)) {
                let hashes = shingles::hash_entry(salt(), text);
                new.push((*reason, WithheldWhat::Entry(hashes)));
            }
        }
        Settled { new, released }
    }

    fn releases(&self, held: &Withheld) -> bool {
        let word = Word::Release(held.reason);
        match &held.what {
            WithheldWhat::Entry(hashes) => (self.entries.values())
                .any(|(said, text)| *said == word && is_made_from(hashes, text)),
            what => self.sources.get(what) == Some(&word),
        }
    }
}

/// Whether exactly this text was withheld, not one that is like it.
fn is_made_from(hashes: &EntryHashes, text: &str) -> bool {
    shingles::hash_entry(hashes.salt, text) == *hashes
}

#[cfg(test)]
mod tests {
    use super::{Settled, Word, Words};
    use crate::domain::entry::Entry;
    use crate::domain::path::TreePath;
    use crate::domain::time::Timestamp;
    use crate::domain::withheld::{Withheld, WithheldReason, WithheldWhat};
    use crate::notes::withheld_set::WithheldSet;
    use crate::text::entries;
    use crate::text::shingles;

    const TABS: &str = "indent this project with tabs";

    #[test]
    fn the_last_word_counts() {
        let (hold, release) = words_of(WithheldReason::Reverted);
        assert_eq!(say(&[hold], &[]).new.len(), 1);
        assert_eq!(say(&[release, hold], &[]), Settled::default());
        assert_eq!(say(&[hold, release], &[]).new.len(), 1);
    }

    #[test]
    fn saying_it_again_changes_nothing() {
        let (hold, release) = words_of(WithheldReason::Reverted);
        let known = [held(WithheldReason::Reverted, TABS)];
        assert_eq!(say(&[hold], &known), Settled::default());
        assert_eq!(say(&[release, hold], &known).released, known);
    }

    #[test]
    fn only_what_was_withheld_for_this_is_released() {
        let (_, release) = words_of(WithheldReason::Reverted);
        for (reason, text) in [
            (WithheldReason::Forgotten, TABS),
            (WithheldReason::Edited, TABS),
            (WithheldReason::Reverted, "indent that project with tabs"),
        ] {
            assert_eq!(say(&[release], &[held(reason, text)]), Settled::default());
        }
    }

    /// About one entry, newest word first.
    fn say(newest_first: &[Word], held: &[Withheld]) -> Settled {
        let mut words = Words::default();
        for word in newest_first {
            words.about_entries(&[entry(TABS)], *word);
        }
        let held = WithheldSet::union(held.iter().cloned());
        words.settle(&held, || [3; 16])
    }

    fn words_of(reason: WithheldReason) -> (Word, Word) {
        (Word::Withhold(reason), Word::Release(reason))
    }

    fn entry(text: &str) -> Entry {
        let path = TreePath::parse("MEMORY.md").unwrap();
        entries::parse(&path, &format!("- {text}\n")).remove(0)
    }

    fn held(reason: WithheldReason, text: &str) -> Withheld {
        Withheld {
            id: "a".to_owned(),
            reason,
            since: Timestamp::from_seconds(1_770_000_000),
            what: WithheldWhat::Entry(shingles::hash_entry([7; 16], text)),
        }
    }
}
