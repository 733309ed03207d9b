//! Why the ledger cannot be opened or did not do what was asked.

use std::path::PathBuf;

use crate::sys::fs::FsError;
use crate::sys::lock::LockError;

/// Why the ledger cannot be opened. The read path goes on without it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// A later version of this program made it.
    #[error(
        "the ledger `{path}` has schema {found}, and this version of memrev knows schemas up to {known}"
    )]
    NewerSchema {
        path: PathBuf,
        found: i64,
        known: i64,
    },
    /// An SQLite file of another program.
    #[error("`{path}` is a database of another program")]
    Foreign { path: PathBuf },
    /// Another process writes and did not finish in time.
    #[error("the ledger `{path}` is busy")]
    Busy { path: PathBuf },
    #[error("could not open the ledger `{path}`")]
    Sqlite {
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error("could not open the ledger")]
    Lock(#[from] LockError),
    #[error("could not open the ledger")]
    Fs(#[from] FsError),
}

/// Why a call did not do what was asked. Nothing was changed.
///
/// Callers branch on `Lost`; the others are reported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LedgerError {
    /// Our token is stale: the lease ran out and the job changed hands, or
    /// the database file is another one now.
    #[error("the lease on `{job}` ran out and another process took it")]
    Lost { job: String },
    /// The database file was deleted or replaced while we had it open: what
    /// it granted counts no more. Open it again.
    #[error("could not {attempt}: the ledger was deleted or replaced meanwhile")]
    Replaced { attempt: &'static str },
    /// Another process writes and did not finish in time.
    #[error("could not {attempt}: the ledger is busy")]
    Busy { attempt: &'static str },
    /// The file is damaged; the next open sets it aside.
    #[error("could not {attempt}: the ledger `{path}` is damaged and will be rebuilt")]
    Damaged {
        attempt: &'static str,
        path: PathBuf,
    },
    #[error("could not {attempt}")]
    Sqlite {
        attempt: &'static str,
        source: rusqlite::Error,
    },
}

impl LedgerError {
    /// The right to go on is gone: drop or keep aside what was done.
    pub(crate) const fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::Replaced { .. })
    }

    /// Somebody else is at it: exit code 3, try later.
    pub(crate) const fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. }) || self.is_lost()
    }
}
