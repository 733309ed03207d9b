//! Which sessions there are, without reading what has not changed.
//!
//! Discovery lists the transcript files; a mark in the ledger says what was
//! found out about a file last time. Only files without a mark that fits are
//! opened, so a scan over thousands of old sessions reads none of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::domain::project::Project;
use crate::domain::session::SessionHead;
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;
use crate::ledger::{Mark, Marks};
use crate::sessions::{self, Discovery, Found, ReadError, Skipped};
use crate::sys::fs;
use crate::text::redact;

/// Marks made by another generation of readers do not count. To be raised
/// whenever a reader finds out something else about the same file.
pub(crate) const READER_GENERATION: u32 = 1;

/// Everything that was found.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// One file per session, sorted by thread id.
    pub(crate) sessions: Vec<(Found, SessionHead)>,
    pub(crate) skipped: Vec<Skipped>,
    /// Transcripts that gave no session, with the reason.
    pub(crate) unreadable: Vec<(PathBuf, ReadError)>,
    /// What the ledger does not know yet.
    pub(crate) new_marks: Vec<Mark>,
    /// Files the ledger knows and that are gone.
    pub(crate) gone: Vec<PathBuf>,
}

/// Turns found files into sessions, opening only what `marks` do not cover.
pub(crate) fn scan(discovery: Discovery, marks: &Marks) -> Scan {
    let mut scan = Scan {
        skipped: discovery.skipped,
        ..Scan::default()
    };
    let mut heads = Vec::with_capacity(discovery.found.len());
    let mut known = 0;
    for found in discovery.found {
        let mark = marks.get(&found.path).inspect(|_| known += 1);
        if let Some(mark) = mark.filter(|mark| fits(mark, &found)) {
            heads.push((found, head_of(mark.clone())));
            continue;
        }
        match sessions::read_head(&found) {
            Ok(head) => {
                scan.new_marks.push(mark_of(&found, &head));
                heads.push((found, head));
            }
            Err(error) => scan.unreadable.push((found.path, error)),
        }
    }
    if known < marks.len() {
        let gone = marks.iter().filter(|mark| !mark.path.exists());
        scan.gone = gone.map(|mark| mark.path.clone()).collect();
    }
    scan.sessions = sessions::settle(heads);
    share_projects(&mut scan.sessions);
    scan
}

/// An agent that tells no origin works on the same project as one that does,
/// when both work in the same folder. Where the folder has been of several
/// projects, the newest session's counts.
fn share_projects(sessions: &mut [(Found, SessionHead)]) {
    let is_told = |project: &Project, cwd: &str| project.as_str() != cwd;
    let mut told: BTreeMap<String, (Timestamp, Project)> = BTreeMap::new();
    for (_, head) in sessions.iter() {
        if let (Some(cwd), Some(project)) = (&head.cwd, &head.project)
            && is_told(project, cwd.unredacted())
        {
            let newest = told
                .entry(cwd.unredacted().to_owned())
                .or_insert_with(|| (head.updated_at, project.clone()));
            if newest.0 < head.updated_at {
                *newest = (head.updated_at, project.clone());
            }
        }
    }
    for (_, head) in sessions.iter_mut() {
        if let (Some(cwd), Some(project)) = (&head.cwd, &head.project)
            && !is_told(project, cwd.unredacted())
            && let Some((_, shared)) = told.get(cwd.unredacted())
        {
            head.project = Some(shared.clone());
        }
    }
}

fn fits(mark: &Mark<Raw>, found: &Found) -> bool {
    (mark.size_bytes, mark.modified) == extent(found)
}

/// Size and newest change of a session's files, sub-agents included.
fn extent(found: &Found) -> (u64, Timestamp) {
    let parts = found
        .sub_agents
        .iter()
        .filter_map(|part| fs::size_and_time(part));
    parts.fold(
        (found.size, found.modified),
        |(size, newest), (more, modified)| (size + more, newest.max(modified)),
    )
}

fn head_of(mark: Mark<Raw>) -> SessionHead {
    SessionHead {
        agent: mark.agent,
        thread_id: mark.thread_id,
        rollout_path: mark.path,
        cwd: mark.cwd,
        project: (mark.project).map(|project| Project::new(project.unredacted().to_owned())),
        git_branch: mark.git_branch,
        source: mark.source,
        mode: mark.mode,
        started_at: mark.started_at,
        updated_at: mark.updated_at,
        is_ours: mark.is_ours,
        forked_from: mark.forked_from,
        first_record: mark.first_record,
    }
}

fn mark_of(found: &Found, head: &SessionHead) -> Mark {
    let (size_bytes, modified) = extent(found);
    Mark {
        path: found.path.clone(),
        size_bytes,
        modified,
        agent: head.agent,
        thread_id: head.thread_id.clone(),
        started_at: head.started_at,
        updated_at: head.updated_at,
        source: head.source.clone(),
        mode: head.mode,
        is_ours: head.is_ours,
        forked_from: head.forked_from.clone(),
        first_record: head.first_record.clone(),
        cwd: head.cwd.as_ref().map(redact::redact),
        project: (head.project.as_ref()).map(|project| redact::redact_str(project.as_str())),
        git_branch: head.git_branch.as_ref().map(redact::redact),
    }
}
