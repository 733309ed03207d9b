//! Merging three versions.

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::domain::text::Raw;
use crate::store::error::StoreError;
use crate::store::{Store, TreeChange};

/// A merge of two sides that grew from one base.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Merged {
    /// How the result differs from *our* side, sorted by path.
    pub(crate) files: Vec<MergedFile>,
    /// Paths where both sides changed the same lines. Our side won there.
    pub(crate) conflicts: Vec<TreePath>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MergedFile {
    pub(crate) path: TreePath,
    /// `None`: the path is gone.
    pub(crate) file: Option<MergedText>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MergedText {
    pub(crate) content: Raw,
    pub(crate) executable: bool,
}

/// Three texts made one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextMerge {
    pub(crate) content: Vec<u8>,
    /// Both sides changed the same lines; ours won there.
    pub(crate) had_conflict: bool,
}

/// Merges lines; where both sides changed the same ones, `ours` wins.
pub(crate) fn merge_texts(_base: &[u8], _ours: &[u8], _theirs: &[u8]) -> TextMerge {
    todo!()
}

impl Store {
    /// Merges three commits file by file, without following renames. A revert
    /// of X on HEAD is `merge_commits(X, HEAD, parent of X)`.
    pub(crate) fn merge_commits(
        &self,
        _base: ObjectId,
        _ours: ObjectId,
        _theirs: ObjectId,
    ) -> Result<Merged, StoreError> {
        todo!()
    }

    /// Merges changes that were made on `base` into the commit `ours`.
    pub(crate) fn merge_changes(
        &self,
        _base: ObjectId,
        _ours: ObjectId,
        _theirs: &[TreeChange],
    ) -> Result<Merged, StoreError> {
        todo!()
    }
}
