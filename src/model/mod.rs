//! One request to one back end.
//!
//! A back end answers two kinds of request: turn one session into a recap
//! ([`ExtractionRequest`]), or edit the staging folder ([`ConsolidationRequest`]).
//! Calls block and may come from several threads at once.
//!
//! # Not in here
//!
//! No budgets and no validation: the stages do that, the same way for every
//! back end. A back end that costs something asks its [`Meter`] before each
//! call, and tells it what the call used up. What a back end says is [`Raw`]
//! and believed by nobody.

use std::fmt;
use std::path::Path;

use crate::domain::entry::{Entry, Rewriting};
use crate::domain::id::ThreadId;
use crate::domain::item::{Item, Trust};
use crate::domain::path::TreePath;
use crate::domain::quota::RateLimits;
use crate::domain::session::Agent;
use crate::domain::text::{Raw, Redacted};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::Withheld;
use crate::sys::fs::FsError;

pub(crate) mod api;
pub(crate) mod command;
mod finish;
pub(crate) mod offline;
pub(crate) mod protocol;
pub(crate) mod replay;
pub(crate) mod worker;

/// What can answer a request.
pub(crate) trait Model: Send + Sync {
    /// Its name in recap headers, trailers and the ledger.
    fn name(&self) -> &str;

    /// Whether a call costs nothing: no money, no quota, no limits.
    fn is_free(&self) -> bool;

    /// The agent whose quota its calls use up, if any.
    fn draws_on(&self) -> Option<Agent> {
        None
    }

    /// Input tokens that fit, where the back end knows it. The effective
    /// share is taken off by the caller.
    fn context_tokens(&self) -> Option<usize> {
        None
    }

    /// Most tokens of a prompt, where a person set that.
    fn input_tokens_max(&self) -> Option<usize> {
        None
    }

    /// Whether it applies notes by the rules that code knows. For any other
    /// worker code does it before and looks after.
    fn applies_notes(&self) -> bool {
        false
    }

    /// Turns one session into the text of a reply.
    ///
    /// # Errors
    ///
    /// [`ModelError`], when there is no reply that could be looked at.
    fn extract(&self, request: &ExtractionRequest<'_>) -> Result<Reply, ModelError>;

    /// Edits the staging folder.
    ///
    /// # Errors
    ///
    /// [`ModelError`]; what is in staging then is worth nothing.
    fn consolidate(&self, request: &ConsolidationRequest<'_>) -> Result<WorkerReport, ModelError>;
}

/// What a call may cost, and whether it is still wanted. The stages implement
/// it; it may be asked from several threads.
pub(crate) trait Meter: Sync {
    /// Whether the answer is still wanted. Asked every fraction of a second
    /// while a call is under way; `false` means stop at once, with
    /// [`ModelError::Cancelled`].
    fn keep_going(&self) -> bool;

    /// Takes one call out of the budgets, before it is made; retries count.
    ///
    /// # Errors
    ///
    /// [`ModelError::LimitReached`]: then the call must not be made.
    fn take_call(&self) -> Result<(), ModelError>;

    /// Writes down what a call turned out to cost, whether its answer was any
    /// good or not. `calls` does not count here.
    fn add_tokens(&self, tokens: Tokens);

    /// What the service said of its limits.
    fn note_limits(&self, limits: &RateLimits);
}

/// For what costs nothing: a test's request.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Unmetered {
    pub(crate) is_wanted: bool,
}

#[cfg(test)]
impl Meter for Unmetered {
    fn keep_going(&self) -> bool {
        self.is_wanted
    }

    fn take_call(&self) -> Result<(), ModelError> {
        Ok(())
    }

    fn add_tokens(&self, _: Tokens) {}

    fn note_limits(&self, _: &RateLimits) {}
}

/// A session to be turned into a recap.
///
/// Back ends that read prompts call [`ExtractionRequest::messages`]; the
/// offline rules look at the items, and then no prompt is rendered.
pub(crate) struct ExtractionRequest<'a> {
    pub(crate) version: MemoryVersion,
    pub(crate) facts: &'a SessionFacts,
    /// Everything that counts in the session, in source order.
    pub(crate) items: &'a [Item<Redacted>],
    /// The JSON schema that the reply must meet.
    pub(crate) schema: &'static str,
    /// The last reply to this request was cut at its output limit: give more.
    pub(crate) wants_longer_reply: bool,
    pub(crate) meter: &'a dyn Meter,
    pub(crate) render: &'a (dyn Fn() -> Vec<Redacted> + Sync),
}

impl ExtractionRequest<'_> {
    /// The prompt as consecutive user messages, each small enough to be sent.
    pub(crate) fn messages(&self) -> Vec<Redacted> {
        (self.render)()
    }
}

