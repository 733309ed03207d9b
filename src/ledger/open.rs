//! Opening the database file: made when missing, set aside when damaged.
//!
//! # Crash safety
//!
//! A new file is built under a side name and then moved to its own, so that
//! there is never a half-made ledger. A damaged file is moved away with its
//! journals before a new one is made.
//!
//! # Locking
//!
//! A file comes and goes under `ledger.lock`, so that nobody moves away, or
//! moves onto, the new file that another process just made. Opening one that
//! is there needs no lock.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::domain::time::Timestamp;
use crate::ledger::error::OpenError;
use crate::ledger::job::LedgerId;
use crate::ledger::schema::{APPLICATION_ID, MIGRATIONS, migrate, newest};
use crate::ledger::{Ledger, Opened};
use crate::sys::fs;
use crate::sys::ids::Ids;
use crate::sys::lock::FileLock;
use crate::sys::process::ProcessIdentity;
use crate::sys::stop;

/// How long a call waits for another process's transaction.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// The same for hooks and tools, which an agent waits for.
const BUSY_WAIT_IN_PASSING: Duration = Duration::from_millis(100);

/// How often opening starts over when other processes make, mend or remove
/// the file at the same time.
const TRIES_MAX: u32 = 5;

/// How the names of half-made ledgers begin.
const SIDE_PREFIX: &str = ".ledger.sqlite.memrev-";

/// What SQLite may keep beside a database file.
const JOURNALS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Who opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opener {
    /// Waits for others, brings the schema up to date, mends.
    Keeper,
    /// Waits a moment, and goes without the ledger if anything is amiss.
    Passer,
}

impl Opener {
    const fn busy_wait(self) -> Duration {
        match self {
            Self::Keeper => BUSY_WAIT,
            Self::Passer => BUSY_WAIT_IN_PASSING,
        }
    }
}

/// What one look at the file said.
enum Look {
    Good(Box<Ledger>),
    /// Not there, or not the same from beginning to end of the look.
    Missing,
    /// Damaged; for a passer also in doubt, or of an older schema.
    Damaged,
}

impl Ledger {
    /// Opens the ledger at `path` (`<home>/ledger.sqlite`), makes it when
    /// there is none, sets a damaged one aside and makes a new one.
    ///
    /// # Errors
    ///
    /// When it cannot be opened for writing, is of a later version, or is
    /// another program's. The read path goes on without it then.
    pub(crate) fn open(path: &Path, now: Timestamp) -> Result<Opened, OpenError> {
        let mut set_aside = None;
        let mut is_new = false;
        for _ in 0..TRIES_MAX {
            match look(path, Opener::Keeper)? {
                Look::Good(ledger) => {
                    return Ok(Opened {
                        ledger: *ledger,
                        set_aside,
                        is_new,
                    });
                }
                Look::Missing => is_new |= make(path, now)?,
                Look::Damaged => {
                    set_aside = move_away(path, now)?.or(set_aside);
                    stop::point("ledger.set_aside");
                }
            }
        }
        Err(OpenError::Busy {
            path: path.to_owned(),
        })
    }

    /// Like [`Ledger::open`], but waits 100 ms for others instead of 5 s and
    /// neither makes nor mends a file nor changes its schema: for hooks and
    /// tools, which must not keep an agent waiting. `None` when there is no
    /// usable file.
    ///
    /// # Errors
    ///
    /// As [`Ledger::open`].
    pub(crate) fn open_in_passing(path: &Path) -> Result<Option<Self>, OpenError> {
        match look(path, Opener::Passer)? {
            Look::Good(ledger) => Ok(Some(*ledger)),
            Look::Missing | Look::Damaged => Ok(None),
        }
    }

    /// Opens for reading only, for `status`, `sessions` and `--dry-run`: no
    /// call on it changes anything. `None` when there is no usable file.
    ///
    /// # Errors
    ///
    /// As [`Ledger::open`].
    pub(crate) fn open_to_read(path: &Path) -> Result<Option<Self>, OpenError> {
        let Some(ledger) = Self::open_in_passing(path)? else {
            return Ok(None);
        };
        let query_only = ledger.connection.pragma_update(None, "query_only", true);
        query_only.map_err(|source| sqlite(path, source))?;
        Ok(Some(ledger))
    }
}

fn sqlite(path: &Path, source: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Busy { path },
        _ => OpenError::Sqlite { path, source },
    }
}

/// Whether SQLite says that the file is not, or no longer, a database.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// Lies beside a ledger in which a call met damage: the next open looks at
/// every page.
pub(super) fn doubt_path(path: &Path) -> PathBuf {
    path.with_extension("sqlite-doubt")
}

