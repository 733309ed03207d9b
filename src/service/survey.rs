//! Looking without touching: what a pass would take, and what is pending.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::Config;
use crate::config::modes::{self, Modes, ModesError};
use crate::consolidate::Policy;
use crate::consolidate::guard::GuardLimits;
use crate::domain::id::ThreadId;
use crate::domain::limits::SNAPSHOT_FILE_BYTES_MAX;
use crate::domain::path::{FileKind, TreePath, WITHHELD};
use crate::domain::session::{MemoryMode, SessionHead};
use crate::domain::text::{Raw, Redacted};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::extract::input::{Template, TemplateError};
use crate::extract::select::{Reason, Selection};
use crate::ledger::{Job, JobKind, JobState, Ledger, LedgerError, Marks, OpenError};
use crate::notes::withheld_set::{self, WithheldSet, WithheldSetError};
use crate::recaps::{Extractions, RecapsError};
use crate::service::choice::{self, Earlier, PassRequest, Situation};
use crate::service::scan::{self, READER_GENERATION};
use crate::sessions::{self, Found, ReadError, Roots, Skipped};
use crate::sys::fs::{self, FsError};
use crate::sys::home::Home;

/// Largest prompt file of a person's own, in bytes.
const PROMPT_BYTES_MAX: u64 = 256 * 1024;

/// What a look needs. Everything is only read.
pub(crate) struct SurveyParts<'a> {
    pub(crate) home: &'a Home,
    pub(crate) config: &'a Config,
    pub(crate) roots: Roots,
    pub(crate) is_free: bool,
    pub(crate) request: PassRequest,
    pub(crate) now: Timestamp,
}

/// What was seen of the sessions.
pub(crate) struct Survey {
    pub(crate) roots: Vec<PathBuf>,
    found: Vec<(Found, SessionHead)>,
    selection: Selection,
    modes: Modes,
    jobs: BTreeMap<ThreadId, Job>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) unreadable: Vec<(PathBuf, ReadError)>,
}

impl Survey {
    /// Each session with the reason it is left out, sorted by thread id.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = (&SessionHead, Option<&Reason>)> {
        let reasons: BTreeMap<usize, &Reason> = (self.selection.left_out.iter())
            .map(|left_out| (left_out.index, &left_out.reason))
            .collect();
        (self.found.iter().enumerate())
            .map(move |(index, (_, head))| (head, reasons.get(&index).copied()))
    }

    /// The failure for which passes in the background leave a session alone
    /// now, though a person may have it tried.
    pub(crate) fn waiting(&self, head: &SessionHead, now: Timestamp) -> Option<&Job> {
        let job = self.jobs.get(&head.thread_id)?;
        let covers = |mark: Timestamp| head.updated_at.seconds() <= mark.seconds();
        let waits = match &job.state {
            JobState::Waiting { retry_at } => now < *retry_at,
            JobState::Exhausted => true,
            _ => false,
        };
        (waits && job.input_watermark.is_some_and(covers)).then_some(job)
    }

    /// Every session with its transcript.
    pub(crate) fn found(&self) -> impl Iterator<Item = (&Found, &SessionHead)> {
        self.found.iter().map(|(found, head)| (found, head))
    }

    /// The files of the sessions that a pass would take, newest first.
    pub(crate) fn eligible(&self) -> impl Iterator<Item = &Found> {
        (self.selection.chosen.iter()).map(|chosen| &self.found[chosen.index].0)
    }

    /// The modes that `consolidate` goes by.
    ///
    /// # Errors
    ///
    /// When the recaps cannot be listed.
    pub(crate) fn modes(
        &self,
        parts: &SurveyParts<'_>,
        version: MemoryVersion,
    ) -> Result<BTreeMap<ThreadId, MemoryMode>, RecapsError> {
        effective_modes(parts.home, version, parts.config, &self.modes, &self.found)
    }
}

