//! What can go wrong with a memory folder's repository, with the facts.

use std::path::PathBuf;

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::sys::fs::FsError;
use crate::sys::lock::LockError;

/// Why a call on the store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// There is no memory folder yet.
    #[error("there is no memory folder at `{folder}`")]
    NotThere { folder: PathBuf },

    /// The folder has files, but `<folder>/.git` is gone. An outer repository
    /// is never used instead. Advice: `init --rebuild`.
    #[error("`{folder}` has files but no repository of its own")]
    NoRepository { folder: PathBuf },

    /// `.git` is there, but not a folder of its own, or cannot be opened.
    #[error("`{folder}/.git` cannot be used: {why}")]
    Unusable { folder: PathBuf, why: String },

    /// HEAD or main do not lead to a commit. Only a person can say which one
    /// it was.
    #[error(
        "the repository in `{folder}` is damaged: {what}; `git fsck` and the reflog \
         (`.git/logs/refs/heads/main`) tell the last whole commit; nothing was changed"
    )]
    Damaged { folder: PathBuf, what: String },

    #[error("`{folder}` is a symbolic link, not a folder")]
    FolderIsLink { folder: PathBuf },

    /// A newer memrev wrote here. Reading goes on, writing is refused.
    #[error("`{folder}` has format {found}, this program writes format {known}")]
    NewerFormat {
        folder: PathBuf,
        found: String,
        known: u32,
    },

    /// The person is in the middle of something of their own.
    #[error("`{folder}` is not ours to write now: {state}")]
    NotOurs { folder: PathBuf, state: NotOurs },

    /// Another memrev process holds the folder's lock.
    #[error(transparent)]
    Busy(#[from] LockError),

    /// A Git process holds one of Git's own lock files.
    #[error("`{path}` is held by {holder}")]
    GitLocked { path: PathBuf, holder: String },

    /// Somebody committed in between. Nothing was written.
    #[error("main moved from {expected} to {found}")]
    Moved { expected: ObjectId, found: ObjectId },

    /// Files that were to be published differ from the head's version.
    #[error("{} changed since the last commit", list(.paths))]
    WorkTreeChanged { paths: Vec<TreePath> },

    #[error("the repository has no object {id}")]
    NoObject { id: ObjectId },

    /// What we had just written was removed before main named it.
    #[error(
        "the new object {id} is gone again: another program removed it; nothing was changed, \
         run it again"
    )]
    Pruned { id: ObjectId },

    #[error("object {id} is not UTF-8 text")]
    NotText { id: ObjectId },

    #[error(transparent)]
    Files(#[from] FsError),

    /// Git's data could not be read or written while we tried to `attempt`.
    #[error("could not {attempt} in `{folder}`")]
    Git {
        attempt: &'static str,
        folder: PathBuf,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What keeps us from writing (DESIGN 6, "Ours to write").
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotOurs {
    #[error("branch `{branch}` is checked out, not `main`")]
    OtherBranch { branch: String },

    #[error("commit {commit} is checked out, not `main`")]
    Detached { commit: ObjectId },

    #[error("`main` has no commit")]
    Unborn,

    /// A merge, rebase, revert, cherry-pick, bisect or `git am`.
    #[error("a {0} is under way")]
    Underway(&'static str),

    #[error("the index has unmerged files: {}", list(.paths))]
    Unmerged { paths: Vec<TreePath> },
}

/// The first few of `paths`, for a sentence.
fn list(paths: &[TreePath]) -> String {
    const SHOWN_MAX: usize = 3;
    let shown: Vec<String> = (paths.iter().take(SHOWN_MAX))
        .map(|path| format!("`{path}`"))
        .collect();
    match paths.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
