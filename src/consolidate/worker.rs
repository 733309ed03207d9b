//! Drives a worker in its staging folder while the lease is kept alive.
//!
//! The back end runs on a thread of its own; this thread renews the lease and
//! watches the clock. When the lease is lost or the time is up, the worker is
//! told to stop, and what it left behind is worth nothing.
//!
//! # Limits
//!
//! Back ends promise to ask [`Meter::keep_going`] and to bound their own waits:
//! their thread is always joined, so one that hangs keeps the lease alive no
//! longer than its own limit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::domain::quota::RateLimits;
use crate::domain::text::Redacted;
use crate::ledger::{CallPermit, Denial};
use crate::model::{Meter, ModelError, Tokens, WorkerReport};
use crate::sys::clock::Clock;
use crate::text::redact;

/// Shortest wait for the worker, so that a passed deadline cannot spin.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// How one call of the worker ended.
#[derive(Debug)]
pub(crate) enum WorkerEnd {
    /// It came back by itself; whether it finished is in the report.
    Reported(WorkerReport),
    Failed(ModelError),
    /// It wanted to make its first call, and the budgets do not allow it.
    Denied(Denial),
    /// The budgets ended in the middle of its work.
    UsedUp(Denial),
    /// Somebody else has the lease now.
    LeaseLost,
    TimeUp,
}

/// The rhythm of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rhythm {
    pub(crate) renew_every: Duration,
    pub(crate) time_max: Duration,
}

/// Who keeps the books while a worker works. The ledger has one connection,
/// so all of this happens on the thread that drives the worker.
pub(crate) trait Office {
    /// Renews the lease; `false` means it is lost.
    fn renew(&mut self) -> bool;

    /// Takes one call of a model out of the budgets. `None` when the books
    /// cannot be kept: then no call may be made.
    fn take_call(&mut self) -> Option<CallPermit>;

    /// Writes down what a call turned out to cost.
    fn add_tokens(&mut self, tokens: Tokens);
}

/// What can happen while a worker works, besides time passing.
enum Wake {
    Ended(Result<WorkerReport, ModelError>),
    /// It asks for a call; the answer is whether it may.
    WantsCall(Sender<bool>),
    Used(Tokens),
}

/// Makes one call of the worker on a thread of its own. The office is asked
/// on this thread, to renew the lease every `renew_every`.
///
/// # Source
///
/// Reference 6.2 and 6.7, row 63.
pub(crate) fn drive(
    clock: &dyn Clock,
    rhythm: Rhythm,
    is_cancelled: &(dyn Fn() -> bool + Sync),
    call: impl FnOnce(&dyn Meter) -> Result<WorkerReport, ModelError> + Send,
    office: &mut dyn Office,
) -> WorkerEnd {
    let deadline = clock.monotonic() + rhythm.time_max;
    let mut renew_at = clock.monotonic() + rhythm.renew_every;
    let is_stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let worker = scope.spawn(|| {
            let line = Line {
                is_stopped: &is_stopped,
                is_cancelled,
                sender,
            };
            let result = call(&line);
            // The receiver lives as long as this scope.
            line.sender.send(Wake::Ended(result)).ok();
        });
        let mut cut_short = None;
        let mut denial = None;
        let mut has_asked = false;
        let result = loop {
            // What is due comes before what the worker says: one that never
            // stops talking must not hold up the renewal.
            if cut_short.is_none() && deadline.min(renew_at) <= clock.monotonic() {
                cut_short = interruption(deadline <= clock.monotonic(), office);
                is_stopped.store(cut_short.is_some(), Ordering::SeqCst);
                renew_at = clock.monotonic() + rhythm.renew_every;
            }
            let wait = wait(clock, deadline.min(renew_at), cut_short.is_some());
            match receiver.recv_timeout(wait) {
                Ok(Wake::Ended(result)) => break result,
                Ok(Wake::Used(tokens)) => office.add_tokens(tokens),
                Ok(Wake::WantsCall(answer)) => {
                    let permit = office.take_call();
                    if let Some(CallPermit::Denied(why)) = permit {
                        denial = Some(why);
                    }
                    has_asked |= permit == Some(CallPermit::Granted);
                    // A worker that has gone away does not want it any more.
                    answer.send(permit == Some(CallPermit::Granted)).ok();
                }
                Err(RecvTimeoutError::Disconnected) => break Err(broke_down()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        let has_panicked = worker.join().is_err();
        match (cut_short, denial, result) {
            (Some(end), _, _) => end,
            (None, _, _) if has_panicked => WorkerEnd::Failed(broke_down()),
            (None, _, Ok(report)) => WorkerEnd::Reported(report),
            (None, Some(denial), Err(_)) if has_asked => WorkerEnd::UsedUp(denial),
            (None, Some(denial), Err(_)) => WorkerEnd::Denied(denial),
            (None, None, Err(error)) => WorkerEnd::Failed(error),
        }
    })
}

/// How long to listen. Nothing is due any more once the worker was told to
/// stop; it is only waited for.
fn wait(clock: &dyn Clock, due: Instant, was_stopped: bool) -> Duration {
    const AFTER_STOP: Duration = Duration::from_mins(1);
    if was_stopped {
        return AFTER_STOP;
    }
    (due.saturating_duration_since(clock.monotonic())).max(WAIT_MIN)
}

/// The worker's line to the office.
struct Line<'a> {
    is_stopped: &'a AtomicBool,
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
    sender: Sender<Wake>,
}

