//! Whatever the person's Git is set up to do, the same commits come out.

use std::fs;

use crate::support::{Sandbox, Transcript};

fn session() -> Transcript {
    Transcript::codex(
        1,
        "2026-03-09T10:00:00Z",
        "human: From now on always run the whole test suite.
         run: cargo test -> ok: 12 passed
         agent: ok",
    )
}

/// What one pass left: the commits and the files. Paths inside of recaps differ
/// from box to box, so contents are not compared.
fn commits(sandbox: &Sandbox) -> String {
    let log = sandbox.git(&["log", "--stat", "--format=%s %an %cn %aI", "main"]);
    let tree = sandbox.git(&["ls-tree", "-r", "--name-only", "main"]);
    let modes = sandbox.git(&["ls-files", "--format=%(objectmode) %(path)"]);
    format!("{log}{tree}{modes}")
}

fn hostile_configuration(sandbox: &Sandbox) {
    let hooks = sandbox.path("hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in [
        "pre-commit",
        "commit-msg",
        "post-commit",
        "reference-transaction",
    ] {
        let file = hooks.join(hook);
        fs::write(
            &file,
            format!("#!/bin/sh\ntouch {}/ran-{hook}\nexit 1\n", hooks.display()),
        )
        .unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let template = sandbox.path("template");
    fs::create_dir_all(template.join("info")).unwrap();
    fs::write(template.join("info/exclude"), "*.md\n").unwrap();
    fs::write(
        sandbox.path("user/.gitconfig"),
        format!(
            "[commit]\n\tgpgsign = true\n[core]\n\thooksPath = {hooks}\n\tautocrlf = true\n\tfsmonitor = true\n\
             \texcludesFile = {template}/info/exclude\n[init]\n\ttemplateDir = {template}\n\tdefaultBranch = trunk\n\
             [user]\n\tuseConfigOnly = true\n",
            hooks = hooks.display(),
            template = template.display(),
        ),
    )
    .unwrap();
}

#[test]
fn the_persons_git_settings_change_nothing() {
    let plain = Sandbox::new();
    plain.session(&session());
    plain.run(&["run"]).success();
    let expected = commits(&plain);

    let mut hostile = Sandbox::empty();
    hostile_configuration(&hostile);
    hostile
        .variable("GIT_DIR", "/nowhere/.git")
        .variable("GIT_WORK_TREE", "/nowhere")
        .variable("GIT_INDEX_FILE", "/nowhere/index")
        .variable("GIT_OBJECT_DIRECTORY", "/nowhere/objects")
        .variable("GIT_CONFIG_COUNT", "1")
        .variable("GIT_CONFIG_KEY_0", "core.bare")
        .variable("GIT_CONFIG_VALUE_0", "true")
        .variable("GIT_AUTHOR_NAME", "Mallory");
    hostile.run(&["init"]).success();
    hostile.session(&session());
    hostile.run(&["run"]).success();
    fs::remove_file(hostile.path("user/.gitconfig")).unwrap();
    assert_eq!(commits(&hostile), expected);
    let ran: Vec<_> = fs::read_dir(hostile.path("hooks"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("ran-"))
        .collect();
    assert!(ran.is_empty(), "hooks ran: {ran:?}");
    hostile.assert_sound();
}

#[test]
fn an_outer_repository_is_never_touched() {
    let sandbox = Sandbox::empty();
    let outer = sandbox.path("");
    sandbox.git_in(&outer, &["init", "-q", "-b", "main"]);
    sandbox.git_in(&outer, &["commit", "-q", "--allow-empty", "-m", "outer"]);
    let state = |sandbox: &Sandbox| {
        let head = sandbox.git_in(&outer, &["log", "--format=%H %D"]);
        let index = fs::read(outer.join(".git/index")).unwrap_or_default();
        (head, index)
    };
    let before = state(&sandbox);
    sandbox.run(&["init"]).success();
    sandbox.session(&session());
    sandbox.run(&["run"]).success();
    assert_eq!(state(&sandbox), before);

    fs::rename(sandbox.memories().join(".git"), sandbox.path("taken")).unwrap();
    sandbox.run(&["run"]).exit(1).says("init --rebuild");
    assert_eq!(state(&sandbox), before);
    sandbox.run(&["init", "--rebuild"]).success();
    sandbox.run(&["run"]).success();
    assert_eq!(state(&sandbox), before);
    sandbox.assert_sound();
}

#[test]
fn states_that_are_the_persons_are_left_alone() {
    let sandbox = Sandbox::new();
    sandbox.session(&session());
    sandbox.run(&["run"]).success();
    let head = sandbox.head();

    sandbox.git(&["checkout", "-q", "-b", "mine"]);
    sandbox.run(&["run", "--all"]).exit(1).says("mine");
    sandbox.git(&["checkout", "-q", "main"]);

    sandbox.git(&["checkout", "-q", "--detach"]);
    sandbox.run(&["run", "--all"]).exit(1).says("main");
    sandbox.git(&["checkout", "-q", "main"]);

    fs::write(
        sandbox.memories().join(".git/MERGE_HEAD"),
        format!("{head}\n"),
    )
    .unwrap();
    sandbox.run(&["run", "--all"]).exit(1).says("merge");
    fs::remove_file(sandbox.memories().join(".git/MERGE_HEAD")).unwrap();

    assert_eq!(sandbox.head(), head);
    sandbox.run(&["run"]).success();
}

#[test]
fn a_live_index_lock_is_named_and_never_broken() {
    let sandbox = Sandbox::new();
    sandbox.session(&session());
    let lock = sandbox.memories().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let busy = sandbox.run(&["run"]).exit(3);
    assert!(busy.stderr.contains("index.lock"), "{}", busy.stderr);
    assert!(lock.exists());
    fs::remove_file(&lock).unwrap();
    sandbox.run(&["run"]).success();
    sandbox.assert_sound();
}
