//! Which files are transcripts.
//!
//! Codex: `rollout-*.jsonl`, `rollout-*.jsonl.zst` in dated folders, and
//! `rollout-*.json` of its first generation. Claude Code: `<session>.jsonl` in
//! a folder per project, sub-agents below `<session>/subagents/` or, in older
//! versions, beside it as `agent-*.jsonl`.
//!
//! # Limits
//!
//! One look at each file (size, time), none at folders beyond listing them.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use walkdir::{DirEntry, WalkDir};

use crate::domain::session::Agent;
use crate::sessions::{Discovery, Found, Roots, Skipped};
use crate::sys::fs::modified;

/// Folders between a root and a transcript, at most.
const DEPTH_MAX: usize = 8;

/// Of an old sub-agent's transcript, to learn whose it is, in bytes.
const PEEK_BYTES: u64 = 16 * 1024;

/// What a name says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Transcript,
    Compressed,
    Document,
    /// Half-written or deleted: looks like one and is none.
    Leftover(&'static str),
    Other,
}

/// Lists the transcripts under `roots`.
pub(super) fn discover(roots: &Roots) -> Discovery {
    let home: Option<Arc<Path>> = roots.home.as_deref().map(Arc::from);
    let mut discovery = Discovery::default();
    for root in &roots.codex {
        walk(root, Agent::Codex, home.as_ref(), &mut discovery);
    }
    for root in &roots.claude {
        walk(root, Agent::Claude, home.as_ref(), &mut discovery);
    }
    let found = std::mem::take(&mut discovery.found);
    discovery.found = with_sub_agents(without_twins(found), &mut discovery.skipped);
    discovery.skipped.sort();
    discovery.skipped.dedup();
    discovery
}

fn walk(root: &Path, agent: Agent, home: Option<&Arc<Path>>, discovery: &mut Discovery) {
    let entries = WalkDir::new(root)
        .max_depth(DEPTH_MAX)
        .follow_links(false)
        .follow_root_links(true)
        .into_iter()
        .filter_entry(|entry| entry.depth() == 0 || !is_excluded_folder(entry));
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                skip_unreadable(&error, discovery);
                continue;
            }
        };
        if !entry.file_type().is_file() {
            continue;
        }
        match name_of(agent, &entry) {
            Named::Other => {}
            Named::Leftover(reason) => skip(entry.path(), reason, discovery),
            Named::Transcript | Named::Compressed | Named::Document => {
                take(entry, agent, home, discovery);
            }
        }
    }
}

fn take(entry: DirEntry, agent: Agent, home: Option<&Arc<Path>>, discovery: &mut Discovery) {
    // Gone since it was listed: nothing to say.
    if let Ok(metadata) = entry.metadata() {
        discovery.found.push(Found {
            agent,
            size: metadata.len(),
            modified: modified(&metadata),
            path: entry.into_path(),
            sub_agents: Vec::new(),
            earlier: Vec::new(),
            home: home.cloned(),
        });
    }
}

fn skip_unreadable(error: &walkdir::Error, discovery: &mut Discovery) {
    let is_gone = error
        .io_error()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    if let Some(path) = error.path().filter(|_| !is_gone) {
        skip(path, "the folder cannot be listed", discovery);
    }
}

fn skip(path: &Path, reason: &str, discovery: &mut Discovery) {
    discovery.skipped.push(Skipped {
        path: escaped(path),
        reason: reason.to_owned(),
    });
}

/// A path as text without control characters; what is not UTF-8 as `\xNN`.
pub(super) fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                text.extend(c.escape_default());
            } else {
                text.push(c);
            }
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a string takes any text");
        }
    }
    text
}

/// Archived sessions are not read, nor what a tool stores beside a session.
fn is_excluded_folder(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let is_excluded = name == "archived_sessions" || name == "archived" || name == "tool-results";
    entry.file_type().is_dir() && is_excluded
}

fn name_of(agent: Agent, entry: &DirEntry) -> Named {
    let bytes = entry.file_name().as_encoded_bytes();
    if agent == Agent::Codex && !bytes.starts_with(b"rollout-") {
        return Named::Other;
    }
    let contains = |part: &str| memchr::memmem::find(bytes, part.as_bytes()).is_some();
    if contains(".deleted.") || bytes.ends_with(b".deleted") {
        return Named::Leftover("a deleted transcript");
    }
    if bytes.ends_with(b".tmp") || contains(".zst.compress.") {
        let is_transcript = contains(".jsonl");
        return if is_transcript {
            Named::Leftover("an unfinished file")
        } else {
            Named::Other
        };
    }
    match () {
        () if bytes.ends_with(b".jsonl") => Named::Transcript,
        () if bytes.ends_with(b".jsonl.zst") => Named::Compressed,
        () if agent == Agent::Codex && bytes.ends_with(b".json") => Named::Document,
        () => Named::Other,
    }
}

/// Sorts, and drops a compressed file whose plain one is there too.
fn without_twins(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found.dedup_by(|later, earlier| later.path == earlier.path);
    // `x.jsonl.zst` sorts right behind `x.jsonl`, but for names in between
    // that only begin like it.
    let plain: HashSet<PathBuf> = found
        .iter()
        .filter(|one| one.path.extension().is_some_and(|end| end == "jsonl"))
        .map(|one| one.path.clone())
        .collect();
    found.retain(|one| {
        let is_compressed = one.path.extension().is_some_and(|end| end == "zst");
        !is_compressed || !plain.contains(&one.path.with_extension(""))
    });
    found
}

/// Gives transcripts of sub-agents to their sessions.
fn with_sub_agents(found: Vec<Found>, skipped: &mut Vec<Skipped>) -> Vec<Found> {
    let mut sub_agents: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    let mut sessions = Vec::new();
    for one in found {
        match session_of_sub_agent(&one) {
            Some(session) => sub_agents.entry(session).or_default().push(one.path),
            None => sessions.push(one),
        }
    }
    for session in &mut sessions {
        if session.agent == Agent::Claude {
            let key = session.path.with_extension("");
            session.sub_agents = sub_agents.remove(&key).unwrap_or_default();
        }
    }
    let orphans = sub_agents.into_values().flatten();
    skipped.extend(orphans.map(|path| Skipped {
        path: escaped(&path),
        reason: "a sub-agent's transcript without its session".to_owned(),
    }));
    sessions
}

/// The session a transcript belongs to, as its path without ending, when it
/// is a sub-agent's.
fn session_of_sub_agent(found: &Found) -> Option<PathBuf> {
    if found.agent != Agent::Claude {
        return None;
    }
    let mut above = found.path.ancestors().skip(1);
    if let Some(folder) = above.find(|folder| folder.file_name().is_some_and(|n| n == "subagents"))
    {
        return folder.parent().map(Path::to_owned);
    }
    let name = found.path.file_name()?.to_str()?;
    if !name.starts_with("agent-") {
        return None;
    }
    let session = peeked_session(&found.path)?;
    Some(found.path.with_file_name(session))
}

fn peeked_session(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(PEEK_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (_, behind) = text.split_once("\"sessionId\":")?;
    let (id, _) = behind.trim_start().strip_prefix('"')?.split_once('"')?;
    crate::domain::id::ThreadId::parse(id).map(|id| id.as_str().to_owned())
}
