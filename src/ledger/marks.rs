//! Session marks: what discovery found out last time, so that an idle pass
//! reads no transcript.
//!
//! A mark counts while the file at its path has the size and time it had.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use rusqlite::{Row, Transaction, params};

use crate::domain::id::ThreadId;
use crate::domain::session::{Agent, MemoryMode, Source};
use crate::domain::text::{Raw, Redacted};
use crate::domain::time::Timestamp;
use crate::ledger::error::LedgerError;
use crate::ledger::{Ledger, while_trying_to};
use crate::sys::stop;

/// What is remembered of one transcript file.
///
/// `T` is `Redacted` on the way in and `Raw` on the way out: text that comes
/// back from a disk has to pass redaction again before it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark<T = Redacted> {
    pub(crate) path: PathBuf,
    /// Of the file and its sub-agents' files together.
    pub(crate) size_bytes: u64,
    /// The newest time of these files, to the millisecond.
    pub(crate) modified: Timestamp,
    pub(crate) agent: Agent,
    pub(crate) thread_id: ThreadId,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) updated_at: Timestamp,
    /// The name inside `Source::Other` is not kept.
    pub(crate) source: Source,
    /// What the transcript itself says.
    pub(crate) mode: MemoryMode,
    pub(crate) is_ours: bool,
    pub(crate) forked_from: Option<ThreadId>,
    /// Kept when it has the form of an id; other text of a session is not.
    pub(crate) first_record: Option<String>,
    pub(crate) cwd: Option<T>,
    pub(crate) project: Option<T>,
    pub(crate) git_branch: Option<T>,
}

/// The marks of all transcripts, sorted by the bytes of their paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Marks {
    marks: Vec<Mark<Raw>>,
}

impl Marks {
    /// What is remembered of a file. Whether it still counts is the caller's
    /// to say: see `size_bytes` and `modified`.
    pub(crate) fn get(&self, path: &Path) -> Option<&Mark<Raw>> {
        let bytes = path_bytes(path);
        // Bytes, because comparing paths takes them apart each time.
        let found = (self.marks).binary_search_by(|mark| path_bytes(&mark.path).cmp(&bytes));
        found.ok().map(|index| &self.marks[index])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mark<Raw>> {
        self.marks.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.marks.len()
    }
}

impl Ledger {
    /// All marks. `reader` is the version of the readers' code: marks that
    /// another one made are left out.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    pub(crate) fn marks(&self, reader: u32) -> Result<Marks, LedgerError> {
        let read = || -> rusqlite::Result<Marks> {
            let sql = "SELECT path, size_bytes, modified_ms, agent, thread_id, started_at_ms,
                   updated_at_ms, source, mode, is_ours, forked_from, first_record, cwd, project,
                   git_branch
                 FROM session_marks WHERE reader = ?1 ORDER BY path";
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query([reader])?;
            let mut marks = Vec::new();
            while let Some(row) = rows.next()? {
                // A row that this version cannot read costs one look at a file.
                marks.extend(read_mark(row)?);
            }
            Ok(Marks { marks })
        };
        read().map_err(self.while_trying_to("read the session marks"))
    }

    /// Writes many marks in one transaction.
    ///
    /// # Errors
    ///
    /// When SQLite fails; none is written then.
    pub(crate) fn put_marks(&mut self, marks: &[Mark], reader: u32) -> Result<(), LedgerError> {
        if marks.is_empty() {
            return Ok(());
        }
        let attempt = "write the session marks";
        stop::point("ledger.before_marks");
        self.immediate(attempt, |tx| {
            for mark in marks {
                put_mark(tx, mark, reader).map_err(while_trying_to(attempt))?;
            }
            Ok(())
        })?;
        stop::point("ledger.marks_put");
        Ok(())
    }

    /// Drops the marks of these files in one transaction.
    ///
    /// # Errors
    ///
    /// When SQLite fails; none is dropped then.
    pub(crate) fn forget_marks(&mut self, paths: &[PathBuf]) -> Result<(), LedgerError> {
        if paths.is_empty() {
            return Ok(());
        }
        let attempt = "drop session marks";
        self.immediate(attempt, |tx| {
            for path in paths {
                let dropped = tx
                    .prepare_cached("DELETE FROM session_marks WHERE path = ?1")
                    .and_then(|mut statement| statement.execute([path_bytes(path)]));
                dropped.map_err(while_trying_to(attempt))?;
            }
            Ok(())
        })
    }
}

