//! What waits for the next consolidation, answered from the files.
//!
//! Writes nothing and takes no lock, so that `status` works beside anything.

use std::collections::BTreeMap;

use crate::consolidate::absorb::{self, Place, SortedOut};
use crate::consolidate::attempt::{self, Bench, BenchTask};
use crate::consolidate::attempts::{self, Standing};
use crate::consolidate::judge::Fault;
use crate::consolidate::lost;
use crate::consolidate::mend;
use crate::consolidate::past::{self, Past};
use crate::consolidate::plan;
use crate::consolidate::survey::{self, Ground, Survey, Texts};
use crate::consolidate::{ConsolidateError, Pending, PendingParts};
use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::domain::text::Redacted;
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::Withheld;
use crate::store::{Blob, Snapshot, Store, StorePaths};

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
    let head = store.readiness()?;
    let snapshot = store.snapshot(head)?;
    let withheld = absorb::load_withheld(&place, &snapshot)?;
    let past = past::read(&store, head, parts.policy.guard.baselines_counted)?;
    let withheld = absorb::foresee(&place, head, &past, &withheld)?;
    let sorted_out = absorb::sort_out(&place, &snapshot, withheld.as_slice())?;
    let withheld = absorb::foresee_edits(&place, &sorted_out, &withheld);
    let files = with_edits(&snapshot, &sorted_out);
    let usage = match parts.ledger {
        Some(ledger) => ledger.usage(version)?,
        None => BTreeMap::new(),
    };
    let texts = texts_with(&store, &sorted_out);
    let survey = survey::survey(
        &place,
        &Ground {
            texts: &texts,
            files: &files,
            past: &past,
            head,
            consumption: &store.consumption(head)?,
            usage: &usage,
            withheld: withheld.as_slice(),
            only: None,
        },
    )?;
    let mut to_mend = survey.secrets.clone();
    let left = absorb::worth_telling(sorted_out.left.clone());
    to_mend.extend(mend::unfit_files(version, &left, &sorted_out.unfit));
    let held_back = withheld.as_slice();
    let standing = attempts::standing(&attempts::list(&store, head)?, &survey.inputs);
    let waits = matches!(standing, Some(Standing::Waits { .. }));
    let prompt = if survey.is_idle() || waits {
        None
    } else {
        Some(preview(&place, &survey, &past, held_back, head, &texts)?)
    };
    Ok(Pending {
        held_back: plan::held_back(version, &files, held_back),
        prompt,
        standing: standing.filter(|_| !survey.is_idle()),
        edits: edited(&sorted_out),
        left_files: left,
        to_mend: to_mend.iter().map(Fault::complaint).collect(),
        unfit: sorted_out.unfit,
        complaints: survey.faults.iter().map(Fault::complaint).collect(),
        yours: survey.their_faults.iter().map(Fault::complaint).collect(),
        left_out: survey.selection.left_out,
        again: lost::again(&store, &survey.inputs)?,
        inputs: survey.inputs,
        lost: lost::find(&place, &snapshot, &withheld)?,
        needs_recovery: false,
    })
}

fn edited(sorted_out: &SortedOut) -> Vec<TreePath> {
    let taken = sorted_out.taken.iter();
    taken.map(|(it, _)| it.path.clone()).collect()
}

/// The head's files as the next edit commit will have them.
fn with_edits(snapshot: &Snapshot, sorted_out: &SortedOut) -> BTreeMap<TreePath, Blob> {
    let mut files = snapshot.files.clone();
    for (change, _) in &sorted_out.taken {
        match change.new {
            Some(blob) => files.insert(change.path.clone(), blob),
            None => files.remove(&change.path),
        };
    }
    files
}

/// The prompt that a worker would get now, with a placeholder for the run.
fn preview(
    place: &Place<'_>,
    survey: &Survey,
    past: &Past,
    withheld: &[Withheld],
    head: ObjectId,
    texts: &Texts<'_>,
) -> Result<Redacted, ConsolidateError> {
    let task = BenchTask {
        inputs: &survey.inputs,
        applies_notes: false,
    };
    let bench = Bench::new(place, survey, past, withheld, head, texts, task)?;
    let staging = place.home.staging().join("RUN");
    Ok(attempt::prompt(place, survey, &bench, &staging)?.text)
}

fn texts_with<'a>(store: &'a Store, sorted_out: &SortedOut) -> Texts<'a> {
    let uncommitted = uncommitted(sorted_out);
    Texts { store, uncommitted }
}

fn uncommitted(sorted_out: &SortedOut) -> BTreeMap<ObjectId, String> {
    let sides = sorted_out
        .taken
        .iter()
        .filter_map(|(_, it)| it.new.as_ref());
    sides.map(|side| (side.blob, side.text.clone())).collect()
}
