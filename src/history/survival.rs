//! How memory fared: which entries of some baselines ago still stand.
//!
//! Follows each entry of the tree of then from baseline to baseline, by the
//! pairing of the loss guard, so that an entry which was reworded five times
//! in a row is still the same. Why one left is what the message of that
//! baseline says; what left between two baselines, a person took away.
//!
//! # Not in here
//!
//! Counts of the profile ("Sessions in memory: 12"): each pass makes them anew.
//!
//! # Limits
//!
//! Two trees are compared per baseline; trees with the same memory files are
//! not. Texts never leave this module: only numbers do.

use std::collections::{BTreeMap, BTreeSet};

use crate::consolidate::departure::Departure;
use crate::consolidate::{guard, message};
use crate::domain::entry::{Entry, EntryKind};
use crate::domain::id::ObjectId;
use crate::domain::path::{FileKind, TreePath};
use crate::domain::time::Timestamp;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::history::Commit;
use crate::store::message::CommitKind;
use crate::text::entries;
use crate::text::shingles;

/// What became of the entries of a baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Survival {
    /// That baseline.
    pub(crate) since: ObjectId,
    pub(crate) at: Timestamp,
    /// How many followed it.
    pub(crate) baselines: usize,
    /// How many entries it had.
    pub(crate) entries: usize,
    pub(crate) word_for_word: usize,
    pub(crate) reworded: usize,
    /// How many left, by the way they went.
    pub(crate) gone: BTreeMap<Departure, usize>,
}

impl Survival {
    pub(crate) fn gone_in_all(&self) -> usize {
        self.gone.values().sum()
    }
}

/// What became of the entries of `baselines_max` baselines ago, or of the
/// first baseline where there are fewer. `None` when none followed it.
///
/// # Errors
///
/// When a commit, a tree or a file cannot be read.
pub(crate) fn read(
    store: &Store,
    head: ObjectId,
    baselines_max: usize,
) -> Result<Option<Survival>, StoreError> {
    let baselines = newest_baselines(store, head, baselines_max.saturating_add(1))?;
    let Some((start, later)) = baselines
        .split_last()
        .filter(|(_, later)| !later.is_empty())
    else {
        return Ok(None);
    };
    let mut walk = Walk::begin(store, start.id)?;
    for baseline in later.iter().rev() {
        if let Some(parent) = baseline.parents.first() {
            walk.go(*parent, |_| Departure::TakenAway)?;
        }
        let told = message::departures(baseline.body.unredacted());
        walk.go(baseline.id, |entry| {
            let place = (entry.path.clone(), entry.line_number);
            told.get(&place).copied().unwrap_or(Departure::Untold)
        })?;
    }
    walk.go(head, |_| Departure::TakenAway)?;
    Ok(Some(walk.end(start, later.len())))
}

/// Newest first, those taken back included: their messages tell of losses too.
fn newest_baselines(
    store: &Store,
    head: ObjectId,
    count_max: usize,
) -> Result<Vec<Commit>, StoreError> {
    let mut found = Vec::new();
    for commit in store.history(head) {
        let commit = commit?;
        if commit.trailers.kind == Some(CommitKind::Baseline) {
            found.push(commit);
        }
        if count_max <= found.len() {
            break;
        }
    }
    Ok(found)
}

/// An entry that is followed.
struct Followed {
    /// Its words at the start, normalised.
    words: String,
    place: Place,
}

enum Place {
    /// Its index among the entries of the tree where the walk stands.
    Stands(usize),
    /// What it was when it left, and how.
    Gone(Key, Departure),
}

type Key = (TreePath, EntryKind, String);

struct Walk<'a> {
    store: &'a Store,
    files: BTreeMap<TreePath, ObjectId>,
    entries: Vec<Entry>,
    followed: Vec<Followed>,
}

