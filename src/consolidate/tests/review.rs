//! A result that waits for a person, and what becomes of their word: on the
//! head as it was, after edits, after other commits, over the loss guard.

use super::support::{
    Sandbox, Word, finished, good_work, thread, work_without_own_line, write_memory,
};
use crate::consolidate::accept::{Decided, Decision};
use crate::consolidate::attempts::Obstacle;
use crate::consolidate::{ConsolidateReport, Outcome};
use crate::domain::id::ObjectId;
use crate::domain::session::MemoryMode;
use crate::ledger::{JobError, Pace};
use crate::model::Retired;
use crate::store::message::AttemptState;

/// A baseline over one recap; a second one was folded in and waits.
fn waiting() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_done();
    sandbox.extract(2, 1, "tests want a database");
    sandbox.review = true;
    let report = sandbox.run();
    assert_waits(&report, true);
    sandbox
}

#[track_caller]
fn assert_waits(report: &ConsolidateReport, expected: bool) {
    match &report.outcome {
        Outcome::Waits { is_new, .. } => assert_eq!(*is_new, expected),
        other => panic!("{other:?} {:?}", report.complaints),
    }
}

#[track_caller]
fn published(decision: &Decision) -> ObjectId {
    match &decision.outcome {
        Decided::Published { baseline } => *baseline,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_result_waits_and_no_model_is_asked_again_for_the_same() {
    let mut sandbox = waiting();
    assert!(!sandbox.read("MEMORY.md").contains("database"));
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    let calls = sandbox.calls();
    for (pace, review) in [
        (Pace::ByHand, true),
        (Pace::ByHand, false),
        (Pace::WatcherNotes, true),
    ] {
        (sandbox.pace, sandbox.review) = (pace, review);
        let report = sandbox.run();
        assert_waits(&report, false);
    }
    assert_eq!(sandbox.calls(), calls);
    let pending = sandbox.pending();
    assert_eq!(pending.inputs.len(), 1);
    assert!(pending.standing.is_some() && pending.prompt.is_none());
    sandbox.pace = Pace::Background;
    let outcome = sandbox.run().outcome;
    assert!(matches!(outcome, Outcome::Deferred { .. }), "{outcome:?}");
}

#[test]
fn accept_publishes_what_waits_and_consumes_its_inputs() {
    let mut sandbox = waiting();
    let run = sandbox.attempts()[0].run.clone();
    let would = sandbox.decide(&Word::WouldAccept, None);
    assert!(matches!(would.outcome, Decided::Would), "{would:?}");
    assert!(!would.outputs.is_empty());
    let decision = sandbox.decide(&Word::Accept, None);
    assert_eq!(published(&decision), sandbox.head());
    assert!(sandbox.read("MEMORY.md").contains("database"));
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert!(sandbox.attempts().is_empty());
    let message = sandbox.git(&["log", "-1", "--format=%B"]);
    for line in [
        "baseline: accepted, 1 recap; ",
        "Accepted by a person.",
        "Folded in what was new.",
        "Memrev-Kind: baseline",
        &format!("Memrev-Run: {run}"),
        "Memrev-Worker: scripted",
        "Memrev-Input: A rollout_summaries/",
    ] {
        assert!(message.contains(line), "no {line:?} in\n{message}");
    }
    sandbox.review = false;
    sandbox.run_idle();
}

#[test]
fn accept_takes_in_what_the_person_did_meanwhile() {
    let mut sandbox = waiting();
    sandbox.write_own_line();
    let decision = sandbox.decide(&Word::Accept, None);
    published(&decision);
    assert!(decision.edit.is_some());
    let handbook = sandbox.read("MEMORY.md");
    assert!(handbook.contains("Never push on Fridays") && handbook.contains("database"));
    // The edit was made after the result, so a worker has yet to see it.
    let inputs = sandbox.pending().inputs;
    assert!(inputs.is_empty(), "{inputs:?}");
}

#[test]
fn where_both_changed_the_same_lines_both_sides_are_shown() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_done();
    sandbox.script(|request| {
        good_work(request)?;
        let file = request.staging.join("MEMORY.md");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(
            file,
            text.replace("reuse_rule=only there", "reuse_rule=there"),
        )
        .unwrap();
        finished()
    });
    sandbox.extract(2, 1, "tests want a database");
    sandbox.review = true;
    sandbox.run();
    sandbox.replace("MEMORY.md", "reuse_rule=only there", "reuse_rule=mine");
    let before = sandbox.read("MEMORY.md");
    let decision = sandbox.decide(&Word::Accept, None);
    let Decided::Conflicts { sides } = &decision.outcome else {
        panic!("{decision:?}");
    };
    assert_eq!(sides.len(), 1);
    assert!(sides[0].yours.as_str().contains("reuse_rule=mine"));
    let theirs = sides[0].theirs.as_str();
    assert!(theirs.contains("reuse_rule=there"), "{theirs}");
    assert_eq!(sandbox.read("MEMORY.md"), before);
    assert_eq!(sandbox.attempts().len(), 1, "it is still there");
    let would = sandbox.decide(&Word::WouldAccept, None);
    assert!(matches!(would.outcome, Decided::Conflicts { .. }));
    // The person makes room, and it fits.
    sandbox.replace("MEMORY.md", "reuse_rule=mine", "reuse_rule=only there");
    published(&sandbox.decide(&Word::Accept, None));
    assert!(sandbox.read("MEMORY.md").contains("reuse_rule=there"));
}

#[test]
fn what_is_kept_out_since_is_not_accepted() {
    let mut sandbox = waiting();
    sandbox.modes.insert(thread(2), MemoryMode::Disabled);
    refused(&mut sandbox, "kept-out");
    let mut sandbox = waiting();
    sandbox.note("2025-12-01T10-00-00-own", "Mine.");
    sandbox.review = true;
    let report = sandbox.run();
    assert_waits(&report, true);
    sandbox.remove("extensions/ad_hoc/notes/2025-12-01T10-00-00-own.md");
    let run = sandbox.attempts()[1].run.clone();
    assert!(sandbox.attempts()[1].superseded_by.is_some());
    // The older one never rested on that note.
    published(&sandbox.decide(&Word::Accept, Some(&run)));
}

#[test]
fn what_a_person_removed_does_not_come_back_by_accept() {
    let mut sandbox = waiting();
    sandbox.replace("MEMORY.md", "- the build needs node 22 [Task 1]\n", "");
    sandbox.run();
    // The attempt's handbook still has the line; merged it is gone.
    let decision = sandbox.decide(&Word::Accept, None);
    let has_it = sandbox
        .read("MEMORY.md")
        .contains("- the build needs node 22 [Task 1]");
    assert!(!has_it, "{decision:?}");
}

#[track_caller]
fn refused(sandbox: &mut Sandbox, code: &str) {
    let head = sandbox.head();
    let decision = sandbox.decide(&Word::Accept, None);
    let Decided::Refused { complaints } = &decision.outcome else {
        panic!("{decision:?}");
    };
    assert!(
        complaints.iter().any(|it| it.code == code),
        "{complaints:?}"
    );
    assert_eq!(sandbox.head(), head);
}

#[test]
fn a_later_result_over_more_supersedes_and_the_earlier_one_stays() {
    let mut sandbox = waiting();
    sandbox.extract(3, 2, "deploys happen on Mondays");
    let report = sandbox.run();
    assert_waits(&report, true);
    let attempts = sandbox.attempts();
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[1].superseded_by.as_ref(), Some(&attempts[0].run));
    published(&sandbox.decide(&Word::Accept, None));
    let left = sandbox.attempts();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].obstacle, Some(Obstacle::Moved));
    let decision = sandbox.decide(&Word::Accept, None);
    assert!(
        matches!(decision.outcome, Decided::Blocked { .. }),
        "{decision:?}"
    );
}

