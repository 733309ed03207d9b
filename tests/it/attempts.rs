//! Results that stand beside memory, driven as a person drives them: waiting
//! for a word, accepted, rejected, let go; killed anywhere and raced.

use std::collections::BTreeSet;
use std::fs;

use crate::support::{Run, Sandbox, Transcript};

fn session(number: u32) -> Transcript {
    let story = format!("human: Always check report number {number} twice.\nagent: ok");
    Transcript::codex(number, "2026-03-09T10:00:00Z", &story)
}

/// A memory with one baseline; a result over one more session waits.
pub(crate) fn waiting() -> Sandbox {
    let mut sandbox = counted("");
    sandbox.session(&session(1));
    sandbox.run(&["run"]).success();
    // Runs are named by their time.
    sandbox.at("2026-03-10T12:05:00Z");
    sandbox.session(&session(2));
    sandbox
        .run(&["run", "--review"])
        .success()
        .prints("waits for your word")
        .says("memrev accept");
    sandbox
}

/// A box whose back end answers as the offline rules do, but counts.
fn counted(more: &str) -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.configure(&format!("[model]\nbackend = \"replay\"\n{more}"));
    let answers = sandbox.path("answers");
    for folder in ["extract", "consolidate"] {
        fs::create_dir_all(answers.join(folder)).unwrap();
        fs::write(
            answers.join(folder).join("any.json"),
            r#"{"offline": true}"#,
        )
        .unwrap();
    }
    let folder = answers.to_str().unwrap().to_owned();
    sandbox.variable("MEMREV_REPLAY", &folder);
    sandbox.run(&["init"]).success();
    sandbox
}

fn calls(sandbox: &Sandbox) -> usize {
    let log = fs::read_to_string(sandbox.path("answers/requests.jsonl"));
    log.unwrap_or_default().lines().count()
}

/// The run of the newest attempt.
pub(crate) fn newest(sandbox: &Sandbox) -> String {
    let attempts = sandbox.run(&["attempts", "--json"]).success().json();
    attempts[0]["run"].as_str().unwrap().to_owned()
}

fn has_two(sandbox: &Sandbox) -> bool {
    sandbox.read("MEMORY.md").contains("report number 2")
}

#[track_caller]
fn baselines(sandbox: &Sandbox) -> usize {
    let subjects = sandbox.subjects();
    subjects
        .iter()
        .filter(|it| it.starts_with("baseline"))
        .count()
}

#[test]
fn a_result_waits_is_shown_and_becomes_memory_on_the_persons_word() {
    let sandbox = waiting();
    assert!(!has_two(&sandbox));
    let run = newest(&sandbox);
    let asked = calls(&sandbox);
    sandbox
        .run(&["run"])
        .success()
        .prints("no model was asked again");
    assert_eq!(calls(&sandbox), asked);

    let status = sandbox.run(&["status"]).success();
    assert!(
        status
            .stdout
            .contains(&format!("attempt {run} waits for your word"))
    );
    assert!(status.stdout.contains(&format!("`memrev accept {run}` or")));
    sandbox
        .run(&["attempts"])
        .success()
        .prints("would change: MEMORY.md +");
    let shown = sandbox.run(&["attempts", &run]).success();
    assert!(shown.stdout.contains("report number 2"), "{}", shown.stdout);
    sandbox
        .run(&["show", &run])
        .success()
        .prints("report number 2");
    sandbox
        .run(&["consolidate", "--dry-run"])
        .success()
        .prints("no worker would be asked");

    let before = sandbox.fingerprint();
    sandbox
        .run(&["accept", "--dry-run", &run])
        .success()
        .prints("would be accepted: MEMORY.md +");
    assert_eq!(sandbox.fingerprint(), before, "a dry run writes nothing");
    sandbox
        .run(&["accept", &run[..run.len() - 2]])
        .success()
        .prints("accepted as baseline");
    assert!(has_two(&sandbox));
    sandbox.assert_sound();
    assert!(sandbox.subjects()[0].starts_with("baseline: accepted, 1 recap"));
    sandbox.run(&["run"]).success().says("nothing to do");
    assert_eq!(calls(&sandbox), asked);
    sandbox
        .run(&["accept", &run])
        .exit(1)
        .says("no attempt is called");
    let gone = sandbox.run(&["attempts"]).success();
    assert!(
        gone.stderr.contains("no attempt is kept"),
        "{}",
        gone.stderr
    );
}

#[test]
fn the_configuration_can_ask_for_review_each_time() {
    for (more, expected) in [("", 1), ("[worker]\nreview = true\n", 0)] {
        let sandbox = counted(more);
        sandbox.session(&session(1));
        sandbox.run(&["run"]).success();
        assert_eq!(baselines(&sandbox), expected, "{more}");
    }
}

#[test]
fn a_rejected_result_leaves_memory_and_is_not_tried_again_in_the_background() {
    let mut sandbox = waiting();
    let run = newest(&sandbox);
    let before = sandbox.fingerprint();
    sandbox.run(&["reject", "--dry-run", &run]).success();
    assert_eq!(sandbox.fingerprint(), before);
    sandbox
        .run(&["reject", &run])
        .success()
        .prints("its inputs stay pending");
    assert!(!has_two(&sandbox));
    let asked = calls(&sandbox);
    sandbox.at("2026-03-11T12:00:00Z");
    sandbox
        .run(&["run", "--background"])
        .success()
        .prints("you rejected");
    assert_eq!(calls(&sandbox), asked);
    sandbox.run(&["reject", &run]).exit(1).says("rejected");
    sandbox
        .run(&["accept", &run])
        .exit(1)
        .says("nothing of it was kept");
    sandbox
        .run(&["status"])
        .success()
        .prints("tries again what you rejected");
    sandbox.run(&["run"]).success().prints("baseline");
    assert!(has_two(&sandbox));
}

