//! Taking a baseline back, also when later ones followed, or bringing one back
//! that was.
//!
//! # Crash safety
//!
//! One commit holds what changes in the memory files and the copies of what
//! is withheld from then on. What the home keeps of it is written after: the
//! next pass reads a `revert` again and writes what is missing, so a stop
//! finds the old state or the new one.
//!
//! # Not in here
//!
//! Nothing a person wrote goes: notes are never in a baseline, uncommitted
//! edits are committed first, and a place that somebody changed since is a
//! conflict, after which nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::consolidate::absorb::{self, Hands, Place, SortedOut};
use crate::consolidate::beside::{self, Turn};
use crate::consolidate::edits::{self, kind_in};
use crate::consolidate::input;
use crate::consolidate::past::{self, Meaning, TakenBack};
use crate::consolidate::words::{Settled, Word, Words};
use crate::consolidate::{ConsolidateError, LeftFile};
use crate::domain::id::{ObjectId, RunId, ThreadId};
use crate::domain::path::{FileKind, RAW_MEMORIES, TreePath};
use crate::domain::withheld::{Withheld, WithheldReason, WithheldWhat};
use crate::history::tree::Tree;
use crate::history::{self, RevisionError};
use crate::ledger::{Holder, Ledger};
use crate::notes::withheld_set::{self, WithheldSet, WithheldSetError};
use crate::store::author::Author;
use crate::store::diff::{DiffSide, diff_file};
use crate::store::error::StoreError;
use crate::store::history::Commit;
use crate::store::message::{ChangeKind, CommitKind, CommitMessage};
use crate::store::undo::{Conflict, ConflictPart, Undoing};
use crate::store::{NewFile, Publication, TreeChange, Unfit};
use crate::sys::clock::Clock;
use crate::sys::ids::Ids;
use crate::sys::stop;
use crate::text::entries;
use crate::text::redact;

/// Longest list of files in a subject.
const FILES_NAMED_MAX: usize = 4;

/// Everything outside that a revert uses.
pub(crate) struct RevertParts<'a> {
    pub(crate) place: &'a Place<'a>,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) ids: &'a Ids,
    /// The author of what they had not committed yet.
    pub(crate) person: &'a Author,
}

/// What a person asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RevertRequest<'a> {
    /// A commit, or the name of a run.
    pub(crate) name: &'a str,
    /// Withhold nothing: the inputs are to be tried again.
    pub(crate) retry: bool,
}

/// What a revert does, or would do.
#[derive(Debug, Clone)]
pub(crate) struct Reverted {
    /// `None`: it was only looked at.
    pub(crate) commit: Option<ObjectId>,
    /// The commit of what the person had not committed yet.
    pub(crate) edit: Option<ObjectId>,
    pub(crate) target: Commit,
    /// The baseline in question: the target itself, or what it took back.
    pub(crate) baseline: ObjectId,
    /// The target was a revert: the baseline stands again.
    pub(crate) stands_again: bool,
    pub(crate) files: Vec<FileChange>,
    /// What is withheld from now on.
    pub(crate) withheld: Counts,
    /// What may come in again.
    pub(crate) released: Counts,
}

/// Lines that come and go in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileChange {
    pub(crate) path: TreePath,
    pub(crate) kind: ChangeKind,
    pub(crate) lines_added: usize,
    pub(crate) lines_removed: usize,
}

/// How many of each are withheld.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Versions of recaps, notes and other inputs.
    pub(crate) inputs: usize,
    pub(crate) sessions: usize,
    pub(crate) entries: usize,
}

impl Counts {
    pub(crate) fn of<'a>(all: impl IntoIterator<Item = &'a WithheldWhat>) -> Self {
        let mut counts = Self::default();
        for what in all {
            match what {
                WithheldWhat::Input { .. } => counts.inputs += 1,
                WithheldWhat::Thread { .. } => counts.sessions += 1,
                WithheldWhat::Entry(_) => counts.entries += 1,
            }
        }
        counts
    }

    pub(crate) const fn total(self) -> usize {
        self.inputs + self.sessions + self.entries
    }
}

