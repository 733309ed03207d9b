//! Leases: short, renewable rights to do one job.
//!
//! A watcher and a person at the terminal may run this program at the same
//! time. The job table decides which of them extracts a given session, or
//! rewrites the memory files. A granted lease means that nobody who asks this
//! table will begin the same job before the lease is over.
//!
//! # When a lease is over
//!
//! When its time is; when the process that holds it has provably ended; or
//! when its end lies further ahead than any lease is long, which only a clock
//! that jumped can have written.
//!
//! # When a lease is lost
//!
//! A process that slept past its expiry (a closed laptop) can wake up to find
//! the job taken. Every later write of it then says [`LedgerError::Lost`], and
//! unfinished work has to be kept aside or dropped, never published. Ownership
//! is the token, not the expiry: a late renewal is fine if nobody took over.
//!
//! # Crash safety
//!
//! One call is one transaction on one row, so a crash leaves the old row or
//! the new one. Nothing needs repair.

use rusqlite::{Transaction, params};

use crate::domain::id::ThreadId;
use crate::domain::limits::{RETRIES, RETRY_SECONDS};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::ledger::error::LedgerError;
use crate::ledger::job::{
    ConsolidationClaim, ConsolidationEnd, Demand, ExtractionClaim, ExtractionEnd, GLOBAL_KEY, Job,
    JobError, JobKind, Lease, Pace, TakenIn,
};
use crate::ledger::row::{
    JOB_COLUMNS, JobRow, RETRY_SECONDS_MAX, growing_wait, job_row, lease_end,
};
use crate::ledger::{Ledger, while_trying_to};
use crate::sys::stop;

impl Ledger {
    /// Claims the extraction of one session whose newest record is
    /// `updated_at`, if fewer than `running_max` are running over all
    /// processes.
    ///
    /// # Errors
    ///
    /// When SQLite fails; nothing is claimed then.
    ///
    /// # Source
    ///
    /// Reference 5.2: a newer input resets the retry budget and the wait.
    pub(crate) fn claim_extraction(
        &mut self,
        version: MemoryVersion,
        thread_id: &ThreadId,
        updated_at: Timestamp,
        running_max: u32,
        demand: Demand,
        now: Timestamp,
    ) -> Result<ExtractionClaim, LedgerError> {
        stop::point("ledger.before_claim");
        let attempt = "claim an extraction";
        let wanted = Claim {
            version,
            kind: JobKind::Extract,
            key: thread_id.as_str(),
            watermark: updated_at.seconds(),
            now: now.seconds(),
        };
        let lease = self.unclaimed(&wanted);
        let holder = self.holder.to_string();
        let claim = self.immediate(attempt, |tx| {
            let row =
                job_row(tx, version, wanted.kind, wanted.key).map_err(while_trying_to(attempt))?;
            let refused = match &row {
                Some(row) => refuse_extraction(row, wanted.watermark, demand, wanted.now),
                None => None,
            };
            if let Some(refused) = refused {
                return Ok(refused);
            }
            let running = count_running(tx, &wanted).map_err(while_trying_to(attempt))?;
            if running_max <= running {
                return Ok(ExtractionClaim::AtCapacity { running });
            }
            take(tx, &wanted, row.as_ref(), &lease.token, &holder)
                .map_err(while_trying_to(attempt))?;
            Ok(ExtractionClaim::Claimed(lease))
        })?;
        stop::point("ledger.claimed");
        Ok(claim)
    }

