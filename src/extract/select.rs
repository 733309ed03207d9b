//! Which sessions a pass extracts, and why the others are left out.
//!
//! One answer per session, the first reason that applies, so that `status`
//! and `sessions` can say for each one what would change it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::domain::id::ThreadId;
use crate::domain::limits::SCAN_SESSIONS_MAX;
use crate::domain::session::{MemoryMode, SessionHead, Source};
use crate::domain::time::Timestamp;
use crate::domain::withheld::{Withheld, WithheldWhat};
use crate::ledger::{Demand, Job, JobState};

const MILLIS_PER_DAY: i64 = 86_400_000;
const MILLIS_PER_HOUR: i64 = 3_600_000;

/// A session that might be extracted, and what is known of it elsewhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) head: &'a SessionHead,
    /// What counts: `modes.yaml`, else the transcript.
    pub(crate) mode: MemoryMode,
    pub(crate) switched_off: Option<Switch>,
    /// `updated_at` of the thread's stored recap, no-ops included.
    pub(crate) stored_until: Option<Timestamp>,
    pub(crate) job: Option<&'a Job>,
}

/// What a person switched off in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Switch {
    Agent,
    Project,
}

/// What a pass takes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Policy<'a> {
    /// `max_rollout_age_days`; `None` for any age (`--all`).
    pub(crate) age_days_max: Option<i64>,
    /// `min_rollout_idle_hours`; `None` for no wait.
    pub(crate) idle_hours_min: Option<i64>,
    /// Most sessions of this pass; `None` for all that are eligible.
    pub(crate) sessions_max: Option<usize>,
    /// Also sessions that nobody typed.
    pub(crate) include_exec: bool,
    /// The session this process runs in.
    pub(crate) current: Option<&'a ThreadId>,
    /// Sessions a person named: only these, past age, idle time and limit.
    pub(crate) named: Option<&'a BTreeSet<ThreadId>>,
    /// A person runs this pass: waits after failures do not count.
    pub(crate) is_by_hand: bool,
    pub(crate) withheld: &'a [Withheld],
}

/// What a pass does with each candidate, by index into the candidates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Newest first.
    pub(crate) chosen: Vec<Chosen>,
    /// In the order of the candidates.
    pub(crate) left_out: Vec<LeftOut>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) index: usize,
    pub(crate) demand: Demand,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) index: usize,
    pub(crate) reason: Reason,
}

/// Why a session is not extracted now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A sub-agent's own file: it is read with its parent.
    SubAgent,
    /// One of our own workers wrote it.
    Ours,
    Current,
    AgentOff,
    ProjectOff,
    /// Nobody typed it; `include_exec` takes those of `codex exec` and SDKs.
    NotInteractive {
        source: String,
        is_exec: bool,
    },
    Disabled,
    Polluted,
    /// Others were named.
    NotNamed,
    TooOld {
        updated_at: Timestamp,
        days_max: i64,
    },
    NotIdle {
        eligible_at: Timestamp,
    },
    /// Not among the newest that a pass looks at.
    BeyondScan,
    Withheld,
    /// Extracted, and nothing was added since.
    Unchanged,
    RunningElsewhere {
        until: Timestamp,
    },
    RetryLater {
        at: Timestamp,
    },
    RetryExhausted,
    /// The pass takes no more; the next one goes on.
    BeyondLimit {
        sessions_max: usize,
    },
}

