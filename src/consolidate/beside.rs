//! What whoever writes to a memory folder beside a consolidation begins with:
//! taking a baseline back, letting something in again, forgetting.
//!
//! # Crash safety
//!
//! As step 2 of [`mod@super::run`]: what a person did is committed first, as
//! theirs, and each step may be done again.

use crate::consolidate::ConsolidateError;
use crate::consolidate::absorb::{self, Absorbed, Hands, Place};
use crate::consolidate::past;
use crate::domain::path::{TreePath, WITHHELD};
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::Withheld;
use crate::ledger::{ConsolidationClaim, ConsolidationEnd, Holder, Lease, Ledger, Pace};
use crate::store::{NewFile, TreeChange};
use crate::sys::clock::Clock;
use crate::text::withheld as withheld_text;

/// The right to write while no consolidation runs.
pub(crate) struct Turn<'a> {
    ledger: &'a mut Ledger,
    lease: Lease,
    clock: &'a dyn Clock,
}

impl<'a> Turn<'a> {
    /// Claims it; `Err` names who has it.
    ///
    /// # Errors
    ///
    /// When the ledger fails.
    pub(crate) fn take(
        ledger: &'a mut Ledger,
        version: MemoryVersion,
        clock: &'a dyn Clock,
    ) -> Result<Result<Self, Option<Holder>>, ConsolidateError> {
        let claim = ledger.claim_consolidation(version, Pace::ByHand, clock.now())?;
        Ok(match claim {
            ConsolidationClaim::Claimed(lease) => Ok(Self {
                ledger,
                lease,
                clock,
            }),
            ConsolidationClaim::Running { holder, .. } => Err(Some(holder)),
            // No wait counts for a person.
            ConsolidationClaim::Cooldown { .. } | ConsolidationClaim::RetryLater { .. } => {
                Err(None)
            }
        })
    }

    /// `false` when somebody else has it now: then nothing may be published.
    /// A busy ledger is no loss.
    pub(crate) fn renew(&mut self) -> bool {
        match self.ledger.renew(&self.lease, self.clock.now()) {
            Ok(lease) => {
                self.lease = lease;
                true
            }
            Err(error) => !error.is_lost(),
        }
    }

    /// Gives it back as it was. Losing this write loses nothing: a lease of a
    /// process that has ended is over.
    pub(crate) fn give_back(self) {
        self.end(ConsolidationEnd::Released);
    }

    /// Writes down how it ended; losing this write loses nothing either.
    pub(crate) fn end(self, end: ConsolidationEnd) {
        let (lease, now) = (self.lease, self.clock.now());
        if let Err(error) = self.ledger.finish_consolidation(&lease, end, now) {
            tracing::warn!(%error, "the end of a command was not written down");
        }
    }
}

/// Recovers, checks that the store is ours to write, and commits what the
/// person did since, as step 2 of a consolidation does.
///
/// # Errors
///
/// As [`absorb::absorb`]; nothing of the person's is lost.
pub(crate) fn take_in(place: &Place<'_>, hands: &Hands<'_>) -> Result<Absorbed, ConsolidateError> {
    let store = place.store;
    store.recover(hands.lock)?;
    let head = store.readiness()?;
    store.keep_staged(hands.lock, hands.run, place.now)?;
    let past = past::read(store, head, place.policy.guard.baselines_counted)?;
    absorb::absorb(place, hands, head, &past)
}

/// Copies of what is withheld, for a memory folder.
pub(crate) fn copies(new: &[Withheld]) -> Vec<TreeChange> {
    let copy = |entry: &Withheld| {
        let path = TreePath::parse(&format!("{WITHHELD}/{}.yaml", entry.id))?;
        let content = withheld_text::print(entry);
        let executable = false;
        let file = Some(NewFile {
            content,
            executable,
        });
        Some(TreeChange { path, file })
    };
    new.iter().filter_map(copy).collect()
}
