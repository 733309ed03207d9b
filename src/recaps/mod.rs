//! The extractions folder: every recap within retention.
//!
//! `<home>/extractions/<version>/*.md`, one file per session. A recap without
//! a body is the remembered answer "nothing worth keeping".
//!
//! # Locking
//!
//! Writers hold the home's file lock for moments and show it. Readers need
//! none: a file is there whole or not at all.
//!
//! # Crash safety
//!
//! A new file is written and flushed before the thread's other files go. A
//! crash in between leaves two; the newer counts, and the next store or prune
//! removes the other.

mod retention;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::domain::id::ThreadId;
use crate::domain::recap::Recap;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::sys::fs::FsError;
use crate::sys::lock::FileLock;

#[allow(unused_imports, reason = "callers arrive later")]
pub(crate) use self::retention::{PRUNE_BATCH_MAX, PruneRules, counts_from};

/// The recaps of one version.
#[derive(Debug, Clone)]
pub(crate) struct Extractions {
    folder: PathBuf,
    version: MemoryVersion,
}

/// Everything that lies in the folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Loaded {
    /// The newest recap of each thread, no-ops included, by thread id.
    pub(crate) recaps: BTreeMap<ThreadId, StoredRecap>,
    /// Older files of a thread that a crash left.
    pub(crate) superseded: Vec<PathBuf>,
    /// Files that cannot be read or parsed, with the reason in words.
    pub(crate) damaged: Vec<DamagedRecap>,
}

/// A recap and the file it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredRecap {
    pub(crate) path: PathBuf,
    pub(crate) recap: Recap,
}

/// A file that does not hold a recap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DamagedRecap {
    pub(crate) path: PathBuf,
    pub(crate) problem: String,
}

/// What became of a recap that was to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stored {
    /// It lies there now; `replaced` says whether the thread had one with a
    /// body before (reference row 48: only then a no-op is news).
    Written { path: PathBuf, replaced: bool },
    /// The thread's file is as new or newer; nothing was written.
    NotNewer,
}

/// Names, sizes and times of all files, hashed: equal means unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signature([u8; 32]);

/// Why the folder did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecapsError {
    #[error(transparent)]
    Fs(#[from] FsError),
    /// Every name that this recap could have belongs to other sessions.
    #[error("no free file name for the recap of session `{thread_id}` in `{folder}`")]
    NoFreeName {
        thread_id: ThreadId,
        folder: PathBuf,
    },
}

impl Extractions {
    /// Names the folder; touches nothing.
    pub(crate) fn open(home: &Path, version: MemoryVersion) -> Self {
        let folder = home.join("extractions").join(version.label());
        Self { folder, version }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads all recaps. Damaged files are listed, not fatal.
    pub(crate) fn load_all(&self) -> Result<Loaded, RecapsError> {
        todo!()
    }

    /// A cheap look at the folder for the idle check.
    pub(crate) fn signature(&self) -> Result<Signature, RecapsError> {
        todo!()
    }

    /// Stores a recap unless the thread's newest file is as new by
    /// (`updated_at`, `items_read`).
    pub(crate) fn store(&self, _lock: &FileLock, _recap: &Recap) -> Result<Stored, RecapsError> {
        todo!()
    }

    /// Stores a recap that a person or tool put or changed in a memory
    /// folder, with `adopted_at` as the header says. It also replaces one of
    /// ours of the same session time, whose `raw_memory` and `extracted_at`
    /// it keeps where it has none; only a newer `updated_at` stays.
    pub(crate) fn adopt(&self, _lock: &FileLock, _recap: &Recap) -> Result<Stored, RecapsError> {
        todo!()
    }

    /// Removes all files of a thread; says how many.
    pub(crate) fn remove_thread(
        &self,
        _lock: &FileLock,
        _thread_id: &ThreadId,
    ) -> Result<usize, RecapsError> {
        todo!()
    }

    /// Removes what is past retention, oldest first, at most
    /// [`PRUNE_BATCH_MAX`]; says which threads went.
    pub(crate) fn prune(
        &self,
        _lock: &FileLock,
        _rules: &PruneRules<'_>,
        _now: Timestamp,
    ) -> Result<Vec<ThreadId>, RecapsError> {
        todo!()
    }
}
