//! Takes in what a person did since we last looked: by hand in the folder,
//! by commits of their own, by `git revert`.
//!
//! # Crash safety
//!
//! First what follows from an edit is written down (withheld entries in the
//! home, adopted recaps in the extractions), then the edit is committed. Each
//! step may be done again: a stop in between only repeats it.
//!
//! # Locking
//!
//! [`absorb`] runs under the folder's lock; [`sort_out`] only looks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::consolidate::edits::{
    self, Adopted, Change, Consequences, EditFacts, Found, Revision, Side,
};
use crate::consolidate::hands::{self, HandMade};
use crate::consolidate::past::{self, Meaning, Past};
use crate::consolidate::words::{Settled, Word, Words};
use crate::consolidate::{ConsolidateError, LeftFile, Policy, RevertSeen, message};
use crate::domain::entry::Entry;
use crate::domain::id::{ObjectId, RunId, ThreadId};
use crate::domain::limits::SNAPSHOT_FILE_BYTES_MAX;
use crate::domain::path::{FileKind, TreePath};
use crate::domain::session::MemoryMode;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::{Withheld, WithheldReason, WithheldWhat};
use crate::notes::withheld_set::{self, WithheldSet};
use crate::recaps::Extractions;
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::message::ChangeKind;
use crate::store::{self, NewFile, Snapshot, Store, StoreLock, TreeChange, Unfit};
use crate::sys::fs;
use crate::sys::home::Home;
use crate::sys::ids::{Ids, hex};
use crate::sys::lock::FileLock;
use crate::sys::stop;
use crate::text::redact;
use crate::text::shingles;

/// What looking at a folder needs.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) home: &'a Home,
    pub(crate) version: MemoryVersion,
    pub(crate) store: &'a Store,
    pub(crate) modes: &'a BTreeMap<ThreadId, MemoryMode>,
    pub(crate) policy: &'a Policy,
    pub(crate) now: Timestamp,
}

/// What writing needs besides.
pub(crate) struct Hands<'a> {
    pub(crate) lock: &'a StoreLock,
    pub(crate) run: &'a RunId,
    pub(crate) person: &'a Author,
    pub(crate) ids: &'a Ids,
}

/// What a person changed in the work tree.
#[derive(Debug, Default)]
pub(crate) struct SortedOut {
    /// To be committed as theirs, with both sides.
    pub(crate) taken: Vec<(store::Change, Revision)>,
    pub(crate) left: Vec<LeftFile>,
    pub(crate) unfit: Vec<Unfit>,
}

/// What [`absorb`] did.
#[derive(Debug)]
pub(crate) struct Absorbed {
    /// The head afterwards.
    pub(crate) head: ObjectId,
    pub(crate) edit: Option<ObjectId>,
    pub(crate) left: Vec<LeftFile>,
    pub(crate) unfit: Vec<Unfit>,
    /// Everything that is withheld now, home and folder.
    pub(crate) withheld: WithheldSet,
    /// Reverts of baselines that were new to us.
    pub(crate) reverts: Vec<RevertSeen>,
}

/// Sorts the changes of the work tree into those to commit and those to leave.
///
/// # Errors
///
/// When the folder or the store cannot be read.
pub(crate) fn sort_out(
    place: &Place<'_>,
    snapshot: &Snapshot,
    withheld: &[Withheld],
) -> Result<SortedOut, ConsolidateError> {
    let changes = place.store.changes(snapshot)?;
    let mut sorted = SortedOut {
        unfit: changes.unfit,
        ..SortedOut::default()
    };
    if changes.files.is_empty() {
        return Ok(sorted);
    }
    let known = Known::gather(place, snapshot.commit, &changes.files)?;
    let facts = known.facts(place, withheld);
    let unfit: BTreeSet<&str> = sorted
        .unfit
        .iter()
        .map(|unfit| unfit.path.as_str())
        .collect();
    let mut left = Vec::new();
    for change in changes.files {
        let found = find(place, &change, &unfit)?;
        let looked = Change {
            path: change.path.clone(),
            is_in_head: change.old.is_some(),
            found,
        };
        match edits::classify(&looked, &facts) {
            Ok(()) => sorted
                .taken
                .push(with_both_sides(place.store, change, looked.found)?),
            Err(reason) => left.push(LeftFile {
                path: change.path,
                reason,
            }),
        }
    }
    sorted.left = left;
    Ok(sorted)
}

