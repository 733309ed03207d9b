//! Recorded answers from a folder: the back end that tests drive.
//!
//! Everything is asked and judged as with a real model, only the words come
//! from files. The folder holds:
//!
//! ```text
//! model.json                   {"name": "replay", "free": false, "context_tokens": 8000,
//!                               "draws_on": "codex"}, optional
//! extract/<thread id>.json     answers for that session, in order; the last one repeats
//! extract/any.json             answers for all other sessions
//! consolidate/v1.json          answers for that version; else consolidate/any.json
//! requests.jsonl               written by us: one line for each request, with its prompt
//! ```
//!
//! A file of answers is a JSON list, or one answer. An answer to `extract`:
//!
//! ```text
//! {"text": "any text at all"}
//! {"reply": {"rollout_summary": "…", "rollout_slug": "…"}}
//! {"offline": true}            what the offline rules would say
//! {"fail": "rate_limited", "retry_after_seconds": 30}
//! ```
//!
//! `fail` is one of `unreachable`, `rate_limited`, `timed_out`, `refused`,
//! `too_long`, `unusable`, `limit_reached`, `cancelled`. An answer to
//! `consolidate` may have, besides `fail` and `offline`:
//!
//! ```text
//! {"edits": [{"write": "MEMORY.md", "text": "…", "times": 1}, {"append": "MEMORY.md", "text": "…"},
//!            {"replace": "MEMORY.md", "old": "…", "text": "…"}, {"delete": "skills/a/SKILL.md"},
//!            {"move": "a.md", "to": "b.md"}, {"symlink": "MEMORY.md", "to": "/etc/hostname"}],
//!  "finish": true, "words": "…", "retired": [{"entry": "…", "reason": "…"}],
//!  "skipped": [{"thread_id": "…", "reason": "…"}], "unmatched_notes": ["…"], "forgotten": ["…"]}
//! ```
//!
//! Both may have `"stop": "name"`, which reaches the stop point
//! `replay.name` before answering (a slow model is a frozen process), and
//! `"tokens": [input, output]`.
//!
//! # Locking
//!
//! Which answer is next follows from `requests.jsonl`, read and written under
//! a file lock, so that several processes share one script.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::item::Trust;
use crate::domain::path::TreePath;
use crate::domain::session::Agent;
use crate::domain::text::{Raw, Redacted};
use crate::model::finish::SkippedWords;
use crate::model::offline::Offline;
use crate::model::{
    ConsolidationRequest, ExtractionRequest, Model, ModelError, Reply, Retired, Tokens,
    WorkerReport,
};
use crate::sys::fs::{self, FsError};
use crate::sys::lock::{FileLock, LockError};
use crate::sys::stop;
use crate::text::redact::redact_str;

/// Largest file of the folder that is read.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The back end `replay`.
#[derive(Debug)]
pub(crate) struct Replay {
    folder: PathBuf,
    settings: Settings,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    name: String,
    free: bool,
    context_tokens: Option<usize>,
    /// The agent whose quota the calls would use up.
    draws_on: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "replay".to_owned(),
            free: false,
            context_tokens: None,
            draws_on: None,
        }
    }
}

impl Replay {
    /// Opens a folder of recorded answers.
    ///
    /// # Errors
    ///
    /// When `model.json` is there and cannot be read.
    pub(crate) fn open(folder: &Path) -> Result<Self, ModelError> {
        let settings = read_json(&folder.join("model.json"))?.unwrap_or_default();
        Ok(Self {
            folder: folder.to_owned(),
            settings,
        })
    }

    /// The same answers under the name of one of its models.
    #[must_use]
    pub(crate) fn called(mut self, model: Option<&str>) -> Self {
        if let Some(model) = model {
            self.settings.name = format!("{}/{model}", self.settings.name);
        }
        self
    }

    /// Writes the request down and gives the answer that is its turn.
    fn next<T: for<'de> Deserialize<'de>>(
        &self,
        request: &LoggedRequest<'_>,
    ) -> Result<T, ModelError> {
        let wait = Duration::from_secs(30);
        let _held =
            FileLock::acquire(&self.folder.join("requests.lock"), wait).map_err(lock_error)?;
        let log = self.folder.join("requests.jsonl");
        let before = fs::read_text_if_any(&log, FILE_BYTES_MAX).map_err(ModelError::Files)?;
        let mut lines = before.unwrap_or_default();
        let is_same = |line: &&str| {
            serde_json::from_str::<LoggedKey>(line)
                .is_ok_and(|logged| logged.purpose == request.purpose && logged.key == request.key)
        };
        let turn = lines.lines().filter(is_same).count();
        let line = serde_json::to_string(request).expect("strings and lists become JSON");
        lines.push_str(&line);
        lines.push('\n');
        fs::write_unflushed(&log, lines.as_bytes(), false).map_err(ModelError::Files)?;
        self.answer(request, turn)
    }

