//! Workers that say they are done and are not: each is refused with the
//! reason, or code has done what they left undone.

use super::support::{Sandbox, finished, good_work, thread, write_memory};
use crate::consolidate::{ConsolidateReport, Outcome};
use crate::domain::version::MemoryVersion;
use crate::ledger::JobError;
use crate::model::{Retired, Skipped};

/// The complaints of an attempt that was refused for passing over inputs;
/// those are pending as before.
#[track_caller]
fn refused(sandbox: &mut Sandbox, pending: usize) -> String {
    let (head, calls) = (sandbox.log().len(), sandbox.calls());
    let report = sandbox.run();
    let error = JobError::InputsPassedOver;
    let complaints = words(&report);
    assert_eq!(
        report.outcome,
        Outcome::FailedAfter { error },
        "{complaints}"
    );
    assert_eq!(sandbox.calls() - calls, 2, "one chance to mend it");
    let added = sandbox.log().len() - head;
    assert!(
        added == 0 || sandbox.log()[0].starts_with("edit:"),
        "{:?}",
        sandbox.log()
    );
    assert_eq!(sandbox.pending().inputs.len(), pending);
    complaints
}

fn words(report: &ConsolidateReport) -> String {
    let all = report.complaints.iter();
    let all: Vec<String> = all
        .map(|it| format!("[{}] {}", it.code, it.words))
        .collect();
    all.join("\n")
}

#[test]
fn new_recaps_that_nothing_cites_are_not_consumed() {
    for version in [MemoryVersion::V1, MemoryVersion::V2] {
        let mut sandbox = Sandbox::of(version);
        sandbox.extract(1, 1, "fact one stands for itself");
        sandbox.run_done();
        for n in 2..=5 {
            sandbox.extract(n, 1, &format!("fact number {n} stands for itself"));
        }
        sandbox.script(|_| finished());
        let said = refused(&mut sandbox, 4);
        assert_eq!(said.matches("[unnamed]").count(), 4, "{said}");
        sandbox.script(|request| {
            write_memory(request, |text| {
                text.contains("one") || text.contains("number 2")
            });
            finished()
        });
        let said = refused(&mut sandbox, 4);
        assert_eq!(said.matches("[unnamed]").count(), 3, "{said}");
        assert!(!said.contains(&sandbox.recap_file(2)), "{said}");
        assert!(said.contains(&sandbox.recap_file(3)), "{said}");
        sandbox.script(good_work);
        sandbox.run_done();
        sandbox.run_idle();
    }
}

#[test]
fn a_skipped_recap_stands_in_the_commit_with_its_reason() {
    for version in [MemoryVersion::V1, MemoryVersion::V2] {
        let mut sandbox = Sandbox::of(version);
        sandbox.extract(1, 1, "fact one stands for itself");
        sandbox.extract(2, 1, "hello and good morning");
        let skip = |reason: &'static str| {
            move |request: &crate::model::ConsolidationRequest<'_>| {
                write_memory(request, |text| text.contains("one"));
                let mut report = finished()?;
                report.skipped = vec![Skipped {
                    thread_id: thread(2),
                    reason: reason.to_owned(),
                }];
                Ok(report)
            }
        };
        sandbox.script(skip(" \n"));
        refused(&mut sandbox, 2);
        sandbox.script(skip("greetings only"));
        let report = sandbox.run_done();
        assert_eq!(report.skipped.len(), 1);
        assert_eq!(report.skipped[0].thread_id, thread(2));
        let body = sandbox.git(&["log", "-1", "--format=%b"]);
        let line = format!("- {}: greetings only", sandbox.recap_file(2));
        assert!(body.contains(&line), "{body}");
        assert!(!body.contains(&format!("- {}:", sandbox.recap_file(1))));
        sandbox.run_idle();
    }
}

