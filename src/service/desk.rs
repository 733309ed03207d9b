//! What a command that writes to a memory folder by a person's word starts
//! from, outside of a pass.

use std::collections::BTreeMap;

use crate::consolidate::Policy;
use crate::consolidate::absorb::Place;
use crate::domain::id::ThreadId;
use crate::domain::session::MemoryMode;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::service::survey::{self, Survey, SurveyError, SurveyParts};
use crate::store::error::StoreError;
use crate::store::{Store, StorePaths};
use crate::sys::home::Home;

/// One memory folder, opened.
pub(crate) struct Desk {
    pub(crate) version: MemoryVersion,
    store: Store,
    modes: BTreeMap<ThreadId, MemoryMode>,
    policy: Policy,
}

/// Why a folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeskError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Survey(#[from] SurveyError),
}

impl Desk {
    /// Opens the folder of a version.
    ///
    /// # Errors
    ///
    /// When it is not there or cannot be used.
    pub(crate) fn open(
        parts: &SurveyParts<'_>,
        survey: &Survey,
        version: MemoryVersion,
    ) -> Result<Self, DeskError> {
        let paths = StorePaths::in_home(parts.home.root(), version.folder());
        Ok(Self {
            version,
            store: Store::open(paths)?,
            modes: survey.modes(parts, version).map_err(SurveyError::from)?,
            policy: survey::consolidate_policy(parts.config, true),
        })
    }

    /// Every version's folder that is there.
    ///
    /// # Errors
    ///
    /// When one of them cannot be used.
    pub(crate) fn open_all(
        parts: &SurveyParts<'_>,
        survey: &Survey,
    ) -> Result<Vec<Self>, DeskError> {
        let mut desks = Vec::new();
        for version in MemoryVersion::ALL {
            match Self::open(parts, survey, version) {
                Ok(desk) => desks.push(desk),
                Err(DeskError::Store(StoreError::NotThere { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(desks)
    }

    pub(crate) fn place<'a>(&'a self, home: &'a Home, now: Timestamp) -> Place<'a> {
        Place {
            home,
            version: self.version,
            store: &self.store,
            modes: &self.modes,
            policy: &self.policy,
            now,
        }
    }
}
