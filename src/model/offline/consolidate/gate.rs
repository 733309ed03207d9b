//! What is withheld stays out: asked once per distinct text.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::domain::entry::{Entry, EntryKind, Rewriting};
use crate::domain::id::ThreadId;
use crate::domain::time::Timestamp;
use crate::domain::withheld::{EntryHashes, Withheld, WithheldWhat};
use crate::model::offline::consolidate::line;
use crate::model::offline::consolidate::tokens::{Features, folded, share};
use crate::text::shingles::Statement;

/// Most bytes of a person's line that is copied into the other file.
const PERSON_BYTES_MAX: usize = 1_000;

/// Least share of common tokens of a line and what a person made of it.
const REWORDED_MIN: f64 = 0.4;

/// The withheld entries, ready to be asked.
pub(super) struct Gate<'a> {
    entries: Vec<&'a EntryHashes>,
    threads: Vec<(&'a ThreadId, Timestamp)>,
    /// Hashing a text once per salt is dear, and the same statement is met in
    /// old and new facts and in both files.
    asked: RefCell<HashMap<String, bool>>,
    /// What a person wrote, as it can be copied.
    person: Vec<(String, Features)>,
    /// What they wrote in place of something, whatever it has in common.
    rewritten: Vec<(Features, (String, Features))>,
}

impl<'a> Gate<'a> {
    pub(super) fn new(
        withheld: &'a [Withheld],
        person_entries: &[Entry],
        rewritings: &[Rewriting],
    ) -> Self {
        let bullets = person_entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Bullet);
        let copied = |text: &str| {
            let first = text.lines().next().unwrap_or_default();
            line::without_pointers(&line::shorten(
                &line::clean(line::core(first)),
                PERSON_BYTES_MAX,
            ))
        };
        let words = bullets.map(|entry| copied(&entry.text));
        let mut gate = Self {
            entries: Vec::new(),
            threads: Vec::new(),
            asked: RefCell::default(),
            rewritten: (rewritings.iter())
                .map(|it| {
                    let new = copied(&it.new);
                    let features = Features::of(&new);
                    (Features::of(line::core(&it.old)), (new, features))
                })
                .filter(|(_, (_, new))| !new.tokens.is_empty())
                .collect(),
            person: words
                .map(|text| (text.clone(), Features::of(&text)))
                .filter(|(_, features)| !features.tokens.is_empty())
                .collect(),
        };
        for one in withheld {
            match &one.what {
                WithheldWhat::Entry(hashes) => gate.entries.push(hashes),
                WithheldWhat::Thread { thread_id, until } => gate.threads.push((thread_id, *until)),
                // The selection leaves these out; a blob is not seen here.
                WithheldWhat::Input { .. } => {}
            }
        }
        gate
    }

    pub(super) fn has_entries(&self) -> bool {
        !self.entries.is_empty()
    }

    pub(super) fn blocks(&self, text: &str) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        if let Some(known) = self.asked.borrow().get(text) {
            return *known;
        }
        let statement = Statement::of(text);
        let blocked = self
            .entries
            .iter()
            .any(|hashes| statement.is_withheld_as(hashes));
        self.asked.borrow_mut().insert(text.to_owned(), blocked);
        blocked
    }

    /// What a person made of these words: what they wrote in their place, or
    /// what says most of them in another way. The best of several.
    pub(super) fn rewording(&self, old: &Features) -> Option<(&str, &Features)> {
        let in_place = self.rewritten.iter().find(|(was, _)| was.is_same_as(old));
        if let Some((_, (text, features))) = in_place {
            return Some((text.as_str(), features));
        }
        let mut best: Option<(f64, &(String, Features))> = None;
        for one in &self.person {
            let share = share(&one.1.tokens, &old.tokens);
            let fits = REWORDED_MIN <= share && one.1.folded != old.folded;
            if fits && best.is_none_or(|(known, _)| known < share) {
                best = Some((share, one));
            }
        }
        best.map(|(_, (text, features))| (text.as_str(), features))
    }

    /// Whether a person wrote these words, in either file.
    pub(super) fn is_persons(&self, text: &str) -> bool {
        let folded = folded(line::core(text));
        self.person.iter().any(|(_, one)| one.folded == folded)
    }

    pub(super) fn blocks_thread(&self, thread_id: &ThreadId, updated_at: Timestamp) -> bool {
        self.threads
            .iter()
            .any(|(held, until)| *held == thread_id && updated_at <= *until)
    }
}
