//! The table of all keys: name, place, bounds, words.
//!
//! A new key is a field in [`Config`], a default, and a line here.

use std::path::PathBuf;

use url::Url;

use crate::config::{Backend, Config, Sandbox, Scope};
use crate::domain::endpoint::{Endpoint, is_variable_name};
use crate::domain::version::MemoryVersion;

/// One key of `config.toml`.
pub(super) struct Key {
    /// `section.key`.
    pub(super) name: &'static str,
    /// What it does, in one sentence without a full stop.
    pub(super) about: &'static str,
    pub(super) field: Field,
}

/// What a key holds, and where in [`Config`] that is.
pub(super) enum Field {
    Switch(fn(&mut Config) -> &mut bool),
    /// A whole number; one out of bounds is an error, but where
    /// [`Key::is_clamped`].
    Number {
        get: fn(&Config) -> i64,
        set: fn(&mut Config, i64),
        least: i64,
        most: i64,
    },
    /// One of few words.
    Choice {
        words: &'static [&'static str],
        /// Taken, but not told about.
        hidden: &'static [&'static str],
        get: fn(&Config) -> &'static str,
        /// Sets nothing for a word that is not listed.
        set: fn(&mut Config, &str),
        /// Said when another word is given.
        otherwise: Option<&'static str>,
    },
    /// Any text that is not empty; not set by default.
    Text(fn(&mut Config) -> &mut Option<String>),
    /// Text that has to pass a check, which says what is wrong with it without
    /// repeating it; not set by default.
    Checked {
        field: fn(&mut Config) -> &mut Option<String>,
        check: fn(&str) -> Result<(), String>,
        /// For the file that `init` writes.
        example: &'static str,
    },
    /// A file, absolute or in `~/`; not set by default.
    File(fn(&mut Config) -> &mut Option<PathBuf>),
    /// Lines of `Name: value`.
    Headers(fn(&mut Config) -> &mut Vec<String>),
    /// Folders, absolute or in `~/`; not set by default.
    Folders(fn(&mut Config) -> &mut Option<Vec<PathBuf>>),
    /// Any texts; none by default.
    Words(fn(&mut Config) -> &mut Vec<String>),
    /// Folders, or identities of projects.
    Projects(fn(&mut Config) -> &mut Vec<String>),
}

impl Key {
    pub(super) fn section(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(section, _)| section)
    }

    /// The keys of the reference move a number out of bounds to the nearest
    /// (reference 1.2); with ours, whoever writes 0 for "none" must not get
    /// one instead.
    pub(super) fn is_clamped(&self) -> bool {
        self.section() == "memories"
    }

    pub(super) fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }
}

/// Older names: the key that is meant.
pub(super) const ALIASES: &[(&str, &str)] = &[(
    "memories.no_memories_if_mcp_or_web_search",
    "memories.disable_on_external_context",
)];

/// The sections, in the order in which they are shown, and what each is for.
pub(super) const SECTIONS: &[(&str, &str)] = &[
    ("features", "What is switched on"),
    (
        "memories",
        "What is remembered, from when, and for how long",
    ),
    ("sessions", "Whose sessions are read"),
    (
        "model",
        "Who writes recaps and memory, and how much it may cost",
    ),
    ("worker", "Limits of one consolidation"),
    ("guard", "What a consolidation may lose"),
    ("inject", "What a new session is given"),
];

macro_rules! switch {
    ($section:ident . $key:ident, $about:literal) => {
        Key {
            name: concat!(stringify!($section), ".", stringify!($key)),
            about: $about,
            field: Field::Switch(|config| &mut config.$section.$key),
        }
    };
}

macro_rules! number {
    ($section:ident . $key:ident, $range:expr, $about:literal) => {
        Key {
            name: concat!(stringify!($section), ".", stringify!($key)),
            about: $about,
            field: Field::Number {
                get: |config| config.$section.$key.to_number(),
                set: |config, number| config.$section.$key = Count::from_number(number),
                least: *$range.start(),
                most: *$range.end(),
            },
        }
    };
}

macro_rules! other {
    ($section:ident . $key:ident, $kind:ident, $about:literal) => {
        Key {
            name: concat!(stringify!($section), ".", stringify!($key)),
            about: $about,
            field: Field::$kind(|config| &mut config.$section.$key),
        }
    };
}

/// A password has no place in the file; one from the environment does.
fn check_proxy(text: &str) -> Result<(), String> {
    if text == "none" {
        return Ok(());
    }
    match Url::parse(text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            Err("it must begin with `http://` or `https://`, or be `none`".to_owned())
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => Err(
            "it holds a user or password: set HTTPS_PROXY in the environment instead".to_owned(),
        ),
        Ok(url) if url.has_host() => Ok(()),
        _ => Err("it is no URL".to_owned()),
    }
}

