//! The work tree against a commit.
//!
//! # Limits
//!
//! One `lstat` per file, and a read only for those whose stat data the index
//! does not vouch for (Git's own rule, racy entries included).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gix::bstr::{BStr, ByteSlice as _};
use gix::index::entry::{Stage, Stat};

use crate::domain::limits::SNAPSHOT_FILE_BYTES_MAX;
use crate::domain::path::{TreePath, WORKSPACE_DIFF};
use crate::domain::time::Timestamp;
use crate::store::error::StoreError;
use crate::store::index::Absent;
use crate::store::message::ChangeKind;
use crate::store::{
    Blob, Change, Changes, Snapshot, Store, Unfit, UnfitReason, id_of, index, objects,
};
use crate::sys::fs::{self, FsError};

/// Deepest nesting of folders that is looked into.
const DEPTH_MAX: usize = 64;

impl Store {
    /// How the work tree differs from `snapshot`: every file counts, also
    /// hidden and ignored ones, but `.git` and side files of ours.
    ///
    /// # Errors
    ///
    /// When a folder cannot be listed or the index not be read.
    pub(crate) fn changes(&self, snapshot: &Snapshot) -> Result<Changes, StoreError> {
        let index = index::read(self)?;
        let mut walk = Walk {
            store: self,
            snapshot,
            absent: Absent::read(self, index.as_ref()),
            index,
            seen: BTreeSet::new(),
            unseen_below: Vec::new(),
            changes: Changes::default(),
        };
        walk.folder(self.folder(), "", 0)?;
        Ok(walk.finish())
    }

