//! What a consolidation does when the worker, the lease or the world goes wrong.

use super::support::{Sandbox, finished, good_work, work_without_own_line, write_memory};
use crate::consolidate::{ConsolidateError, Outcome};
use crate::domain::text::Redacted;
use crate::domain::version::MemoryVersion;
use crate::ledger::{JobError, Ledger, Pace};
use crate::model::{ConsolidationRequest, ModelError, WorkerReport};
use crate::store::error::StoreError;

#[test]
fn a_worker_that_changes_its_inputs_is_refused() {
    let note = "extensions/ad_hoc/notes/2025-12-01T10-00-00-tabs.md";
    check(JobError::ResultNotAllowed, true, move |request| {
        good_work(request)?;
        std::fs::write(request.staging.join(note), "changed").unwrap();
        finished()
    });
    check(JobError::ResultNotAllowed, true, move |request| {
        good_work(request)?;
        std::fs::remove_file(request.staging.join(note)).ok();
        finished()
    });
}

#[test]
fn an_emptied_memory_is_refused() {
    for content in ["", " \n\n", "v1\n", "v1\n\n## User Profile\n"] {
        check_after_baseline(move |request| {
            std::fs::write(request.staging.join("MEMORY.md"), content).unwrap();
            std::fs::write(request.staging.join("memory_summary.md"), content).unwrap();
            finished()
        });
    }
}

#[test]
fn removed_outputs_are_refused() {
    check_after_baseline(|request| {
        std::fs::remove_file(request.staging.join("MEMORY.md")).ok();
        std::fs::remove_file(request.staging.join("memory_summary.md")).ok();
        finished()
    });
}

#[test]
fn small_talk_is_no_memory() {
    for talk in [
        "I need permission to edit this file.",
        "Here is the updated file:\n\n- nothing",
        "Should I go on?",
    ] {
        check_after_baseline(move |request| {
            std::fs::write(request.staging.join("MEMORY.md"), talk).unwrap();
            std::fs::write(request.staging.join("memory_summary.md"), talk).unwrap();
            finished()
        });
    }
}

#[test]
fn work_without_a_finish_is_refused() {
    check(JobError::WorkerUnfinished, true, |request| {
        good_work(request)?;
        Ok(WorkerReport::default())
    });
}

#[test]
fn a_secret_in_the_result_is_refused_and_not_kept() {
    let secret = format!("{}{}", "ghp_", "a1B2".repeat(9));
    let planted = secret.clone();
    let sandbox = check(JobError::ResultHoldsSecret, true, move |request| {
        good_work(request)?;
        let file = request.staging.join("MEMORY.md");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, format!("{text}\n- token {planted}\n")).unwrap();
        finished()
    });
    assert!(!sandbox.git(&["log", "--all", "-p"]).contains(&secret));
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_in_the_result_is_refused() {
    check(JobError::ResultNotAllowed, true, |request| {
        good_work(request)?;
        let file = request.staging.join("MEMORY.md");
        std::fs::remove_file(&file).ok();
        std::os::unix::fs::symlink("/etc/hostname", file).ok();
        finished()
    });
}

/// Each is named for what it is, and nothing hangs on a pipe.
#[cfg(unix)]
#[test]
fn odd_things_and_floods_below_skills_are_refused_with_their_reason() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    type Odd = fn(&std::path::Path);
    let cases: [(&str, &str, Odd); 6] = [
        ("[symlink]", "symbolic link", |folder| {
            std::os::unix::fs::symlink("/etc/hostname", folder.join("link.md")).ok();
        }),
        ("[symlink]", "symbolic link", |folder| {
            std::os::unix::fs::symlink("/etc", folder.join("more")).ok();
        }),
        ("[unfit]", "is neither a file nor a folder", |folder| {
            mknodat(
                CWD,
                folder.join("pipe"),
                FileType::Fifo,
                Mode::RUSR | Mode::WUSR,
                0,
            )
            .ok();
        }),
        ("[unfit]", "deeper than folders may", |folder| {
            std::fs::create_dir_all(folder.join("a/".repeat(20))).unwrap();
        }),
        ("[flood]", "500 files", |folder| {
            for number in 0..10_000 {
                std::fs::write(folder.join(number.to_string()), "x").unwrap();
            }
        }),
        ("[flood]", "33554432 bytes may be", |folder| {
            for number in 0..5 {
                std::fs::write(folder.join(number.to_string()), "word\n".repeat(1_600_000))
                    .unwrap();
            }
        }),
    ];
    for (code, why, make) in cases {
        let mut sandbox = ready();
        sandbox.script(move |request| {
            good_work(request)?;
            let folder = request.staging.join("skills/odd");
            std::fs::create_dir_all(&folder).unwrap();
            make(&folder);
            finished()
        });
        let report = sandbox.run();
        assert!(
            matches!(report.outcome, Outcome::FailedAfter { .. }),
            "{code} {why}"
        );
        let told: Vec<String> = (report.complaints.iter())
            .map(|complaint| format!("[{}] {}", complaint.code, complaint.words))
            .collect();
        assert!(
            told[0].starts_with(code) && told[0].contains(why),
            "{told:?}"
        );
        assert!(told.len() <= 3, "{told:?}");
        assert!(!sandbox.exists("MEMORY.md"));
    }
}

