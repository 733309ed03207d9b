//! memrev keeps what coding agents learn in a Git repository of Markdown files.
//!
//! The modules stand in reading order: plain data, text, the outside, the
//! stores, the stages, and what a person or agent calls. `ARCHITECTURE.md`
//! draws the map; a test sees to it that modules only look down.

mod domain;
mod text;
mod validate;

mod sys;

mod config;
mod ledger;
mod model;
mod recaps;
mod sessions;
mod store;

mod consolidate;
mod extract;
mod history;
mod notes;
mod recall;

mod service;

mod cli;

#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;

use std::process::ExitCode;

/// Runs the program with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    cli::main()
}