    /// Reads a file of the work tree; `None` when there is no plain file.
    /// No symbolic link on the way is followed.
    ///
    /// # Errors
    ///
    /// When it cannot be read or is larger than a snapshot takes.
    pub(crate) fn read_work_tree(&self, path: &TreePath) -> Result<Option<Vec<u8>>, StoreError> {
        let file = self.work_path(path);
        let is_plain = file.symlink_metadata().is_ok_and(|found| found.is_file());
        if !is_plain || !self.has_plain_parents(path) {
            return Ok(None);
        }
        match fs::read(&file, SNAPSHOT_FILE_BYTES_MAX) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether every folder above `path` is a folder, not a link.
    pub(super) fn has_plain_parents(&self, path: &TreePath) -> bool {
        let above = path
            .as_str()
            .rsplit_once('/')
            .map_or("", |(above, _)| above);
        let mut folder = self.folder().to_owned();
        above
            .split('/')
            .filter(|part| !part.is_empty())
            .all(|part| {
                folder.push(part);
                folder.symlink_metadata().is_ok_and(|found| found.is_dir())
            })
    }

    /// The exec bit on disk; where the file system has none, what is known.
    pub(super) fn executable_on_disk(
        &self,
        metadata: &gix::index::fs::Metadata,
        known: Option<Blob>,
    ) -> bool {
        if self.has_executable_bit {
            metadata.is_executable()
        } else {
            known.is_some_and(|blob| blob.executable)
        }
    }
}

struct Walk<'a> {
    store: &'a Store,
    snapshot: &'a Snapshot,
    index: Option<gix::index::File>,
    /// What is missing here is not deleted.
    absent: Absent,
    seen: BTreeSet<TreePath>,
    /// Folders that could not be looked into: nothing below counts as deleted.
    unseen_below: Vec<String>,
    changes: Changes,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), StoreError> {
        let listed = std::fs::read_dir(folder).map_err(FsError::at("list", folder))?;
        for entry in listed {
            let entry = entry.map_err(FsError::at("list", folder))?;
            let file_name = entry.file_name();
            let name: &BStr = file_name.as_encoded_bytes().into();
            if name == ".git" || is_ours(name, prefix) {
                continue;
            }
            let kind = entry.file_type().map_err(FsError::at("look at", folder))?;
            let shown = || format!("{prefix}{}", objects::escape(name));
            let path =
                (name.to_str().ok()).and_then(|name| TreePath::parse(&format!("{prefix}{name}")));
            let Some(path) = path else {
                self.unfit(shown(), UnfitReason::Name);
                continue;
            };
            if kind.is_dir() {
                self.subfolder(&entry.path(), &path, depth)?;
            } else if kind.is_file() {
                self.file(&entry.path(), path);
            } else {
                let why = if kind.is_symlink() {
                    UnfitReason::Symlink
                } else {
                    UnfitReason::Special
                };
                self.unfit(shown(), why);
                self.skip(path);
            }
        }
        Ok(())
    }

    fn subfolder(
        &mut self,
        folder: &Path,
        path: &TreePath,
        depth: usize,
    ) -> Result<(), StoreError> {
        if folder.join(".git").symlink_metadata().is_ok() {
            self.unfit(path.to_string(), UnfitReason::Repository);
        } else if DEPTH_MAX <= depth {
            self.unfit(path.to_string(), UnfitReason::Name);
        } else {
            return self.folder(folder, &format!("{path}/"), depth + 1);
        }
        self.skip(path.clone());
        Ok(())
    }

    fn file(&mut self, file: &Path, path: TreePath) {
        let Some((metadata, stat)) = index::stat(file) else {
            // Gone since it was listed.
            return;
        };
        let old = self.snapshot.files.get(&path).copied();
        let known = self.vouched(&path, &stat);
        let executable = self.store.executable_on_disk(&metadata, known.or(old));
        let id = match known {
            Some(blob) => blob.id,
            None if SNAPSHOT_FILE_BYTES_MAX < metadata.len() => {
                let bytes = metadata.len();
                self.unfit(path.to_string(), UnfitReason::TooLarge { bytes });
                self.skip(path);
                return;
            }
            None => match fs::read(file, SNAPSHOT_FILE_BYTES_MAX) {
                Ok(content) => Store::blob_id(&content),
                Err(error) if error.is_not_found() => return,
                Err(_) => {
                    self.unfit(path.to_string(), UnfitReason::Unreadable);
                    self.skip(path);
                    return;
                }
            },
        };
        let new = Blob { id, executable };
        if let Some(kind) = ChangeKind::between(old.as_ref(), Some(&new)) {
            self.changes.files.push(Change {
                path: path.clone(),
                kind,
                old,
                new: Some(new),
                modified_at: metadata.modified().and_then(since_epoch),
            });
        }
        self.seen.insert(path);
    }

    /// The version that the index proves to lie at `path`.
    fn vouched(&self, path: &TreePath, stat: &Stat) -> Option<Blob> {
        let index = self.index.as_ref()?;
        let entry = index.entry_by_path_and_stage(path.as_str().into(), Stage::Unconflicted)?;
        let executable = index::executable(entry.mode)?;
        // A size of 0 may be a mark that says: compare content.
        let proves = entry.stat.size != 0
            && entry.stat.matches(stat, index::EXACT)
            && !entry.stat.is_racy(index.timestamp(), index::EXACT);
        let id = id_of(&entry.id);
        proves.then_some(Blob { id, executable })
    }

    fn unfit(&mut self, path: String, why: UnfitReason) {
        self.changes.unfit.push(Unfit { path, why });
    }

    /// What lies at `path` is not content, but not a deletion either.
    fn skip(&mut self, path: TreePath) {
        self.unseen_below.push(format!("{path}/"));
        self.seen.insert(path);
    }

    fn finish(mut self) -> Changes {
        let is_skipped = |path: &TreePath| {
            (self.unseen_below.iter()).any(|folder| path.as_str().starts_with(folder.as_str()))
        };
        let files: &BTreeMap<TreePath, Blob> = &self.snapshot.files;
        let gone = files
            .iter()
            .filter(|(path, _)| !self.seen.contains(*path) && !is_skipped(path))
            .filter(|(path, _)| !self.absent.contains(path));
        let gone = gone.map(|(path, blob)| Change {
            path: path.clone(),
            kind: ChangeKind::Deleted,
            old: Some(*blob),
            new: None,
            modified_at: None,
        });
        self.changes.files.extend(gone);
        self.changes
            .files
            .sort_by(|one, other| one.path.cmp(&other.path));
        self.changes.unfit.sort();
        self.changes
    }
}

/// Side files, what `init` builds, and the diff file another tool may leave.
fn is_ours(name: &BStr, prefix: &str) -> bool {
    let Ok(name) = name.to_str() else {
        return false;
    };
    fs::is_side_file(name) || (prefix.is_empty() && name == WORKSPACE_DIFF)
}

fn since_epoch(time: std::time::SystemTime) -> Option<Timestamp> {
    let duration = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(
        i64::try_from(duration.as_millis()).ok()?,
    ))
}