#[test]
fn a_model_that_fails_leaves_everything_as_it_was() {
    let mut sandbox = ready();
    sandbox.script(|_| {
        Err(ModelError::Unreachable {
            reason: Redacted::default(),
        })
    });
    let head = sandbox.head();
    let report = sandbox.run();
    let error = JobError::ModelUnavailable;
    assert_eq!(report.outcome, Outcome::FailedBefore { error });
    assert_eq!(
        sandbox.git(&["rev-list", "--count", &format!("{head}..")]),
        "1"
    );
    assert!(sandbox.log()[0].starts_with("edit:"));
    assert_eq!(sandbox.pending().inputs.len(), 2);
    sandbox.pace = Pace::Background;
    assert!(matches!(sandbox.run().outcome, Outcome::Deferred { .. }));
    sandbox.pace = Pace::ByHand;
    sandbox.script(good_work);
    sandbox.run_done();
}

#[test]
fn a_lost_lease_publishes_nothing_and_keeps_the_attempt() {
    let mut sandbox = ready();
    let (ledger_file, later) = (sandbox.home.ledger_file(), sandbox.now.plus_seconds(7_200));
    sandbox.script(move |request| {
        let mut rival = Ledger::open(&ledger_file, later).unwrap().ledger;
        (rival.claim_consolidation(MemoryVersion::V1, Pace::ByHand, later)).unwrap();
        good_work(request)
    });
    let report = sandbox.run();
    assert!(
        matches!(report.outcome, Outcome::Busy { .. }),
        "{:?}",
        report.outcome
    );
    assert!(!sandbox.exists("MEMORY.md"));
    if let Some(attempt) = report.attempt {
        assert!(
            sandbox
                .git(&["show", &format!("{attempt}:MEMORY.md")])
                .contains("node 22")
        );
    }
}

#[test]
fn a_store_that_is_not_ours_to_write_is_left_alone() {
    let mut sandbox = ready();
    sandbox.git(&["checkout", "-q", "-b", "mine"]);
    sandbox.try_run().unwrap_err();
    assert_eq!(sandbox.calls(), 0);
    let error = sandbox.try_pending().unwrap_err();
    assert!(
        matches!(error, ConsolidateError::Store(StoreError::NotOurs { .. })),
        "{error}"
    );
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.pace = Pace::Background;
    sandbox.run_done();
}

#[test]
fn an_entry_of_the_persons_is_not_the_workers_to_drop() {
    let mut sandbox = ready();
    sandbox.run_done();
    sandbox.write_own_line();
    sandbox.extract(2, 1, "tests want a database");
    let kept = sandbox.read("MEMORY.md");
    sandbox.script(work_without_own_line);
    let report = sandbox.run();
    let error = JobError::PersonOverruled;
    assert_eq!(
        report.outcome,
        Outcome::FailedAfter { error },
        "{:?}",
        report.complaints
    );
    assert_eq!(sandbox.read("MEMORY.md"), kept);
    assert!(sandbox.last_call().diagnostics[0].contains("Never push on Fridays"));
    assert!(sandbox.last_call().prompt.contains("Never push on Fridays"));
    sandbox.script(good_work);
    sandbox.run_done();
    assert!(sandbox.read("MEMORY.md").contains("Never push on Fridays"));
}

