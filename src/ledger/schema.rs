//! The tables, and how an older file gets them.
//!
//! # Compatibility
//!
//! Forward only: steps are appended to [`MIGRATIONS`], never changed. A file
//! of a later schema is refused.

use rusqlite::{Connection, TransactionBehavior};

/// `mrev`: tells our files from other programs' (`PRAGMA application_id`).
pub(super) const APPLICATION_ID: i64 = 0x6D72_6576;

/// Step n takes a file from `user_version` n to n + 1.
pub(super) const MIGRATIONS: &[&str] = &[
    // All times are Unix seconds but for `session_marks`, which compares the
    // file's time to the millisecond.
    "CREATE TABLE ledger (
        id BLOB NOT NULL,
        made_at INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE jobs (
        version TEXT NOT NULL,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        status TEXT NOT NULL,
        token TEXT,
        holder TEXT,
        started_at INTEGER,
        finished_at INTEGER,
        lease_until INTEGER,
        retry_at INTEGER,
        retries_left INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        last_error TEXT,
        input_watermark INTEGER NOT NULL,
        success_watermark INTEGER,
        PRIMARY KEY (version, kind, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX jobs_running ON jobs (version, kind) WHERE status = 'running';

    CREATE TABLE versions (
        version TEXT NOT NULL PRIMARY KEY,
        settled_at INTEGER,
        selected_max INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE usage (
        version TEXT NOT NULL,
        thread_id TEXT NOT NULL,
        count INTEGER NOT NULL,
        last_used INTEGER NOT NULL,
        PRIMARY KEY (version, thread_id)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE citations_seen (
        thread_id TEXT NOT NULL,
        answer BLOB NOT NULL,
        occurrence INTEGER NOT NULL,
        PRIMARY KEY (thread_id, answer, occurrence)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE session_marks (
        path BLOB NOT NULL PRIMARY KEY,
        reader INTEGER NOT NULL,
        size_bytes INTEGER NOT NULL,
        modified_ms INTEGER NOT NULL,
        agent TEXT NOT NULL,
        thread_id TEXT NOT NULL,
        started_at_ms INTEGER,
        updated_at_ms INTEGER NOT NULL,
        source TEXT NOT NULL,
        mode TEXT NOT NULL,
        is_ours INTEGER NOT NULL,
        forked_from TEXT,
        first_record TEXT,
        cwd TEXT,
        project TEXT,
        git_branch TEXT
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE spend (
        day TEXT NOT NULL,
        model TEXT NOT NULL,
        calls INTEGER NOT NULL,
        tokens_in INTEGER NOT NULL,
        tokens_out INTEGER NOT NULL,
        PRIMARY KEY (day, model)
    ) STRICT, WITHOUT ROWID;",
    // Services that asked for patience.
    "CREATE TABLE holds (
        service TEXT NOT NULL PRIMARY KEY,
        until INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;",
];

/// The `user_version` of a file with all steps of `migrations`.
pub(super) fn newest(migrations: &[&str]) -> i64 {
    i64::try_from(migrations.len()).unwrap_or(i64::MAX)
}

/// Applies the steps that the file lacks, in one transaction.
pub(super) fn migrate(connection: &mut Connection, migrations: &[&str]) -> rusqlite::Result<()> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again: another process may have migrated while we waited.
    let from: i64 = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let from = usize::try_from(from).unwrap_or(0);
    for step in migrations.iter().skip(from) {
        tx.execute_batch(step)?;
    }
    if from < migrations.len() {
        tx.pragma_update(None, "user_version", newest(migrations))?;
    }
    tx.commit()
}
