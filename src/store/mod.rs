//! The Git repository of a memory folder.

#![allow(clippy::todo, clippy::unused_self, reason = "signatures first")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::domain::id::{ObjectId, RunId};
use crate::domain::path::TreePath;
use crate::domain::text::{Raw, Redacted};
use crate::domain::time::Timestamp;
use crate::sys::lock::FileLock;

pub(crate) mod author;
pub(crate) mod diff;
pub(crate) mod error;
pub(crate) mod history;
pub(crate) mod merge;
pub(crate) mod message;

use self::author::Author;
use self::error::StoreError;
use self::history::Commit;
use self::message::{ChangeKind, CommitMessage};

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
}

/// The right to write to a store, while it is held.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _file: FileLock,
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
    /// Makes the folder's repository, with an empty first commit of kind
    /// `init`, unless it has one already. Files in the folder are left alone
    /// and uncommitted.
    pub(crate) fn init(_paths: StorePaths, _now: Timestamp) -> Result<Self, StoreError> {
        todo!()
    }

    /// Opens exactly `<folder>/.git`.
    pub(crate) fn open(_paths: StorePaths) -> Result<Self, StoreError> {
        todo!()
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.paths.folder
    }

    /// Takes the lock that every writer holds, waiting at most `wait`.
    pub(crate) fn lock(&self, _wait: Duration) -> Result<StoreLock, StoreError> {
        todo!()
    }

    /// Whether we may write now; gives the head. Call `recover` before it.
    pub(crate) fn readiness(&self) -> Result<ObjectId, StoreError> {
        todo!()
    }

    /// Keeps content that is only in the index on `refs/memrev/kept/<run>`.
    pub(crate) fn keep_staged(
        &self,
        _lock: &StoreLock,
        _run: &RunId,
        _now: Timestamp,
    ) -> Result<Option<KeptRef>, StoreError> {
        todo!()
    }

    /// The commit that main is at.
    pub(crate) fn head(&self) -> Result<ObjectId, StoreError> {
        todo!()
    }

    /// The files of a commit.
    pub(crate) fn snapshot(&self, _commit: ObjectId) -> Result<Snapshot, StoreError> {
        todo!()
    }

    pub(crate) fn blob(&self, _id: ObjectId) -> Result<Vec<u8>, StoreError> {
        todo!()
    }

    /// A blob as text.
    pub(crate) fn text(&self, _id: ObjectId) -> Result<Raw, StoreError> {
        todo!()
    }

    /// The id that `content` has as a blob. Writes nothing.
    pub(crate) fn blob_id(_content: &[u8]) -> ObjectId {
        todo!()
    }

    /// How the work tree differs from `snapshot`.
    pub(crate) fn changes(&self, _snapshot: &Snapshot) -> Result<Changes, StoreError> {
        todo!()
    }

    /// Reads a file of the work tree; `None` when there is no plain file.
    pub(crate) fn read_work_tree(&self, _path: &TreePath) -> Result<Option<Vec<u8>>, StoreError> {
        todo!()
    }

    /// First-parent commits, newest first.
    pub(crate) fn history(
        &self,
        _from: ObjectId,
    ) -> Result<impl Iterator<Item = Result<Commit, StoreError>> + '_, StoreError> {
        Ok(std::iter::empty())
    }

    pub(crate) fn commit(&self, _id: ObjectId) -> Result<Commit, StoreError> {
        todo!()
    }

    /// What a commit changed against its first parent.
    pub(crate) fn changed_paths(&self, _commit: ObjectId) -> Result<Vec<Change>, StoreError> {
        todo!()
    }

    /// The input versions of `head` that a baseline has consumed (DESIGN 2).
    pub(crate) fn consumed(
        &self,
        _head: &Snapshot,
    ) -> Result<BTreeSet<(TreePath, ObjectId)>, StoreError> {
        todo!()
    }

    /// Commits paths whose content the work tree has already.
    pub(crate) fn commit_paths(
        &self,
        _lock: &StoreLock,
        _expected_head: ObjectId,
        _changes: &[TreeChange],
        _message: &CommitMessage,
        _author: &Author,
        _now: Timestamp,
    ) -> Result<ObjectId, StoreError> {
        todo!()
    }

    /// Publishes new versions: commit, then work tree (DESIGN 6, step 9).
    pub(crate) fn publish(
        &self,
        _lock: &StoreLock,
        _publication: &Publication<'_>,
        _now: Timestamp,
    ) -> Result<Published, StoreError> {
        todo!()
    }

    /// Finishes or undoes what a killed process began.
    pub(crate) fn recover(&self, _lock: &StoreLock) -> Result<Recovery, StoreError> {
        todo!()
    }

    /// Keeps `parent` with `changes` as a commit beside main.
    #[expect(clippy::too_many_arguments, reason = "one call, each its own type")]
    pub(crate) fn keep_ref(
        &self,
        _lock: &StoreLock,
        _kind: KeptKind,
        _run: &RunId,
        _parent: ObjectId,
        _changes: &[TreeChange],
        _message: &CommitMessage,
        _now: Timestamp,
    ) -> Result<KeptRef, StoreError> {
        todo!()
    }

    /// All commits beside main of that kind, oldest run first.
    pub(crate) fn kept_refs(&self, _kind: KeptKind) -> Result<Vec<KeptRef>, StoreError> {
        todo!()
    }

    /// Removes one; a missing one is fine.
    pub(crate) fn remove_kept_ref(
        &self,
        _lock: &StoreLock,
        _kept: &KeptRef,
    ) -> Result<(), StoreError> {
        todo!()
    }
}
