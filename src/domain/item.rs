//! One record of a session in our own model.

use crate::domain::text::Raw;
use crate::domain::time::Timestamp;

/// Who an item speaks for. The order is the fill order of the version 2
/// input: the first tier is the last to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Provenance {
    /// What the person typed, said, or chose when asked. Nothing else.
    Human,
    /// The assistant's answer to the person.
    AssistantFinal,
    /// Another agent: a sub-agent's words, an inter-agent message.
    OtherAgent,
    /// The assistant thinking aloud between tool calls.
    AssistantCommentary,
    /// What the harness put there: environment, IDE header, hook output,
    /// compaction summaries, injected memory.
    HarnessContext,
    /// Tool calls and their outputs.
    Tool,
}

impl Provenance {
    pub(crate) const ALL: [Self; 6] = [
        Self::Human,
        Self::AssistantFinal,
        Self::OtherAgent,
        Self::AssistantCommentary,
        Self::HarnessContext,
        Self::Tool,
    ];

    /// The label in the version 2 input (reference 5.7).
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Human => "human user",
            Self::AssistantFinal => "assistant final",
            Self::OtherAgent => "other agent",
            Self::AssistantCommentary => "assistant commentary",
            Self::HarnessContext => "harness context",
            Self::Tool => "tool",
        }
    }
}

/// Whether an item's content comes from this machine and its person, or from
/// outside (web, MCP, fetched files). External content never becomes a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Trust {
    External,
    Own,
}

impl Trust {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Own => "own",
        }
    }
}

/// Where an item stands, so that evidence can be opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    /// 0 is the session's own rollout; from 1 on its sub-agents' transcripts,
    /// in the order of their paths.
    pub(crate) part: u16,
    /// 1-based line of the rollout; for a document format the 1-based
    /// index of the item.
    pub(crate) line_number: u32,
}

/// What kind of thing an item is, with what the offline rules need to know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ItemKind<T = Raw> {
    /// Words: of a person, an assistant, an agent or the harness.
    Message,
    /// A tool was called. `text` of the item is what it was called with: the
    /// command line for shells, the patch for edits, the JSON otherwise.
    ToolCall {
        call_id: String,
        tool: String,
        /// Files that the call writes, where its arguments say so.
        files: Vec<T>,
    },
    /// What a tool gave back.
    ToolOutput {
        call_id: String,
        /// `Some(false)` when exit code, error flag or status says failure.
        succeeded: Option<bool>,
    },
}

/// One record of a session, text included.
///
/// The text is [`Raw`] from the reader and `Redacted` afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item<T = Raw> {
    pub(crate) place: Place,
    /// `None` in generations that have no time on the record.
    pub(crate) at: Option<Timestamp>,
    pub(crate) provenance: Provenance,
    pub(crate) trust: Trust,
    pub(crate) kind: ItemKind<T>,
    pub(crate) text: T,
    /// Images and audio dropped from `text`.
    pub(crate) media_count: u32,
}