/// Why nothing was taken back. Nothing of the memory files changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RevertError {
    #[error(transparent)]
    Revision(#[from] RevisionError),
    #[error(transparent)]
    Consolidate(#[from] ConsolidateError),
    #[error("could not write down what is withheld")]
    Withheld(#[source] WithheldSetError),
    /// It is something else that has its own way back.
    #[error("{} is no baseline but {what}", .commit.short())]
    NotABaseline { commit: ObjectId, what: String },
    #[error("{} is no part of main", .commit.short())]
    NotOnMain { commit: ObjectId },
    #[error("{} was taken back by {} already", .commit.short(), .by.short())]
    Already { commit: ObjectId, by: ObjectId },
    /// A later commit or a person changed what is to be undone.
    #[error("what {} brought was changed since", .commit.short())]
    Conflicts {
        commit: ObjectId,
        conflicts: Vec<Conflict>,
    },
    /// Files that would have to be overwritten and that no commit holds.
    #[error("changes that cannot be committed are in the way")]
    InTheWay { files: Vec<(TreePath, String)> },
    #[error("a consolidation is under way")]
    Busy { holder: Option<Holder> },
    /// Somebody else took over while we worked.
    #[error("another process took over")]
    LostTurn,
}

impl From<StoreError> for RevertError {
    fn from(error: StoreError) -> Self {
        Self::Consolidate(error.into())
    }
}

/// What would be done; nothing is written.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn look(
    parts: &RevertParts<'_>,
    request: RevertRequest<'_>,
) -> Result<Reverted, RevertError> {
    let head = parts.place.store.readiness()?;
    let planned = before_edits(parts, request, head)?;
    Ok(planned.report(None, None))
}

/// Takes a baseline back, or brings back one that was.
///
/// # Errors
///
/// As [`RevertError`] says; the memory files are as they were then. After an
/// error of the store, recovery finishes or undoes what was begun.
pub(crate) fn run(
    parts: &RevertParts<'_>,
    ledger: &mut Ledger,
    request: RevertRequest<'_>,
) -> Result<Reverted, RevertError> {
    let turn = Turn::take(ledger, parts.place.version, parts.clock)?;
    let mut turn = turn.map_err(|holder| RevertError::Busy { holder })?;
    let result = write(parts, &mut turn, request);
    turn.give_back();
    result
}

fn write(
    parts: &RevertParts<'_>,
    turn: &mut Turn<'_>,
    request: RevertRequest<'_>,
) -> Result<Reverted, RevertError> {
    let (place, store) = (parts.place, parts.place.store);
    let lock = store.lock(place.policy.lock_wait)?;
    store.recover(&lock)?;
    // What is refused is refused before the person's edits are committed.
    let target = before_edits(parts, request, store.readiness()?)?.target.id;
    let run = parts.ids.run_id(place.now);
    let hands = Hands {
        lock: &lock,
        run: &run,
        person: parts.person,
        ids: parts.ids,
    };
    let absorbed = beside::take_in(place, &hands)?;
    stop::point("revert.edits_taken_in");
    let ground = Ground {
        head: absorbed.head,
        edited: BTreeMap::new(),
        withheld: &absorbed.withheld,
    };
    let planned = plan(parts, request, target, &ground)?;
    planned.assert_free(&absorbed.left, &absorbed.unfit)?;
    let new = absorb::name(planned.settled.new.clone(), parts.ids, place.now);
    let publication = Publication {
        run: &run,
        expected_head: absorbed.head,
        changes: with_copies(place, &planned, &new, absorbed.head)?,
        message: planned.message(place, &run, request),
        author: Author::memrev(),
    };
    if !turn.renew() {
        return Err(RevertError::LostTurn);
    }
    let published = store.publish(&lock, &publication, place.now)?;
    stop::point("revert.published");
    let root = place.home.root();
    withheld_set::save(root, &new).map_err(RevertError::Withheld)?;
    withheld_set::release(root, &planned.settled.released).map_err(RevertError::Withheld)?;
    stop::point("revert.written_down");
    Ok(planned.report(Some(published.commit), absorbed.edit))
}

/// The plan as things are, with the person's edits still uncommitted.
fn before_edits(
    parts: &RevertParts<'_>,
    request: RevertRequest<'_>,
    head: ObjectId,
) -> Result<Planned, RevertError> {
    let place = parts.place;
    let snapshot = place.store.snapshot(head)?;
    let withheld = absorb::load_withheld(place, &snapshot)?;
    let past = past::read(place.store, head, place.policy.guard.baselines_counted)?;
    let withheld = absorb::foresee(place, head, &past, &withheld)?;
    let sorted = absorb::sort_out(place, &snapshot, withheld.as_slice())?;
    let ground = Ground {
        head,
        edited: edited(&sorted),
        withheld: &absorb::foresee_edits(place, &sorted, &withheld),
    };
    let target = history::resolve(place.store, request.name)?;
    let planned = plan(parts, request, target, &ground)?;
    planned.assert_free(&sorted.left, &sorted.unfit)?;
    Ok(planned)
}

fn edited(sorted: &SortedOut) -> BTreeMap<TreePath, Option<String>> {
    let taken = sorted.taken.iter();
    let text = |new: &Option<edits::Side>| new.as_ref().map(|side| side.text.clone());
    taken
        .map(|(change, revision)| (change.path.clone(), text(&revision.new)))
        .collect()
}

/// What a plan rests on.
struct Ground<'a> {
    head: ObjectId,
    /// What the person has not committed.
    edited: BTreeMap<TreePath, Option<String>>,
    withheld: &'a WithheldSet,
}

