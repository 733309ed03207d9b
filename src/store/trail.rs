//! Following a line through the commits that touched its file.
//!
//! Cheap where nothing happened: a commit whose entry for a path is that of
//! its parent is told by two tree look-ups, and no blob is read.
//!
//! A pack keeps most versions of a file as the difference to another. Which
//! way round depends on who wrote it: `git gc` keeps the newest whole, `git
//! fast-import` the oldest. Both are read with one step per version: what was
//! read is kept for its neighbour, and where the chain to a version is long,
//! those that come next are read in the other order.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gix::diff::blob::{Algorithm, InternedInput, diff_with_slider_heuristics};

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::store::error::StoreError;
use crate::store::{Blob, Store, gix_id, id_of};

/// Bytes of whole objects that are kept: trees of neighbouring commits share
/// most of what they are made of, and versions are read ahead.
const OBJECT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of objects from packs that are kept as bases of others.
const BASE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A chain of more steps than this is worth reading ahead.
const CHAIN_STEPS_MAX: usize = 4;
/// Versions that are read ahead, and commits in which they are looked for:
/// `git fast-import` makes chains of 50.
const VERSIONS_AHEAD: usize = 32;
const COMMITS_AHEAD: usize = 4 * VERSIONS_AHEAD;

/// Reads commits one after the other, with one set of caches.
pub(crate) struct Trail<'a> {
    store: &'a Store,
    repository: gix::Repository,
    /// Steps of chains that were taken, ever.
    steps: Arc<AtomicUsize>,
    /// Reading ahead did not shorten the chains.
    is_ahead_useless: Cell<bool>,
}

/// Objects of packs by their place.
#[derive(Default)]
struct Bases {
    kept: HashMap<(u32, u64), Base>,
    /// Oldest first.
    order: VecDeque<(u32, u64)>,
    size_bytes: usize,
    steps: Arc<AtomicUsize>,
}

struct Base {
    kind: gix::objs::Kind,
    data: Vec<u8>,
    packed_bytes: usize,
}

impl gix::odb::pack::cache::DecodeEntry for Bases {
    fn put(
        &mut self,
        pack: u32,
        offset: u64,
        data: &[u8],
        kind: gix::objs::Kind,
        packed_bytes: usize,
    ) {
        if BASE_BYTES_MAX < data.len() {
            return;
        }
        self.size_bytes += data.len();
        let base = Base {
            kind,
            data: data.to_owned(),
            packed_bytes,
        };
        match self.kept.insert((pack, offset), base) {
            Some(old) => self.size_bytes -= old.data.len(),
            None => self.order.push_back((pack, offset)),
        }
        while BASE_BYTES_MAX < self.size_bytes {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            let gone = self.kept.remove(&oldest);
            self.size_bytes -= gone.map_or(0, |base| base.data.len());
        }
    }

    fn get(
        &mut self,
        pack: u32,
        offset: u64,
        out: &mut Vec<u8>,
    ) -> Option<(gix::objs::Kind, usize)> {
        let Some(base) = self.kept.get(&(pack, offset)) else {
            self.steps.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        out.clear();
        out.extend_from_slice(&base.data);
        Some((base.kind, base.packed_bytes))
    }
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
        repository.object_cache_size_if_unset(OBJECT_BYTES_MAX);
        let steps = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&steps);
        repository.objects.set_pack_cache(move || {
            Box::new(Bases {
                steps: Arc::clone(&counted),
                ..Bases::default()
            })
        });
        Trail {
            store: self,
            repository,
            steps,
            is_ahead_useless: Cell::new(false),
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

    /// As [`Trail::text`], of a version that `commit` has at `path`, by one
    /// who goes on to its parents.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub(crate) fn text_going_back(
        &self,
        commit: ObjectId,
        path: &TreePath,
        blob: Blob,
    ) -> Result<String, StoreError> {
        let before = self.steps.load(Ordering::Relaxed);
        let text = self.text(blob)?;
        if before + CHAIN_STEPS_MAX < self.steps.load(Ordering::Relaxed) {
            self.read_ahead(commit, path);
        }
        Ok(text)
    }

    /// Fills the caches with the versions of a file before `commit`, oldest
    /// first. What cannot be read here is told when it is asked for.
    fn read_ahead(&self, mut commit: ObjectId, path: &TreePath) {
        if self.is_ahead_useless.get() {
            return;
        }
        let mut blobs: Vec<Blob> = Vec::new();
        for _ in 0..COMMITS_AHEAD {
            let Ok(Some(parent)) = self.parent(commit) else {
                break;
            };
            let Ok(blob) = self.blob_at(parent, path) else {
                break;
            };
            blobs.extend(blob.filter(|blob| blobs.last() != Some(blob)));
            if VERSIONS_AHEAD <= blobs.len() {
                break;
            }
            commit = parent;
        }
        let mut steps = self.steps.load(Ordering::Relaxed);
        let mut long = 0;
        for blob in blobs.iter().rev() {
            if self.text(*blob).is_err() {
                break;
            }
            let now = self.steps.load(Ordering::Relaxed);
            long += usize::from(steps + CHAIN_STEPS_MAX < now);
            steps = now;
        }
        self.is_ahead_useless.set(blobs.len() < 4 * long);
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
