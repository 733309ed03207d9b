//! How often a recap was used, and which versions a pass has settled.
//!
//! A use is an answer that cites a session. Reading a file counts nothing.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Transaction, params};

use crate::domain::id::ThreadId;
use crate::domain::session::Citation;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::ledger::error::LedgerError;
use crate::ledger::{JobKind, Ledger, while_trying_to};
use crate::sys::stop;

/// Sessions counted for one answer; who names more is not citing.
const CITED_THREADS_MAX: usize = 256;

/// How often and when a recap was used, by thread id.
pub(crate) type UsageByThread = BTreeMap<ThreadId, Usage>;

/// Uses of one session's recap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub(crate) count: u64,
    pub(crate) last_used: Option<Timestamp>,
}

impl Ledger {
    /// Uses of all threads of a version.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    pub(crate) fn usage(&self, version: MemoryVersion) -> Result<UsageByThread, LedgerError> {
        let read = || -> rusqlite::Result<UsageByThread> {
            let sql = "SELECT thread_id, count, last_used FROM usage WHERE version = ?1";
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows = statement.query_map([version.label()], |row| {
                let thread_id: String = row.get(0)?;
                let count: i64 = row.get(1)?;
                let usage = Usage {
                    count: u64::try_from(count).unwrap_or(0),
                    last_used: Some(Timestamp::from_seconds(row.get(2)?)),
                };
                Ok(ThreadId::parse(&thread_id).map(|thread_id| (thread_id, usage)))
            })?;
            rows.filter_map(Result::transpose).collect()
        };
        read().map_err(self.while_trying_to("read the usage"))
    }

    /// Counts the answers of session `citing` that cite memory: +1 for each
    /// distinct thread id of an answer, once per answer, however often and by
    /// whom it is told. Says how many answers were new.
    ///
    /// An answer is known by its session, its hash and its occurrence; space
    /// around it does not matter, so that hook and transcript agree.
    ///
    /// # Errors
    ///
    /// When SQLite fails; nothing is counted then.
    ///
    /// # Source
    ///
    /// Reference 4.2 and 9; DESIGN 10.
    pub(crate) fn record_citations(
        &mut self,
        version: MemoryVersion,
        citing: &ThreadId,
        citations: &[Citation],
        now: Timestamp,
    ) -> Result<usize, LedgerError> {
        if citations.is_empty() {
            return Ok(0);
        }
        let attempt = "count citations";
        stop::point("ledger.before_citations");
        let counted = self.immediate(attempt, |tx| {
            let mut counted = 0;
            for citation in citations {
                let is_new = count(tx, version, citing, citation, now);
                counted += usize::from(is_new.map_err(while_trying_to(attempt))?);
            }
            Ok(counted)
        })?;
        stop::point("ledger.citations_counted");
        Ok(counted)
    }

    /// Success watermark by thread, in whole seconds: what selection needs to
    /// skip sessions that are done.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    pub(crate) fn extracted_until(
        &self,
        version: MemoryVersion,
    ) -> Result<BTreeMap<ThreadId, Timestamp>, LedgerError> {
        let read = || -> rusqlite::Result<BTreeMap<ThreadId, Timestamp>> {
            let sql = "SELECT key, success_watermark FROM jobs
                 WHERE version = ?1 AND kind = ?2 AND success_watermark IS NOT NULL";
            let mut statement = self.connection.prepare_cached(sql)?;
            let identity = [version.label(), JobKind::Extract.label()];
            let rows = statement.query_map(identity, |row| {
                let key: String = row.get(0)?;
                let until = Timestamp::from_seconds(row.get(1)?);
                Ok(ThreadId::parse(&key).map(|thread_id| (thread_id, until)))
            })?;
            rows.filter_map(Result::transpose).collect()
        };
        read().map_err(self.while_trying_to("read the watermarks"))
    }

    /// Whether a pass has settled this version with this ledger. Until then
    /// every recap in the head tree counts as used now and nothing is pruned.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    pub(crate) fn is_settled(&self, version: MemoryVersion) -> Result<bool, LedgerError> {
        let sql = "SELECT count(*) FROM versions WHERE version = ?1 AND settled_at IS NOT NULL";
        let count: rusqlite::Result<i64> =
            (self.connection).query_row(sql, [version.label()], |row| row.get(0));
        let count = count.map_err(self.while_trying_to("read the ledger's state"))?;
        Ok(count != 0)
    }

    /// Marks the sessions of the head tree as used now and the version as
    /// settled. The first pass with a new ledger calls this, after pruning
    /// nothing; usage that transcripts give back is added to it.
    ///
    /// # Errors
    ///
    /// When SQLite fails; the version is not settled then.
    pub(crate) fn settle(
        &mut self,
        version: MemoryVersion,
        head_threads: &BTreeSet<ThreadId>,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let attempt = "settle a new ledger";
        stop::point("ledger.before_settle");
        self.immediate(attempt, |tx| {
            let settle = || -> rusqlite::Result<()> {
                for thread_id in head_threads {
                    add_use(tx, version, thread_id, 0, now)?;
                }
                let sql = "INSERT INTO versions (version, settled_at, selected_max)
                     VALUES (?1, ?2, 0) ON CONFLICT DO UPDATE SET settled_at = excluded.settled_at";
                tx.execute(sql, params![version.label(), now.seconds()])?;
                Ok(())
            };
            settle().map_err(while_trying_to(attempt))
        })?;
        stop::point("ledger.settled");
        Ok(())
    }

    /// Most recaps that a consolidation of this version ever took in.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    ///
    /// # Source
    ///
    /// Reference 6.8: `consolidation_progress`.
    pub(crate) fn selected_max(&self, version: MemoryVersion) -> Result<u64, LedgerError> {
        let sql = "SELECT ifnull(max(selected_max), 0) FROM versions WHERE version = ?1";
        let most: rusqlite::Result<i64> =
            (self.connection).query_row(sql, [version.label()], |row| row.get(0));
        let most = most.map_err(self.while_trying_to("read the progress"))?;
        Ok(u64::try_from(most).unwrap_or(0))
    }

    /// Drops the extraction job and usage of one thread.
    ///
    /// # Errors
    ///
    /// When SQLite fails; nothing is dropped then.
    ///
    /// # Source
    ///
    /// Reference 4.4.
    pub(crate) fn forget_thread(
        &mut self,
        version: MemoryVersion,
        thread_id: &ThreadId,
    ) -> Result<(), LedgerError> {
        let attempt = "forget a session";
        self.immediate(attempt, |tx| {
            let forget = || -> rusqlite::Result<()> {
                let (version, thread_id) = (version.label(), thread_id.as_str());
                let sql = "DELETE FROM jobs WHERE version = ?1 AND kind = ?2 AND key = ?3";
                tx.execute(sql, [version, JobKind::Extract.label(), thread_id])?;
                let sql = "DELETE FROM usage WHERE version = ?1 AND thread_id = ?2";
                tx.execute(sql, [version, thread_id])?;
                Ok(())
            };
            forget().map_err(while_trying_to(attempt))
        })
    }
}