/// What is to be done.
struct Planned {
    target: Commit,
    baseline: ObjectId,
    stands_again: bool,
    changes: Vec<TreeChange>,
    files: Vec<FileChange>,
    settled: Settled,
    taken_back: TakenBack,
}

fn plan(
    parts: &RevertParts<'_>,
    request: RevertRequest<'_>,
    target: ObjectId,
    ground: &Ground<'_>,
) -> Result<Planned, RevertError> {
    let (place, store) = (parts.place, parts.place.store);
    let target = store.commit(target)?;
    let (baseline, stands_again) = baseline_of(place, ground.head, &target)?;
    assert_stands(place, ground.head, target.id)?;
    let undoing = |path: &TreePath| undoing(place, path);
    let mut undone = store.undo(target.id, ground.head, &ground.edited, &undoing)?;
    let tree = Tree::read(store, ground.head, &ground.edited)?;
    undone.conflicts.retain_mut(|conflict| {
        let is_whole = conflict.parts.is_empty();
        let now = tree.files.get(&conflict.path).map_or("", String::as_str);
        (conflict.parts).retain(|part| !is_counted(&conflict.path, now, part));
        is_whole || !conflict.parts.is_empty()
    });
    if !undone.conflicts.is_empty() {
        return Err(RevertError::Conflicts {
            commit: target.id,
            conflicts: undone.conflicts,
        });
    }
    let mut taken_back = past::taken_back(store, place.version, ground.head, baseline.clone())?;
    let mut new = BTreeMap::new();
    for file in undone.files {
        let text = file.file.map(|text| (text.content, text.executable));
        let text = text.map(|(content, executable)| (content.unredacted().to_owned(), executable));
        new.insert(file.path, text);
    }
    without_raw_memories(&taken_back, &tree, &mut new);
    let releases = stands_again || request.retry;
    if !releases {
        taken_back.leave_standing(&tree.memory_files_with(&new));
    }
    let mut words = Words::default();
    let reason = WithheldReason::Reverted;
    let word = if releases {
        Word::Release(reason)
    } else {
        Word::Withhold(reason)
    };
    words.about_baseline(&taken_back, word);
    let files = new.iter().filter_map(|(path, text)| {
        let old = tree.files.get(path).map(String::as_str);
        file_change(path, old, text.as_ref().map(|(text, _)| text.as_str()))
    });
    Ok(Planned {
        target,
        baseline: baseline.id,
        stands_again,
        files: files.collect(),
        changes: new.into_iter().map(tree_change).collect(),
        settled: words.settle(ground.withheld, || parts.ids.bytes()),
        taken_back,
    })
}

