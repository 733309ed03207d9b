//! What is read of a line of a Claude Code transcript.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::sessions::wire::{Content, Flag, List, Object, Text};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Row<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) subtype: Text<'a>,
    #[serde(borrow)]
    pub(super) uuid: Text<'a>,
    #[serde(borrow)]
    pub(super) parent_uuid: Text<'a>,
    #[serde(borrow)]
    pub(super) logical_parent_uuid: Text<'a>,
    #[serde(borrow)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow)]
    pub(super) timestamp: Text<'a>,
    #[serde(borrow)]
    pub(super) cwd: Text<'a>,
    #[serde(borrow)]
    pub(super) git_branch: Text<'a>,
    #[serde(borrow)]
    pub(super) entrypoint: Text<'a>,
    #[serde(borrow)]
    pub(super) agent_id: Text<'a>,
    pub(super) is_sidechain: Flag,
    pub(super) is_meta: Flag,
    pub(super) is_compact_summary: Flag,
    pub(super) is_visible_in_transcript_only: Flag,
    pub(super) is_api_error_message: Flag,
    #[serde(borrow)]
    pub(super) message: Object<Message<'a>>,
    #[serde(borrow)]
    pub(super) tool_use_result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) attachment: Object<Attachment<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) role: Text<'a>,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    #[serde(borrow)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Content<'a>,
}

/// Something the program put beside the conversation.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Attachment<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    /// What a person typed while the assistant was at work.
    #[serde(borrow)]
    pub(super) prompt: Content<'a>,
    #[serde(borrow, rename = "commandMode")]
    pub(super) command_mode: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Content<'a>,
}

/// `toolUseResult` of a question to the person.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Answered<'a> {
    #[serde(borrow)]
    pub(super) questions: List<Object<Question<'a>>>,
    pub(super) answers: serde_json::Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Question<'a> {
    #[serde(borrow)]
    pub(super) question: Text<'a>,
}

/// Only what names a record: for copies and branches.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RowName<'a> {
    #[serde(borrow)]
    pub(super) uuid: Text<'a>,
}
