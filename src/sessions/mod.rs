//! Transcripts of agents, read into sessions.
//!
//! [`discover()`] lists transcript files, [`read_head`] says cheaply which
//! session one holds, [`settle()`] drops second copies and finds out whose
//! history a fork repeats, [`read()`] gives everything that counts. One file
//! per agent knows its wire format; nothing of it leaves this module.
//!
//! # Not in here
//!
//! No clock, no ledger, no decision about eligibility: a session is read the
//! same whoever asks. Nothing is redacted: all text is `Raw`.
//!
//! # Limits
//!
//! Readers stream. Memory is bounded by the named limits in `lines` and
//! `budget`, not by the file.

mod budget;
mod citation;
mod claude;
mod codex;
mod discover;
mod draft;
mod elide;
mod facts;
mod lines;
mod rate_limits;
mod read;
mod records;
mod script;
mod settle;
mod skip;
mod tools;
mod unescape;
mod wire;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::quota::RateLimits;
use crate::domain::session::{Agent, Session, SessionHead};
use crate::domain::time::Timestamp;

/// Where transcripts lie, per agent. A root that does not exist is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Roots {
    /// Such as `~/.codex/sessions`; flat files of the first generation too.
    pub(crate) codex: Vec<PathBuf>,
    /// Such as `~/.claude/projects`.
    pub(crate) claude: Vec<PathBuf>,
    /// The home of memrev: sessions held under its `staging/` are ours.
    pub(crate) home: Option<PathBuf>,
}

/// What [`discover()`] found, sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Discovery {
    pub(crate) found: Vec<Found>,
    pub(crate) skipped: Vec<Skipped>,
}

/// A name that looks like a transcript and is not read, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Skipped {
    /// The path, with what is not UTF-8 or not printable escaped.
    pub(crate) path: String,
    pub(crate) reason: String,
}

/// A transcript file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) agent: Agent,
    pub(crate) path: PathBuf,
    /// Bytes on disk.
    pub(crate) size: u64,
    pub(crate) modified: Timestamp,
    /// Transcripts of sub-agents that belong to this session, sorted.
    pub(crate) sub_agents: Vec<PathBuf>,
    /// Files whose records do not count again here: the parent of a fork, an
    /// earlier state of a resumed session. Filled in by [`settle()`].
    pub(crate) earlier: Vec<PathBuf>,
    /// The home of memrev, when known.
    pub(crate) home: Option<Arc<Path>>,
}

/// Why a transcript gave no session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// It was there when we looked and is not now. Final.
    #[error("the transcript `{}` is gone", path.display())]
    Gone { path: PathBuf },
    /// Nothing in it, or only NUL bytes. Not to be tried again until it changes.
    #[error("the transcript `{}` is empty", path.display())]
    Empty { path: PathBuf },
    /// Not one record of it is known. Not to be tried again until it changes.
    #[error("the transcript `{}` cannot be read: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("could not read the transcript `{}`", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
}

/// Lists the transcripts under `roots`; links are not followed.
pub(crate) fn discover(roots: &Roots) -> Discovery {
    discover::discover(roots)
}

/// Reads what names and dates a session: the first records and the last.
///
/// # Errors
///
/// As [`ReadError`] says.
pub(crate) fn read_head(found: &Found) -> Result<SessionHead, ReadError> {
    read::head(found)
}

/// Reads a whole session, sub-agents included, without what
/// [`Found::earlier`] holds already.
///
/// # Errors
///
/// As [`ReadError`] says. Damage inside the file is no error, see
/// `Session::report`.
pub(crate) fn read(found: &Found) -> Result<Session, ReadError> {
    read::session(found)
}

/// What the session last said about the quota its agent draws on; `None`
/// where it does not say, or is compressed and therefore old.
pub(crate) fn rate_limits(found: &Found) -> Option<RateLimits> {
    match found.agent {
        Agent::Codex => rate_limits::newest(found),
        Agent::Claude => None,
    }
}

/// Leaves one file per session, the one with the longest history, and tells
/// forks and resumed sessions which files they repeat. The result is sorted by
/// thread id and does not depend on the order of the input.
pub(crate) fn settle(heads: Vec<(Found, SessionHead)>) -> Vec<(Found, SessionHead)> {
    settle::settle(heads)
}

impl Found {
    /// One transcript, by its path, as [`discover()`] would find it but without
    /// its sub-agents. `None` when it is no regular file.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn at(agent: Agent, path: &Path, home: Option<&Path>) -> Option<Self> {
        let (size, modified) = crate::sys::fs::size_and_time(path)?;
        Some(Self {
            agent,
            path: path.to_owned(),
            size,
            modified,
            sub_agents: Vec::new(),
            earlier: Vec::new(),
            home: home.map(Arc::from),
        })
    }
}

#[cfg(test)]
mod tests;