    fn answer<T: for<'de> Deserialize<'de>>(
        &self,
        request: &LoggedRequest<'_>,
        turn: usize,
    ) -> Result<T, ModelError> {
        let folder = self.folder.join(request.purpose);
        for name in [request.key, "any"] {
            let Some(answers) = read_json::<Answers<T>>(&folder.join(format!("{name}.json")))?
            else {
                continue;
            };
            let mut answers = match answers {
                Answers::One(answer) => vec![*answer],
                Answers::Several(answers) => answers,
            };
            if !answers.is_empty() {
                return Ok(answers.swap_remove(turn.min(answers.len() - 1)));
            }
        }
        Err(ModelError::Unreachable {
            reason: redact_str(&format!(
                "no recorded answer to {} {}",
                request.purpose, request.key
            )),
        })
    }

    fn tokens(tokens: [u64; 2]) -> Tokens {
        Tokens {
            calls: 1,
            input: tokens[0],
            output: tokens[1],
        }
    }
}

impl Model for Replay {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn is_free(&self) -> bool {
        self.settings.free
    }

    fn draws_on(&self) -> Option<Agent> {
        self.settings.draws_on.as_deref().and_then(Agent::parse)
    }

    fn context_tokens(&self) -> Option<usize> {
        self.settings.context_tokens
    }

    fn extract(&self, request: &ExtractionRequest<'_>) -> Result<Reply, ModelError> {
        let messages = request.messages();
        request.meter.take_call()?;
        let answer: ExtractionAnswer = self.next(&LoggedRequest {
            purpose: "extract",
            key: request.facts.thread_id.as_str(),
            version: request.version.label(),
            messages: messages.iter().map(Redacted::as_str).collect(),
            schema: Some(request.schema),
            diagnostics: None,
            wants_longer_reply: request.wants_longer_reply,
        })?;
        answer.stop();
        request.meter.add_tokens(Self::tokens(answer.tokens));
        if let Some(failure) = &answer.fail {
            return Err(failure.error(answer.retry_after_seconds));
        }
        if answer.offline {
            return Offline.extract(request);
        }
        let text = match (answer.text, answer.reply) {
            (Some(text), _) => text,
            (None, Some(reply)) => reply.to_string(),
            (None, None) => String::new(),
        };
        Ok(Reply {
            text: Raw::new(text),
            rests_on: answer.rests_on.as_deref().and_then(trust),
            is_cut: false,
            tokens: Self::tokens(answer.tokens),
        })
    }

    fn consolidate(&self, request: &ConsolidationRequest<'_>) -> Result<WorkerReport, ModelError> {
        request.meter.take_call()?;
        let answer: ConsolidationAnswer = self.next(&LoggedRequest {
            purpose: "consolidate",
            key: request.version.label(),
            version: request.version.label(),
            messages: vec![request.prompt.as_str()],
            schema: None,
            diagnostics: request.diagnostics,
            wants_longer_reply: false,
        })?;
        if let Some(name) = &answer.stop {
            stop::point(&format!("replay.{name}"));
        }
        request.meter.add_tokens(Self::tokens(answer.tokens));
        let mut report = WorkerReport::default();
        if answer.offline {
            report = Offline.consolidate(request)?;
        }
        for edit in &answer.edits {
            if !request.meter.keep_going() {
                return Err(ModelError::Cancelled);
            }
            edit.apply(request.staging)?;
        }
        if let Some(failure) = &answer.fail {
            return Err(failure.error(answer.retry_after_seconds));
        }
        report.has_read_prompt = true;
        report.finished = answer.finish.unwrap_or(report.finished);
        if let Some(words) = &answer.words {
            report.words = redact_str(words);
        }
        report
            .retired
            .extend(answer.retired.into_iter().map(|retired| Retired {
                entry: retired.entry,
                reason: retired.reason,
            }));
        let skipped = answer.skipped.into_iter();
        (report.skipped).extend(skipped.filter_map(SkippedWords::into_skipped));
        let notes = answer
            .unmatched_notes
            .iter()
            .filter_map(|path| TreePath::parse(path));
        report.unmatched_notes.extend(notes);
        report.forgotten.extend(answer.forgotten);
        report.tokens = Self::tokens(answer.tokens);
        Ok(report)
    }
}

#[derive(Serialize)]
struct LoggedRequest<'a> {
    purpose: &'static str,
    /// Thread id or version.
    key: &'a str,
    version: &'static str,
    messages: Vec<&'a str>,
    schema: Option<&'a str>,
    diagnostics: Option<&'a [String]>,
    wants_longer_reply: bool,
}