fn look(path: &Path, who: Opener) -> Result<Look, OpenError> {
    let Some((size_bytes, _)) = fs::size_and_time(path) else {
        // Not a regular file, or a link: let SQLite follow or refuse it.
        if !fs::is_taken(path) {
            return Ok(Look::Missing);
        }
        return connect(path, who);
    };
    if size_bytes == 0 {
        return Ok(Look::Damaged);
    }
    connect(path, who)
}

fn connect(path: &Path, who: Opener) -> Result<Look, OpenError> {
    let file_id = fs::file_id(path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
        settle_connection(&connection, who.busy_wait())?;
        let marks = read_marks(&connection)?;
        Ok((connection, marks))
    });
    let (mut connection, (application_id, user_version)) = match opened {
        Ok(opened) => opened,
        // Moved away or replaced under our hands by somebody who found it
        // damaged: what is there now is looked at anew.
        Err(_) if fs::file_id(path) != file_id => return Ok(Look::Missing),
        Err(error) if is_damage(&error) => return Ok(Look::Damaged),
        Err(error) => return Err(sqlite(path, error)),
    };
    if !is_one_of_ours(&connection, path, application_id, user_version)? {
        return Ok(Look::Damaged);
    }
    let is_old = user_version < newest(MIGRATIONS);
    let is_in_doubt = fs::is_taken(&doubt_path(path));
    if who == Opener::Passer && (is_in_doubt || is_old) {
        return Ok(Look::Damaged);
    }
    if is_in_doubt {
        if !is_sound(&connection) {
            return Ok(Look::Damaged);
        }
        fs::remove(&doubt_path(path))?;
    }
    if is_old {
        migrate(&mut connection, MIGRATIONS).map_err(|source| sqlite(path, source))?;
    }
    leave_wal_on_shared_disks(&connection, path);
    flush_at_checkpoints(&connection);
    if fs::file_id(path) != file_id {
        // Replaced while we opened it: which of the two we have is not known.
        return Ok(Look::Missing);
    }
    let id = connection.query_row("SELECT id FROM ledger", [], |row| row.get(0));
    match id {
        Ok(id) => Ok(Look::Good(Box::new(Ledger {
            connection,
            path: path.to_owned(),
            file_id,
            id: LedgerId(id),
            ids: Ids::new(None),
            holder: ProcessIdentity::current(),
        }))),
        Err(error) if sqlite_is_busy(&error) => Err(sqlite(path, error)),
        // Our mark is on it, yet what every one of our files has is missing.
        Err(_) => Ok(Look::Damaged),
    }
}

/// `false` for an empty database, which is a ledger that lost everything.
fn is_one_of_ours(
    connection: &Connection,
    path: &Path,
    application_id: i64,
    user_version: i64,
) -> Result<bool, OpenError> {
    let known = newest(MIGRATIONS);
    let path = path.to_owned();
    match (application_id, user_version) {
        (APPLICATION_ID, found) if known < found => {
            Err(OpenError::NewerSchema { path, found, known })
        }
        (APPLICATION_ID, _) => Ok(true),
        (0, 0) if is_empty(connection) => Ok(false),
        _ => Err(OpenError::Foreign { path }),
    }
}

fn sqlite_is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

fn settle_connection(connection: &Connection, busy_wait: Duration) -> rusqlite::Result<()> {
    connection.busy_timeout(busy_wait)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Until it is known how the file keeps its journal: see
    // `flush_at_checkpoints`.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(())
}

fn read_marks(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    let application_id = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let user_version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    // The pragmas above read the header alone; this one reads the schema.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok((application_id, user_version))
}

fn is_empty(connection: &Connection) -> bool {
    connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .is_ok_and(|count: i64| count == 0)
}

fn is_sound(connection: &Connection) -> bool {
    connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .is_ok_and(|verdict: String| verdict == "ok")
}

/// A home that was moved to a network disk keeps a file in WAL mode, which
/// needs shared memory. Best effort: where it fails, so do the next calls.
fn leave_wal_on_shared_disks(connection: &Connection, path: &Path) {
    if fs::is_on_local_disk(path.parent().unwrap_or(path)) {
        return;
    }
    let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
    if mode.is_ok_and(|mode| mode == "wal") {
        connection
            .pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))
            .ok();
    }
}

