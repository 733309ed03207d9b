//! What a transcript says of its session, whichever agent wrote it.

use crate::domain::id::ThreadId;
use crate::domain::item::Item;
use crate::domain::session::{Citation, MemoryMode, ReadReport, Source};
use crate::domain::time::Timestamp;

/// Everything that a reader found.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) thread_id: Option<ThreadId>,
    /// The agent's id of the first record, where records have ids.
    pub(super) first_record: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) branch: Option<String>,
    pub(super) repository_url: Option<String>,
    pub(super) source: Source,
    pub(super) mode: MemoryMode,
    pub(super) forked_from: Option<ThreadId>,
    pub(super) started_at: Option<Timestamp>,
    /// Of the newest record, copied and unknown ones included, so that a look
    /// at the end of the file finds the same.
    pub(super) updated_at: Option<Timestamp>,
    pub(super) is_ours: bool,
    pub(super) items: Vec<Item>,
    /// Items given up because the session is too large.
    pub(super) dropped: u64,
    pub(super) has_external: bool,
    pub(super) citations: Vec<Citation>,
    pub(super) report: ReadReport,
}
