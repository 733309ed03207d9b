//! Opens transcripts and makes sessions of what the readers find.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::domain::id::ThreadId;
use crate::domain::project::Project;
use crate::domain::session::{Agent, DAMAGE_LISTED_MAX, Damage, ReadReport, Session, SessionHead};
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;
use crate::sessions::facts::Facts;
use crate::sessions::records::{self, Sink, Taken};
use crate::sessions::wire::Text;
use crate::sessions::{Found, ReadError, claude, codex};
use crate::sys::project;

/// Most bytes of a file that are looked at for a head.
const HEAD_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Of the end of a file, to find the newest record's time; grows eightfold
/// until a record begins in it.
const TAIL_BYTES: u64 = 16 * 1024;
const TAIL_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Largest window of a compressed file, as a power of two of bytes: what the
/// strongest ordinary level of zstd needs.
const ZSTD_WINDOW_LOG_MAX: u32 = 26;

/// The head of a session.
pub(super) fn head(found: &Found) -> Result<SessionHead, ReadError> {
    let (walked, mut facts) = match found.agent {
        Agent::Codex => codex_facts(found, true)?,
        Agent::Claude => claude_facts(found, true)?,
    };
    if !walked.is_document {
        let newest = newest_time(found).map_err(|source| io_error(&found.path, source))?;
        facts.updated_at = facts.updated_at.max(newest);
    }
    check(found, &walked)?;
    Ok(head_of(found, &mut facts))
}

/// The whole session.
pub(super) fn session(found: &Found) -> Result<Session, ReadError> {
    let (walked, mut facts) = match found.agent {
        Agent::Codex => codex_facts(found, false)?,
        Agent::Claude => claude_facts(found, false)?,
    };
    check(found, &walked)?;
    let head = head_of(found, &mut facts);
    let mut report = facts.report;
    if facts.dropped > 0 && report.warnings.len() < DAMAGE_LISTED_MAX {
        let what = format!(
            "{} old items were left out: the session is too large",
            facts.dropped
        );
        report.warnings.push(Damage {
            line_number: 0,
            what,
        });
    }
    Ok(Session {
        head,
        items: facts.items,
        has_external: facts.has_external,
        citations: facts.citations,
        report,
    })
}

/// How reading a file went.
struct Walk {
    has_content: bool,
    knows_anything: bool,
    is_document: bool,
    /// Why a document is none.
    reason: Option<String>,
}

fn check(found: &Found, walk: &Walk) -> Result<(), ReadError> {
    let path = || found.path.clone();
    if !walk.has_content {
        return Err(ReadError::Empty { path: path() });
    }
    if !walk.knows_anything {
        let reason = walk.reason.clone();
        return Err(ReadError::Unreadable {
            path: path(),
            reason: reason.unwrap_or_else(|| "it holds no record of a known kind".to_owned()),
        });
    }
    Ok(())
}

fn head_of(found: &Found, facts: &mut Facts) -> SessionHead {
    let cwd = facts.cwd.take();
    let project = project_of(cwd.as_deref(), facts.repository_url.as_deref());
    SessionHead {
        agent: found.agent,
        thread_id: facts
            .thread_id
            .take()
            .unwrap_or_else(|| id_of_file(&found.path)),
        rollout_path: found.path.clone(),
        is_ours: facts.is_ours || is_in_staging(found.home.as_deref(), cwd.as_deref()),
        cwd: cwd.map(Raw::new),
        project,
        git_branch: facts.branch.take().map(Raw::new),
        source: facts.source.clone(),
        mode: facts.mode,
        started_at: facts.started_at,
        updated_at: facts.updated_at.unwrap_or(found.modified),
        forked_from: facts.forked_from.take(),
        first_record: facts.first_record.take(),
    }
}

fn project_of(cwd: Option<&str>, repository_url: Option<&str>) -> Option<Project> {
    let cwd = cwd.map(Path::new);
    match (cwd, repository_url) {
        (None, None) => None,
        (cwd, url) => Some(project::identify(cwd.unwrap_or(Path::new("")), url)),
    }
}

fn is_in_staging(home: Option<&Path>, cwd: Option<&str>) -> bool {
    let (Some(home), Some(cwd)) = (home, cwd) else {
        return false;
    };
    Path::new(cwd).starts_with(home.join("staging"))
}

/// A transcript that does not name itself goes by its file name.
fn id_of_file(path: &Path) -> ThreadId {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split(".json").next().unwrap_or_default();
    ThreadId::parse(stem).unwrap_or_else(|| {
        let hash = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
        ThreadId::parse(&format!("unnamed-{}", &hash[..16]))
            .expect("hexadecimal digits can be a thread id")
    })
}

fn codex_facts(found: &Found, head_only: bool) -> Result<(Walk, Facts), ReadError> {
    let mut parent = codex::ParentKeys::default();
    if !head_only {
        for path in &found.earlier {
            // A parent that cannot be read is a parent that is not at hand.
            if let Ok(keys) = open(path).and_then(codex::read_parent) {
                parent = keys;
                break;
            }
        }
    }
    let mut reader = codex::Reader::new(&found.path, &parent, head_only);
    let source = open(&found.path).map_err(|source| io_error(&found.path, source))?;
    let is_document = is_document(&found.path);
    let mut reason = None;
    let has_content = if is_document {
        let read = codex::read_document(source, &mut reader);
        reason = read.map_err(|source| io_error(&found.path, source))?.err();
        found.size > 0
    } else {
        walk(found, source, head_only, &mut reader)?
    };
    let walk = Walk {
        has_content,
        knows_anything: reader.knows_anything(),
        is_document,
        reason,
    };
    Ok((walk, reader.finish()))
}

