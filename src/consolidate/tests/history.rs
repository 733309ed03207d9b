//! What a person does with Git or an editor, before and during a run.

use std::path::PathBuf;

use super::support::{Sandbox, finished, good_work, work_without_own_line, write_memory};
use crate::consolidate::Outcome;
use crate::domain::path::TreePath;
use crate::domain::version::MemoryVersion;
use crate::ledger::JobError;

#[test]
fn an_edit_made_while_the_worker_works_is_in_the_head() {
    let mut sandbox = baseline();
    sandbox.extract(2, 1, "tests want a database");
    let file = sandbox.folder().join("MEMORY.md");
    sandbox.script(move |request| {
        good_work(request)?;
        edit(
            &file,
            "## User preferences\n\n",
            "## User preferences\n\n- Never push on Fridays.\n",
        );
        finished()
    });
    sandbox.run_done();
    let text = sandbox.git(&["show", "HEAD:MEMORY.md"]);
    assert!(text.contains("Never push on Fridays"));
    assert!(text.contains("database"));
    assert_eq!(sandbox.git(&["log", "-2", "--format=%an"]), "memrev\nAda");
    sandbox.script(good_work);
    sandbox.run_idle();
}

#[test]
fn where_both_changed_the_same_line_the_person_wins_and_the_attempt_waits() {
    let mut sandbox = baseline();
    sandbox.extract(1, 2, "the build needs node 24");
    let file = sandbox.folder().join("MEMORY.md");
    sandbox.script(move |request| {
        good_work(request)?;
        edit(
            &file,
            "- the build needs node 22",
            "- the build needs node 20, really",
        );
        finished()
    });
    let report = sandbox.run();
    let error = JobError::PersonOverruled;
    assert_eq!(
        report.outcome,
        Outcome::Parked { error },
        "{:?}",
        report.complaints
    );
    assert!(
        sandbox
            .git(&["show", "HEAD:MEMORY.md"])
            .contains("node 20, really")
    );
    assert!(report.attempt.is_some());
    assert!(sandbox.log()[0].starts_with("edit:"));
}

#[test]
fn a_note_written_while_the_worker_works_waits_for_the_next_run() {
    let mut sandbox = baseline();
    sandbox.extract(2, 1, "tests want a database");
    let note = sandbox
        .folder()
        .join("extensions/ad_hoc/notes/2025-12-01T11-00-00-late.md");
    sandbox.script(move |request| {
        std::fs::create_dir_all(note.parent().unwrap()).unwrap();
        good_work(request)?;
        std::fs::write(&note, "Late, but there.").unwrap();
        finished()
    });
    sandbox.run_done();
    assert_eq!(sandbox.pending().inputs.len(), 1);
    sandbox.script(good_work);
    sandbox.run_done();
    assert!(sandbox.read("MEMORY.md").contains("Late, but there."));
}

#[test]
fn a_commit_made_by_hand_counts_as_an_edit() {
    let mut sandbox = baseline();
    sandbox.write_own_line();
    sandbox.git(&["commit", "-q", "-a", "-m", "my own words"]);
    sandbox.extract(2, 1, "tests want a database");
    sandbox.script(work_without_own_line);
    let report = sandbox.run();
    let error = JobError::PersonOverruled;
    assert_eq!(
        report.outcome,
        Outcome::FailedAfter { error },
        "{:?}",
        report.complaints
    );
    sandbox.script(good_work);
    sandbox.run_done();
}

#[test]
fn what_a_commit_by_hand_removed_is_withheld() {
    let mut sandbox = baseline();
    sandbox.note("2025-12-01T10-00-00-tabs", "Indent with tabs.");
    sandbox.run_done();
    sandbox.replace("MEMORY.md", "- Indent with tabs. [ad-hoc note]\n", "");
    sandbox.git(&["commit", "-q", "-a", "-m", "away with it"]);
    let error = JobError::ResultHoldsWithheld;
    assert_eq!(sandbox.run().outcome, Outcome::FailedAfter { error });
    assert_eq!(sandbox.withheld_count(), 1);
    sandbox.run();
    assert_eq!(sandbox.withheld_count(), 1, "once is enough");
}

/// A baseline of two notes, one of them about tabs, that the person rewrites.
fn baseline_to_rewrite() -> Sandbox {
    let mut sandbox = baseline();
    sandbox.note("2025-12-01T10-00-00-tabs", "Indent with tabs.");
    sandbox.note("2025-12-01T10-00-01-rebase", "Rebase before pushing.");
    sandbox.run_done();
    sandbox
}

