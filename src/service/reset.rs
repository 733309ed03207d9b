//! Emptying a memory without losing its history.

use crate::domain::id::ObjectId;
use crate::domain::path::FileKind;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::ledger::{Ledger, LedgerError, OpenError};
use crate::recaps::{Extractions, RecapsError};
use crate::service::LOCK_WAIT;
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::message::{CommitKind, CommitMessage};
use crate::store::{Publication, Store, StorePaths, TreeChange};
use crate::sys::home::Home;
use crate::sys::ids::Ids;
use crate::sys::lock::{FileLock, LockError};
use crate::text::redact;

/// What a reset uses.
pub(crate) struct ResetParts<'a> {
    pub(crate) home: &'a Home,
    pub(crate) ids: &'a Ids,
    pub(crate) person: &'a Author,
    pub(crate) now: Timestamp,
}

/// What went, or would go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResetReport {
    pub(crate) version: MemoryVersion,
    pub(crate) files: usize,
    pub(crate) recaps: usize,
    pub(crate) commit: Option<ObjectId>,
}

/// Why a reset did not take place. What it did before stays done; a second
/// reset does the rest.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResetError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Hand edits that no commit holds would be lost.
    #[error("{count} files in `{folder}` have changes that no commit holds")]
    Uncommitted { count: usize, folder: String },
    #[error(transparent)]
    Recaps(#[from] RecapsError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Empties one version: the folder by a commit of the person's, then the
/// extractions, then the jobs. What is withheld and the instructions stay.
///
/// # Errors
///
/// As [`ResetError`] says.
pub(crate) fn run(
    parts: &ResetParts<'_>,
    version: MemoryVersion,
    is_dry_run: bool,
) -> Result<ResetReport, ResetError> {
    let store = Store::open(StorePaths::in_home(parts.home.root(), version.folder()))?;
    let extractions = Extractions::open(parts.home.root(), version);
    let recaps = extractions.load_all()?.recaps;
    let mut report = ResetReport {
        version,
        files: removals(&store)?.1.len(),
        recaps: recaps.len(),
        commit: None,
    };
    if is_dry_run {
        return Ok(report);
    }
    report.commit = empty_folder(parts, &store)?;
    let lock = FileLock::acquire(&parts.home.extractions_lock(version), LOCK_WAIT)?;
    for thread_id in recaps.keys() {
        extractions.remove_thread(&lock, thread_id)?;
    }
    drop(lock);
    Ledger::open(&parts.home.ledger_file(), parts.now)?
        .ledger
        .reset(version)?;
    Ok(report)
}

/// The head and the removal of everything that a reset empties.
fn removals(store: &Store) -> Result<(ObjectId, Vec<TreeChange>), ResetError> {
    let head = store.head()?;
    let snapshot = store.snapshot(head)?;
    let goes = |kind: FileKind| !matches!(kind, FileKind::Withheld | FileKind::Instructions);
    let changes = snapshot.files.into_keys().filter(|path| goes(path.kind()));
    let changes = changes.map(|path| TreeChange { path, file: None });
    Ok((head, changes.collect()))
}

fn empty_folder(parts: &ResetParts<'_>, store: &Store) -> Result<Option<ObjectId>, ResetError> {
    let lock = store.lock(LOCK_WAIT)?;
    store.recover(&lock)?;
    store.readiness()?;
    let (head, changes) = removals(store)?;
    let edits = store.changes(&store.snapshot(head)?)?;
    if !edits.files.is_empty() {
        return Err(ResetError::Uncommitted {
            count: edits.files.len(),
            folder: store.folder().display().to_string(),
        });
    }
    if changes.is_empty() {
        return Ok(None);
    }
    let run = parts.ids.run_id(parts.now);
    let subject = format!("forget: reset, {} files removed", changes.len());
    let published = store.publish(
        &lock,
        &Publication {
            run: &run,
            expected_head: head,
            changes,
            message: CommitMessage::new(CommitKind::Forget, redact::redact_str(&subject)),
            author: parts.person.clone(),
        },
        parts.now,
    )?;
    Ok(Some(published.commit))
}
