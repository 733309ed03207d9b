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
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::domain::quota::RateLimits;
use crate::domain::text::Redacted;
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

/// Makes one call of the worker on a thread of its own. `renew` is called on
/// this thread every `renew_every`; `false` from it means the lease is lost.
///
/// # Source
///
/// Reference 6.2 and 6.7, row 63.
pub(crate) fn drive(
    clock: &dyn Clock,
    rhythm: Rhythm,
    is_cancelled: &(dyn Fn() -> bool + Sync),
    call: impl FnOnce(&dyn Meter) -> Result<WorkerReport, ModelError> + Send,
    renew: &mut dyn FnMut() -> bool,
) -> WorkerEnd {
    let deadline = clock.monotonic() + rhythm.time_max;
    let meter = Unpaid {
        is_stopped: AtomicBool::new(false),
        is_cancelled,
    };
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let worker = scope.spawn(|| {
            // The receiver lives as long as this scope.
            sender.send(call(&meter)).ok();
            drop(sender);
        });
        let mut cut_short = None;
        let result = loop {
            let left = deadline.saturating_duration_since(clock.monotonic());
            let wait = match cut_short {
                None => rhythm.renew_every.min(left).max(WAIT_MIN),
                Some(_) => rhythm.renew_every,
            };
            match receiver.recv_timeout(wait) {
                Ok(result) => break result,
                Err(RecvTimeoutError::Disconnected) => break Err(broke_down()),
                Err(RecvTimeoutError::Timeout) if cut_short.is_some() => {}
                Err(RecvTimeoutError::Timeout) => {
                    cut_short = interruption(deadline <= clock.monotonic(), renew);
                    meter
                        .is_stopped
                        .store(cut_short.is_some(), Ordering::SeqCst);
                }
            }
        };
        let has_panicked = worker.join().is_err();
        match (cut_short, result) {
            (Some(end), _) => end,
            (None, _) if has_panicked => WorkerEnd::Failed(broke_down()),
            (None, Ok(report)) => WorkerEnd::Reported(report),
            (None, Err(error)) => WorkerEnd::Failed(error),
        }
    })
}

/// Says when the worker is to stop.
struct Unpaid<'a> {
    is_stopped: AtomicBool,
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl Meter for Unpaid<'_> {
    fn keep_going(&self) -> bool {
        !self.is_stopped.load(Ordering::SeqCst) && !(self.is_cancelled)()
    }

    fn take_call(&self) -> Result<(), ModelError> {
        Ok(())
    }

    fn add_tokens(&self, _: Tokens) {}

    fn note_limits(&self, _: &RateLimits) {}
}

fn interruption(is_time_up: bool, renew: &mut dyn FnMut() -> bool) -> Option<WorkerEnd> {
    if is_time_up {
        return Some(WorkerEnd::TimeUp);
    }
    (!renew()).then_some(WorkerEnd::LeaseLost)
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

    use super::{Rhythm, WorkerEnd, drive};
    use crate::model::{Meter, ModelError, WorkerReport};
    use crate::sys::clock::SystemClock;

    const RHYTHM: Rhythm = Rhythm {
        renew_every: Duration::from_millis(2),
        time_max: Duration::from_secs(30),
    };

    #[test]
    fn a_quick_worker_needs_no_renewal() {
        let rhythm = Rhythm {
            renew_every: RHYTHM.time_max,
            ..RHYTHM
        };
        let end = drive(
            &SystemClock,
            rhythm,
            &|| false,
            |_| Ok(finished()),
            &mut || panic!("no renewal was due"),
        );
        assert!(matches!(end, WorkerEnd::Reported(report) if report.finished));
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
        let end = drive(&SystemClock, RHYTHM, &|| false, work, &mut || {
            renewals.fetch_add(1, Ordering::SeqCst);
            true
        });
        assert!(matches!(end, WorkerEnd::Reported(_)));
    }

    #[test]
    fn a_lost_lease_stops_the_worker() {
        let end = drive(&SystemClock, RHYTHM, &|| false, until_told, &mut || false);
        assert!(matches!(end, WorkerEnd::LeaseLost));
    }

    #[test]
    fn the_time_limit_stops_the_worker() {
        let rhythm = Rhythm {
            time_max: Duration::from_millis(5),
            ..RHYTHM
        };
        let end = drive(&SystemClock, rhythm, &|| false, until_told, &mut || true);
        assert!(matches!(end, WorkerEnd::TimeUp));
    }

    #[test]
    fn a_person_who_wants_to_stop_stops_the_worker() {
        let end = drive(&SystemClock, RHYTHM, &|| true, until_told, &mut || true);
        assert!(matches!(end, WorkerEnd::Failed(ModelError::Cancelled)));
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