const TABS: &str = "- Indent with tabs. [ad-hoc note]\n";

#[track_caller]
fn assert_tabs_are_withheld(mut sandbox: Sandbox) {
    let log = sandbox.log();
    let error = JobError::ResultHoldsWithheld;
    sandbox.extract(2, 1, "tests want a database");
    assert_eq!(sandbox.run().outcome, Outcome::FailedAfter { error });
    assert_eq!(sandbox.withheld_count(), 1, "{log:?}");
    sandbox.run();
    assert_eq!(sandbox.withheld_count(), 1, "once is enough");
    sandbox.script(|request| {
        write_memory(request, |text| !text.contains("tabs"));
        finished()
    });
    sandbox.run_done();
    assert!(!sandbox.read("MEMORY.md").contains("tabs"));
    assert!(sandbox.read("MEMORY.md").contains("Rebase before pushing"));
    sandbox.run_idle();
}

#[test]
fn what_a_person_takes_out_of_a_baseline_by_amending_it_is_withheld() {
    let sandbox = baseline_to_rewrite();
    sandbox.replace("MEMORY.md", TABS, "");
    sandbox.git(&["commit", "-q", "-a", "--amend", "--no-edit"]);
    assert_tabs_are_withheld(sandbox);
}

#[test]
fn what_a_person_takes_out_by_amending_twice_with_a_commit_on_top_is_withheld() {
    let sandbox = baseline_to_rewrite();
    sandbox.git(&[
        "commit",
        "-q",
        "--amend",
        "-m",
        &sandbox.git(&["log", "-1", "--format=Mine%n%n%B"]),
    ]);
    sandbox.replace("MEMORY.md", TABS, "");
    sandbox.git(&["commit", "-q", "-a", "--amend", "--no-edit"]);
    sandbox.append("MEMORY.md", "\n");
    sandbox.git(&["commit", "-q", "-a", "-m", "a blank line"]);
    assert_tabs_are_withheld(sandbox);
}

#[test]
fn what_a_person_squashes_into_a_baseline_is_withheld() {
    for how in ["--fixup", "--squash"] {
        let mut sandbox = baseline_to_rewrite();
        let baseline = sandbox.head().to_string();
        sandbox.extract(3, 1, "the registry is slow");
        sandbox.run_done();
        sandbox.replace("MEMORY.md", TABS, "");
        sandbox.git(&["commit", "-q", "-a", how, &baseline, "-m", "not this"]);
        sandbox.git(&[
            "-c",
            "sequence.editor=true",
            "-c",
            "core.editor=true",
            "rebase",
            "-q",
            "-i",
            "--autosquash",
            &format!("{baseline}~1"),
        ]);
        assert!(sandbox.read("MEMORY.md").contains("registry"), "{how}");
        assert_tabs_are_withheld(sandbox);
    }
}

#[test]
fn a_baseline_that_is_only_reworded_withholds_nothing() {
    let mut sandbox = baseline_to_rewrite();
    sandbox.git(&["commit", "-q", "--amend", "--reset-author", "--no-edit"]);
    sandbox.run_idle();
    assert_eq!(sandbox.withheld_count(), 0);
}

#[test]
fn a_line_that_a_person_amends_into_a_baseline_is_theirs() {
    let mut sandbox = baseline_to_rewrite();
    sandbox.write_own_line();
    sandbox.git(&["commit", "-q", "-a", "--amend", "--no-edit"]);
    sandbox.extract(2, 1, "tests want a database");
    sandbox.script(work_without_own_line);
    let report = sandbox.run();
    let error = JobError::PersonOverruled;
    assert_eq!(report.outcome, Outcome::FailedAfter { error });
    assert_eq!(report.complaints.len(), 1, "{:?}", report.complaints);
}

#[test]
fn a_plain_git_revert_takes_a_baseline_back_for_good() {
    let mut sandbox = baseline();
    sandbox.extract(2, 1, "tests want a database");
    sandbox.run_done();
    sandbox.git(&["revert", "--no-edit", "HEAD"]);
    assert!(!sandbox.exists(&sandbox.recap_file(2)));
    sandbox.run_idle();
    assert!(!sandbox.exists(&sandbox.recap_file(2)));
    assert!(sandbox.withheld_count() > 0);
    sandbox.extract(
        2,
        2,
        "continuous integration keeps the registry between jobs",
    );
    sandbox.run_done();
    assert!(sandbox.read("MEMORY.md").contains("keeps the registry"));
}

