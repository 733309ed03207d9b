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
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{DirEntry, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    /// Half-written or deleted: looks like one and is none.
    Leftover(&'static str),
    Other,
}

/// Lists the transcripts under `roots`.
pub(super) fn discover(roots: &Roots) -> Discovery {
    let home: Option<Arc<Path>> = roots.home.as_deref().map(Arc::from);
    let mut discovery = Discovery::default();
    for (agent, folders) in [(Agent::Codex, &roots.codex), (Agent::Claude, &roots.claude)] {
        for root in folders {
            let mut walk = Walk {
                agent,
                home: home.as_ref(),
                discovery: &mut discovery,
            };
            walk.folder(root, 0);
        }
    }
    let found = std::mem::take(&mut discovery.found);
    discovery.found = with_sub_agents(without_twins(found), &mut discovery.skipped);
    discovery.skipped.sort();
    discovery.skipped.dedup();
    discovery
}

struct Walk<'a> {
    agent: Agent,
    home: Option<&'a Arc<Path>>,
    discovery: &'a mut Discovery,
}

impl Walk<'_> {
    /// Entries are looked at relative to their folder, which on Linux is twice
    /// as fast as by whole paths.
    fn folder(&mut self, folder: &Path, depth: usize) {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(_) => return skip(folder, "the folder cannot be listed", self.discovery),
        };
        for entry in entries.flatten() {
            let Ok(file_type) = entry.file_type() else {
                continue;
            };
            if file_type.is_dir() {
                if depth < DEPTH_MAX && !is_excluded_folder(&entry.file_name()) {
                    self.folder(&entry.path(), depth + 1);
                }
            } else if file_type.is_file() {
                match name_of(self.agent, &entry.file_name()) {
                    Named::Other => {}
                    Named::Leftover(reason) => skip(&entry.path(), reason, self.discovery),
                    Named::Transcript => self.take(&entry),
                }
            }
        }
    }

    fn take(&mut self, entry: &DirEntry) {
        // Gone since it was listed: nothing to say.
        if let Ok(metadata) = entry.metadata() {
            self.discovery.found.push(Found {
                agent: self.agent,
                size: metadata.len(),
                modified: modified(&metadata),
                path: entry.path(),
                sub_agents: Vec::new(),
                earlier: Vec::new(),
                home: self.home.cloned(),
            });
        }
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
fn is_excluded_folder(name: &OsStr) -> bool {
    name == "archived_sessions" || name == "archived" || name == "tool-results"
}

fn name_of(agent: Agent, name: &OsStr) -> Named {
    let bytes = name.as_encoded_bytes();
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
        () if bytes.ends_with(b".jsonl.zst") => Named::Transcript,
        () if agent == Agent::Codex && bytes.ends_with(b".json") => Named::Transcript,
        () => Named::Other,
    }
}

/// Sorts, and drops a compressed file whose plain one is there too.
fn without_twins(mut found: Vec<Found>) -> Vec<Found> {
    // By bytes: comparing paths part by part takes longer than listing them.
    found.sort_unstable_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
    found.dedup_by(|later, earlier| later.path.as_os_str() == earlier.path.as_os_str());
    let is_compressed = |one: &Found| one.path.extension().is_some_and(|end| end == "zst");
    let compressed = found.iter().filter(|one| is_compressed(one));
    let plain_names: HashSet<PathBuf> = compressed.map(|one| one.path.with_extension("")).collect();
    let plain = found.iter().filter(|one| plain_names.contains(&one.path));
    let plain: HashSet<PathBuf> = plain.map(|one| one.path.clone()).collect();
    found.retain(|one| !is_compressed(one) || !plain.contains(&one.path.with_extension("")));
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
