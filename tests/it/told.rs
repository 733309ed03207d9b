//! What a person is told who asks for something that is not there, writes
//! down what cannot be, or looks before there is anything to see.

use crate::support::{Sandbox, Transcript, thread_id};

fn session(number: u32) -> Transcript {
    let story = format!("human: Always check report number {number} twice.\nagent: ok");
    Transcript::codex(number, "2026-03-09T10:00:00Z", &story)
}

#[test]
fn a_session_that_is_not_there_or_not_clear_is_said() {
    let sandbox = Sandbox::new();
    for number in 1..=2 {
        sandbox.session(&session(number));
    }
    let before = sandbox.fingerprint();
    for command in ["run", "extract"] {
        for more in [&["--dry-run"][..], &[]] {
            let nope = [&[command, "--session", "nope"], more].concat();
            let run = sandbox.run(&nope).exit(1);
            run.says("there is no session `nope`")
                .says("memrev sessions");
            let both = [&[command, "--session", "0"], more].concat();
            let run = sandbox.run(&both).exit(1).says("2 sessions begin with `0`");
            run.says(&thread_id(1)).says(&thread_id(2));
        }
    }
    sandbox
        .run(&["mode", "nope", "disabled"])
        .exit(1)
        .says("there is no session");
    sandbox
        .run(&["mode", "nope"])
        .exit(1)
        .says("there is no session");
    assert_eq!(sandbox.fingerprint(), before, "nothing was written");

    sandbox.run(&["run", "--session", &thread_id(2)]).success();
    assert_eq!(sandbox.names("extractions/v1").len(), 1);
    assert!(sandbox.read("MEMORY.md").contains("report number 2"));
}

#[test]
fn before_init_the_next_step_is_named() {
    let sandbox = Sandbox::empty();
    for command in [&["run"][..], &["consolidate"], &["extract"], &["note", "x"]] {
        let run = sandbox.run(command).exit(1);
        run.says("memrev is not set up here yet")
            .says("run `memrev init` first");
    }
    assert!(!sandbox.home().exists());
}

#[test]
fn a_log_without_an_answer_says_so() {
    let mut sandbox = Sandbox::new();
    sandbox.session(&session(1));
    sandbox.run(&["run"]).success();
    // The profile counts sessions: a new count is no loss.
    sandbox.session(&session(2));
    sandbox.at("2026-03-11T12:00:00Z").run(&["run"]).success();
    let log = sandbox.run(&["log", "--lost"]).success();
    let log = log.says("nothing was lost: no entry left memory in");
    assert_eq!(log.stdout, "");
    let log = sandbox.run(&["log", "--worker", "nobody"]).success();
    assert_eq!(log.says("no commit is like that").stdout, "");
}

#[test]
fn numbers_out_of_bounds_are_refused_and_none_at_all_is_none() {
    let sandbox = Sandbox::new();
    sandbox.session(&session(1));
    for (line, said) in [
        (
            "[model]\ncalls_per_day_max = -1",
            "`model.calls_per_day_max` must be 0 to 1000000, not -1",
        ),
        (
            "[worker]\nsteps_max = 0",
            "`worker.steps_max` must be 1 to 10000, not 0",
        ),
        (
            "[guard]\nretired_percent_max = 101",
            "must be 0 to 100, not 101",
        ),
        (
            "[inject]\nsummary_bytes_max = 99999",
            "must be 1000 to 10000, not 99999",
        ),
    ] {
        sandbox.configure(line);
        sandbox
            .run(&["run"])
            .exit(1)
            .says(said)
            .says("config.toml:4");
    }
    sandbox.configure("[memories]\nmax_unused_days = 999");
    let shown = sandbox.run(&["config"]).success();
    shown.prints("config.toml:4 says 999, out of bounds");

    for key in [
        "calls_per_day_max",
        "tokens_per_day_max",
        "calls_per_pass_max",
    ] {
        sandbox.configure(&format!(
            "[model]\nbackend = \"command\"\ncommand = [\"/bin/false\"]\n{key} = 0"
        ));
        sandbox.run(&["run"]).says(&format!("`model.{key}`"));
        let status = sandbox.run(&["status", "--json"]).success().json();
        assert_eq!(status["spend_today"].as_array().unwrap().len(), 0, "{key}");
    }
    sandbox.configure(
        "[model]\nbackend = \"command\"\ncommand = [\"/bin/false\"]\ncalls_per_day_max = 0",
    );
    sandbox
        .run(&["status"])
        .success()
        .prints("no call is made: `model.calls_per_day_max` is 0");
}
