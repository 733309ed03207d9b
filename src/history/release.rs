//! What is withheld, and letting it in again.
//!
//! # Crash safety
//!
//! The home's marks come first, then one commit in each memory folder. A stop
//! in between leaves copies that say nothing any more; the next pass, or a
//! second release, takes them out. A stop between two marks leaves a part of
//! what was named withheld, and the same command releases the rest.

use std::collections::BTreeSet;

use crate::consolidate::ConsolidateError;
use crate::consolidate::absorb::{self, Hands, Place};
use crate::consolidate::beside;
use crate::consolidate::edits;
use crate::consolidate::hands;
use crate::consolidate::past::{self, Meaning};
use crate::consolidate::words::{Word, Words};
use crate::domain::entry::Entry;
use crate::domain::id::{ObjectId, RunId};
use crate::domain::path::{FileKind, TreePath};
use crate::domain::text::Raw;
use crate::domain::withheld::{Withheld, WithheldReason, WithheldWhat};
use crate::history::{self, RevisionError};
use crate::notes::withheld_set::{self, WithheldSet, WithheldSetError};
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::message::{CommitKind, CommitMessage};
use crate::store::{Store, StoreLock, TreeChange};
use crate::sys::fs::{self, FsError};
use crate::sys::ids::Ids;
use crate::sys::stop;
use crate::text::entries;
use crate::text::redact;
use crate::text::shingles;

/// How many different entries of the history are compared with what is
/// withheld, newest first: some seconds at the most.
const ENTRIES_COMPARED_MAX: usize = 20_000;

/// Fewest characters by which an id or a thread is named.
const NAME_CHARS_MIN: usize = 4;

/// Something withheld, with the words that the history can still show.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) withheld: Withheld,
    /// For entries.
    pub(crate) words: Option<Shown>,
}

/// An entry that was found again by its hashes.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) text: Raw,
    pub(crate) path: TreePath,
    /// The newest commit that has it.
    pub(crate) commit: ObjectId,
}

/// What a person names.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReleaseRequest {
    /// Ids of withheld things, thread ids, paths of inputs.
    pub(crate) names: Vec<String>,
    /// Everything that this commit made us withhold.
    pub(crate) all_of: Option<String>,
}

/// What was released, or would be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Released {
    pub(crate) all: Vec<Withheld>,
    /// One per memory folder.
    pub(crate) commits: Vec<ObjectId>,
}

