//! Recorded answers as tests of the stages use them.

use std::path::Path;

use super::Replay;
use crate::domain::id::ThreadId;
use crate::domain::session::Agent;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::model::{
    ConsolidationRequest, ExtractionRequest, Model as _, ModelError, Reply, SessionFacts,
    Unmetered, WorkerReport,
};
use crate::sys::fs::{make_folders, read_text_if_any, replace};
use crate::text::redact::redact_str;

#[test]
fn answers_come_in_order_by_session_and_the_last_repeats() {
    let folder = tempfile::tempdir().unwrap();
    put(
        folder.path(),
        "extract/a.json",
        r#"[{"text": "one"}, {"reply": {"k": 2}}]"#,
    );
    put(
        folder.path(),
        "extract/any.json",
        r#"{"text": "other", "tokens": [7, 8]}"#,
    );
    let told = |id| {
        extract(folder.path(), id)
            .unwrap()
            .text
            .unredacted()
            .to_owned()
    };
    assert_eq!(told("a"), "one");
    assert_eq!(told("b"), "other");
    assert_eq!(told("a"), r#"{"k":2}"#);
    assert_eq!(told("a"), r#"{"k":2}"#);
    assert_eq!(extract(folder.path(), "b").unwrap().tokens.input, 7);
    let log = read_text_if_any(&folder.path().join("requests.jsonl"), 9_999)
        .unwrap()
        .unwrap();
    assert_eq!(log.lines().count(), 5);
    assert!(log.contains("\"messages\":[\"the prompt\"]"), "{log}");
}

#[test]
fn failures_are_told_as_a_back_end_would() {
    let folder = tempfile::tempdir().unwrap();
    put(
        folder.path(),
        "extract/any.json",
        r#"[{"fail": "rate_limited", "retry_after_seconds": 30}, {"fail": "unreachable"}]"#,
    );
    let error = extract(folder.path(), "a").unwrap_err();
    assert_eq!(error.to_string(), "the model asks for patience for 30 s");
    let error = extract(folder.path(), "a").unwrap_err();
    assert!(matches!(error, ModelError::Unreachable { .. }), "{error}");
    let error = extract(&folder.path().join("none"), "a").unwrap_err();
    assert!(matches!(error, ModelError::Files(_)), "{error}");
}

#[test]
fn edits_are_applied_to_staging_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let staging = folder.path().join("staging");
    put(&staging, "MEMORY.md", "one two");
    put(&staging, "old.md", "old");
    put(
        folder.path(),
        "consolidate/v1.json",
        r#"{"edits": [
            {"append": "MEMORY.md", "text": " three"},
            {"replace": "MEMORY.md", "old": "one", "text": "1"},
            {"write": "skills/a/SKILL.md", "text": "ab", "times": 3},
            {"move": "old.md", "to": "new/new.md"},
            {"delete": "nothing.md"}
        ], "finish": true, "words": "done", "retired": [{"entry": "e", "reason": "r"}]}"#,
    );
    let report = consolidate(folder.path(), &staging, true).unwrap();
    assert!(report.finished);
    assert_eq!(report.words.as_str(), "done");
    assert_eq!(report.retired[0].reason, "r");
    for (path, expected) in [
        ("MEMORY.md", "1 two three"),
        ("skills/a/SKILL.md", "ababab"),
        ("new/new.md", "old"),
    ] {
        let text = read_text_if_any(&staging.join(path), 99).unwrap();
        assert_eq!(text.as_deref(), Some(expected), "{path}");
    }
}

#[test]
fn a_lost_lease_stops_the_worker() {
    let folder = tempfile::tempdir().unwrap();
    put(
        folder.path(),
        "consolidate/any.json",
        r#"{"edits": [{"write": "a", "text": "b"}]}"#,
    );
    let error = consolidate(folder.path(), folder.path(), false).unwrap_err();
    assert!(matches!(error, ModelError::Cancelled), "{error}");
    assert!(!folder.path().join("a").exists());
}

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    make_folders(path.parent().unwrap()).unwrap();
    replace(&path, text.as_bytes()).unwrap();
}

fn extract(folder: &Path, thread_id: &str) -> Result<Reply, ModelError> {
    let facts = SessionFacts {
        agent: Agent::Codex,
        thread_id: ThreadId::parse(thread_id).unwrap(),
        rollout_path: Redacted::default(),
        cwd: None,
        project: None,
        git_branch: None,
        started_at: None,
        updated_at: Timestamp::default(),
        uses_memory: false,
    };
    Replay::open(folder)?.extract(&ExtractionRequest {
        version: MemoryVersion::V1,
        facts: &facts,
        items: &[],
        schema: "{}",
        wants_longer_reply: false,
        meter: &Unmetered { is_wanted: true },
        render: &|| vec![redact_str("the prompt")],
    })
}

fn consolidate(folder: &Path, staging: &Path, is_wanted: bool) -> Result<WorkerReport, ModelError> {
    Replay::open(folder)?.consolidate(&ConsolidationRequest {
        version: MemoryVersion::V1,
        staging,
        prompt: redact_str("the prompt"),
        changes: &[],
        withheld: &[],
        person_entries: &[],
        rewritings: &[],
        summary_bytes_max: 8_000,
        diagnostics: None,
        meter: &Unmetered { is_wanted },
    })
}
