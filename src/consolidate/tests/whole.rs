//! What a consolidation does when all goes well.

use super::support::{NOON, Sandbox, finished, good_work, recap_of, thread};
use crate::consolidate::Outcome;
use crate::consolidate::edits::LeftAlone;
use crate::domain::session::MemoryMode;
use crate::domain::version::MemoryVersion;
use crate::ledger::Pace;
use crate::text::recap;

#[test]
fn the_first_baseline_takes_recaps_and_notes_in() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.note("2025-12-01T10-00-00-tabs", "Indent with tabs.");
    let report = sandbox.run_done();
    assert_eq!(
        sandbox.log(),
        [
            "baseline: 1 recap, 1 note; MEMORY.md +24 -0, memory_summary.md +20 -0",
            "edit: 1 note",
            "init: an empty memory",
        ]
    );
    assert_eq!(report.inputs.len(), 2);
    assert_eq!(report.inputs[1].thread_id, Some(thread(1)));
    let trailers = sandbox.git(&[
        "log",
        "-1",
        "--format=%(trailers:key=Memrev-Input,valueonly)",
    ]);
    assert!(
        trailers.contains("A extensions/ad_hoc/notes/2025-12-01T10-00-00-tabs.md"),
        "{trailers}"
    );
    assert!(trailers.contains(thread(1).as_str()));
    let authors = sandbox.git(&["log", "-2", "--format=%an"]);
    assert_eq!(authors, "memrev\nAda");
    let body = sandbox.git(&["log", "-1", "--format=%b"]);
    assert!(
        body.contains("Worker report:\nFolded in what was new."),
        "{body}"
    );
    let call = sandbox.last_call();
    assert!(
        call.diff
            .contains(&format!("- A {}", sandbox.recap_file(1)))
    );
    assert!(call.prompt.contains("Mode: init"));
}

#[test]
fn with_nothing_new_no_worker_is_called() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_done();
    let head = sandbox.head();
    sandbox.run_idle();
    // Also with the quick answer gone, and with a new ledger.
    std::fs::remove_dir_all(sandbox.home.cache()).unwrap();
    sandbox.run_idle();
    std::fs::remove_file(sandbox.home.ledger_file()).unwrap();
    sandbox.run_idle();
    assert_eq!(sandbox.head(), head);
    assert!(sandbox.pending().is_idle());
}

#[test]
fn a_new_recap_and_a_newer_version_of_an_old_one_are_news() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_done();
    sandbox.extract(1, 2, "the build needs node 24");
    sandbox.extract(2, 1, "tests want a database");
    assert_eq!(sandbox.pending().inputs.len(), 2);
    sandbox.run_done();
    assert!(sandbox.log()[0].starts_with("baseline: 2 recaps; MEMORY.md"));
    let changes = sandbox.last_call().changes;
    assert_eq!(changes.len(), 2);
    assert!(
        changes[0].ends_with("old=true removed=false"),
        "{changes:?}"
    );
    assert!(
        changes[1].ends_with("old=false removed=false"),
        "{changes:?}"
    );
    sandbox.run_idle();
}

#[test]
fn missing_outputs_call_the_worker_though_nothing_changed() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_done();
    sandbox.remove("memory_summary.md");
    sandbox.run_done();
    assert!(sandbox.exists("memory_summary.md"));
    assert_eq!(
        sandbox.withheld_count(),
        0,
        "asking for it anew is no forgetting"
    );
    sandbox.run_idle();
}

#[test]
fn a_worker_that_changes_nothing_makes_a_baseline_of_inputs_only() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_done();
    sandbox.write("extensions/web/instructions.md", "pages I read\n");
    sandbox.script(|_| finished());
    let report = sandbox.run_done();
    assert!(report.outputs.is_empty());
    assert_eq!(
        sandbox.log()[0],
        "baseline: 1 instruction; memory files unchanged"
    );
    sandbox.run_idle();
}

#[test]
fn a_session_that_is_switched_off_leaves_memory() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.extract(2, 1, "tests want a database");
    sandbox.run_done();
    sandbox.modes.insert(thread(2), MemoryMode::Disabled);
    sandbox.run_done();
    assert!(!sandbox.exists(&sandbox.recap_file(2)));
    assert!(sandbox.log()[0].starts_with("baseline: 1 recap removed;"));
    assert!(
        sandbox
            .last_call()
            .diff
            .contains(&format!("- D {}", sandbox.recap_file(2)))
    );
    assert!(!sandbox.read("MEMORY.md").contains("database"));
    sandbox.modes.clear();
    sandbox.run_done();
    assert!(sandbox.exists(&sandbox.recap_file(2)));
}

