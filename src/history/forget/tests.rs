//! What goes, what is trimmed, what stays: one memory, several targets.

use std::collections::BTreeMap;

use super::{Files, Forgotten, Target, plan};
use crate::domain::id::ThreadId;
use crate::domain::path::TreePath;
use crate::domain::version::MemoryVersion;
use crate::text::phrase::Phrase;
use crate::validate;

const A: &str = "rollout_summaries/2026-03-06T09-00-20-aaaa-export.md";
const B: &str = "rollout_summaries/2026-03-08T14-00-20-bbbb-changelog.md";
const NOTE: &str = "extensions/ad_hoc/notes/2026-03-09T10-00-00-uv.md";

const SUMMARY: &str = "\
v1

## User Profile

- Sessions in memory: 2.

## User preferences

- \"From now on always run the whole test suite.\" (in tidebook)
- \"Changelog entries are one line.\" (in tidebook)
- Use uv instead of pip for installs. [ad-hoc note]
- Ask Grace about the ledger.

## General Tips

## What's in Memory

### tidebook

#### 2026-03-08

- Add a changelog entry: CHANGELOG.md, entry
  - desc: success

#### 2026-03-06

- The nightly export writes an empty CSV: export.py
  - desc: success
";

const HANDBOOK: &str = "\
# Task Group: tidebook

scope: sessions in tidebook
applies_to: cwd=/t; reuse_rule=this project

## Task 1: The nightly export writes an empty CSV, success

### rollout_summary_files

- rollout_summaries/2026-03-06T09-00-20-aaaa-export.md (thread_id=a1)

### keywords

- export.py, nightly

## Task 2: Add a changelog entry, success

### rollout_summary_files

- rollout_summaries/2026-03-08T14-00-20-bbbb-changelog.md (thread_id=b2)

### keywords

- CHANGELOG.md

## User preferences

- \"From now on always run the whole test suite.\" [Task 1]
- \"Changelog entries are one line.\" [Task 2]
- keep fixes small [Task 1][Task 2]

## Failures and how to do differently

- `pytest -q` failed, `python -m pytest -q` worked [Task 1]

# Task Group: notes

scope: what notes ask to remember
applies_to: cwd=any; reuse_rule=holds until a note changes it

## User preferences

- Use uv instead of pip for installs. (extensions/ad_hoc/notes/2026-03-09T10-00-00-uv.md) [ad-hoc note]
";

fn recap(id: &str, body: &str) -> String {
    format!(
        "---\nthread_id: {id}\nupdated_at: \"2026-03-06T09:03:13+00:00\"\nrollout_path: /r/{id}.jsonl\n---\n\n{body}\n"
    )
}

fn memory() -> Files {
    let a = "# Export\n\nPreference signals:\n- always: \"From now on always run the whole test suite.\" (line 15)\n- keep fixes small\n";
    let b = "# Changelog\n\nPreference signals:\n- always: \"Changelog entries are one line.\" (line 9)\n- keep fixes small\n";
    let raw = "# Raw Memories\n\nintro\n\n## Thread `a1`\nupdated_at: 2026-03-06T09:03:13+00:00\n\n- export fixed\n\n\
               ## Thread `b2`\nupdated_at: 2026-03-06T09:03:13+00:00\n\n- changelog entry\n\n";
    let files = [
        ("memory_summary.md", SUMMARY.to_owned()),
        ("MEMORY.md", HANDBOOK.to_owned()),
        ("raw_memories.md", raw.to_owned()),
        (A, recap("a1", a)),
        (B, recap("b2", b)),
        (NOTE, "Use uv instead of pip for installs.\n".to_owned()),
    ];
    let files = files.map(|(path, text)| (TreePath::parse(path).unwrap(), text));
    files.into_iter().collect()
}

