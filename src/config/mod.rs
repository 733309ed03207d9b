//! Defaults and `config.toml` into one checked value; `modes.yaml`.
//!
//! Every key stands once, in the table of `keys`: reading, `memrev config`,
//! the file that `memrev init` writes and the schema follow it.
//!
//! # Not in here
//!
//! Where agents keep their sessions (`sys::env`), and what a key does.

mod keys;
pub(crate) mod modes;
mod parse;
mod print;
mod project;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::domain::version::MemoryVersion;
use crate::sys::fs;

pub(crate) use self::print::{KeyInfo, describe, initial_text};

/// The file's name in the home.
pub(crate) const FILE_NAME: &str = "config.toml";

/// Largest `config.toml` that is read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Everything a person chose or left at its default, within its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) features: Features,
    pub(crate) memories: Memories,
    pub(crate) sessions: Sessions,
    pub(crate) model: Model,
    pub(crate) worker: Worker,
    pub(crate) guard: Guard,
    pub(crate) inject: Inject,
    /// Keys whose value is not the default's, or is it by the file's word.
    origins: BTreeMap<&'static str, Origin>,
}

/// `[features]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Features {
    pub(crate) memories: bool,
}

/// `[memories]`, named and bounded as in reference 1.2.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    clippy::struct_field_names,
    reason = "these are the person's switches, each with the name it has in the file"
)]
pub(crate) struct Memories {
    pub(crate) version: MemoryVersion,
    pub(crate) dual_write: bool,
    pub(crate) generate_memories: bool,
    pub(crate) use_memories: bool,
    pub(crate) disable_on_external_context: bool,
    pub(crate) max_rollouts_per_startup: u32,
    pub(crate) max_rollout_age_days: i64,
    pub(crate) min_rollout_idle_hours: i64,
    pub(crate) max_raw_memories_for_consolidation: usize,
    pub(crate) max_unused_days: i64,
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
    /// Folders and project identities that are off, by all their names; see
    /// [`Sessions::is_project_disabled`].
    pub(crate) disabled_projects: Vec<String>,
}

/// `[model]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) backend: Backend,
    /// The program of the back end `command` with its arguments; for `codex`
    /// and `claude` where they are, and arguments that go before ours.
    pub(crate) command: Vec<String>,
    /// Names of environment variables that such a program is given too.
    pub(crate) command_variables: Vec<String>,
    pub(crate) call_seconds_max: u64,
    pub(crate) calls_per_pass_max: u64,
    pub(crate) calls_per_day_max: u64,
    pub(crate) tokens_per_day_max: u64,
    /// Where a service is asked, in place of its own address.
    pub(crate) endpoint: Option<String>,
    /// The variable that holds the service's key.
    pub(crate) key_env: Option<String>,
    /// Or the file that does.
    pub(crate) key_file: Option<PathBuf>,
    /// `Name: value` or `Name: $VARIABLE`, see [`crate::domain::endpoint::Header`].
    pub(crate) headers: Vec<String>,
    /// A URL, or `none`; not set: what the environment says.
    pub(crate) proxy: Option<String>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) idle_seconds_max: u64,
    /// 0: not known.
    pub(crate) context_tokens: usize,
    /// 0: what fits.
    pub(crate) input_tokens_max: usize,
    pub(crate) output_tokens_max: u64,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    /// The rules that are built in.
    Offline,
    /// `codex exec`, with the person's own login.
    Codex,
    /// `claude -p`, with the person's own login.
    Claude,
    /// A program: prompt in, JSON out.
    Command,
    /// The Responses API.
    OpenAi,
    /// Any service with chat completions.
    Chat,
    /// The Messages API.
    Anthropic,
    /// Recorded answers. Hidden, for tests.
    Replay,
}

impl Backend {
    /// Each with the word that the file has for it.
    pub(crate) const ALL: [(Self, &'static str); 8] = [
        (Self::Offline, "offline"),
        (Self::OpenAi, "openai"),
        (Self::Chat, "chat"),
        (Self::Anthropic, "anthropic"),
        (Self::Codex, "codex"),
        (Self::Claude, "claude"),
        (Self::Command, "command"),
        (Self::Replay, "replay"),
    ];

    pub(crate) fn label(self) -> &'static str {
        let all = Self::ALL.into_iter();
        let mut labels = all.filter(|(backend, _)| *backend == self);
        labels.next().map_or("offline", |(_, label)| label)
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        let all = Self::ALL.into_iter();
        all.filter(|(_, label)| *label == word)
            .map(|(backend, _)| backend)
            .next()
    }
}

