//! Forgets: a commit per memory folder, then the recaps and the books.
//!
//! # Crash safety
//!
//! What is forgotten is withheld in the home first. From then on nothing lets
//! it in again, and a pass takes out what a stop left in the folder; the same
//! command finishes the rest.

use std::collections::{BTreeMap, BTreeSet};

use crate::consolidate::absorb::{self, Absorbed, Hands, Place as Ground};
use crate::consolidate::beside::{self, Turn};
use crate::consolidate::{ConsolidateError, Policy};
use crate::domain::id::{ObjectId, RunId, ThreadId};
use crate::domain::path::{FileKind, TreePath, WITHHELD};
use crate::domain::session::MemoryMode;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::{EntryHashes, Withheld, WithheldReason, WithheldWhat};
use crate::history::forget::{Files, Forgotten, Target, plan};
use crate::history::log::is_end_of;
use crate::ledger::{Holder, Ledger, LedgerError, OpenError};
use crate::notes::withheld_set::{self, WithheldSet, WithheldSetError};
use crate::recaps::{Extractions, RecapsError, StoredRecap};
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::message::{CommitKind, CommitMessage};
use crate::store::{NewFile, Publication, Snapshot, Store, StoreLock, StorePaths, TreeChange};
use crate::sys::clock::Clock;
use crate::sys::fs::{self, FsError};
use crate::sys::home::Home;
use crate::sys::ids::Ids;
use crate::sys::lock::{FileLock, LockError};
use crate::sys::stop;
use crate::text::phrase::Phrase;
use crate::text::redact;
use crate::text::shingles;
use crate::text::strip;
use crate::text::withheld as withheld_text;

/// How often a publication is tried again after a person saved a file.
const TRIES_MAX: usize = 3;

/// What a person wants forgotten, in their words.
#[derive(Debug, Clone)]
pub(crate) enum Wish {
    Thread(ThreadId),
    /// A note's or resource's path, or the end of it.
    Note(String),
    Phrase {
        words: String,
        phrase: Phrase,
    },
}

/// What forgetting uses.
pub(crate) struct Parts<'a> {
    pub(crate) home: &'a Home,
    pub(crate) ids: &'a Ids,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) person: &'a Author,
    pub(crate) modes: &'a BTreeMap<ThreadId, MemoryMode>,
    pub(crate) policy: &'a Policy,
}

/// What is forgotten of one version, or would be.
#[derive(Debug, Clone)]
pub(crate) struct FolderReport {
    pub(crate) version: MemoryVersion,
    pub(crate) plan: Forgotten,
    /// Files of the extractions that go or lose lines, by name.
    pub(crate) recaps: Vec<String>,
    /// The commit; `None` for a look, or when the folder had nothing of it.
    pub(crate) commit: Option<ObjectId>,
    /// The person's own edits, committed first.
    pub(crate) edit: Option<ObjectId>,
}