fn find(
    place: &Place<'_>,
    change: &store::Change,
    unfit: &BTreeSet<&str>,
) -> Result<Found, ConsolidateError> {
    if is_under_unfit(change.path.as_str(), unfit) {
        return Ok(Found::Symlink);
    }
    let path = place.store.folder().join(change.path.as_str());
    let Some(blob) = change.new else {
        let folder_changed_at = nearest_folder_time(&path);
        return Ok(Found::Gone { folder_changed_at });
    };
    let size_and_time = fs::size_and_time(&path);
    if size_and_time.is_some_and(|(bytes, _)| bytes > SNAPSHOT_FILE_BYTES_MAX) {
        return Ok(Found::TooLarge);
    }
    let changed_at = (change.modified_at)
        .or(size_and_time.map(|(_, at)| at))
        .unwrap_or(place.now);
    Ok(match place.store.read_work_tree(&change.path)? {
        // It changed again since it was looked at.
        Some(bytes) if Store::blob_id(&bytes) != blob.id => Found::File {
            blob: Store::blob_id(&bytes),
            bytes,
            changed_at: place.now,
        },
        Some(bytes) => Found::File {
            bytes,
            blob: blob.id,
            changed_at,
        },
        None => Found::Unfit,
    })
}

/// A link or pipe stands at the path or at a folder above it: that is not a
/// deletion.
fn is_under_unfit(path: &str, unfit: &BTreeSet<&str>) -> bool {
    let ends = path.match_indices('/').map(|(index, _)| index);
    ends.chain([path.len()])
        .any(|end| unfit.contains(&path[..end]))
}

fn nearest_folder_time(path: &Path) -> Option<Timestamp> {
    path.ancestors().skip(1).find_map(fs::folder_modified)
}

fn with_both_sides(
    store: &Store,
    change: store::Change,
    found: Found,
) -> Result<(store::Change, Revision), ConsolidateError> {
    let old = past::revisions(
        store,
        &[store::Change {
            new: None,
            ..change.clone()
        }],
    )?;
    let new = match found {
        Found::File { bytes, blob, .. } => String::from_utf8(bytes)
            .ok()
            .map(|text| Side { blob, text }),
        _ => None,
    };
    let revision = Revision {
        path: change.path.clone(),
        old: old.into_iter().next().and_then(|revision| revision.old),
        new,
    };
    Ok((change, revision))
}

/// What [`edits::classify`] must know of recaps; gathered only when one of
/// the changes is about a recap.
#[derive(Default)]
struct Known {
    ours: BTreeMap<ThreadId, Timestamp>,
    recaps: BTreeSet<ObjectId>,
}

impl Known {
    fn gather(
        place: &Place<'_>,
        head: ObjectId,
        changes: &[store::Change],
    ) -> Result<Self, ConsolidateError> {
        let is_recap = |change: &store::Change| change.path.kind() == FileKind::Recap;
        if !changes.iter().any(is_recap) {
            return Ok(Self::default());
        }
        let loaded = Extractions::open(place.home.root(), place.version).load_all()?;
        let ours = loaded.recaps.into_iter();
        let ours = ours.map(|(thread, stored)| (thread, stored.recap.header.updated_at));
        Ok(Self {
            ours: ours.collect(),
            recaps: past::recap_blobs(place.store, head)?,
        })
    }

    fn facts<'a>(&'a self, place: &'a Place<'_>, withheld: &'a [Withheld]) -> EditFacts<'a> {
        EditFacts {
            version: place.version,
            now: place.now,
            quiet_seconds: place.policy.edit_quiet_seconds,
            withheld,
            modes: place.modes,
            ours: &self.ours,
            known_recaps: &self.recaps,
        }
    }
}

