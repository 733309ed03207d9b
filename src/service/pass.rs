//! One pass: prune, check the quota, extract, consolidate.
//!
//! The order is the reference's (section 2): what costs nothing comes first.
//! Consolidation runs even when no session was extracted, since notes and hand
//! edits wait for it too.
//!
//! # Crash safety
//!
//! A pass keeps nothing in memory that counts: stopped between two steps, the
//! next one finds what was done in files and ledger and goes on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::config::Config;
use crate::config::modes::{self, ModeEntry, Modes, ModesError, SetBy};
use crate::consolidate::{self, ConsolidateError, ConsolidateReport, ConsolidateRequest, Outcome};
use crate::domain::id::ThreadId;
use crate::domain::quota::RateLimits;
use crate::domain::session::{MemoryMode, SessionHead};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::extract::input::TemplateError;
use crate::extract::run::{self as extract_run, Report as SessionReport, Task};
use crate::extract::select::{Reason, Selection};
use crate::ledger::{Budget, DayLimits, Ledger, LedgerError, OpenError, Pace};
use crate::model::Model;
use crate::notes::purged::{self, PurgedError};
use crate::recaps::{Extractions, PruneRules, RecapsError};
use crate::service::LOCK_WAIT;
use crate::service::choice::{self, PassRequest, Situation};
use crate::service::folder::{self, FolderError};
use crate::service::idle::{self, Look};
use crate::service::loss::{self, LostHistory};
use crate::service::quota::{self, Refusal};
use crate::service::scan::{self, READER_GENERATION, Scan};
use crate::service::survey::{self, SurveyError};
use crate::sessions::{self, Found, Roots};
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::{Store, StorePaths};
use crate::sys::clock::Clock;
use crate::sys::fs::FsError;
use crate::sys::home::Home;
use crate::sys::ids::Ids;
use crate::sys::lock::{FileLock, LockError};
use crate::sys::stop;

/// Everything outside that a pass uses.
pub(crate) struct PassParts<'a> {
    pub(crate) home: &'a Home,
    pub(crate) config: &'a Config,
    pub(crate) roots: Roots,
    /// Extracts.
    pub(crate) model: &'a dyn Model,
    pub(crate) consolidation_model: &'a dyn Model,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) ids: &'a Ids,
    /// The author of edit commits.
    pub(crate) person: &'a Author,
    /// Which of the two stages to run.
    pub(crate) stages: Stages,
    /// A person wants to stop.
    pub(crate) is_cancelled: &'a (dyn Fn() -> bool + Sync),
    /// Told after each session, for progress on a terminal.
    pub(crate) progress: &'a (dyn Fn(Progress<'_>) + Sync),
}

/// The stages of a pass; pruning goes with extraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stages {
    Both,
    ExtractOnly,
    ConsolidateOnly,
}

/// Something a person at a terminal may want to see while it happens.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Progress<'a> {
    Extracting { total: usize },
    Extracted { report: &'a SessionReport },
    Consolidating { version: MemoryVersion },
}

/// What a pass did and saw.
#[derive(Debug, Default)]
pub(crate) struct PassReport {
    /// Nothing can have changed since the last pass had nothing to do.
    pub(crate) was_idle: bool,
    /// A damaged ledger was moved there and a new one made.
    pub(crate) ledger_set_aside: Option<PathBuf>,
    /// A person stopped it: what it did stays done, the rest waits.
    pub(crate) was_stopped: bool,
    pub(crate) sessions: usize,
    pub(crate) unreadable: Vec<String>,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) versions: Vec<VersionReport>,
}

/// What became of one version.
#[derive(Debug)]
pub(crate) struct VersionReport {
    pub(crate) version: MemoryVersion,
    /// Its folder was gone, and a new history began.
    pub(crate) lost_history: Option<LostHistory>,
    pub(crate) pruned: Vec<ThreadId>,
    pub(crate) extracted: Vec<SessionReport>,
    /// Why sessions were not taken, with the session's newest record.
    pub(crate) left_out: Vec<(ThreadId, Reason)>,
    pub(crate) consolidated: Option<ConsolidateReport>,
}

