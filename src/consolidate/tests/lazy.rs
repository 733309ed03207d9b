//! Workers that say they are done and are not: each is refused with the
//! reason, or code has done what they left undone.

use super::support::{Sandbox, finished, good_work, thread, write_memory};
use crate::consolidate::{ConsolidateReport, Outcome};
use crate::domain::version::MemoryVersion;
use crate::ledger::JobError;
use crate::model::Skipped;

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
    all.map(|it| format!("[{}] {}\n", it.code, it.words))
        .collect()
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