/// Writes down what follows from the person's doings, then commits their
/// changes of the work tree as one `edit` commit of theirs.
///
/// # Errors
///
/// When something cannot be read or written; nothing of the person's is lost.
pub(crate) fn absorb(
    place: &Place<'_>,
    hands: &Hands<'_>,
    head: ObjectId,
    past: &Past,
) -> Result<Absorbed, ConsolidateError> {
    let snapshot = place.store.snapshot(head)?;
    let before = load_withheld(place, &snapshot)?;
    // What only the folder says would go with a reset of it.
    withheld_set::save(place.home.root(), before.as_slice()).map_err(ConsolidateError::Withheld)?;
    let by_hand = by_hand(place, head, past)?;
    let (withheld, released) = settle(place, hands, &by_hand.words, &before)?;
    adopt(place, head, &by_hand.adopted, withheld.as_slice())?;
    let reverts = by_hand.news(&before);
    stop::point("consolidate.commits_by_hand_taken_in");
    let sorted = sort_out(place, &snapshot, withheld.as_slice())?;
    let told = consequences(place.version, &sorted);
    adopt(place, head, &told.adopted, withheld.as_slice())?;
    let (withheld, _) = settle(place, hands, &words_about(&told), &withheld)?;
    stop::point("consolidate.edits_taken_in");
    let copies = copies_of(&released, &before, &snapshot);
    let edit = commit(place, hands, head, &sorted.taken, &copies)?;
    stop::point("consolidate.edits_committed");
    Ok(Absorbed {
        head: edit.unwrap_or(head),
        edit,
        left: sorted.left,
        unfit: sorted.unfit,
        withheld,
        reverts,
    })
}

/// What will be withheld once the next pass has taken in what the person did.
///
/// # Errors
///
/// When the store cannot be read.
pub(crate) fn foresee(
    place: &Place<'_>,
    head: ObjectId,
    past: &Past,
    withheld: &WithheldSet,
) -> Result<WithheldSet, ConsolidateError> {
    let by_hand = by_hand(place, head, past)?;
    Ok(foreseen(place, &by_hand.words, withheld))
}

/// As [`foresee`], for changes that are not committed.
pub(crate) fn foresee_edits(
    place: &Place<'_>,
    sorted: &SortedOut,
    withheld: &WithheldSet,
) -> WithheldSet {
    let told = consequences(place.version, sorted);
    foreseen(place, &words_about(&told), withheld)
}

fn foreseen(place: &Place<'_>, words: &Words, withheld: &WithheldSet) -> WithheldSet {
    // Never written, so nobody else sees these hashes or names.
    let settled = words.settle(withheld, || [0; 16]);
    let named = settled.new.into_iter().enumerate();
    let new = named.map(|(index, (reason, what))| Withheld {
        id: format!("{}-foreseen-{index}", place.now.file_stamp()),
        reason,
        since: place.now.floor_to_second(),
        what,
    });
    let left = withheld.without(&settled.released);
    WithheldSet::union(left.as_slice().iter().cloned().chain(new))
}

fn consequences(version: MemoryVersion, sorted: &SortedOut) -> Consequences {
    let revisions = sorted.taken.iter().map(|(_, revision)| revision.clone());
    edits::consequences(version, &revisions.collect::<Vec<_>>())
}

fn words_about(told: &Consequences) -> Words {
    let mut words = Words::default();
    words.about_edit(told, Word::Withhold(WithheldReason::Edited));
    words
}

/// Everything that is withheld: what the home says and what the head holds.
pub(crate) fn load_withheld(
    place: &Place<'_>,
    snapshot: &Snapshot,
) -> Result<WithheldSet, ConsolidateError> {
    let mut copies = Vec::new();
    for (path, blob) in &snapshot.files {
        if path.kind() == FileKind::Withheld {
            copies.push((path.clone(), place.store.text(blob.id)?));
        }
    }
    let loaded = withheld_set::load(place.home.root(), &copies);
    loaded.map_err(ConsolidateError::Withheld)
}

/// What the commits made by hand mean together.
#[derive(Default)]
struct ByHand {
    words: Words,
    adopted: Vec<Adopted>,
    reverts: Vec<(RevertSeen, Words)>,
}