impl Meter for Line<'_> {
    fn keep_going(&self) -> bool {
        !self.is_stopped.load(Ordering::SeqCst) && !(self.is_cancelled)()
    }

    fn take_call(&self) -> Result<(), ModelError> {
        let (answer, is_granted) = channel();
        self.sender.send(Wake::WantsCall(answer)).ok();
        match is_granted.recv() {
            Ok(true) => Ok(()),
            _ => Err(ModelError::LimitReached { limit: "of calls" }),
        }
    }

    fn add_tokens(&self, tokens: Tokens) {
        self.sender.send(Wake::Used(tokens)).ok();
    }

    fn note_limits(&self, _: &RateLimits) {}
}

fn interruption(is_time_up: bool, office: &mut dyn Office) -> Option<WorkerEnd> {
    if is_time_up {
        return Some(WorkerEnd::TimeUp);
    }
    (!office.renew()).then_some(WorkerEnd::LeaseLost)
}

fn broke_down() -> ModelError {
    ModelError::Unusable {
        reason: words("the back end broke down"),
    }
}

fn words(text: &str) -> Redacted {
    redact::redact_str(text)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::{Office, Rhythm, WorkerEnd, drive};
    use crate::ledger::{CallPermit, Denial};
    use crate::model::{Meter, ModelError, Tokens, WorkerReport};
    use crate::sys::clock::SystemClock;

    const RHYTHM: Rhythm = Rhythm {
        renew_every: Duration::from_millis(2),
        time_max: Duration::from_secs(30),
    };

    /// Grants some calls, and loses the lease or not.
    struct Books<'a> {
        has_lease: bool,
        calls_left: u32,
        renewals: &'a AtomicU32,
        tokens: Tokens,
    }

    impl Office for Books<'_> {
        fn renew(&mut self) -> bool {
            self.renewals.fetch_add(1, Ordering::SeqCst);
            self.has_lease
        }

        fn take_call(&mut self) -> Option<CallPermit> {
            let Some(left) = self.calls_left.checked_sub(1) else {
                return Some(CallPermit::Denied(Denial::CallsOfPass));
            };
            self.calls_left = left;
            Some(CallPermit::Granted)
        }

        fn add_tokens(&mut self, tokens: Tokens) {
            self.tokens = self.tokens.plus(tokens);
        }
    }

    fn books(renewals: &AtomicU32) -> Books<'_> {
        Books {
            has_lease: true,
            calls_left: 2,
            renewals,
            tokens: Tokens::default(),
        }
    }

    fn run(
        rhythm: Rhythm,
        books: &mut Books<'_>,
        call: impl FnOnce(&dyn Meter) -> Result<WorkerReport, ModelError> + Send,
    ) -> WorkerEnd {
        drive(&SystemClock, rhythm, &|| false, call, books)
    }

    #[test]
    fn a_quick_worker_needs_no_renewal() {
        let rhythm = Rhythm {
            renew_every: RHYTHM.time_max,
            ..RHYTHM
        };
        let renewals = AtomicU32::new(0);
        let end = run(rhythm, &mut books(&renewals), |_| Ok(finished()));
        assert!(matches!(end, WorkerEnd::Reported(report) if report.finished));
        assert_eq!(renewals.into_inner(), 0);
    }

    #[test]
    fn the_lease_is_renewed_while_the_worker_works() {
        let renewals = AtomicU32::new(0);
        let work = |_: &dyn Meter| {
            while renewals.load(Ordering::SeqCst) < 3 {
                std::hint::spin_loop();
            }
            Ok(finished())
        };
        let end = run(RHYTHM, &mut books(&renewals), work);
        assert!(matches!(end, WorkerEnd::Reported(_)));
    }

    #[test]
    fn a_busy_worker_does_not_keep_the_lease_from_being_renewed() {
        let renewals = AtomicU32::new(0);
        let work = |meter: &dyn Meter| {
            while renewals.load(Ordering::SeqCst) < 3 {
                meter.take_call().ok();
            }
            Ok(finished())
        };
        let end = run(RHYTHM, &mut books(&renewals), work);
        assert!(matches!(end, WorkerEnd::Reported(_)));
    }

    #[test]
    fn a_lost_lease_stops_the_worker() {
        let renewals = AtomicU32::new(0);
        let mut books = Books {
            has_lease: false,
            ..books(&renewals)
        };
        let end = run(RHYTHM, &mut books, until_told);
        assert!(matches!(end, WorkerEnd::LeaseLost));
    }

    #[test]
    fn the_time_limit_stops_the_worker() {
        let rhythm = Rhythm {
            time_max: Duration::from_millis(5),
            ..RHYTHM
        };
        let renewals = AtomicU32::new(0);
        let end = run(rhythm, &mut books(&renewals), until_told);
        assert!(matches!(end, WorkerEnd::TimeUp));
    }

    #[test]
    fn a_person_who_wants_to_stop_stops_the_worker() {
        let renewals = AtomicU32::new(0);
        let end = drive(
            &SystemClock,
            RHYTHM,
            &|| true,
            until_told,
            &mut books(&renewals),
        );
        assert!(matches!(end, WorkerEnd::Failed(ModelError::Cancelled)));
    }

    #[test]
    fn calls_are_taken_out_of_the_budget_and_no_more_than_that() {
        let renewals = AtomicU32::new(0);
        let mut books = books(&renewals);
        let used = Tokens {
            calls: 1,
            input: 10,
            output: 2,
        };
        let work = |meter: &dyn Meter| {
            loop {
                meter.take_call()?;
                meter.add_tokens(used);
            }
        };
        let end = run(RHYTHM, &mut books, work);
        assert!(matches!(end, WorkerEnd::UsedUp(Denial::CallsOfPass)));
        assert_eq!(books.tokens, used.plus(used));
    }

    #[test]
    fn a_budget_that_is_used_up_before_the_work_is_told_from_one_that_ends_in_it() {
        let renewals = AtomicU32::new(0);
        let mut books = Books {
            calls_left: 0,
            ..books(&renewals)
        };
        let work = |meter: &dyn Meter| {
            meter.take_call()?;
            Ok(finished())
        };
        let end = run(RHYTHM, &mut books, work);
        assert!(matches!(end, WorkerEnd::Denied(Denial::CallsOfPass)));
    }

    fn until_told(meter: &dyn Meter) -> Result<WorkerReport, ModelError> {
        while meter.keep_going() {
            std::hint::spin_loop();
        }
        Err(ModelError::Cancelled)
    }

    fn finished() -> WorkerReport {
        WorkerReport {
            finished: true,
            ..WorkerReport::default()
        }
    }
}