/// With a write-ahead log a commit need not be flushed one by one: a killed
/// process loses none, and a power cut loses the newest ones, never a part of
/// one. What it can take away is a claim, whose holder the cut has ended as
/// well, or the end of an extraction, whose recap file was flushed before.
/// What costs money is flushed all the same, see `Ledger::immediate_flushed`.
/// Best effort: where it fails, every commit is flushed.
fn flush_at_checkpoints(connection: &Connection) {
    let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
    if mode.is_ok_and(|mode| mode == "wal") {
        connection.pragma_update(None, "synchronous", "NORMAL").ok();
    }
}

/// Builds a ledger beside `path` and moves it there. `false` when another
/// process was faster.
fn make(path: &Path, now: Timestamp) -> Result<bool, OpenError> {
    let ids = Ids::new(None);
    let side = side_path(path, &ids);
    let made = build(&side, &ids, now).and_then(|()| {
        stop::point("ledger.built_aside");
        publish(&side, path)
    });
    if let Ok(true) = made {
        return made;
    }
    for end in JOURNALS.into_iter().chain([""]) {
        fs::remove(&with_end(&side, end))?;
    }
    // Whoever was faster may have swept our half-made file away.
    if fs::is_taken(path) { Ok(false) } else { made }
}

fn publish(side: &Path, path: &Path) -> Result<bool, OpenError> {
    let _lock = FileLock::acquire(&lock_path(path), BUSY_WAIT)?;
    if fs::is_taken(path) {
        return Ok(false);
    }
    // Journals that outlived their file would be replayed into the new one.
    for end in JOURNALS {
        fs::remove(&with_end(path, end))?;
    }
    fs::rename(side, path)?;
    sweep(path)?;
    Ok(true)
}

/// Removes what a crash of [`make`] left. What another process is making just
/// now goes too: it is too late with it.
fn sweep(path: &Path) -> Result<(), OpenError> {
    for entry in fs::list(path.parent().unwrap_or(path))? {
        let name = entry.path.file_name().unwrap_or_default();
        if name.as_encoded_bytes().starts_with(SIDE_PREFIX.as_bytes()) {
            fs::remove(&entry.path)?;
        }
    }
    Ok(())
}

fn build(side: &Path, ids: &Ids, now: Timestamp) -> Result<(), OpenError> {
    // Made by us first, so that the file is private from the start.
    fs::create_new(side, b"")?;
    let fill = || -> rusqlite::Result<()> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(side, flags)?;
        settle_connection(&connection, BUSY_WAIT)?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        migrate(&mut connection, MIGRATIONS)?;
        connection.execute(
            "INSERT INTO ledger (id, made_at) VALUES (?1, ?2)",
            (ids.bytes(), now.seconds()),
        )?;
        if fs::is_on_local_disk(side.parent().unwrap_or(side)) {
            // The mode is kept in the file. A file system that cannot do it
            // keeps the rollback journal, which is slower and as safe.
            connection
                .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
                .ok();
        }
        connection.close().map_err(|(_, error)| error)
    };
    fill().map_err(|source| sqlite(side, source))
}

/// Moves a damaged file out of the way, with its journals: a journal beside
/// a new file would be taken for that one's. `None` when another process has
/// mended it.
fn move_away(path: &Path, now: Timestamp) -> Result<Option<PathBuf>, OpenError> {
    let _lock = FileLock::acquire(&lock_path(path), BUSY_WAIT)?;
    if !matches!(look(path, Opener::Keeper)?, Look::Damaged) {
        return Ok(None);
    }
    let aside = free_name(path, now);
    for end in JOURNALS {
        let from = with_end(path, end);
        if fs::is_taken(&from) {
            fs::rename(&from, &with_end(&aside, end))?;
        }
    }
    stop::point("ledger.journal_set_aside");
    fs::rename(path, &aside)?;
    fs::remove(&doubt_path(path))?;
    Ok(Some(aside))
}

fn lock_path(path: &Path) -> PathBuf {
    path.with_extension("lock")
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// `.ledger.sqlite.memrev-<random>.tmp`: a side file by its name, and not the
/// same for two threads of one process.
fn side_path(path: &Path, ids: &Ids) -> PathBuf {
    path.with_file_name(format!("{SIDE_PREFIX}{}.tmp", ids.token()))
}

/// `ledger.damaged-2026-12-01T05-33-44.sqlite`, numbered if taken.
fn free_name(path: &Path, now: Timestamp) -> PathBuf {
    let stamp = now.file_stamp();
    let name = |number: u32| match number {
        1 => path.with_file_name(format!("ledger.damaged-{stamp}.sqlite")),
        _ => path.with_file_name(format!("ledger.damaged-{stamp}-{number}.sqlite")),
    };
    (1..1_000)
        .map(name)
        .find(|candidate| !fs::is_taken(candidate))
        .unwrap_or_else(|| name(1))
}
