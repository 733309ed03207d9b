//! A request to remember, correct or forget.

use crate::domain::path::TreePath;
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;

/// What a note asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum NoteKind {
    Remember,
    Correct,
    Forget,
}

impl NoteKind {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Remember => "remember",
            Self::Correct => "correct",
            Self::Forget => "forget",
        }
    }

    pub(crate) fn parse(label: &str) -> Option<Self> {
        [Self::Remember, Self::Correct, Self::Forget]
            .into_iter()
            .find(|kind| kind.label() == label)
    }
}

/// A note file as it lies in a memory folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) path: TreePath,
    /// What its header says; `None` leaves it to the cue words.
    pub(crate) kind: Option<NoteKind>,
    /// From the file name.
    pub(crate) written_at: Option<Timestamp>,
    /// Without the header.
    pub(crate) text: Raw,
}

/// Ends every line that was derived from a note (reference 3.7).
pub(crate) const NOTE_MARK: &str = "[ad-hoc note]";