/// Why nothing was released.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReleaseError {
    #[error(transparent)]
    Revision(#[from] RevisionError),
    #[error(transparent)]
    Consolidate(#[from] ConsolidateError),
    #[error("could not write down what is released")]
    Withheld(#[source] WithheldSetError),
    #[error("could not remove a copy from the folder")]
    Copy(#[from] FsError),
    #[error("nothing that is withheld is called `{name}`")]
    Unknown { name: String },
    #[error("`{name}` names {count} withheld things")]
    Ambiguous { name: String, count: usize },
    #[error("nothing is withheld because of {}", .commit.short())]
    NothingOf { commit: ObjectId },
}

impl From<StoreError> for ReleaseError {
    fn from(error: StoreError) -> Self {
        Self::Consolidate(error.into())
    }
}

/// What releasing writes with.
pub(crate) struct ReleaseParts<'a> {
    /// Every memory folder that there is.
    pub(crate) places: &'a [Place<'a>],
    /// The one in which commits are named.
    pub(crate) selected: &'a Place<'a>,
    pub(crate) ids: &'a Ids,
    pub(crate) person: &'a Author,
}

/// Everything withheld, in the home and in the memory folders.
///
/// # Errors
///
/// When something cannot be read.
pub(crate) fn list(places: &[Place<'_>]) -> Result<Vec<Held>, ReleaseError> {
    let set = union(places)?;
    let mut held: Vec<Held> = (set.as_slice().iter().cloned())
        .map(|withheld| Held {
            withheld,
            words: None,
        })
        .collect();
    held.sort_by(|a, b| {
        let key = |it: &Held| (it.withheld.since, it.withheld.id.clone());
        key(a).cmp(&key(b))
    });
    for place in places {
        show(place.store, &mut held)?;
    }
    Ok(held)
}

fn union(places: &[Place<'_>]) -> Result<WithheldSet, ReleaseError> {
    let mut all = Vec::new();
    for place in places {
        let head = place.store.head()?;
        let snapshot = place.store.snapshot(head)?;
        let withheld = absorb::load_withheld(place, &snapshot)?;
        all.extend(withheld.as_slice().iter().cloned());
    }
    Ok(WithheldSet::union(all))
}

/// Looks for the words of entries in the memory files of the history.
fn show(store: &Store, held: &mut [Held]) -> Result<(), ReleaseError> {
    let mut seen_files = BTreeSet::new();
    let mut seen_texts = BTreeSet::new();
    for commit in store.history(store.head()?) {
        let is_missing =
            |it: &Held| matches!(it.withheld.what, WithheldWhat::Entry(_)) && it.words.is_none();
        if !held.iter().any(is_missing) || ENTRIES_COMPARED_MAX < seen_texts.len() {
            break;
        }
        let commit = commit?.id;
        for (path, blob) in store.snapshot(commit)?.files {
            if !hands::is_memory_file(path.kind()) || !seen_files.insert(blob.id) {
                continue;
            }
            let Some(side) = past::side(store, Some(blob))? else {
                continue;
            };
            for entry in entries::parse(&path, &side.text) {
                if seen_texts.insert(shingles::normalise(&entry.text)) {
                    recognise(held, &entry, commit);
                }
            }
        }
    }
    Ok(())
}

fn recognise(held: &mut [Held], entry: &Entry, commit: ObjectId) {
    for it in held.iter_mut().filter(|it| it.words.is_none()) {
        let WithheldWhat::Entry(hashes) = &it.withheld.what else {
            continue;
        };
        if shingles::hash_entry(hashes.salt, &entry.text) == *hashes {
            it.words = Some(Shown {
                text: Raw::new(entry.text.clone()),
                path: entry.path.clone(),
                commit,
            });
        }
    }
}

/// What would be released; nothing is written.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn look(
    places: &[Place<'_>],
    selected: &Place<'_>,
    request: &ReleaseRequest,
) -> Result<Released, ReleaseError> {
    let set = union(places)?;
    Ok(Released {
        all: chosen(selected, &set, request)?,
        commits: Vec::new(),
    })
}

/// Lets in again what the person names, in the home and in every folder.
///
/// # Errors
///
/// As [`ReleaseError`] says. Where a folder cannot be written now, nothing is
/// released.
pub(crate) fn run(
    parts: &ReleaseParts<'_>,
    request: &ReleaseRequest,
) -> Result<Released, ReleaseError> {
    let mut begun = Vec::new();
    for place in parts.places {
        let lock = place.store.lock(place.policy.lock_wait)?;
        let run = parts.ids.run_id(place.now);
        let hands = Hands {
            lock: &lock,
            run: &run,
            person: parts.person,
            ids: parts.ids,
        };
        let absorbed = beside::take_in(place, &hands)?;
        begun.push(Begun {
            place,
            run,
            head: absorbed.head,
            withheld: absorbed.withheld,
            lock,
        });
    }
    let sets = begun.iter().flat_map(|it| it.withheld.as_slice());
    let set = WithheldSet::union(sets.cloned());
    let all = chosen(parts.selected, &set, request)?;
    stop::point("release.chosen");
    let root = parts.selected.home.root();
    withheld_set::release(root, &all).map_err(ReleaseError::Withheld)?;
    stop::point("release.marked");
    let mut commits = Vec::new();
    for it in &begun {
        commits.push(it.commit(parts, &all)?);
        stop::point("release.committed");
    }
    Ok(Released { all, commits })
}

/// One folder under its lock, with the person's edits committed.
struct Begun<'a> {
    place: &'a Place<'a>,
    run: RunId,
    head: ObjectId,
    withheld: WithheldSet,
    lock: StoreLock,
}

impl Begun<'_> {
    /// Takes the copies out. There is a commit also without any: it says in
    /// the history that the last word about them was this one.
    fn commit(&self, parts: &ReleaseParts<'_>, all: &[Withheld]) -> Result<ObjectId, ReleaseError> {
        let (place, store) = (self.place, self.place.store);
        let snapshot = store.snapshot(self.head)?;
        let copies = absorb::copies_of(all, &WithheldSet::default(), &snapshot);
        for path in &copies {
            fs::remove(&store.folder().join(path.as_str()))?;
        }
        let copies = copies.into_iter();
        let changes: Vec<TreeChange> = copies.map(|path| TreeChange { path, file: None }).collect();
        let things = if all.len() == 1 { "thing" } else { "things" };
        let subject = format!("edit: {} withheld {things} released", all.len());
        let lines: Vec<String> = all.iter().map(|it| format!("- {}", it.id)).collect();
        let message = CommitMessage::new(CommitKind::Edit, redact::redact_str(&subject))
            .body(redact::redact_str(&lines.join("\n")))
            .run(self.run.clone())
            .version(place.version);
        Ok(store.commit_paths(
            &self.lock,
            self.head,
            &changes,
            &message,
            parts.person,
            place.now,
        )?)
    }
}

fn chosen(
    selected: &Place<'_>,
    set: &WithheldSet,
    request: &ReleaseRequest,
) -> Result<Vec<Withheld>, ReleaseError> {
    let mut all = Vec::new();
    let mut done = Vec::new();
    for name in &request.names {
        match named(set, name) {
            // By the same command, which was stopped half way.
            Err(error @ ReleaseError::Unknown { .. }) if is_released(selected, name)? => {
                done.push(error);
            }
            found => all.extend(found?),
        }
    }
    if let (true, Some(error)) = (all.is_empty(), done.pop()) {
        return Err(error);
    }
    if let Some(name) = &request.all_of {
        let commit = history::resolve(selected.store, name)?;
        let of_commit = of_commit(selected, set, commit)?;
        if of_commit.is_empty() {
            return Err(ReleaseError::NothingOf { commit });
        }
        all.extend(of_commit);
    }
    Ok(WithheldSet::union(all).as_slice().to_vec())
}

/// The home says of this id that it was let in again.
fn is_released(place: &Place<'_>, id: &str) -> Result<bool, ReleaseError> {
    let set = withheld_set::load(place.home.root(), &[]).map_err(ReleaseError::Withheld)?;
    Ok(set.is_released(id))
}

/// By id, by thread or by the path of an input; the first kind that fits.
fn named(set: &WithheldSet, name: &str) -> Result<Vec<Withheld>, ReleaseError> {
    let find = |fits: &dyn Fn(&Withheld) -> bool| -> Vec<Withheld> {
        let all = set.as_slice().iter();
        all.filter(|it| fits(it)).cloned().collect()
    };
    let exact = find(&|it| it.id == name);
    if !exact.is_empty() {
        return Ok(exact);
    }
    let is_long = NAME_CHARS_MIN <= name.chars().count();
    let by_source = find(&|it| match &it.what {
        WithheldWhat::Thread { thread_id, .. } => thread_id.as_str() == name,
        WithheldWhat::Input { path, .. } => {
            history::log::is_end_of(path.as_str(), name)
                || (path.kind() == FileKind::Recap && is_of_thread(set, it, name))
        }
        WithheldWhat::Entry(_) => false,
    });
    if !by_source.is_empty() {
        return Ok(by_source);
    }
    let by_end = find(&|it| is_long && it.id.ends_with(name));
    match by_end.len() {
        0 => Err(ReleaseError::Unknown {
            name: name.to_owned(),
        }),
        1 => Ok(by_end),
        count => Err(ReleaseError::Ambiguous {
            name: name.to_owned(),
            count,
        }),
    }
}

/// A recap version that was withheld together with this session.
fn is_of_thread(set: &WithheldSet, input: &Withheld, name: &str) -> bool {
    set.as_slice().iter().any(|it| match &it.what {
        WithheldWhat::Thread { thread_id, .. } => {
            thread_id.as_str() == name && it.since == input.since && it.reason == input.reason
        }
        _ => false,
    })
}

/// What a commit made us withhold: the copies that came with it, and what
/// follows from what it did.
fn of_commit(
    place: &Place<'_>,
    set: &WithheldSet,
    id: ObjectId,
) -> Result<Vec<Withheld>, ReleaseError> {
    let store = place.store;
    let commit = store.commit(id)?;
    let changes = store.changed_paths(id)?;
    let copies: BTreeSet<&str> = (changes.iter())
        .filter(|change| change.path.kind() == FileKind::Withheld && change.new.is_some())
        .filter(|_| commit.trailers.kind != Some(CommitKind::Baseline))
        .filter_map(|change| change.path.name().strip_suffix(".yaml"))
        .collect();
    let mut words = Words::default();
    let head = store.head()?;
    let taken_back = if commit.trailers.kind == Some(CommitKind::Baseline) {
        Some(past::taken_back(store, place.version, head, commit)?)
    } else {
        match past::meaning(store, place.version, head, &commit)? {
            Meaning::Baseline { taken_back, .. } => Some(taken_back),
            Meaning::Edit | Meaning::EditBack { .. } => None,
        }
    };
    if let Some(brought) = taken_back {
        words.about_baseline(&brought, Word::Release(WithheldReason::Reverted));
    } else {
        let revisions = past::revisions(store, &changes)?;
        let told = edits::consequences(place.version, &revisions);
        words.about_edit(&told, Word::Release(WithheldReason::Edited));
    }
    let by_words = words.settle(set, || [0; 16]).released;
    let by_copy = set.as_slice().iter();
    let by_copy = by_copy
        .filter(|it| copies.contains(it.id.as_str()))
        .cloned();
    Ok(by_copy.chain(by_words).collect())
}