/// Why nothing could be said.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SurveyError {
    #[error(transparent)]
    Ledger(#[from] OpenError),
    #[error(transparent)]
    LedgerRead(#[from] LedgerError),
    #[error(transparent)]
    Modes(#[from] ModesError),
    #[error("could not list the recaps")]
    Recaps(#[from] RecapsError),
    #[error(transparent)]
    Withheld(#[from] WithheldSetError),
    #[error(transparent)]
    Files(#[from] FsError),
    #[error("a prompt of your own cannot be used")]
    Template(#[from] TemplateError),
}

/// Looks at the sessions for the selected version.
///
/// # Errors
///
/// When ledger, modes, recaps or withheld entries cannot be read.
pub(crate) fn look(parts: &SurveyParts<'_>) -> Result<Survey, SurveyError> {
    let ledger = Ledger::open_to_read(&parts.home.ledger_file())?;
    let marks = match &ledger {
        Some(ledger) => ledger.marks(READER_GENERATION)?,
        None => Marks::default(),
    };
    let scan = scan::scan(sessions::discover(&parts.roots), &marks);
    let version = parts.config.memories.version;
    let earlier = earlier(parts.home, ledger.as_ref(), version, parts.now)?;
    let modes = modes::load(parts.home.root())?;
    let withheld = withheld(parts.home, version)?;
    let situation = Situation {
        config: parts.config,
        modes: &modes,
        earlier: &earlier,
        withheld: withheld.as_slice(),
        is_free: parts.is_free,
    };
    let selection = choice::select(&scan.sessions, &situation, &parts.request, parts.now);
    let roots = &parts.roots;
    Ok(Survey {
        roots: roots.codex.iter().chain(&roots.claude).cloned().collect(),
        found: scan.sessions,
        selection,
        modes,
        jobs: earlier.jobs,
        skipped: scan.skipped,
        unreadable: scan.unreadable,
    })
}

/// What the home and a memory folder withhold.
///
/// # Errors
///
/// When a file that says so cannot be read.
pub(crate) fn withheld(home: &Home, version: MemoryVersion) -> Result<WithheldSet, SurveyError> {
    let folder = home.memory_folder(version);
    let mut copies = Vec::new();
    for entry in fs::list(&folder.join(WITHHELD))? {
        let name = entry.path.file_name().unwrap_or_default().to_string_lossy();
        let Some(path) = TreePath::parse(&format!("{WITHHELD}/{name}")) else {
            continue;
        };
        if path.kind() == FileKind::Withheld
            && let Some(text) = fs::read_text_if_any(&entry.path, SNAPSHOT_FILE_BYTES_MAX)?
        {
            copies.push((path, Raw::new(text)));
        }
    }
    Ok(withheld_set::load(home.root(), &copies)?)
}

/// What earlier passes left in the ledger and in the extractions folder.
///
/// # Errors
///
/// When either cannot be read.
pub(crate) fn earlier(
    home: &Home,
    ledger: Option<&Ledger>,
    version: MemoryVersion,
    now: Timestamp,
) -> Result<Earlier, SurveyError> {
    let mut earlier = Earlier::default();
    if let Some(ledger) = ledger {
        earlier.extracted_until = ledger.extracted_until(version)?;
        for job in ledger.jobs(version, now)? {
            if job.kind == JobKind::Extract
                && let Some(thread_id) = ThreadId::parse(&job.key)
            {
                earlier.jobs.insert(thread_id, job);
            }
        }
    }
    let loaded = Extractions::open(home.root(), version).load_all()?;
    for (thread_id, stored) in loaded.recaps {
        let until = earlier.extracted_until.entry(thread_id).or_default();
        *until = (*until).max(stored.recap.header.updated_at);
    }
    Ok(earlier)
}

/// The prompt of extraction: a person's own from the home, else the built-in.
///
/// # Errors
///
/// When a person's own cannot be read or has mistakes.
pub(crate) fn template(home: &Home, version: MemoryVersion) -> Result<Template, SurveyError> {
    let file = home
        .prompts()
        .join(format!("{}.md", Template::name_of(version)));
    match fs::read_text_if_any(&file, PROMPT_BYTES_MAX)? {
        Some(text) => Ok(Template::own(version, text)?),
        None => Ok(Template::built_in(version)),
    }
}

/// The settings that `consolidate` goes by.
pub(crate) fn consolidate_policy(config: &Config, is_by_hand: bool) -> Policy {
    let guard = &config.guard;
    Policy {
        recaps_max: config.memories.max_raw_memories_for_consolidation,
        unused_days_max: config.memories.max_unused_days,
        // Who asks for a pass is done with editing.
        edit_quiet_seconds: if is_by_hand {
            0
        } else {
            guard.edit_quiet_seconds
        },
        summary_bytes_max: config.inject.summary_bytes_max,
        guard: GuardLimits {
            unexplained_max: guard.unexplained_entries_max,
            unexplained_percent_max: guard.unexplained_percent_max,
            retired_percent_max: guard.retired_percent_max,
            retired_min: guard.retired_entries_min,
            ..GuardLimits::default()
        },
        worker_time_max: Duration::from_secs(config.worker.seconds_max),
        ..Policy::default()
    }
}

/// The modes that `consolidate` goes by: every session that is not simply
/// enabled by its own transcript. What belongs to a project that is switched
/// off counts as disabled, also where only its recap is left.
///
/// # Errors
///
/// When the recaps cannot be listed.
pub(crate) fn effective_modes(
    home: &Home,
    version: MemoryVersion,
    config: &Config,
    modes: &Modes,
    sessions: &[(Found, SessionHead)],
) -> Result<BTreeMap<ThreadId, MemoryMode>, RecapsError> {
    let own = sessions
        .iter()
        .map(|(_, head)| (head.thread_id.clone(), head.mode));
    let mut effective: BTreeMap<ThreadId, MemoryMode> = own
        .filter(|(_, mode)| *mode != MemoryMode::Enabled)
        .collect();
    for (thread_id, entry) in modes.iter() {
        effective.insert(thread_id.clone(), entry.mode);
    }
    if config.sessions.disabled_projects.is_empty() {
        return Ok(effective);
    }
    for (_, head) in sessions {
        if choice::is_project_off(head, config) {
            effective.insert(head.thread_id.clone(), MemoryMode::Disabled);
        }
    }
    for (thread_id, stored) in Extractions::open(home.root(), version).load_all()?.recaps {
        let header = &stored.recap.header;
        let cwd = header.cwd.as_ref().map(Redacted::as_str);
        let project = header.project.as_ref().map(Redacted::as_str);
        if config.sessions.is_project_disabled(cwd, project) {
            effective.insert(thread_id, MemoryMode::Disabled);
        }
    }
    Ok(effective)
}