    /// Claims the consolidation of one version.
    ///
    /// # Errors
    ///
    /// When SQLite fails; nothing is claimed then.
    ///
    /// # Source
    ///
    /// Reference 6.2: an empty retry budget does not block, watermarks are
    /// bookkeeping. DESIGN 6.1: what each pace ignores.
    pub(crate) fn claim_consolidation(
        &mut self,
        version: MemoryVersion,
        pace: Pace,
        now: Timestamp,
    ) -> Result<ConsolidationClaim, LedgerError> {
        stop::point("ledger.before_claim");
        let attempt = "claim the consolidation";
        let mut wanted = Claim {
            version,
            kind: JobKind::Consolidate,
            key: GLOBAL_KEY,
            watermark: 0,
            now: now.seconds(),
        };
        let mut lease = self.unclaimed(&wanted);
        let holder = self.holder.to_string();
        let claim = self.immediate(attempt, |tx| {
            let row =
                job_row(tx, version, wanted.kind, wanted.key).map_err(while_trying_to(attempt))?;
            if let Some(row) = &row {
                if let Some(refused) = refuse_consolidation(row, pace, wanted.now) {
                    return Ok(refused);
                }
                wanted.watermark = row.input_watermark;
                lease.input_watermark = Timestamp::from_seconds(row.input_watermark);
            }
            take(tx, &wanted, row.as_ref(), &lease.token, &holder)
                .map_err(while_trying_to(attempt))?;
            Ok(ConsolidationClaim::Claimed(lease))
        })?;
        stop::point("ledger.claimed");
        Ok(claim)
    }

    /// Moves the end of a lease to one hour after `now`. Call it also right
    /// before publishing.
    ///
    /// A renewal may come after the old expiry, as long as nobody claimed the
    /// job in between.
    ///
    /// # Errors
    ///
    /// - Where [`LedgerError::is_lost`]: the token is not the stored one, or
    ///   the file is another one. Stop, and publish nothing.
    /// - Others when SQLite fails. The old expiry stands.
    pub(crate) fn renew(&mut self, lease: &Lease, now: Timestamp) -> Result<Lease, LedgerError> {
        stop::point("ledger.before_renew");
        let attempt = "renew a lease";
        let until = lease_end(now.seconds());
        self.owned(attempt, lease, |tx| {
            let sql = "UPDATE jobs SET lease_until = ?5 WHERE version = ?1 AND kind = ?2
                 AND key = ?3 AND token = ?4 AND status = 'running'";
            let (version, kind, key, token) = identify(lease);
            tx.prepare_cached(sql)?
                .execute(params![version, kind, key, token, until])
        })?;
        stop::point("ledger.renewed");
        Ok(Lease {
            until: Timestamp::from_seconds(until),
            ..lease.clone()
        })
    }

    /// Writes down how an extraction ended.
    ///
    /// # Errors
    ///
    /// As [`Ledger::renew`]; the row of a new holder is left alone.
    ///
    /// # Source
    ///
    /// Reference 5.8: each failure costs one retry and an hour's wait.
    pub(crate) fn finish_extraction(
        &mut self,
        lease: &Lease,
        end: ExtractionEnd,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let ending = match end {
            ExtractionEnd::Done => Ending::Done {
                watermark: lease.input_watermark,
                selected: 0,
                finished_at: Some(now),
            },
            ExtractionEnd::Failed(error) => Ending::Failed(error, None),
            ExtractionEnd::FailedUntil(error, at) => Ending::Failed(error, Some(at)),
            ExtractionEnd::Released => Ending::Released,
        };
        self.finish("write down an extraction", lease, ending, now)
    }

    /// Writes down how a consolidation ended. Losing this write loses
    /// nothing: the next pass finds that there is nothing to do.
    ///
    /// # Errors
    ///
    /// As [`Ledger::renew`]; the row of a new holder is left alone.
    ///
    /// # Source
    ///
    /// Reference 6.2 and 6.8; DESIGN 6: growing waits, then parked.
    pub(crate) fn finish_consolidation(
        &mut self,
        lease: &Lease,
        end: ConsolidationEnd,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let done = |taken: TakenIn, finished_at| Ending::Done {
            watermark: taken.watermark.max(lease.input_watermark),
            selected: taken.selected,
            finished_at,
        };
        let ending = match end {
            ConsolidationEnd::Done(taken) => done(taken, Some(now)),
            ConsolidationEnd::Idle(taken) => done(taken, None),
            ConsolidationEnd::Failed(error) => Ending::Failed(error, None),
            ConsolidationEnd::FailedUntil(error, at) => Ending::Failed(error, Some(at)),
            ConsolidationEnd::Parked(error) => Ending::Parked(error),
            ConsolidationEnd::Released => Ending::Released,
        };
        self.finish("write down a consolidation", lease, ending, now)
    }

