//! Unified text diffs as people and workers read them (reference 6.6).

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::message::ChangeKind;

/// One side of a file in a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiffSide<'a> {
    pub(crate) content: &'a [u8],
    pub(crate) executable: bool,
}

/// The difference of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileDiff {
    pub(crate) path: TreePath,
    pub(crate) kind: ChangeKind,
    /// From `diff --git` to the last hunk, ends in a newline. Not redacted.
    pub(crate) text: String,
    pub(crate) lines_added: usize,
    pub(crate) lines_removed: usize,
}

/// Compares two versions of a file; `None` when they are the same.
pub(crate) fn diff_file(
    _path: &TreePath,
    _old: Option<DiffSide<'_>>,
    _new: Option<DiffSide<'_>>,
) -> Option<FileDiff> {
    todo!()
}

impl Store {
    /// The differences between two commits, sorted by path.
    pub(crate) fn diff(&self, _old: ObjectId, _new: ObjectId) -> Result<Vec<FileDiff>, StoreError> {
        todo!()
    }
}
