//! Usage and lease metadata in SQLite.
//!
//! Several processes of this program may run at once. The ledger decides
//! which of them does a job, remembers which sessions are done, how often a
//! recap was used and what was spent.
//!
//! # Not in here
//!
//! No clock: callers hand in `now`. No text of a session, recap or error
//! message: errors are codes, answers are hashes. No choice a person made.
//! Everything in this file may be deleted: that costs spend figures and
//! waiting times, never a memory.
//!
//! # Locking
//!
//! Every call that writes is one immediate transaction, so a claim is never
//! granted twice. Who waits longer than the busy limit gets
//! [`LedgerError::Busy`].
//!
//! # Crash safety
//!
//! A crash leaves the state before or after a call. A job whose holder died is
//! taken over by the next claim, at once where the system can tell that the
//! holder is gone.

mod error;
mod job;
mod marks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::domain::id::ThreadId;
use crate::domain::session::Citation;
use crate::domain::text::{Raw, Redacted};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;

pub(crate) use self::error::{CallPermit, LedgerError, OpenError};
#[allow(unused_imports, reason = "callers arrive later")]
pub(crate) use self::job::{
    ConsolidationClaim, ConsolidationEnd, Demand, ExtractionClaim, ExtractionEnd, GLOBAL_KEY,
    Holder, Job, JobError, JobKind, JobState, Lease, LedgerId, Pace,
};
pub(crate) use self::marks::Mark;

/// An open ledger: one connection, used by one thread at a time.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
}

/// What opening found.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) ledger: Ledger,
    /// A damaged file was moved there and a new one made.
    pub(crate) set_aside: Option<PathBuf>,
    /// This call made the file. Whether a pass has settled a version with it
    /// is [`Ledger::is_settled`].
    pub(crate) is_new: bool,
}

/// How often and when a recap was used, by thread id.
pub(crate) type UsageByThread = BTreeMap<ThreadId, Usage>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub(crate) count: u64,
    pub(crate) last_used: Option<Timestamp>,
}

/// What a model was asked on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spend {
    /// `2026-12-01`, UTC.
    pub(crate) day: String,
    pub(crate) model: String,
    pub(crate) calls: u64,
    pub(crate) tokens_in: u64,
    pub(crate) tokens_out: u64,
}

/// Hard limits of one day; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DayLimits {
    pub(crate) calls_max: Option<u64>,
    pub(crate) tokens_max: Option<u64>,
}

impl Ledger {
    /// Opens the ledger at `path` (`<home>/ledger.sqlite`), makes it when
    /// there is none, sets a damaged one aside and makes a new one.
    ///
    /// # Errors
    ///
    /// When it cannot be opened for writing, is of a later version, or is
    /// another program's. The read path goes on without it then.
    pub(crate) fn open(_path: &Path, _now: Timestamp) -> Result<Opened, OpenError> {
        todo!()
    }

    /// Like [`Ledger::open`], but waits 100 ms for others instead of 5 s and
    /// neither makes nor mends a file: for hooks and tools, which must not
    /// keep an agent waiting. `None` when there is no file.
    pub(crate) fn open_in_passing(_path: &Path) -> Result<Option<Self>, OpenError> {
        todo!()
    }

    /// Opens for reading only, for `status`, `sessions` and `--dry-run`:
    /// nothing is made, mended or changed. `None` when there is no file.
    pub(crate) fn open_to_read(_path: &Path) -> Result<Option<Self>, OpenError> {
        todo!()
    }

    /// Claims the extraction of one session whose newest record is
    /// `updated_at`, if fewer than `running_max` are running over all
    /// processes (reference 5.2).
    pub(crate) fn claim_extraction(
        &mut self,
        _version: MemoryVersion,
        _thread_id: &ThreadId,
        _updated_at: Timestamp,
        _running_max: u32,
        _demand: Demand,
        _now: Timestamp,
    ) -> Result<ExtractionClaim, LedgerError> {
        todo!()
    }

    /// Claims the consolidation of one version (reference 6.2).
    pub(crate) fn claim_consolidation(
        &mut self,
        _version: MemoryVersion,
        _pace: Pace,
        _now: Timestamp,
    ) -> Result<ConsolidationClaim, LedgerError> {
        todo!()
    }

    /// Moves the end of a lease to one hour after `now`. Call it also right
    /// before publishing: [`LedgerError::is_lost`] means stop.
    pub(crate) fn renew(&mut self, _lease: &Lease, _now: Timestamp) -> Result<Lease, LedgerError> {
        todo!()
    }