#[test]
fn a_reverted_note_is_held_back_before_and_after_it_was_looked_at() {
    let (mut sandbox, note) = baseline_of_note();
    sandbox.git(&["revert", "--no-edit", "HEAD"]);
    let pending = sandbox.pending();
    assert!(pending.is_idle(), "{:?}", pending.inputs);
    assert_eq!(pending.held_back, vec![note.clone()]);
    let report = sandbox.run_idle();
    assert_eq!(report.held_back, vec![note.clone()]);
    let [seen] = report.reverts[..] else {
        panic!("{:?}", report.reverts)
    };
    assert_eq!((seen.inputs, seen.entries), (1, 1));
    assert_eq!((seen.revert, seen.stands_again), (sandbox.head(), false));
    let report = sandbox.run_idle();
    assert!(report.reverts.is_empty(), "told once");
    assert_eq!(report.held_back, vec![note.clone()]);
    assert_eq!(sandbox.pending().held_back, vec![note]);
}

#[test]
fn reverting_the_revert_releases_both() {
    let (mut sandbox, _) = baseline_of_note();
    sandbox.git(&["revert", "--no-edit", "HEAD"]);
    sandbox.run_idle();
    assert_eq!(sandbox.withheld_count(), 2);
    sandbox.git(&["revert", "--no-edit", "HEAD"]);
    let second = sandbox.head();
    let pending = sandbox.pending();
    assert!(pending.is_idle(), "{:?}", pending.inputs);
    assert_eq!(pending.held_back, vec![]);
    let report = sandbox.run_idle();
    assert!(report.reverts[0].stands_again);
    assert_eq!(sandbox.withheld_count(), 0);
    assert!(sandbox.read("MEMORY.md").contains("Indent with tabs."));
    sandbox.extract(2, 1, "tests want a database");
    sandbox.run_done();
    assert!(sandbox.read("MEMORY.md").contains("Indent with tabs."));

    // And once more: the last word counts.
    sandbox.git(&["revert", "--no-edit", &second.to_string()]);
    sandbox.run_done();
    assert!(!sandbox.read("MEMORY.md").contains("Indent with tabs."));
    assert_eq!(sandbox.withheld_count(), 2);
}

#[test]
fn reverting_the_revert_later_takes_the_copies_out_of_the_folder() {
    let (mut sandbox, note) = baseline_of_note();
    sandbox.git(&["revert", "--no-edit", "HEAD"]);
    let revert = sandbox.head().to_string();
    sandbox.extract(2, 1, "tests want a database");
    sandbox.run_done();
    let copies = "extensions/withheld/entries";
    assert_eq!(sandbox.git(&["ls-files", copies]).lines().count(), 2);
    sandbox.git(&["revert", "--no-edit", &revert]);
    sandbox.run_done();
    assert_eq!(sandbox.git(&["ls-files", copies]), "");
    assert_eq!(sandbox.withheld_count(), 0);
    assert!(sandbox.read("MEMORY.md").contains("Indent with tabs."));
    assert!(sandbox.exists(note.as_str()));
    sandbox.run_idle();
}

#[test]
fn a_release_lifts_the_copies_of_the_other_folder_too() {
    let (mut sandbox, _) = baseline_of_note();
    sandbox.git(&["revert", "--no-edit", "HEAD"]);
    sandbox.run_idle();
    let copies = "extensions/withheld/entries";
    sandbox.version = MemoryVersion::V2;
    sandbox.init(MemoryVersion::V2);
    sandbox.extract(3, 1, "the registry is slow");
    sandbox.run_done();
    assert_eq!(sandbox.git(&["ls-files", copies]).lines().count(), 2);

    sandbox.version = MemoryVersion::V1;
    sandbox.git(&["revert", "--no-edit", "HEAD"]);
    sandbox.run_idle();
    assert_eq!(sandbox.withheld_count(), 0);
    sandbox.version = MemoryVersion::V2;
    let report = sandbox.run_idle();
    assert!(report.edit.is_some());
    assert_eq!(sandbox.git(&["ls-files", copies]), "");
    assert_eq!(sandbox.withheld_count(), 0);
    sandbox.run_idle();
}

#[test]
fn a_revert_of_an_edit_releases_what_the_edit_withheld() {
    let (mut sandbox, _) = baseline_of_note();
    sandbox.replace("MEMORY.md", "- Indent with tabs. [ad-hoc note]\n", "");
    sandbox.git(&["commit", "-q", "-a", "-m", "away with it"]);
    sandbox.run();
    assert_eq!(sandbox.withheld_count(), 1);
    sandbox.git(&["revert", "--no-edit", "HEAD"]);
    sandbox.run_idle();
    assert_eq!(sandbox.withheld_count(), 0);
    assert!(sandbox.read("MEMORY.md").contains("Indent with tabs."));
    // The revert of that is the edit again.
    sandbox.git(&["revert", "--no-edit", "HEAD"]);
    sandbox.run();
    assert_eq!(sandbox.withheld_count(), 1);
}

