//! Names of records that Codex is known to write. A file without any of them
//! is no rollout.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// Made once: a search in 160 bytes takes less time than getting ready for it.
static TYPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"type\":"));
static PAYLOAD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"payload\":"));

/// Whether a line is of a kind of which nothing is read, by its first bytes.
/// A guess that saves work: what it lets through is recognised later.
pub(super) fn is_surely_unread(json: &str) -> bool {
    const LOOKED_AT_BYTES: usize = 160;
    const ENVELOPES: [&str; 4] = [
        "\"type\":\"token_usage_record\",",
        "\"type\":\"turn_context\",",
        "\"type\":\"world_state\",",
        "\"type\":\"compacted\",",
    ];
    const PAYLOADS: [&str; 7] = [
        "\"payload\":{\"type\":\"token_count\",",
        "\"payload\":{\"type\":\"reasoning\",",
        "\"payload\":{\"type\":\"agent_reasoning\",",
        "\"payload\":{\"type\":\"task_complete\",",
        "\"payload\":{\"type\":\"ghost_snapshot\",",
        "\"payload\":{\"type\":\"thread_settings_applied\",",
        "\"payload\":{\"type\":\"additional_tools\",",
    ];
    let head = &json.as_bytes()[..json.len().min(LOOKED_AT_BYTES)];
    let Some(at) = TYPE.find(head) else {
        return false;
    };
    let from_kind = &head[at..];
    let begins = |text: &[u8], kind: &str| text.starts_with(kind.as_bytes());
    ENVELOPES.iter().any(|kind| begins(from_kind, kind))
        || PAYLOAD
            .find(from_kind)
            .is_some_and(|at| PAYLOADS.iter().any(|kind| begins(&from_kind[at..], kind)))
}

pub(super) fn is_known_envelope(kind: &str) -> bool {
    const KINDS: [&str; 5] = [
        "turn_context",
        "compacted",
        "world_state",
        "token_usage_record",
        "inter_agent_communication_metadata",
    ];
    KINDS.contains(&kind)
}

pub(super) fn is_known_item(kind: &str) -> bool {
    const KINDS: [&str; 14] = [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "web_search_call",
        "tool_search_call",
        "tool_search_output",
        "agent_message",
        "ghost_snapshot",
        "image_generation_call",
        "additional_tools",
    ];
    KINDS.contains(&kind)
}

pub(super) fn is_known_event(kind: &str) -> bool {
    const KINDS: [&str; 12] = [
        "user_message",
        "agent_message",
        "agent_reasoning",
        "token_count",
        "task_started",
        "task_complete",
        "turn_aborted",
        "item_completed",
        "thread_rolled_back",
        "context_compacted",
        "exec_command_end",
        "patch_apply_end",
    ];
    KINDS.contains(&kind)
}
