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
//! holder is gone. A power cut may take away the newest calls, but none that
//! counts what was paid for.

mod error;
mod job;
mod lease;
mod marks;
mod open;
mod row;
mod schema;
mod scrub;
mod spend;
mod usage;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use crate::domain::version::MemoryVersion;
use crate::sys::fs;
use crate::sys::ids::Ids;
use crate::sys::process::ProcessIdentity;
use crate::sys::stop;

pub(crate) use self::error::{LedgerError, OpenError};
pub(crate) use self::job::{
    ConsolidationClaim, ConsolidationEnd, Demand, ExtractionClaim, ExtractionEnd, Holder, Job,
    JobError, JobKind, JobState, Lease, LedgerId, Pace, TakenIn,
};
pub(crate) use self::marks::{Mark, Marks};
pub(crate) use self::spend::{Budget, CallPermit, DayLimits, Denial, Spend};
pub(crate) use self::usage::UsageByThread;

/// An open ledger: one connection, used by one thread at a time.
pub(crate) struct Ledger {
    connection: Connection,
    path: PathBuf,
    /// Which file it is, beyond its name.
    file_id: Option<(u64, u64)>,
    id: LedgerId,
    /// Tokens are random also where a test seeds the run: two processes with
    /// the same seed must not hold the same token.
    ids: Ids,
    holder: ProcessIdentity,
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

/// Names the file; what is in it is not for logs.
impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ledger({})", self.path.display())
    }
}

impl Ledger {
    /// Forgets jobs, usage and progress of a version (reference 10, reset).
    /// Marks, spend and counted answers stay, and so does what is settled.
    ///
    /// # Errors
    ///
    /// When SQLite fails; nothing is forgotten then.
    pub(crate) fn reset(&mut self, version: MemoryVersion) -> Result<(), LedgerError> {
        stop::point("ledger.before_reset");
        let attempt = "reset the ledger";
        self.immediate(attempt, |tx| {
            for sql in [
                "DELETE FROM jobs WHERE version = ?1",
                "DELETE FROM usage WHERE version = ?1",
                "UPDATE versions SET selected_max = 0 WHERE version = ?1",
            ] {
                tx.execute(sql, [version.label()])
                    .map_err(while_trying_to(attempt))?;
            }
            Ok(())
        })?;
        stop::point("ledger.was_reset");
        Ok(())
    }

    /// One immediate transaction: waits for its turn first, so that what it
    /// reads is still so when it writes.
    fn immediate<T>(
        &mut self,
        attempt: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let done = self.try_immediate(attempt, work);
        done.map_err(|error| self.doubt(attempt, error))
    }

    /// As [`Ledger::immediate`], and on disk before it returns: a call that was
    /// paid for is not forgotten by a power cut.
    fn immediate_flushed<T>(
        &mut self,
        attempt: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let pragma = "synchronous";
        let usual: i64 = (self.connection)
            .pragma_query_value(None, pragma, |row| row.get(0))
            .map_err(while_trying_to(attempt))?;
        (self.connection)
            .pragma_update(None, pragma, "FULL")
            .map_err(while_trying_to(attempt))?;
        let done = self.immediate(attempt, work);
        // Where this fails, later commits are flushed too, which is only slow.
        self.connection.pragma_update(None, pragma, usual).ok();
        done
    }

    fn try_immediate<T>(
        &mut self,
        attempt: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let tx = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(while_trying_to(attempt))?;
        // A deleted file stays open for us. Nobody else would see our claim.
        if fs::file_id(&self.path) != self.file_id {
            return Err(LedgerError::Replaced { attempt });
        }
        let value = work(&tx)?;
        tx.commit().map_err(while_trying_to(attempt))?;
        Ok(value)
    }

    fn while_trying_to(
        &self,
        attempt: &'static str,
    ) -> impl FnOnce(rusqlite::Error) -> LedgerError {
        move |source| self.doubt(attempt, while_trying_to(attempt)(source))
    }

    /// Leaves word for the next open when SQLite met damage: pages that
    /// opening does not read may be the damaged ones.
    fn doubt(&self, attempt: &'static str, error: LedgerError) -> LedgerError {
        match error {
            LedgerError::Sqlite { source, .. } if open::is_damage(&source) => {
                // If even this cannot be written, the next call meets the same.
                fs::create_new(&open::doubt_path(&self.path), b"").ok();
                let path = self.path.clone();
                LedgerError::Damaged { attempt, path }
            }
            error => error,
        }
    }
}

fn while_trying_to(attempt: &'static str) -> impl Fn(rusqlite::Error) -> LedgerError {
    move |source| match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => LedgerError::Busy { attempt },
        _ => LedgerError::Sqlite { attempt, source },
    }
}