fn count(
    tx: &Transaction<'_>,
    version: MemoryVersion,
    citing: &ThreadId,
    citation: &Citation,
    now: Timestamp,
) -> rusqlite::Result<bool> {
    let answer = answer_hash(citation.answer.unredacted());
    let sql = "INSERT OR IGNORE INTO citations_seen (thread_id, answer, occurrence)
         VALUES (?1, ?2, ?3)";
    let is_new =
        tx.prepare_cached(sql)?
            .execute(params![citing.as_str(), answer, citation.occurrence])?;
    if is_new == 0 {
        return Ok(false);
    }
    // A transcript may have been written under a clock that was ahead.
    let at = citation.at.unwrap_or(now).min(now);
    let distinct: BTreeSet<&ThreadId> = (citation.thread_ids.iter())
        .take(CITED_THREADS_MAX)
        .collect();
    for thread_id in distinct {
        add_use(tx, version, thread_id, 1, at)?;
    }
    Ok(true)
}

fn add_use(
    tx: &Transaction<'_>,
    version: MemoryVersion,
    thread_id: &ThreadId,
    uses: i64,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO usage (version, thread_id, count, last_used) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET count = count + excluded.count,
           last_used = max(last_used, excluded.last_used)";
    tx.prepare_cached(sql)?.execute(params![
        version.label(),
        thread_id.as_str(),
        uses,
        at.seconds()
    ])?;
    Ok(())
}

/// Half of a BLAKE3 hash: 128 bits tell any two answers apart.
fn answer_hash(answer: &str) -> [u8; 16] {
    let hash = blake3::hash(answer.trim().as_bytes());
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}