    /// Says that there is something to consolidate: lifts a retry wait and
    /// gives the retries back, but leaves the success cooldown. Should the
    /// next try fail as well, the wait is longer than the one before: only a
    /// success ends a row of failures.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    ///
    /// # Source
    ///
    /// Reference 6.2: a watermark that is not newer counts up by one second.
    pub(crate) fn enqueue_consolidation(
        &mut self,
        version: MemoryVersion,
        watermark: Timestamp,
    ) -> Result<(), LedgerError> {
        let attempt = "ask for a consolidation";
        self.immediate(attempt, |tx| {
            let sql = "INSERT INTO jobs
                 (version, kind, key, status, retries_left, failures, input_watermark)
                 VALUES (?1, ?2, ?3, 'pending', ?4, 0, ?5)
                 ON CONFLICT DO UPDATE SET
                   status = iif(status = 'running', status, 'pending'),
                   retry_at = iif(status = 'running', retry_at, NULL),
                   retries_left = max(retries_left, excluded.retries_left),
                   input_watermark = iif(input_watermark < excluded.input_watermark,
                                         excluded.input_watermark, input_watermark + 1)";
            let kind = JobKind::Consolidate.label();
            let values = params![
                version.label(),
                kind,
                GLOBAL_KEY,
                RETRIES,
                watermark.seconds()
            ];
            tx.execute(sql, values).map_err(while_trying_to(attempt))?;
            Ok(())
        })
    }

    /// All jobs of a version, the consolidation first, then by thread id.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    pub(crate) fn jobs(
        &self,
        version: MemoryVersion,
        now: Timestamp,
    ) -> Result<Vec<Job>, LedgerError> {
        let attempt = "list the jobs";
        let sql = format!("SELECT {JOB_COLUMNS}, kind FROM jobs WHERE version = ?1");
        let read = || -> rusqlite::Result<Vec<Job>> {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let rows = statement.query_map([version.label()], |row| {
                let kind: String = row.get(12)?;
                let job = JobRow::read(row)?;
                Ok(JobKind::parse(&kind).map(|kind| job.into_job(version, kind, now.seconds())))
            })?;
            rows.filter_map(Result::transpose).collect()
        };
        let mut jobs = read().map_err(self.while_trying_to(attempt))?;
        jobs.sort_by(|a, b| (b.kind, &a.key).cmp(&(a.kind, &b.key)));
        Ok(jobs)
    }

    fn unclaimed(&self, wanted: &Claim<'_>) -> Lease {
        Lease {
            version: wanted.version,
            kind: wanted.kind,
            key: wanted.key.to_owned(),
            token: self.ids.token(),
            ledger_id: self.id,
            until: Timestamp::from_seconds(lease_end(wanted.now)),
            input_watermark: Timestamp::from_seconds(wanted.watermark),
        }
    }

    /// Runs an update that demands the token; touching no row means lost.
    fn owned(
        &mut self,
        attempt: &'static str,
        lease: &Lease,
        update: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<usize>,
    ) -> Result<(), LedgerError> {
        if lease.ledger_id != self.id {
            return Err(LedgerError::Replaced { attempt });
        }
        self.immediate(attempt, |tx| {
            match update(tx).map_err(while_trying_to(attempt))? {
                0 => Err(LedgerError::Lost { job: lease.job() }),
                _ => Ok(()),
            }
        })
    }

    fn finish(
        &mut self,
        attempt: &'static str,
        lease: &Lease,
        ending: Ending,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        stop::point("ledger.before_finish");
        let now = now.seconds();
        self.owned(attempt, lease, |tx| match ending {
            Ending::Done {
                watermark,
                selected,
                finished_at,
            } => finish_done(tx, lease, watermark.seconds(), selected, finished_at),
            Ending::Failed(error, not_before) => {
                let not_before = not_before.map(Timestamp::seconds);
                let wait = Wait::Growing { not_before };
                finish_failed(tx, lease, error, wait, now)
            }
            Ending::Parked(error) => finish_failed(tx, lease, error, Wait::Longest, now),
            Ending::Released => finish_released(tx, lease),
        })?;
        stop::point("ledger.finished");
        Ok(())
    }
}

/// What both kinds of jobs end as.
#[derive(Clone, Copy)]
enum Ending {
    Done {
        watermark: Timestamp,
        selected: usize,
        /// When the cooldown begins; `None` leaves that as it was.
        finished_at: Option<Timestamp>,
    },
    /// With the time before which the service does not want to be asked.
    Failed(JobError, Option<Timestamp>),
    Parked(JobError),
    Released,
}

