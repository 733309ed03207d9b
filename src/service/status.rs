//! The state of everything, gathered for a person.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::config::{Backend, Config};
use crate::consolidate::attempts::{self, SeenAttempt, Standing};
use crate::consolidate::{self, Pending, PendingParts};
use crate::domain::id::ObjectId;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::extract::select::Reason;
use crate::history::survival::{self, Survival};
use crate::ledger::{Job, JobKind, JobState, Ledger, Spend};
use crate::recaps::Extractions;
use crate::service::loss::{self, LostHistory};
use crate::service::survey::{self, Survey, SurveyError, SurveyParts};
use crate::service::with_sources;
use crate::store::error::StoreError;
use crate::store::message::CommitKind;
use crate::store::{Store, StorePaths};

/// What `memrev status` shows.
pub(crate) struct Status {
    pub(crate) is_on: bool,
    /// By reason code (`eligible` first by name): how many sessions, and one
    /// sentence that goes for all of them.
    pub(crate) sessions: BTreeMap<&'static str, (usize, String)>,
    pub(crate) unreadable: Vec<String>,
    pub(crate) versions: Vec<VersionStatus>,
    pub(crate) spend_today: Vec<Spend>,
    /// Limits of a day that are used up.
    pub(crate) used_up: Vec<UsedUp>,
    /// Services that asked for patience, and until when passes in the
    /// background do not ask them.
    pub(crate) holds: Vec<(String, Timestamp)>,
    /// What happens next, a sentence each.
    pub(crate) next: Vec<String>,
}

/// A limit of a day that is used up.
pub(crate) struct UsedUp {
    /// The key of `config.toml`.
    pub(crate) setting: &'static str,
    pub(crate) used: u64,
    pub(crate) most: u64,
}

/// One memory folder.
pub(crate) struct VersionStatus {
    pub(crate) version: MemoryVersion,
    pub(crate) folder: PathBuf,
    pub(crate) problem: Option<String>,
    pub(crate) head: Option<ObjectId>,
    pub(crate) last_baseline: Option<Baseline>,
    /// Over the baselines that the loss guard counts.
    pub(crate) survival: Option<Survival>,
    /// Recaps with a body in the extractions folder.
    pub(crate) recaps: usize,
    pub(crate) pending: Pending,
    pub(crate) jobs: Vec<Job>,
    /// Newest first.
    pub(crate) attempts: Vec<SeenAttempt>,
    pub(crate) withheld: usize,
    /// Most recaps that one baseline of this version took in (reference 6.8).
    pub(crate) recaps_taken_max: u64,
    /// The folder is gone, and the next pass begins a new history.
    pub(crate) lost_history: Option<LostHistory>,
    /// Damaged files of `.git`, by the name they were kept under.
    pub(crate) set_aside: Vec<PathBuf>,
}

/// The newest baseline on main.
pub(crate) struct Baseline {
    pub(crate) id: ObjectId,
    pub(crate) at: Timestamp,
}

/// Gathers everything; writes nothing. A folder that cannot be used is
/// reported, not fatal.
///
/// # Errors
///
/// When the ledger, the modes or the extractions cannot be read.
pub(crate) fn gather(
    parts: &SurveyParts<'_>,
    versions: &[MemoryVersion],
) -> Result<Status, SurveyError> {
    let survey = survey::look(parts)?;
    let ledger = Ledger::open_to_read(&parts.home.ledger_file())?;
    let mut gathered = Vec::new();
    for version in versions {
        gathered.push(version_status(parts, &survey, ledger.as_ref(), *version)?);
    }
    let spend_today = match &ledger {
        Some(ledger) => ledger.spend_since(&parts.now.date())?,
        None => Vec::new(),
    };
    let next = next(parts, &survey, &gathered);
    let holds = match &ledger {
        Some(ledger) => ledger.holds(parts.now)?,
        None => Vec::new(),
    };
    Ok(Status {
        used_up: used_up(parts.config, &spend_today),
        holds,
        is_on: parts.config.features.memories,
        sessions: count(&survey),
        unreadable: (survey.unreadable.iter())
            .map(|(_, error)| error.to_string())
            .collect(),
        versions: gathered,
        spend_today,
        next,
    })
}

