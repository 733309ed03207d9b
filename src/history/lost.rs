//! Entries that a commit took out of the memory files.

use std::collections::BTreeSet;

use crate::domain::entry::{Entry, EntryKind};
use crate::domain::id::ObjectId;
use crate::domain::path::{FileKind, TreePath};
use crate::domain::text::Raw;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::history::Commit;
use crate::text::entries;
use crate::text::shingles::{SAME_SIMILARITY_MIN, Wording};

/// An entry that stood in the tree before a commit and stands nowhere after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) path: TreePath,
    /// Where it stood, 1-based, in the version before.
    pub(crate) line_number: u32,
    pub(crate) text: Raw,
}

/// What the commit took out, by file and line; reworded entries are not lost,
/// nor are those that another memory file still has.
///
/// # Errors
///
/// When a tree or a file cannot be read.
pub(crate) fn by(store: &Store, commit: &Commit) -> Result<Vec<Lost>, StoreError> {
    let Some(parent) = commit.parents.first() else {
        return Ok(Vec::new());
    };
    let before = memory_entries(store, *parent)?;
    let after = memory_entries(store, commit.id)?;
    Ok(lost(&before, &after))
}

fn lost(before: &[Entry], after: &[Entry]) -> Vec<Lost> {
    let texts: BTreeSet<&str> = after.iter().map(|entry| entry.text.as_str()).collect();
    let mut wordings: Option<Vec<Wording>> = None;
    let mut stands = |entry: &&Entry| {
        texts.contains(entry.text.as_str()) || {
            let all = || after.iter().map(|it| Wording::of(&it.text)).collect();
            let wording = Wording::of(&entry.text);
            let likes = |other: &Wording| SAME_SIMILARITY_MIN <= wording.similarity(other);
            wordings.get_or_insert_with(all).iter().any(likes)
        }
    };
    (before.iter())
        // Counts are made anew by every pass: a new one is no loss.
        .filter(|entry| entry.kind != EntryKind::TaskGroup && !entries::is_count(entry))
        .filter(|entry| !stands(entry))
        .map(|entry| Lost {
            path: entry.path.clone(),
            line_number: entry.line_number,
            text: Raw::new(entry.text.clone()),
        })
        .collect()
}

fn memory_entries(store: &Store, commit: ObjectId) -> Result<Vec<Entry>, StoreError> {
    let files = store.snapshot(commit)?.files;
    let mut found = Vec::new();
    for (path, blob) in &files {
        if matches!(path.kind(), FileKind::Summary | FileKind::Handbook) {
            let text = store.text(blob.id)?;
            found.extend(entries::parse(path, text.unredacted()));
        }
    }
    Ok(found)
}