impl ByHand {
    /// Reverts of which something was not written down before.
    fn news(self, before: &WithheldSet) -> Vec<RevertSeen> {
        let is_news = |words: &Words| words.settle(before, || [0; 16]) != Settled::default();
        (self.reverts.into_iter())
            .filter(|(_, words)| is_news(words))
            .map(|(seen, _)| seen)
            .collect()
    }
}

/// Newest first, so that the last word about each thing counts.
fn by_hand(place: &Place<'_>, head: ObjectId, past: &Past) -> Result<ByHand, ConsolidateError> {
    let mut by_hand = ByHand::default();
    let mut undone = BTreeSet::new();
    for made in past.by_hand.iter().rev() {
        let commit = &made.commit;
        let is_undone = undone.contains(&commit.id);
        if let (Some(target), false) = (commit.reverts, is_undone) {
            undone.insert(target);
        }
        match past::meaning(place.store, place.version, head, commit)? {
            // It names a baseline that is not there any more.
            Meaning::Edit | Meaning::EditBack { .. } if past::is_our_revert(commit) => {}
            Meaning::Edit => {
                let told = doings(place, made)?;
                (by_hand.words).about_edit(&told, Word::Withhold(WithheldReason::Edited));
                by_hand.adopted.extend(told.adopted);
            }
            Meaning::EditBack { of } => {
                let told = doings(place, made)?;
                (by_hand.words).about_edit(&told, Word::Withhold(WithheldReason::Edited));
                by_hand.adopted.extend(told.adopted);
                let before = edit_of(place, of)?;
                (by_hand.words).about_edit(&before, Word::Release(WithheldReason::Edited));
            }
            Meaning::Baseline {
                id,
                taken_back,
                stands_again,
                releases,
            } => {
                let word = if releases {
                    Word::Release(WithheldReason::Reverted)
                } else {
                    Word::Withhold(WithheldReason::Reverted)
                };
                let mut words = Words::default();
                for words in [&mut by_hand.words, &mut words] {
                    words.about_baseline(&taken_back, word);
                }
                let seen = RevertSeen {
                    revert: commit.id,
                    baseline: id,
                    inputs: taken_back.inputs.len(),
                    entries: taken_back.entries.len(),
                    stands_again,
                };
                if !is_undone {
                    by_hand.reverts.push((seen, words));
                }
            }
        }
    }
    // They are adopted in the order in which they were made.
    by_hand.adopted.reverse();
    by_hand.reverts.reverse();
    Ok(by_hand)
}

fn doings(place: &Place<'_>, made: &HandMade) -> Result<Consequences, ConsolidateError> {
    let told = hands::doings(place.store, place.version, made, |_| true)?;
    Ok(told)
}

fn edit_of(place: &Place<'_>, commit: ObjectId) -> Result<Consequences, ConsolidateError> {
    let changes = place.store.changed_paths(commit)?;
    let revisions = past::revisions(place.store, &changes)?;
    Ok(edits::consequences(place.version, &revisions))
}

/// Withholds and releases in the home; gives what is withheld then, and what
/// was released. What is written down already is not written again.
pub(crate) fn settle(
    place: &Place<'_>,
    hands: &Hands<'_>,
    words: &Words,
    withheld: &WithheldSet,
) -> Result<(WithheldSet, Vec<Withheld>), ConsolidateError> {
    let settled = words.settle(withheld, || hands.ids.bytes());
    let new = name(settled.new, hands.ids, place.now);
    let root = place.home.root();
    withheld_set::save(root, &new).map_err(ConsolidateError::Withheld)?;
    withheld_set::release(root, &settled.released).map_err(ConsolidateError::Withheld)?;
    let left = withheld.without(&settled.released);
    let all = WithheldSet::union(left.as_slice().iter().cloned().chain(new));
    Ok((all, settled.released))
}

/// Where the head holds copies of what is released now, or was `before` in
/// another folder.
pub(crate) fn copies_of(
    released: &[Withheld],
    before: &WithheldSet,
    snapshot: &Snapshot,
) -> Vec<TreePath> {
    let is_released = |path: &&TreePath| {
        let id = path.name().strip_suffix(".yaml").unwrap_or(path.name());
        let is_now = released.iter().any(|it| it.id == id);
        path.kind() == FileKind::Withheld && (is_now || before.is_released(id))
    };
    (snapshot.files.keys().filter(is_released).cloned()).collect()
}

