//! The units of summary and handbook that the loss guard counts.

use std::ops::Range;

use crate::domain::id::ThreadId;
use crate::domain::path::TreePath;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum EntryKind {
    /// `# Task Group: …` with its `scope:` and `applies_to:` lines.
    TaskGroup,
    /// `## Task n: …` with its lists.
    Task,
    /// A bullet of a topic list under "What's in Memory".
    Topic,
    /// Any other bullet or a paragraph outside of a list.
    Bullet,
}

/// A line that a person rewrote in its place: old words and new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rewriting {
    pub(crate) old: String,
    pub(crate) new: String,
}

/// One bullet, task, task group or topic line.
///
/// Its identity is file, kind, heading path and cited sources; similarity of
/// text decides within equal citations (DESIGN 6, loss guard).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: TreePath,
    pub(crate) kind: EntryKind,
    /// Headings above it, outermost first, as written.
    pub(crate) headings: Vec<String>,
    /// The entry's own text; for a task or group its title line only.
    pub(crate) text: String,
    /// Bytes of the whole entry in its file, nested bullets included.
    pub(crate) bytes: Range<usize>,
    /// 1-based line it starts on.
    pub(crate) line_number: u32,
    /// Sessions it cites, in order of appearance, without repeats.
    pub(crate) thread_ids: Vec<ThreadId>,
    /// Recap files it points at, in order of appearance.
    pub(crate) recap_files: Vec<String>,
    /// It ends in the note mark.
    pub(crate) is_from_note: bool,
}
