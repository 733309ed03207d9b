//! One wish asked for in several ways, and what the profile counts.

use std::fmt::Write as _;

use super::story::{Folder, both, passes};
use crate::domain::version::MemoryVersion;

/// What two sessions say, and what of it stands in both files.
#[track_caller]
fn check(older: &str, newer: &str, stays: &[&str], goes: &[&str]) {
    for projects in [("p/x", "p/x"), ("p/x", "p/y")] {
        let story = format!(
            "@@ recap a {} 2026-12-01\n## Task 1: one\nPreference signals:\n- always: \"{older}\"\n\
             @@ recap b {} 2026-12-02\n## Task 1: another thing\nPreference signals:\n- always: \"{newer}\"\n",
            projects.0, projects.1
        );
        let (_, output) = passes(MemoryVersion::V2, &story);
        let text = both(&output);
        for words in stays {
            assert!(text.contains(words), "{words:?} is not in\n{text}");
        }
        for words in goes {
            assert!(!text.contains(words), "{words:?} is in\n{text}");
        }
    }
}

#[test]
fn one_wish_asked_for_twice_is_one_line() {
    let long =
        "No, not like that. In this repo changelog entries are one line in the present tense";
    let short = "In this repo changelog entries are one line in the present tense";
    check(long, short, &[short], &["not like that"]);
    check(short, long, &[short], &["not like that"]);
    check(
        "From now on, always run `make lint` before you push anything",
        "Please always run make lint before you push anything",
        &["run make lint before you push"],
        &["From now on"],
    );
    check(
        "从现在开始请用中文写所有的提交信息",
        "请用中文写所有的提交信息",
        &["请用中文写所有的提交信息"],
        &["从现在开始"],
    );
}

#[test]
fn two_wishes_stay_two() {
    for (left, right) in [
        (
            "From now on, always run `make lint` before you push anything",
            "Please always run make test before you push anything",
        ),
        (
            "Use uv for installs. In this repo changelog entries are one line",
            "In this repo changelog entries are one line",
        ),
        (
            "never use tabs in this repo please",
            "always use tabs in this repo please",
        ),
    ] {
        check(left, right, &[left, right], &[]);
    }
}

#[test]
fn the_profile_counts_commands_and_no_messages() {
    let (_, output) = passes(
        MemoryVersion::V1,
        "@@ recap a p/x 2026-12-01\n## Task 1: one\nFailures and how to do differently:\n\
         - `cargo test` failed (line 9): `thread main panicked at x`; then `cargo test --lib` worked (line 12)\n\
         - `assertion failed here` came up, and `npm run build` failed: `npm gone away`, `error in line`\n",
    );
    assert!(
        output
            .summary
            .as_str()
            .contains("- Tools most used: cargo (1), npm (1).\n"),
        "{}",
        output.summary
    );
}

#[test]
fn a_long_summary_of_others_is_shortened_and_a_persons_is_not() {
    let mut lines = String::new();
    for number in 0..1_500 {
        writeln!(
            lines,
            "- fact number {number} of this very long list of things"
        )
        .unwrap();
    }
    let mut folder = Folder::new(MemoryVersion::V2);
    let head = format!(
        "v1\n\n## User Profile\n\n## User preferences\n\n## General Tips\n\n{lines}\n## What's in Memory\n"
    );
    folder.summary = Some(head.clone());
    let recap = "@@ recap a p/x 2026-12-01\n## Task 1: one\n";
    let output = folder.pass(recap);
    let length = output.summary.as_str().len();
    assert!((7_900..=8_000).contains(&length), "{length}");
    folder.summary = Some(head);
    let person = lines.replace("- fact", "fact");
    let output = folder.pass(&format!("{recap}@@ person memory_summary.md\n{person}"));
    assert_eq!(
        output.summary.as_str().matches("fact number").count(),
        1_500
    );
}
