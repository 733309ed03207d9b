//! Today's files, with what a person has not committed yet.

use std::collections::BTreeMap;

use crate::consolidate::past;
use crate::domain::id::ObjectId;
use crate::domain::path::{FileKind, TreePath};
use crate::store::Store;
use crate::store::error::StoreError;

/// The text files of today's tree, the person's uncommitted edits included.
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<TreePath, String>,
}

impl Tree {
    /// # Errors
    ///
    /// When a tree or file cannot be read.
    pub(crate) fn read(
        store: &Store,
        head: ObjectId,
        edited: &BTreeMap<TreePath, Option<String>>,
    ) -> Result<Self, StoreError> {
        let mut files = BTreeMap::new();
        for (path, blob) in store.snapshot(head)?.files {
            if let Some(side) = past::side(store, Some(blob))? {
                files.insert(path, side.text);
            }
        }
        for (path, text) in edited {
            match text {
                Some(text) => files.insert(path.clone(), text.clone()),
                None => files.remove(path),
            };
        }
        Ok(Self { files })
    }

    /// Summary and handbook as they will be.
    pub(crate) fn memory_files_with(
        &self,
        new: &BTreeMap<TreePath, Option<(String, bool)>>,
    ) -> Vec<(TreePath, String)> {
        let mut files = self.files.clone();
        for (path, text) in new {
            match text {
                Some((text, _)) => files.insert(path.clone(), text.clone()),
                None => files.remove(path),
            };
        }
        let is_memory_file =
            |path: &TreePath| matches!(path.kind(), FileKind::Summary | FileKind::Handbook);
        let files = files.into_iter();
        files.filter(|(path, _)| is_memory_file(path)).collect()
    }
}
