//! Notes and resources that a reset took out of the folder.
//!
//! A reset makes consumed inputs pending again, but a note that was committed
//! after its target is gone from tree and folder. The branch's log still knows
//! the head of before, so `status` can say how to get it back.
//!
//! # Limits
//!
//! What Git has dropped from its log or its objects is not offered: 30 days.

use std::collections::{BTreeMap, BTreeSet};

use crate::consolidate::absorb::Place;
use crate::consolidate::edits::kind_in;
use crate::domain::id::ObjectId;
use crate::domain::path::{FileKind, TreePath};
use crate::notes::withheld_set::WithheldSet;
use crate::store::error::StoreError;
use crate::store::{Snapshot, Store};
use crate::sys::fs;

/// How many moves of main are looked at, newest first.
const MOVES_MAX: usize = 100;

/// How many files are offered.
const OFFERED_MAX: usize = 20;

/// How far a commit is searched from the head backwards.
const COMMITS_MAX: usize = 1_000;

/// A file that can be had back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostInput {
    pub(crate) path: TreePath,
    /// A commit that holds it.
    pub(crate) commit: ObjectId,
}

/// Finds what resets took away and what nobody removed on purpose since.
///
/// # Errors
///
/// When the log, a commit or a tree that is there cannot be read.
pub(crate) fn find(
    place: &Place<'_>,
    head: &Snapshot,
    withheld: &WithheldSet,
) -> Result<Vec<LostInput>, StoreError> {
    let store = place.store;
    let mut lost: BTreeMap<TreePath, ObjectId> = BTreeMap::new();
    for step in store.moves()?.iter().take(MOVES_MAX) {
        let Some(old) = step.old.filter(|_| !step.is_ours && !step.is_commit) else {
            continue;
        };
        let taken = match taken(place, old, step.new) {
            // Git has cleaned up: nobody can have it back.
            Err(StoreError::NoObject { .. }) => continue,
            found => found?,
        };
        let mut taken: Vec<(TreePath, ObjectId)> = (taken.into_iter())
            .filter(|(path, blob)| {
                let is_back = head.files.contains_key(path)
                    || fs::is_taken(&store.folder().join(path.as_str()));
                !is_back && !lost.contains_key(path) && !withheld.blocks_input(path, *blob)
            })
            .collect();
        if !taken.is_empty() {
            let touched = touched_since(store, head.commit, step.new)?;
            taken.retain(|(path, _)| !touched.contains(path));
        }
        lost.extend(taken.into_iter().map(|(path, _)| (path, old)));
    }
    let lost = lost.into_iter().take(OFFERED_MAX);
    Ok(lost
        .map(|(path, commit)| LostInput { path, commit })
        .collect())
}

/// Notes and resources that `old` has and `new` has not, when `new` does not
/// follow `old`.
fn taken(
    place: &Place<'_>,
    old: ObjectId,
    new: ObjectId,
) -> Result<Vec<(TreePath, ObjectId)>, StoreError> {
    for commit in place.store.history(new).take(COMMITS_MAX) {
        if commit?.id == old {
            return Ok(Vec::new());
        }
    }
    let kept = place.store.snapshot(new)?.files;
    let is_input = |path: &TreePath| {
        let kind = kind_in(place.version, path);
        matches!(kind, FileKind::Note | FileKind::Resource)
    };
    let files = place.store.snapshot(old)?.files.into_iter();
    let files = files.filter(|(path, _)| is_input(path) && !kept.contains_key(path));
    Ok(files.map(|(path, blob)| (path, blob.id)).collect())
}

/// Paths that commits after `from` changed: what they removed was meant.
fn touched_since(
    store: &Store,
    head: ObjectId,
    from: ObjectId,
) -> Result<BTreeSet<TreePath>, StoreError> {
    let mut touched = BTreeSet::new();
    for commit in store.history(head).take(COMMITS_MAX) {
        let commit = commit?;
        if commit.id == from {
            break;
        }
        let changes = store.changed_paths(commit.id)?.into_iter();
        touched.extend(changes.map(|change| change.path));
    }
    Ok(touched)
}
