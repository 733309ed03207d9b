//! Names of records that Codex is known to write. A file without any of them
//! is no rollout.

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