fn tree_change((path, text): (TreePath, Option<(String, bool)>)) -> TreeChange {
    let file = text.map(|(text, executable)| NewFile {
        content: redact::redact_str(&text),
        executable,
    });
    TreeChange { path, file }
}

fn file_change(path: &TreePath, old: Option<&str>, new: Option<&str>) -> Option<FileChange> {
    fn side(text: &str) -> DiffSide<'_> {
        DiffSide {
            content: text.as_bytes(),
            executable: false,
        }
    }
    let diff = diff_file(path, old.map(side), new.map(side))?;
    Some(FileChange {
        path: path.clone(),
        kind: diff.kind,
        lines_added: diff.lines_added,
        lines_removed: diff.lines_removed,
    })
}

/// The baseline that undoing `target` is about, and whether it stands again
/// afterwards.
fn baseline_of(
    place: &Place<'_>,
    head: ObjectId,
    target: &Commit,
) -> Result<(Commit, bool), RevertError> {
    if target.trailers.kind == Some(CommitKind::Baseline) {
        return Ok((target.clone(), false));
    }
    let what = match past::meaning(place.store, place.version, head, target)? {
        Meaning::Baseline {
            id, stands_again, ..
        } => return Ok((place.store.commit(id)?, !stands_again)),
        Meaning::Edit | Meaning::EditBack { .. } => match target.trailers.kind {
            None => "a commit made by hand".to_owned(),
            Some(kind) => format!("a commit of kind `{}`", kind.label()),
        },
    };
    Err(RevertError::NotABaseline {
        commit: target.id,
        what,
    })
}

/// It is on main, and nothing took it back since.
fn assert_stands(place: &Place<'_>, head: ObjectId, target: ObjectId) -> Result<(), RevertError> {
    let mut undone: BTreeMap<ObjectId, ObjectId> = BTreeMap::new();
    for commit in place.store.history(head) {
        let commit = commit?;
        let taken_back = undone.get(&commit.id).copied();
        if commit.id == target {
            return taken_back.map_or(Ok(()), |by| {
                Err(RevertError::Already { commit: target, by })
            });
        }
        if let (Some(reverted), None) = (commit.reverts, taken_back) {
            undone.insert(reverted, commit.id);
        }
    }
    Err(RevertError::NotOnMain { commit: target })
}

/// Code brings inputs up to date, so what changed since in them stays. What is
/// withheld only `release` lets go.
fn undoing(place: &Place<'_>, path: &TreePath) -> Undoing {
    match kind_in(place.version, path) {
        FileKind::Withheld => Undoing::Never,
        kind if kind.is_input() || kind == FileKind::RawMemories => Undoing::Yields,
        _ => Undoing::Insists,
    }
}

/// Lines that each pass counts anew, such as how many sessions there are.
fn is_counted(path: &TreePath, now: &str, part: &ConflictPart) -> bool {
    let all = entries::parse(path, now);
    let is_counted = |number: usize| {
        let line = u32::try_from(number + 1).unwrap_or(u32::MAX);
        (all.iter()).any(|entry| entry.line_number == line && entries::is_count(entry))
    };
    !part.lines.is_empty() && part.lines.clone().all(is_counted)
}

/// The raw memories of sessions whose recap goes: they may stand between those
/// of later ones.
fn without_raw_memories(
    taken_back: &TakenBack,
    tree: &Tree,
    new: &mut BTreeMap<TreePath, Option<(String, bool)>>,
) {
    let goes: BTreeSet<&TreePath> = (new.iter())
        .filter_map(|(path, text)| text.is_none().then_some(path))
        .collect();
    let gone = (taken_back.inputs.iter()).filter(|input| goes.contains(&input.path));
    let gone: Vec<&ThreadId> = gone.filter_map(|input| input.thread_id.as_ref()).collect();
    let Some(path) = TreePath::parse(RAW_MEMORIES).filter(|_| !gone.is_empty()) else {
        return;
    };
    let today = tree.files.get(&path);
    let text = match new.get(&path) {
        Some(text) => text.as_ref().map(|(text, _)| text),
        None => today,
    };
    let Some(text) = text.map(|text| input::without_sessions(text, &gone)) else {
        return;
    };
    if Some(&text) == today {
        new.remove(&path);
    } else {
        new.insert(path, Some((text, false)));
    }
}