pub(super) const KEYS: &[Key] = &[
    switch!(
        features.memories,
        "The master switch: off, nothing is read, written or injected"
    ),
    Key {
        name: "memories.version",
        about: "Which memory is written and read: v1 has a handbook and raw memories, v2 a summary alone",
        field: Field::Choice {
            words: &["v1", "v2"],
            hidden: &[],
            get: |config| config.memories.version.label(),
            set: |config, word| {
                if let Some(version) = MemoryVersion::parse(word) {
                    config.memories.version = version;
                }
            },
            otherwise: None,
        },
    },
    switch!(memories.dual_write, "Write the other version too"),
    switch!(
        memories.generate_memories,
        "Learn from sessions that start from now on; off, new sessions are marked disabled"
    ),
    switch!(memories.use_memories, "Give memory to new sessions"),
    switch!(
        memories.disable_on_external_context,
        "Leave out sessions that web or MCP content reached"
    ),
    number!(
        memories.max_rollouts_per_startup,
        1..=128,
        "Sessions extracted in one background pass, and at once over all processes"
    ),
    number!(
        memories.max_rollout_age_days,
        0..=90,
        "Sessions older than this many days are not extracted"
    ),
    number!(
        memories.min_rollout_idle_hours,
        1..=48,
        "A session rests this many hours before it is extracted"
    ),
    number!(
        memories.max_raw_memories_for_consolidation,
        1..=4096,
        "Recaps that one consolidation takes in"
    ),
    number!(
        memories.max_unused_days,
        0..=365,
        "Recaps unused for this many days are left out, and pruned"
    ),
    number!(
        memories.min_rate_limit_remaining_percent,
        0..=100,
        "A pass does not start with less than this share of a paid quota left"
    ),
    other!(
        memories.extract_model,
        Text,
        "The model for extraction, when the back end has several"
    ),
    other!(
        memories.consolidation_model,
        Text,
        "The model for consolidation, when the back end has several"
    ),
    switch!(sessions.codex, "Read the sessions of Codex"),
    switch!(sessions.claude, "Read the sessions of Claude Code"),
    other!(
        sessions.codex_roots,
        Folders,
        "Folders of Codex sessions, in place of `sessions` in its home"
    ),
    other!(
        sessions.claude_roots,
        Folders,
        "Folders of Claude Code sessions, in place of `projects` in its home"
    ),
    switch!(
        sessions.include_exec,
        "Read sessions that nobody typed in: `codex exec`, `claude -p`, SDKs"
    ),
    other!(
        sessions.disabled_projects,
        Projects,
        "Projects that are off, as folders or as `example.org/team/project`: with all that is below them"
    ),
    Key {
        name: "model.backend",
        about: "Who answers: `offline` is built in and free, `codex` and `claude` are these programs with your login, `command` is a program of yours; `openai`, `chat` (any compatible server) and `anthropic` are services",
        field: Field::Choice {
            words: &[
                "offline",
                "codex",
                "claude",
                "command",
                "openai",
                "chat",
                "anthropic",
            ],
            hidden: &["replay"],
            get: |config| config.model.backend.label(),
            set: |config, word| {
                if let Some(backend) = Backend::parse(word) {
                    config.model.backend = backend;
                }
            },
            otherwise: None,
        },
    },
    other!(
        model.command,
        Words,
        "The program of the back end `command` and its arguments, any exit code of which but 0 is a failure; for `codex` and `claude` where the program is, and arguments that it gets first"
    ),
    other!(
        model.command_variables,
        Words,
        "Names of environment variables that such a program gets besides the usual ones"
    ),
    Key {
        name: "model.endpoint",
        about: "Address of the service, in place of its own; plain http is for this machine alone",
        field: Field::Checked {
            field: |config| &mut config.model.endpoint,
            check: |text| match Endpoint::parse(text) {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            },
            example: "http://localhost:11434/v1",
        },
    },
    Key {
        name: "model.key_env",
        about: "Name of the environment variable that holds the service's key; the key itself never stands here",
        field: Field::Checked {
            field: |config| &mut config.model.key_env,
            check: |text| {
                let problem = "it must be the name of a variable; a key itself never stands here";
                is_variable_name(text)
                    .then_some(())
                    .ok_or(problem.to_owned())
            },
            example: "MY_API_KEY",
        },
    },
    other!(
        model.key_file,
        File,
        "File that holds the key, in place of a variable"
    ),
    other!(
        model.headers,
        Headers,
        "Headers sent with each request, as `Name: value`, or `Name: $VARIABLE` for what is secret"
    ),
    Key {
        name: "model.proxy",
        about: "Address of a proxy, in place of what HTTPS_PROXY, ALL_PROXY and NO_PROXY say; `none` is without",
        field: Field::Checked {
            field: |config| &mut config.model.proxy,
            check: check_proxy,
            example: "http://proxy.example:3128",
        },
    },
    other!(
        model.ca_file,
        File,
        "Certificates (PEM) that are trusted besides the system's"
    ),
    number!(
        model.idle_seconds_max,
        1..=3_600,
        "Longest silence of a service, also before its answer begins"
    ),
    number!(
        model.context_tokens,
        0..=100_000_000,
        "Tokens that the model takes in and gives out together; 0 is not known, then a transcript has at most 150000"
    ),
    number!(
        model.input_tokens_max,
        0..=100_000_000,
        "Most tokens of a transcript that are sent; 0 is as many as fit"
    ),
    number!(
        model.output_tokens_max,
        256..=1_000_000,
        "Most tokens of one answer of a service; one that is cut off is asked for once more with twice as many"
    ),
    number!(
        model.call_seconds_max,
        1..=3_600,
        "Time after which one call for an extraction is given up"
    ),
    number!(
        model.calls_per_pass_max,
        0..=100_000,
        "Calls that one pass may make to a back end that costs something; 0 is none"
    ),
    number!(
        model.calls_per_day_max,
        0..=1_000_000,
        "The same for one day, UTC, over all passes; 0 is none"
    ),
    number!(
        model.tokens_per_day_max,
        0..=100_000_000_000,
        "Tokens in and out that one day may cost, UTC; 0 is no call at all"
    ),
    Key {
        name: "worker.kind",
        about: "Who edits the memory files: `model` is the back end of `[model]`, `offline` the built-in rules, the others as there",
        field: Field::Choice {
            words: &[
                "model",
                "offline",
                "openai",
                "chat",
                "anthropic",
                "codex",
                "claude",
                "command",
            ],
            hidden: &["replay"],
            get: |config| config.worker.kind.map_or("model", Backend::label),
            set: |config, word| config.worker.kind = Backend::parse(word),
            otherwise: None,
        },
    },
    number!(
        worker.seconds_max,
        1..=14_400,
        "Time after which a consolidation is stopped"
    ),
    number!(
        worker.steps_max,
        1..=10_000,
        "Answers of the model in one consolidation, each of which may use several tools"
    ),
    Key {
        name: "worker.sandbox",
        about: "Who keeps a program from writing elsewhere: the kernel where it can (`auto`), the kernel or nothing is run (`required`), a container around memrev (`external`)",
        field: Field::Choice {
            words: &["auto", "required", "external"],
            hidden: &[],
            get: |config| match config.worker.sandbox {
                Sandbox::Auto => "auto",
                Sandbox::Required => "required",
                Sandbox::External => "external",
            },
            set: |config, word| match word {
                "auto" => config.worker.sandbox = Sandbox::Auto,
                "required" => config.worker.sandbox = Sandbox::Required,
                "external" => config.worker.sandbox = Sandbox::External,
                _ => {}
            },
            otherwise: None,
        },
    },
    switch!(
        worker.review,
        "A consolidation waits for `memrev accept` or `memrev reject` instead of being published"
    ),
    other!(
        worker.writable,
        Folders,
        "Folders that a program may write to besides its working folder, in place of those it is known to need"
    ),
    number!(
        guard.unexplained_entries_max,
        0..=1_000,
        "Entries that one consolidation may lose without a reason"
    ),
    number!(
        guard.unexplained_percent_max,
        0..=100,
        "The same as a share of all entries; a result is refused when it is over both"
    ),
    number!(
        guard.retired_percent_max,
        0..=100,
        "Share of all entries that a worker may retire with a reason"
    ),
    number!(
        guard.retired_entries_min,
        0..=1_000,
        "Entries that it may retire however few there are"
    ),
    number!(
        guard.edit_quiet_seconds,
        0..=3_600,
        "A file you saved less than this many seconds ago is left alone"
    ),
    Key {
        name: "inject.scope",
        about: "Topics that a new session is given: all, all that fit with this project's first, or this project's only",
        field: Field::Choice {
            words: &["all", "ranked", "project"],
            hidden: &[],
            get: |config| match config.inject.scope {
                Scope::All => "all",
                Scope::Ranked => "ranked",
                Scope::Project => "project",
            },
            set: |config, word| match word {
                "all" => config.inject.scope = Scope::All,
                "ranked" => config.inject.scope = Scope::Ranked,
                "project" => config.inject.scope = Scope::Project,
                _ => {}
            },
            otherwise: None,
        },
    },
    // 10,000 bytes are 2,500 estimated tokens: what the reference injects at most.
    number!(
        inject.summary_bytes_max,
        1_000..=10_000,
        "Largest summary, in bytes"
    ),
];

/// The number types of [`Config`]. Values are within a key's bounds, which
/// every type here can hold.
trait Count {
    fn to_number(&self) -> i64;
    fn from_number(number: i64) -> Self;
}

macro_rules! counts {
    ($($type:ty),*) => {
        $(impl Count for $type {
            fn to_number(&self) -> i64 {
                (*self).try_into().unwrap_or(i64::MAX)
            }

            fn from_number(number: i64) -> Self {
                number.try_into().unwrap_or(Self::MAX)
            }
        })*
    };
}

counts!(u32, u64, usize);

impl Count for i64 {
    fn to_number(&self) -> i64 {
        *self
    }

    fn from_number(number: i64) -> Self {
        number
    }
}