#[test]
fn an_empty_home_calls_nobody() {
    let mut sandbox = Sandbox::new();
    crate::notes::seed_instructions(&sandbox.folder()).unwrap();
    sandbox.run_idle();
    sandbox.run_idle();
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn raw_memories_stand_by_thread_id() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(2, 1, "tests want a database");
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_done();
    let text = sandbox.read("raw_memories.md");
    assert!(text.starts_with("# Raw Memories\n\n"));
    let first = text.find(thread(1).as_str()).unwrap();
    assert!(first < text.find(thread(2).as_str()).unwrap());
    let copy = sandbox.read(&sandbox.recap_file(1));
    assert!(!copy.contains("raw_memory") && !copy.contains("extracted_at"));
}

#[test]
fn version_two_has_a_summary_and_nothing_else() {
    let mut sandbox = Sandbox::of(MemoryVersion::V2);
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_done();
    assert!(sandbox.exists("memory_summary.md"));
    assert!(!sandbox.exists("MEMORY.md"));
    assert!(!sandbox.exists("raw_memories.md"));
    sandbox.write("MEMORY.md", "# my own business\n");
    let report = sandbox.run();
    assert_eq!(report.outcome, Outcome::NothingToDo);
    assert!(
        report.left_files.is_empty(),
        "a foreign file is nobody's news"
    );
}

#[test]
fn both_versions_live_side_by_side() {
    let mut sandbox = Sandbox::new();
    sandbox.init(MemoryVersion::V2);
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_done();
    sandbox.version = MemoryVersion::V2;
    sandbox.extract(2, 1, "tests want a database");
    sandbox.run_done();
    assert!(sandbox.read("memory_summary.md").contains("database"));
    assert!(!sandbox.read("memory_summary.md").contains("node"));
    sandbox.version = MemoryVersion::V1;
    sandbox.run_idle();
}

#[test]
fn old_resources_of_an_extension_expire_on_the_seventh_day() {
    let mut sandbox = Sandbox::new();
    sandbox.write(
        "extensions/screen/instructions.md",
        "What was on the screen.\n",
    );
    let name = |days: i64, more: i64| {
        let at = NOON.minus_days(days).plus_seconds(more);
        format!("extensions/screen/resources/{}-x.md", at.file_stamp())
    };
    sandbox.write(&name(7, 0), "old\n");
    sandbox.write(&name(7, 3_600), "younger\n");
    sandbox.write("extensions/screen/resources/undated.md", "stays\n");
    sandbox.write(
        "extensions/bare/resources/2025-01-01T00-00-00-x.md",
        "no instructions\n",
    );
    sandbox.run_done();
    assert!(!sandbox.exists(&name(7, 0)));
    assert!(sandbox.exists(&name(7, 3_600)));
    sandbox.run_idle();
    sandbox.now = NOON.plus_seconds(3_600);
    sandbox.run_done();
    assert!(!sandbox.exists(&name(7, 3_600)));
    assert!(sandbox.exists("extensions/screen/resources/undated.md"));
    assert!(sandbox.exists("extensions/bare/resources/2025-01-01T00-00-00-x.md"));
    assert!(sandbox.log()[0].starts_with("baseline: 1 resource removed"));
}

#[test]
fn a_recap_put_into_the_folder_is_adopted() {
    let mut sandbox = Sandbox::new();
    let text = recap::print_memory_copy(&recap_of(3, 1, "releases go out on Tuesdays"));
    sandbox.write(&sandbox.recap_file(3), text.as_str());
    sandbox.run_done();
    let copy = sandbox.extraction(3).unwrap();
    assert!(copy.header.adopted_at.is_some());
    assert!(sandbox.read("MEMORY.md").contains("Tuesdays"));
    sandbox.run_idle();
}

#[test]
fn an_edited_recap_counts_until_the_session_is_newer() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_done();
    sandbox.replace(&sandbox.recap_file(1), "node 22", "node 23");
    sandbox.run_done();
    assert!(sandbox.read("MEMORY.md").contains("node 23"));
    let ours = sandbox.extraction(1).unwrap();
    assert!(ours.body.as_str().contains("node 23"));
    assert!(ours.header.raw_memory.is_some(), "the raw memory is kept");
    sandbox.run_idle();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_idle();
    sandbox.extract(1, 2, "the build needs node 26");
    sandbox.run_done();
    assert!(sandbox.read("MEMORY.md").contains("node 26"));
}

