//! Which sessions a pass takes: the person's words and switches into the
//! policy of `extract::select`.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::Config;
use crate::config::modes::Modes;
use crate::domain::id::ThreadId;
use crate::domain::project::Project;
use crate::domain::session::{Agent, SessionHead};
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;
use crate::domain::withheld::Withheld;
use crate::extract::select::{self, Candidate, Policy, Selection, Switch};
use crate::ledger::Job;
use crate::sessions::Found;

/// What a person asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Every session within age and idle time.
    #[default]
    Eligible,
    /// Every session.
    All,
    /// Sessions of at most this many days, whatever their idle time.
    Since { days: i64 },
    /// These and no others, whatever their age and idle time.
    Named(BTreeSet<ThreadId>),
}

/// Who started a pass, and with which words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PassRequest {
    /// A person at the terminal: waiting times do not count, and a free back
    /// end takes every session.
    pub(crate) is_by_hand: bool,
    pub(crate) choice: Choice,
    /// A good result waits for the person's word.
    pub(crate) review: bool,
    /// Most model calls of this pass.
    pub(crate) calls_max: Option<u64>,
    /// The session that this runs in.
    pub(crate) current: Option<ThreadId>,
}

impl PassRequest {
    /// Tells requests apart that take other sessions.
    pub(crate) fn words(&self) -> String {
        format!("{self:?}")
    }
}

/// What is known of earlier extractions of one version.
#[derive(Debug, Default)]
pub(crate) struct Earlier {
    /// `updated_at` of the newest recap or success of each session.
    pub(crate) extracted_until: BTreeMap<ThreadId, Timestamp>,
    /// Extraction jobs by session.
    pub(crate) jobs: BTreeMap<ThreadId, Job>,
}

/// Everything that `select` needs to know.
pub(crate) struct Situation<'a> {
    pub(crate) config: &'a Config,
    pub(crate) modes: &'a Modes,
    pub(crate) earlier: &'a Earlier,
    pub(crate) withheld: &'a [Withheld],
    /// A call of the back end costs nothing.
    pub(crate) is_free: bool,
}

/// Decides for each session; indexes are into `sessions`.
pub(crate) fn select(
    sessions: &[(Found, SessionHead)],
    situation: &Situation<'_>,
    request: &PassRequest,
    now: Timestamp,
) -> Selection {
    let candidates: Vec<Candidate<'_>> = (sessions.iter())
        .map(|(_, head)| candidate(head, situation))
        .collect();
    select::select(&candidates, &policy(situation, request), now)
}

fn candidate<'a>(head: &'a SessionHead, situation: &Situation<'a>) -> Candidate<'a> {
    let earlier = situation.earlier;
    Candidate {
        head,
        mode: situation.modes.effective(&head.thread_id, head.mode),
        switched_off: switched_off(head, situation.config),
        stored_until: earlier.extracted_until.get(&head.thread_id).copied(),
        job: earlier.jobs.get(&head.thread_id),
    }
}

/// Which switch of the configuration keeps a session out, if any.
pub(crate) fn switched_off(head: &SessionHead, config: &Config) -> Option<Switch> {
    let is_on = match head.agent {
        Agent::Codex => config.sessions.codex,
        Agent::Claude => config.sessions.claude,
    };
    if !is_on {
        return Some(Switch::Agent);
    }
    is_project_off(head, config).then_some(Switch::Project)
}

/// Whether a person switched the session's project off.
pub(crate) fn is_project_off(head: &SessionHead, config: &Config) -> bool {
    let cwd = head.cwd.as_ref().map(Raw::unredacted);
    let project = head.project.as_ref().map(Project::as_str);
    config.sessions.is_project_disabled(cwd, project)
}

fn policy<'a>(situation: &Situation<'a>, request: &'a PassRequest) -> Policy<'a> {
    let memories = &situation.config.memories;
    let (age_days_max, idle_hours_min) = match &request.choice {
        Choice::Eligible => (
            Some(memories.max_rollout_age_days),
            Some(memories.min_rollout_idle_hours),
        ),
        Choice::All | Choice::Named(_) => (None, None),
        Choice::Since { days } => (Some(*days), None),
    };
    let takes_all = request.is_by_hand && situation.is_free;
    let per_pass = usize::try_from(memories.max_rollouts_per_startup).unwrap_or(usize::MAX);
    Policy {
        age_days_max,
        idle_hours_min,
        sessions_max: (!takes_all).then_some(per_pass),
        include_exec: situation.config.sessions.include_exec,
        current: request.current.as_ref(),
        named: match &request.choice {
            Choice::Named(named) => Some(named),
            _ => None,
        },
        is_by_hand: request.is_by_hand,
        withheld: situation.withheld,
    }
}
