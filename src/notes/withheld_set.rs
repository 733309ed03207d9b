//! What is withheld, as one value that answers "may this come in?".

use crate::domain::id::{ObjectId, ThreadId};
use crate::domain::path::TreePath;
use crate::domain::time::Timestamp;
use crate::domain::withheld::{Withheld, WithheldWhat};

/// The union of what the home and the memory folders withhold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WithheldSet {
    /// Sorted by id, without repeats.
    all: Vec<Withheld>,
}

impl WithheldSet {
    /// The union of `lists`; of entries with one id the first counts.
    pub(crate) fn union(lists: impl IntoIterator<Item = Withheld>) -> Self {
        let mut all: Vec<Withheld> = lists.into_iter().collect();
        all.sort_by(|left, right| left.id.cmp(&right.id));
        all.dedup_by(|later, first| later.id == first.id);
        Self { all }
    }

    pub(crate) fn as_slice(&self) -> &[Withheld] {
        &self.all
    }

    /// This version of this input file must not come in.
    pub(crate) fn blocks_input(&self, path: &TreePath, blob: ObjectId) -> bool {
        self.all.iter().any(|withheld| match &withheld.what {
            WithheldWhat::Input {
                path: held_path,
                blob: held_blob,
            } => held_path == path && *held_blob == blob,
            _ => false,
        })
    }

    /// A session as it was at `updated_at` must not come in.
    pub(crate) fn blocks_thread(&self, thread_id: &ThreadId, updated_at: Timestamp) -> bool {
        self.all.iter().any(|withheld| match &withheld.what {
            WithheldWhat::Thread {
                thread_id: held_id,
                until,
            } => held_id == thread_id && updated_at <= *until,
            _ => false,
        })
    }
}
