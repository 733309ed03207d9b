//! Whole recaps of sessions told as stories.

use proptest::prelude::{ProptestConfig, prop, proptest};

use super::{Found, find, fixture, slug};
use crate::domain::id::ThreadId;
use crate::domain::session::Agent;
use crate::domain::text::Redacted;
use crate::model::SessionFacts;
use crate::model::offline::extract::render::RECAP_BYTES_MAX;
use crate::text::redact::redact_str;

const STORY: &str = "\
context <environment_context>\n</environment_context>
human Fix the parser so that tabs count as one column. From now on run cargo fmt before you commit.
say I will look at the code
run rg tab_width src | ok src/parser.rs: tab_width
edit /w/ledger/src/parser.rs
run cargo test | failed running 3 tests\nerror[E0308]: mismatched types\n --> src/parser.rs:12
edit /w/ledger/src/lexer.rs
run cargo test --lib | ok test result: ok. 3 passed
final All tests pass now. I changed two files.
human no, count them as one, not as four
edit /w/ledger/src/parser.rs
run cargo test --lib | ok test result: ok. 3 passed
final Done.
human Thanks! Now write the announcement for the next release of our website
final Here it is.";

#[test]
fn a_recap_tells_requests_signals_work_and_where_it_stands() {
    let expected = "\
# Fix the parser so that tabs count as one column

codex session in `example.org/team/ledger`, cwd `/w/ledger`, branch `main`, 2026-12-01 05:00 to 06:10 UTC.

## Task 1: Fix the parser so that tabs count as one column

Outcome: success (line 18: \"Thanks!\")

Requests:
- \"Fix the parser so that tabs count as one column. From now on run cargo fmt before you commit.\" (line 2)

Preference signals:
- always: \"From now on run cargo fmt before you commit.\" (line 2)
- correction: \"no, count them as one, not as four\" (line 13)

Key steps:
- changed `src/lexer.rs`, `src/parser.rs` (lines 6-14)
- the assistant's last words: \"Done.\" (line 17)

Failures and how to do differently:
- `cargo test` failed (line 8): `error[E0308]: mismatched types`; then `cargo test --lib` worked (line 11)

Reusable knowledge:
- `cargo test --lib` works here (line 11)

References:
- [1] lines 2-17 of the rollout

## Task 2: Now write the announcement for the next release of our website

Outcome: uncertain (no evidence)

Requests:
- \"Thanks! Now write the announcement for the next release of our website\" (line 18)

Key steps:
- the assistant's last words: \"Here it is.\" (line 19)

References:
- [1] lines 18-19 of the rollout
";
    assert_eq!(recap(STORY), expected);
}

#[test]
fn a_raw_memory_has_front_matter_and_a_block_for_each_task() {
    let raw_memory = found(STORY).unwrap().raw_memory;
    let expected = "\
---
description: Fix the parser so that tabs count as one column
task: Fix the parser so that tabs count as one column
task_group: ledger
task_outcome: partial
cwd: /w/ledger
keywords: parser.rs, lexer.rs, count, before, column, commit, parser, cargo
---

### Task 1: Fix the parser so that tabs count as one column

task: Fix the parser so that tabs count as one column
task_group: ledger
task_outcome: success

Preference signals:
- always: \"From now on run cargo fmt before you commit.\" (line 2)
";
    assert!(raw_memory.starts_with(expected), "{raw_memory}");
}

fn recap(story: &str) -> String {
    found(story).map_or_else(String::new, |found| found.recap)
}

fn found(story: &str) -> Option<Found> {
    find(&facts(), &fixture::items(story))
}

fn facts() -> SessionFacts {
    let text = |text: &str| Some(redact_str(text));
    SessionFacts {
        agent: Agent::Codex,
        thread_id: ThreadId::parse("0194f5a6-89ab-7cde-8123-456789abcdef").unwrap(),
        rollout_path: Redacted::default(),
        cwd: text("/w/ledger"),
        project: text("example.org/team/ledger"),
        git_branch: text("main"),
        started_at: Some(fixture::BEGIN),
        updated_at: fixture::BEGIN.plus_seconds(70 * 60),
    }
}
