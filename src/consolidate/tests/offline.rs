//! The offline rules through whole passes: what they make is accepted.

use super::support::{Sandbox, recap_of};
use crate::domain::recap::Recap;
use crate::domain::version::MemoryVersion;
use crate::model::Model as _;
use crate::model::offline::Offline;
use crate::recaps::Extractions;
use crate::sys::lock::FileLock;
use crate::text::redact::redact_str;

const REFUNDS: &str = "\
# fix the refund sign

codex session in `example.org/demo`, cwd `/work/demo`.

## Task 1: fix the refund sign

Outcome: success (line 57: `cargo test` passed)

Requests:
- \"fix the refund sign\" (line 12)

Preference signals:
- always: \"From now on run cargo fmt before you commit\" (line 33)

Failures and how to do differently:
- `cargo test` failed (line 25): `error[E0308]`; then `cargo test --lib` worked (line 57)

Reusable knowledge:
- the dev server listens on port 8080 (line 57)
";

const CHANGELOG: &str = "\
# add a changelog

## Task 1: add a changelog

Outcome: partial

Reusable knowledge:
- changelog lines are one sentence each (line 5)
- releases go out on Tuesdays (line 9)
";

const LOGIN: &str = "\
# 修复登录

## Task 1: 修复登录

Outcome: success

Preference signals:
- always: \"从现在开始请用中文写提交信息\" (line 3)
";

#[test]
fn a_life_of_memory_with_the_offline_rules() {
    for version in MemoryVersion::ALL {
        let mut sandbox = offline(version);
        extract(&sandbox, 1, 1, REFUNDS);
        extract(&sandbox, 2, 1, CHANGELOG);
        extract(&sandbox, 3, 1, LOGIN);
        sandbox.run_done();
        sandbox.run_idle();
        let says = |sandbox: &Sandbox, words: &str| {
            let handbook = if version == MemoryVersion::V1 {
                sandbox.read("MEMORY.md")
            } else {
                String::new()
            };
            (handbook + &sandbox.read("memory_summary.md")).contains(words)
        };
        assert!(says(&sandbox, "cargo fmt") && says(&sandbox, "中文"));

        // A newer recap that says something else of the same.
        extract(&sandbox, 1, 2, &REFUNDS.replace("port 8080", "port 9090"));
        sandbox.run_done();
        assert!(!says(&sandbox, "port 8080"));

        sandbox.note(
            "2025-12-01T10-00-00-correct",
            "Correction: the dev server listens on port 7000",
        );
        sandbox.run_done();
        assert!(!says(&sandbox, "port 9090") && says(&sandbox, "port 7000"));

        sandbox.note(
            "2025-12-01T11-00-00-forget",
            "Forget: From now on run cargo fmt before you commit",
        );
        sandbox.run_done();
        assert!(!says(&sandbox, "cargo fmt"));
        assert!(sandbox.withheld_count() > 0);

        // The person's line stays, what they removed stays away.
        let file = if version == MemoryVersion::V1 {
            "MEMORY.md"
        } else {
            "memory_summary.md"
        };
        sandbox.replace(
            file,
            "## User preferences\n",
            "## User preferences\n\n- Never push on Fridays.\n",
        );
        extract(
            &sandbox,
            2,
            2,
            &format!("{CHANGELOG}- drafts live in `docs/next.md` (line 20)\n"),
        );
        sandbox.run_done();
        assert!(says(&sandbox, "Never push on Fridays."));

        sandbox.remove(&sandbox.recap_file(3));
        sandbox.run_done();
        assert!(version == MemoryVersion::V2 || !sandbox.read(file).contains("中文"));
        sandbox.run_idle();
    }
}

#[test]
fn many_new_sessions_may_push_old_topics_out_of_the_summary() {
    for version in MemoryVersion::ALL {
        let mut sandbox = offline(version);
        let body = |n: u8| {
            let word = ["alpha", "beta", "gamma", "delta", "omega"][usize::from(n % 5)];
            REFUNDS
                .replace(
                    "fix the refund sign",
                    &format!("teach module {word}{n} about case {n}"),
                )
                .replace("port 8080", &format!("socket /run/{word}{n}"))
        };
        for n in 1..=45 {
            extract(&sandbox, n, i64::from(n % 20), &body(n));
        }
        sandbox.run_done();
        for n in 46..=90 {
            extract(&sandbox, n, 20 + i64::from(n % 3), &body(n));
        }
        sandbox.run_done();
        assert!(sandbox.read("memory_summary.md").len() <= sandbox.policy.summary_bytes_max);
        sandbox.run_idle();
    }
}

#[test]
fn many_sessions_may_leave_at_once() {
    for version in MemoryVersion::ALL {
        let mut sandbox = offline(version);
        for n in 1..=40 {
            let subject = SUBJECTS[usize::from(n) % SUBJECTS.len()];
            let body = REFUNDS
                .replace("refund sign", &format!("{subject} in case {n}"))
                .replace(
                    "run cargo fmt",
                    &format!("think of the {subject} and of {n}"),
                );
            extract(&sandbox, n, i64::from(n), &body);
        }
        sandbox.run_done();
        sandbox.policy.recaps_max = 8;
        sandbox.run_done();
        let summary = sandbox.read("memory_summary.md");
        assert!(!summary.contains("in case 7"), "{summary}");
        assert!(summary.contains("in case 40"), "{summary}");
        sandbox.run_idle();
    }
}

