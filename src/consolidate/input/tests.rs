//! What a worker reads, byte for byte.

use super::{DIFF_BYTES_MAX, PromptFacts, prompt, raw_memories, workspace_diff};
use crate::consolidate::select::Candidate;
use crate::domain::path::TreePath;
use crate::domain::session::{MemoryMode, WORKER_MARK};
use crate::domain::version::MemoryVersion;
use crate::model::WorkerMode;
use crate::store::Store;
use crate::store::diff::{DiffSide, FileDiff, diff_file};
use crate::text::recap;
use crate::text::redact::redact_str;

#[test]
fn without_recaps_raw_memories_are_a_placeholder() {
    let expected = "# Raw Memories\n\nNo raw memories yet.\n";
    assert_eq!(raw_memories(&[]).as_str(), expected);
}

#[test]
fn raw_memories_are_one_block_per_session() {
    let text = raw_memories(&[
        candidate("a1", "### Task 1\n- fact\n\n"),
        candidate("b2", " "),
    ]);
    assert_eq!(
        text.as_str(),
        "# Raw Memories\n\n\
         One block per session, in ascending order of thread ids.\n\n\
         ## Thread `a1`\n\
         updated_at: 2025-12-01T05:33:44+00:00\n\
         cwd: /w\n\
         rollout_path: /r.jsonl\n\
         rollout_summary_file: a1.md\n\n\
         ### Task 1\n- fact\n\n"
    );
}

#[test]
fn the_diff_file_has_the_references_shape() {
    let diffs = [
        diff("MEMORY.md", Some("one\n"), Some("two\n")),
        diff("rollout_summaries/a.md", None, Some("new")),
    ];
    assert_eq!(
        workspace_diff(&diffs).as_str(),
        "# Memory Workspace Diff\n\n\
         Generated before this run from the last baseline. Read it first; do not edit it.\n\n\
         ## Status\n- M MEMORY.md\n- A rollout_summaries/a.md\n\n## Diff\n\n\
         ```diff\n\
         diff --git a/MEMORY.md b/MEMORY.md\n--- a/MEMORY.md\n+++ b/MEMORY.md\n@@ -1 +1 @@\n-one\n+two\n\
         diff --git a/rollout_summaries/a.md b/rollout_summaries/a.md\nnew file mode 100644\n\
         --- /dev/null\n+++ b/rollout_summaries/a.md\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n\
         ```\n"
    );
}

#[test]
fn an_empty_diff_says_none() {
    let text = workspace_diff(&[]);
    assert!(text.as_str().contains("## Status\n- none\n\n## Diff\n"));
}

#[test]
fn the_diff_is_cut_at_four_mebibytes_between_characters() {
    let big = "é行\n".repeat(1_000_000);
    let text = workspace_diff(&[diff("MEMORY.md", None, Some(&big))]);
    let text = text.as_str();
    assert!(text.ends_with("[workspace diff truncated at 4194304 bytes]\n```\n"));
    assert!(text.len() < DIFF_BYTES_MAX + 1_000);
    assert!(!text.contains('\u{fffd}'));
}

#[test]
fn a_fence_inside_the_diff_does_not_end_it() {
    let text = workspace_diff(&[diff("MEMORY.md", None, Some("```\ncode\n```\n"))]);
    assert!(text.as_str().contains("\n````diff\n"));
    assert!(text.as_str().ends_with("\n````\n"));
}

#[test]
fn secrets_do_not_reach_the_diff() {
    let secret = format!("{}{}", "ghp_", "a1B2".repeat(9));
    let text = workspace_diff(&[diff("MEMORY.md", Some(&secret), None)]);
    assert!(!text.as_str().contains(&secret));
}

#[test]
fn prompts_render_for_both_versions_and_modes() {
    for version in MemoryVersion::ALL {
        for mode in [WorkerMode::Init, WorkerMode::Incremental] {
            let text = render(version, mode, &["MEMORY.md"], None);
            assert!(text.starts_with(WORKER_MARK));
            assert!(text.contains("/staging/run"));
            assert!(text.contains("phase2_workspace_diff.md"));
            assert!(text.contains("8000 bytes"));
            assert!(text.contains("finish"));
            assert!(text.contains(&format!("Mode: {mode}")));
            assert!(!text.contains("Extensions"), "there are none");
        }
    }
}

#[test]
fn extensions_are_named_where_there_are_some() {
    let paths = ["extensions/screen/instructions.md", "MEMORY.md"];
    let text = render(MemoryVersion::V2, WorkerMode::Incremental, &paths, None);
    assert!(text.contains("\nextensions/screen/instructions.md\n"));
    assert!(text.contains("[ad-hoc note]"));
}

#[test]
fn a_persons_own_template_gets_the_mark_all_the_same() {
    let template = Some("Mine: {{ staging }}");
    let text = render(MemoryVersion::V1, WorkerMode::Init, &[], template);
    assert_eq!(text, format!("{WORKER_MARK}\n\nMine: /staging/run"));
}

fn render(
    version: MemoryVersion,
    mode: WorkerMode,
    paths: &[&str],
    template: Option<&str>,
) -> String {
    let paths: Vec<TreePath> = paths
        .iter()
        .map(|path| TreePath::parse(path).unwrap())
        .collect();
    let facts = PromptFacts {
        version,
        mode,
        resets_summary: false,
        staging: "/staging/run",
        paths: &paths,
        orders: &[],
        person_entries: &[],
        summary_bytes_max: 8_000,
        template,
    };
    prompt(&facts).unwrap().text.into_string()
}

fn diff(name: &str, old: Option<&str>, new: Option<&str>) -> FileDiff {
    let path = TreePath::parse(name).unwrap();
    let old = old.map(as_side);
    let new = new.map(as_side);
    diff_file(&path, old, new).unwrap()
}

fn as_side(text: &str) -> DiffSide<'_> {
    DiffSide {
        content: text.as_bytes(),
        executable: false,
    }
}

fn candidate(id: &str, raw_memory: &str) -> Candidate {
    let name = format!("{id}.md");
    let text = format!(
        "thread_id: {id}\nupdated_at: 2025-12-01T05:33:44+00:00\nrollout_path: /r.jsonl\ncwd: /w\n\nbody\n"
    );
    let mut recap = recap::parse(&name, &text).unwrap();
    recap.header.raw_memory = Some(redact_str(raw_memory));
    let copy = recap::print_memory_copy(&recap);
    Candidate {
        path: TreePath::parse(&format!("rollout_summaries/{name}")).unwrap(),
        blob: Store::blob_id(copy.as_str().as_bytes()),
        copy,
        usage_count: 0,
        last_used: None,
        mode: MemoryMode::Enabled,
        recap,
    }
}