#[derive(Deserialize)]
struct LoggedKey {
    purpose: String,
    key: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answers<T> {
    Several(Vec<T>),
    One(Box<T>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExtractionAnswer {
    text: Option<String>,
    reply: Option<serde_json::Value>,
    #[serde(default)]
    offline: bool,
    fail: Option<Failure>,
    retry_after_seconds: Option<u64>,
    rests_on: Option<String>,
    stop: Option<String>,
    #[serde(default)]
    tokens: [u64; 2],
}

impl ExtractionAnswer {
    fn stop(&self) {
        if let Some(name) = &self.stop {
            stop::point(&format!("replay.{name}"));
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConsolidationAnswer {
    #[serde(default)]
    edits: Vec<Edit>,
    #[serde(default)]
    offline: bool,
    fail: Option<Failure>,
    retry_after_seconds: Option<u64>,
    finish: Option<bool>,
    words: Option<String>,
    #[serde(default)]
    retired: Vec<RetiredAnswer>,
    #[serde(default)]
    skipped: Vec<SkippedWords>,
    #[serde(default)]
    unmatched_notes: Vec<String>,
    #[serde(default)]
    forgotten: Vec<String>,
    stop: Option<String>,
    #[serde(default)]
    tokens: [u64; 2],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetiredAnswer {
    entry: String,
    reason: String,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Failure {
    Unreachable,
    RateLimited,
    TimedOut,
    Refused,
    TooLong,
    Unusable,
    LimitReached,
    Cancelled,
}

impl Failure {
    fn error(self, retry_after_seconds: Option<u64>) -> ModelError {
        let reason = || redact_str("recorded");
        match self {
            Self::Unreachable => ModelError::Unreachable { reason: reason() },
            Self::RateLimited => ModelError::RateLimited {
                retry_after_seconds,
            },
            Self::TimedOut => ModelError::TimedOut { seconds: 60 },
            Self::Refused => ModelError::Refused { reason: reason() },
            Self::TooLong => ModelError::TooLong,
            Self::Unusable => ModelError::Unusable { reason: reason() },
            Self::LimitReached => ModelError::LimitReached {
                limit: "of the script",
            },
            Self::Cancelled => ModelError::Cancelled,
        }
    }
}

/// One change to a file in staging. Whatever the script says is done: judging
/// it is the business of those who are tested.
#[derive(Deserialize)]
#[serde(untagged)]
enum Edit {
    Write {
        write: String,
        text: String,
        #[serde(default = "once")]
        times: usize,
    },
    Append {
        append: String,
        text: String,
    },
    Replace {
        replace: String,
        old: String,
        text: String,
    },
    Delete {
        delete: String,
    },
    Move {
        r#move: String,
        to: String,
    },
    Symlink {
        symlink: String,
        to: String,
    },
}

const fn once() -> usize {
    1
}

impl Edit {
    fn apply(&self, staging: &Path) -> Result<(), ModelError> {
        let done = match self {
            Self::Write { write, text, times } => put(&staging.join(write), &text.repeat(*times)),
            Self::Append { append, text } => {
                let path = staging.join(append);
                read(&path).and_then(|before| put(&path, &(before + text)))
            }
            Self::Replace { replace, old, text } => {
                let path = staging.join(replace);
                read(&path).and_then(|before| put(&path, &before.replacen(old, text, 1)))
            }
            Self::Delete { delete } => fs::remove(&staging.join(delete)),
            Self::Move { r#move, to } => {
                let (from, to) = (staging.join(r#move), staging.join(to));
                fs::make_folders(to.parent().unwrap_or(staging))
                    .and_then(|()| std::fs::rename(&from, &to).map_err(FsError::at("move", &from)))
            }
            Self::Symlink { symlink, to } => {
                let path = staging.join(symlink);
                fs::remove(&path).and_then(|()| link(&path, to))
            }
        };
        done.map_err(ModelError::Files)
    }
}

fn read(path: &Path) -> Result<String, FsError> {
    Ok(fs::read_text_if_any(path, FILE_BYTES_MAX)?.unwrap_or_default())
}

fn put(path: &Path, text: &str) -> Result<(), FsError> {
    if let Some(folder) = path.parent() {
        fs::make_folders(folder)?;
    }
    fs::write_unflushed(path, text.as_bytes(), false)
}

#[cfg(unix)]
fn link(path: &Path, to: &str) -> Result<(), FsError> {
    std::os::unix::fs::symlink(to, path).map_err(FsError::at("link", path))
}

#[cfg(not(unix))]
fn link(path: &Path, _to: &str) -> Result<(), FsError> {
    let source = std::io::Error::other("there are no symbolic links here");
    Err(FsError::at("link", path)(source))
}

fn trust(label: &str) -> Option<Trust> {
    [Trust::Own, Trust::External]
        .into_iter()
        .find(|trust| trust.label() == label)
}

/// A file of the folder, `None` when there is none.
fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, ModelError> {
    let text = fs::read_text_if_any(path, FILE_BYTES_MAX).map_err(ModelError::Files)?;
    let Some(text) = text else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
        ModelError::Files(FsError::at("read", path)(source))
    })
}

fn lock_error(error: LockError) -> ModelError {
    let (path, source) = match error {
        LockError::Io { path, source } => (path, source),
        LockError::Busy { path, holder } => (path, std::io::Error::other(holder)),
        LockError::IsLink { path } => (path, std::io::Error::other("it is a symbolic link")),
    };
    ModelError::Files(FsError::at("lock", &path)(source))
}

#[cfg(test)]
mod tests;
