//! The Git repository of a memory folder: the only module that knows Git.
//!
//! Everything goes through gix and exactly `<folder>/.git`. The environment
//! (`GIT_DIR` and friends) and the configuration of user and system are not
//! looked at, no hook runs, no filter applies, no ignore rule hides a file.
//!
//! # Layout inside `.git`
//!
//! | path | what |
//! | --- | --- |
//! | `memrev-format` | number of the format written here |
//! | `memrev/publication` | the record of a publication under way, see `record` |
//! | `memrev/incoming/<run>/<n>` | new versions on their way into the folder |
//! | `memrev/displaced/<run>/<n>` | old versions that left it, until the next `recover` |
//! | `memrev/locks/` | proofs that a lock of Git's is ours, see `locks` |
//!
//! # Locking
//!
//! Every writer holds the store's file lock ([`Store::lock`]); Git's own locks
//! are taken besides, for moments, because the person's `git` knows those.
//!
//! # Crash safety
//!
//! See `publish`. [`Store::recover`] comes before any other writer.
//!
//! # Not in here
//!
//! What to publish, when, and whether it is any good.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::domain::id::{ObjectId, RunId};
use crate::domain::path::TreePath;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::message::{ChangeKind, CommitMessage};
use crate::sys::lock::FileLock;

pub(crate) mod author;
mod changes;
mod commit;
pub(crate) mod diff;
pub(crate) mod error;
pub(crate) mod history;
mod index;
mod kept;
mod late;
mod locks;
mod loose;
pub(crate) mod merge;
pub(crate) mod message;
mod objects;
mod open;
mod pack;
mod publish;
pub(crate) mod purge;
mod readiness;
mod record;
mod recover;
mod reflog;
mod stale;
#[cfg(test)]
mod tests;
pub(crate) mod trail;
pub(crate) mod undo;

/// Where a memory folder and its lock are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StorePaths {
    /// The Git work tree.
    pub(crate) folder: PathBuf,
    /// `<home>/<folder name>.lock`
    pub(crate) lock_file: PathBuf,
}

impl StorePaths {
    /// `name` is that of the folder in the home, such as `memories`.
    pub(crate) fn in_home(home: &Path, name: &str) -> Self {
        Self {
            folder: home.join(name),
            lock_file: home.join(format!("{name}.lock")),
        }
    }
}

/// The repository of one memory folder. Shared between threads freely.
pub(crate) struct Store {
    paths: StorePaths,
    repository: gix::ThreadSafeRepository,
    /// What `.git/memrev-format` says, when this program does not know it.
    unknown_format: Option<String>,
    /// The file system can tell executable files from others.
    has_executable_bit: bool,
}

/// The right to write to a store, while it is held.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _file: FileLock,
    folder: PathBuf,
}

/// One file of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Blob {
    pub(crate) id: ObjectId,
    pub(crate) executable: bool,
}

/// The files of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) commit: ObjectId,
    pub(crate) files: BTreeMap<TreePath, Blob>,
    /// Entries that are no plain files or have unusable names.
    pub(crate) unfit: Vec<Unfit>,
}

/// Something that cannot be part of memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unfit {
    /// Path below the folder, control characters and bad bytes escaped.
    pub(crate) path: String,
    pub(crate) why: UnfitReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub(crate) enum UnfitReason {
    #[error("it is a symbolic link")]
    Symlink,
    #[error("its name is not UTF-8 or cannot be a path in memory")]
    Name,
    #[error("it is neither a file nor a folder")]
    Special,
    #[error("it has {bytes} bytes")]
    TooLarge { bytes: u64 },
    #[error("it cannot be read")]
    Unreadable,
    #[error("it is a repository of its own")]
    Repository,
}

/// How the work tree differs from a commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Changes {
    /// Sorted by path.
    pub(crate) files: Vec<Change>,
    pub(crate) unfit: Vec<Unfit>,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) path: TreePath,
    pub(crate) kind: ChangeKind,
    pub(crate) old: Option<Blob>,
    /// What lies in the folder; its object need not exist yet.
    pub(crate) new: Option<Blob>,
    /// When the file was last changed; `None` for a deleted one.
    pub(crate) modified_at: Option<Timestamp>,
}

/// A new version of a path: a file, or `None` for its removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeChange {
    pub(crate) path: TreePath,
    pub(crate) file: Option<NewFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewFile {
    pub(crate) content: Redacted,
    pub(crate) executable: bool,
}

