//! Consolidations on real folders: real store, ledger and files; only the
//! worker, the clock and the ids are scripted. The `git` program is the judge.

#![expect(
    clippy::disallowed_methods,
    reason = "the judge is another program, and a person edits files as they like"
)]

mod crash;
mod full;
mod history;
mod lazy;
mod offline;
mod refusals;
mod review;
mod support;
mod whole;
