//! What people took out or put in other words, in both files.

use super::story::{Folder, both, passes};
use crate::domain::version::MemoryVersion;
use crate::model::offline::consolidate::consolidate;

const RECAP: &str = "@@ recap a p/x 2026-12-01\n# widget2 in folder2\n## Task 1: widget2 in folder2\nOutcome: success\n\
    Keywords: widget2 in folder2, other word\nReusable knowledge:\n- the dev server of x listens on port 8080\n\
    @@ recap b p/x 2026-12-02\n# second\n## Task 1: write the changelog of spring\nKeywords: alpha\n";

const HELD: &str = "@@ withheld\nwidget2 in folder2\n";

#[test]
fn a_reset_brings_back_nothing_that_is_withheld() {
    for version in MemoryVersion::ALL {
        let (mut folder, _) = passes(version, RECAP);
        let old = (folder.summary.clone(), folder.handbook.clone());
        for is_after_reset in [false, true] {
            if is_after_reset {
                (folder.summary, folder.handbook) = old.clone();
            }
            let output = folder.pass(&format!("{RECAP}{HELD}"));
            let text = both(&output);
            assert!(!text.contains("widget2"), "{text}");
            assert!(!text.contains("000a.md"), "{text}");
            assert!(text.contains("write the changelog of spring") || text.contains("second"));
        }
    }
}

#[test]
fn another_workers_task_and_keywords_go_too_and_a_persons_stay() {
    let head = "# Task Group: x\n\nscope: s\napplies_to: cwd=/w/x; reuse_rule=r\n\n## Task 1: widget2 in folder2, success\n\n\
        ### rollout_summary_files\n\n- rollout_summaries/2026-12-01T10-00-00-000a.md (thread_id=thread-1a)\n\n### keywords\n\n- k\n\n\
        ## Task 2: spring cleaning of all changelogs, success\n\n### rollout_summary_files\n\n\
        - rollout_summaries/2026-12-02T10-00-00-000b.md (thread_id=thread-1b)\n\n### keywords\n\n- widget2 in folder2, spring\n";
    let (mut folder, _) = passes(MemoryVersion::V1, RECAP);
    folder.handbook = Some(head.to_owned());
    let output = folder.pass(&format!("{RECAP}{HELD}"));
    let text = output.handbook.unwrap();
    assert!(!text.as_str().contains("widget2"), "{text}");
    assert!(!text.as_str().contains("000a.md"), "{text}");
    assert!(text.as_str().contains("- spring\n"), "{text}");

    let (mut folder, _) = passes(MemoryVersion::V1, RECAP);
    folder.handbook = Some(head.to_owned());
    let person = "@@ person MEMORY.md\nTask 1: widget2 in folder2, success\n";
    let output = folder.pass(&format!("{RECAP}{HELD}{person}"));
    let text = output.handbook.unwrap();
    assert!(
        text.as_str()
            .contains("## Task 1: widget2 in folder2, success"),
        "{text}"
    );
}

const FORMAT: &str = "@@ recap a p/x 2026-12-01\n## Task 1: one\nPreference signals:\n\
    - always: \"always run cargo fmt before you commit\"\n";

#[track_caller]
fn reword(folder: &mut Folder, in_summary: bool, held: bool) -> String {
    let old = "\"always run cargo fmt before you commit\"";
    let new = "always run cargo fmt and clippy before each push";
    let (text, file) = if in_summary {
        (&mut folder.summary, "memory_summary.md")
    } else {
        (&mut folder.handbook, "MEMORY.md")
    };
    let changed = text
        .as_ref()
        .unwrap()
        .replace(old, new)
        .replace(" (in x)", "");
    assert!(changed.contains(new));
    *text = Some(changed);
    let held = if held {
        format!("@@ withheld\n{old}\n")
    } else {
        String::new()
    };
    let output = folder.pass(&format!("{FORMAT}@@ person {file}\n{new}\n{held}"));
    both(&output)
}

#[test]
fn a_reworded_preference_is_in_both_files() {
    let new = "always run cargo fmt and clippy before each push";
    for in_summary in [true, false] {
        let (mut folder, _) = passes(MemoryVersion::V1, FORMAT);
        let text = reword(&mut folder, in_summary, true);
        assert_eq!(text.matches(new).count(), 2, "{text}");
        assert!(!text.contains("before you commit"), "{text}");
        // Not withheld: nothing vanishes.
        let (mut folder, _) = passes(MemoryVersion::V1, FORMAT);
        let text = reword(&mut folder, in_summary, false);
        assert!(text.contains(new) && text.contains("cargo fmt"), "{text}");
    }
}

