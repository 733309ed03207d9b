//! What is printed for machines follows its schema; what is printed for people
//! equals the reference.

use std::fs;
use std::path::Path;

use crate::support::{Sandbox, Transcript, thread_id};

const COMMANDS: &[&str] = &[
    "init",
    "run",
    "extract",
    "consolidate",
    "status",
    "sessions",
    "note",
    "forget",
    "purge",
    "log",
    "show",
    "diff",
    "why",
    "revert",
    "release",
    "attempts",
    "accept",
    "reject",
    "check",
    "inject",
    "config",
    "mode",
    "reset",
    "demo",
];

/// Arguments, and the schema that their output has to follow.
const OUTPUTS: &[(&[&str], &str)] = &[
    (&["config", "--json"], "schemas/output/config.json"),
    (&["sessions", "--json"], "schemas/output/sessions.json"),
    (&["status", "--json"], "schemas/output/status.json"),
    (&["run", "--json"], "schemas/output/run.json"),
    (&["run", "--json"], "schemas/output/run.json"),
    (
        &["note", "--json", "always use tabs"],
        "schemas/output/note.json",
    ),
    (&["consolidate", "--json"], "schemas/output/run.json"),
    (&["log", "--json"], "schemas/output/log.json"),
    (&["log", "--json", "--lost"], "schemas/output/log.json"),
    (&["show", "--json"], "schemas/output/show.json"),
    (
        &["diff", "--json", "HEAD~1..HEAD"],
        "schemas/output/diff.json",
    ),
    (
        &["note", "--json", "never use spaces"],
        "schemas/output/note.json",
    ),
    (
        &["consolidate", "--json", "--review"],
        "schemas/output/run.json",
    ),
    (&["attempts", "--json"], "schemas/output/attempts.json"),
    (&["attempts", "--json", "2"], "schemas/output/attempts.json"),
    (
        &["attempts", "--json", "--expire"],
        "schemas/output/attempts.json",
    ),
    (&["status", "--json"], "schemas/output/status.json"),
    (
        &["accept", "--json", "--dry-run", "2"],
        "schemas/output/decision.json",
    ),
    (&["accept", "--json", "2"], "schemas/output/decision.json"),
    (
        &["why", "--json", "run the tests"],
        "schemas/output/why.json",
    ),
    (
        &["why", "--json", "memory_summary.md:1"],
        "schemas/output/why.json",
    ),
    (
        &["revert", "--json", "--dry-run", "HEAD"],
        "schemas/output/revert.json",
    ),
    (&["revert", "--json", "HEAD"], "schemas/output/revert.json"),
    (&["release", "--json"], "schemas/output/release.json"),
    (
        &["release", "--json", "--all-of", "HEAD"],
        "schemas/output/release.json",
    ),
    (&["status", "--json"], "schemas/output/status.json"),
    (&["inject", "--json"], "schemas/output/inject.json"),
    (&["check", "--format", "json"], "schemas/output/check.json"),
    (
        &["forget", "--json", "--dry-run", "run the tests"],
        "schemas/output/forget.json",
    ),
    (
        &["forget", "--json", "--yes", "run the tests"],
        "schemas/output/forget.json",
    ),
    (
        &["purge", "--json", "--dry-run", "run the tests"],
        "schemas/output/purge.json",
    ),
    (
        &["purge", "--json", "--yes", "run the tests"],
        "schemas/output/purge.json",
    ),
    (
        &["reset", "--json", "--dry-run"],
        "schemas/output/reset.json",
    ),
    (&["reset", "--json", "--yes"], "schemas/output/reset.json"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[track_caller]
fn assert_follows(schema: &str, output: &serde_json::Value) {
    let text = fs::read_to_string(root().join(schema)).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(output)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{output:#}");
}

#[test]
fn output_for_machines_follows_its_schema() {
    let sandbox = Sandbox::new();
    sandbox.session(&Transcript::codex(
        1,
        "2026-03-09T10:00:00Z",
        "human: From now on always run the tests.\nrun: make -> fail: no rule\nagent: ok",
    ));
    sandbox.session(&Transcript::claude(
        2,
        "2026-03-10T11:00:00Z",
        "human: hi\nagent: hi",
    ));
    for (arguments, schema) in OUTPUTS {
        let output = sandbox.run(arguments).success().json();
        assert_follows(schema, &output);
    }
    let mode = sandbox
        .run(&["mode", "--json", &thread_id(1), "disabled"])
        .success();
    assert_follows("schemas/output/mode.json", &mode.json());
}

#[test]
fn help_pages_equal_the_reference() {
    let sandbox = Sandbox::empty();
    let mut pages = String::from(
        "# Commands\n\nWhat `--help` prints. A test compares the two; \
         `MEMREV_BLESS=1 cargo test help_pages` writes this file anew.\n",
    );
    let top = sandbox.run(&["--help"]).success().stdout;
    pages.push_str(&page("memrev", &top));
    for command in COMMANDS {
        let text = sandbox.run(&[command, "--help"]).success().stdout;
        pages.push_str(&page(&format!("memrev {command}"), &text));
        assert!(top.contains(command), "`{command}` is not in the list");
        assert!(
            text.contains("Example: memrev"),
            "`{command} --help` has no example"
        );
    }
    let file = root().join("docs/commands.md");
    if std::env::var_os("MEMREV_BLESS").is_some() {
        fs::write(&file, &pages).unwrap();
    }
    let stored = fs::read_to_string(&file).unwrap();
    let mut lines = pages.lines().zip(stored.lines());
    let differs = lines.find(|(now, then)| now != then);
    assert!(
        pages == stored,
        "docs/commands.md is out of date ({differs:?}): MEMREV_BLESS=1 writes it"
    );
}

fn page(title: &str, help: &str) -> String {
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    format!(
        "\n## {title}\n\n```text\n{}\n```\n",
        lines.join("\n").trim_end()
    )
}

#[test]
fn wrong_arguments_are_usage_and_write_nothing() {
    let sandbox = Sandbox::empty();
    for arguments in [
        &["rum"][..],
        &["run", "--sesion", "x"],
        &["run", "--since", "soon"],
        &["run", "--session", "../x"],
        &["note"],
        &[],
    ] {
        let run = sandbox.run(arguments);
        let is_usage = run.code == Some(2) || run.stderr.contains("memrev init");
        assert!(is_usage, "{arguments:?}: {:?} {}", run.code, run.stderr);
    }
    assert!(!sandbox.home().exists());
}

#[test]
fn the_demo_runs_and_leaves_nothing() {
    let sandbox = Sandbox::empty();
    let temporary = sandbox.path("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let output = sandbox
        .command(&["demo"])
        .env("TMPDIR", &temporary)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for words in [
        "From now on always run the whole test suite",
        "以后提交信息都用中文写",
        "never mention file names",
        "baseline:",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    let fake = format!("sk-{}-{}", "proj", "Fake0");
    assert!(!text.contains(&fake), "the secret was not taken out");
    assert!(!sandbox.home().exists(), "the demo has a home of its own");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn readme_commands_exist() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let mut named = 0;
    for line in readme.lines() {
        for part in line.split(['`', '$']).flat_map(|part| part.split("    ")) {
            let Some(rest) = part.trim().strip_prefix("memrev ") else {
                continue;
            };
            let command = rest.split_whitespace().next().unwrap_or_default();
            let is_word = command.chars().all(|c| c.is_ascii_lowercase());
            if is_word && COMMANDS.contains(&command) {
                named += 1;
            } else {
                assert!(
                    !is_word || rest.contains(' '),
                    "README names `memrev {command}`"
                );
            }
        }
    }
    assert!(10 < named, "only {named} commands were found in the README");
}
