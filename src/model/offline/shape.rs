//! The shape of a recap and of a raw memory, shared by the rules that write
//! it and the rules that read it.
//!
//! ```text
//! # fix the parser so that tabs count as one column
//!
//! codex session in `example.org/team/ledger`, cwd `/w/ledger`, branch `main`, 2026-12-01 05:06 to 06:10 UTC.
//!
//! ## Task 1: fix the parser so that tabs count as one column
//!
//! Outcome: success (line 57: `cargo test` passed)
//!
//! Requests:
//! - "fix the parser so that tabs count as one column" (line 12)
//!
//! Preference signals:
//! - always: "From now on run cargo fmt before you commit" (line 33)
//! - correction: "no, count them as one, not as four" (line 41)
//!
//! Key steps:
//! - changed `src/parser.rs` (lines 20-38)
//!
//! Failures and how to do differently:
//! - `cargo test` failed (line 25): `error[E0308]: mismatched types`; then `cargo test --lib` worked (line 57)
//!
//! Reusable knowledge:
//! - `cargo test --lib` works here (line 57)
//!
//! References:
//! - [1] lines 12-57 of the rollout
//! ```
//!
//! Quotations are the person's words, white space joined; what is left out of
//! a long one is marked. A line number of a sub-agent's transcript is written
//! `line 2:17` (part, line). Lists without an entry are left out.

/// Before the number and title of a task's heading.
pub(crate) const TASK_HEADING: &str = "## Task ";

/// Before `success`, `partial`, `uncertain` or `fail`.
pub(crate) const OUTCOME: &str = "Outcome: ";

/// The lists of a task, in their order.
pub(crate) const REQUESTS: &str = "Requests:";
pub(crate) const PREFERENCES: &str = "Preference signals:";
pub(crate) const KEY_STEPS: &str = "Key steps:";
pub(crate) const FAILURES: &str = "Failures and how to do differently:";
pub(crate) const KNOWLEDGE: &str = "Reusable knowledge:";
pub(crate) const REFERENCES: &str = "References:";

/// Before a quotation in the list of preference signals: it is meant beyond
/// this task ("always", "never", "remember").
pub(crate) const ALWAYS: &str = "always: ";

/// Before a quotation that took something back. It holds for its task.
pub(crate) const CORRECTION: &str = "correction: ";

/// How a task ended, by evidence alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Outcome {
    Success,
    Partial,
    Uncertain,
    Fail,
}

impl Outcome {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Partial => "partial",
            Self::Uncertain => "uncertain",
            Self::Fail => "fail",
        }
    }
}
