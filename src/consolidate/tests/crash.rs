//! A run that is killed at each of its stop points, and the run after it.
//!
//! The run to be killed is a process of its own: this test binary, asked for
//! the one test below that does something only then.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::support::{Sandbox, good_work};
use crate::domain::version::MemoryVersion;

/// Tells the child which home to work on.
const HOME: &str = "MEMREV_TEST_HOME";

/// Points within the steps of the store that matter most.
const OTHERS: [&str; 3] = [
    "commit.index_written",
    "commit.main_moved",
    "publish.main_moved",
];

#[test]
fn a_run_killed_anywhere_is_finished_or_undone_by_the_next() {
    let points = points();
    let ours = points
        .iter()
        .filter(|name| name.starts_with("consolidate."));
    assert!(10 <= ours.count(), "{points:?}");
    for needed in OTHERS {
        assert!(points.iter().any(|point| point == needed), "{needed}");
    }
    for point in &points {
        let mut sandbox = ready();
        let status = child(sandbox.home.root(), &format!("kill:{point}"));
        assert!(!status, "the child reached {point}");

        // Only one in this process: what the child left is not waited for.
        let head = sandbox.git(&["rev-parse", "HEAD"]);
        sandbox.run();
        sandbox.run_idle();
        assert_eq!(
            sandbox.git(&["status", "--porcelain"]),
            "",
            "{point} {head}"
        );
        let text = sandbox.read("MEMORY.md");
        for words in [
            "node 22",
            "database",
            "Never push on Fridays.",
            "Indent with tabs.",
        ] {
            assert!(text.contains(words), "{point}: {words} is not in\n{text}");
        }
        let baselines = sandbox
            .log()
            .iter()
            .filter(|it| it.starts_with("baseline:"))
            .count();
        assert_eq!(baselines, 2, "{point}: {:?}", sandbox.log());
        assert_eq!(
            sandbox.withheld_count(),
            0,
            "{point}: a stale file is no edit"
        );
    }
}

/// A baseline, then a new recap, a note and a line of the person's.
fn ready() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.extract(1, 1, "the build needs node 22");
    sandbox.run_done();
    sandbox.extract(2, 1, "tests want a database");
    sandbox.note("2025-12-01T10-00-00-tabs", "Indent with tabs.");
    sandbox.write_own_line();
    sandbox
}

/// The names that such a run passes, each once.
fn points() -> BTreeSet<String> {
    let sandbox = ready();
    let trace = sandbox.home.root().join("trace");
    assert!(child(
        sandbox.home.root(),
        &format!("trace:{}", trace.display())
    ));
    let text = std::fs::read_to_string(trace).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Whether the run in a process of its own came to its end.
fn child(home: &Path, stop: &str) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    (command.env(HOME, home).env("MEMREV_STOP", stop)).args([
        "--exact",
        "consolidate::tests::crash::one_run_in_a_process_of_its_own",
    ]);
    command.output().unwrap().status.success()
}

#[test]
fn one_run_in_a_process_of_its_own() {
    if let Ok(home) = std::env::var(HOME) {
        let mut sandbox = Sandbox::at(Path::new(&home), MemoryVersion::V1);
        sandbox.now = sandbox.now.plus_seconds(600);
        sandbox.script(good_work);
        sandbox.run_done();
    }
}