impl<'a> Walk<'a> {
    fn begin(store: &'a Store, commit: ObjectId) -> Result<Self, StoreError> {
        let files = memory_files(store, commit)?;
        let entries = read_entries(store, &files)?;
        let each = entries.iter().enumerate();
        let followed = each
            .filter(|(_, entry)| !entries::is_count(entry))
            .map(|(index, entry)| Followed {
                words: shingles::normalise(&entry.text),
                place: Place::Stands(index),
            })
            .collect();
        Ok(Self {
            store,
            files,
            entries,
            followed,
        })
    }

    /// On to the tree of a later commit. `way` says how an entry left that has
    /// no counterpart there.
    fn go(
        &mut self,
        commit: ObjectId,
        way: impl Fn(&Entry) -> Departure,
    ) -> Result<(), StoreError> {
        let files = memory_files(self.store, commit)?;
        if files == self.files {
            return Ok(());
        }
        let after = read_entries(self.store, &files)?;
        let counterparts = guard::pairs(&self.entries, &after);
        for it in &mut self.followed {
            if let Place::Stands(index) = it.place {
                let entry = &self.entries[index];
                it.place = match counterparts[index] {
                    Some(index) => Place::Stands(index),
                    None => Place::Gone(key(entry), way(entry)),
                };
            }
        }
        self.bring_back(&after, &counterparts);
        self.entries = after;
        self.files = files;
        Ok(())
    }

    /// What left earlier and stands again in the same words: a revert.
    fn bring_back(&mut self, after: &[Entry], counterparts: &[Option<usize>]) {
        let taken: BTreeSet<usize> = counterparts.iter().flatten().copied().collect();
        let mut free: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
        let new = after.iter().enumerate().rev();
        for (index, entry) in new.filter(|(index, _)| !taken.contains(index)) {
            free.entry(key(entry)).or_default().push(index);
        }
        for it in &mut self.followed {
            if let Place::Gone(key, _) = &it.place
                && let Some(index) = free.get_mut(key).and_then(Vec::pop)
            {
                it.place = Place::Stands(index);
            }
        }
    }

    fn end(self, start: &Commit, baselines: usize) -> Survival {
        let mut survival = Survival {
            since: start.id,
            at: start.at,
            baselines,
            entries: self.followed.len(),
            word_for_word: 0,
            reworded: 0,
            gone: BTreeMap::new(),
        };
        for it in self.followed {
            match it.place {
                Place::Stands(index) => {
                    let is_same = it.words == shingles::normalise(&self.entries[index].text);
                    let count = if is_same {
                        &mut survival.word_for_word
                    } else {
                        &mut survival.reworded
                    };
                    *count += 1;
                }
                Place::Gone(_, way) => *survival.gone.entry(way).or_default() += 1,
            }
        }
        survival
    }
}

fn key(entry: &Entry) -> Key {
    let words = shingles::normalise(&entry.text);
    (entry.path.clone(), entry.kind, words)
}

fn memory_files(
    store: &Store,
    commit: ObjectId,
) -> Result<BTreeMap<TreePath, ObjectId>, StoreError> {
    let files = store.snapshot(commit)?.files.into_iter();
    let is_memory = |path: &TreePath| matches!(path.kind(), FileKind::Summary | FileKind::Handbook);
    let files = files.filter(|(path, _)| is_memory(path));
    Ok(files.map(|(path, blob)| (path, blob.id)).collect())
}

/// As the loss guard sees them; a file that is no text has none.
fn read_entries(
    store: &Store,
    files: &BTreeMap<TreePath, ObjectId>,
) -> Result<Vec<Entry>, StoreError> {
    let mut found = Vec::new();
    for (path, blob) in files {
        match store.text(*blob) {
            Ok(text) => found.extend(entries::parse(path, text.unredacted())),
            Err(StoreError::NotText { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    found.retain(|entry| !entry.text.trim().is_empty());
    Ok(found)
}

#[cfg(test)]
mod tests;