fn claude_facts(found: &Found, head_only: bool) -> Result<(Walk, Facts), ReadError> {
    let mut seen = HashSet::new();
    if !head_only {
        for path in &found.earlier {
            // As above: what cannot be read repeats nothing.
            let _unreadable = open(path).and_then(|source| claude::record_ids(source, &mut seen));
        }
    }
    let own_id = found.path.file_name().and_then(|name| name.to_str());
    let own_id = own_id.and_then(|name| name.split('.').next());
    let mut reader = claude::Reader::new(own_id, seen, head_only);
    let source = open(&found.path).map_err(|source| io_error(&found.path, source))?;
    let has_content = walk(found, source, head_only, &mut reader)?;
    if !head_only {
        for (index, path) in found.sub_agents.iter().enumerate() {
            let index = u16::try_from(index + 1).unwrap_or(u16::MAX);
            reader.begin_part(claude::Part::SubAgent(index));
            let mut report = std::mem::take(&mut reader.report);
            // A sub-agent's transcript that is gone takes only itself along.
            if let Ok(source) = open(path) {
                let _broken = records::walk(source, &mut reader, &mut report);
            }
            reader.report = report;
        }
    }
    let walk = Walk {
        has_content,
        knows_anything: reader.knows_anything(),
        is_document: false,
        reason: None,
    };
    Ok((walk, reader.finish()))
}

/// A reader that keeps a report of its own.
trait Reporting: Sink {
    fn report(&mut self) -> &mut ReadReport;
}

impl Reporting for codex::Reader<'_> {
    fn report(&mut self) -> &mut ReadReport {
        &mut self.report
    }
}

impl Reporting for claude::Reader<'_> {
    fn report(&mut self) -> &mut ReadReport {
        &mut self.report
    }
}

fn walk(
    found: &Found,
    source: impl Read,
    head_only: bool,
    reader: &mut impl Reporting,
) -> Result<bool, ReadError> {
    let mut report = std::mem::take(reader.report());
    let bytes_max = if head_only { HEAD_BYTES_MAX } else { u64::MAX };
    let walked = records::walk(source.take(bytes_max), reader, &mut report);
    *reader.report() = report;
    let walked = walked.map_err(|source| io_error(&found.path, source))?;
    Ok(walked.has_content)
}

/// Opens a transcript, decompressing as it reads.
fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if is_compressed(path) {
        let mut decoder = zstd::stream::read::Decoder::new(file)?;
        decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
        return Ok(Box::new(decoder));
    }
    Ok(Box::new(file))
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "zst")
}

fn is_document(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "json")
}

fn io_error(path: &Path, source: io::Error) -> ReadError {
    let path = path.to_owned();
    // What is wrong with the content has no number of the system's.
    let is_content = is_compressed(&path) && source.raw_os_error().is_none();
    if is_content {
        let reason = format!("it is no whole zstd stream ({source})");
        ReadError::Unreadable { path, reason }
    } else if source.kind() == ErrorKind::NotFound {
        ReadError::Gone { path }
    } else {
        ReadError::Io { path, source }
    }
}

/// The time of the newest record: from the end of the file, or from all of it
/// when it is compressed.
fn newest_time(found: &Found) -> io::Result<Option<Timestamp>> {
    let mut newest = newest_time_of(&found.path, found.size)?;
    for path in &found.sub_agents {
        // Gone or unreadable: it dates nothing.
        let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        newest = newest.max(newest_time_of(path, size).unwrap_or(None));
    }
    Ok(newest)
}

fn newest_time_of(path: &PathBuf, size: u64) -> io::Result<Option<Timestamp>> {
    let is_compressed = is_compressed(path);
    let mut tail_bytes = TAIL_BYTES;
    while !is_compressed && tail_bytes <= TAIL_BYTES_MAX && tail_bytes < size {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(size - tail_bytes))?;
        let mut tail = Vec::new();
        file.take(tail_bytes).read_to_end(&mut tail)?;
        let first_end = memchr::memchr(b'\n', &tail).map_or(tail.len(), |end| end + 1);
        if let Some(newest) = newest_time_in(&tail[first_end..])? {
            return Ok(Some(newest));
        }
        tail_bytes *= 8;
    }
    newest_time_in(open(path)?)
}

fn newest_time_in(source: impl Read) -> io::Result<Option<Timestamp>> {
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Dated<'a> {
        #[serde(borrow)]
        timestamp: Text<'a>,
    }
    struct Newest(Option<Timestamp>);
    impl Sink for Newest {
        fn take(&mut self, _: u64, json: &str) -> Result<Taken, serde_json::Error> {
            let dated: Dated<'_> = serde_json::from_str(json)?;
            self.0 = self.0.max(Timestamp::parse_rfc3339(dated.timestamp.get()));
            Ok(Taken::Read)
        }
    }
    let mut newest = Newest(None);
    records::walk(source, &mut newest, &mut ReadReport::default())?;
    Ok(newest.0)
}
