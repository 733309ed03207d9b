//! Commit messages: subject, body and the trailers that plain `git log` can query.

use crate::domain::id::{ObjectId, RunId, ThreadId};
use crate::domain::path::TreePath;
use crate::domain::text::Redacted;
use crate::domain::version::MemoryVersion;

/// The value of `Memrev-Kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum CommitKind {
    Init,
    Baseline,
    Edit,
    Revert,
    Forget,
    Merge,
    /// Only on `refs/memrev/attempts` and `refs/memrev/kept`, never on main.
    Kept,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// One `Memrev-Input` trailer: an input version that a baseline consumed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Input {
    pub(crate) change: ChangeKind,
    pub(crate) path: TreePath,
    /// The version consumed; of a deleted input the version that went.
    pub(crate) blob: ObjectId,
    /// For recaps.
    pub(crate) thread_id: Option<ThreadId>,
}

/// The trailers of a commit, as far as they can be understood.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Trailers {
    pub(crate) kind: Option<CommitKind>,
    pub(crate) run: Option<RunId>,
    pub(crate) version: Option<MemoryVersion>,
    pub(crate) worker: Option<String>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) tokens: Option<u64>,
}

/// A message under construction. Body text cannot forge trailers: they are
/// the last paragraph, and every message has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitMessage {
    subject: Redacted,
    body: Vec<Redacted>,
    reverts: Option<ObjectId>,
    trailers: Trailers,
}

impl CommitMessage {
    pub(crate) fn new(kind: CommitKind, subject: Redacted) -> Self {
        Self {
            subject,
            body: Vec::new(),
            reverts: None,
            trailers: Trailers {
                kind: Some(kind),
                ..Trailers::default()
            },
        }
    }

    /// Adds a paragraph or more of body text.
    pub(crate) fn body(mut self, text: Redacted) -> Self {
        self.body.push(text);
        self
    }

    /// Says `This reverts commit <id>.`, as `git revert` does.
    pub(crate) fn reverts(mut self, commit: ObjectId) -> Self {
        self.reverts = Some(commit);
        self
    }

    pub(crate) fn run(mut self, run: RunId) -> Self {
        self.trailers.run = Some(run);
        self
    }

    pub(crate) fn version(mut self, version: MemoryVersion) -> Self {
        self.trailers.version = Some(version);
        self
    }

    pub(crate) fn worker(mut self, name: &str) -> Self {
        self.trailers.worker = Some(name.to_owned());
        self
    }

    pub(crate) fn inputs(mut self, inputs: impl IntoIterator<Item = Input>) -> Self {
        self.trailers.inputs.extend(inputs);
        self
    }

    pub(crate) fn tokens(mut self, tokens: u64) -> Self {
        self.trailers.tokens = Some(tokens);
        self
    }
}