/// Free back ends count for nothing: with them alone no limit is ever used up.
fn used_up(config: &Config, spend_today: &[Spend]) -> Vec<UsedUp> {
    let sum = |of: fn(&Spend) -> u64| spend_today.iter().map(of).fold(0, u64::saturating_add);
    let calls = sum(|spend| spend.calls);
    let tokens = sum(|spend| spend.tokens_in.saturating_add(spend.tokens_out));
    let limits = &config.model;
    let is_free = |backend| backend == Backend::Offline;
    if is_free(limits.backend) && config.worker.kind.is_none_or(is_free) {
        return Vec::new();
    }
    [
        ("model.calls_per_day_max", calls, limits.calls_per_day_max),
        (
            "model.tokens_per_day_max",
            tokens,
            limits.tokens_per_day_max,
        ),
    ]
    .into_iter()
    .filter(|(_, used, most)| most <= used)
    .map(|(setting, used, most)| UsedUp {
        setting,
        used,
        most,
    })
    .collect()
}

fn version_status(
    parts: &SurveyParts<'_>,
    survey: &Survey,
    ledger: Option<&Ledger>,
    version: MemoryVersion,
) -> Result<VersionStatus, SurveyError> {
    let loaded = Extractions::open(parts.home.root(), version).load_all()?;
    let withheld = survey::withheld(parts.home, version)?;
    let mut status = VersionStatus {
        version,
        folder: parts.home.memory_folder(version),
        problem: None,
        head: None,
        last_baseline: None,
        survival: None,
        recaps: (loaded.recaps.values())
            .filter(|stored| !stored.recap.is_no_op())
            .count(),
        pending: Pending::default(),
        jobs: match ledger {
            Some(ledger) => ledger.jobs(version, parts.now)?,
            None => Vec::new(),
        },
        attempts: Vec::new(),
        withheld: withheld.as_slice().len(),
        recaps_taken_max: match ledger {
            Some(ledger) => ledger.selected_max(version)?,
            None => 0,
        },
        lost_history: None,
        set_aside: Vec::new(),
    };
    let modes = survey.modes(parts, version)?;
    let pending = consolidate::pending(
        &PendingParts {
            home: parts.home,
            ledger,
            modes: &modes,
            policy: &survey::consolidate_policy(parts.config, parts.request.is_by_hand),
            now: parts.now,
        },
        version,
    );
    match pending {
        Ok(pending) => status.pending = pending,
        Err(error) => status.problem = Some(with_sources(&error)),
    }
    if let Some(lost) = loss::lost_history(parts.home, ledger, version, parts.now)? {
        status.problem = Some(lost.words());
        status.lost_history = Some(lost);
    }
    let paths = StorePaths::in_home(parts.home.root(), version.folder());
    if Store::has_unfinished_purge(&paths) {
        let words = "a purge was begun and not finished, so the text may still be in the history: \
                     say `memrev purge` again with the same text";
        status.problem.get_or_insert(words.to_owned());
    }
    if let Err(error) = add_history(parts, &mut status) {
        status.problem.get_or_insert(with_sources(&error));
    }
    Ok(status)
}

fn add_history(parts: &SurveyParts<'_>, status: &mut VersionStatus) -> Result<(), StoreError> {
    let paths = StorePaths::in_home(parts.home.root(), status.version.folder());
    let store = Store::open(paths)?;
    let head = store.head()?;
    status.head = Some(head);
    for commit in store.history(head) {
        let commit = commit?;
        if commit.trailers.kind == Some(CommitKind::Baseline) {
            status.last_baseline = Some(Baseline {
                id: commit.id,
                at: commit.at,
            });
            break;
        }
    }
    status.set_aside = store.set_aside_before();
    status.attempts = attempts::list(&store, head)?;
    let policy = survey::consolidate_policy(parts.config, parts.request.is_by_hand);
    status.survival = match survival::read(&store, head, policy.guard.baselines_counted) {
        // A clone that begins later, or one that was cleaned up.
        Err(StoreError::NoObject { .. }) => None,
        read => read?,
    };
    Ok(())
}

