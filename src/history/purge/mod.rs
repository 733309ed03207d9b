//! Purging: out of memory, out of the history, out of the home, with proof.
//!
//! The steps, each with a stop point behind it:
//!
//! 1. refuse when another work tree, borrowed objects or a running job are in
//!    the way; claim both consolidations
//! 2. say in the home, by a keyed hash, that the text must not come in again
//! 3. per folder: mark the purge as begun; take the text out of uncommitted
//!    files, commit what the person did, and publish a receipt commit that takes it
//!    out of main
//! 4. build a rewritten repository aside, prove it, swap (see `store::purge`)
//! 5. clean everything else in the home, the ledger last
//! 6. look through every file and object of the home; only then is the purge over
//!
//! # Crash safety
//!
//! A stop before the swap leaves the old repository; one behind it the new
//! one. Either way the mark of step 3 is there until step 6 found nothing, and
//! repeating the same command does all steps again.
//!
//! # Not in here
//!
//! What lies outside of the home: transcripts, other clones, backups, and what
//! the file system keeps of removed files.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::consolidate::ConsolidateError;
use crate::consolidate::record;
use crate::domain::id::{ObjectId, ThreadId};
use crate::domain::path::{FileKind, TreePath};
use crate::domain::version::MemoryVersion;
use crate::history::forget::run::{self as forget_run, ForgetError};
use crate::history::forget::{self, Target};
use crate::ledger::{
    ConsolidationClaim, ConsolidationEnd, Holder, JobKind, JobState, Lease, Ledger, LedgerError,
    Pace,
};
use crate::notes::purged::{self, PurgedError};
use crate::notes::withheld_set::WithheldSetError;
use crate::recaps::{Extractions, RecapsError};
use crate::store::error::StoreError;
use crate::store::purge::{Attached, Rewritten, Scrub, Sighting};
use crate::store::{Store, StoreLock, StorePaths};
use crate::sys::fs::FsError;
use crate::sys::lock::LockError;
use crate::sys::stop;
use crate::text::needle::Needles;
use crate::text::recap;
use crate::text::redact;
use crate::text::shingles;

mod home;
mod live;

/// Shorter entries, in characters, stand in messages by chance.
const SAID_CHARS_MIN: usize = 12;

/// The line of an attempt's message that holds entries as JSON.
const RECORD_START: &str = "Memrev-Record: ";

/// What is to be purged.
#[derive(Debug, Clone)]
pub(crate) enum Wish {
    /// Texts, each exactly so.
    Texts {
        texts: Vec<String>,
        needles: Needles,
    },
    Thread(ThreadId),
    /// A note's or resource's path, or the end of it.
    Note(String),
    /// Any file of a memory folder.
    File(TreePath),
}

impl Wish {
    fn needles(&self) -> Option<&Needles> {
        match self {
            Self::Texts { needles, .. } => Some(needles),
            _ => None,
        }
    }
}

/// What purging uses.
pub(crate) type Parts<'a> = forget_run::Parts<'a>;

/// What one folder holds, or held.
#[derive(Debug, Clone)]
pub(crate) struct FolderReport {
    pub(crate) version: MemoryVersion,
    /// Files of the work tree.
    pub(crate) live: Vec<TreePath>,
    pub(crate) history: Sighting,
    pub(crate) attached: Vec<Attached>,
    pub(crate) receipt: Option<ObjectId>,
    pub(crate) rewritten: Rewritten,
}

impl FolderReport {
    fn new(version: MemoryVersion) -> Self {
        Self {
            version,
            live: Vec::new(),
            history: Sighting::default(),
            attached: Vec::new(),
            receipt: None,
            rewritten: Rewritten::default(),
        }
    }
}

/// What the home holds, or held.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) folders: Vec<FolderReport>,
    /// Other files of the home, below its root.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) ledger_rows: usize,
}