#[test]
fn another_workers_line_takes_a_persons_rewording() {
    let (mut folder, _) = passes(MemoryVersion::V1, FORMAT);
    let foreign = "- Formats with cargo before each commit of work.";
    folder.handbook = folder
        .handbook
        .map(|text| text.replace("- \"always run cargo fmt before you commit\"", foreign));
    folder.summary = folder.summary.map(|text| {
        text.replace(
            "## General Tips\n",
            "## General Tips\n\n- Formats with cargo before each push of work.\n",
        )
    });
    let output = folder.pass(&format!(
        "{FORMAT}@@ person memory_summary.md\nFormats with cargo before each push of work.\n\
         @@ withheld\nFormats with cargo before each commit of work.\n"
    ));
    let handbook = output.handbook.unwrap();
    assert!(
        handbook
            .as_str()
            .contains("- Formats with cargo before each push of work. [Task 1]\n"),
        "{handbook}"
    );
}

#[test]
fn a_fact_that_a_person_moved_stays_where_it_is_now() {
    let recap = "@@ recap a p/x 2026-12-01\n## Task 1: one\nReusable knowledge:\n- the staging server is in Oslo these days\n";
    let fact = "the staging server is in Oslo these days";
    let (mut folder, _) = passes(MemoryVersion::V1, recap);
    folder.handbook = folder
        .handbook
        .map(|text| text.replace(&format!("- {fact} [Task 1]\n"), ""));
    folder.summary = folder.summary.map(|text| {
        text.replace(
            "## General Tips\n",
            &format!("## General Tips\n\n- {fact}\n"),
        )
    });
    for _ in 0..2 {
        let output = folder.pass(&format!(
            "{recap}@@ person memory_summary.md\n{fact}\n@@ withheld\n{fact}\n"
        ));
        assert!(
            output.summary.as_str().contains(&format!("\n- {fact}\n")),
            "{}",
            output.summary
        );
    }
}

#[test]
fn a_quoted_preference_goes_with_its_only_recap() {
    let other = "@@ recap b p/x 2026-12-02\n## Task 1: another thing\n";
    for version in MemoryVersion::ALL {
        for knows_old in [true, false] {
            let (mut folder, _) = passes(version, &format!("{FORMAT}{other}"));
            let mut inputs = folder.inputs(other);
            if !knows_old {
                inputs.removed_recaps.clear();
            }
            let output = consolidate(&inputs);
            folder.take(&inputs, &output);
            assert!(!both(&output).contains("cargo fmt"), "{}", both(&output));
            // A person's quotation is theirs.
            folder.summary = folder.summary.map(|text| {
                text.replace(
                    "## User preferences\n",
                    "## User preferences\n\n- \"mine\" (in x)\n",
                )
            });
            let output = folder.pass(&format!(
                "{other}@@ person memory_summary.md\n\"mine\" (in x)\n"
            ));
            assert!(
                output.summary.as_str().contains("- \"mine\" (in x)"),
                "{}",
                output.summary
            );
        }
    }
}

#[test]
fn a_task_whose_title_is_withheld_goes_by_what_else_was_asked_for() {
    let recap = "@@ recap a p/x 2026-12-01\n## Task 1: always use tabs in the ledger\nUser requests:\n\
        - \"always use tabs in the ledger\" (line 3)\n- \"write the report of spring\" (line 9)\n\
        Reusable knowledge:\n- the dev server of x listens on port 8080\n";
    for version in MemoryVersion::ALL {
        let (mut folder, _) = passes(version, recap);
        let held = "@@ withheld\nalways use tabs in the ledger\n";
        for _ in 0..2 {
            let output = folder.pass(&format!("{recap}{held}"));
            let text = both(&output);
            assert!(!text.contains("use tabs"), "{text}");
            if version == MemoryVersion::V1 {
                assert!(text.contains("## Task 1: "), "{text}");
                assert!(text.contains("report of spring"), "{text}");
                assert!(text.contains("port 8080"), "{text}");
            }
        }
    }
}
