//! A model at our own tools, in whole passes: what it may do, what it is told
//! when it may not, and that nothing comes of work that is not finished.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::agents::{SUMMARY, handbook, recap_path};
use crate::support::server::{ModelServer, Request, Say};
use crate::support::{Run, Sandbox, Transcript};

/// The answers of a model, one list of calls each; the last one repeats.
type Answers = Vec<Vec<(&'static str, Value)>>;

/// A pass over one session that the rules extract and a model consolidates
/// with `answers`, which are given the path of the recap.
fn pass(
    more: &str,
    answers: impl Fn(&str) -> Answers + Send + Sync + 'static,
) -> (Sandbox, ModelServer, Run) {
    let home = Arc::new(Mutex::new(PathBuf::new()));
    let place = Arc::clone(&home);
    let (server, _) = ModelServer::start(&[], move |number, _: &Request| {
        let answers = answers(&recap_path(&place.lock().unwrap()));
        let calls = answers[number.min(answers.len() - 1)].clone();
        if calls.is_empty() {
            return Say::Text("I am sorry, I would need permission for that.".to_owned()).into();
        }
        Say::Calls(calls).into()
    });
    let mut sandbox = Sandbox::empty();
    sandbox.configure(&format!(
        "[model]\nendpoint = \"{}\"\nkey_env = \"TEST_KEY\"\n[memories]\nconsolidation_model = \"small\"\n[worker]\nkind = \"chat\"\n{more}",
        server.endpoint()
    ));
    sandbox.variable("TEST_KEY", "none");
    sandbox.run(&["init"]).success();
    sandbox.home().clone_into(&mut home.lock().unwrap());
    let story = "human: Always check report number 1 twice.\nagent: ok";
    sandbox.session(&Transcript::codex(1, "2026-03-09T10:00:00Z", story));
    let run = sandbox.run(&["run"]);
    (sandbox, server, run)
}

fn write(path: &str, text: &str) -> (&'static str, Value) {
    ("write", json!({"path": path, "text": text}))
}

fn finish() -> (&'static str, Value) {
    (
        "finish",
        json!({"report": "done", "forgotten": [], "unmatched_notes": []}),
    )
}

#[test]
fn a_valid_result_after_tool_errors_is_accepted_once() {
    let (sandbox, server, run) = pass("", |recap| {
        vec![
            vec![
                write("../outside.md", "x"),
                write("/etc/motd", "x"),
                write("extensions/ad_hoc/notes/n.md", "x"),
                write(recap, "x"),
                ("shell", json!({"command": "rm -rf /"})),
                ("edit", json!({"path": "MEMORY.md", "old": "a", "new": "b"})),
                ("write", json!({"path": "MEMORY.md"})),
            ],
            vec![
                write("MEMORY.md", &handbook(recap)),
                write("memory_summary.md", SUMMARY),
            ],
            vec![finish()],
        ]
    });
    run.success();
    let told = server.requests()[1].text();
    for words in [
        "paths are relative",
        "is not yours to change",
        "there is no such tool",
        "there is no file MEMORY.md",
        "the arguments cannot be used",
    ] {
        assert!(told.contains(words), "no `{words}` in\n{told}");
    }
    assert!(sandbox.read("MEMORY.md").contains("checked twice"));
    assert_eq!(server.requests().len(), 3);
    sandbox.run(&["run"]).success().says("nothing to do");
    assert_eq!(server.requests().len(), 3, "accepted once, asked no more");
    sandbox.assert_sound();
}

#[test]
fn the_steps_of_a_worker_are_limited() {
    for steps_max in [3, 5] {
        let more = format!("steps_max = {steps_max}\n");
        let list = || vec![vec![("list", json!({"folder": ""}))]];
        let (sandbox, server, run) = pass(&more, move |_| list());
        run.exit(4).says("`worker.steps_max`");
        assert_eq!(server.requests().len(), steps_max);
        assert_untouched(&sandbox);
    }
}

#[test]
fn what_is_not_finished_or_not_valid_is_refused() {
    type Script = fn(&str) -> Answers;
    let cases: [(&str, Script, &str); 4] = [
        (
            "only words",
            |_| vec![vec![]],
            "did not end with an explicit finish",
        ),
        (
            "a header only",
            |_| {
                vec![vec![
                    write("memory_summary.md", "v1\n"),
                    write("MEMORY.md", ""),
                    finish(),
                ]]
            },
            "refused",
        ),
        (
            "an apology",
            |_| {
                vec![vec![
                    write("memory_summary.md", "I am sorry."),
                    write("MEMORY.md", "Sorry."),
                    finish(),
                ]]
            },
            "refused",
        ),
        (
            "too large a file",
            |recap| {
                vec![vec![
                    write("memory_summary.md", SUMMARY),
                    write("MEMORY.md", &handbook(recap).repeat(4_000)),
                    finish(),
                ]]
            },
            "refused",
        ),
    ];
    for (name, answers, said) in cases {
        let (sandbox, _server, run) = pass("", answers);
        let words = format!("{}{}", run.stdout, run.stderr);
        assert_eq!(run.code, Some(1), "{name}: {words}");
        assert!(words.contains(said), "{name}: {words}");
        assert_untouched(&sandbox);
        let attempts = sandbox.git(&["for-each-ref", "refs/memrev/attempts"]);
        assert_eq!(attempts.lines().count(), 1, "{name}");
    }
}

#[track_caller]
fn assert_untouched(sandbox: &Sandbox) {
    assert!(!sandbox.memories().join("MEMORY.md").exists());
    let subjects = sandbox.subjects();
    assert!(
        !subjects.iter().any(|it| it.starts_with("baseline")),
        "{subjects:?}"
    );
    let status = sandbox.run(&["status", "--json"]).success().json();
    let pending = &status["versions"][0]["pending_inputs"];
    assert_eq!(pending.as_array().unwrap().len(), 1, "{status}");
    assert_eq!(sandbox.names("staging"), [""; 0]);
}
