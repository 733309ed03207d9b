//! What a person did since the head: what is committed as theirs, what is
//! left alone and why, and what follows from it.
//!
//! [`classify`] looks at one changed file, [`consequences`] at what a set of
//! changes (an edit commit of ours, a commit a person made by hand) means for
//! entries and recaps.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::domain::entry::{Entry, EntryKind, Rewriting};
use crate::domain::id::{ObjectId, ThreadId};
use crate::domain::limits::SNAPSHOT_FILE_BYTES_MAX;
use crate::domain::path::{FileKind, TreePath};
use crate::domain::recap::Recap;
use crate::domain::session::MemoryMode;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::{Withheld, WithheldWhat};
use crate::text::entries;
use crate::text::note;
use crate::text::note::{Leftover, leftover};
use crate::text::recap;
use crate::text::redact;
use crate::text::shingles::{self, Wording};
use crate::text::withheld as withheld_text;

/// From this similarity on, a new entry is the old one in other words.
const REWORDED_SIMILARITY_MIN: f64 = 0.4;

/// Shorter entries, such as `none`, are withheld from nobody.
const STATEMENT_CHARS_MIN: usize = 6;

/// What lies in the work tree at a path where the head has something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    File {
        bytes: Vec<u8>,
        blob: ObjectId,
        changed_at: Timestamp,
    },
    /// Nothing, though the head has a file. Its folder's time of change tells
    /// a deletion from an editor between two steps of saving.
    Gone {
        folder_changed_at: Option<Timestamp>,
    },
    TooLarge,
    Symlink,
    /// A folder, pipe or device where a file is due.
    Unfit,
}

/// One difference between head and work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) path: TreePath,
    pub(crate) is_in_head: bool,
    pub(crate) found: Found,
}

/// What [`classify`] must know besides the file.
pub(crate) struct EditFacts<'a> {
    pub(crate) version: MemoryVersion,
    pub(crate) now: Timestamp,
    /// `edit_quiet_seconds`: an editor may still be at it.
    pub(crate) quiet_seconds: i64,
    pub(crate) withheld: &'a [Withheld],
    pub(crate) modes: &'a BTreeMap<ThreadId, MemoryMode>,
    /// The session time of our newest recap of each thread.
    pub(crate) ours: &'a BTreeMap<ThreadId, Timestamp>,
    /// Blobs that main's history had at a recap path before.
    pub(crate) known_recaps: &'a BTreeSet<ObjectId>,
}

/// Why a changed file stays where it is, uncommitted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LeftAlone {
    Secret,
    NotUtf8,
    /// In the words of the parser.
    DoesNotParse(String),
    ConflictMarkers,
    /// It changed too recently; looked at again from then on.
    TooFresh {
        quiet_at: Timestamp,
    },
    TooLarge,
    Symlink,
    Unfit,
    EditorLeftover,
    ConflictedCopy,
    /// Not a file this program knows: the person's own business.
    Foreign,
    /// A recap of a withheld thread or version.
    Withheld,
    /// A recap of a session whose mode is not enabled.
    Mode(MemoryMode),
    /// A recap that memory held before and let go.
    KnownBefore,
    /// A new recap of a thread of which we have a newer one.
    OursIsNewer,
}

impl LeftAlone {
    /// Nothing a person has to be told about.
    pub(crate) const fn is_quiet(&self) -> bool {
        matches!(self, Self::EditorLeftover | Self::Foreign)
    }
}

impl fmt::Display for LeftAlone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret => f.write_str("it holds a secret"),
            Self::NotUtf8 => f.write_str("it is not UTF-8 text"),
            Self::DoesNotParse(problem) => write!(f, "it does not parse: {problem}"),
            Self::ConflictMarkers => f.write_str("it has conflict markers"),
            Self::TooFresh { quiet_at } => {
                write!(f, "it changed just now, looked at again from {quiet_at}")
            }
            Self::TooLarge => f.write_str("it is too large"),
            Self::Symlink => f.write_str("it is a symbolic link"),
            Self::Unfit => f.write_str("it cannot be part of memory"),
            Self::EditorLeftover => f.write_str("an editor left it there"),
            Self::ConflictedCopy => f.write_str("it is a conflicted copy"),
            Self::Foreign => f.write_str("it is no file of memory"),
            Self::Withheld => f.write_str("its session is withheld"),
            Self::Mode(mode) => write!(f, "its session is {}", mode.label()),
            Self::KnownBefore => f.write_str("memory held it before and let it go"),
            Self::OursIsNewer => f.write_str("there is a newer recap of its session"),
        }
    }
}