    /// Writes down how an extraction ended.
    pub(crate) fn finish_extraction(
        &mut self,
        _lease: &Lease,
        _end: ExtractionEnd,
        _now: Timestamp,
    ) -> Result<(), LedgerError> {
        todo!()
    }

    /// Writes down how a consolidation ended.
    pub(crate) fn finish_consolidation(
        &mut self,
        _lease: &Lease,
        _end: ConsolidationEnd,
        _now: Timestamp,
    ) -> Result<(), LedgerError> {
        todo!()
    }

    /// Says that there is something to consolidate: lifts a retry wait, not
    /// the success cooldown (reference 6.2).
    pub(crate) fn enqueue_consolidation(
        &mut self,
        _version: MemoryVersion,
        _watermark: Timestamp,
        _now: Timestamp,
    ) -> Result<(), LedgerError> {
        todo!()
    }

    /// All jobs of a version, consolidation first, then by thread id.
    pub(crate) fn jobs(
        &self,
        _version: MemoryVersion,
        _now: Timestamp,
    ) -> Result<Vec<Job>, LedgerError> {
        todo!()
    }

    /// Success watermark by thread: what `select` needs to skip sessions that
    /// are done (whole seconds).
    pub(crate) fn extracted_until(
        &self,
        _version: MemoryVersion,
    ) -> Result<BTreeMap<ThreadId, Timestamp>, LedgerError> {
        todo!()
    }

    /// Whether a pass has settled this version with this ledger. Until then
    /// every recap in the head tree counts as used now and nothing is pruned.
    pub(crate) fn is_settled(&self, _version: MemoryVersion) -> Result<bool, LedgerError> {
        todo!()
    }

    /// Marks the sessions of the head tree as used now and the version as
    /// settled. The first pass with a new ledger calls this.
    pub(crate) fn settle(
        &mut self,
        _version: MemoryVersion,
        _head_threads: &[ThreadId],
        _now: Timestamp,
    ) -> Result<(), LedgerError> {
        todo!()
    }

    /// Uses of all threads of a version.
    pub(crate) fn usage(&self, _version: MemoryVersion) -> Result<UsageByThread, LedgerError> {
        todo!()
    }

    /// Counts one answer of session `citing`: +1 for each distinct thread id
    /// in it, once per answer however often it is told. `false` when it had
    /// been counted before.
    pub(crate) fn record_citation(
        &mut self,
        _version: MemoryVersion,
        _citing: &ThreadId,
        _citation: &Citation,
        _now: Timestamp,
    ) -> Result<bool, LedgerError> {
        todo!()
    }

    /// Drops the extraction job and usage of one thread (reference 4.4).
    pub(crate) fn forget_thread(
        &mut self,
        _version: MemoryVersion,
        _thread_id: &ThreadId,
    ) -> Result<(), LedgerError> {
        todo!()
    }

    /// All marks, by path. `reader` is the version of the readers' code:
    /// marks that another one made are left out.
    pub(crate) fn marks(&self, _reader: u32) -> Result<BTreeMap<PathBuf, Mark<Raw>>, LedgerError> {
        todo!()
    }

    /// Writes many marks in one transaction.
    pub(crate) fn put_marks(&mut self, _marks: &[Mark], _reader: u32) -> Result<(), LedgerError> {
        todo!()
    }

    /// Drops the marks of these files in one transaction.
    pub(crate) fn forget_marks(&mut self, _paths: &[PathBuf]) -> Result<(), LedgerError> {
        todo!()
    }

    /// Takes one call out of the day's budget, before the call is made.
    pub(crate) fn take_call(
        &mut self,
        _model: &Redacted,
        _limits: DayLimits,
        _now: Timestamp,
    ) -> Result<CallPermit, LedgerError> {
        todo!()
    }

    /// Adds the tokens that a call turned out to cost.
    pub(crate) fn add_tokens(
        &mut self,
        _model: &Redacted,
        _tokens_in: u64,
        _tokens_out: u64,
        _now: Timestamp,
    ) -> Result<(), LedgerError> {
        todo!()
    }

    /// What was spent since `day` (`2026-12-01`), by day and model.
    pub(crate) fn spend_since(&self, _day: &str) -> Result<Vec<Spend>, LedgerError> {
        todo!()
    }

    /// Forgets jobs, usage and progress of a version (reference 10, reset).
    /// Marks, spend and counted answers stay.
    pub(crate) fn reset(&mut self, _version: MemoryVersion) -> Result<(), LedgerError> {
        todo!()
    }
}
