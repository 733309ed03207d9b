//! Processes beside each other.

use std::collections::BTreeMap;

use crate::support::{Run, Sandbox, Transcript};

const PROCESSES: usize = 10;
const SESSIONS: u32 = 12;

#[test]
fn ten_passes_at_once_extract_each_session_once_and_publish_no_baseline_twice() {
    let sandbox = Sandbox::new();
    for number in 1..=SESSIONS {
        let story = format!("human: Always check report number {number} twice.\nagent: ok");
        sandbox.session(&Transcript::codex(number, "2026-03-09T10:00:00Z", &story));
    }
    let passes: Vec<_> = (0..PROCESSES)
        .map(|index| {
            let trace = format!(
                "trace:{}",
                sandbox.path(&format!("trace-{index}")).display()
            );
            sandbox.start_stopping(&trace, &["run"])
        })
        .collect();
    for pass in passes {
        let run = Run::of(pass.wait_with_output().unwrap());
        assert!(matches!(run.code, Some(0 | 3)), "{}", run.stderr);
    }
    sandbox.run(&["run"]).success();

    let mut stored = 0;
    for index in 0..PROCESSES {
        let trace = std::fs::read_to_string(sandbox.path(&format!("trace-{index}")));
        let text = trace.unwrap_or_default();
        stored += text
            .lines()
            .filter(|line| *line == "extract.stored")
            .count();
    }
    assert_eq!(stored, SESSIONS as usize, "each session is extracted once");
    assert_eq!(sandbox.names("extractions/v1").len(), SESSIONS as usize);

    let mut consumed: BTreeMap<String, usize> = BTreeMap::new();
    let inputs = sandbox.git(&["log", "--format=%(trailers:key=Memrev-Input,valueonly)"]);
    for line in inputs
        .lines()
        .filter(|line| line.contains("rollout_summaries/"))
    {
        *consumed.entry(line.to_owned()).or_default() += 1;
    }
    assert_eq!(consumed.len(), SESSIONS as usize, "{consumed:?}");
    assert!(consumed.values().all(|times| *times == 1), "{consumed:?}");
    sandbox.assert_sound();
}

#[test]
fn twenty_notes_beside_a_consolidation_are_twenty_notes() {
    let sandbox = Sandbox::new();
    sandbox.session(&Transcript::codex(
        1,
        "2026-03-09T10:00:00Z",
        "human: Always use tabs.\nagent: ok",
    ));
    let pass = sandbox.start_stopping("", &["run"]);
    let notes: Vec<_> = (0..20)
        .map(|index| {
            sandbox.start_stopping("", &["note", &format!("remember fact number {index}")])
        })
        .collect();
    for note in notes {
        assert!(note.wait_with_output().unwrap().status.success());
    }
    assert!(pass.wait_with_output().unwrap().status.success());
    let mut sandbox = sandbox;
    sandbox.at("2026-03-10T12:10:00Z").run(&["run"]).success();
    assert_eq!(sandbox.names("memories/extensions/ad_hoc/notes").len(), 20);
    let handbook = sandbox.read("MEMORY.md");
    for index in 0..20 {
        assert!(
            handbook.contains(&format!("fact number {index}")),
            "{handbook}"
        );
    }
    sandbox.assert_sound();
}

/// A memory with one preference, and a session that brings another.
fn with_news() -> Sandbox {
    let sandbox = Sandbox::new();
    let story = "human: Always use tabs in the ledger.\nagent: ok";
    sandbox.session(&Transcript::codex(1, "2026-03-08T10:00:00Z", story));
    sandbox.run(&["run"]).success();
    let story = "human: Never rename a column by yourself.\nagent: ok";
    sandbox.session(&Transcript::codex(2, "2026-03-09T10:00:00Z", story));
    sandbox
}

const BY_HAND: &str = "- by hand: the ledger is Grace's";

#[track_caller]
fn assert_has_both(sandbox: &Sandbox) {
    for file in ["MEMORY.md", "memory_summary.md"] {
        let text = sandbox.read(file);
        assert!(
            text.contains("Never rename a column by yourself"),
            "{file}:\n{text}"
        );
    }
    assert!(sandbox.read("memory_summary.md").contains(BY_HAND));
    sandbox.assert_sound();
}

