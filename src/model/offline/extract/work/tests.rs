//! Commands, what they are and what came of them.

use super::{Remedy, failures, gather};
use crate::model::offline::extract::fixture::items;

#[test]
fn a_failure_is_joined_with_what_worked_later() {
    check_failures(
        "run cargo test | failed error: a\nrun cargo test --lib | ok\nrun cargo test | ok",
        "cargo test x1 -> instead cargo test --lib",
    );
    check_failures(
        "run make | failed error: a\nrun ls | ok\nrun make | ok",
        "make x1 -> again",
    );
    check_failures(
        "run make | failed error: a\nrun make | failed error: a",
        "make x2 -> nothing",
    );
    check_failures(
        "run make | ok\nrun make | failed error: a",
        "make x1 -> nothing",
    );
    check_failures(
        "run rg nothing | failed\nrun cat none | failed No such file",
        "",
    );
}

#[test]
fn another_program_that_did_the_same_is_the_remedy() {
    check_failures(
        "run npm test -- cart | failed use pnpm\nrun pnpm test cart | ok",
        "npm test -- cart x1 -> instead pnpm test cart",
    );
    check_failures(
        "run python 脚本/汇总.py | failed No module\nrun git status | ok\nrun uv run 脚本/汇总.py | ok",
        "python 脚本/汇总.py x1 -> instead uv run 脚本/汇总.py",
    );
    check_failures(
        "run zprof | failed not found\nrun zsh -ic 'zmodload zsh/zprof; zprof' | ok",
        "zprof x1 -> instead zsh -ic 'zmodload zsh/zprof; zprof'",
    );
    check_failures(
        "run zprof | failed not found\nrun cargo build | ok",
        "zprof x1 -> nothing",
    );
}

#[test]
fn what_ran_between_two_runs_is_the_lesson() {
    check_failures(
        "run pytest tests/a.py | failed refused\nrun docker compose up -d db | ok\nrun pytest tests/a.py | ok",
        "pytest tests/a.py x1 -> again docker compose up -d db",
    );
    check_failures(
        "run make | failed x\nrun a | ok\nrun b | ok\nrun c | ok\nrun make | ok",
        "make x1 -> again",
    );
}

#[track_caller]
fn check_failures(story: &str, expected: &str) {
    let items = items(story);
    let work = gather(&items, None);
    let told: Vec<String> = (failures(&work.commands, &work.commands).iter())
        .map(|failure| {
            let remedy = match &failure.remedy {
                Remedy::None => "nothing".to_owned(),
                Remedy::Again { between, .. } => {
                    let helped: Vec<_> = between.iter().map(|act| act.line.as_str()).collect();
                    format!("again {}", helped.join(" + ")).trim().to_owned()
                }
                Remedy::Instead(command) => format!("instead {}", command.line),
            };
            format!("{} x{} -> {remedy}", failure.command.line, failure.times)
        })
        .collect();
    assert_eq!(told.join("; "), expected, "{story}");
}

#[test]
fn a_pipe_that_hides_a_failure_proves_nothing() {
    let items = items(
        "run cargo test 2>&1 | tail -3 | ok error: test failed\nrun cargo test 2>&1 | tail -3 | ok test result: ok",
    );
    let results: Vec<_> = gather(&items, None)
        .commands
        .iter()
        .map(|command| command.succeeded)
        .collect();
    assert_eq!(results, [None, Some(true)]);
}

#[test]
fn what_came_from_outside_is_no_work() {
    let work = gather(
        &items("external run this: cargo test\nedit /w/a.rs\nedit /other/b.rs"),
        Some("/w"),
    );
    assert!(work.commands.is_empty());
    let files: Vec<_> = work.files_in(&(0..9)).into_keys().collect();
    assert_eq!(files, ["/other/b.rs", "a.rs"]);
}
