//! What is withheld stays out: asked once per distinct text.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::domain::id::ThreadId;
use crate::domain::time::Timestamp;
use crate::domain::withheld::{EntryHashes, Withheld, WithheldWhat};
use crate::text::shingles::Statement;

/// The withheld entries, ready to be asked.
pub(super) struct Gate<'a> {
    entries: Vec<&'a EntryHashes>,
    threads: Vec<(&'a ThreadId, Timestamp)>,
    /// Hashing a text once per salt is dear, and the same statement is met in
    /// old and new facts and in both files.
    asked: RefCell<HashMap<String, bool>>,
}

impl<'a> Gate<'a> {
    pub(super) fn new(withheld: &'a [Withheld]) -> Self {
        let mut gate = Self {
            entries: Vec::new(),
            threads: Vec::new(),
            asked: RefCell::default(),
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

    pub(super) fn blocks_thread(&self, thread_id: &ThreadId, updated_at: Timestamp) -> bool {
        self.threads
            .iter()
            .any(|(held, until)| *held == thread_id && updated_at <= *until)
    }
}