#[test]
fn a_deleted_recap_is_forgotten_until_the_session_is_newer() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.extract(2, 1, "tests want a database");
    sandbox.run_done();
    sandbox.remove(&sandbox.recap_file(2));
    sandbox.run_done();
    assert!(!sandbox.exists(&sandbox.recap_file(2)));
    assert!(!sandbox.read("MEMORY.md").contains("database"));
    sandbox.extract(2, 1, "tests want a database");
    sandbox.run_idle();
    // Put back by hand it does not come back either, and stays where it is.
    let text = recap::print_memory_copy(&recap_of(2, 1, "tests want a database"));
    sandbox.write(&sandbox.recap_file(2), text.as_str());
    let report = sandbox.run();
    assert_eq!(report.outcome, Outcome::NothingToDo);
    assert_eq!(report.left_files[0].reason, LeftAlone::Withheld);
    sandbox.remove(&sandbox.recap_file(2));
    sandbox.extract(2, 3, "tests want two databases");
    sandbox.run_done();
    assert!(sandbox.exists(&sandbox.recap_file(2)));
}

#[test]
fn what_is_not_fit_to_be_committed_stays_where_it_is() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    let secret = format!("the key is {}{}", "ghp_", "a1B2".repeat(9));
    sandbox.note("2025-12-01T10-00-00-secret", &secret);
    sandbox.note(".2025-12-01T10-00-00-x.md", "swap");
    sandbox.write("extensions/ad_hoc/notes/a (conflicted copy).md", "two\n");
    let report = sandbox.run();
    assert!(matches!(report.outcome, Outcome::Done { .. }));
    let reasons: Vec<_> = report
        .left_files
        .iter()
        .map(|it| it.reason.clone())
        .collect();
    assert_eq!(reasons, [LeftAlone::Secret, LeftAlone::ConflictedCopy]);
    assert!(sandbox.exists("extensions/ad_hoc/notes/2025-12-01T10-00-00-secret.md"));
    assert!(!sandbox.git(&["log", "--all", "-p"]).contains("ghp_"));
    assert_eq!(report.inputs.len(), 1);
}

#[test]
fn a_file_that_was_saved_just_now_is_left_to_its_editor() {
    let mut sandbox = Sandbox::new();
    sandbox.note("2025-12-01T10-00-00-tabs", "Indent with tabs.");
    let file = sandbox
        .folder()
        .join("extensions/ad_hoc/notes/2025-12-01T10-00-00-tabs.md");
    let saved_at = crate::sys::fs::size_and_time(&file).unwrap().1;
    sandbox.now = saved_at.plus_seconds(1);
    let report = sandbox.run();
    assert!(matches!(
        report.left_files[0].reason,
        LeftAlone::TooFresh { .. }
    ));
    assert!(report.edit.is_none());
    sandbox.now = saved_at.plus_seconds(2);
    sandbox.run_done();
    assert!(
        sandbox
            .read("MEMORY.md")
            .contains("Indent with tabs. [ad-hoc note]")
    );
}

#[test]
fn a_background_pass_keeps_the_cooldown_and_a_person_does_not() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.pace = Pace::Background;
    sandbox.run_done();
    sandbox.extract(2, 1, "tests want a database");
    assert!(matches!(sandbox.run().outcome, Outcome::Deferred { .. }));
    sandbox.pace = Pace::ByHand;
    sandbox.run_done();
}

#[test]
fn recaps_survive_the_loss_of_the_extractions_folder() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_done();
    std::fs::remove_dir_all(sandbox.home.extractions(MemoryVersion::V1)).unwrap();
    sandbox.run();
    assert!(sandbox.exists(&sandbox.recap_file(1)));
    assert!(sandbox.read("MEMORY.md").contains("node 22"));
}

#[test]
fn the_worker_may_mend_its_work_once() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.script(|request| {
        good_work(request)?;
        if request.diagnostics.is_none() {
            std::fs::write(request.staging.join("extra.md"), "oops").unwrap();
        } else {
            std::fs::remove_file(request.staging.join("extra.md")).unwrap();
        }
        finished()
    });
    sandbox.run_done();
    assert_eq!(sandbox.calls(), 2);
    assert!(sandbox.last_call().diagnostics[0].contains("`extra.md` was made"));
}
