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
