//! A session: one conversation of an agent, as read from its transcript.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::domain::id::ThreadId;
use crate::domain::item::Item;
use crate::domain::project::Project;
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;

/// The program that held the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Agent {
    Codex,
    Claude,
}

impl Agent {
    pub(crate) const ALL: [Self; 2] = [Self::Codex, Self::Claude];

    /// In configuration, recap headers and the ledger.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
        }
    }

    pub(crate) fn parse(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.label() == label)
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// How the session was started.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// A person at a terminal, an editor or an app. Also when the transcript
    /// does not say (older generations).
    Interactive,
    /// `codex exec`, `claude -p`, an SDK: nobody typed.
    Exec,
    /// A sub-agent's own rollout; its parent is named when known.
    SubAgent { parent: Option<ThreadId> },
    /// Something else the transcript names, such as `mcp`.
    Other(String),
}

impl Source {
    pub(crate) fn label(&self) -> &str {
        match self {
            Self::Interactive => "interactive",
            Self::Exec => "exec",
            Self::SubAgent { .. } => "sub-agent",
            Self::Other(name) => name,
        }
    }
}

/// Whether a session may feed memory (reference 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) enum MemoryMode {
    #[default]
    Enabled,
    /// Switched off by a person, or begun while `generate_memories` was false.
    Disabled,
    /// External content reached it while `disable_on_external_context` was on.
    Polluted,
}

impl MemoryMode {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::Polluted => "polluted",
        }
    }

    pub(crate) fn parse(label: &str) -> Option<Self> {
        [Self::Enabled, Self::Disabled, Self::Polluted]
            .into_iter()
            .find(|mode| mode.label() == label)
    }
}

/// What is known of a session without its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionHead {
    pub(crate) agent: Agent,
    pub(crate) thread_id: ThreadId,
    pub(crate) rollout_path: PathBuf,
    /// As the transcript has it: may be a Windows path, or gone.
    pub(crate) cwd: Option<Raw>,
    pub(crate) project: Option<Project>,
    pub(crate) git_branch: Option<Raw>,
    pub(crate) source: Source,
    /// What the transcript itself says; `modes.yaml` may override it.
    pub(crate) mode: MemoryMode,
    /// Time of the first record that has one.
    pub(crate) started_at: Option<Timestamp>,
    /// Time of the newest record; the file's only where no record has one.
    pub(crate) updated_at: Timestamp,
    /// One of our own workers wrote it: never evidence.
    pub(crate) is_ours: bool,
    /// The session it was forked from, whose copied history does not count.
    pub(crate) forked_from: Option<ThreadId>,
    /// The agent's own id of the first record. Files that begin with the same
    /// record share history, whatever their thread ids say.
    pub(crate) first_record: Option<String>,
}

/// Stands alone on the first line of every prompt that we send to a worker.
/// A session whose first request has this line is ours and never evidence.
pub(crate) const WORKER_MARK: &str = "[memrev worker: this session is not evidence]";

/// Around the memory that we hand to a session, each alone on its line. What
/// stands between them is our own text and never evidence.
pub(crate) const MEMORY_OPEN: &str = "<memrev_memory>";
pub(crate) const MEMORY_CLOSE: &str = "</memrev_memory>";

/// A session with everything that counts in it.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) head: SessionHead,
    /// In source order, rolled-back turns and copied history already out.
    pub(crate) items: Vec<Item>,
    /// External content (web, MCP, tool search) reached the session.
    pub(crate) has_external: bool,
    /// Thread ids that assistant answers cited, once per answer.
    pub(crate) citations: Vec<Citation>,
    pub(crate) report: ReadReport,
}

/// One assistant answer that named recaps it used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Citation {
    pub(crate) thread_ids: Vec<ThreadId>,
    /// The whole answer, block included: its hash identifies the citation.
    pub(crate) answer: Raw,
    /// 0 for the first answer with this text in the session, 1 for the next.
    pub(crate) occurrence: u32,
    pub(crate) at: Option<Timestamp>,
}

/// What became of every record of a rollout.
///
/// `read + ignored + damaged = records`. Blank lines are no records; glued
/// lines hold several records and an unfinished last line none yet, so these
/// are listed apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReadReport {
    pub(crate) records: u64,
    pub(crate) read: u64,
    /// By kind, such as `event_msg/token_count`.
    pub(crate) ignored: BTreeMap<String, u64>,
    /// At most [`DAMAGE_LISTED_MAX`] of them; `damaged` counts all.
    pub(crate) damage: Vec<Damage>,
    pub(crate) damaged: u64,
    pub(crate) blank_lines: u64,
    pub(crate) glued_lines: u64,
    pub(crate) unfinished_line: bool,
    /// Things survived without losing a record: a byte-order mark, bytes that
    /// are not UTF-8, a line cut at its limit.
    pub(crate) warnings: Vec<Damage>,
}

/// Most places of damage that are remembered per rollout.
pub(crate) const DAMAGE_LISTED_MAX: usize = 20;

/// A place in a rollout where something was wrong, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) line_number: u64,
    pub(crate) what: String,
}
