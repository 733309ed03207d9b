//! Emptying a memory.

use crate::support::{Sandbox, Transcript, thread_id};

fn session(number: u32) -> Transcript {
    let story = format!("human: Always check report number {number} twice.\nagent: ok");
    Transcript::codex(number, "2026-03-09T10:00:00Z", &story)
}

#[test]
fn reset_empties_memory_and_keeps_its_history_and_the_modes() {
    let sandbox = Sandbox::new();
    sandbox.session(&session(1));
    sandbox.session(&session(2));
    sandbox.run(&["mode", &thread_id(2), "disabled"]).success();
    sandbox.run(&["run"]).success();
    sandbox.run(&["reset"]).exit(1).says("--yes");
    sandbox.run(&["reset", "--yes"]).success();
    for name in ["MEMORY.md", "memory_summary.md", "raw_memories.md"] {
        assert!(!sandbox.memories().join(name).exists(), "{name}");
    }
    assert!(sandbox.names("extractions/v1").is_empty());
    sandbox.assert_sound();
    let history = sandbox.git(&["log", "-p"]);
    assert!(
        history.contains("report number 1"),
        "git revert can bring it back"
    );

    sandbox.run(&["run"]).success();
    assert!(
        sandbox
            .read("memory_summary.md")
            .contains("report number 1"),
        "it begins anew"
    );
    assert!(
        !sandbox
            .read("memory_summary.md")
            .contains("report number 2"),
        "modes are kept"
    );
}

#[test]
fn reset_does_not_throw_away_edits_that_no_commit_holds() {
    let sandbox = Sandbox::new();
    sandbox.session(&session(1));
    sandbox.run(&["run"]).success();
    let summary = sandbox.read("memory_summary.md");
    sandbox.write("memory_summary.md", &format!("{summary}\n- mine\n"));
    sandbox
        .run(&["reset", "--yes"])
        .exit(1)
        .says("changes that no commit holds");
    assert!(sandbox.read("memory_summary.md").ends_with("- mine\n"));
}

#[test]
fn the_summary_given_is_that_of_the_selected_version() {
    let sandbox = Sandbox::new();
    sandbox.session(&session(1));
    sandbox.run(&["run"]).success();
    sandbox.run(&["inject"]).success().prints("report number 1");
    sandbox.configure("[memories]\nversion = \"v2\"\n");
    assert_eq!(
        sandbox.run(&["inject"]).success().stdout,
        "",
        "there is no summary of version 2"
    );
}
