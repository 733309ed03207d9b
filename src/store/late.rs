//! Edits that meet a publication.
//!
//! A person's program may have read a file before we published and save it
//! at any time after. Three cases, and none may be lost or undo the baseline:
//!
//! - saved before the files changed places: the edit is what was displaced;
//! - written into the displaced file by a program that still had it open;
//! - saved over the new version, although made on the old one.
//!
//! Each is merged into the work tree with the old version as base and is an
//! ordinary uncommitted edit from then on; where both changed the same lines
//! the person's stay.
//!
//! # Limits
//!
//! The third case shows only by its text: nothing of what the publication
//! added is in it, and what it removed is. That is looked for during
//! [`LATE_SECONDS`] after a publication. A file that equals the old version
//! was put back on purpose.
//!
//! # Crash safety
//!
//! A displaced file goes only after what was merged from it is on disk.
//! Merging it twice changes nothing.

use std::collections::BTreeSet;
use std::path::Path;

use crate::domain::limits::SNAPSHOT_FILE_BYTES_MAX;
use crate::domain::path::TreePath;
use crate::store::error::StoreError;
use crate::store::merge::merge_texts;
use crate::store::publish::{Found, RunFolders};
use crate::store::record::{Record, RecordedFile};
use crate::store::{Blob, LateEdit, Store};
use crate::sys::fs;
use crate::sys::stop::point;
use crate::sys::swap::{self, Exchange};

/// How long displaced versions are kept and stale saves looked for.
pub(super) const LATE_SECONDS: u64 = 3600;

/// How often an edit is merged that another edit overtakes while we do it.
const MERGE_TRIES_MAX: u32 = 3;

impl Store {
    /// Looks through displaced versions: one that is not the old version is
    /// an edit.
    pub(super) fn settle_displaced(
        &self,
        record: &Record,
        folders: &RunFolders,
    ) -> Result<Vec<LateEdit>, StoreError> {
        let mut late_edits = Vec::new();
        for (number, file) in record.files.iter().enumerate() {
            let displaced = folders.displaced.join(number.to_string());
            let found = self.version_on_disk(&displaced, file.old);
            if found == Found::Version(None) || found == Found::Version(file.old) {
                continue;
            }
            let had_conflict = self.settle_edit(file, &displaced, found)?;
            point("publish.edit_merged");
            fs::remove_all_or_file(&displaced)?;
            late_edits.push(LateEdit {
                path: file.path.clone(),
                base: file.old,
                had_conflict,
            });
        }
        Ok(late_edits)
    }

    /// Merges a displaced edit into what lies in the work tree now; gives
    /// whether the person's side had to win.
    fn settle_edit(
        &self,
        file: &RecordedFile,
        displaced: &Path,
        found: Found,
    ) -> Result<bool, StoreError> {
        let target = self.work_path(&file.path);
        if file.new.is_none() {
            // An edit of what we removed: the person's file comes back.
            if self.make_way_to(&file.path)? {
                swap::move_new(displaced, &target)?;
            }
            return Ok(true);
        }
        let Found::Version(Some(edit)) = found else {
            swap::exchange(displaced, &target)?;
            return Ok(true);
        };
        let mut base = self.content_of(file.old)?;
        let mut ours = fs::read(displaced, SNAPSHOT_FILE_BYTES_MAX)?;
        let changes_mode = (file.old).is_some_and(|old| old.executable != edit.executable);
        let mut had_conflict = false;
        for _ in 0..MERGE_TRIES_MAX {
            let Found::Version(Some(current)) = self.version_on_disk(&target, file.new) else {
                break;
            };
            let theirs = fs::read(&target, SNAPSHOT_FILE_BYTES_MAX)?;
            let merged = merge_texts(&base, &ours, &theirs);
            had_conflict |= merged.had_conflict;
            let executable = if changes_mode {
                edit.executable
            } else {
                current.executable
            };
            if merged.content == theirs && executable == current.executable {
                break;
            }
            let side = displaced.with_extension("merged");
            let out = put_merged(&side, &target, &merged.content, executable)?;
            // What came out should be what we merged with. Else it is one
            // more edit, made on that.
            match out {
                Some(out) if out != theirs => (base, ours) = (theirs, out),
                _ => break,
            }
        }
        Ok(had_conflict)
    }