#[test]
fn reject_leaves_nothing_of_it_and_holds_the_background_back() {
    let mut sandbox = waiting();
    let decision = sandbox.decide(&Word::Reject, None);
    assert!(matches!(decision.outcome, Decided::Rejected));
    let attempts = sandbox.attempts();
    assert_eq!(attempts[0].state, AttemptState::Rejected);
    let kept = attempts[0].commit.to_string();
    assert!(!sandbox.git(&["show", &kept]).contains("database"));
    assert_eq!(sandbox.pending().inputs.len(), 1);
    let calls = sandbox.calls();
    sandbox.pace = Pace::WatcherNotes;
    let outcome = sandbox.run().outcome;
    assert!(matches!(outcome, Outcome::HeldBack { .. }), "{outcome:?}");
    assert_eq!(sandbox.calls(), calls);
    let decision = sandbox.decide(&Word::Accept, None);
    assert!(matches!(decision.outcome, Decided::Blocked { .. }));
    // Something changes, or the person asks.
    sandbox.review = false;
    sandbox.pace = Pace::ByHand;
    sandbox.run_done();
    assert!(sandbox.calls() > calls);
}

#[test]
fn after_a_reject_new_inputs_are_tried_in_the_background() {
    let mut sandbox = waiting();
    sandbox.decide(&Word::Reject, None);
    sandbox.review = false;
    sandbox.extract(3, 2, "deploys happen on Mondays");
    sandbox.pace = Pace::WatcherNotes;
    sandbox.run_done();
}

