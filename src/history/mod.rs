//! What a memory's history says, and taking a part of it back.
//!
//! [`log`] and [`lost`] are also answered by plain `git` in the memory folder;
//! they only join what `git` would be asked in several steps. [`mod@revert`]
//! takes a baseline back.
//!
//! # Not in here
//!
//! No words for a person: callers print.

pub(crate) mod blame;
pub(crate) mod forget;
pub(crate) mod log;
pub(crate) mod lost;
pub(crate) mod purge;
pub(crate) mod release;
pub(crate) mod revert;
pub(crate) mod survival;
mod tree;
pub(crate) mod why;

use crate::domain::id::ObjectId;
use crate::store::Store;
use crate::store::error::StoreError;

/// Why a name leads to no commit.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RevisionError {
    #[error("no commit is called `{name}`")]
    Unknown { name: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The commit that a person means: what `git rev-parse` takes, or the name of
/// a run, whose newest commit on main it is.
///
/// # Errors
///
/// When there is none, or the history cannot be read.
pub(crate) fn resolve(store: &Store, name: &str) -> Result<ObjectId, RevisionError> {
    if let Some(id) = store.resolve(name)? {
        return Ok(id);
    }
    for commit in store.history(store.head()?) {
        let commit = commit?;
        let run = commit.trailers.run.as_ref().map(ToString::to_string);
        if run.as_deref() == Some(name) {
            return Ok(commit.id);
        }
    }
    // A run that made no commit on main may have left a result beside it.
    let beside = store.resolve(&format!("refs/memrev/attempts/{name}"))?;
    beside.ok_or_else(|| RevisionError::Unknown {
        name: name.to_owned(),
    })
}
