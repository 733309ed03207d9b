//! Which recaps are past retention, and from when their time counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::id::ThreadId;
use crate::domain::recap::RecapHeader;
use crate::domain::time::Timestamp;

/// Most recaps that one pass removes (reference 4.3).
pub(crate) const PRUNE_BATCH_MAX: usize = 200;

/// What pruning goes by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PruneRules<'a> {
    pub(crate) max_unused_days: i64,
    /// Sessions whose recap the head tree holds: never pruned.
    pub(crate) head_threads: &'a BTreeSet<ThreadId>,
    /// Last use by thread, from the ledger.
    pub(crate) last_used: &'a BTreeMap<ThreadId, Timestamp>,
    /// Whether the ledger knows what was used (the ledger's
    /// `is_settled`): with a new one nothing is pruned.
    pub(crate) ledger_is_settled: bool,
}

/// From when retention and the selection window count (DESIGN 5).
pub(crate) fn counts_from(header: &RecapHeader, last_used: Option<Timestamp>) -> Timestamp {
    let times = [
        last_used,
        header.extracted_at,
        header.adopted_at,
        header.asked_at,
    ];
    (times.into_iter().flatten()).fold(header.updated_at, Timestamp::max)
}

/// The sessions whose recaps are past retention, oldest first, at most
/// [`PRUNE_BATCH_MAX`]. Never what the head tree holds or somebody adopted.
///
/// # Source
///
/// Reference 4.3: older than the limit, not as old as it. DESIGN 2: with a
/// new ledger nothing is pruned, because uses are not known yet.
pub(crate) fn overdue<'a>(
    headers: impl Iterator<Item = &'a RecapHeader>,
    rules: &PruneRules<'_>,
    now: Timestamp,
) -> Vec<ThreadId> {
    if !rules.ledger_is_settled {
        return Vec::new();
    }
    let oldest = now.minus_days(rules.max_unused_days);
    let may_go = |header: &&RecapHeader| {
        header.adopted_at.is_none() && !rules.head_threads.contains(&header.thread_id)
    };
    let dated = headers.filter(may_go).map(|header| {
        let last_used = rules.last_used.get(&header.thread_id).copied();
        (counts_from(header, last_used), &header.thread_id)
    });
    let mut overdue: Vec<_> = dated.filter(|(time, _)| *time < oldest).collect();
    overdue.sort();
    overdue.truncate(PRUNE_BATCH_MAX);
    overdue.into_iter().map(|(_, id)| id.clone()).collect()
}