impl Reason {
    /// In `--json`.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::SubAgent => "sub_agent",
            Self::Ours => "ours",
            Self::Current => "current",
            Self::AgentOff => "agent_off",
            Self::ProjectOff => "project_off",
            Self::NotInteractive { .. } => "not_interactive",
            Self::Disabled => "disabled",
            Self::Polluted => "polluted",
            Self::NotNamed => "not_named",
            Self::TooOld { .. } => "too_old",
            Self::NotIdle { .. } => "not_idle",
            Self::BeyondScan => "beyond_scan",
            Self::Withheld => "withheld",
            Self::Unchanged => "unchanged",
            Self::RunningElsewhere { .. } => "running",
            Self::RetryLater { .. } => "retry_later",
            Self::RetryExhausted => "retry_exhausted",
            Self::BeyondLimit { .. } => "beyond_limit",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SubAgent => f.write_str("a sub-agent's file, read with its parent"),
            Self::Ours => f.write_str("written by one of our own workers"),
            Self::Current => f.write_str("the session this runs in"),
            Self::AgentOff => f.write_str("its agent is switched off"),
            Self::ProjectOff => f.write_str("its project is switched off"),
            Self::NotInteractive { source, .. } => write!(f, "not interactive: {source}"),
            Self::Disabled => f.write_str("its memory mode is disabled"),
            Self::Polluted => f.write_str("external content reached it"),
            Self::NotNamed => f.write_str("another session was asked for"),
            Self::TooOld {
                updated_at,
                days_max,
            } => {
                write!(f, "older than {days_max} days: {}", updated_at.date())
            }
            Self::NotIdle { eligible_at } => write!(f, "not idle long enough until {eligible_at}"),
            Self::BeyondScan => {
                write!(f, "not among the {SCAN_SESSIONS_MAX} newest sessions")
            }
            Self::Withheld => f.write_str("withheld"),
            Self::Unchanged => f.write_str("unchanged since it was extracted"),
            Self::RunningElsewhere { until } => write!(f, "another process is at it until {until}"),
            Self::RetryLater { at } => write!(f, "failed, tried again at {at}"),
            Self::RetryExhausted => f.write_str("failed too often, waits for a change"),
            Self::BeyondLimit { sessions_max } => {
                write!(f, "beyond the limit of {sessions_max} sessions a pass")
            }
        }
    }
}