/// Hashes of `entries` that nothing withholds yet.
pub(crate) fn hold(
    entries: &[Entry],
    reason: WithheldReason,
    withheld: &WithheldSet,
    ids: &Ids,
) -> Vec<(WithheldReason, WithheldWhat)> {
    (entries.iter())
        .filter(|entry| !withheld.blocks_entry(&entry.text))
        .map(|entry| {
            let hashes = shingles::hash_entry(ids.bytes(), &entry.text);
            (reason, WithheldWhat::Entry(hashes))
        })
        .collect()
}

/// Gives each its id and date.
pub(crate) fn name(
    new: Vec<(WithheldReason, WithheldWhat)>,
    ids: &Ids,
    now: Timestamp,
) -> Vec<Withheld> {
    let named = |(reason, what)| Withheld {
        id: format!("{}-{}", now.file_stamp(), hex(&ids.bytes()[..4])),
        reason,
        since: now.floor_to_second(),
        what,
    };
    new.into_iter().map(named).collect()
}

fn adopt(
    place: &Place<'_>,
    head: ObjectId,
    adopted: &[Adopted],
    withheld: &[Withheld],
) -> Result<(), ConsolidateError> {
    if adopted.is_empty() {
        return Ok(());
    }
    let known = Known {
        recaps: past::recap_blobs(place.store, head)?,
        ..Known::default()
    };
    let facts = known.facts(place, withheld);
    let lock_file = place.home.extractions_lock(place.version);
    let lock = FileLock::acquire(&lock_file, place.policy.lock_wait)?;
    let extractions = Extractions::open(place.home.root(), place.version);
    for it in adopted {
        if edits::may_adopt(&it.path, &it.recap, it.blob, it.is_new, &facts).is_err() {
            continue;
        }
        let mut recap = it.recap.clone();
        recap.header.adopted_at = Some(place.now.floor_to_second());
        extractions.adopt(&lock, &recap)?;
    }
    Ok(())
}

fn commit(
    place: &Place<'_>,
    hands: &Hands<'_>,
    head: ObjectId,
    taken: &[(store::Change, Revision)],
    released_copies: &[TreePath],
) -> Result<Option<ObjectId>, ConsolidateError> {
    if taken.is_empty() && released_copies.is_empty() {
        return Ok(None);
    }
    let mut kinds: BTreeMap<TreePath, ChangeKind> = BTreeMap::new();
    let mut changes = Vec::new();
    for (change, revision) in taken {
        kinds.insert(change.path.clone(), change.kind);
        let file = revision.new.as_ref().map(|side| NewFile {
            // `classify` lets no secret through, so these are the same words.
            content: redact::redact_str(&side.text),
            executable: change.new.is_some_and(|blob| blob.executable),
        });
        changes.push(TreeChange {
            path: change.path.clone(),
            file,
        });
    }
    for path in released_copies {
        if kinds.insert(path.clone(), ChangeKind::Deleted).is_none() {
            let file = place.store.folder().join(path.as_str());
            fs::remove(&file).map_err(ConsolidateError::ReleasedCopy)?;
            let (path, file) = (path.clone(), None);
            changes.push(TreeChange { path, file });
        }
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    let message = message::edit(hands.run, place.version, &kinds);
    let committed = place.store.commit_paths(
        hands.lock,
        head,
        &changes,
        &message,
        hands.person,
        place.now,
    );
    match committed {
        Ok(commit) => Ok(Some(commit)),
        // Saved once more just now: the next pass takes it.
        Err(StoreError::WorkTreeChanged { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Files that a person left and that nobody has to be told about go.
pub(crate) fn worth_telling(left: Vec<LeftFile>) -> Vec<LeftFile> {
    let is_quiet = |file: &LeftFile| file.reason.is_quiet();
    left.into_iter().filter(|file| !is_quiet(file)).collect()
}