/// Whether the person's change of one file is to be committed.
///
/// # Errors
///
/// The reason why it stays where it is.
pub(crate) fn classify(change: &Change, facts: &EditFacts<'_>) -> Result<(), LeftAlone> {
    let kind = kind_in(facts.version, &change.path);
    fit_name(change, kind)?;
    let (bytes, blob, changed_at) = match &change.found {
        Found::Symlink => return Err(LeftAlone::Symlink),
        Found::TooLarge => return Err(LeftAlone::TooLarge),
        Found::Unfit => return Err(LeftAlone::Unfit),
        Found::Gone { folder_changed_at } => {
            return folder_changed_at.map_or(Ok(()), |at| quiet(at, facts));
        }
        Found::File {
            bytes,
            blob,
            changed_at,
        } => (bytes, blob, *changed_at),
    };
    quiet(changed_at, facts)?;
    if bytes.len() as u64 > SNAPSHOT_FILE_BYTES_MAX {
        return Err(LeftAlone::TooLarge);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| LeftAlone::NotUtf8)?;
    if has_conflict_markers(text) {
        return Err(LeftAlone::ConflictMarkers);
    }
    if redact::contains_secret(text) {
        return Err(LeftAlone::Secret);
    }
    fit_content(change, kind, text, *blob, facts)
}

fn fit_name(change: &Change, kind: FileKind) -> Result<(), LeftAlone> {
    if !change.is_in_head {
        match leftover(change.path.name()) {
            Some(Leftover::ConflictedCopy) => return Err(LeftAlone::ConflictedCopy),
            Some(Leftover::Temporary) => return Err(LeftAlone::EditorLeftover),
            None => {}
        }
    }
    if kind == FileKind::Foreign {
        return Err(LeftAlone::Foreign);
    }
    Ok(())
}

/// A time in the far future says nothing about the last seconds.
fn quiet(changed_at: Timestamp, facts: &EditFacts<'_>) -> Result<(), LeftAlone> {
    let quiet_at = changed_at.plus_seconds(facts.quiet_seconds);
    let is_fresh = facts.now < quiet_at && changed_at < facts.now.plus_seconds(facts.quiet_seconds);
    if is_fresh {
        return Err(LeftAlone::TooFresh { quiet_at });
    }
    Ok(())
}

fn fit_content(
    change: &Change,
    kind: FileKind,
    text: &str,
    blob: ObjectId,
    facts: &EditFacts<'_>,
) -> Result<(), LeftAlone> {
    match kind {
        FileKind::Recap => fit_recap(change, text, blob, facts),
        FileKind::Note => note::parse(&change.path, text)
            .map(|_| ())
            .map_err(|error| LeftAlone::DoesNotParse(error.to_string())),
        FileKind::Withheld => withheld_text::parse(change.path.name(), text)
            .map(|_| ())
            .map_err(|error| LeftAlone::DoesNotParse(error.to_string())),
        _ => Ok(()),
    }
}

fn fit_recap(
    change: &Change,
    text: &str,
    blob: ObjectId,
    facts: &EditFacts<'_>,
) -> Result<(), LeftAlone> {
    let recap = recap::parse(change.path.name(), text)
        .map_err(|error| LeftAlone::DoesNotParse(error.to_string()))?;
    may_adopt(&change.path, &recap, blob, !change.is_in_head, facts)
}

/// Whether a recap that a person or tool put or changed may be taken over:
/// not when that would bring back what has gone.
///
/// # Errors
///
/// The reason why not.
pub(crate) fn may_adopt(
    path: &TreePath,
    recap: &Recap,
    blob: ObjectId,
    is_new: bool,
    facts: &EditFacts<'_>,
) -> Result<(), LeftAlone> {
    let header = &recap.header;
    let is_withheld = facts.withheld.iter().any(|entry| match &entry.what {
        WithheldWhat::Thread { thread_id, until } => {
            *thread_id == header.thread_id && header.updated_at <= *until
        }
        WithheldWhat::Input {
            path: held,
            blob: version,
        } => held == path && *version == blob,
        WithheldWhat::Entry(_) => false,
    });
    if is_withheld {
        return Err(LeftAlone::Withheld);
    }
    match facts.modes.get(&header.thread_id).copied() {
        None | Some(MemoryMode::Enabled) => {}
        Some(mode) => return Err(LeftAlone::Mode(mode)),
    }
    if is_new && facts.known_recaps.contains(&blob) {
        return Err(LeftAlone::KnownBefore);
    }
    match facts.ours.get(&header.thread_id) {
        Some(ours) if is_new && header.updated_at < *ours => Err(LeftAlone::OursIsNewer),
        _ => Ok(()),
    }
}