fn put_mark(tx: &Transaction<'_>, mark: &Mark, reader: u32) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO session_marks
           (path, reader, size_bytes, modified_ms, agent, thread_id, started_at_ms, updated_at_ms,
            source, mode, is_ours, forked_from, first_record, cwd, project, git_branch)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    tx.prepare_cached(sql)?.execute(params![
        path_bytes(&mark.path),
        reader,
        i64::try_from(mark.size_bytes).unwrap_or(i64::MAX),
        mark.modified.millis(),
        mark.agent.label(),
        mark.thread_id.as_str(),
        mark.started_at.map(Timestamp::millis),
        mark.updated_at.millis(),
        source_code(&mark.source),
        mark.mode.label(),
        mark.is_ours,
        mark.forked_from.as_ref().map(ThreadId::as_str),
        (mark.first_record.as_deref()).filter(|id| ThreadId::parse(id).is_some()),
        mark.cwd.as_ref().map(Redacted::as_str),
        mark.project.as_ref().map(Redacted::as_str),
        mark.git_branch.as_ref().map(Redacted::as_str),
    ])?;
    Ok(())
}

fn read_mark(row: &Row<'_>) -> rusqlite::Result<Option<Mark<Raw>>> {
    let text = |column: usize| -> rusqlite::Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
    let text_if_any = |column: usize| -> rusqlite::Result<Option<&str>> {
        Ok(row.get_ref(column)?.as_str_or_null()?)
    };
    let raw =
        |column: usize| -> rusqlite::Result<Option<Raw>> { Ok(text_if_any(column)?.map(Raw::new)) };
    let known = (
        Agent::parse(text(3)?),
        ThreadId::parse(text(4)?),
        parse_source(text(7)?),
        MemoryMode::parse(text(8)?),
    );
    let (Some(agent), Some(thread_id), Some(source), Some(mode)) = known else {
        return Ok(None);
    };
    Ok(Some(Mark {
        path: path_from_bytes(row.get_ref(0)?.as_blob()?),
        size_bytes: u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
        modified: Timestamp::from_millis(row.get(2)?),
        agent,
        thread_id,
        started_at: row.get::<_, Option<i64>>(5)?.map(Timestamp::from_millis),
        updated_at: Timestamp::from_millis(row.get(6)?),
        source,
        mode,
        is_ours: row.get(9)?,
        forked_from: text_if_any(10)?.and_then(ThreadId::parse),
        first_record: text_if_any(11)?.map(str::to_owned),
        cwd: raw(12)?,
        project: raw(13)?,
        git_branch: raw(14)?,
    }))
}

/// The label; for a sub-agent with the parent's id behind a space.
fn source_code(source: &Source) -> Cow<'static, str> {
    match source {
        Source::Interactive => Cow::Borrowed("interactive"),
        Source::Exec => Cow::Borrowed("exec"),
        Source::SubAgent { parent: None } => Cow::Borrowed("sub-agent"),
        Source::SubAgent {
            parent: Some(parent),
        } => Cow::Owned(format!("sub-agent {parent}")),
        // What a transcript calls itself is text of a session.
        Source::Other(_) => Cow::Borrowed("other"),
    }
}

fn parse_source(code: &str) -> Option<Source> {
    match code {
        "interactive" => return Some(Source::Interactive),
        "exec" => return Some(Source::Exec),
        "sub-agent" => return Some(Source::SubAgent { parent: None }),
        "other" => return Some(Source::Other("other".to_owned())),
        _ => {}
    }
    let parent = ThreadId::parse(code.strip_prefix("sub-agent ")?)?;
    Some(Source::SubAgent {
        parent: Some(parent),
    })
}

/// Paths are bytes: a name that is not UTF-8 has to be found again.
#[cfg(unix)]
fn path_bytes(path: &Path) -> Cow<'_, [u8]> {
    use std::os::unix::ffi::OsStrExt as _;
    Cow::Borrowed(path.as_os_str().as_bytes())
}

#[cfg(unix)]
fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path_bytes(path: &Path) -> Cow<'_, [u8]> {
    Cow::Owned(path.to_string_lossy().into_owned().into_bytes())
}

#[cfg(not(unix))]
fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}
