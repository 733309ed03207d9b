//! A memory folder that is gone although there was one.
//!
//! Beginning a new history is right then, and must not be silent: notes, hand
//! edits and everything that only the old history knew are lost.

use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::ledger::{JobKind, Ledger};
use crate::recaps::Extractions;
use crate::service::survey::SurveyError;
use crate::store::error::StoreError;
use crate::store::{Store, StorePaths};
use crate::sys::home::Home;

/// What the home still knows of a memory folder that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostHistory {
    pub(crate) folder: String,
    /// Recaps with a body, from which a new history begins.
    pub(crate) recaps: usize,
}

impl LostHistory {
    pub(crate) fn words(&self) -> String {
        let Self { folder, recaps } = self;
        let from = match recaps {
            0 => "nothing: no recap is left".to_owned(),
            1 => "1 recap".to_owned(),
            recaps => format!("{recaps} recaps"),
        };
        format!(
            "`{folder}` was there and is gone; a new history begins from {from}, without the notes, \
             hand edits and versions of before"
        )
    }
}

/// `None` when the folder is there, or never was.
///
/// # Errors
///
/// When recaps or ledger cannot be read.
pub(crate) fn lost_history(
    home: &Home,
    ledger: Option<&Ledger>,
    version: MemoryVersion,
    now: Timestamp,
) -> Result<Option<LostHistory>, SurveyError> {
    let paths = StorePaths::in_home(home.root(), version.folder());
    let Err(StoreError::NotThere { folder }) = Store::open(paths) else {
        return Ok(None);
    };
    let loaded = Extractions::open(home.root(), version).load_all()?;
    let recaps = loaded.recaps.values();
    let recaps = recaps.filter(|stored| !stored.recap.is_no_op()).count();
    let jobs = match ledger {
        Some(ledger) => ledger.jobs(version, now)?,
        None => Vec::new(),
    };
    let has_consolidated = jobs
        .iter()
        .any(|job| job.kind == JobKind::Consolidate && job.success_watermark.is_some());
    let folder = folder.display().to_string();
    Ok((0 < recaps || has_consolidated).then_some(LostHistory { folder, recaps }))
}