#[test]
fn what_a_person_removed_does_not_come_back() {
    let mut sandbox = ready();
    sandbox.run_done();
    sandbox.replace("MEMORY.md", "- Indent with tabs. [ad-hoc note]\n", "");
    let report = sandbox.run();
    let error = JobError::ResultHoldsWithheld;
    assert_eq!(
        report.outcome,
        Outcome::FailedAfter { error },
        "{:?}",
        report.complaints
    );
    let kept = report.attempt.unwrap();
    assert!(
        !sandbox
            .git(&["log", "-1", "-p", "--format=%B", &kept.to_string()])
            .contains("tabs.")
    );
    sandbox.script(|request| {
        write_memory(request, |text| !text.contains("tabs"));
        finished()
    });
    sandbox.run_done();
    assert!(!sandbox.read("MEMORY.md").contains("Indent with tabs."));
    let copies = sandbox.folder().join("extensions/withheld/entries");
    assert_eq!(std::fs::read_dir(copies).unwrap().count(), 1);
    sandbox.run_idle();
}

#[test]
fn too_much_loss_is_refused_and_kept_beside_main() {
    let mut sandbox = Sandbox::new();
    for n in 1..=9 {
        sandbox.extract(n, 1, &format!("fact number {n} stands for itself"));
    }
    sandbox.run_done();
    sandbox.note("2025-12-01T10-00-00-tabs", "Indent with tabs.");
    let head = sandbox.head();
    sandbox.script(|request| {
        write_memory(request, |text| {
            text.contains("number 1 ") || text.contains("tabs")
        });
        finished()
    });
    let report = sandbox.run();
    let error = JobError::LossGuard;
    assert_eq!(
        report.outcome,
        Outcome::FailedAfter { error },
        "{:?}",
        report.complaints
    );
    assert_eq!(sandbox.git(&["rev-parse", "HEAD~1"]), head.to_string());
    let attempt = report.attempt.unwrap().to_string();
    assert!(
        sandbox
            .git(&["show", &format!("{attempt}:MEMORY.md")])
            .contains("number 1 ")
    );
    let names = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/memrev"]);
    assert_eq!(names, format!("refs/memrev/attempts/{}", report.run));
}

/// A recap and a note wait.
fn ready() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.note("2025-12-01T10-00-00-tabs", "Indent with tabs.");
    sandbox
}

/// On a fresh home: refused with `error`, only the person's edit committed,
/// inputs pending.
#[track_caller]
fn check(
    error: JobError,
    keeps: bool,
    script: impl Fn(&ConsolidationRequest<'_>) -> Result<WorkerReport, ModelError>
    + Send
    + Sync
    + 'static,
) -> Sandbox {
    let mut sandbox = ready();
    sandbox.script(script);
    let report = sandbox.run();
    assert_eq!(
        report.outcome,
        Outcome::FailedAfter { error },
        "{:?}",
        report.complaints
    );
    assert_eq!(report.attempt.is_some(), keeps);
    assert_eq!(sandbox.log(), ["edit: 1 note", "init: an empty memory"]);
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert!(!sandbox.exists("MEMORY.md"));
    assert_eq!(sandbox.pending().inputs.len(), 2);
    sandbox
}

/// After a baseline and with a new recap: refused, the files stay.
#[track_caller]
fn check_after_baseline(
    script: impl Fn(&ConsolidationRequest<'_>) -> Result<WorkerReport, ModelError>
    + Send
    + Sync
    + 'static,
) {
    let mut sandbox = ready();
    sandbox.run_done();
    let (head, kept) = (sandbox.head(), sandbox.read("MEMORY.md"));
    sandbox.extract(2, 1, "tests want a database");
    sandbox.script(script);
    let report = sandbox.run();
    assert!(
        matches!(report.outcome, Outcome::FailedAfter { .. }),
        "{:?}",
        report.outcome
    );
    assert_eq!(sandbox.head(), head);
    assert_eq!(sandbox.read("MEMORY.md"), kept);
    assert_eq!(sandbox.pending().inputs.len(), 1);
}