/// `[worker]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Worker {
    /// Who edits the memory files; `None` is the back end of `[model]`.
    pub(crate) kind: Option<Backend>,
    pub(crate) seconds_max: u64,
    pub(crate) steps_max: u32,
    pub(crate) sandbox: Sandbox,
    /// A good result waits for `accept`.
    pub(crate) review: bool,
    /// Where a program may write besides its working folder; `None` is what
    /// the program is known to need.
    pub(crate) writable: Option<Vec<PathBuf>>,
}

/// Who keeps a program from writing elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sandbox {
    /// The kernel where it can, else the program's own flags.
    Auto,
    /// The kernel, or the program is not started.
    Required,
    /// Somebody outside: memrev itself runs in a container.
    External,
}

/// `[guard]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) unexplained_entries_max: usize,
    pub(crate) unexplained_percent_max: usize,
    pub(crate) retired_percent_max: usize,
    pub(crate) retired_entries_min: usize,
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
    /// All of them.
    All,
    /// All that fit, this project's first.
    Ranked,
    /// This project's and those of no project.
    Project,
}

/// Where a value came from. Lines are 1-based.
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

/// One thing that is wrong with `config.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigProblem {
    pub(crate) path: PathBuf,
    /// 1-based; `None` when the whole file is meant.
    pub(crate) line_number: Option<usize>,
    pub(crate) message: String,
    /// One next step, such as "did you mean ...".
    pub(crate) hint: Option<String>,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line_number) = self.line_number {
            write!(f, ":{line_number}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            features: Features { memories: false },
            memories: Memories {
                version: MemoryVersion::V1,
                dual_write: false,
                generate_memories: true,
                use_memories: true,
                disable_on_external_context: false,
                max_rollouts_per_startup: 2,
                max_rollout_age_days: 10,
                min_rollout_idle_hours: 6,
                max_raw_memories_for_consolidation: 256,
                max_unused_days: 30,
                min_rate_limit_remaining_percent: 25,
                extract_model: None,
                consolidation_model: None,
            },
            sessions: Sessions {
                codex: true,
                claude: true,
                codex_roots: None,
                claude_roots: None,
                include_exec: false,
                disabled_projects: Vec::new(),
            },
            model: Model {
                backend: Backend::Offline,
                command: Vec::new(),
                command_variables: Vec::new(),
                call_seconds_max: 600,
                calls_per_pass_max: 100,
                calls_per_day_max: 500,
                tokens_per_day_max: 20_000_000,
                endpoint: None,
                key_env: None,
                key_file: None,
                headers: Vec::new(),
                proxy: None,
                ca_file: None,
                idle_seconds_max: 180,
                context_tokens: 0,
                input_tokens_max: 0,
                output_tokens_max: 16_000,
            },
            worker: Worker {
                kind: None,
                seconds_max: 1_800,
                steps_max: 60,
                sandbox: Sandbox::Auto,
                review: false,
                writable: None,
            },
            guard: Guard {
                unexplained_entries_max: 3,
                unexplained_percent_max: 10,
                retired_percent_max: 10,
                retired_entries_min: 3,
                edit_quiet_seconds: 2,
            },
            inject: Inject {
                scope: Scope::Ranked,
                summary_bytes_max: 8_000,
            },
            origins: BTreeMap::new(),
        }
    }
}

/// Reads `config.toml` of a home; a missing one is all defaults. `user_home`
/// is what `~/` stands for.
///
/// # Errors
///
/// Everything that is wrong with the file, in the order of its lines.
pub(crate) fn load(home: &Path, user_home: &Path) -> Result<Config, Vec<ConfigProblem>> {
    let path = home.join(FILE_NAME);
    let unreadable = |error: fs::FsError| {
        vec![ConfigProblem {
            path: path.clone(),
            line_number: None,
            message: format!("could not read it: {}", error.source),
            hint: None,
        }]
    };
    match fs::read_text_if_any(&path, FILE_BYTES_MAX).map_err(unreadable)? {
        Some(text) => parse::parse(&path, &text, user_home),
        None => Ok(Config::default()),
    }
}
