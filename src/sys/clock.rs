//! The time of day, which tests can set.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::domain::time::Timestamp;

/// Where `run.rs` files, `service` and `cli` get the time from. Everything
/// below them takes `now` as a parameter.
pub(crate) trait Clock: Send + Sync {
    /// Wall-clock time, UTC.
    fn now(&self) -> Timestamp;

    /// Time that never jumps, for waits and durations.
    fn monotonic(&self) -> Instant {
        Instant::now()
    }
}

/// The system's clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that stands still: for tests and for `MEMREV_NOW`.
pub(crate) struct FixedClock(pub(crate) Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}
