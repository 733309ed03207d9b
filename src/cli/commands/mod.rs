//! One file per command: arguments in, words out.

pub(crate) mod attempts;
pub(crate) mod check;
pub(crate) mod config;
pub(crate) mod consolidate;
pub(crate) mod decide;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod extract;
pub(crate) mod forget;
pub(crate) mod init;
pub(crate) mod inject;
pub(crate) mod log;
pub(crate) mod mode;
pub(crate) mod note;
pub(crate) mod purge;
pub(crate) mod release;
pub(crate) mod reset;
pub(crate) mod revert;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod why;
