//! What every command starts from.

use crate::cli::programs;
use crate::cli::report::{Class, Failure, Printer};
use crate::cli::services;
use crate::config::{self, Backend, Config, ConfigProblem};
use crate::consolidate::ConsolidateError;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::history::RevisionError;
use crate::ledger::Ledger;
use crate::model::Model;
use crate::model::api::Kind;
use crate::model::command::Preset;
use crate::model::offline::Offline;
use crate::model::replay::Replay;
use crate::service::choice::PassRequest;
use crate::service::desk::DeskError;
use crate::service::survey::SurveyParts;
use crate::sessions::Roots;
use crate::store::author::{Author, PersonFacts};
use crate::store::error::StoreError;
use crate::store::{Store, StorePaths};
use crate::sys::clock::Clock;
use crate::sys::env::Environment;
use crate::sys::home::Home;
use crate::sys::ids::Ids;
use crate::sys::lock::LockError;

/// The process's surroundings as values.
pub(crate) struct Context {
    pub(crate) environment: Environment,
    pub(crate) home: Home,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) ids: Ids,
    pub(crate) printer: Printer,
}

impl Context {
    pub(crate) fn new(environment: Environment) -> Self {
        Self {
            home: Home::new(environment.home.clone()),
            clock: environment.clock(),
            ids: Ids::new(environment.seed.as_deref()),
            printer: Printer,
            environment,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The configuration; every problem in it is shown.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        config::load(self.home.root(), &self.environment.user_home)
            .map_err(|problems| config_failure(&problems))
    }

    /// The configuration, when memory is switched on.
    pub(crate) fn config_when_on(&self) -> Result<Config, Failure> {
        let config = self.config()?;
        if config.features.memories {
            return Ok(config);
        }
        let file = self.home.config_file();
        if !file.exists() {
            return Err(
                Failure::new(Class::Refused, "memrev is not set up here yet")
                    .cause(format!("there is no `{}`", file.display()))
                    .hint("run `memrev init` first; nothing was written"),
            );
        }
        Err(Failure::new(Class::Refused, "memory is switched off")
            .cause(format!(
                "`features.memories` is false in `{}`",
                file.display()
            ))
            .hint("set `memories = true` under `[features]`; nothing was written"))
    }

    /// Where the agents leave their transcripts.
    pub(crate) fn roots(&self, config: &Config) -> Roots {
        let pick = |is_on: bool, chosen: &Option<Vec<_>>, own: std::path::PathBuf| match chosen {
            _ if !is_on => Vec::new(),
            Some(roots) => roots.clone(),
            None => vec![own],
        };
        let sessions = &config.sessions;
        let codex = self.environment.codex_home.join("sessions");
        let claude = self.environment.claude_home.join("projects");
        Roots {
            codex: pick(sessions.codex, &sessions.codex_roots, codex),
            claude: pick(sessions.claude, &sessions.claude_roots, claude),
            home: Some(self.home.root().to_owned()),
        }
    }

    /// For looking at what a pass by hand would take.
    pub(crate) fn survey_parts<'a>(&'a self, config: &'a Config) -> SurveyParts<'a> {
        SurveyParts {
            home: &self.home,
            config,
            roots: self.roots(config),
            is_free: config.model.backend == Backend::Offline,
            request: PassRequest {
                is_by_hand: true,
                ..PassRequest::default()
            },
            now: self.now(),
        }
    }

    /// The back end that the configuration names, as the model that extracts.
    pub(crate) fn extract_model(&self, config: &Config) -> Result<Box<dyn Model>, Failure> {
        let model = config.memories.extract_model.as_deref();
        self.model(config, config.model.backend, model)
    }

    /// The back end that the configuration names, as the model that consolidates.
    pub(crate) fn consolidation_model(&self, config: &Config) -> Result<Box<dyn Model>, Failure> {
        let backend = config.worker.kind.unwrap_or(config.model.backend);
        let model = config.memories.consolidation_model.as_deref();
        self.model(config, backend, model)
    }

    /// `model` counts for back ends that have several.
    fn model(
        &self,
        config: &Config,
        backend: Backend,
        model: Option<&str>,
    ) -> Result<Box<dyn Model>, Failure> {
        let command = |preset| -> Result<Box<dyn Model>, Failure> {
            Ok(Box::new(programs::command(self, config, preset, model)?))
        };
        let service = |kind| -> Result<Box<dyn Model>, Failure> {
            Ok(Box::new(services::service(self, config, kind, model)?))
        };
        match backend {
            Backend::Offline => Ok(Box::new(Offline)),
            Backend::Codex => command(Preset::Codex),
            Backend::Claude => command(Preset::Claude),
            Backend::Command => command(Preset::Plain),
            Backend::OpenAi => service(Kind::OpenAi),
            Backend::Chat => service(Kind::Chat),
            Backend::Anthropic => service(Kind::Anthropic),
            Backend::Replay => {
                let folder = self.environment.replay.as_ref().ok_or_else(|| {
                    let message = "the back end `replay` has no recorded answers";
                    Failure::new(Class::Refused, message)
                        .hint("set MEMREV_REPLAY to their folder, or `model.backend = \"offline\"`")
                })?;
                let replay = Replay::open(folder).map_err(|error| Failure::refused(&error))?;
                Ok(Box::new(replay.called(model)))
            }
        }
    }

    /// Who the author of hand edits is.
    pub(crate) fn person(&self) -> Author {
        let facts = PersonFacts::read(
            &self.environment.user_home,
            self.environment.user_name.as_deref(),
        );
        Author::person(&facts)
    }

    pub(crate) fn store_paths(&self, version: MemoryVersion) -> StorePaths {
        StorePaths::in_home(self.home.root(), version.folder())
    }

    /// The ledger, made if there is none.
    pub(crate) fn ledger(&self) -> Result<Ledger, Failure> {
        let opened = Ledger::open(&self.home.ledger_file(), self.now());
        opened.map(|it| it.ledger).map_err(|error| {
            Failure::refused(&error).hint("the message above names the file; nothing was written")
        })
    }

    /// The repository of a version.
    pub(crate) fn store(&self, version: MemoryVersion) -> Result<Store, Failure> {
        Store::open(self.store_paths(version)).map_err(|error| store_failure(&error))
    }
}

/// The versions that a pass writes: the selected one, and the other with
/// `dual_write`.
pub(crate) fn versions(config: &Config) -> Vec<MemoryVersion> {
    let selected = config.memories.version;
    if config.memories.dual_write {
        vec![selected, selected.other()]
    } else {
        vec![selected]
    }
}

fn config_failure(problems: &[ConfigProblem]) -> Failure {
    let place = |problem: &ConfigProblem| match problem.line_number {
        Some(line_number) => format!("{}:{line_number}", problem.path.display()),
        None => problem.path.display().to_string(),
    };
    let mut failure = Failure::new(Class::Refused, "the configuration cannot be used");
    for problem in problems {
        failure = failure.cause(format!("{}: {}", place(problem), problem.message));
    }
    let hint = problems.iter().find_map(|problem| problem.hint.clone());
    failure.hint(hint.unwrap_or_else(|| "mend the file; nothing was written".to_owned()))
}

/// What to say when a person's name for a commit leads nowhere.
pub(crate) fn revision_failure(error: &RevisionError) -> Failure {
    match error {
        RevisionError::Store(error) => store_failure(error),
        RevisionError::Unknown { .. } => {
            Failure::refused(error).hint("`memrev log` lists the commits")
        }
    }
}

/// Class and next step for a memory folder that could not be opened.
pub(crate) fn desk_failure(error: &DeskError) -> Failure {
    match error {
        DeskError::Store(error) => store_failure(error),
        DeskError::Survey(error) => Failure::refused(error),
    }
}

/// Class and next step for what taking in a person's edits says.
pub(crate) fn consolidate_failure(error: &ConsolidateError) -> Failure {
    match error {
        ConsolidateError::Store(error) => store_failure(error),
        ConsolidateError::Lock(LockError::Busy { .. }) => {
            Failure::of(Class::Busy, error).hint("try again when it is done; nothing was written")
        }
        _ => Failure::refused(error),
    }
}

/// Class and next step for what a store says.
pub(crate) fn store_failure(error: &StoreError) -> Failure {
    let class = match error {
        StoreError::Busy(LockError::Busy { .. })
        | StoreError::GitLocked { .. }
        | StoreError::Moved { .. }
        | StoreError::Pruned { .. } => Class::Busy,
        _ => Class::Refused,
    };
    let failure = Failure::of(class, error);
    match error {
        StoreError::NotThere { .. } => failure.hint("run `memrev init`"),
        StoreError::NoRepository { .. } => failure.hint(
            "bring `.git` back, or run `memrev init --rebuild` to begin a new history with these files",
        ),
        StoreError::NotOurs { .. } => failure.hint(
            "finish or abort it with plain `git` in that folder and check out `main`; nothing was written",
        ),
        StoreError::NewerFormat { .. } => failure.hint("update memrev; nothing was written"),
        StoreError::Busy(LockError::Busy { .. }) | StoreError::GitLocked { .. } => {
            failure.hint("try again when it is done; nothing was written")
        }
        _ => failure,
    }
}