/// What `publish` is to make of the folder.
#[derive(Debug)]
pub(crate) struct Publication<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) expected_head: ObjectId,
    /// At most one per path. Those that change nothing are left out by `publish`.
    pub(crate) changes: Vec<TreeChange>,
    pub(crate) message: CommitMessage,
    pub(crate) author: Author,
}

/// A finished publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) commit: ObjectId,
    /// Edits that were saved while we published. They are merged into the
    /// work tree already, with the version they were made on as base, and are
    /// ordinary uncommitted edits now.
    pub(crate) late_edits: Vec<LateEdit>,
}

/// An edit that met a publication.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LateEdit {
    pub(crate) path: TreePath,
    /// The version the edit was made on.
    pub(crate) base: Option<Blob>,
    /// The person's side won over something the publication changed as well.
    pub(crate) had_conflict: bool,
}

/// What `recover` found and did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Recovery {
    /// A publication whose commit was on main: its renames were finished.
    pub(crate) finished: Option<ObjectId>,
    /// A publication that had not reached main: thrown away.
    pub(crate) discarded: Option<RunId>,
    pub(crate) late_edits: Vec<LateEdit>,
    /// Damaged files and folders of `.git`, by the name they were kept under.
    /// What they were for was made anew, or judged without them.
    pub(crate) set_aside: Vec<PathBuf>,
}

/// Which side history a kept tree belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum KeptKind {
    /// `refs/memrev/attempts/<run>`: refused by the judge.
    Attempt,
    /// `refs/memrev/kept/<run>`: content that was only in the index.
    Kept,
}

/// A commit beside main.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeptRef {
    pub(crate) kind: KeptKind,
    pub(crate) run: RunId,
    pub(crate) commit: ObjectId,
}

impl Store {
    pub(crate) fn folder(&self) -> &Path {
        &self.paths.folder
    }

    /// Takes the lock that every writer holds, waiting at most `wait`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Busy`] with the holder when the time is up, and
    /// [`StoreError::NewerFormat`]: what a newer program wrote is only read.
    pub(crate) fn lock(&self, wait: Duration) -> Result<StoreLock, StoreError> {
        if let Some(found) = &self.unknown_format {
            return Err(StoreError::NewerFormat {
                folder: self.paths.folder.clone(),
                found: found.clone(),
                known: open::FORMAT,
            });
        }
        Ok(StoreLock {
            _file: FileLock::acquire(&self.paths.lock_file, wait)?,
            folder: self.paths.folder.clone(),
        })
    }

    /// The commit that main is at.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotOurs`] when main has no commit.
    pub(crate) fn head(&self) -> Result<ObjectId, StoreError> {
        commit::main_of(&self.repository(), self.folder())
    }

    fn repository(&self) -> gix::Repository {
        self.repository.to_thread_local()
    }

    fn git_dir(&self) -> PathBuf {
        self.paths.folder.join(".git")
    }

    /// Where this module keeps what it needs to survive a crash.
    fn private_dir(&self) -> PathBuf {
        self.git_dir().join("memrev")
    }

    /// The file of the work tree at `path`.
    fn work_path(&self, path: &TreePath) -> PathBuf {
        self.paths.folder.join(path.as_str())
    }

    /// Holding another folder's lock is a bug of the caller.
    fn assert_locked(&self, lock: &StoreLock) {
        assert!(
            lock.folder == self.paths.folder,
            "the lock is of this store"
        );
    }

    fn damaged(&self, what: &str) -> StoreError {
        StoreError::Damaged {
            folder: self.paths.folder.clone(),
            what: what.to_owned(),
        }
    }

    fn not_ours(&self, state: error::NotOurs) -> StoreError {
        StoreError::NotOurs {
            folder: self.paths.folder.clone(),
            state,
        }
    }

    /// Keeps what was attempted with an error of Git's data.
    fn while_trying_to<E>(&self, attempt: &'static str) -> impl Fn(E) -> StoreError + use<E>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let folder = self.paths.folder.clone();
        move |source| StoreError::Git {
            attempt,
            folder: folder.clone(),
            source: source.into(),
        }
    }
}

/// Between gix's ids and ours.
fn id_of(id: &gix::oid) -> ObjectId {
    let bytes = id.as_bytes().try_into();
    ObjectId::from_bytes(bytes.expect("this build of gix knows SHA-1 only"))
}

fn gix_id(id: ObjectId) -> gix::ObjectId {
    gix::ObjectId::Sha1(*id.as_bytes())
}