/// Why a pass could not be carried through. What was done before stays done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Modes(#[from] ModesError),
    #[error(transparent)]
    Survey(#[from] SurveyError),
    #[error("could not keep the recaps in order")]
    Recaps(#[from] RecapsError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Files(#[from] FsError),
    #[error(transparent)]
    Consolidate(#[from] ConsolidateError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("could not read what was purged")]
    Purged(#[from] PurgedError),
}

/// Runs one pass over `versions`.
///
/// # Errors
///
/// When a store, the ledger or the home cannot be used. A session that cannot
/// be extracted and an attempt that is refused are in the report instead.
pub(crate) fn run(
    parts: &PassParts<'_>,
    versions: &[MemoryVersion],
    request: &PassRequest,
) -> Result<PassReport, PassError> {
    let now = parts.clock.now();
    let words = format!("{:?} {}", parts.stages, request.words());
    let discovery = sessions::discover(&parts.roots);
    let look = idle::look(parts.home, versions, &discovery, &words);
    if idle::holds(parts.home, look, now) {
        return Ok(PassReport {
            was_idle: true,
            sessions: discovery.found.len(),
            ..PassReport::default()
        });
    }

    let mut lost = BTreeMap::new();
    for version in versions {
        lost.extend(lost_history(parts.home, *version, now)?);
        // Nothing is extracted, or paid for, that could not be folded in.
        folder::prepare(parts.home, *version, now)?.readiness()?;
    }
    let opened = Ledger::open(&parts.home.ledger_file(), now)?;
    if opened.is_new {
        tracing::info!("a new ledger begins; usage is counted again from the transcripts");
    }
    let mut ledger = opened.ledger;
    let scan = scan_and_mark(&mut ledger, discovery)?;
    let modes = mark_new_sessions(parts, &scan, now)?;
    let mut report = PassReport {
        ledger_set_aside: opened.set_aside,
        sessions: scan.sessions.len(),
        unreadable: (scan.unreadable.iter())
            .map(|(_, error)| error.to_string())
            .collect(),
        ..PassReport::default()
    };
    let ledger = Mutex::new(ledger);
    let budget = budget(parts, request);
    for version in versions {
        let mut one = VersionReport {
            version: *version,
            lost_history: lost.remove(version),
            pruned: Vec::new(),
            extracted: Vec::new(),
            left_out: Vec::new(),
            consolidated: None,
        };
        if parts.stages != Stages::ConsolidateOnly {
            one.pruned = prune(parts, &ledger, *version, now)?;
            report.refusal = refusal(parts, &scan, request, now);
            if report.refusal.is_some() {
                report.versions.push(one);
                continue;
            }
            extract(parts, &ledger, &budget, &scan, &modes, request, &mut one)?;
        }
        if parts.stages != Stages::ExtractOnly && !(parts.is_cancelled)() {
            (parts.progress)(Progress::Consolidating { version: *version });
            let done = consolidate(parts, &ledger, &budget, &scan, request, *version)?;
            one.consolidated = Some(done);
        }
        report.versions.push(one);
    }
    drop(ledger);
    report.was_stopped = (parts.is_cancelled)();
    remember_idle(parts, versions, &words, &report)?;
    Ok(report)
}

/// Asked before the folder is made anew. A ledger that cannot be read says
/// nothing here, and is dealt with when it is opened.
fn lost_history(
    home: &Home,
    version: MemoryVersion,
    now: Timestamp,
) -> Result<Option<(MemoryVersion, LostHistory)>, PassError> {
    let ledger = Ledger::open_to_read(&home.ledger_file()).ok().flatten();
    let lost = loss::lost_history(home, ledger.as_ref(), version, now)?;
    Ok(lost.map(|lost| (version, lost)))
}

fn scan_and_mark(ledger: &mut Ledger, discovery: sessions::Discovery) -> Result<Scan, PassError> {
    let scan = scan::scan(discovery, &ledger.marks(READER_GENERATION)?);
    if !scan.new_marks.is_empty() {
        ledger.put_marks(&scan.new_marks, READER_GENERATION)?;
    }
    if !scan.gone.is_empty() {
        ledger.forget_marks(&scan.gone)?;
    }
    stop::point("service.scanned");
    Ok(scan)
}

/// With `generate_memories = false`, sessions that began after that was
/// written down stay out for good, also when it is switched on again.
fn mark_new_sessions(
    parts: &PassParts<'_>,
    scan: &Scan,
    now: Timestamp,
) -> Result<Modes, PassError> {
    let home = parts.home.root();
    let known = modes::load(home)?;
    if parts.config.memories.generate_memories {
        return Ok(known);
    }
    let since = crate::sys::fs::size_and_time(&parts.home.config_file()).map(|(_, at)| at);
    let began_since = |head: &SessionHead| match (head.started_at, since) {
        (Some(started_at), Some(since)) => since <= started_at,
        _ => false,
    };
    let new: Vec<ThreadId> = (scan.sessions.iter())
        .map(|(_, head)| head)
        .filter(|head| known.get(&head.thread_id).is_none() && began_since(head))
        .map(|head| head.thread_id.clone())
        .collect();
    if new.is_empty() {
        return Ok(known);
    }
    let entry = ModeEntry {
        mode: MemoryMode::Disabled,
        by: SetBy::GenerateMemories,
        at: Some(now),
    };
    let updated = modes::update(home, |modes| {
        for thread_id in new {
            modes.set_if_unset(thread_id, entry);
        }
    })?;
    Ok(updated)
}

/// Removes recaps past retention. Costs nothing, so it comes before the quota.
fn prune(
    parts: &PassParts<'_>,
    ledger: &Mutex<Ledger>,
    version: MemoryVersion,
    now: Timestamp,
) -> Result<Vec<ThreadId>, PassError> {
    let store = Store::open(StorePaths::in_home(parts.home.root(), version.folder()))?;
    let head_threads = consolidate::survey::head_threads(&store, &store.snapshot(store.head()?)?)?;
    let mut ledger = lock(ledger);
    if !ledger.is_settled(version)? {
        ledger.settle(version, &head_threads, now)?;
        return Ok(Vec::new());
    }
    let usage = ledger.usage(version)?;
    drop(ledger);
    let last_used = usage
        .into_iter()
        .filter_map(|(thread_id, usage)| Some((thread_id, usage.last_used?)))
        .collect();
    let rules = PruneRules {
        max_unused_days: parts.config.memories.max_unused_days,
        head_threads: &head_threads,
        last_used: &last_used,
        ledger_is_settled: true,
    };
    let lock = FileLock::acquire(&parts.home.extractions_lock(version), LOCK_WAIT)?;
    Ok(Extractions::open(parts.home.root(), version).prune(&lock, &rules, now)?)
}

fn refusal(
    parts: &PassParts<'_>,
    scan: &Scan,
    request: &PassRequest,
    now: Timestamp,
) -> Option<Refusal> {
    let agent = parts.model.draws_on()?;
    if request.is_by_hand {
        return None;
    }
    let newest = (scan.sessions.iter())
        .filter(|(_, head)| head.agent == agent)
        .max_by_key(|(_, head)| head.updated_at);
    let limits = newest.and_then(|(found, _)| sessions::rate_limits(found));
    let remaining_percent_min = parts.config.memories.min_rate_limit_remaining_percent;
    quota::decide(limits.as_ref(), remaining_percent_min, now)
}

/// What the whole pass may spend on back ends that cost something.
fn budget(parts: &PassParts<'_>, request: &PassRequest) -> Budget {
    let limits = &parts.config.model;
    let mut budget = Budget::new(
        Some(request.calls_max.unwrap_or(limits.calls_per_pass_max)),
        DayLimits {
            calls_max: Some(limits.calls_per_day_max),
            tokens_max: Some(limits.tokens_per_day_max),
        },
    );
    budget.is_patient = !request.is_by_hand;
    budget
}

/// What a service says of its limits counts as what a transcript says: a
/// person at the terminal decides that for themselves.
fn leaves_enough(parts: &PassParts<'_>, request: &PassRequest, limits: &RateLimits) -> bool {
    let remaining_percent_min = parts.config.memories.min_rate_limit_remaining_percent;
    let now = parts.clock.now();
    request.is_by_hand || quota::decide(Some(limits), remaining_percent_min, now).is_none()
}

fn extract(
    parts: &PassParts<'_>,
    ledger: &Mutex<Ledger>,
    budget: &Budget,
    scan: &Scan,
    modes: &Modes,
    request: &PassRequest,
    report: &mut VersionReport,
) -> Result<(), PassError> {
    let version = report.version;
    let now = parts.clock.now();
    let earlier = survey::earlier(parts.home, Some(&lock(ledger)), version, now)?;
    let withheld = survey::withheld(parts.home, version)?;
    let situation = Situation {
        config: parts.config,
        modes,
        earlier: &earlier,
        withheld: withheld.as_slice(),
        is_free: parts.model.is_free(),
    };
    let selection = choice::select(&scan.sessions, &situation, request, now);
    report.left_out = left_out(&scan.sessions, &selection);
    if selection.chosen.is_empty() {
        return Ok(());
    }
    let tasks: Vec<Task<'_>> = (selection.chosen.iter())
        .map(|chosen| {
            let (found, head) = &scan.sessions[chosen.index];
            Task {
                found,
                head,
                demand: chosen.demand,
                external_pollutes: parts.config.memories.disable_on_external_context
                    && modes.get(&head.thread_id).is_none(),
            }
        })
        .collect();
    (parts.progress)(Progress::Extracting { total: tasks.len() });
    let is_free = parts.model.is_free();
    let takes_all = request.is_by_hand && is_free;
    let pass = extract_run::Pass {
        version,
        model: parts.model,
        template: &survey::template(parts.home, version)?,
        ledger,
        extractions: &Extractions::open(parts.home.root(), version),
        lock_file: &parts.home.extractions_lock(version),
        lock_wait: LOCK_WAIT,
        clock: parts.clock,
        purged: &purged::load(parts.home)?,
        running_max: if takes_all {
            u32::MAX
        } else {
            parts.config.memories.max_rollouts_per_startup
        },
        budget,
        leaves_enough: &|limits| leaves_enough(parts, request, limits),
        counts_citations: version == parts.config.memories.version,
        is_cancelled: parts.is_cancelled,
        progress: &|report| (parts.progress)(Progress::Extracted { report }),
    };
    report.extracted = pass.run(&tasks);
    mark_polluted(parts, &report.extracted, now)
}

/// Sessions that external content reached stay out from now on.
fn mark_polluted(
    parts: &PassParts<'_>,
    reports: &[SessionReport],
    now: Timestamp,
) -> Result<(), PassError> {
    let polluted = reports
        .iter()
        .filter(|report| matches!(report.outcome, extract_run::Outcome::Polluted));
    let polluted: Vec<ThreadId> = polluted.map(|report| report.thread_id.clone()).collect();
    if polluted.is_empty() {
        return Ok(());
    }
    let entry = ModeEntry {
        mode: MemoryMode::Polluted,
        by: SetBy::ExternalContext,
        at: Some(now),
    };
    modes::update(parts.home.root(), |modes| {
        for thread_id in polluted {
            modes.set_if_unset(thread_id, entry);
        }
    })?;
    stop::point("service.polluted_marked");
    Ok(())
}

fn left_out(sessions: &[(Found, SessionHead)], selection: &Selection) -> Vec<(ThreadId, Reason)> {
    (selection.left_out.iter())
        .map(|left| {
            let (_, head) = &sessions[left.index];
            (head.thread_id.clone(), left.reason.clone())
        })
        .collect()
}

fn consolidate(
    parts: &PassParts<'_>,
    ledger: &Mutex<Ledger>,
    budget: &Budget,
    scan: &Scan,
    request: &PassRequest,
    version: MemoryVersion,
) -> Result<ConsolidateReport, PassError> {
    // Extraction may have found sessions polluted.
    let modes = modes::load(parts.home.root())?;
    let policy = survey::consolidate_policy(parts.config, request.is_by_hand);
    let report = consolidate::run(
        &mut consolidate::Parts {
            home: parts.home,
            ledger: &mut lock(ledger),
            model: parts.consolidation_model,
            clock: parts.clock,
            ids: parts.ids,
            modes: &survey::effective_modes(
                parts.home,
                version,
                parts.config,
                &modes,
                &scan.sessions,
            )?,
            person: parts.person,
            policy: &policy,
            budget,
            is_cancelled: parts.is_cancelled,
        },
        &ConsolidateRequest {
            version,
            pace: if request.is_by_hand {
                Pace::ByHand
            } else {
                Pace::Background
            },
            only: None,
            review: request.review || parts.config.worker.review,
        },
    )?;
    Ok(report)
}

/// Leaves the answer "nothing to do" for the next pass, when it was one.
fn remember_idle(
    parts: &PassParts<'_>,
    versions: &[MemoryVersion],
    words: &str,
    report: &PassReport,
) -> Result<(), PassError> {
    let now = parts.clock.now();
    let Some(until) = idle_until(report, now) else {
        return Ok(());
    };
    let discovery = sessions::discover(&parts.roots);
    let look: Look = idle::look(parts.home, versions, &discovery, words);
    Ok(idle::remember(parts.home, look, now, until)?)
}

/// Until when a pass that found the same files would do nothing again;
/// `None` when this pass did something or something is due at once.
fn idle_until(report: &PassReport, now: Timestamp) -> Option<Timestamp> {
    let mut until = now.plus_seconds(idle::HOLDS_SECONDS_MAX);
    if report.refusal.is_some() || report.was_stopped {
        return None;
    }
    for version in &report.versions {
        let did_nothing = version.extracted.is_empty()
            && version.pruned.is_empty()
            && version.consolidated.as_ref().is_none_or(|report| {
                report.outcome == Outcome::NothingToDo
                    && report.edit.is_none()
                    && report.left_files.is_empty()
            });
        if !did_nothing {
            return None;
        }
        for (_, reason) in &version.left_out {
            until = match reason {
                Reason::NotIdle { eligible_at } => until.min(*eligible_at),
                Reason::RetryLater { at } => until.min(*at),
                Reason::RunningElsewhere { .. } | Reason::BeyondLimit { .. } => return None,
                _ => until,
            };
        }
    }
    (now < until).then_some(until)
}

/// A pass that panicked while it held the ledger left no half-made change:
/// each call on it is one transaction.
fn lock(ledger: &Mutex<Ledger>) -> std::sync::MutexGuard<'_, Ledger> {
    ledger
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
