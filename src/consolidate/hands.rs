//! Commits that a person made or rewrote, and what they did in them.
//!
//! A commit of ours that a person amended, or squashed with one of their own
//! in a rebase, still has our trailers. What they did in it is the difference
//! between what we made (the branch's log knows it) and what stands there
//! now.
//!
//! A person's commit that met a publication under way holds stale versions of
//! some files. The store puts those back on top (`Memrev-Kind: merge`), and
//! what is put back was never their doing.
//!
//! # Limits
//!
//! What we made is looked up in the branch's log, so it is known for as long
//! as Git keeps it there: 30 days. Of several baselines squashed into one,
//! only the last is compared.

use std::collections::{BTreeMap, BTreeSet};

use crate::consolidate::edits::{self, Consequences, Revision, Side};
use crate::consolidate::past;
use crate::domain::id::ObjectId;
use crate::domain::path::{FileKind, TreePath};
use crate::domain::version::MemoryVersion;
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::history::Commit;
use crate::store::merge::MergedText;
use crate::store::message::CommitKind;
use crate::store::{Change, Store};
use crate::text::entries;
use crate::text::shingles;

/// A commit by a person's hand.
#[derive(Debug, Clone)]
pub(crate) struct HandMade {
    pub(crate) commit: Commit,
    /// What they rewrote.
    original: Option<Box<Commit>>,
    /// Our commit on top, which put back what theirs had stale.
    put_back: Option<ObjectId>,
}

impl HandMade {
    /// A commit of ours that says what a person asked for.
    pub(crate) const fn asked_for(commit: Commit) -> Self {
        Self {
            commit,
            original: None,
            put_back: None,
        }
    }
}

/// Tells commits by hand from ours, asked from the newest to the oldest.
pub(crate) struct Hands<'a> {
    store: &'a Store,
    /// What we made and the branch's log still knows; read when needed.
    ours: Option<Vec<Commit>>,
    put_back: Option<ObjectId>,
}

impl<'a> Hands<'a> {
    pub(crate) const fn new(store: &'a Store) -> Self {
        Self {
            store,
            ours: None,
            put_back: None,
        }
    }

    /// `None` for a commit of ours that nobody rewrote.
    ///
    /// # Errors
    ///
    /// When the branch's log cannot be read.
    pub(crate) fn look(&mut self, commit: &Commit) -> Result<Option<HandMade>, StoreError> {
        let is_ours = commit.committer == Author::memrev();
        let original = match commit.trailers.kind {
            None => None,
            Some(kind) if is_ours => {
                self.put_back = (kind == CommitKind::Merge).then_some(commit.id);
                return Ok(None);
            }
            Some(_) => match self.original(commit)? {
                Some(original) => Some(Box::new(original)),
                None => return Ok(None),
            },
        };
        Ok(Some(HandMade {
            commit: commit.clone(),
            original,
            put_back: self.put_back,
        }))
    }

    /// A rewritten commit keeps trailers and, mostly, the author's time.
    fn original(&mut self, commit: &Commit) -> Result<Option<Commit>, StoreError> {
        if self.ours.is_none() {
            self.ours = Some(ours(self.store)?);
        }
        let is_of_run = |it: &&Commit| {
            (it.trailers.kind, &it.trailers.run) == (commit.trailers.kind, &commit.trailers.run)
        };
        // A run can make more than one `edit`.
        let likeness = |it: &&Commit| {
            let is_of_time = it.authored_at == commit.authored_at;
            (is_of_time, it.subject == commit.subject)
        };
        let ours = self.ours.iter().flatten().filter(is_of_run);
        // The first of equals, so the newest.
        let best = ours.rev().max_by_key(likeness);
        Ok(best.cloned())
    }
}

/// Commits of ours that the branch's log names and the store still has,
/// newest first.
fn ours(store: &Store) -> Result<Vec<Commit>, StoreError> {
    let mut commits = Vec::new();
    for step in store.moves()?.iter().filter(|step| step.is_ours) {
        match store.commit(step.new) {
            Ok(commit) => commits.push(commit),
            Err(StoreError::NoObject { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(commits)
}

/// What a person did in a commit; `is_wanted` says which files count.
///
/// # Errors
///
/// When Git's data cannot be read.
pub(crate) fn doings(
    store: &Store,
    version: MemoryVersion,
    made: &HandMade,
    is_wanted: fn(FileKind) -> bool,
) -> Result<Consequences, StoreError> {
    let is_wanted = |path: &TreePath| is_wanted(edits::kind_in(version, path));
    let mut changes = store.changed_paths(made.commit.id)?;
    changes.retain(|change| is_wanted(&change.path));
    let Some(original) = &made.original else {
        if let (Some(put_back), false) = (made.put_back, changes.is_empty()) {
            let now = store.snapshot(put_back)?.files;
            changes.retain(|change| now.get(&change.path) != change.old.as_ref());
        }
        let revisions = past::revisions(store, &changes)?;
        return Ok(edits::consequences(version, &revisions));
    };
    let mut revisions = rewritten(store, &made.commit, original, &changes)?;
    revisions.retain(|revision| is_wanted(&revision.path));
    let mut told = edits::consequences(version, &revisions);
    let made_by_us = statements(store, original.id)?;
    for entries in [&mut told.added, &mut told.written] {
        entries.retain(|entry| !made_by_us.contains(&shingles::normalise(&entry.text)));
    }
    Ok(told)
}

/// The files of a rewritten commit against what they would be had the person
/// only moved our `original` to the parent that the rewritten one has.
/// `changes` is what the rewritten one changes.
fn rewritten(
    store: &Store,
    commit: &Commit,
    original: &Commit,
    changes: &[Change],
) -> Result<Vec<Revision>, StoreError> {
    let (Some(base), Some(parent)) = (original.parents.first(), commit.parents.first()) else {
        return Ok(Vec::new());
    };
    let merged = store.merge_commits(*base, *parent, original.id)?;
    let mut unedited: BTreeMap<TreePath, Option<Side>> = (merged.files.into_iter())
        .map(|file| (file.path, file.file.map(|text| side_of(&text))))
        .collect();
    let mut revisions = past::revisions(store, changes)?;
    for revision in &mut revisions {
        if let Some(old) = unedited.remove(&revision.path) {
            revision.old = old;
        }
    }
    // What we changed and the rewritten one does not.
    let files = store.snapshot(commit.id)?.files;
    for (path, old) in unedited {
        let new = past::side(store, files.get(&path).copied())?;
        revisions.push(Revision { path, old, new });
    }
    revisions.retain(|revision| revision.old != revision.new);
    Ok(revisions)
}

fn side_of(text: &MergedText) -> Side {
    let text = text.content.unredacted().to_owned();
    Side {
        blob: Store::blob_id(text.as_bytes()),
        text,
    }
}

/// The statements of summary and handbook, normalised.
fn statements(store: &Store, commit: ObjectId) -> Result<BTreeSet<String>, StoreError> {
    let mut statements = BTreeSet::new();
    for (path, blob) in store.snapshot(commit)?.files {
        if is_memory_file(path.kind())
            && let Some(side) = past::side(store, Some(blob))?
        {
            let found = entries::parse(&path, &side.text);
            statements.extend(found.iter().map(|it| shingles::normalise(&it.text)));
        }
    }
    Ok(statements)
}

/// Summary and handbook.
pub(crate) const fn is_memory_file(kind: FileKind) -> bool {
    matches!(kind, FileKind::Summary | FileKind::Handbook)
}