impl FolderReport {
    pub(crate) fn is_empty(&self) -> bool {
        self.plan.is_empty() && self.recaps.is_empty()
    }
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) folders: Vec<FolderReport>,
    /// Ids of what is withheld from now on.
    pub(crate) withheld: Vec<String>,
}

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForgetError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Consolidate(#[from] ConsolidateError),
    #[error(transparent)]
    Recaps(#[from] RecapsError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    OpenLedger(#[from] OpenError),
    #[error(transparent)]
    Files(#[from] FsError),
    #[error(transparent)]
    Withheld(#[from] WithheldSetError),
    #[error("a consolidation of version {version} is running")]
    Busy {
        version: MemoryVersion,
        holder: Option<Holder>,
    },
    /// Whoever took the lease has the folder now.
    #[error("the lease on the consolidation of version {version} was lost")]
    LeaseLost { version: MemoryVersion },
    #[error("no note is called `{name}`")]
    NoNote { name: String },
    /// Naming all of them would be guessing.
    #[error("`{name}` is the name of {count} files")]
    ManyNotes { name: String, count: usize },
    #[error("`{path}` changed since the last commit and cannot be committed: {why}")]
    InTheWay { path: TreePath, why: String },
}

/// Says what would be forgotten; writes nothing. A person's uncommitted edits
/// are looked at as well.
///
/// # Errors
///
/// When a folder cannot be read.
pub(crate) fn look(home: &Home, wish: &Wish) -> Result<Vec<FolderReport>, ForgetError> {
    let mut reports = Vec::new();
    let mut missing = None;
    for version in MemoryVersion::ALL {
        let Some(store) = open(home, version)? else {
            continue;
        };
        let snapshot = store.snapshot(store.head()?)?;
        let files = work_files(&store, &snapshot)?;
        let target = match target(wish, &files) {
            Ok(target) => target,
            Err(error @ ForgetError::NoNote { .. }) => {
                missing = Some(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        let recaps = recaps(home, version, &target)?;
        let plan = plan(version, &files, &recaps.texts(), &target);
        reports.push(FolderReport {
            version,
            plan,
            recaps: recaps.names(),
            commit: None,
            edit: None,
        });
    }
    match missing {
        Some(error) if reports.is_empty() => Err(error),
        _ => Ok(reports),
    }
}

/// Forgets, in every memory folder that there is.
///
/// # Errors
///
/// As [`ForgetError`] says. What is withheld by then stays so, and the same
/// command does the rest.
pub(crate) fn run(
    parts: &Parts<'_>,
    ledger: &mut Ledger,
    wish: &Wish,
) -> Result<Report, ForgetError> {
    let mut report = Report::default();
    let mut missing = None;
    for version in MemoryVersion::ALL {
        let Some(store) = open(parts.home, version)? else {
            continue;
        };
        let turn = Turn::take(ledger, version, parts.clock)?;
        let mut turn = turn.map_err(|holder| ForgetError::Busy { version, holder })?;
        let done = in_folder(parts, &store, version, wish, &mut turn);
        turn.give_back();
        match done {
            Ok((folder, withheld)) => {
                report.folders.push(folder);
                report.withheld.extend(withheld);
            }
            Err(error @ ForgetError::NoNote { .. }) => missing = Some(error),
            Err(error) => return Err(error),
        }
        if let Wish::Thread(thread_id) = wish {
            ledger.forget_thread(version, thread_id)?;
            stop::point("forget.ledger_told");
        }
    }
    match missing {
        Some(error) if report.folders.is_empty() => Err(error),
        _ => Ok(report),
    }
}

fn open(home: &Home, version: MemoryVersion) -> Result<Option<Store>, ForgetError> {
    let paths = StorePaths::in_home(home.root(), version.folder());
    Ok(Store::open_if_there(paths)?)
}

fn in_folder(
    parts: &Parts<'_>,
    store: &Store,
    version: MemoryVersion,
    wish: &Wish,
    turn: &mut Turn<'_>,
) -> Result<(FolderReport, Vec<String>), ForgetError> {
    let run = parts.ids.run_id(parts.clock.now());
    let mut edit = None;
    let mut new = Vec::new();
    let mut tries_left = TRIES_MAX;
    loop {
        tries_left -= 1;
        let now = parts.clock.now();
        let lock = store.lock(parts.policy.lock_wait)?;
        let ground = Ground {
            home: parts.home,
            version,
            store,
            modes: parts.modes,
            policy: parts.policy,
            now,
        };
        let hands = Hands {
            lock: &lock,
            run: &run,
            person: parts.person,
            ids: parts.ids,
        };
        let absorbed = beside::take_in(&ground, &hands)?;
        edit = absorbed.edit.or(edit);
        stop::point("forget.edits_committed");
        let snapshot = store.snapshot(absorbed.head)?;
        let files = head_files(store, &snapshot)?;
        let target = target(wish, &files)?;
        let recaps = recaps(parts.home, version, &target)?;
        let plan = plan(version, &files, &recaps.texts(), &target);
        nothing_in_the_way(&absorbed, &plan)?;
        // Withheld first: from here on nothing lets it in again.
        let found = to_withhold(wish, &target, &plan, &recaps, &snapshot);
        new.extend(hold(parts, &found, &absorbed.withheld, now)?);
        stop::point("forget.withheld");
        if !turn.renew() {
            return Err(ForgetError::LeaseLost { version });
        }
        let changes = changes(&plan, &snapshot, &new);
        let publication = Publication {
            run: &run,
            expected_head: absorbed.head,
            changes,
            message: message(wish, &plan, version, &run),
            author: parts.person.clone(),
        };
        let commit = match publish(store, &lock, &publication, now) {
            Err(StoreError::Moved { .. } | StoreError::WorkTreeChanged { .. })
                if 0 < tries_left =>
            {
                continue;
            }
            published => published?,
        };
        stop::point("forget.published");
        drop(lock);
        let names = recaps.names();
        recaps.forget(parts, version, &target)?;
        let ids = new.into_iter().map(|it| it.id).collect();
        let report = FolderReport {
            version,
            plan,
            recaps: names,
            commit,
            edit,
        };
        return Ok((report, ids));
    }
}

/// What a person has there uncommitted must not be overwritten.
fn nothing_in_the_way(absorbed: &Absorbed, plan: &Forgotten) -> Result<(), ForgetError> {
    let mut left = absorbed.left.iter();
    match left.find(|it| plan.files.contains_key(&it.path)) {
        None => Ok(()),
        Some(left) => Err(ForgetError::InTheWay {
            path: left.path.clone(),
            why: left.reason.to_string(),
        }),
    }
}

/// Nothing to publish is no commit.
fn publish(
    store: &Store,
    lock: &StoreLock,
    publication: &Publication<'_>,
    now: Timestamp,
) -> Result<Option<ObjectId>, StoreError> {
    if publication.changes.is_empty() {
        return Ok(None);
    }
    let published = store.publish(lock, publication, now)?;
    Ok(Some(published.commit))
}

/// Every text file of a commit.
fn head_files(store: &Store, snapshot: &Snapshot) -> Result<Files, ForgetError> {
    let mut files = Files::new();
    for (path, blob) in &snapshot.files {
        if path.kind() == FileKind::Withheld {
            continue;
        }
        match store.text(blob.id) {
            Ok(text) => files.insert(path.clone(), text.unredacted().to_owned()),
            Err(StoreError::NotText { .. }) => None,
            Err(error) => return Err(error.into()),
        };
    }
    Ok(files)
}

/// The same, with what a person changed since.
fn work_files(store: &Store, snapshot: &Snapshot) -> Result<Files, ForgetError> {
    let mut files = head_files(store, snapshot)?;
    for change in store.changes(snapshot)?.files {
        let bytes = store.read_work_tree(&change.path)?;
        match bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
            Some(text) => files.insert(change.path, text),
            None => files.remove(&change.path),
        };
    }
    Ok(files)
}

fn target(wish: &Wish, files: &Files) -> Result<Target, ForgetError> {
    let name = match wish {
        Wish::Thread(thread_id) => return Ok(Target::Thread(thread_id.clone())),
        Wish::Phrase { phrase, .. } => return Ok(Target::Phrase(phrase.clone())),
        Wish::Note(name) => name,
    };
    let is_named = |path: &&TreePath| {
        matches!(path.kind(), FileKind::Note | FileKind::Resource)
            && (is_end_of(path.as_str(), name) || name.ends_with(&format!("/{path}")))
    };
    let found: Vec<&TreePath> = files.keys().filter(is_named).collect();
    match found.as_slice() {
        [] => Err(ForgetError::NoNote { name: name.clone() }),
        [path] => Ok(Target::File((*path).clone())),
        many => Err(ForgetError::ManyNotes {
            name: name.clone(),
            count: many.len(),
        }),
    }
}

/// What the extractions have of it.
#[derive(Default)]
struct Recaps {
    /// Of the session that is forgotten.
    gone: Vec<StoredRecap>,
    /// With fewer lines than the files have.
    reworded: Vec<StoredRecap>,
    /// The lines that these lose.
    lines: Vec<String>,
}

fn recaps(home: &Home, version: MemoryVersion, target: &Target) -> Result<Recaps, ForgetError> {
    let loaded = Extractions::open(home.root(), version).load_all()?;
    let mut recaps = Recaps::default();
    for (thread_id, mut stored) in loaded.recaps {
        match target {
            Target::Thread(wanted) if *wanted == thread_id => recaps.gone.push(stored),
            Target::Phrase(phrase) => {
                let body = stored.recap.body.as_str().to_owned();
                let raw = stored.recap.header.raw_memory.clone();
                let stripped = strip::phrase(&body, phrase);
                recaps.take(&stripped.lines(&body));
                stored.recap.body = redact::redact_str(&stripped.text);
                let mut is_changed = stripped.text != body;
                if let Some(raw) = raw {
                    let stripped = strip::phrase(raw.as_str(), phrase);
                    recaps.take(&stripped.lines(raw.as_str()));
                    is_changed |= stripped.text != raw.as_str();
                    stored.recap.header.raw_memory = Some(redact::redact_str(&stripped.text));
                }
                if is_changed {
                    recaps.reworded.push(stored);
                }
            }
            Target::Thread(_) | Target::File(_) => {}
        }
    }
    Ok(recaps)
}

impl Recaps {
    fn take(&mut self, lines: &[&str]) {
        self.lines
            .extend(lines.iter().map(|line| (*line).to_owned()));
    }

    fn names(&self) -> Vec<String> {
        let all = self.gone.iter().chain(&self.reworded);
        all.map(|stored| stored.path.file_name().unwrap_or_default())
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }

    /// Words of the forgotten session.
    fn texts(&self) -> Vec<String> {
        let texts = self.gone.iter().map(|stored| {
            let raw = stored.recap.header.raw_memory.as_ref();
            let raw = raw.map_or("", Redacted::as_str);
            format!("{}\n{raw}", stored.recap.body)
        });
        texts.collect()
    }

    fn forget(
        &self,
        parts: &Parts<'_>,
        version: MemoryVersion,
        target: &Target,
    ) -> Result<(), ForgetError> {
        let lock_file = parts.home.extractions_lock(version);
        let lock = FileLock::acquire(&lock_file, parts.policy.lock_wait)?;
        let extractions = Extractions::open(parts.home.root(), version);
        if let Target::Thread(thread_id) = target {
            extractions.remove_thread(&lock, thread_id)?;
            stop::point("forget.recaps_removed");
        }
        for stored in &self.reworded {
            Extractions::reword(&lock, stored)?;
        }
        if let Target::Phrase(_) = target {
            // What a crash left of a session is older than what was reworded.
            for file in extractions.load_all()?.superseded {
                fs::remove(&file)?;
            }
        }
        Ok(())
    }
}

/// What must not come in again.
fn to_withhold(
    wish: &Wish,
    target: &Target,
    plan: &Forgotten,
    recaps: &Recaps,
    snapshot: &Snapshot,
) -> (Vec<WithheldWhat>, Vec<String>) {
    let mut whats = Vec::new();
    let mut texts = BTreeSet::new();
    match target {
        Target::Thread(thread_id) => whats.push(WithheldWhat::Thread {
            thread_id: thread_id.clone(),
            until: Timestamp::FOR_EVER,
        }),
        Target::File(path) => {
            let blob = snapshot.files.get(path).map(|blob| blob.id);
            whats.extend(blob.map(|blob| WithheldWhat::Input {
                path: path.clone(),
                blob,
            }));
            texts.extend(plan.entries.iter().map(|place| place.text.clone()));
        }
        Target::Phrase(_) => {
            texts.extend(plan.entries.iter().map(|place| place.text.clone()));
            texts.extend(plan.lines.iter().map(|place| place.text.clone()));
            texts.extend(recaps.lines.iter().cloned());
            if let Wish::Phrase { words, .. } = wish {
                texts.insert(words.clone());
            }
            // Versions that a stash or a clone might bring back.
            for (path, _) in plan
                .files
                .iter()
                .filter(|(path, _)| path.kind() == FileKind::Recap)
            {
                let blob = snapshot.files.get(path).map(|blob| blob.id);
                whats.extend(blob.map(|blob| WithheldWhat::Input {
                    path: path.clone(),
                    blob,
                }));
            }
        }
    }
    (whats, texts.into_iter().collect())
}

/// Writes down in the home what is not withheld yet.
fn hold(
    parts: &Parts<'_>,
    (whats, texts): &(Vec<WithheldWhat>, Vec<String>),
    known: &WithheldSet,
    now: Timestamp,
) -> Result<Vec<Withheld>, ForgetError> {
    let is_known = |what: &WithheldWhat| known.as_slice().iter().any(|it| it.what == *what);
    let reason = WithheldReason::Forgotten;
    let mut found: Vec<(WithheldReason, WithheldWhat)> = (whats.iter())
        .filter(|what| !is_known(what))
        .map(|what| (reason, what.clone()))
        .collect();
    let mut taken: Vec<EntryHashes> = Vec::new();
    for text in texts {
        let is_forgotten = known.as_slice().iter().any(|it| match &it.what {
            WithheldWhat::Entry(hashes) => it.reason == reason && shingles::matches(hashes, text),
            _ => false,
        });
        let is_twin = taken.iter().any(|hashes| shingles::matches(hashes, text));
        let hashes = shingles::hash_entry(parts.ids.bytes(), text);
        if is_forgotten || is_twin || hashes.shingles.is_empty() {
            continue;
        }
        taken.push(hashes.clone());
        found.push((reason, WithheldWhat::Entry(hashes)));
    }
    let new = absorb::name(found, parts.ids, now);
    withheld_set::save(parts.home.root(), &new)?;
    Ok(new)
}

/// The plan and copies of what is withheld, as versions of files.
fn changes(plan: &Forgotten, snapshot: &Snapshot, new: &[Withheld]) -> Vec<TreeChange> {
    let mut changes: Vec<TreeChange> = (plan.files.iter())
        .map(|(path, text)| TreeChange {
            path: path.clone(),
            file: text.as_ref().map(|text| NewFile {
                content: redact::redact_str(text),
                executable: snapshot.files.get(path).is_some_and(|blob| blob.executable),
            }),
        })
        .collect();
    for withheld in new {
        if let Some(path) = TreePath::parse(&format!("{WITHHELD}/{}.yaml", withheld.id)) {
            let content = withheld_text::print(withheld);
            let executable = false;
            let file = Some(NewFile {
                content,
                executable,
            });
            changes.push(TreeChange { path, file });
        }
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

/// Without a word of what is forgotten.
fn message(wish: &Wish, plan: &Forgotten, version: MemoryVersion, run: &RunId) -> CommitMessage {
    let what = match wish {
        Wish::Thread(_) => "1 session",
        Wish::Note(_) => "1 note",
        Wish::Phrase { .. } => "a phrase",
    };
    let counted = |count: usize, one: &str, many: &str| {
        format!("{count} {}", if count == 1 { one } else { many })
    };
    let subject = format!(
        "forget: {what}; {} less, {} changed",
        counted(plan.entries.len(), "entry", "entries"),
        counted(plan.files.len(), "file", "files"),
    );
    CommitMessage::new(CommitKind::Forget, redact::redact_str(&subject))
        .version(version)
        .run(run.clone())
}