/// The changes with copies of what is withheld from now on, and without those
/// of what is released.
fn with_copies(
    place: &Place<'_>,
    planned: &Planned,
    new: &[Withheld],
    head: ObjectId,
) -> Result<Vec<TreeChange>, RevertError> {
    let mut changes = planned.changes.clone();
    changes.extend(beside::copies(new));
    let snapshot = place.store.snapshot(head)?;
    let none = WithheldSet::default();
    let gone = absorb::copies_of(&planned.settled.released, &none, &snapshot);
    changes.extend((gone.into_iter()).map(|path| TreeChange { path, file: None }));
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

impl Planned {
    /// Nothing that no commit holds may be overwritten.
    fn assert_free(&self, left: &[LeftFile], unfit: &[Unfit]) -> Result<(), RevertError> {
        let left = left.iter();
        let left = left.map(|it| (it.path.as_str(), it.reason.to_string()));
        let unfit = unfit.iter();
        let unfit = unfit.map(|it| (it.path.as_str(), it.why.to_string()));
        let uncommitted: BTreeMap<&str, String> = left.chain(unfit).collect();
        let in_the_way = |change: &TreeChange| {
            let why = uncommitted.get(change.path.as_str())?;
            Some((change.path.clone(), why.clone()))
        };
        let files: Vec<_> = self.changes.iter().filter_map(in_the_way).collect();
        if files.is_empty() {
            return Ok(());
        }
        Err(RevertError::InTheWay { files })
    }

    fn withheld(&self) -> Counts {
        Counts::of(self.settled.new.iter().map(|(_, what)| what))
    }

    fn released(&self) -> Counts {
        Counts::of(self.settled.released.iter().map(|held| &held.what))
    }

    fn report(&self, commit: Option<ObjectId>, edit: Option<ObjectId>) -> Reverted {
        Reverted {
            commit,
            edit,
            target: self.target.clone(),
            baseline: self.baseline,
            stands_again: self.stands_again,
            files: self.files.clone(),
            withheld: self.withheld(),
            released: self.released(),
        }
    }

    /// `revert: baseline 1a2b3c4d5e; MEMORY.md +0 -3`.
    fn message(&self, place: &Place<'_>, run: &RunId, request: RevertRequest<'_>) -> CommitMessage {
        let kind = if self.stands_again {
            "revert"
        } else {
            "baseline"
        };
        let mut subject = format!("revert: {kind} {}", self.target.id.short());
        let is_shown = |it: &&FileChange| kind_in(place.version, &it.path).is_output();
        for (index, file) in (self.files.iter()).filter(is_shown).enumerate() {
            if index == FILES_NAMED_MAX {
                subject.push_str(", …");
                break;
            }
            let mark = if index == 0 { ';' } else { ',' };
            let (added, removed) = (file.lines_added, file.lines_removed);
            let _ = write!(subject, "{mark} {} +{added} -{removed}", file.path);
        }
        let body = if self.stands_again {
            format!(
                "Baseline {} stands again; {} released.",
                self.baseline.short(),
                counted(self.released())
            )
        } else if request.retry {
            "Nothing is withheld: its inputs are tried again.".to_owned()
        } else {
            let inputs = self.taken_back.inputs.iter();
            let inputs: Vec<String> = inputs.map(|input| format!("\n- {}", input.path)).collect();
            let inputs = inputs.concat();
            format!(
                "Withheld from now on: {}.{inputs}",
                counted(self.withheld())
            )
        };
        CommitMessage::new(CommitKind::Revert, redact::redact_str(&subject))
            .reverts(self.target.id)
            .body(redact::redact_str(&body))
            .run(run.clone())
            .version(place.version)
            .retries(request.retry && !self.stands_again)
    }
}

fn counted(counts: Counts) -> String {
    let Counts {
        inputs,
        sessions,
        entries,
    } = counts;
    format!("inputs {inputs}, sessions {sessions}, entries {entries}")
}
