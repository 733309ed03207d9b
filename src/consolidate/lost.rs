//! What a reset took: notes and resources, and that inputs were consumed.
//!
//! A reset makes consumed inputs pending again ([`again`] says which), but a
//! note that was committed after its target is gone from tree and folder. The
//! branch's log still knows the head of before, so `status` can say how to get
//! it back ([`find`]).
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
use crate::store::message::{CommitKind, Input};
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

/// An input that is pending although a baseline consumed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingAgain {
    pub(crate) path: TreePath,
    /// Main had it, and a reset took it off.
    pub(crate) baseline: ObjectId,
}

/// Of the pending `inputs`, those that a baseline consumed which a reset took
/// off main since. In the order of `inputs`.
///
/// # Errors
///
/// When the log or a commit that is there cannot be read.
pub(crate) fn again(store: &Store, inputs: &[Input]) -> Result<Vec<PendingAgain>, StoreError> {
    let mut consumed = BTreeMap::new();
    if !inputs.is_empty() {
        for step in store.moves()?.iter().take(MOVES_MAX) {
            let Some(old) = step.old.filter(|_| !step.is_ours && !step.is_commit) else {
                continue;
            };
            match taken_off(store, old, step.new, &mut consumed) {
                Err(StoreError::NoObject { .. }) => {}
                told => told?,
            }
        }
    }
    let again = inputs.iter().filter_map(|input| {
        let baseline = *consumed.get(&(input.path.clone(), input.blob))?;
        let path = input.path.clone();
        Some(PendingAgain { path, baseline })
    });
    Ok(again.collect())
}

/// Adds what the baselines from `old` down to those that `new` has consumed.
fn taken_off(
    store: &Store,
    old: ObjectId,
    new: ObjectId,
    consumed: &mut BTreeMap<(TreePath, ObjectId), ObjectId>,
) -> Result<(), StoreError> {
    let mut kept = BTreeSet::new();
    for commit in store.history(new).take(COMMITS_MAX) {
        kept.insert(commit?.id);
    }
    for commit in store.history(old).take(COMMITS_MAX) {
        let commit = commit?;
        if kept.contains(&commit.id) {
            break;
        }
        if commit.trailers.kind == Some(CommitKind::Baseline) {
            for input in commit.trailers.inputs {
                let key = (input.path, input.blob);
                consumed.entry(key).or_insert(commit.id);
            }
        }
    }
    Ok(())
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