impl Report {
    /// Nothing of it is anywhere.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
            && self.ledger_rows == 0
            && (self.folders.iter()).all(|it| it.live.is_empty() && it.history.is_empty())
    }

    pub(crate) fn attached(&self) -> impl Iterator<Item = &Attached> {
        self.folders.iter().flat_map(|folder| &folder.attached)
    }
}

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PurgeError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Forget(#[from] ForgetError),
    #[error(transparent)]
    Consolidate(#[from] ConsolidateError),
    #[error(transparent)]
    Recaps(#[from] RecapsError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Files(#[from] FsError),
    #[error("could not write down what is purged")]
    Purged(#[from] PurgedError),
    #[error(transparent)]
    Withheld(#[from] WithheldSetError),
    #[error("a consolidation of version {version} is running")]
    Busy {
        version: MemoryVersion,
        holder: Option<Holder>,
    },
    #[error("session `{key}` is being extracted")]
    Extracting { key: String },
    /// The rewritten repository would not be the only one.
    #[error("the repository in `{}` is not alone", folder.display())]
    Attached {
        folder: PathBuf,
        attached: Vec<Attached>,
    },
    /// The proof failed: it is still there.
    #[error("the text is still in {} places of the home", places.len())]
    Left { places: Vec<PathBuf> },
}

/// Says where it is; writes nothing.
///
/// # Errors
///
/// When something in the home cannot be read.
pub(crate) fn look(parts: &Parts<'_>, wish: &Wish) -> Result<Report, PurgeError> {
    let mut report = Report::default();
    for store in stores(parts)? {
        report.folders.push(look_at(parts, &store, wish)?);
    }
    if let Some(needles) = wish.needles() {
        let is_hit = |bytes: &[u8]| needles.is_in(bytes);
        report.files = home::files_with(parts.home, needles)?;
        let told: BTreeSet<PathBuf> = (report.folders.iter())
            .flat_map(|it| it.live.iter().map(|path| (it.version, path)))
            .map(|(version, path)| parts.home.memory_folder(version).join(path.as_str()))
            .collect();
        let is_in_git = |file: &PathBuf| file.components().any(|part| part.as_os_str() == ".git");
        (report.files).retain(|file| !is_in_git(file) && !told.contains(file));
        if let Some(ledger) = Ledger::open_to_read(&parts.home.ledger_file())
            .ok()
            .flatten()
        {
            report.ledger_rows = ledger.rows_with(&is_hit)?;
        }
    }
    Ok(report)
}

fn look_at(parts: &Parts<'_>, open: &Open, wish: &Wish) -> Result<FolderReport, PurgeError> {
    let store = &open.store;
    let mut report = FolderReport::new(open.version);
    report.attached = store.attached()?;
    if !report.attached.is_empty() {
        // What is borrowed or shared is not looked through: it is in the way.
        return Ok(report);
    }
    if let Some(needles) = wish.needles() {
        let is_hit = |bytes: &[u8]| needles.is_in(bytes);
        report.history = store.sightings(&is_hit)?;
        report.live = live::files_with(store, needles)?;
    } else {
        let head = live::files(store)?;
        let edits = edits_of(parts, open, wish)?;
        report.live = edits(&head).into_keys().collect();
        report.history.files = count_in_history(store, &edits)?;
    }
    Ok(report)
}

/// Files of main's commits that would change, each version once.
fn count_in_history(store: &Store, edits: &Edits<'_>) -> Result<usize, PurgeError> {
    let mut versions = BTreeSet::new();
    for commit in store.history(store.head()?) {
        let snapshot = store.snapshot(commit?.id)?;
        let files = live::files_of(store, &snapshot)?;
        for path in edits(&files).into_keys() {
            versions.extend(snapshot.files.get(&path).map(|blob| (path, blob.id)));
        }
    }
    Ok(versions.len())
}

/// Purges.
///
/// # Errors
///
/// As [`PurgeError`] says; before the swap of a folder its old repository
/// stands. Repeating the command finishes.
pub(crate) fn run(
    parts: &Parts<'_>,
    ledger: &mut Ledger,
    wish: &Wish,
) -> Result<Report, PurgeError> {
    // 1. Nothing in the way, and nobody else at it.
    for open in stores(parts)? {
        let attached = open.store.attached()?;
        if !attached.is_empty() {
            let folder = open.store.folder().to_owned();
            return Err(PurgeError::Attached { folder, attached });
        }
    }
    let gone = Gone::gather(parts, wish)?;
    if let Some(wish) = gone.forgets(wish) {
        match forget_run::run(parts, ledger, &wish) {
            // Gone from memory already: the history may have it still.
            Ok(_) | Err(ForgetError::NoNote { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        stop::point("purge.forgotten");
    }
    let leases = claim(parts, ledger)?;
    let done = with_leases(parts, ledger, &leases, wish, &gone);
    for lease in &leases {
        let end = ConsolidationEnd::Released;
        if let Err(error) = ledger.finish_consolidation(lease, end, parts.clock.now()) {
            tracing::warn!(%error, "the end of a purge was not written down");
        }
    }
    done
}

fn claim(parts: &Parts<'_>, ledger: &mut Ledger) -> Result<Vec<Lease>, PurgeError> {
    let mut leases = Vec::new();
    let mut refused = None;
    for version in MemoryVersion::ALL {
        let now = parts.clock.now();
        let jobs = ledger.jobs(version, now)?.into_iter();
        let mut running = jobs.filter(|job| {
            job.kind == JobKind::Extract && matches!(job.state, JobState::Running { .. })
        });
        if let Some(job) = running.next() {
            refused = Some(PurgeError::Extracting { key: job.key });
            break;
        }
        match ledger.claim_consolidation(version, Pace::ByHand, now)? {
            ConsolidationClaim::Claimed(lease) => leases.push(lease),
            ConsolidationClaim::Running { holder, .. } => {
                let holder = Some(holder);
                refused = Some(PurgeError::Busy { version, holder });
                break;
            }
            ConsolidationClaim::Cooldown { .. } | ConsolidationClaim::RetryLater { .. } => {}
        }
    }
    stop::point("purge.claimed");
    let Some(error) = refused else {
        return Ok(leases);
    };
    for lease in &leases {
        ledger.finish_consolidation(lease, ConsolidationEnd::Released, parts.clock.now())?;
    }
    Err(error)
}

/// A memory folder that is there.
struct Open {
    version: MemoryVersion,
    store: Store,
}

fn stores(parts: &Parts<'_>) -> Result<Vec<Open>, PurgeError> {
    let mut stores = Vec::new();
    for version in MemoryVersion::ALL {
        let paths = StorePaths::in_home(parts.home.root(), version.folder());
        stores.extend(Store::open_if_there(paths)?.map(|store| Open { version, store }));
    }
    Ok(stores)
}

/// What of the forgotten thing must be known before it is gone.
#[derive(Default)]
struct Gone {
    /// Words of a session's recaps, by version.
    texts: BTreeMap<MemoryVersion, Vec<String>>,
    /// A note's path in each folder.
    notes: BTreeMap<MemoryVersion, TreePath>,
}

impl Gone {
    fn gather(parts: &Parts<'_>, wish: &Wish) -> Result<Self, PurgeError> {
        let mut gone = Self::default();
        for open in stores(parts)? {
            match wish {
                Wish::Thread(thread_id) => {
                    let loaded = Extractions::open(parts.home.root(), open.version).load_all()?;
                    let recap = loaded.recaps.get(thread_id).map(|stored| {
                        let text = recap::print_extraction(&stored.recap);
                        text.into_string()
                    });
                    gone.texts.entry(open.version).or_default().extend(recap);
                }
                Wish::Note(name) => {
                    let path = live::note_in_history(&open.store, name)?;
                    gone.notes.extend(path.map(|path| (open.version, path)));
                }
                Wish::Texts { .. } | Wish::File(_) => {}
            }
        }
        let is_missing = matches!(wish, Wish::Note(_)) && gone.notes.is_empty();
        if let (Wish::Note(name), true) = (wish, is_missing) {
            let name = name.clone();
            return Err(ForgetError::NoNote { name }.into());
        }
        Ok(gone)
    }

    /// What leaves the live memory as `forget` does it.
    fn forgets(&self, wish: &Wish) -> Option<forget_run::Wish> {
        match wish {
            Wish::Thread(thread_id) => Some(forget_run::Wish::Thread(thread_id.clone())),
            Wish::Note(_) => {
                let path = self.notes.values().next()?;
                Some(forget_run::Wish::Note(path.to_string()))
            }
            Wish::Texts { .. } | Wish::File(_) => None,
        }
    }

    fn target(&self, version: MemoryVersion, wish: &Wish) -> Option<Target> {
        match wish {
            Wish::Thread(thread_id) => Some(Target::Thread(thread_id.clone())),
            Wish::Note(_) => self.notes.get(&version).cloned().map(Target::File),
            Wish::Texts { .. } | Wish::File(_) => None,
        }
    }
}

/// What a commit's files become.
type Edits<'a> = dyn Fn(&forget::Files) -> BTreeMap<TreePath, Option<String>> + 'a;

fn edits_of<'a>(
    parts: &Parts<'_>,
    open: &Open,
    wish: &'a Wish,
) -> Result<Box<Edits<'a>>, PurgeError> {
    let version = open.version;
    let gone = Gone::gather(parts, wish)?;
    Ok(Box::new(move |files| edit(version, &gone, wish, files).0))
}

/// What a commit's files become, and which entries it loses.
fn edit(
    version: MemoryVersion,
    gone: &Gone,
    wish: &Wish,
    files: &forget::Files,
) -> (BTreeMap<TreePath, Option<String>>, Vec<String>) {
    if let Wish::File(path) = wish {
        let has = files.contains_key(path);
        return (
            has.then(|| (path.clone(), None)).into_iter().collect(),
            Vec::new(),
        );
    }
    let Some(target) = gone.target(version, wish) else {
        return (BTreeMap::new(), Vec::new());
    };
    let none = Vec::new();
    let also = gone.texts.get(&version).unwrap_or(&none);
    let plan = forget::plan(version, files, also, &target);
    let said = plan.entries.into_iter().map(|place| place.text);
    (plan.files, said.collect())
}

fn with_leases(
    parts: &Parts<'_>,
    ledger: &mut Ledger,
    leases: &[Lease],
    wish: &Wish,
    gone: &Gone,
) -> Result<Report, PurgeError> {
    let mut report = Report::default();
    // 2. Not again.
    if let Wish::Texts { needles, .. } = wish {
        purged::save(parts.home, needles.forms(), parts.ids, parts.clock.now())?;
    }
    stop::point("purge.withheld");
    let mut held: Vec<(Store, StoreLock)> = Vec::new();
    let mut new_blobs = BTreeMap::new();
    for open in stores(parts)? {
        let lock = open.store.lock(parts.policy.lock_wait)?;
        for lease in leases {
            ledger.renew(lease, parts.clock.now())?;
        }
        // 3, 4.
        let (folder, store) = in_folder(parts, open, &lock, wish, gone)?;
        new_blobs.extend(folder.rewritten.blobs.clone());
        report.folders.push(folder);
        held.push((store, lock));
    }
    // 5. Everything else.
    report.files = home::clean(parts, wish.needles(), &new_blobs)?;
    stop::point("purge.home_cleaned");
    let needles = wish.needles();
    let is_hit = |bytes: &[u8]| needles.is_some_and(|needles| needles.is_in(bytes));
    report.ledger_rows = ledger.scrub(&is_hit)?;
    stop::point("purge.ledger_cleaned");
    // 6. The proof.
    if let Some(needles) = needles {
        let mut places = home::files_with(parts.home, needles)?;
        for (store, _) in &held {
            let sighting = store.sightings(&is_hit)?;
            if !sighting.is_empty() {
                places.push(store.folder().join(".git"));
            }
        }
        if !places.is_empty() {
            return Err(PurgeError::Left { places });
        }
    }
    stop::point("purge.home_proven");
    for (store, lock) in &held {
        store.end_purge(lock)?;
    }
    Ok(report)
}

/// Steps 3 and 4 of one folder; gives its new store.
fn in_folder(
    parts: &Parts<'_>,
    open: Open,
    lock: &StoreLock,
    wish: &Wish,
    gone: &Gone,
) -> Result<(FolderReport, Store), PurgeError> {
    let Open { version, store } = open;
    let mut report = FolderReport::new(version);
    let begun = format!("a purge began at {}\n", parts.clock.now());
    let earlier = store.begin_purge(lock, &begun)?;
    let receipt = match wish {
        Wish::Texts { texts, .. } => Some(purged::receipt(parts.home, texts, parts.ids)?),
        _ => None,
    };
    let (live, commit) = live::take_out(parts, &store, lock, version, wish, receipt.as_deref())?;
    report.live = live;
    report.receipt = Some(commit);
    let said: RefCell<BTreeSet<String>> = RefCell::default();
    let lost: RefCell<BTreeSet<TreePath>> = RefCell::default();
    let blobs: RefCell<BTreeSet<ObjectId>> = RefCell::default();
    let files = |files: &forget::Files| {
        let (edits, texts) = edit(version, gone, wish, files);
        let texts = texts.iter().map(|text| shingles::normalise(text));
        let texts = texts.filter(|text| SAID_CHARS_MIN <= text.chars().count());
        said.borrow_mut().extend(texts);
        for path in edits
            .iter()
            .filter(|(_, new)| new.is_none())
            .map(|(path, _)| path)
        {
            lost.borrow_mut().insert(path.clone());
            blobs
                .borrow_mut()
                .extend(files.get(path).map(|text| Store::blob_id(text.as_bytes())));
        }
        edits
    };
    let drops_line = |line: &str| drops(line, wish, &lost.borrow(), &said.borrow());
    let scrub = |bytes: &[u8]| wish.needles().and_then(|needles| needles.scrub(bytes));
    let is_hit = |bytes: &[u8]| wish.needles().is_some_and(|needles| needles.is_in(bytes));
    let is_edited = wish.needles().is_none();
    let scrub = Scrub {
        bytes: &scrub,
        files: is_edited.then_some(&files),
        drops_line: &drops_line,
    };
    report.rewritten = store.rebuild_without(lock, &scrub, &is_hit, &|| {
        blobs.borrow().iter().copied().collect()
    })?;
    let new = store.swap_rewritten(lock)?;
    drop(store);
    let blobs = &mut report.rewritten.blobs;
    blobs.extend(earlier);
    report.receipt = Some(new.head()?);
    Ok((report, new))
}

/// Whether a line of a message speaks of what is gone.
fn drops(line: &str, wish: &Wish, lost: &BTreeSet<TreePath>, said: &BTreeSet<String>) -> bool {
    let names_thread = matches!(wish, Wish::Thread(id) if line.contains(id.as_str()));
    let names_file = lost.iter().any(|path| {
        let kind = path.kind();
        line.contains(path.as_str()) || (kind == FileKind::Recap && line.contains(path.name()))
    });
    if names_thread || names_file {
        return true;
    }
    if said.is_empty() {
        return false;
    }
    let says = |line: &str| {
        let line = shingles::normalise(line);
        said.iter().any(|text| line.contains(text.as_str()))
    };
    let record = line.strip_prefix(RECORD_START);
    says(line) || record.is_some_and(|record| record::texts(record).iter().any(|text| says(text)))
}

/// A path of the home as it may be shown.
pub(crate) fn shown(path: &Path, root: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    redact::redact_str(&path.display().to_string()).into_string()
}
