//! What extraction wrote about one session.

use crate::domain::id::ThreadId;
use crate::domain::item::Trust;
use crate::domain::session::Agent;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;

/// The header of a recap file (DESIGN 5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecapHeader {
    pub(crate) thread_id: ThreadId,
    /// `None` in adopted recaps of unknown origin.
    pub(crate) agent: Option<Agent>,
    /// Newest record of the session at extraction, whole seconds.
    pub(crate) updated_at: Timestamp,
    /// Only in `extractions/`; a memory folder's copy has none.
    pub(crate) extracted_at: Option<Timestamp>,
    pub(crate) rollout_path: Redacted,
    pub(crate) cwd: Option<Redacted>,
    pub(crate) project: Option<Redacted>,
    pub(crate) git_branch: Option<Redacted>,
    pub(crate) model: Option<Redacted>,
    /// Name and hash of the prompt, `extract-v1@3f2a…`.
    pub(crate) prompt: Option<Redacted>,
    /// Lowest trust among what the recap rests on.
    pub(crate) trust: Option<Trust>,
    pub(crate) items_read: Option<u64>,
    /// A person or tool put the recap into a memory folder then.
    pub(crate) adopted_at: Option<Timestamp>,
    /// A person asked for this session then.
    pub(crate) asked_at: Option<Timestamp>,
    /// Human slug in the file name, after the stamp and hash.
    pub(crate) slug: Option<String>,
    /// V1, `extractions/` only.
    pub(crate) raw_memory: Option<Redacted>,
}

/// Before words that a recap gave out as a person's and that nobody said so:
/// they are the model's.
pub(crate) const PARAPHRASE_MARK: &str = "[paraphrase]";

/// A recap: header and Markdown. An empty body is the remembered no-op.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recap {
    pub(crate) header: RecapHeader,
    pub(crate) body: Redacted,
}

impl Recap {
    /// Extraction found nothing worth keeping; never enters a memory folder.
    pub(crate) fn is_no_op(&self) -> bool {
        let raw_memory_is_blank =
            (self.header.raw_memory.as_ref()).is_none_or(|text| text.as_str().trim().is_empty());
        self.body.as_str().trim().is_empty() && raw_memory_is_blank
    }
}