/// Nine entries, of which the worker drops all but one.
fn lossy() -> Sandbox {
    let mut sandbox = Sandbox::new();
    for n in 1..=9 {
        sandbox.extract(n, 1, &format!("fact number {n} stands for itself"));
    }
    sandbox.run_done();
    sandbox.note("2025-12-01T10-00-00-tabs", "Indent with tabs.");
    sandbox.script(|request| {
        write_memory(request, |text| {
            text.contains("number 1 ") || text.contains("tabs")
        });
        finished()
    });
    let error = JobError::LossGuard;
    assert_eq!(sandbox.run().outcome, Outcome::FailedAfter { error });
    sandbox
}

#[test]
fn only_accept_goes_over_the_limits_of_the_guard_and_the_commit_says_so() {
    let mut sandbox = lossy();
    let decision = sandbox.decide(&Word::Accept, None);
    published(&decision);
    assert_eq!(decision.over.len(), 1, "{:?}", decision.over);
    let message = sandbox.git(&["log", "-1", "--format=%B"]);
    for line in [
        "Over the limits of the loss guard, which counts anew from here:",
        "entries would go without a reason",
        ": accepted by the person",
        " 0 gone without a reason",
    ] {
        assert!(message.contains(line), "no {line:?} in\n{message}");
    }
    assert!(!sandbox.read("MEMORY.md").contains("number 2 "));
}

#[test]
fn accept_overrules_nothing_but_the_guard() {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_done();
    sandbox.write_own_line();
    sandbox.extract(2, 1, "tests want a database");
    sandbox.script(work_without_own_line);
    sandbox.run();
    refused(&mut sandbox, "person");
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.script(|request| {
        good_work(request)?;
        Ok(crate::model::WorkerReport::default())
    });
    sandbox.run();
    let decision = sandbox.decide(&Word::Accept, None);
    let Decided::Blocked { obstacle } = decision.outcome else {
        panic!("{decision:?}");
    };
    assert!(
        obstacle.to_string().contains("explicit finish"),
        "{obstacle}"
    );
}

#[test]
fn an_attempt_with_a_secret_is_only_what_was_said_about_it() {
    let secret = format!("{}{}", "ghp_", "a1B2".repeat(9));
    let planted = secret.clone();
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.script(move |request| {
        good_work(request)?;
        let file = request.staging.join("MEMORY.md");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, format!("{text}\n- token {planted}\n")).unwrap();
        let mut report = finished()?;
        report.retired = vec![Retired {
            entry: format!("token {planted}"),
            reason: "x".to_owned(),
        }];
        Ok(report)
    });
    sandbox.run();
    let attempts = sandbox.attempts();
    let obstacle = attempts[0].obstacle.as_ref().unwrap();
    assert!(matches!(obstacle, Obstacle::NotKept { .. }), "{obstacle}");
    assert!(!sandbox.git(&["log", "--all", "-p"]).contains(&secret));
    let decision = sandbox.decide(&Word::Accept, None);
    assert!(matches!(decision.outcome, Decided::Blocked { .. }));
}

#[test]
fn an_attempt_that_is_a_baseline_already_is_published_once() {
    let mut sandbox = waiting();
    let commit = sandbox.attempts()[0].commit.to_string();
    let run = sandbox.attempts()[0].run.to_string();
    let baseline = published(&sandbox.decide(&Word::Accept, None));
    // As a stop between the two steps leaves it.
    let name = format!("refs/memrev/attempts/{run}");
    sandbox.git(&["update-ref", &name, &commit]);
    let decision = sandbox.decide(&Word::Accept, None);
    let Decided::Already { baseline: found } = decision.outcome else {
        panic!("{decision:?}");
    };
    assert_eq!(found, baseline);
    assert_eq!(sandbox.head(), baseline);
    assert!(sandbox.attempts().is_empty());
}

#[test]
fn a_revert_that_came_between_is_not_undone_by_accept() {
    let mut sandbox = waiting();
    sandbox.git(&["revert", "--no-edit", "HEAD"]);
    let decision = sandbox.decide(&Word::Accept, None);
    let Decided::Blocked { obstacle } = decision.outcome else {
        panic!("{decision:?}");
    };
    assert_eq!(obstacle, Obstacle::Moved);
    // It holds nothing up either.
    assert!(sandbox.pending().standing.is_none());
}

#[test]
fn old_attempts_go_with_a_pass_and_that_is_said() {
    let mut sandbox = lossy();
    let run = sandbox.attempts()[0].run.clone();
    sandbox.now = sandbox.now.plus_seconds(29 * 86_400);
    assert!(sandbox.run().expired.is_empty());
    sandbox.now = sandbox.now.plus_seconds(2 * 86_400);
    sandbox.policy.unused_days_max = 365;
    assert_eq!(sandbox.run().expired, [run]);
}
