//! What can speak against a worker's result, in words and for the ledger.

use crate::consolidate::Complaint;
use crate::consolidate::guard::GuardFault;
use crate::domain::id::ThreadId;
use crate::domain::limits::{NEW_BYTES_MAX, NEW_FILES_MAX};
use crate::domain::note::NOTE_MARK;
use crate::domain::path::TreePath;
use crate::ledger::JobError;
use crate::text::redact;

/// One thing that speaks against a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It changed, made or removed a file that is not its own.
    NotAllowed {
        path: String,
        what: &'static str,
    },
    Symlink {
        path: String,
    },
    TooLarge {
        path: String,
        bytes: u64,
    },
    /// Neither a file nor a folder, or a folder too deep.
    Unfit {
        path: String,
        why: &'static str,
    },
    /// More files besides those it was given than may come, or more bytes.
    Flood {
        files: usize,
        bytes: u64,
    },
    NotUtf8 {
        path: TreePath,
    },
    Secret {
        path: TreePath,
        line_number: usize,
    },
    /// A person committed one, and their lines stay.
    SecretCommitted {
        path: TreePath,
        line_number: usize,
    },
    /// An error of the validator.
    Invalid {
        code: &'static str,
        path: TreePath,
        line_number: usize,
        message: String,
    },
    Withheld {
        path: TreePath,
        line_number: u32,
    },
    /// An entry of the person's is gone or reworded, and no note asks for it.
    PersonOverruled {
        path: TreePath,
        text: String,
    },
    Guard(GuardFault),
    /// It ended without an explicit finish.
    NotFinished,
    /// The person has a version there that cannot be committed, and it must
    /// not be overwritten.
    InTheWay {
        path: TreePath,
        why: String,
    },
    /// Merging with what the person did meanwhile met the same lines.
    Conflict {
        path: TreePath,
    },
    /// No line says what a new or edited note asks to remember.
    NoteUnsaid {
        note: TreePath,
        line: String,
    },
    /// A line that an earlier note brought is gone.
    NoteDropped {
        path: TreePath,
        line: String,
    },
    /// Something stands there that a note took out.
    NoteUndone {
        note: TreePath,
        path: TreePath,
        line_number: u32,
    },
    /// An input of a kept attempt must not take part any more.
    KeptOut {
        path: TreePath,
    },
    /// A new recap that nothing cites and that was not skipped with a reason.
    Unnamed {
        path: TreePath,
        thread_id: ThreadId,
        /// Where it should be cited.
        place: &'static str,
    },
}