#[test]
fn a_person_may_delete_as_many_lines_as_they_like() {
    for version in MemoryVersion::ALL {
        let mut sandbox = offline(version);
        for n in 1..=16 {
            let subject = SUBJECTS[usize::from(n) - 1];
            let wish = format!("From now on keep the {subject} in its own file");
            let body = REFUNDS.replace("From now on run cargo fmt before you commit", &wish);
            extract(
                &sandbox,
                n,
                i64::from(n),
                &body.replace("refund sign", subject),
            );
        }
        sandbox.run_done();
        let start = sandbox.head().to_string();
        let summary = sandbox.read("memory_summary.md");
        let is_wish = |line: &&str| line.contains("From now on keep the");
        let wishes = summary.lines().filter(is_wish).count();
        assert!(wishes > 10, "{summary}");
        let kept: Vec<&str> = summary.lines().filter(|line| !is_wish(line)).collect();
        sandbox.write("memory_summary.md", &format!("{}\n", kept.join("\n")));
        sandbox.run_done();
        assert!(
            !sandbox
                .read("memory_summary.md")
                .contains("From now on keep")
        );
        sandbox.run_idle();

        // A reset brings the lines back into the tree, and lifts nothing.
        sandbox.git(&["reset", "-q", "--hard", &start]);
        sandbox.note("2025-12-01T10-00-00-tabs", "Indent with tabs.");
        sandbox.run_done();
        assert!(
            sandbox
                .read("memory_summary.md")
                .contains("Indent with tabs")
        );
        sandbox.run_idle();
    }
}

#[test]
fn a_reverted_baseline_does_not_forbid_its_counts() {
    let mut sandbox = offline(MemoryVersion::V1);
    extract(&sandbox, 1, 1, REFUNDS);
    sandbox.run_done();
    extract(&sandbox, 2, 1, CHANGELOG);
    sandbox.run_done();
    sandbox.git(&["revert", "--no-edit", "HEAD"]);
    sandbox.run_idle();
    // Two sessions once more.
    extract(&sandbox, 3, 1, LOGIN);
    sandbox.run_done();
    assert!(sandbox.read("memory_summary.md").contains("中文"));
}

/// Sixteen things that share no words.
const SUBJECTS: [&str; 16] = [
    "parser grammar",
    "colour palette",
    "billing ledger",
    "weather widget",
    "search index",
    "kernel module",
    "mail template",
    "audio mixer",
    "garden planner",
    "chess engine",
    "map renderer",
    "queue worker",
    "font loader",
    "tax table",
    "robot arm",
    "login page",
];

fn offline(version: MemoryVersion) -> Sandbox {
    let mut sandbox = Sandbox::of(version);
    sandbox.script(|request| Offline.consolidate(request));
    sandbox
}

fn extract(sandbox: &Sandbox, n: u8, hours: i64, body: &str) {
    let mut recap: Recap = recap_of(n, hours, "");
    recap.header.raw_memory = None;
    recap.body = redact_str(body);
    let lock_file = sandbox.home.extractions_lock(sandbox.version);
    let lock = FileLock::acquire(&lock_file, std::time::Duration::from_secs(5)).unwrap();
    let extractions = Extractions::open(sandbox.home.root(), sandbox.version);
    extractions.store(&lock, &recap).unwrap();
}

#[test]
fn a_line_that_a_person_rewrote_wholly_is_in_both_files() {
    for file in ["MEMORY.md", "memory_summary.md"] {
        let mut sandbox = offline(MemoryVersion::V1);
        extract(&sandbox, 1, 1, REFUNDS);
        sandbox.run_done();
        let other = if file == "MEMORY.md" {
            "memory_summary.md"
        } else {
            "MEMORY.md"
        };
        let old = "cargo fmt before you commit";
        assert!(sandbox.read(other).contains(old), "{}", sandbox.read(other));
        let text = sandbox.read(file);
        let line = text
            .lines()
            .find(|line| line.contains(old))
            .unwrap()
            .to_owned();
        let new = "提交信息要简短，不要写长句";
        sandbox.replace(file, &line, &format!("- {new}"));
        sandbox.run_done();
        let (here, there) = (sandbox.read(file), sandbox.read(other));
        assert!(here.contains(new) && !here.contains(old), "{here}");
        assert!(there.contains(new) && !there.contains(old), "{there}");
        // The old words come from the recaps in every pass.
        sandbox.extract(9, 1, "fact nine stands for itself");
        sandbox.run_done();
        let (here, there) = (sandbox.read(file), sandbox.read(other));
        assert!(here.contains(new) && there.contains(new), "{here}\n{there}");
        assert!(
            !here.contains(old) && !there.contains(old),
            "{here}\n{there}"
        );
    }
}
