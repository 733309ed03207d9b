//! Defaults and `config.toml` into one checked value; `modes.yaml`.

pub(crate) mod modes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::domain::version::MemoryVersion;

/// Everything a person chose or left at its default, within its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) features: Features,
    pub(crate) memories: Memories,
    pub(crate) sessions: Sessions,
    pub(crate) model: ModelLimits,
    pub(crate) worker: WorkerLimits,
    pub(crate) guard: Guard,
    pub(crate) inject: Inject,
    origins: BTreeMap<&'static str, Origin>,
}

/// `[features]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Features {
    /// The master switch.
    pub(crate) memories: bool,
}

/// `[memories]` (reference 1.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Memories {
    pub(crate) version: MemoryVersion,
    pub(crate) dual_write: bool,
    pub(crate) disable_on_external_context: bool,
    pub(crate) generate_memories: bool,
    pub(crate) use_memories: bool,
    pub(crate) dedicated_tools: bool,
    pub(crate) max_raw_memories_for_consolidation: usize,
    pub(crate) max_unused_days: i64,
    pub(crate) max_rollout_age_days: i64,
    pub(crate) max_rollouts_per_startup: u32,
    pub(crate) min_rollout_idle_hours: i64,
    pub(crate) min_rate_limit_remaining_percent: u32,
    pub(crate) extract_model: Option<String>,
    pub(crate) consolidation_model: Option<String>,
}

/// `[sessions]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sessions {
    pub(crate) codex: bool,
    pub(crate) claude: bool,
    /// Folders read in place of the agent's own; `None` is the agent's own.
    pub(crate) codex_roots: Option<Vec<PathBuf>>,
    pub(crate) claude_roots: Option<Vec<PathBuf>>,
    pub(crate) include_exec: bool,
    /// Folders or project identities that are off; see
    /// [`Sessions::is_project_disabled`].
    pub(crate) disabled_projects: Vec<String>,
}

/// `[model]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelLimits {
    pub(crate) backend: Backend,
    pub(crate) calls_per_pass_max: u64,
    pub(crate) calls_per_day_max: u64,
    pub(crate) tokens_per_day_max: u64,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    /// The rules that are built in.
    Offline,
    /// Recorded answers. Hidden, for tests.
    Replay,
}

/// `[worker]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkerLimits {
    pub(crate) seconds_max: u64,
    pub(crate) steps_max: u32,
}

/// `[guard]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guard {
    /// Entries that may go unexplained in one pass.
    pub(crate) unexplained_entries_max: u32,
    pub(crate) unexplained_percent_max: u32,
    pub(crate) retired_percent_max: u32,
    pub(crate) retired_entries_min: u32,
    /// A file that changed less than this many seconds ago is not committed.
    pub(crate) edit_quiet_seconds: i64,
}

/// `[inject]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inject {
    pub(crate) scope: Scope,
    pub(crate) summary_bytes_max: usize,
}

/// Which topics a new session is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    Ranked,
    Project,
}

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File {
        line_number: usize,
    },
    /// The file says `from`, which is out of bounds.
    Clamped {
        from: i64,
        line_number: usize,
    },
}

/// One key, for `memrev config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyInfo {
    pub(crate) key: &'static str,
    /// As TOML writes it; empty for an optional key that is not set.
    pub(crate) value: String,
    pub(crate) origin: Origin,
    pub(crate) about: &'static str,
}

/// One thing that is wrong with `config.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigProblem {
    pub(crate) path: PathBuf,
    /// 1-based; `None` when the whole file is meant.
    pub(crate) line_number: Option<usize>,
    pub(crate) message: String,
    /// One next step, such as `did you mean ...`.
    pub(crate) hint: Option<String>,
}

/// Reads `config.toml` of a home; a missing one is all defaults.
pub(crate) fn load(_home: &Path) -> Result<Config, Vec<ConfigProblem>> {
    todo!()
}

/// Every key with its effective value and where that came from.
pub(crate) fn describe(_config: &Config) -> Vec<KeyInfo> {
    todo!()
}

/// The commented file that `memrev init` writes, memories switched on.
pub(crate) fn initial_text() -> String {
    todo!()
}

impl Sessions {
    /// Whether a session in `cwd` of `project` is switched off: a listed
    /// folder is `cwd` or above it, part by part, or a listed identity is the
    /// project or a parent of it.
    pub(crate) fn is_project_disabled(&self, _cwd: Option<&str>, _project: Option<&str>) -> bool {
        todo!()
    }
}
