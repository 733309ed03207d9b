//! Following a line through the commits that touched its file.
//!
//! Cheap where nothing happened: a commit whose entry for a path is that of
//! its parent is told by two tree look-ups, and no blob is read.

use gix::diff::blob::{Algorithm, InternedInput, diff_with_slider_heuristics};

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::store::error::StoreError;
use crate::store::{Blob, Store, gix_id, id_of};

/// Reads commits one after the other, with one set of caches.
pub(crate) struct Trail<'a> {
    store: &'a Store,
    repository: gix::Repository,
}

/// Where the lines of a new version stood in the old one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineMap {
    /// Per new line (0-based) the old one; `None` for lines that are new.
    pub(crate) old_of_new: Vec<Option<usize>>,
    /// Old lines that are gone.
    pub(crate) gone: Vec<usize>,
}

impl LineMap {
    pub(crate) fn between(old: &str, new: &str) -> Self {
        let input = InternedInput::new(old.as_bytes(), new.as_bytes());
        let diff = diff_with_slider_heuristics(Algorithm::Histogram, &input);
        let mut map = Self {
            old_of_new: Vec::with_capacity(input.after.len()),
            gone: Vec::new(),
        };
        let index = |line: u32| usize::try_from(line).unwrap_or(usize::MAX);
        let mut old = 0;
        for hunk in diff.hunks() {
            let (before, after) = (hunk.before, hunk.after);
            while map.old_of_new.len() < index(after.start) {
                map.old_of_new.push(Some(old));
                old += 1;
            }
            map.old_of_new.resize(index(after.end), None);
            map.gone.extend(index(before.start)..index(before.end));
            old = index(before.end);
        }
        while map.old_of_new.len() < input.after.len() {
            map.old_of_new.push(Some(old));
            old += 1;
        }
        map
    }
}

impl Store {
    pub(crate) fn trail(&self) -> Trail<'_> {
        let mut repository = self.repository();
        // Trees of neighbouring commits share most of what they are made of.
        repository.object_cache_size_if_unset(16 * 1024 * 1024);
        Trail {
            store: self,
            repository,
        }
    }
}

impl Trail<'_> {
    /// The first parent.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoObject`] when the commit is not there: the history is
    /// shallow, or damaged.
    pub(crate) fn parent(&self, commit: ObjectId) -> Result<Option<ObjectId>, StoreError> {
        let object = self.store.find(&self.repository, gix_id(commit))?;
        let attempt = "read a commit";
        let commit = object
            .try_into_commit()
            .map_err(self.store.while_trying_to(attempt))?;
        let parent = commit.parent_ids().next();
        Ok(parent.map(|id| id_of(&id)))
    }

    /// What a commit has at a path.
    ///
    /// # Errors
    ///
    /// When a tree cannot be read.
    pub(crate) fn blob_at(
        &self,
        commit: ObjectId,
        path: &TreePath,
    ) -> Result<Option<Blob>, StoreError> {
        let found = self.store.versions_at(&self.repository, commit, &[path])?;
        Ok(found.get(path).copied())
    }

    /// A blob as text, bytes that are none replaced.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub(crate) fn text(&self, blob: Blob) -> Result<String, StoreError> {
        let mut object = self.store.find(&self.repository, gix_id(blob.id))?;
        let bytes = std::mem::take(&mut object.data);
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::LineMap;

    #[test]
    fn lines_are_found_where_they_stood() {
        let map = LineMap::between("a\nb\nc\nd\n", "a\nx\nc\nd\ne\n");
        assert_eq!(map.old_of_new, [Some(0), None, Some(2), Some(3), None]);
        assert_eq!(map.gone, [1]);
        assert_eq!(LineMap::between("", "a\n").old_of_new, [None]);
        assert_eq!(LineMap::between("a\n", "").gone, [0]);
    }
}