#[test]
fn a_secret_that_a_person_left_stops_only_what_would_overwrite_it() {
    let mut sandbox = baseline();
    let secret = format!("{}{}", "ghp_", "a1B2".repeat(9));
    let line = format!("- token {secret}\n");
    sandbox.append("memory_summary.md", &line);
    sandbox.note("2025-12-01T10-00-00-tabs", "Indent with tabs.");
    sandbox.script(|request| {
        good_work(request)?;
        edit(
            &request.staging.join("memory_summary.md"),
            "Works on one project.",
            "Works on two projects.",
        );
        finished()
    });
    for _ in 0..2 {
        let report = sandbox.run();
        let error = JobError::NeedsMending;
        assert_eq!(report.outcome, Outcome::FailedAfter { error });
        let words = report.complaints[0].words.as_str();
        assert!(
            words.contains("`memory_summary.md`") && words.contains("secret"),
            "{words}"
        );
        assert!(sandbox.read("memory_summary.md").contains(&secret));
    }
    // A note that only changes the handbook comes through.
    sandbox.script(good_work);
    let report = sandbox.run();
    assert!(
        matches!(report.outcome, Outcome::Done { .. }),
        "{:?}",
        report.complaints
    );
    assert!(sandbox.read("MEMORY.md").contains("Indent with tabs."));
    assert!(sandbox.read("memory_summary.md").contains(&secret));
    sandbox.replace("memory_summary.md", &line, "");
    sandbox.extract(2, 1, "tests want a database");
    sandbox.run_done();
    assert!(!sandbox.git(&["log", "--all", "-p"]).contains(&secret));
}

/// A baseline of one note on top of another one.
fn baseline_of_note() -> (Sandbox, TreePath) {
    let mut sandbox = baseline();
    sandbox.note("2025-12-01T10-00-00-tabs", "Indent with tabs.");
    sandbox.run_done();
    let path = "extensions/ad_hoc/notes/2025-12-01T10-00-00-tabs.md";
    (sandbox, TreePath::parse(path).unwrap())
}

#[test]
fn a_reset_makes_the_inputs_pending_again() {
    let mut sandbox = baseline();
    sandbox.extract(2, 1, "tests want a database");
    sandbox.run_done();
    sandbox.git(&["reset", "-q", "--hard", "HEAD~1"]);
    assert_eq!(sandbox.pending().inputs.len(), 1);
    sandbox.run_done();
    assert!(sandbox.read("MEMORY.md").contains("database"));
    sandbox.run_idle();
}

#[test]
fn a_forget_note_withholds_what_it_removed() {
    let mut sandbox = baseline();
    sandbox.extract(2, 1, "tests want a database");
    sandbox.run_done();
    sandbox.note(
        "2025-12-01T10-00-00-forget",
        "---\nkind: forget\n---\ntests want a database\n",
    );
    sandbox.script(|request| {
        write_memory(request, |text| !text.contains("database"));
        let mut report = finished()?;
        report.forgotten = vec!["- tests want a database [Task 2]".to_owned()];
        Ok(report)
    });
    sandbox.run_done();
    // The statement of the handbook and the topic of the summary.
    assert_eq!(sandbox.withheld_count(), 2);
    let copies = sandbox.folder().join("extensions/withheld/entries");
    assert_eq!(std::fs::read_dir(copies).unwrap().count(), 2);
}

#[test]
fn what_is_only_in_the_index_is_kept() {
    let mut sandbox = baseline();
    sandbox.write("MEMORY.md", "# staged\n");
    sandbox.git(&["add", "MEMORY.md"]);
    sandbox.git(&["show", "HEAD:MEMORY.md"]);
    let text = sandbox.git(&["show", "HEAD:MEMORY.md"]);
    sandbox.write("MEMORY.md", &format!("{text}\n"));
    sandbox.extract(2, 1, "tests want a database");
    sandbox.run_done();
    let names = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/memrev/kept"]);
    assert_eq!(names.lines().count(), 1);
}

fn baseline() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_done();
    sandbox
}

fn edit(file: &PathBuf, old: &str, new: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    if text.contains(old) {
        std::fs::write(file, text.replace(old, new)).unwrap();
    }
}