#[test]
fn an_edit_made_while_the_worker_runs_is_merged_into_the_baseline() {
    let sandbox = with_news();
    let frozen = sandbox.freeze_at("consolidate.worked", &["run"]);
    let summary = sandbox.read("memory_summary.md");
    let edited = summary.replace(
        "## General Tips\n",
        &format!("## General Tips\n\n{BY_HAND}\n"),
    );
    sandbox.write("memory_summary.md", &edited);
    frozen.resume().success();
    assert_has_both(&sandbox);
    let authors = sandbox.git(&[
        "log",
        "--format=%an",
        "-S",
        BY_HAND,
        "--",
        "memory_summary.md",
    ]);
    assert_ne!(authors.trim(), "memrev", "the line is the person's");
}

#[test]
fn an_edit_of_the_same_lines_wins_and_the_attempt_is_kept() {
    let sandbox = with_news();
    let frozen = sandbox.freeze_at("consolidate.worked", &["run"]);
    let summary = sandbox.read("memory_summary.md");
    let edited = summary.replace(
        "## User preferences\n\n",
        &format!("## User preferences\n\n{BY_HAND}\n"),
    );
    assert_ne!(edited, summary);
    sandbox.write("memory_summary.md", &edited);
    let parked = frozen.resume();
    if parked.code == Some(1) {
        assert!(
            parked.stderr.contains("`memrev attempts "),
            "{}",
            parked.stderr
        );
        assert!(sandbox.read("memory_summary.md").contains(BY_HAND));
        sandbox.run(&["status"]).success().prints("attempt");
        sandbox.run(&["run"]).success();
    }
    assert_has_both(&sandbox);
}

/// `git` in the moment in which main has moved and the files have not.
const IN_THE_WINDOW: [&[&[&str]]; 3] = [
    &[&["commit", "-q", "-a", "-m", "by hand"]],
    &[&["add", "-A"], &["commit", "-q", "-m", "by hand"]],
    &[&["stash", "-q", "-u"]],
];

#[test]
fn git_in_the_middle_of_a_publication_withholds_nothing() {
    for commands in IN_THE_WINDOW {
        let mut sandbox = with_news();
        let frozen = sandbox.freeze_at("publish.main_moved", &["run"]);
        for command in commands {
            sandbox.git(command);
        }
        frozen.resume().success();
        if commands[0][0] == "stash" {
            sandbox.git(&["stash", "pop", "-q"]);
        }
        for minute in ["05", "10"] {
            let now = format!("2026-03-10T12:{minute}:00Z");
            sandbox.at(&now).run(&["run"]).success();
        }
        for file in ["MEMORY.md", "memory_summary.md"] {
            let text = sandbox.read(file);
            for line in ["Never rename a column by yourself", "Always use tabs"] {
                assert!(text.contains(line), "{commands:?} {file}:\n{text}");
            }
        }
        assert_eq!(
            sandbox.names("withheld"),
            <[String; 0]>::default(),
            "{commands:?}"
        );
        assert_eq!(sandbox.names("memories/rollout_summaries").len(), 2);
        sandbox.assert_sound();
    }
}

/// Everything that a second Ctrl-C would find half done, one point each.
const INTERRUPTED_AT: [&str; 4] = [
    "extract.claimed",
    "extract.stored",
    "consolidate.staged",
    "consolidate.judged",
];

#[test]
fn ctrl_c_releases_every_lease_and_leaves_the_inputs_pending() {
    for point in INTERRUPTED_AT {
        let sandbox = with_news();
        let before = sandbox.head();
        let frozen = sandbox.freeze_at(point, &["run"]);
        frozen.ask_to_stop();
        let stopped = frozen.resume();
        assert_eq!(stopped.code, Some(130), "{point}: {}", stopped.stderr);
        let stopped = stopped.says("the pass was stopped");
        assert!(!stopped.stderr.contains("warning"), "{}", stopped.stderr);
        assert_eq!(sandbox.head(), before, "{point}");
        let status = sandbox.run(&["status", "--json"]).success().json();
        let jobs = status["versions"][0]["jobs"].as_array().unwrap();
        assert!(
            jobs.iter().all(|job| job["last_error"].is_null()),
            "{point}: {jobs:?}"
        );
        sandbox.run(&["run"]).success().prints("baseline");
        let text = sandbox.read("MEMORY.md");
        assert!(text.contains("Never rename a column by yourself"), "{text}");
        sandbox.assert_sound();
    }
}
