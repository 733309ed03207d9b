//! The ledger and our right to the job, while one consolidation goes on.

use crate::consolidate::worker::Office;
use crate::domain::text::Redacted;
use crate::ledger::{Budget, CallPermit, ConsolidationEnd, JobError, Lease, Ledger};
use crate::model::Tokens;
use crate::sys::clock::Clock;

/// The ledger and our right to the job.
pub(super) struct Books<'a> {
    pub(super) ledger: &'a mut Ledger,
    pub(super) lease: Lease,
    pub(super) clock: &'a dyn Clock,
    /// `None`: calls cost nothing and are not counted.
    pub(super) budget: Option<&'a Budget>,
    pub(super) model_name: Redacted,
    /// There is a result, so a failure from now on is one of publishing.
    pub(super) has_worked: bool,
}

impl Office for Books<'_> {
    /// `false` when somebody else has the job now. A busy ledger is no loss:
    /// the lease outlasts many renewals.
    fn renew(&mut self) -> bool {
        match self.ledger.renew(&self.lease, self.clock.now()) {
            Ok(renewed) => {
                self.lease = renewed;
                true
            }
            Err(error) => !error.is_lost(),
        }
    }

    fn take_call(&mut self) -> Option<CallPermit> {
        let Some(budget) = self.budget else {
            return Some(CallPermit::Granted);
        };
        let now = self.clock.now();
        self.ledger.take_call(&self.model_name, budget, now).ok()
    }

    fn add_tokens(&mut self, tokens: Tokens) {
        if self.budget.is_none() {
            return;
        }
        let (name, now) = (&self.model_name, self.clock.now());
        let told = (self.ledger).add_tokens(name, tokens.input, tokens.output, now);
        // The answer is there and paid for: it is not thrown away over a sum.
        if let Err(error) = told {
            tracing::warn!(%error, "the tokens of a call were not counted");
        }
    }
}

impl Books<'_> {
    /// A service that asked for patience, and was asked all the same, has
    /// answered.
    pub(super) fn lift_hold(&mut self) {
        if self.budget.is_none_or(|budget| budget.is_patient) {
            return;
        }
        if let Err(error) = self.ledger.lift_hold(&self.model_name) {
            // It runs out by itself.
            tracing::warn!(%error, "a service's wish for patience was not lifted");
        }
    }

    /// A service that asks for patience is left alone from now on, and so is
    /// this job.
    pub(super) fn hold(&mut self, error: JobError, seconds: u64) -> ConsolidationEnd {
        let now = self.clock.now();
        let until = now.plus_seconds(i64::try_from(seconds).unwrap_or(i64::MAX));
        if let Err(error) = self.ledger.hold(&self.model_name, until, now) {
            // The job's own wait says the same.
            tracing::warn!(%error, "a service's wish for patience was not written down");
        }
        ConsolidationEnd::FailedUntil(error, until)
    }

    /// Losing this write loses nothing: the next run finds the same state in
    /// the files. So an error is only worth a line in the log. True when the
    /// job had changed hands.
    pub(super) fn close(&mut self, mark: Option<ConsolidationEnd>) -> bool {
        let Some(end) = mark else { return false };
        let now = self.clock.now();
        match self.ledger.finish_consolidation(&self.lease, end, now) {
            Ok(()) => false,
            Err(error) => {
                tracing::warn!(%error, "the end of a consolidation was not written down");
                error.is_lost()
            }
        }
    }
}