/// Decides for each candidate. The result does not depend on their order.
///
/// # Source
///
/// Reference 5.1: filters, then the scan limit on what is left, newest first,
/// then what the stored results say, then the pass's limit. Age and idle
/// limits are inclusive to the millisecond; "unchanged" compares seconds.
pub(crate) fn select(
    candidates: &[Candidate<'_>],
    policy: &Policy<'_>,
    now: Timestamp,
) -> Selection {
    let withheld_until = withheld_until(policy.withheld);
    let mut reasons: Vec<Option<Reason>> = candidates
        .iter()
        .map(|candidate| ineligible(candidate, policy, now))
        .collect();

    let mut order: Vec<usize> = (0..candidates.len())
        .filter(|index| reasons[*index].is_none())
        .collect();
    order.sort_by_key(|index| {
        let head = candidates[*index].head;
        (
            Reverse(head.updated_at),
            Reverse(&head.thread_id),
            &head.rollout_path,
        )
    });

    let mut due = Vec::new();
    for (rank, index) in order.into_iter().enumerate() {
        let candidate = &candidates[index];
        reasons[index] = if rank < SCAN_SESSIONS_MAX || policy.named.is_some() {
            not_due(candidate, policy, &withheld_until, now)
        } else {
            Some(Reason::BeyondScan)
        };
        if reasons[index].is_none() {
            due.push(index);
        }
    }
    // Sessions that failed before stand back, so that they cannot keep the
    // others waiting for ever.
    due.sort_by_key(|index| has_failed(&candidates[*index]));
    let mut chosen = Vec::new();
    for index in due {
        reasons[index] = full(policy, chosen.len());
        if reasons[index].is_none() {
            let demand = demand(policy);
            chosen.push(Chosen { index, demand });
        }
    }
    let left_out = (reasons.into_iter().enumerate())
        .filter_map(|(index, reason)| {
            Some(LeftOut {
                index,
                reason: reason?,
            })
        })
        .collect();
    Selection { chosen, left_out }
}

/// Reasons that lie in the session itself and in what a person chose.
fn ineligible(candidate: &Candidate<'_>, policy: &Policy<'_>, now: Timestamp) -> Option<Reason> {
    let head = candidate.head;
    if policy
        .named
        .is_some_and(|named| !named.contains(&head.thread_id))
    {
        return Some(Reason::NotNamed);
    }
    match candidate.switched_off {
        Some(Switch::Agent) => return Some(Reason::AgentOff),
        Some(Switch::Project) => return Some(Reason::ProjectOff),
        None => {}
    }
    if head.is_ours {
        return Some(Reason::Ours);
    }
    if policy.current == Some(&head.thread_id) {
        return Some(Reason::Current);
    }
    match &head.source {
        Source::Interactive => {}
        Source::SubAgent { .. } => return Some(Reason::SubAgent),
        Source::Exec if policy.include_exec => {}
        source => {
            return Some(Reason::NotInteractive {
                source: source.label().to_owned(),
                is_exec: *source == Source::Exec,
            });
        }
    }
    match candidate.mode {
        MemoryMode::Enabled => {}
        MemoryMode::Disabled => return Some(Reason::Disabled),
        MemoryMode::Polluted => return Some(Reason::Polluted),
    }
    if policy.named.is_some() {
        return None;
    }
    let reason = outside_of_window(head.updated_at, policy, now)?;
    // What was taken all the same is done, not waiting for an option.
    Some(if is_done(candidate) {
        Reason::Unchanged
    } else {
        reason
    })
}

/// The last success had this state of the session or a newer one.
fn is_done(candidate: &Candidate<'_>) -> bool {
    let until = candidate.job.and_then(|job| job.success_watermark);
    let until = candidate.stored_until.max(until);
    until.is_some_and(|until| candidate.head.updated_at.seconds() <= until.seconds())
}

fn outside_of_window(updated_at: Timestamp, policy: &Policy<'_>, now: Timestamp) -> Option<Reason> {
    if let Some(days_max) = policy.age_days_max {
        let oldest = now
            .millis()
            .saturating_sub(days_max.saturating_mul(MILLIS_PER_DAY));
        if updated_at.millis() < oldest {
            return Some(Reason::TooOld {
                updated_at,
                days_max,
            });
        }
    }
    let idle_millis = policy.idle_hours_min?.saturating_mul(MILLIS_PER_HOUR);
    let eligible_at = updated_at.millis().saturating_add(idle_millis);
    (now.millis() < eligible_at).then(|| Reason::NotIdle {
        eligible_at: Timestamp::from_millis(eligible_at),
    })
}

/// Reasons that lie in what was done before.
fn not_due(
    candidate: &Candidate<'_>,
    policy: &Policy<'_>,
    withheld_until: &BTreeMap<&ThreadId, Timestamp>,
    now: Timestamp,
) -> Option<Reason> {
    let head = candidate.head;
    let seconds = head.updated_at.seconds();
    let covers = |until: Option<Timestamp>| until.is_some_and(|until| seconds <= until.seconds());
    if covers(withheld_until.get(&head.thread_id).copied()) {
        return Some(Reason::Withheld);
    }
    // Who names a session wants it read again, done or not.
    if policy.named.is_none() && covers(candidate.stored_until) {
        return Some(Reason::Unchanged);
    }
    let job = candidate.job?;
    if let JobState::Running { until, .. } = job.state {
        return Some(Reason::RunningElsewhere { until });
    }
    if policy.named.is_some() {
        return None;
    }
    if covers(job.success_watermark) {
        return Some(Reason::Unchanged);
    }
    if policy.is_by_hand || !covers(job.input_watermark) {
        return None;
    }
    match job.state {
        JobState::Waiting { retry_at } if now < retry_at => {
            Some(Reason::RetryLater { at: retry_at })
        }
        JobState::Exhausted => Some(Reason::RetryExhausted),
        _ => None,
    }
}

/// The last try of this state of the session failed.
fn has_failed(candidate: &Candidate<'_>) -> bool {
    candidate.job.is_some_and(|job| {
        let seconds = candidate.head.updated_at.seconds();
        let is_same = (job.input_watermark).is_some_and(|mark| seconds <= mark.seconds());
        is_same && job.last_error.is_some()
    })
}

fn full(policy: &Policy<'_>, chosen: usize) -> Option<Reason> {
    let sessions_max = policy.sessions_max.filter(|_| policy.named.is_none())?;
    (sessions_max <= chosen).then_some(Reason::BeyondLimit { sessions_max })
}

fn demand(policy: &Policy<'_>) -> Demand {
    match policy {
        Policy { named: Some(_), .. } => Demand::Anew,
        Policy {
            is_by_hand: true, ..
        } => Demand::ByHand,
        _ => Demand::Due,
    }
}

/// Up to when each withheld thread is withheld.
fn withheld_until(withheld: &[Withheld]) -> BTreeMap<&ThreadId, Timestamp> {
    let mut until_by_thread: BTreeMap<&ThreadId, Timestamp> = BTreeMap::new();
    for entry in withheld {
        if let WithheldWhat::Thread { thread_id, until } = &entry.what {
            let latest = until_by_thread.entry(thread_id).or_insert(*until);
            *latest = (*latest).max(*until);
        }
    }
    until_by_thread
}

#[cfg(test)]
mod tests;