#[test]
fn a_transcript_that_is_not_the_recaps_is_refused() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "fact one stands for itself");
    sandbox.script(|request| {
        good_work(request)?;
        let file = request.staging.join("MEMORY.md");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, text.replace("/rollouts/a.jsonl", "/nope")).unwrap();
        finished()
    });
    let report = sandbox.run();
    let error = JobError::ResultInvalid;
    assert_eq!(report.outcome, Outcome::FailedAfter { error });
    assert!(words(&report).contains("[P005]"), "{}", words(&report));
}

/// A baseline of two recaps and a note, with a skill, and then a worker that
/// only says that it is done.
fn with_memory(version: MemoryVersion) -> Sandbox {
    let mut sandbox = Sandbox::of(version);
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.extract(2, 1, "tests want a database");
    sandbox.note("2025-12-01T08-00-00-old", "Indent with tabs.");
    sandbox.run_done();
    sandbox.script(|_| finished());
    sandbox
}

const BOTH: [MemoryVersion; 2] = [MemoryVersion::V1, MemoryVersion::V2];

fn all_files(sandbox: &Sandbox) -> String {
    let files = ["MEMORY.md", "memory_summary.md"].into_iter();
    let files = files.filter(|file| sandbox.exists(file));
    files.map(|file| sandbox.read(file)).collect()
}

#[test]
fn a_lazy_worker_does_not_lose_what_a_note_asks_to_remember() {
    for version in BOTH {
        let mut sandbox = with_memory(version);
        sandbox.note("2025-12-01T09-00-00-uv", "Use uv in every project.");
        sandbox.run_done();
        let files = all_files(&sandbox);
        let line = "- Use uv in every project.";
        assert!(
            files
                .lines()
                .any(|it| it.starts_with(line) && it.ends_with("[ad-hoc note]")),
            "{files}"
        );
        assert!(
            sandbox
                .last_call()
                .prompt
                .contains("2025-12-01T09-00-00-uv.md (remember)")
        );
        sandbox.run_idle();

        sandbox.note("2025-12-01T09-00-00-uv", "Use pip in every project.");
        sandbox.run_done();
        let files = all_files(&sandbox);
        assert!(
            !files.contains("Use uv") && files.contains("Use pip"),
            "{files}"
        );

        sandbox.remove("extensions/ad_hoc/notes/2025-12-01T09-00-00-uv.md");
        sandbox.run_done();
        let files = all_files(&sandbox);
        assert!(
            !files.contains("Use pip") && files.contains("Indent with tabs"),
            "{files}"
        );
        sandbox.run_idle();
    }
}

#[test]
fn a_lazy_worker_does_not_leave_the_old_value_of_a_correction() {
    for version in BOTH {
        let mut sandbox = with_memory(version);
        sandbox.note(
            "2025-12-01T09-00-00-node",
            "---\nkind: correct\n---\nthe build needs node 24\n",
        );
        sandbox.run_done();
        let files = all_files(&sandbox);
        assert!(files.contains("the build needs node 24"), "{files}");
        let left = files.lines().filter(|line| line.contains("node 22"));
        let left: Vec<&str> = left.filter(|line| line.starts_with("- ")).collect();
        assert_eq!(left, [""; 0], "{files}");
        sandbox.run_idle();
    }
}

#[test]
fn a_lazy_worker_does_not_keep_what_a_note_forgets() {
    for version in BOTH {
        let mut sandbox = with_memory(version);
        let skill = "skills/try-it/SKILL.md";
        if version == MemoryVersion::V1 {
            sandbox.write(
                skill,
                "---\nname: try-it\ndescription: how to try a change\n---\n\n1. Start the container\n2. Tests want a database, so make one\n",
            );
        }
        sandbox.note(
            "2025-12-01T09-00-00-forget",
            "---\nkind: forget\n---\ntests want a database\n",
        );
        let report = sandbox.run_done();
        assert_eq!(report.unmatched_notes, []);
        let files = all_files(&sandbox);
        assert!(!files.contains("database"), "{files}");
        assert!(files.contains("node 22"), "{files}");
        if version == MemoryVersion::V1 {
            assert!(!sandbox.read(skill).contains("database"));
            assert!(sandbox.read(skill).contains("container"));
        }
        assert!(
            1 <= sandbox.withheld_count(),
            "what was forgotten is withheld"
        );
        // A worker that brings it back is refused, whatever it says.
        sandbox.extract(3, 1, "fact three stands for itself");
        sandbox.script(good_work);
        let report = sandbox.run();
        let error = JobError::ResultHoldsWithheld;
        assert_eq!(
            report.outcome,
            Outcome::FailedAfter { error },
            "{}",
            words(&report)
        );
    }
}