/// An unresolved merge: all three markers, each at the start of a line.
fn has_conflict_markers(text: &str) -> bool {
    ["<<<<<<< ", "=======", ">>>>>>> "]
        .iter()
        .all(|marker| text.lines().any(|line| line.starts_with(marker)))
}

/// What a path means in the folder of this version: version 2 has neither
/// handbook nor raw memories nor skills, so those are foreign there.
pub(crate) fn kind_in(version: MemoryVersion, path: &TreePath) -> FileKind {
    match (version, path.kind()) {
        (MemoryVersion::V2, FileKind::Handbook | FileKind::RawMemories | FileKind::Skill) => {
            FileKind::Foreign
        }
        (_, kind) => kind,
    }
}

/// A file before and after a person's change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Revision {
    pub(crate) path: TreePath,
    pub(crate) old: Option<Side>,
    pub(crate) new: Option<Side>,
}

/// One side of a [`Revision`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) blob: ObjectId,
    pub(crate) text: String,
}

/// What a person's change means beyond its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Consequences {
    /// Entries that are gone and must stay gone.
    pub(crate) removed: Vec<Entry>,
    /// Entries that are new or reworded, and so the person's.
    pub(crate) added: Vec<Entry>,
    /// The same with lines too short to be withheld: the person's all the same.
    pub(crate) written: Vec<Entry>,
    /// Lines that a person rewrote in their place, however much.
    pub(crate) rewritten: Vec<Rewriting>,
    /// Sessions whose recap was deleted: forgotten up to this session time.
    pub(crate) forgotten: Vec<(ThreadId, Timestamp)>,
    /// Recaps that are new or reworded, to be copied to the extractions.
    pub(crate) adopted: Vec<Adopted>,
}

/// A recap that a person or tool put or changed in the memory folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Adopted {
    pub(crate) path: TreePath,
    pub(crate) blob: ObjectId,
    pub(crate) is_new: bool,
    pub(crate) recap: Recap,
}

/// Compares entries and recaps before and after.
///
/// A file that is gone or blank as a whole withholds nothing: that asks for
/// it to be made anew. A file that is new as a whole was taken over from
/// elsewhere, and its entries are nobody's in particular. An entry that only moved, within its file or to
/// another, is not removed; one with a successor in other words is reworded.
pub(crate) fn consequences(version: MemoryVersion, revisions: &[Revision]) -> Consequences {
    let mut told = Consequences::default();
    let mut gone = Vec::new();
    let mut come = Vec::new();
    for revision in revisions {
        match kind_in(version, &revision.path) {
            FileKind::Summary | FileKind::Handbook => {
                let old = side_entries(&revision.path, revision.old.as_ref());
                let new = side_entries(&revision.path, revision.new.as_ref());
                if !new.is_empty() {
                    gone.extend(without(&old, &new));
                }
                if revision.old.is_some() {
                    come.extend(without(&new, &old));
                    told.rewritten.extend(rewritten(&old, &new));
                }
            }
            FileKind::Recap => recap_consequences(revision, &mut told),
            _ => {}
        }
    }
    let wordings: Vec<Wording> = come.iter().map(|it| Wording::of(&it.text)).collect();
    let has_successor = |entry: &Entry| {
        let old = Wording::of(&entry.text);
        come.iter().zip(&wordings).any(|(new, wording)| {
            old.words() == wording.words()
                || (entry.path == new.path
                    && entry.kind == new.kind
                    && old.similarity(wording) >= REWORDED_SIMILARITY_MIN)
        })
    };
    // A renamed recap is not a deleted one.
    let stays = |thread_id: &ThreadId| {
        (told.adopted.iter()).any(|adopted| adopted.recap.header.thread_id == *thread_id)
    };
    let forgotten = std::mem::take(&mut told.forgotten);
    told.forgotten = (forgotten.into_iter())
        .filter(|(thread_id, _)| !stays(thread_id))
        .collect();
    gone.retain(|entry| states_something(entry) && !has_successor(entry));
    let written = come.iter().filter(|entry| has_words(entry));
    told.written = written.cloned().collect();
    come.retain(states_something);
    told.removed = gone;
    told.added = come;
    told
}

