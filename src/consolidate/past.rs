//! What the history of a memory folder says about the next consolidation.
//!
//! History is the only cursor: which baseline counts as the last one, what a
//! person committed by hand since we last looked, which entries are theirs,
//! and how much earlier baselines lost.

use std::collections::{BTreeMap, BTreeSet};

use crate::consolidate::edits::{Revision, Side, consequences, kind_in};
use crate::consolidate::guard::LossCount;
use crate::consolidate::hands::{self, HandMade, Hands};
use crate::consolidate::message;
use crate::domain::entry::{Entry, Rewriting};
use crate::domain::id::{ObjectId, ThreadId};
use crate::domain::path::{FileKind, TreePath};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::history::Commit;
use crate::store::message::{ChangeKind, CommitKind, Input};
use crate::store::{Blob, Change, Store};
use crate::text::entries;
use crate::text::recap;
use crate::text::shingles;

/// Most commits that are looked at from the head backwards.
const COMMITS_MAX: usize = 50_000;

/// What [`read`] found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Past {
    /// The newest baseline on main that was not taken back.
    pub(crate) last_baseline: Option<ObjectId>,
    /// Losses of the newest baselines, oldest first.
    pub(crate) earlier: Vec<LossCount>,
    /// Commits that a person made, rewrote or asked for (a `revert`) since our
    /// last `edit` or `baseline`, oldest first.
    pub(crate) by_hand: Vec<HandMade>,
}

/// Reads history from `head` backwards, as far as it matters.
///
/// # Errors
///
/// When a commit cannot be read.
pub(crate) fn read(
    store: &Store,
    head: ObjectId,
    baselines_counted: usize,
) -> Result<Past, StoreError> {
    let mut past = Past::default();
    let mut undone = BTreeSet::new();
    let mut is_fresh = true;
    let mut counts = true;
    let mut hands = Hands::new(store);
    for commit in store.history(head).take(COMMITS_MAX) {
        let commit = commit?;
        let is_undone = undone.contains(&commit.id);
        if let (Some(target), false) = (commit.reverts, is_undone) {
            undone.insert(target);
        }
        let made = if is_fresh { hands.look(&commit)? } else { None };
        let is_by_hand = made.is_some();
        past.by_hand.extend(made);
        if is_fresh && !is_by_hand && is_our_revert(&commit) {
            // Stopped before all that follows from it was written down.
            past.by_hand.push(HandMade::asked_for(commit.clone()));
        }
        match commit.trailers.kind {
            Some(CommitKind::Baseline) => {
                is_fresh &= is_by_hand;
                if !is_undone {
                    past.last_baseline.get_or_insert(commit.id);
                    let body = commit.body.unredacted();
                    if counts {
                        past.earlier.push(message::loss_count(body));
                    }
                    counts &= !message::counts_anew(body);
                }
            }
            // Instructions that are seeded anew stand above what a person did.
            Some(CommitKind::Edit) => is_fresh &= is_by_hand,
            _ => {}
        }
        let has_counted = !counts || past.earlier.len() >= baselines_counted;
        let has_all = past.last_baseline.is_some() && has_counted;
        if has_all && !is_fresh {
            break;
        }
    }
    past.by_hand.reverse();
    past.earlier.reverse();
    Ok(past)
}

/// A revert that a person asked us for.
pub(crate) fn is_our_revert(commit: &Commit) -> bool {
    let is_ours = commit.committer == Author::memrev();
    is_ours && commit.trailers.kind == Some(CommitKind::Revert) && commit.reverts.is_some()
}

/// Every recap version that a baseline of main's history names.
///
/// # Errors
///
/// When a commit cannot be read.
pub(crate) fn recap_blobs(store: &Store, head: ObjectId) -> Result<BTreeSet<ObjectId>, StoreError> {
    let mut blobs = BTreeSet::new();
    for commit in store.history(head).take(COMMITS_MAX) {
        let inputs = commit?.trailers.inputs.into_iter();
        let recaps = inputs.filter(|input| input.path.kind() == FileKind::Recap);
        blobs.extend(recaps.map(|input| input.blob));
    }
    Ok(blobs)
}

/// Whether nothing but a person's commits and our commits of their edits lies
/// between `old` and `new`: then a finished attempt may be merged.
///
/// # Errors
///
/// When a commit cannot be read.
pub(crate) fn moved_by_person_only(
    store: &Store,
    old: ObjectId,
    new: ObjectId,
) -> Result<bool, StoreError> {
    for commit in store.history(new).take(COMMITS_MAX) {
        let commit = commit?;
        if commit.id == old {
            return Ok(true);
        }
        let is_persons = matches!(commit.trailers.kind, None | Some(CommitKind::Edit));
        if !is_persons || commit.reverts.is_some() {
            return Ok(false);
        }
    }
    // `old` is not below `new`: a reset.
    Ok(false)
}

/// What a commit changed, with the texts of both sides. Files that are not
/// text are left out.
///
/// # Errors
///
/// When Git's data cannot be read.
pub(crate) fn revisions(store: &Store, changes: &[Change]) -> Result<Vec<Revision>, StoreError> {
    let mut revisions = Vec::new();
    for change in changes {
        revisions.push(Revision {
            path: change.path.clone(),
            old: side(store, change.old)?,
            new: side(store, change.new)?,
        });
    }
    Ok(revisions)
}

