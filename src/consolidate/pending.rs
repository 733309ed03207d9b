//! What waits for the next consolidation, answered from the files.
//!
//! Writes nothing and takes no lock, so that `status` works beside anything.

use std::collections::BTreeMap;

use crate::consolidate::absorb::{self, Place, SortedOut};
use crate::consolidate::judge::Fault;
use crate::consolidate::past;
use crate::consolidate::survey::{self, Ground, Texts};
use crate::consolidate::{ConsolidateError, Pending, PendingParts};
use crate::domain::id::ObjectId;
use crate::domain::version::MemoryVersion;
use crate::store::{Store, StorePaths};

/// Answers what is pending.
///
/// # Errors
///
/// When files, Git's data or the ledger cannot be read.
pub(crate) fn pending(
    parts: &PendingParts<'_>,
    version: MemoryVersion,
) -> Result<Pending, ConsolidateError> {
    let store = Store::open(StorePaths::in_home(parts.home.root(), version.folder()))?;
    if store.is_interrupted() {
        // The folder is half old and half new until somebody recovers it.
        return Ok(Pending {
            needs_recovery: true,
            ..Pending::default()
        });
    }
    let place = Place {
        home: parts.home,
        version,
        store: &store,
        modes: parts.modes,
        policy: parts.policy,
        now: parts.now,
    };
    let head = store.head()?;
    let snapshot = store.snapshot(head)?;
    let withheld = absorb::load_withheld(&place, &snapshot)?;
    let sorted = absorb::sort_out(&place, &snapshot, withheld.as_slice())?;
    let mut files = snapshot.files;
    for (change, _) in &sorted.taken {
        match change.new {
            Some(blob) => files.insert(change.path.clone(), blob),
            None => files.remove(&change.path),
        };
    }
    let usage = match parts.ledger {
        Some(ledger) => ledger.usage(version)?,
        None => BTreeMap::new(),
    };
    let survey = survey::survey(
        &place,
        &Ground {
            texts: &Texts {
                store: &store,
                uncommitted: uncommitted(&sorted),
            },
            files: &files,
            past: &past::read(&store, head, parts.policy.guard.baselines_counted)?,
            consumption: &store.consumption(head)?,
            usage: &usage,
            withheld: withheld.as_slice(),
            only: None,
        },
    )?;
    Ok(Pending {
        edits: sorted.taken.iter().map(|(it, _)| it.path.clone()).collect(),
        left_files: absorb::worth_telling(sorted.left),
        unfit: sorted.unfit,
        complaints: survey.faults.iter().map(Fault::complaint).collect(),
        left_out: survey.selection.left_out,
        inputs: survey.inputs,
        needs_recovery: false,
    })
}

fn uncommitted(sorted: &SortedOut) -> BTreeMap<ObjectId, String> {
    let sides = sorted.taken.iter().filter_map(|(_, it)| it.new.as_ref());
    sides.map(|side| (side.blob, side.text.clone())).collect()
}