/// Statements that have another in their place: between the same neighbours,
/// below the same headings, as many as there were.
fn rewritten(old: &[Entry], new: &[Entry]) -> Vec<Rewriting> {
    let words = |entries: &[Entry]| -> BTreeSet<String> {
        let texts = entries.iter();
        texts
            .map(|entry| shingles::normalise(&entry.text))
            .collect()
    };
    let (in_old, in_new) = (words(old), words(new));
    let in_place: BTreeMap<Between, Vec<&Entry>> = runs(new, &in_old).into_iter().collect();
    let mut rewritten = Vec::new();
    for (between, gone) in runs(old, &in_new) {
        let successors = in_place.get(&between);
        let Some(successors) = successors.filter(|it| it.len() == gone.len()) else {
            continue;
        };
        let pairs = gone.iter().zip(successors);
        let fits = |(old, new): &(&&Entry, &&Entry)| {
            let are_statements = states_something(old) && states_something(new);
            are_statements && old.kind == new.kind && old.headings == new.headings
        };
        rewritten.extend(pairs.filter(fits).map(|(old, new)| Rewriting {
            old: old.text.clone(),
            new: new.text.clone(),
        }));
    }
    rewritten
}

/// The neighbours of a run, normalised; none at the ends of a file.
type Between = (Option<String>, Option<String>);

/// Runs of entries that the other side has not, each with what stands around it.
fn runs<'e>(entries: &'e [Entry], others: &BTreeSet<String>) -> Vec<(Between, Vec<&'e Entry>)> {
    let mut runs = Vec::new();
    let mut run = Vec::new();
    let mut before = None;
    for entry in entries {
        // A group's or task's bytes hold the others; its words are a border too.
        let words = shingles::normalise(&entry.text);
        if !others.contains(&words) {
            run.push(entry);
            continue;
        }
        if !run.is_empty() {
            let between = (before, Some(words.clone()));
            runs.push((between, std::mem::take(&mut run)));
        }
        before = Some(words);
    }
    if !run.is_empty() {
        runs.push(((before, None), run));
    }
    runs
}

/// Whether an entry states something. Titles of groups and tasks only hold
/// other entries; who removes or renames one says nothing about a statement.
/// Neither does a count of the profile, which is counted anew in every pass.
pub(crate) fn states_something(entry: &Entry) -> bool {
    let is_statement = matches!(entry.kind, EntryKind::Bullet | EntryKind::Topic);
    is_statement
        && !entries::is_count(entry)
        && STATEMENT_CHARS_MIN <= shingles::normalise(&entry.text).chars().count()
}

/// Whether an entry is a line of somebody's own, however short. One that only
/// cites has no words to know it by.
fn has_words(entry: &Entry) -> bool {
    let is_line = matches!(entry.kind, EntryKind::Bullet | EntryKind::Topic);
    is_line && !entries::is_count(entry) && !shingles::normalise(&entry.text).is_empty()
}

fn side_entries(path: &TreePath, side: Option<&Side>) -> Vec<Entry> {
    side.map_or_else(Vec::new, |side| entries::parse(path, &side.text))
}

/// The entries whose words are nowhere in the others. Most stand there letter
/// by letter; only the rest is looked at closer.
fn without(entries: &[Entry], others: &[Entry]) -> Vec<Entry> {
    let same: BTreeSet<&str> = others.iter().map(|it| it.text.as_str()).collect();
    let candidates = (entries.iter()).filter(|entry| !same.contains(entry.text.as_str()));
    let candidates: Vec<&Entry> = candidates.collect();
    if candidates.is_empty() {
        return Vec::new();
    }
    let words = |entry: &Entry| shingles::normalise(&entry.text);
    let known: BTreeSet<String> = others.iter().map(words).collect();
    let is_new = |entry: &&Entry| !known.contains(&words(entry));
    candidates.into_iter().filter(is_new).cloned().collect()
}

fn recap_consequences(revision: &Revision, told: &mut Consequences) {
    let parse = |side: &Side| recap::parse(revision.path.name(), &side.text).ok();
    match (&revision.old, &revision.new) {
        (old, Some(new)) => told.adopted.extend(parse(new).map(|recap| Adopted {
            path: revision.path.clone(),
            blob: new.blob,
            is_new: old.is_none(),
            recap,
        })),
        (Some(old), None) => {
            let header = parse(old).map(|recap| recap.header);
            (told.forgotten).extend(header.map(|header| (header.thread_id, header.updated_at)));
        }
        (None, None) => {}
    }
}

#[cfg(test)]
mod tests;
