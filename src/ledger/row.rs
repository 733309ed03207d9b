//! One row of the job table, and what its times mean now.

use rusqlite::{OptionalExtension as _, Row, Transaction};

use crate::domain::limits::{COOLDOWN_SECONDS, LEASE_SECONDS, RETRY_SECONDS};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::ledger::job::{Holder, Job, JobError, JobKind, JobState};
use crate::sys::process::ProcessIdentity;

/// Longest wait after failed consolidations in a row, in seconds. The first
/// waits [`RETRY_SECONDS`], each further one twice as long (DESIGN 6).
pub(crate) const RETRY_SECONDS_MAX: i64 = 24 * 3_600;

/// How far apart the times of two callers may be without a clock having
/// jumped: a pass takes the time once and may claim a while later.
const CLOCK_SLACK_SECONDS: i64 = 300;

/// One row of `jobs`, times in seconds as stored.
pub(super) struct JobRow {
    pub(super) key: String,
    pub(super) status: String,
    pub(super) holder: Option<ProcessIdentity>,
    pub(super) started_at: Option<i64>,
    pub(super) finished_at: Option<i64>,
    pub(super) lease_until: Option<i64>,
    pub(super) retry_at: Option<i64>,
    pub(super) retries_left: i64,
    pub(super) failures: i64,
    pub(super) last_error: Option<String>,
    pub(super) input_watermark: i64,
    pub(super) success_watermark: Option<i64>,
}

pub(super) const JOB_COLUMNS: &str = "key, status, holder, started_at, finished_at, lease_until, retry_at, \
     retries_left, failures, last_error, input_watermark, success_watermark";

impl JobRow {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let holder: Option<String> = row.get(2)?;
        Ok(Self {
            key: row.get(0)?,
            status: row.get(1)?,
            holder: holder.as_deref().and_then(ProcessIdentity::parse),
            started_at: row.get(3)?,
            finished_at: row.get(4)?,
            lease_until: row.get(5)?,
            retry_at: row.get(6)?,
            retries_left: row.get(7)?,
            failures: row.get(8)?,
            last_error: row.get(9)?,
            input_watermark: row.get(10)?,
            success_watermark: row.get(11)?,
        })
    }

    /// The end of the lease, if somebody holds a live one.
    pub(super) fn live_until(&self, now: i64) -> Option<Timestamp> {
        let until = self.lease_until.filter(|_| self.status == "running")?;
        let is_over = until <= now
            || LEASE_SECONDS + CLOCK_SLACK_SECONDS < until.saturating_sub(now)
            || (self.holder.as_ref()).is_some_and(ProcessIdentity::is_gone);
        (!is_over).then(|| Timestamp::from_seconds(until))
    }

    /// When the wait after a failure ends, if it has not. A wait longer than
    /// any that is given comes from a clock that jumped, and does not count.
    pub(super) fn waits_until(&self, now: i64) -> Option<Timestamp> {
        let at = self.retry_at.filter(|at| now < *at)?;
        (at.saturating_sub(now) <= RETRY_SECONDS_MAX + CLOCK_SLACK_SECONDS)
            .then(|| Timestamp::from_seconds(at))
    }

    /// When the cooldown after a success ends, if it has not.
    pub(super) fn cools_until(&self, now: i64) -> Option<Timestamp> {
        // Who was killed at it left something to clear up: that does not wait.
        let counts = self.last_error.is_none() && self.status != "running";
        let finished_at = self.finished_at.filter(|_| counts)?;
        let is_recent = now < finished_at.saturating_add(COOLDOWN_SECONDS);
        let is_possible = finished_at <= now + CLOCK_SLACK_SECONDS;
        let until = Timestamp::from_seconds(finished_at).plus_seconds(COOLDOWN_SECONDS);
        (is_recent && is_possible).then_some(until)
    }

    pub(super) fn holder(&self) -> Holder {
        Holder(self.holder.clone())
    }

    fn state(&self, kind: JobKind, now: i64) -> JobState {
        let retry_at = Timestamp::from_seconds(self.retry_at.unwrap_or(now));
        match (self.status.as_str(), self.live_until(now)) {
            ("running", Some(until)) => JobState::Running {
                until,
                holder: self.holder(),
            },
            ("running", None) => JobState::Abandoned {
                holder: self.holder(),
            },
            ("done", _) => JobState::Done {
                cooldown_until: (self.cools_until(now)).filter(|_| kind == JobKind::Consolidate),
            },
            ("parked", _) => JobState::Parked { retry_at },
            ("error", _) if kind == JobKind::Extract && self.retries_left <= 0 => {
                JobState::Exhausted
            }
            ("error", _) => match self.waits_until(now) {
                Some(retry_at) => JobState::Waiting { retry_at },
                None => JobState::Pending,
            },
            _ => JobState::Pending,
        }
    }

    pub(super) fn into_job(self, version: MemoryVersion, kind: JobKind, now: i64) -> Job {
        let seconds = |time: Option<i64>| time.map(Timestamp::from_seconds);
        let watermark = |mark: i64| (0 < mark).then(|| Timestamp::from_seconds(mark));
        Job {
            version,
            kind,
            state: self.state(kind, now),
            started_at: seconds(self.started_at),
            finished_at: seconds(self.finished_at),
            retries_left: u32::try_from(self.retries_left).unwrap_or(0),
            failures: u32::try_from(self.failures).unwrap_or(0),
            last_error: self.last_error.as_deref().map(JobError::parse),
            input_watermark: watermark(self.input_watermark),
            success_watermark: self.success_watermark.and_then(watermark),
            key: self.key,
        }
    }
}

/// The row of a job, if it was ever claimed or asked for.
pub(super) fn job_row(
    tx: &Transaction<'_>,
    version: MemoryVersion,
    kind: JobKind,
    key: &str,
) -> rusqlite::Result<Option<JobRow>> {
    let sql =
        format!("SELECT {JOB_COLUMNS} FROM jobs WHERE version = ?1 AND kind = ?2 AND key = ?3");
    tx.prepare_cached(&sql)?
        .query_row([version.label(), kind.label(), key], JobRow::read)
        .optional()
}

/// When a lease that is granted at `now` ends, in seconds.
pub(super) fn lease_end(now: i64) -> i64 {
    now.saturating_add(LEASE_SECONDS)
}

/// One hour, two, four, … up to [`RETRY_SECONDS_MAX`].
pub(super) fn growing_wait(failures: i64) -> i64 {
    let doublings = u32::try_from(failures - 1).unwrap_or(0).min(16);
    (RETRY_SECONDS << doublings).min(RETRY_SECONDS_MAX)
}