#[test]
fn a_refused_result_says_why_and_what_it_would_change() {
    let mut sandbox = counted("");
    sandbox.session(&session(1));
    sandbox.run(&["run"]).success();
    sandbox.at("2026-03-10T12:05:00Z");
    let wipe = r#"[{"offline": true}, {"edits": [{"write": "MEMORY.md", "text": "Here is the updated file."}], "finish": true}, {"edits": [], "finish": true}, {"offline": true}]"#;
    fs::write(sandbox.path("answers/consolidate/any.json"), wipe).unwrap();
    sandbox.session(&session(2));
    sandbox.run(&["run"]).exit(1).says("memrev attempts");
    let attempts = sandbox.run(&["attempts", "--json"]).success().json();
    let attempt = &attempts[0];
    assert_eq!(attempt["state"], "refused");
    let reasons = attempt["reasons"].to_string();
    assert!(reasons.contains("[M0"), "{reasons}");
    let run = newest(&sandbox);
    let head = sandbox.head();
    sandbox
        .run(&["accept", &run])
        .exit(1)
        .says("nobody can overrule");
    assert_eq!(sandbox.head(), head);
    sandbox.run(&["status"]).success().prints("refused attempt");
}

#[test]
fn edits_that_no_commit_holds_are_taken_in_by_accept() {
    let sandbox = waiting();
    let run = newest(&sandbox);
    let summary = sandbox.read("memory_summary.md");
    let heading = "## General Tips\n";
    let edited = summary.replace(heading, &format!("{heading}\n- by hand: mind the gap\n"));
    assert_ne!(edited, summary);
    sandbox.write("memory_summary.md", &edited);
    sandbox
        .run(&["accept", &run])
        .success()
        .prints("your notes and edits");
    assert!(sandbox.read("memory_summary.md").contains("mind the gap") && has_two(&sandbox));
    sandbox.assert_sound();
}

#[test]
fn a_branch_of_the_persons_is_not_written_to() {
    let sandbox = waiting();
    let run = newest(&sandbox);
    sandbox.git(&["checkout", "-q", "-b", "mine"]);
    for command in ["accept", "run"] {
        let mut arguments = vec![command];
        arguments.extend((command == "accept").then_some(run.as_str()));
        sandbox.run(&arguments).exit(1).says("check out `main`");
    }
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.run(&["accept", &run]).success();
}

#[test]
fn killed_at_any_point_accept_is_done_or_undone_and_never_twice() {
    let trace = {
        let sandbox = waiting();
        let run = newest(&sandbox);
        let file = sandbox.path("trace");
        let stop = format!("trace:{}", file.display());
        let child = sandbox.start_stopping(&stop, &["accept", &run]);
        Run::of(child.wait_with_output().unwrap()).success();
        let text = fs::read_to_string(file).unwrap();
        text.lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    assert!(trace.contains("accept.published"), "{trace:?}");
    for point in &trace {
        let sandbox = waiting();
        let run = newest(&sandbox);
        assert!(sandbox.kill_at(point, &["accept", &run]), "{point}");
        let again = sandbox.run(&["accept", &run]);
        // Gone when the ref had been removed already.
        let is_fine = again.code == Some(0) || again.stderr.contains("no attempt is called");
        assert!(is_fine, "{point}: {}", again.stderr);
        assert!(has_two(&sandbox), "{point}");
        assert_eq!(baselines(&sandbox), 2, "{point}");
        sandbox.assert_sound();
        sandbox.run(&["run"]).success().says("nothing to do");
        let left = sandbox.run(&["attempts", "--json"]).success().json();
        assert_eq!(left.as_array().unwrap().len(), 0, "{point}");
    }
}

#[test]
fn two_words_at_once_publish_at_most_once() {
    let sandbox = waiting();
    let run = newest(&sandbox);
    let first = sandbox.freeze_at("accept.judged", &["accept", &run]);
    sandbox.run(&["accept", &run]).exit(3).says("consolidating");
    sandbox.run(&["run"]).exit(3);
    sandbox.run(&["reject", &run]).success();
    first.resume().exit(3).says("somebody else decided");
    assert!(!has_two(&sandbox));
    assert_eq!(baselines(&sandbox), 1);

    let mut sandbox = waiting();
    let run = newest(&sandbox);
    let first = sandbox.freeze_at("accept.judged", &["accept", &run]);
    // Past its lease.
    sandbox.at("2026-03-10T14:30:00Z");
    sandbox.run(&["accept", &run]).success();
    first.resume().exit(3);
    assert_eq!(baselines(&sandbox), 2);
    sandbox.assert_sound();
}

#[test]
fn old_attempts_are_let_go_and_named() {
    let mut sandbox = counted("");
    sandbox.session(&session(1));
    fs::write(
        sandbox.path("answers/consolidate/any.json"),
        r#"[{"edits": [{"write": "MEMORY.md", "text": "Sorry."}], "finish": true}]"#,
    )
    .unwrap();
    sandbox.run(&["run"]).exit(1);
    let run = newest(&sandbox);
    sandbox
        .run(&["attempts", "--expire"])
        .success()
        .says("nothing to let go");
    sandbox.at("2026-04-10T12:00:01Z");
    sandbox
        .run(&["attempts", "--expire", "--dry-run"])
        .success()
        .prints(&format!("would let go {run}"));
    assert_eq!(newest(&sandbox), run);
    sandbox
        .run(&["attempts", "--expire"])
        .success()
        .prints(&format!("let go {run}"));
    assert_eq!(sandbox.git(&["for-each-ref", "refs/memrev"]), "");
}