    /// Looks for files that were saved over the new version but made on the
    /// old one.
    pub(super) fn settle_stale_saves(
        &self,
        record: &Record,
        folders: &RunFolders,
    ) -> Result<Vec<LateEdit>, StoreError> {
        let repository = self.repository();
        let changed: BTreeSet<&TreePath> = (record.files.iter())
            .filter(|file| file.old.is_some() && file.new.is_some())
            .map(|file| &file.path)
            .collect();
        let paths: Vec<&TreePath> = changed.into_iter().collect();
        let main = self.versions_at(&repository, self.head()?, &paths)?;
        let mut late_edits = Vec::new();
        for (number, file) in record.files.iter().enumerate() {
            let (Some(old), Some(new)) = (file.old, file.new) else {
                continue;
            };
            // What a person has committed is what they want.
            if main.get(&file.path) != Some(&new) || !self.has_plain_parents(&file.path) {
                continue;
            }
            let target = self.work_path(&file.path);
            let Found::Version(Some(found)) = self.version_on_disk(&target, Some(new)) else {
                continue;
            };
            if found.id == old.id || found.id == new.id {
                continue;
            }
            let side = folders
                .displaced
                .join(number.to_string())
                .with_extension("merged");
            if let Some(had_conflict) = self.settle_stale_save(&target, &side, old, new)? {
                point("recover.stale_save_merged");
                late_edits.push(LateEdit {
                    path: file.path.clone(),
                    base: file.old,
                    had_conflict,
                });
            }
        }
        Ok(late_edits)
    }

    /// `None`: it is no such save, or the merge changes nothing.
    fn settle_stale_save(
        &self,
        target: &Path,
        side: &Path,
        old: Blob,
        new: Blob,
    ) -> Result<Option<bool>, StoreError> {
        let (base, theirs) = (self.blob(old.id)?, self.blob(new.id)?);
        let ours = fs::read(target, SNAPSHOT_FILE_BYTES_MAX)?;
        if !is_made_on_old(&base, &theirs, &ours) {
            return Ok(None);
        }
        let merged = merge_texts(&base, &ours, &theirs);
        if merged.content == ours {
            return Ok(None);
        }
        let executable = self.has_executable_bit && fs::is_executable(target);
        match put_merged(side, target, &merged.content, executable)? {
            // Saved once more in this moment: that one is looked at next time.
            Some(out) if out != ours => {
                put_merged(side, target, &out, executable)?;
                Ok(None)
            }
            _ => Ok(Some(merged.had_conflict)),
        }
    }

    fn content_of(&self, version: Option<Blob>) -> Result<Vec<u8>, StoreError> {
        version.map_or(Ok(Vec::new()), |version| self.blob(version.id))
    }
}

/// Puts `content` in place, flushed; gives what it took the place of, where
/// that can be told. Nothing is put where nothing lies any more.
fn put_merged(
    side: &Path,
    target: &Path,
    content: &[u8],
    executable: bool,
) -> Result<Option<Vec<u8>>, StoreError> {
    fs::remove(side)?;
    fs::write_unflushed(side, content, executable)?;
    swap::flush_file(side)?;
    let out = match swap::exchange(side, target)? {
        Exchange::Done => Some(fs::read(side, SNAPSHOT_FILE_BYTES_MAX)?),
        Exchange::Missing => None,
        Exchange::Unsupported => {
            swap::move_over(side, target)?;
            None
        }
    };
    fs::flush_folder_of(target)?;
    fs::remove(side)?;
    Ok(out)
}

/// Whether `edit` shows no trace of what was done from `old` to `new`: no
/// line that was added, and at least half of those that were removed. (Half,
/// because the person may have changed the others.)
pub(super) fn is_made_on_old(old: &[u8], new: &[u8], edit: &[u8]) -> bool {
    let lines = |text: &'_ [u8]| -> BTreeSet<Vec<u8>> {
        let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let lines = lines.filter(|line| !line.is_empty());
        lines.map(<[u8]>::to_owned).collect()
    };
    let (old, new, edit) = (lines(old), lines(new), lines(edit));
    let added = new.difference(&old).count();
    let removed: Vec<&Vec<u8>> = old.difference(&new).collect();
    let brought_back = removed.iter().filter(|line| edit.contains(**line)).count();
    let has_added = new.difference(&old).any(|line| edit.contains(line));
    (0 < added || !removed.is_empty()) && !has_added && removed.len() <= 2 * brought_back
}

#[cfg(test)]
mod tests {
    use super::is_made_on_old;

    #[test]
    fn an_edit_without_a_trace_of_the_new_version_was_made_on_the_old() {
        for (old, new, edit, expected) in [
            ("a\nb\n", "A\nb\n", "a\nB\n", true),
            ("a\nb\n", "a\nb\nc\n", "a\nB\n", true),
            ("a\nb\nc\n", "b\n", "a\nb\nc\nd\n", true),
            // Made on the new version.
            ("a\nb\n", "A\nb\n", "A\nB\n", false),
            ("a\nb\n", "A\nb\n", "reworded\nb\n", false),
            ("a\nb\nc\n", "b\n", "b\nd\n", false),
            ("a\n", " a \n\n", "b\n", false),
        ] {
            let found = is_made_on_old(old.as_bytes(), new.as_bytes(), edit.as_bytes());
            assert_eq!(found, expected, "{old:?} {new:?} {edit:?}");
        }
    }
}