/// How long a job waits after a failure.
#[derive(Clone, Copy)]
enum Wait {
    /// Longer each time, and up to a moment in seconds at least.
    Growing { not_before: Option<i64> },
    /// It is parked.
    Longest,
}

/// What is asked for, times in seconds.
struct Claim<'a> {
    version: MemoryVersion,
    kind: JobKind,
    key: &'a str,
    watermark: i64,
    now: i64,
}

fn refuse_extraction(
    row: &JobRow,
    watermark: i64,
    demand: Demand,
    now: i64,
) -> Option<ExtractionClaim> {
    let is_done = row.success_watermark.is_some_and(|done| watermark <= done);
    if is_done && demand != Demand::Anew {
        return Some(ExtractionClaim::UpToDate);
    }
    if let Some(until) = row.live_until(now) {
        let holder = row.holder();
        return Some(ExtractionClaim::Running { until, holder });
    }
    let is_newer = row.input_watermark < watermark;
    if is_newer || demand != Demand::Due {
        return None;
    }
    // The budget comes first: the wait of a job without retries leads nowhere.
    if row.retries_left <= 0 {
        return Some(ExtractionClaim::RetryExhausted);
    }
    (row.waits_until(now)).map(|at| ExtractionClaim::RetryLater { at })
}

fn refuse_consolidation(row: &JobRow, pace: Pace, now: i64) -> Option<ConsolidationClaim> {
    if let Some(until) = row.live_until(now) {
        let holder = row.holder();
        return Some(ConsolidationClaim::Running { until, holder });
    }
    if pace == Pace::ByHand {
        return None;
    }
    if let Some(at) = row.waits_until(now) {
        return Some(ConsolidationClaim::RetryLater { at });
    }
    if pace == Pace::WatcherNotes {
        return None;
    }
    (row.cools_until(now)).map(|until| ConsolidationClaim::Cooldown { until })
}

/// Live leases of this kind, the wanted job's own left out: whoever gets
/// that far may take it.
fn count_running(tx: &Transaction<'_>, wanted: &Claim<'_>) -> rusqlite::Result<u32> {
    let sql = format!(
        "SELECT {JOB_COLUMNS} FROM jobs
         WHERE version = ?1 AND kind = ?2 AND status = 'running' AND key <> ?3"
    );
    let mut statement = tx.prepare_cached(&sql)?;
    let identity = [wanted.version.label(), wanted.kind.label(), wanted.key];
    let mut running = 0;
    for row in statement.query_map(identity, JobRow::read)? {
        running += u32::from(row?.live_until(wanted.now).is_some());
    }
    Ok(running)
}

/// The time of the last success stays, so that a job that is given back or
/// finds nothing to do neither ends nor begins a cooldown.
fn take(
    tx: &Transaction<'_>,
    wanted: &Claim<'_>,
    row: Option<&JobRow>,
    token: &str,
    holder: &str,
) -> rusqlite::Result<()> {
    let is_newer = row.is_some_and(|row| row.input_watermark < wanted.watermark);
    let (retries_left, failures) = match row {
        Some(row) if !is_newer => (row.retries_left, row.failures),
        _ => (i64::from(RETRIES), 0),
    };
    let sql = "INSERT INTO jobs (version, kind, key, status, token, holder, started_at,
           lease_until, retries_left, failures, input_watermark)
         VALUES (?1, ?2, ?3, 'running', ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT DO UPDATE SET status = 'running', token = excluded.token,
           holder = excluded.holder, started_at = excluded.started_at,
           finished_at = iif(last_error IS NULL, finished_at, NULL), lease_until = excluded.lease_until, retry_at = NULL, last_error = NULL,
           retries_left = excluded.retries_left, failures = excluded.failures,
           input_watermark = max(input_watermark, excluded.input_watermark)";
    tx.prepare_cached(sql)?.execute(params![
        wanted.version.label(),
        wanted.kind.label(),
        wanted.key,
        token,
        holder,
        wanted.now,
        lease_end(wanted.now),
        retries_left,
        failures,
        wanted.watermark,
    ])?;
    Ok(())
}