impl Fault {
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::NotAllowed { .. } => "not-allowed",
            Self::Symlink { .. } => "symlink",
            Self::TooLarge { .. } => "too-large",
            Self::Unfit { .. } => "unfit",
            Self::Flood { .. } => "flood",
            Self::NotUtf8 { .. } => "not-utf8",
            Self::Secret { .. } | Self::SecretCommitted { .. } => "secret",
            Self::Invalid { code, .. } => code,
            Self::Withheld { .. } => "withheld",
            Self::PersonOverruled { .. } => "person",
            Self::Guard(_) => "loss",
            Self::NotFinished => "not-finished",
            Self::InTheWay { .. } => "in-the-way",
            Self::Conflict { .. } => "conflict",
            Self::KeptOut { .. } => "kept-out",
            Self::Unnamed { .. } => "unnamed",
            Self::NoteUnsaid { .. } | Self::NoteDropped { .. } | Self::NoteUndone { .. } => "note",
        }
    }

    /// For people and for a worker that may mend it. Never the text of a
    /// secret or of something withheld.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::NotAllowed { path, what } => {
                format!("`{path}` was {what}; only the memory files may change")
            }
            Self::Symlink { path } => format!("`{path}` is a symbolic link"),
            Self::TooLarge { path, bytes } => format!("`{path}` has {bytes} bytes"),
            Self::Unfit { path, why } => format!("`{path}` {why}"),
            Self::Flood { files, bytes } => format!(
                "at least {files} files with {bytes} bytes were made; {NEW_FILES_MAX} files with {NEW_BYTES_MAX} bytes may be"
            ),
            Self::NotUtf8 { path } => format!("`{path}` is not UTF-8 text"),
            Self::Secret { path, line_number } => {
                format!("`{path}` line {line_number} holds what looks like a secret")
            }
            Self::SecretCommitted { path, line_number } => format!(
                "mend `{path}` first: line {line_number} holds what looks like a secret, committed by hand; nothing is published until it is gone"
            ),
            Self::Invalid {
                path,
                line_number,
                message,
                ..
            } => format!("`{path}` line {line_number}: {message}"),
            Self::Withheld { path, line_number } => {
                format!("`{path}` line {line_number} brings back something that is withheld")
            }
            Self::PersonOverruled { path, text } => {
                format!("the person's own entry in `{path}` has to stay as it is: {text}")
            }
            Self::Guard(fault) => fault.words(),
            Self::NotFinished => "the worker did not end with an explicit finish".to_owned(),
            Self::InTheWay { path, why } => format!(
                "mend `{path}` first: it cannot be committed, {why}; it is yours and never overwritten"
            ),
            Self::Conflict { path } => {
                format!("the person changed the same lines of `{path}` meanwhile")
            }
            Self::NoteUnsaid { note, line } => format!(
                "no line that ends in `{NOTE_MARK}` says what the note `{note}` asks for: {line}"
            ),
            Self::NoteDropped { path, line } => format!(
                "a line of `{path}` that a note brought is gone; only a note, or a retirement with a reason, takes it away: {line}"
            ),
            Self::NoteUndone {
                note,
                path,
                line_number,
            } => format!("`{path}` line {line_number} says what the note `{note}` took out"),
            Self::KeptOut { path } => {
                format!("it rests on `{path}`, which is withheld or kept out since")
            }
            Self::Unnamed {
                path,
                thread_id,
                place,
            } => format!(
                "nothing in `{place}` cites the new recap `{path}` (thread_id={thread_id}); fold it in, or list it under `skipped` with a reason when nothing in it is worth keeping"
            ),
        }
    }

    /// What the ledger is told.
    pub(crate) const fn job_error(&self) -> JobError {
        match self {
            Self::NotAllowed { .. } | Self::Symlink { .. } | Self::Unfit { .. } => {
                JobError::ResultNotAllowed
            }
            Self::TooLarge { .. }
            | Self::Flood { .. }
            | Self::NotUtf8 { .. }
            | Self::Invalid { .. } => JobError::ResultInvalid,
            Self::Secret { .. } => JobError::ResultHoldsSecret,
            Self::Withheld { .. } | Self::KeptOut { .. } => JobError::ResultHoldsWithheld,
            Self::SecretCommitted { .. } | Self::InTheWay { .. } => JobError::NeedsMending,
            Self::PersonOverruled { .. } | Self::Conflict { .. } => JobError::PersonOverruled,
            Self::Guard(_) => JobError::LossGuard,
            Self::Unnamed { .. }
            | Self::NoteUnsaid { .. }
            | Self::NoteDropped { .. }
            | Self::NoteUndone { .. } => JobError::InputsPassedOver,
            Self::NotFinished => JobError::WorkerUnfinished,
        }
    }

    /// The attempt must not be kept as files, only what was said about it.
    pub(crate) const fn bars_keeping(&self) -> bool {
        matches!(
            self,
            Self::Symlink { .. }
                | Self::TooLarge { .. }
                | Self::Flood { .. }
                | Self::Secret { .. }
                | Self::SecretCommitted { .. }
                | Self::Withheld { .. }
                | Self::NoteUndone { .. }
        )
    }

    /// A person's word settles it; trying again would not.
    pub(crate) const fn parks(&self) -> bool {
        matches!(
            self,
            Self::Conflict { .. } | Self::Guard(GuardFault::TooManyOverTime { .. })
        )
    }

    pub(crate) fn complaint(&self) -> Complaint {
        Complaint {
            code: self.code(),
            words: redact::redact_str(&self.words()),
        }
    }
}
