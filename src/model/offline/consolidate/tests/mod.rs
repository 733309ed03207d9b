//! Each case is text in, text out.

mod story;

use self::story::{Folder, both};
use crate::domain::version::MemoryVersion;

const LEDGER: &str = "\
@@ recap a example.org/ledger 2026-12-01
# fix the refund sign

codex session in `example.org/ledger`, cwd `/w/ledger`.

## Task 1: fix the refund sign

Outcome: success (line 57: `cargo test` passed)

Requests:
- \"fix the refund sign\" (line 12)

Preference signals:
- always: \"From now on run cargo fmt before you commit\" (line 33)
- correction: \"no, keep the old file name\" (line 41)

Failures and how to do differently:
- `cargo test` failed (line 25): `error[E0308]`; then `cargo test --lib` worked (line 57)

Reusable knowledge:
- the dev server listens on port 8080 (line 57)

@@ recap b example.org/ledger 2026-12-02
# add a changelog

## Task 1: add a changelog

Outcome: partial

Reusable knowledge:
- the dev server listens on port 9090 (line 5)
- changelog lines are one sentence each

@@ recap c /other/ledger 2026-11-20
# 修复登录

## Task 1: 修复登录

Outcome: success

Preference signals:
- always: \"从现在开始请用中文写提交信息\" (line 3)
";

#[test]
fn show() {
    for version in MemoryVersion::ALL {
        let mut folder = Folder::new(version);
        let output = folder.pass(LEDGER);
        println!("{}", both(&output));
        println!("{:?} {}", output.retired, output.words);
        let again = folder.pass(LEDGER);
        assert_eq!(both(&output), both(&again));
        let note = "@@ note 2026-12-03 x\nCorrection: the dev server listens on port 7000\n";
        let output = folder.pass(&format!("{LEDGER}{note}"));
        println!("{}", both(&output));
        println!("{:?} {}", output.retired, output.words);
    }
}