/// What is known of a session besides its items, fit to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionFacts {
    pub(crate) agent: Agent,
    pub(crate) thread_id: ThreadId,
    pub(crate) rollout_path: Redacted,
    pub(crate) cwd: Option<Redacted>,
    pub(crate) project: Option<Redacted>,
    pub(crate) git_branch: Option<Redacted>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) updated_at: Timestamp,
    /// An answer in it named recaps: what its assistant says may be our own
    /// text, which is never evidence.
    pub(crate) uses_memory: bool,
}

/// What a model said, before anybody believed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) text: Raw,
    /// Lowest trust of what the reply rests on, where the back end can tell;
    /// `None` leaves it to what the session holds.
    pub(crate) rests_on: Option<Trust>,
    /// The back end says that the output limit ended it.
    pub(crate) is_cut: bool,
    pub(crate) tokens: Tokens,
}

/// What one or several calls used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) calls: u64,
    pub(crate) input: u64,
    pub(crate) output: u64,
}

impl Tokens {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
        }
    }
}

/// Whether the memory files are made anew or brought up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerMode {
    Init,
    Incremental,
}

impl fmt::Display for WorkerMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Init => "init",
            Self::Incremental => "incremental",
        })
    }
}

/// A staging folder to be edited.
pub(crate) struct ConsolidationRequest<'a> {
    pub(crate) version: MemoryVersion,
    /// The private copy; nothing in it is live.
    pub(crate) staging: &'a Path,
    pub(crate) prompt: Redacted,
    /// What came, changed or left since the last baseline, inputs only. The
    /// new versions are in staging.
    pub(crate) changes: &'a [ChangedInput],
    pub(crate) withheld: &'a [Withheld],
    /// Entries that a person wrote or reworded: only a note may change them.
    pub(crate) person_entries: &'a [Entry],
    /// What a person's lines took the place of. For rules only: the old words
    /// are withheld, and belong in no prompt.
    pub(crate) rewritings: &'a [Rewriting],
    pub(crate) summary_bytes_max: usize,
    /// What was wrong with the first result, when this is the second try.
    pub(crate) diagnostics: Option<&'a [String]>,
    /// Whether the work is still wanted (time, lease), and what it may cost.
    pub(crate) meter: &'a dyn Meter,
}

/// An input that came, changed or went since the last baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedInput {
    pub(crate) path: TreePath,
    /// The version that a baseline consumed before; `None` for a new input.
    pub(crate) old: Option<Raw>,
    /// It is not in staging any more.
    pub(crate) is_removed: bool,
}

/// What a worker says about its work. Nothing in it is taken as proof.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WorkerReport {
    /// It ended with an explicit finish.
    pub(crate) finished: bool,
    /// It was asked by the prompt of the request; the offline rules are not.
    pub(crate) has_read_prompt: bool,
    /// Its own words, for the commit message.
    pub(crate) words: Redacted,
    pub(crate) retired: Vec<Retired>,
    /// New recaps in which it found nothing worth keeping.
    pub(crate) skipped: Vec<Skipped>,
    /// Notes that asked for a change of something that is not there.
    pub(crate) unmatched_notes: Vec<TreePath>,
    /// Text of entries that a forget note removed: to be withheld.
    pub(crate) forgotten: Vec<String>,
    pub(crate) tokens: Tokens,
}

/// An entry the worker took out on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retired {
    pub(crate) entry: String,
    pub(crate) reason: String,
}

/// A new recap that the worker left out on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub(crate) thread_id: ThreadId,
    pub(crate) reason: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelError {
    /// No connection, or the program could not be started.
    #[error("the model could not be reached: {reason}")]
    Unreachable { reason: Redacted },

    #[error("the model asks for patience{}", wait_words(*.retry_after_seconds))]
    RateLimited { retry_after_seconds: Option<u64> },

    #[error("the model did not answer within {seconds} s")]
    TimedOut { seconds: u64 },

    /// The model, or the service before it, would not do it.
    #[error("the model refused: {reason}")]
    Refused { reason: Redacted },

    #[error("the request is too long for the model")]
    TooLong,

    /// There was an answer, and it is not one to this request.
    #[error("the model's reply cannot be used: {reason}")]
    Unusable { reason: Redacted },

    /// A limit that a person set: calls or tokens per call, pass or day.
    #[error("the limit {limit} is reached")]
    LimitReached { limit: &'static str },

    /// The caller said stop.
    #[error("the request was cancelled")]
    Cancelled,

    /// The staging folder, or the folder of recorded answers.
    #[error("the worker could not use its files")]
    Files(#[source] FsError),
}

impl ModelError {
    /// How long the service wants not to be asked, in seconds, if it said so.
    pub(crate) const fn patience_seconds(&self) -> Option<u64> {
        match self {
            Self::RateLimited {
                retry_after_seconds,
            } => *retry_after_seconds,
            _ => None,
        }
    }
}

fn wait_words(retry_after_seconds: Option<u64>) -> String {
    retry_after_seconds.map_or_else(String::new, |seconds| format!(" for {seconds} s"))
}