fn after(files: &Files, forgotten: &Forgotten) -> BTreeMap<String, String> {
    let mut after = files.clone();
    for (path, new) in &forgotten.files {
        match new {
            Some(text) => after.insert(path.clone(), text.clone()),
            None => after.remove(path),
        };
    }
    let version = MemoryVersion::V1;
    let found = validate::check(&after, version, &validate::Facts::default());
    let errors = validate::errors_only(found);
    assert!(errors.is_empty(), "{errors:?}\n{after:?}");
    after
        .into_iter()
        .map(|(path, text)| (path.to_string(), text))
        .collect()
}

/// `gone` are words that no file has afterwards, `left` that some has.
#[track_caller]
fn check(target: &Target, gone: &[&str], left: &[&str]) -> (Forgotten, BTreeMap<String, String>) {
    let files = memory();
    let forgotten = plan(MemoryVersion::V1, &files, &[], target);
    let after = after(&files, &forgotten);
    let all = after.values().cloned().collect::<String>();
    for words in gone {
        assert!(!all.contains(words), "{words:?} is left in\n{all}");
    }
    for words in left {
        assert!(all.contains(words), "{words:?} is gone from\n{all}");
    }
    (forgotten, after)
}

#[test]
fn a_session_takes_along_what_only_it_supports() {
    let (forgotten, after) = check(
        &Target::Thread(ThreadId::parse("a1").unwrap()),
        &[
            "whole test suite",
            "nightly",
            "pytest",
            "a1",
            "#### 2026-03-06",
            "[Task 1]",
            "Failures",
        ],
        &[
            "Changelog entries are one line",
            "- keep fixes small [Task 2]",
            "Ask Grace about the ledger",
            "Use uv instead of pip",
            "### tidebook",
        ],
    );
    assert!(!after.contains_key(A) && after.contains_key(B));
    assert_eq!(forgotten.trimmed.len(), 1, "{forgotten:?}");
}

#[test]
fn the_last_sessions_of_a_group_take_the_group() {
    let mut files = memory();
    for id in ["a1", "b2"] {
        let target = Target::Thread(ThreadId::parse(id).unwrap());
        let forgotten = plan(MemoryVersion::V1, &files, &[], &target);
        for (path, new) in forgotten.files {
            match new {
                Some(text) => files.insert(path, text),
                None => files.remove(&path),
            };
        }
    }
    let text = |name: &str| &files[&TreePath::parse(name).unwrap()];
    let handbook = text("MEMORY.md");
    assert!(handbook.starts_with("# Task Group: notes\n"), "{handbook}");
    assert!(text("memory_summary.md").ends_with("## What's in Memory\n"));
    assert!(text("raw_memories.md").contains("No raw memories yet."));
}

#[test]
fn a_note_goes_with_its_lines() {
    let (_, after) = check(
        &Target::File(TreePath::parse(NOTE).unwrap()),
        &["uv instead", "[ad-hoc note]", "Task Group: notes"],
        &["whole test suite", "Changelog entries", "Ask Grace"],
    );
    assert!(!after.contains_key(NOTE));
}

#[test]
fn a_phrase_goes_from_entries_recaps_and_raw_memories() {
    let phrase = |words| Target::Phrase(Phrase::new(words).unwrap());
    let (forgotten, _) = check(
        &phrase("WHOLE test\nsuite"),
        &["whole test suite"],
        &["nightly export", "keep fixes small", "Changelog entries"],
    );
    assert_eq!((forgotten.entries.len(), forgotten.lines.len()), (2, 1));
    check(
        &phrase("changelog entry"),
        &["changelog entry"],
        &["nightly"],
    );
    let (forgotten, _) = check(&phrase("uv"), &["[ad-hoc note]"], &["Use uv"]);
    assert_eq!(
        forgotten.untouched.len(),
        1,
        "the note itself is a person's"
    );
    check(&phrase("tidebook"), &["tidebook"], &["keep fixes small"]);
    let (forgotten, _) = check(&phrase("submarine"), &[], &["nightly"]);
    assert!(forgotten.is_empty());
}
