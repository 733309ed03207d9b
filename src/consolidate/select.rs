//! Which recaps the next baseline holds, and why the others do not.
//!
//! Pure: usage, modes and withheld entries come in as values.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::domain::id::{ObjectId, ThreadId};
use crate::domain::path::TreePath;
use crate::domain::recap::Recap;
use crate::domain::session::MemoryMode;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::domain::withheld::{Withheld, WithheldWhat};
use crate::recaps::counts_from;

/// A recap that might take part.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) recap: Recap,
    /// Where its copy lies in the memory folder.
    pub(crate) path: TreePath,
    /// What is to lie there, and its blob.
    pub(crate) copy: Redacted,
    pub(crate) blob: ObjectId,
    pub(crate) usage_count: u64,
    pub(crate) last_used: Option<Timestamp>,
    pub(crate) mode: MemoryMode,
}

/// The limits of a selection.
#[derive(Debug, Clone)]
pub(crate) struct SelectPolicy {
    /// `max_raw_memories_for_consolidation`.
    pub(crate) recaps_max: usize,
    /// `max_unused_days`.
    pub(crate) unused_days_max: i64,
    /// Only these sessions, when a person named some.
    pub(crate) only: Option<BTreeSet<ThreadId>>,
}

/// Why a recap does not take part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeftOut {
    /// Extraction found nothing worth keeping.
    NoOp,
    /// Its session is disabled or polluted.
    Mode(MemoryMode),
    /// Withheld under this id.
    Withheld(String),
    /// Nobody used, made or asked for it since.
    Unused { since: Timestamp },
    /// Others rank higher; its rank counts from 1.
    BeyondLimit { rank_number: usize },
    /// A person named other sessions.
    NotNamed,
}

/// What [`select`] decided.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    /// By thread id, ascending.
    pub(crate) chosen: Vec<Candidate>,
    pub(crate) left_out: BTreeMap<ThreadId, LeftOut>,
    /// When the first of the chosen falls out of the window, if nothing else
    /// happens: until then the same inputs give the same selection.
    pub(crate) holds_until: Option<Timestamp>,
}

/// Ranks and cuts the candidates.
///
/// Order: usage, then recency (last use, else the session's own time), then
/// the session's time, then thread id, all descending; the result stands by
/// thread id so that its diff is quiet. The window counts from the latest of
/// last use, session, extraction, adoption and request, and its start is
/// inside it.
///
/// # Source
///
/// Reference 6.3, rows 68 to 71; DESIGN 5 for the window.
pub(crate) fn select(
    candidates: Vec<Candidate>,
    withheld: &[Withheld],
    policy: &SelectPolicy,
    now: Timestamp,
) -> Selection {
    let window_start = now.minus_days(policy.unused_days_max);
    let mut left_out = BTreeMap::new();
    let mut ranked = Vec::new();
    for candidate in candidates {
        match obstacle(&candidate, withheld, policy, window_start) {
            Some(reason) => {
                left_out.insert(candidate.recap.header.thread_id.clone(), reason);
            }
            None => ranked.push(candidate),
        }
    }
    ranked.sort_by_cached_key(|candidate| Reverse(rank(candidate)));

    for (index, candidate) in ranked.iter().enumerate().skip(policy.recaps_max) {
        let rank_number = index + 1;
        let thread_id = candidate.recap.header.thread_id.clone();
        left_out.insert(thread_id, LeftOut::BeyondLimit { rank_number });
    }
    ranked.truncate(policy.recaps_max);
    ranked.sort_by(|a, b| a.recap.header.thread_id.cmp(&b.recap.header.thread_id));
    let window_seconds = policy.unused_days_max.saturating_mul(86_400);
    let ends = ranked
        .iter()
        .map(|it| last_sign(it).plus_seconds(window_seconds));
    Selection {
        holds_until: ends.min(),
        chosen: ranked,
        left_out,
    }
}

fn rank(candidate: &Candidate) -> (u64, Timestamp, Timestamp, ThreadId) {
    let header = &candidate.recap.header;
    let recency = candidate.last_used.unwrap_or(header.updated_at);
    (
        candidate.usage_count,
        recency,
        header.updated_at,
        header.thread_id.clone(),
    )
}

/// The latest moment at which somebody or something cared about the recap.
fn last_sign(candidate: &Candidate) -> Timestamp {
    counts_from(&candidate.recap.header, candidate.last_used)
}

fn obstacle(
    candidate: &Candidate,
    withheld: &[Withheld],
    policy: &SelectPolicy,
    window_start: Timestamp,
) -> Option<LeftOut> {
    let header = &candidate.recap.header;
    if candidate.recap.is_no_op() {
        return Some(LeftOut::NoOp);
    }
    if candidate.mode != MemoryMode::Enabled {
        return Some(LeftOut::Mode(candidate.mode));
    }
    if let Some(entry) = withheld.iter().find(|entry| holds_back(entry, candidate)) {
        return Some(LeftOut::Withheld(entry.id.clone()));
    }
    if (policy.only.as_ref()).is_some_and(|only| !only.contains(&header.thread_id)) {
        return Some(LeftOut::NotNamed);
    }
    let since = last_sign(candidate);
    (since < window_start).then_some(LeftOut::Unused { since })
}

/// Whether this keeps the recap out.
pub(crate) fn holds_back(entry: &Withheld, candidate: &Candidate) -> bool {
    let header = &candidate.recap.header;
    match &entry.what {
        WithheldWhat::Thread { thread_id, until } => {
            *thread_id == header.thread_id && header.updated_at <= *until
        }
        WithheldWhat::Input { path, blob } => *path == candidate.path && *blob == candidate.blob,
        WithheldWhat::Entry(_) => false,
    }
}

#[cfg(test)]
mod tests;
