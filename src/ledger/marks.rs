//! Session marks: what discovery found out last time, so that an idle pass
//! reads no transcript.
//!
//! A mark counts while the file at its path has the size and time it had.

use std::path::PathBuf;

use crate::domain::id::ThreadId;
use crate::domain::session::{Agent, MemoryMode, Source};
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;

/// What is remembered of one transcript file.
///
/// `T` is `Redacted` on the way in and `Raw` on the way out: text that comes
/// back from a disk has to pass redaction again before it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark<T = Redacted> {
    pub(crate) path: PathBuf,
    pub(crate) size_bytes: u64,
    /// The file's own time, to the millisecond.
    pub(crate) modified: Timestamp,
    pub(crate) agent: Agent,
    pub(crate) thread_id: ThreadId,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) updated_at: Timestamp,
    /// The name inside `Source::Other` is not kept.
    pub(crate) source: Source,
    /// What the transcript itself says.
    pub(crate) mode: MemoryMode,
    pub(crate) is_ours: bool,
    pub(crate) forked_from: Option<ThreadId>,
    pub(crate) cwd: Option<T>,
    pub(crate) project: Option<T>,
    pub(crate) git_branch: Option<T>,
}
