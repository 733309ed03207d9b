//! Which commits a person asks for.

use crate::domain::id::ObjectId;
use crate::domain::path::{FileKind, TreePath};
use crate::domain::time::Timestamp;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::history::Commit;
use crate::store::message::CommitKind;

/// What commits must have, all of it; an empty filter takes every commit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    pub(crate) kind: Option<CommitKind>,
    /// Not older than this.
    pub(crate) since: Option<Timestamp>,
    /// A session that it names among its inputs, by the whole thread id or its
    /// beginning.
    pub(crate) thread: Option<String>,
    /// A note that it names or changes: part of the file's name.
    pub(crate) note: Option<String>,
    /// A file that it changes: its path, or the end of it.
    pub(crate) file: Option<String>,
    pub(crate) worker: Option<String>,
    pub(crate) count_max: Option<usize>,
}

/// The commits on main from `head` on that pass the filter, newest first.
///
/// # Errors
///
/// When the history cannot be read.
pub(crate) fn commits(
    store: &Store,
    head: ObjectId,
    filter: &Filter,
) -> Result<Vec<Commit>, StoreError> {
    let count_max = filter.count_max.unwrap_or(usize::MAX);
    let mut chosen = Vec::new();
    for commit in store.history(head) {
        if count_max <= chosen.len() {
            break;
        }
        let commit = commit?;
        if filter.takes_message(&commit) && filter.takes_files(store, &commit)? {
            chosen.push(commit);
        }
    }
    Ok(chosen)
}

impl Filter {
    /// What the commit says of itself; the cheap part.
    fn takes_message(&self, commit: &Commit) -> bool {
        let trailers = &commit.trailers;
        let names = |thread: &String| {
            let ids = trailers
                .inputs
                .iter()
                .filter_map(|it| it.thread_id.as_ref());
            ids.map(ToString::to_string)
                .any(|id| id.starts_with(thread.as_str()))
        };
        (self.kind.is_none_or(|kind| trailers.kind == Some(kind)))
            && self.since.is_none_or(|since| since <= commit.at)
            && self.thread.as_ref().is_none_or(names)
            && (self.worker.as_ref()).is_none_or(|worker| trailers.worker.as_ref() == Some(worker))
    }

    /// What it changes; trees are read for this.
    fn takes_files(&self, store: &Store, commit: &Commit) -> Result<bool, StoreError> {
        if self.note.is_none() && self.file.is_none() {
            return Ok(true);
        }
        let changed = store.changed_paths(commit.id)?;
        let mut paths: Vec<&TreePath> = changed.iter().map(|change| &change.path).collect();
        let has_file = |wanted: &String, paths: &[&TreePath]| {
            paths.iter().any(|path| is_end_of(path.as_str(), wanted))
        };
        if (self.file.as_ref()).is_some_and(|wanted| !has_file(wanted, &paths)) {
            return Ok(false);
        }
        paths.extend(commit.trailers.inputs.iter().map(|input| &input.path));
        let is_note = |path: &&TreePath, wanted: &String| {
            path.kind() == FileKind::Note && path.as_str().contains(wanted.as_str())
        };
        Ok(
            (self.note.as_ref())
                .is_none_or(|wanted| paths.iter().any(|path| is_note(path, wanted))),
        )
    }
}

/// Whether `end` is the path, or its last parts.
pub(crate) fn is_end_of(path: &str, end: &str) -> bool {
    let end = end.trim_start_matches("./");
    path.strip_suffix(end)
        .is_some_and(|before| before.is_empty() || before.ends_with('/') || end.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::is_end_of;

    #[test]
    fn a_file_is_named_by_its_path_or_the_end_of_it() {
        for (path, end, expected) in [
            ("MEMORY.md", "MEMORY.md", true),
            ("skills/deploy/SKILL.md", "SKILL.md", true),
            ("skills/deploy/SKILL.md", "./deploy/SKILL.md", true),
            ("skills/deploy/SKILL.md", "oy/SKILL.md", false),
            ("MEMORY.md", "memory.md", false),
        ] {
            assert_eq!(is_end_of(path, end), expected, "{path} {end}");
        }
    }
}