fn identify(lease: &Lease) -> (&'static str, &'static str, &str, &str) {
    (
        lease.version.label(),
        lease.kind.label(),
        &lease.key,
        &lease.token,
    )
}

fn finish_done(
    tx: &Transaction<'_>,
    lease: &Lease,
    watermark: i64,
    selected: usize,
    finished_at: Option<Timestamp>,
) -> rusqlite::Result<usize> {
    let (version, kind, key, token) = identify(lease);
    let finished_at = finished_at.map(Timestamp::seconds);
    let sql = "UPDATE jobs SET status = 'done', token = NULL, lease_until = NULL,
           finished_at = ifnull(?5, finished_at), retry_at = NULL, last_error = NULL, retries_left = ?6,
           failures = 0, input_watermark = max(input_watermark, ?7),
           success_watermark = max(ifnull(success_watermark, 0), ?7)
         WHERE version = ?1 AND kind = ?2 AND key = ?3 AND token = ?4 AND status = 'running'";
    let changed = tx.prepare_cached(sql)?.execute(params![
        version,
        kind,
        key,
        token,
        finished_at,
        RETRIES,
        watermark
    ])?;
    if changed != 0 && lease.kind == JobKind::Consolidate {
        let sql = "INSERT INTO versions (version, selected_max) VALUES (?1, ?2)
             ON CONFLICT DO UPDATE SET selected_max = max(selected_max, excluded.selected_max)";
        let selected = i64::try_from(selected).unwrap_or(i64::MAX);
        tx.execute(sql, params![version, selected])?;
    }
    Ok(changed)
}

fn finish_failed(
    tx: &Transaction<'_>,
    lease: &Lease,
    error: JobError,
    wait: Wait,
    now: i64,
) -> rusqlite::Result<usize> {
    let (version, kind, key, token) = identify(lease);
    let row = job_row(tx, lease.version, lease.kind, key)?;
    let (retries_left, failures) = row.map_or((i64::from(RETRIES), 0), |row| {
        (row.retries_left, row.failures)
    });
    // An outage, a key that is not taken or a limit that a person set is no
    // fault of the session: it waits longer each time, and is never given up.
    let is_of_service = lease.kind == JobKind::Extract
        && matches!(
            error,
            JobError::ModelUnavailable | JobError::ModelRefused | JobError::LimitReached
        );
    let retries_left = if is_of_service {
        retries_left.max(1)
    } else {
        (retries_left - 1).max(0)
    };
    let failures = failures.saturating_add(1);
    let is_spent = lease.kind == JobKind::Consolidate && retries_left == 0;
    let is_parked = is_spent || matches!(wait, Wait::Longest);
    let status = if is_parked { "parked" } else { "error" };
    let wait = match wait {
        Wait::Longest => RETRY_SECONDS_MAX,
        Wait::Growing { not_before } => {
            let usual = match lease.kind {
                JobKind::Extract if !is_of_service => RETRY_SECONDS,
                JobKind::Extract | JobKind::Consolidate => growing_wait(failures),
            };
            let asked = not_before.map_or(0, |at| at.saturating_sub(now));
            usual.max(asked).min(RETRY_SECONDS_MAX)
        }
    };
    let sql = "UPDATE jobs SET status = ?5, token = NULL, lease_until = NULL, finished_at = ?6,
           retry_at = ?7, last_error = ?8, retries_left = ?9, failures = ?10
         WHERE version = ?1 AND kind = ?2 AND key = ?3 AND token = ?4 AND status = 'running'";
    tx.prepare_cached(sql)?.execute(params![
        version,
        kind,
        key,
        token,
        status,
        now,
        now.saturating_add(wait),
        error.label(),
        retries_left,
        failures,
    ])
}

fn finish_released(tx: &Transaction<'_>, lease: &Lease) -> rusqlite::Result<usize> {
    let (version, kind, key, token) = identify(lease);
    let sql = "UPDATE jobs SET status = 'pending', token = NULL, lease_until = NULL
         WHERE version = ?1 AND kind = ?2 AND key = ?3 AND token = ?4 AND status = 'running'";
    tx.prepare_cached(sql)?
        .execute(params![version, kind, key, token])
}
