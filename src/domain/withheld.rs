//! What must not (again) reach the memory files.

use crate::domain::id::{ObjectId, ThreadId};
use crate::domain::path::TreePath;
use crate::domain::time::Timestamp;

/// Why something is withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum WithheldReason {
    /// A person deleted the entry by hand.
    Edited,
    /// A baseline was taken back.
    Reverted,
    /// `forget`, or a note that says forget.
    Forgotten,
}

impl WithheldReason {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Edited => "edited",
            Self::Reverted => "reverted",
            Self::Forgotten => "forgotten",
        }
    }

    pub(crate) fn parse(label: &str) -> Option<Self> {
        [Self::Edited, Self::Reverted, Self::Forgotten]
            .into_iter()
            .find(|reason| reason.label() == label)
    }
}

/// What is held back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WithheldWhat {
    /// One version of an input file.
    Input { path: TreePath, blob: ObjectId },
    /// Everything of a session up to and including `until`.
    Thread {
        thread_id: ThreadId,
        until: Timestamp,
    },
    /// An entry, never as text: salted hashes of its normalised word shingles.
    Entry(EntryHashes),
}

/// An entry that is recognisable but not readable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryHashes {
    /// 16 random bytes, its own per entry.
    pub(crate) salt: [u8; 16],
    /// Sorted, without repeats. Truncated keyed hashes of word shingles.
    pub(crate) shingles: Vec<u64>,
}

/// One file of `withheld/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Withheld {
    /// Its file stem; the same in home and memory folders.
    pub(crate) id: String,
    pub(crate) reason: WithheldReason,
    pub(crate) since: Timestamp,
    pub(crate) what: WithheldWhat,
}

/// Texts that were purged: recognisable with the home's key, never readable.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Purged {
    pub(crate) key: [u8; 32],
    /// Sorted, without repeats.
    pub(crate) texts: Vec<PurgedText>,
}

/// Says how many, so that a debug line cannot show the key.
impl std::fmt::Debug for Purged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Purged({} texts)", self.texts.len())
    }
}

/// One form of a purged text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PurgedText {
    /// Of the text, in UTF-8.
    pub(crate) bytes: usize,
    /// Keyed hash of the text.
    pub(crate) hash: [u8; 32],
}
