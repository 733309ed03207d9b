//! `modes.yaml`: sessions that were set disabled, polluted or enabled again,
//! by whom and when.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::domain::id::ThreadId;
use crate::domain::session::MemoryMode;
use crate::domain::time::Timestamp;
use crate::sys::fs::FsError;
use crate::sys::lock::LockError;

/// The choices of a home, by session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Modes {
    entries: BTreeMap<ThreadId, ModeEntry>,
}

/// One session's mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModeEntry {
    pub(crate) mode: MemoryMode,
    pub(crate) by: SetBy,
    pub(crate) at: Option<Timestamp>,
}

/// Who set a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SetBy {
    Person,
    /// The session began while `generate_memories` was false.
    GenerateMemories,
    /// External content reached it under `disable_on_external_context`.
    ExternalContext,
}

/// Why `modes.yaml` cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModesError {
    #[error("`{path}`: {problem}")]
    Malformed { path: PathBuf, problem: String },
    #[error(transparent)]
    Fs(#[from] FsError),
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl Modes {
    /// The mode that counts: the entry here, else what the transcript says.
    pub(crate) fn effective(&self, thread_id: &ThreadId, own: MemoryMode) -> MemoryMode {
        self.entries.get(thread_id).map_or(own, |entry| entry.mode)
    }

    pub(crate) fn get(&self, thread_id: &ThreadId) -> Option<&ModeEntry> {
        self.entries.get(thread_id)
    }

    pub(crate) fn set(&mut self, thread_id: ThreadId, entry: ModeEntry) {
        self.entries.insert(thread_id, entry);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ThreadId, &ModeEntry)> {
        self.entries.iter()
    }
}

/// Reads `modes.yaml` of a home; a missing one is empty.
pub(crate) fn load(_home: &Path) -> Result<Modes, ModesError> {
    todo!()
}

/// Reads, changes and writes `modes.yaml` under its lock, so that a person's
/// choice and a pass's do not overwrite each other.
pub(crate) fn update(_home: &Path, _change: impl FnOnce(&mut Modes)) -> Result<Modes, ModesError> {
    todo!()
}