/// A version with its text; `None` when it is no text.
///
/// # Errors
///
/// When it cannot be read.
pub(crate) fn side(store: &Store, blob: Option<Blob>) -> Result<Option<Side>, StoreError> {
    let Some(blob) = blob else { return Ok(None) };
    match store.text(blob.id) {
        Ok(text) => Ok(Some(Side {
            blob: blob.id,
            text: text.unredacted().to_owned(),
        })),
        Err(StoreError::NotText { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Entries of `current` that a person wrote or reworded.
///
/// # Errors
///
/// When Git's data cannot be read.
pub(crate) fn person_entries(
    store: &Store,
    version: MemoryVersion,
    head: ObjectId,
    current: &[Entry],
) -> Result<Vec<Entry>, StoreError> {
    Ok(person_words(store, version, head, current)?.entries)
}

/// What a person wrote into the memory files.
#[derive(Debug, Clone, Default)]
pub(crate) struct PersonWords {
    /// Entries that they wrote or reworded and that stand there now.
    pub(crate) entries: Vec<Entry>,
    /// What those took the place of, at once or step by step.
    pub(crate) rewritings: Vec<Rewriting>,
}

/// What a person wrote, by what edit commits and commits made by hand added.
///
/// # Errors
///
/// When Git's data cannot be read.
pub(crate) fn person_words(
    store: &Store,
    version: MemoryVersion,
    head: ObjectId,
    current: &[Entry],
) -> Result<PersonWords, StoreError> {
    let mut rewritten = Vec::new();
    let mut theirs = BTreeSet::new();
    let mut undone = BTreeSet::new();
    let mut hands = Hands::new(store);
    for commit in store.history(head).take(COMMITS_MAX) {
        let commit = commit?;
        let made = hands.look(&commit)?;
        if undone.contains(&commit.id) {
            continue;
        }
        if let Some(target) = commit.reverts {
            undone.insert(target);
            continue;
        }
        let told = match made {
            // All of it is the person's, whoever wrote it down.
            _ if commit.trailers.kind == Some(CommitKind::Edit) => {
                let changes = memory_file_changes(version, store.changed_paths(commit.id)?);
                consequences(version, &revisions(store, &changes)?)
            }
            Some(made) => hands::doings(store, version, &made, hands::is_memory_file)?,
            None => continue,
        };
        theirs.extend(told.written.iter().map(entry_key));
        rewritten.extend(told.rewritten);
    }
    let is_theirs = |entry: &&Entry| theirs.contains(&entry_key(entry));
    let entries: Vec<Entry> = current.iter().filter(is_theirs).cloned().collect();
    Ok(PersonWords {
        rewritings: standing(&entries, rewritten),
        entries,
    })
}

/// Of `rewritten`, newest first, those that led to words that stand there now,
/// each with those.
fn standing(entries: &[Entry], rewritten: Vec<Rewriting>) -> Vec<Rewriting> {
    let texts = entries.iter();
    let now: BTreeSet<String> = texts.map(|it| shingles::normalise(&it.text)).collect();
    let mut last: BTreeMap<String, Rewriting> = BTreeMap::new();
    for step in rewritten {
        let (from, to) = (
            shingles::normalise(&step.old),
            shingles::normalise(&step.new),
        );
        let new = match last.get(&to) {
            Some(later) => later.new.clone(),
            None if now.contains(&to) => step.new,
            None => continue,
        };
        // Words that stand there again were not given up.
        if from != to && !now.contains(&from) {
            last.entry(from).or_insert(Rewriting { old: step.old, new });
        }
    }
    last.into_values().collect()
}

fn entry_key(entry: &Entry) -> (TreePath, String) {
    (entry.path.clone(), shingles::normalise(&entry.text))
}

fn memory_file_changes(version: MemoryVersion, changes: Vec<Change>) -> Vec<Change> {
    let is_memory_file = |change: &Change| hands::is_memory_file(kind_in(version, &change.path));
    changes.into_iter().filter(is_memory_file).collect()
}

/// What a baseline brought that its revert takes away.
#[derive(Debug, Clone, Default)]
pub(crate) struct TakenBack {
    /// Inputs that it consumed and no later baseline consumed anew.
    pub(crate) inputs: Vec<Input>,
    /// Sessions that it brought, up to the time of their recaps: a recap that
    /// is made again in other words stays out as well.
    pub(crate) sessions: Vec<(ThreadId, Timestamp)>,
    /// Entries that it added.
    pub(crate) entries: Vec<Entry>,
}

impl TakenBack {
    /// Without entries that the tree of `commit` has all the same: a later
    /// baseline, a person or the words of before brought them there.
    ///
    /// # Errors
    ///
    /// When its memory files cannot be read.
    pub(crate) fn without_standing(
        mut self,
        store: &Store,
        commit: ObjectId,
    ) -> Result<Self, StoreError> {
        let mut texts = Vec::new();
        for (path, blob) in store.snapshot(commit)?.files {
            if hands::is_memory_file(path.kind())
                && let Some(side) = side(store, Some(blob))?
            {
                texts.push((path, side.text));
            }
        }
        self.leave_standing(&texts);
        Ok(self)
    }

    /// As [`TakenBack::without_standing`], of the memory files with these texts.
    pub(crate) fn leave_standing(&mut self, files: &[(TreePath, String)]) {
        let standing: Vec<Entry> = (files.iter())
            .flat_map(|(path, text)| entries::parse(path, text))
            .collect();
        self.entries.retain(|entry| {
            let hashes = shingles::hash_entry([0; 16], &entry.text);
            !(standing.iter()).any(|it| shingles::matches(&hashes, &it.text))
        });
    }
}

/// What a commit by hand is about.
#[derive(Debug)]
pub(crate) enum Meaning {
    /// The person's own changes.
    Edit,
    /// Their change back of another commit that was no baseline.
    EditBack { of: ObjectId },
    /// A baseline is taken back, or, when that is taken back, stands again.
    Baseline {
        id: ObjectId,
        taken_back: TakenBack,
        stands_again: bool,
        /// What it brought may come in: it stands again, or is to be tried
        /// again.
        releases: bool,
    },
}

/// Follows a revert, and a revert of a revert, down to what it is about.
///
/// # Errors
///
/// When Git's data cannot be read.
pub(crate) fn meaning(
    store: &Store,
    version: MemoryVersion,
    head: ObjectId,
    commit: &Commit,
) -> Result<Meaning, StoreError> {
    let mut next = commit.reverts;
    let mut first = None;
    let mut stands_again = false;
    while let Some(id) = next {
        let target = match store.commit(id) {
            Ok(target) => target,
            // The message may name a commit that is not here.
            Err(StoreError::NoObject { .. }) => break,
            Err(error) => return Err(error),
        };
        if target.trailers.kind == Some(CommitKind::Baseline) {
            let releases = stands_again || commit.trailers.retries;
            let mut taken_back = taken_back(store, version, head, target)?;
            if !releases {
                taken_back = taken_back.without_standing(store, commit.id)?;
            }
            return Ok(Meaning::Baseline {
                id,
                taken_back,
                stands_again,
                releases,
            });
        }
        first.get_or_insert(id);
        stands_again = !stands_again;
        next = target.reverts;
    }
    Ok(first.map_or(Meaning::Edit, |of| Meaning::EditBack { of }))
}

/// What a baseline brought: seen from `head`, without what later ones brought
/// anew.
///
/// # Errors
///
/// When Git's data cannot be read.
pub(crate) fn taken_back(
    store: &Store,
    version: MemoryVersion,
    head: ObjectId,
    baseline: Commit,
) -> Result<TakenBack, StoreError> {
    let target = baseline.id;
    let mut listed_later = BTreeSet::new();
    for commit in store.history(head).take(COMMITS_MAX) {
        let commit = commit?;
        if commit.id == target {
            break;
        }
        let inputs = commit.trailers.inputs.into_iter();
        listed_later.extend(inputs.map(|input| (input.path, input.blob)));
    }
    let is_only_there = |input: &Input| {
        input.change != ChangeKind::Deleted
            && input.path.kind().is_input()
            && !listed_later.contains(&(input.path.clone(), input.blob))
    };
    let inputs = baseline.trailers.inputs.into_iter();
    let changes = store.changed_paths(target)?;
    let sessions = brought_sessions(store, &changes)?;
    let changes = memory_file_changes(version, changes);
    let told = consequences(version, &whole_files_too(revisions(store, &changes)?));
    Ok(TakenBack {
        inputs: inputs.filter(is_only_there).collect(),
        sessions,
        entries: told.added,
    })
}

/// Sessions whose first recap these changes bring. Of one that had a recap
/// before, that one counts again, so only the version is withheld.
fn brought_sessions(
    store: &Store,
    changes: &[Change],
) -> Result<Vec<(ThreadId, Timestamp)>, StoreError> {
    let (mut brought, mut had) = (Vec::new(), BTreeSet::new());
    for change in changes {
        if change.path.kind() != FileKind::Recap {
            continue;
        }
        let session = |side: Option<Side>| {
            let recap = recap::parse(change.path.name(), &side?.text).ok()?;
            Some((recap.header.thread_id, recap.header.updated_at))
        };
        had.extend(session(side(store, change.old)?).map(|(thread_id, _)| thread_id));
        brought.extend(session(side(store, change.new)?));
    }
    brought.retain(|(thread_id, _)| !had.contains(thread_id));
    Ok(brought)
}

/// An edit that makes a file anew makes no entry the person's; here every
/// entry of a new file counts, so an empty old side stands in.
fn whole_files_too(revisions: Vec<Revision>) -> Vec<Revision> {
    let empty = || Side {
        blob: ObjectId::from_bytes([0; 20]),
        text: String::new(),
    };
    (revisions.into_iter())
        .map(|revision| Revision {
            old: revision.old.or_else(|| Some(empty())),
            ..revision
        })
        .collect()
}
