//! The meter of one session's calls: budgets, cancellation, what was spent.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use super::{Failure, Halt, Outcome, Pass, State, lock};
use crate::domain::quota::RateLimits;
use crate::ledger::{CallPermit, Denial, LedgerError};
use crate::model::{Meter, ModelError, Tokens};
use crate::text::redact::redact_str;

/// What one session's calls cost, and whether they may be made.
pub(super) struct SessionMeter<'a> {
    pass: &'a Pass<'a>,
    pub(super) state: &'a State,
    tokens: Mutex<Tokens>,
    /// Why a call was not made.
    stopped: Mutex<Option<Stopped>>,
}

enum Stopped {
    Denied(Denial),
    Ledger(LedgerError),
}

impl<'a> SessionMeter<'a> {
    pub(super) fn new(pass: &'a Pass<'a>, state: &'a State) -> Self {
        Self {
            pass,
            state,
            tokens: Mutex::default(),
            stopped: Mutex::default(),
        }
    }

    /// Of all calls so far.
    pub(super) fn tokens(&self) -> Tokens {
        *lock(&self.tokens)
    }

    /// A service that asked for patience, and was asked all the same, answers
    /// again.
    pub(super) fn note_answer(&self) {
        let pass = self.pass;
        if pass.model.is_free() || pass.budget.is_patient {
            return;
        }
        let name = redact_str(pass.model.name());
        if let Err(error) = lock(pass.ledger).lift_hold(&name) {
            // It runs out by itself.
            tracing::warn!(%error, "a service's wish for patience was not lifted");
        }
    }

    /// What an error of the back end means; a limit of ours says more itself.
    pub(super) fn outcome(&self, error: ModelError) -> Outcome {
        let has_asked = 0 < self.tokens().calls;
        match (lock(&self.stopped).take(), error) {
            // What was paid for was begun: given back as untried, it would be
            // begun, and paid for, again by every pass.
            (Some(Stopped::Denied(denial)), _) if has_asked => {
                let limit = denial.limit();
                Outcome::Failed(Failure::Model(ModelError::LimitReached { limit }))
            }
            (Some(Stopped::Denied(denial)), _) => Outcome::NotTried(Halt::Denied(denial)),
            (Some(Stopped::Ledger(error)), _) => Outcome::Failed(Failure::Ledger(error)),
            (None, ModelError::Cancelled) => Outcome::NotTried(Halt::Cancelled),
            (None, error) => Outcome::Failed(Failure::Model(error)),
        }
    }
}

impl Meter for SessionMeter<'_> {
    fn keep_going(&self) -> bool {
        !(self.pass.is_cancelled)()
    }

    fn take_call(&self) -> Result<(), ModelError> {
        let pass = self.pass;
        if pass.model.is_free() {
            return Ok(());
        }
        let name = redact_str(pass.model.name());
        let permit = lock(pass.ledger).take_call(&name, pass.budget, pass.clock.now());
        let (stopped, limit) = match permit {
            Ok(CallPermit::Granted) => {
                lock(&self.tokens).calls += 1;
                return Ok(());
            }
            Ok(CallPermit::Denied(denial)) => (Stopped::Denied(denial), denial.limit()),
            Err(error) => (Stopped::Ledger(error), "of calls"),
        };
        *lock(&self.stopped) = Some(stopped);
        Err(ModelError::LimitReached { limit })
    }

    fn add_tokens(&self, tokens: Tokens) {
        let pass = self.pass;
        if pass.model.is_free() {
            return;
        }
        let used = Tokens { calls: 0, ..tokens };
        let mut sum = lock(&self.tokens);
        *sum = sum.plus(used);
        let name = redact_str(pass.model.name());
        let (input, output) = (used.input, used.output);
        let told = lock(pass.ledger).add_tokens(&name, input, output, pass.clock.now());
        // The answer is there and paid for: it is not thrown away over a sum.
        if let Err(error) = told {
            tracing::warn!(%error, "the tokens of a call were not counted");
        }
    }

    fn note_limits(&self, limits: &RateLimits) {
        if !(self.pass.leaves_enough)(limits) {
            self.state.is_quota_low.store(true, Ordering::Relaxed);
        }
    }
}
