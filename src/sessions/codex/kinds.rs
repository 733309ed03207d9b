//! Names of records that Codex is known to write. A file without any of them
//! is no rollout.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// Made once: a search in 160 bytes takes less time than getting ready for it.
static TYPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"type\":"));
static PAYLOAD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"payload\":{\"type\":"));

/// Envelope and payload of a line of which nothing but its time is read, by its
/// first bytes. A guess that saves work: what it does not see is recognised
/// later.
pub(super) fn unread_kinds(json: &str) -> Option<(&str, &str)> {
    const LOOKED_AT_BYTES: usize = 160;
    const ENVELOPES: [&str; 4] = [
        "token_usage_record",
        "turn_context",
        "world_state",
        "compacted",
    ];
    const PAYLOADS: [&str; 7] = [
        "token_count",
        "reasoning",
        "agent_reasoning",
        "task_complete",
        "ghost_snapshot",
        "thread_settings_applied",
        "additional_tools",
    ];
    let head = &json[..json.floor_char_boundary(LOOKED_AT_BYTES)];
    let from_kind = &head[TYPE.find(head.as_bytes())? + TYPE.needle().len()..];
    let (envelope, behind) = from_kind.strip_prefix('"')?.split_once('"')?;
    if ENVELOPES.contains(&envelope) {
        return Some((envelope, ""));
    }
    let payload = &behind[PAYLOAD.find(behind.as_bytes())? + PAYLOAD.needle().len()..];
    let (inner, _) = payload.strip_prefix('"')?.split_once('"')?;
    PAYLOADS.contains(&inner).then_some((envelope, inner))
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