#[test]
fn a_forget_note_that_matches_nothing_is_told() {
    let mut sandbox = with_memory(MemoryVersion::V1);
    sandbox.note("2025-12-01T09-00-00-forget", "Forget the mainframe in Oslo");
    let report = sandbox.run_done();
    assert_eq!(report.unmatched_notes.len(), 1);
}

#[test]
fn a_worker_that_undoes_what_a_note_asked_for_is_refused() {
    type Undo = fn(&str) -> String;
    let cases: [(&str, Undo, &str); 4] = [
        (
            "Use uv in every project.",
            |text| without_line(text, "Use uv"),
            "asks for: Use uv in every project.",
        ),
        (
            "Use uv in every project.",
            |text| {
                text.replace("Use uv in every project. (extensions/ad_hoc/notes/2025-12-01T09-00-00-x.md) [ad-hoc note]", "Use uv in every project.")
            },
            "no line that ends in `[ad-hoc note]`",
        ),
        (
            "Use uv in every project.",
            |text| without_line(text, "Indent with tabs"),
            "a line of `MEMORY.md` that a note brought is gone",
        ),
        (
            "---\nkind: correct\n---\nthe build needs node 24",
            |text| format!("{text}\n- the build needs node 22 [Task 1]\n"),
            "took out",
        ),
    ];
    for (note, undo, said) in cases {
        let mut sandbox = with_memory(MemoryVersion::V1);
        sandbox.note("2025-12-01T09-00-00-x", note);
        sandbox.script(move |request| {
            for name in ["MEMORY.md", "memory_summary.md"] {
                let file = request.staging.join(name);
                let text = std::fs::read_to_string(&file).unwrap();
                let summary = |text: String| text.replace(" [ad-hoc note]", "");
                let text = match name {
                    "MEMORY.md" => undo(&text),
                    _ => summary(without_line(&text, "Use uv")),
                };
                std::fs::write(file, text).unwrap();
            }
            finished()
        });
        let complaints = refused(&mut sandbox, 1);
        assert!(complaints.contains(said), "{complaints}");
        sandbox.script(|_| finished());
        sandbox.run_done();
    }
}

#[test]
fn a_worker_may_polish_the_line_of_a_note_and_retire_an_old_one() {
    let mut sandbox = with_memory(MemoryVersion::V1);
    sandbox.note("2025-12-01T09-00-00-x", "Use uv in every project.");
    sandbox.script(|request| {
        for name in ["MEMORY.md", "memory_summary.md"] {
            let file = request.staging.join(name);
            let text = std::fs::read_to_string(&file).unwrap();
            let text = without_line(&text, "Indent with tabs");
            let text = text.replace(
                "- Use uv in every project.",
                "- In every project: use `uv`.",
            );
            std::fs::write(file, text).unwrap();
        }
        let mut report = finished()?;
        report.retired = vec![Retired {
            entry: "Indent with tabs. [ad-hoc note]".to_owned(),
            reason: "an editor does it now".to_owned(),
        }];
        Ok(report)
    });
    sandbox.run_done();
    assert!(all_files(&sandbox).contains("- In every project: use `uv`."));
}

#[test]
fn a_new_memory_says_what_its_notes_ask_for() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.note("2025-12-01T09-00-00-x", "Use uv in every project.");
    sandbox.script(|request| {
        write_memory(request, |text| text.contains("node"));
        finished()
    });
    let complaints = refused(&mut sandbox, 2);
    assert!(
        complaints.contains("Use uv in every project."),
        "{complaints}"
    );
    sandbox.script(good_work);
    sandbox.run_done();
}

fn without_line(text: &str, words: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !line.contains(words)).collect()
}