fn count(survey: &Survey) -> BTreeMap<&'static str, (usize, String)> {
    let mut counts: BTreeMap<&'static str, (usize, String)> = BTreeMap::new();
    for (_, reason) in survey.sessions() {
        let (code, words) = match reason {
            None => ("eligible", "eligible: the next pass takes them".to_owned()),
            Some(reason) => (reason.code(), general_words(reason)),
        };
        counts.entry(code).or_insert((0, words)).0 += 1;
    }
    counts
}

/// A sentence for all sessions that are left out for the same reason, and
/// what would change it.
fn general_words(reason: &Reason) -> String {
    match reason {
        Reason::TooOld { days_max, .. } => {
            format!("older than {days_max} days (`--since` or `--all` takes them)")
        }
        Reason::NotIdle { .. } => "not idle long enough (`--all` takes them)".to_owned(),
        Reason::NotInteractive { is_exec: true, .. } => {
            "not typed by a person (`sessions.include_exec` takes them)".to_owned()
        }
        Reason::NotInteractive { .. } => "not interactive".to_owned(),
        Reason::RetryLater { .. } => "failed, waiting for another try".to_owned(),
        Reason::RunningElsewhere { .. } => "being read by another process".to_owned(),
        other => other.to_string(),
    }
}

fn next(parts: &SurveyParts<'_>, survey: &Survey, versions: &[VersionStatus]) -> Vec<String> {
    if !parts.config.features.memories {
        return vec!["nothing: memory is switched off".to_owned()];
    }
    let mut next = Vec::new();
    let eligible = survey
        .sessions()
        .filter(|(_, reason)| reason.is_none())
        .count();
    if 0 < eligible {
        let sessions = if eligible == 1 { "session" } else { "sessions" };
        next.push(format!(
            "`memrev run` extracts {eligible} eligible {sessions}"
        ));
    }
    let soonest = survey.sessions().filter_map(|(_, reason)| match reason {
        Some(Reason::NotIdle { eligible_at }) => Some(*eligible_at),
        _ => None,
    });
    if let Some(at) = soonest.min() {
        next.push(format!("the next session becomes eligible at {at}"));
    }
    for version in versions {
        let name = version.version;
        if version.lost_history.is_some() {
            next.push(format!(
                "{name}: put the folder back if you have a copy; `memrev run` begins a new history"
            ));
        } else if version.problem.is_some() {
            next.push(format!(
                "{name}: nothing until the folder can be used again"
            ));
        } else if !version.pending.to_mend.is_empty() {
            next.push(format!(
                "{name}: mend the files that are named above, then `memrev run`"
            ));
        } else if let Some(Standing::Waits { run }) = &version.pending.standing {
            next.push(format!(
                "{name}: what is pending waits for your word: `memrev accept {run}` or `memrev reject {run}`"
            ));
        } else if let Some(Standing::Rejected { run }) = &version.pending.standing {
            next.push(format!(
                "{name}: `memrev run` tries again what you rejected as {run}; passes in the background wait for a change"
            ));
        } else if !version.pending.is_idle() || !version.pending.edits.is_empty() {
            next.push(format!("{name}: `memrev run` folds in what is pending"));
        }
        let consolidation = version
            .jobs
            .iter()
            .find(|job| job.kind == JobKind::Consolidate);
        if let Some(JobState::Done {
            cooldown_until: Some(until),
        }) = consolidation.map(|job| &job.state)
            && parts.now < *until
        {
            next.push(format!(
                "{name}: passes in the background consolidate again from {until}"
            ));
        }
    }
    if next.is_empty() {
        next.push("nothing to do".to_owned());
    }
    next
}
