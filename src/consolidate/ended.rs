//! How one consolidation ended, for its caller and for the ledger.

use crate::consolidate::{ConsolidateError, Outcome};
use crate::ledger::{ConsolidationEnd, Denial, JobError};
use crate::store::error::StoreError;

/// How the steps ended, for the caller and for the ledger.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    /// `None` when the lease is not ours any more.
    pub(super) mark: Option<ConsolidationEnd>,
}

impl Ended {
    pub(super) const fn lost() -> Self {
        Self {
            outcome: Outcome::Busy { holder: None },
            mark: None,
        }
    }

    /// A limit of ours that was reached before any work is no failure of the
    /// job either.
    pub(super) const fn used_up(denial: Denial) -> Self {
        Self {
            outcome: Outcome::UsedUp { denial },
            mark: Some(ConsolidationEnd::Released),
        }
    }

    /// A person wants to stop: no failure of the job, so nothing waits longer.
    pub(super) const fn stopped() -> Self {
        Self {
            outcome: Outcome::Stopped,
            mark: Some(ConsolidationEnd::Released),
        }
    }

    pub(super) const fn failed(error: JobError, parks: bool, wrote: bool) -> Self {
        let (outcome, mark) = match (parks, wrote) {
            (true, _) => (Outcome::Parked { error }, ConsolidationEnd::Parked(error)),
            (_, true) => (
                Outcome::FailedAfter { error },
                ConsolidationEnd::Failed(error),
            ),
            (_, false) => (
                Outcome::FailedBefore { error },
                ConsolidationEnd::Failed(error),
            ),
        };
        let mark = Some(mark);
        Self { outcome, mark }
    }

    /// It waits for the person, and is no failure of the job: the lease is
    /// given back.
    pub(super) const fn held_up(error: JobError) -> Self {
        Self {
            outcome: Outcome::FailedBefore { error },
            mark: Some(ConsolidationEnd::Released),
        }
    }

    /// What an error means for the job. A store that is busy or not ours to
    /// write now is no failure of the job, so the lease is given back.
    pub(super) fn after(error: &ConsolidateError, has_worked: bool) -> Self {
        let code = match error {
            ConsolidateError::Lock(_)
            | ConsolidateError::Store(
                StoreError::NotOurs { .. }
                | StoreError::Busy(_)
                | StoreError::GitLocked { .. }
                | StoreError::Pruned { .. },
            ) => {
                return Self {
                    outcome: Outcome::NothingToDo,
                    mark: Some(ConsolidationEnd::Released),
                };
            }
            ConsolidateError::Ledger(error) if error.is_lost() => return Self::lost(),
            ConsolidateError::Staging(_) => JobError::StagingFailed,
            _ if has_worked => JobError::PublishFailed,
            _ => JobError::InputsUnreadable,
        };
        Self::failed(code, false, has_worked)
    }
}
