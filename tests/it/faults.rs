//! The process is stopped at every named point, once as by `kill -9` and once
//! frozen past its lease while another one runs. What must hold each time: the
//! next command finds the old or the new state at once, without waiting for a
//! lease; the repository is sound; every note and hand edit is there; a file
//! that the stop left stale is never taken for an edit.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Sandbox, Transcript, beside_each_other};

/// How many different points a pass passes through at the least.
const POINTS_MIN: usize = 20;

const NOTE: &str = "extensions/ad_hoc/notes/2026-03-10T09-00-00-tabs.md";
const HAND_EDIT: &str = "- written by hand: ask Grace about the ledger\n";

fn session(number: u32, words: &str) -> Transcript {
    let story = format!(
        "human: {words}
         run: cargo test -q -> fail: assertion failed
         run: cargo test -q -> ok: 12 passed
         agent: Done."
    );
    Transcript::codex(number, "2026-03-09T10:00:00Z", &story)
}

/// A memory with one baseline, then a new session, a note and a hand edit, so
/// that a pass has something to do at each of its steps.
fn prepared() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.session(&session(1, "From now on always run the whole test suite."));
    sandbox.run(&["run"]).success();
    sandbox.session(&session(
        2,
        "Never add a dependency without asking me first.",
    ));
    sandbox.session(&session(3, "Please rename the column in the report."));
    sandbox.write(NOTE, "Always indent with tabs.\n");
    let summary = sandbox.read("memory_summary.md");
    let edited = summary.replace(
        "## User preferences\n",
        &format!("## User preferences\n\n{HAND_EDIT}"),
    );
    assert_ne!(edited, summary);
    sandbox.write("memory_summary.md", &edited);
    sandbox
}

/// Runs to the end and checks everything that a stop must not have cost.
#[track_caller]
fn assert_finishes(sandbox: &Sandbox, stopped_at: &str) {
    let run = sandbox.run(&["run"]);
    assert_eq!(run.code, Some(0), "after {stopped_at}: {}", run.stderr);
    sandbox.assert_sound();
    assert_eq!(
        sandbox.read(NOTE),
        "Always indent with tabs.\n",
        "after {stopped_at}"
    );
    let summary = sandbox.read("memory_summary.md");
    for words in [
        HAND_EDIT.trim_end(),
        "always run the whole test suite",
        "Never add a dependency without asking me first",
        "Always indent with tabs.",
    ] {
        assert!(
            summary.contains(words),
            "after {stopped_at} no {words:?} in\n{summary}"
        );
    }
    assert_eq!(
        sandbox.names("memories/rollout_summaries").len(),
        3,
        "after {stopped_at}"
    );
    let log = sandbox.git(&["log", "--format=%an|%s"]);
    let edits: Vec<&str> = log.lines().filter(|line| line.contains("|edit:")).collect();
    assert!(edits.len() <= 2, "stale files were taken for edits: {log}");
    sandbox.run(&["run"]).success().says("nothing to do");
    sandbox.run(&["check"]).success();
}

#[test]
fn a_pass_has_many_points_to_be_stopped_at() {
    let names: BTreeSet<String> = trace().into_iter().collect();
    assert!(POINTS_MIN <= names.len(), "{names:?}");
    for stage in ["extract", "recaps", "ledger", "consolidate", "publish"] {
        let has_one = names.iter().any(|name| name.starts_with(stage));
        assert!(has_one, "no point of {stage} in {names:?}");
    }
}

#[test]
fn killed_at_any_point_the_next_pass_finishes() {
    // A little more than the points of one pass: where threads take turns,
    // their number differs from run to run.
    let numbers: Vec<usize> = (1..=trace().len()).collect();
    let reached = AtomicUsize::new(0);
    beside_each_other(&numbers, |number| {
        let sandbox = prepared();
        if sandbox.kill_at(&number.to_string(), &["run"]) {
            reached.fetch_add(1, Ordering::Relaxed);
        }
        assert_finishes(&sandbox, &format!("point {number}"));
    });
    let reached = reached.into_inner();
    assert!(POINTS_MIN < reached, "only {reached} points were reached");
}

#[test]
fn frozen_past_its_lease_a_pass_undoes_nothing_of_another() {
    let names: BTreeSet<String> = trace().into_iter().collect();
    let names: Vec<String> = names.into_iter().collect();
    beside_each_other(&names, |name| {
        let mut sandbox = prepared();
        let frozen = sandbox.freeze_at(name, &["run"]);
        // Two hours later; a lock that the frozen process holds is waited for
        // in vain, and that is said.
        sandbox.at("2026-03-10T14:30:00Z");
        let other = sandbox.run(&["run"]);
        let is_fine = matches!(other.code, Some(0 | 3));
        assert!(is_fine, "at {name}: {}", other.stderr);
        let woken = frozen.resume();
        let is_fine = matches!(woken.code, Some(0 | 3));
        assert!(is_fine, "at {name}: {}", woken.stderr);
        assert_finishes(&sandbox, &format!("a freeze at {name}"));
    });
}

/// The points that the prepared pass goes through.
fn trace() -> Vec<String> {
    prepared().trace(&["run"])
}
