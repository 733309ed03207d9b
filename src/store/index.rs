//! The index: Git's list of what is staged, with the stat data that lets
//! everybody skip unchanged files.
//!
//! # Locking
//!
//! Under `.git/index.lock`, so that the person's `git` waits or refuses.
//!
//! # Crash safety
//!
//! The new index is written aside and renamed. An old one only costs a
//! `git status` that says too much until recovery has written it again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, ByteSlice as _};
use gix::index::entry::{Flags, Mode, Stage, Stat};

use crate::domain::limits::SNAPSHOT_FILE_BYTES_MAX;
use crate::domain::path::TreePath;
use crate::store::error::StoreError;
use crate::store::locks::GitLock;
use crate::store::{Blob, Store, gix_id, id_of};
use crate::sys::fs;
use crate::sys::stop::point;
use crate::sys::swap;

/// Largest index that is looked at to tell a damaged one from a closed one,
/// in bytes.
const INDEX_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// What a damaged index is kept as, in `.git`.
const DAMAGED: &str = "index.memrev-damaged";

/// Files that are not in the work tree because the person said so.
pub(super) const ABSENT: Flags = Flags::SKIP_WORKTREE.union(Flags::ASSUME_VALID);

/// Paths and folders that a sparse checkout leaves out, or whose changes
/// Git was told to overlook: missing, they are not deleted.
#[derive(Debug, Default)]
pub(super) struct Absent {
    paths: BTreeSet<String>,
    /// With a slash at the end.
    folders: Vec<String>,
    /// There is a sparse checkout, but no index that says of what.
    unknown: bool,
}

impl Absent {
    pub(super) fn read(store: &Store, index: Option<&gix::index::File>) -> Self {
        match index {
            Some(index) => Self::of(index),
            None => Self {
                unknown: store.has_sparse_checkout(),
                ..Self::default()
            },
        }
    }

    fn of(index: &gix::index::File) -> Self {
        let mut absent = Self::default();
        for entry in index.entries() {
            let Ok(path) = entry.path(index).to_str() else {
                continue;
            };
            if entry.mode.is_sparse() {
                absent.folders.push(path.to_owned());
            } else if entry.flags.intersects(ABSENT) {
                absent.paths.insert(path.to_owned());
            }
        }
        absent
    }

    pub(super) fn contains(&self, path: &TreePath) -> bool {
        let path = path.as_str();
        let is_below = |folder: &String| path.starts_with(folder.as_str());
        self.unknown || self.paths.contains(path) || self.folders.iter().any(is_below)
    }
}

/// Reads the index from disk; `None` when there is none yet, and when it is
/// damaged: it is a cache, and `update_index` makes it anew.
pub(super) fn read(store: &Store) -> Result<Option<gix::index::File>, StoreError> {
    let path = store.git_dir().join("index");
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let options = gix::index::decode::Options::default();
    match gix::index::File::at(&path, gix::hash::Kind::Sha1, false, options) {
        Ok(index) => Ok(Some(index)),
        Err(error) => match fs::read(&path, INDEX_BYTES_MAX) {
            Ok(_) => Ok(None),
            // It may be whole, only closed to us.
            Err(_) => Err(store.while_trying_to("read the index")(error)),
        },
    }
}

/// The exec bit of a plain file's entry; `None` for links and the like.
pub(super) fn executable(mode: Mode) -> Option<bool> {
    match mode {
        Mode::FILE => Some(false),
        Mode::FILE_EXECUTABLE => Some(true),
        _ => None,
    }
}

/// Stat data of a path, as the index holds it.
pub(super) fn stat(path: &Path) -> Option<(gix::index::fs::Metadata, Stat)> {
    let metadata = gix::index::fs::Metadata::from_path_no_follow(path).ok()?;
    let stat = Stat::from_fs(&metadata).ok()?;
    Some((metadata, stat))
}

/// Nanoseconds count: only equal times mean an unchanged file.
pub(super) const EXACT: gix::index::entry::stat::Options = gix::index::entry::stat::Options {
    trust_ctime: true,
    check_stat: true,
    use_nsec: true,
    use_stdev: false,
};

impl Store {
    /// Brings some paths of the index to a commit's versions. All else that a
    /// person has staged stays as it is.
    pub(super) fn update_index<'a>(
        &self,
        repository: &gix::Repository,
        files: impl Iterator<Item = (&'a TreePath, Option<Blob>)>,
    ) -> Result<(), StoreError> {
        let lock = GitLock::take(&self.git_dir(), "index", None)?;
        point("index.locked");
        let mut index = if let Some(mut index) = read(self)? {
            self.mark_racy(&mut index);
            index
        } else {
            self.set_index_aside()?;
            self.index_of(repository)?
        };
        self.expand(repository, &mut index)?;
        // Main may not be at the commit yet.
        self.set_entries(&mut index, &files.collect());
        index.sort_entries();
        // Both describe the entries of before.
        index.remove_tree();
        index.remove_resolve_undo();
        self.write_index(&index)?;
        point("index.written");
        drop(lock);
        Ok(())
    }

    /// Where a damaged index is kept.
    pub(super) fn damaged_index(&self) -> PathBuf {
        self.git_dir().join(DAMAGED)
    }

    /// Makes a damaged index anew; gives where the old one is kept.
    pub(super) fn mend_index(
        &self,
        repository: &gix::Repository,
    ) -> Result<Option<PathBuf>, StoreError> {
        let is_damaged = fs::is_taken(&self.git_dir().join("index")) && read(self)?.is_none();
        let is_ours = || repository.state().is_none() && self.assert_on_main(repository).is_ok();
        if !is_damaged || !is_ours() {
            return Ok(None);
        }
        self.update_index(repository, std::iter::empty())?;
        Ok(Some(self.damaged_index()))
    }

    /// Keeps the bytes of a damaged index, the first time.
    fn set_index_aside(&self) -> Result<(), StoreError> {
        let index = self.git_dir().join("index");
        if fs::is_taken(&index) {
            swap::link_new(&index, &self.git_dir().join(DAMAGED))?;
        }
        Ok(())
    }

    /// Whether a sparse checkout has ever been set up here.
    fn has_sparse_checkout(&self) -> bool {
        fs::is_taken(&self.git_dir().join("info").join("sparse-checkout"))
    }

    /// A fresh index of main's tree. With a sparse checkout what is missing
    /// counts as left out.
    fn index_of(&self, repository: &gix::Repository) -> Result<gix::index::File, StoreError> {
        let tree = self.tree_of(repository, self.head()?)?;
        let index = repository.index_from_tree(&tree);
        let mut index = index.map_err(self.while_trying_to("make an index"))?;
        let is_sparse = self.has_sparse_checkout();
        let found: Vec<Option<(Stat, Flags)>> = (index.entries().iter())
            .map(|entry| {
                let path = TreePath::parse(entry.path(&index).to_str().ok()?)?;
                if is_sparse && !fs::is_taken(&self.work_path(&path)) {
                    return Some((Stat::default(), Flags::SKIP_WORKTREE | Flags::EXTENDED));
                }
                let executable = executable(entry.mode)?;
                let id = id_of(&entry.id);
                let stat = self.verified_stat(&path, Blob { id, executable })?;
                Some((stat, Flags::empty()))
            })
            .collect();
        for (entry, found) in index.entries_mut().iter_mut().zip(found) {
            let (stat, flags) = found.unwrap_or((Stat::default(), Flags::empty()));
            entry.stat = stat;
            entry.flags |= flags;
        }
        Ok(index)
    }

    /// Replaces entries that stand for a whole folder (of a sparse checkout
    /// with a sparse index) by those of its files in main.
    fn expand(
        &self,
        repository: &gix::Repository,
        index: &mut gix::index::File,
    ) -> Result<(), StoreError> {
        let folders = Absent::of(index).folders;
        if folders.is_empty() {
            return Ok(());
        }
        let whole = self.index_of(repository)?;
        index.remove_entries(|_, _, entry| entry.mode.is_sparse());
        for entry in whole.entries() {
            let path = entry.path(&whole);
            if folders
                .iter()
                .any(|folder| path.starts_with(folder.as_bytes()))
            {
                let flags = Flags::SKIP_WORKTREE | Flags::EXTENDED;
                index.dangerously_push_entry(entry.stat, entry.id, flags, entry.mode, path);
            }
        }
        index.sort_entries();
        Ok(())
    }

    fn set_entries(&self, index: &mut gix::index::File, files: &BTreeMap<&TreePath, Option<Blob>>) {
        let by_name: BTreeMap<&str, Option<Blob>> = (files.iter())
            .map(|(path, blob)| (path.as_str(), *blob))
            .collect();
        let is_added = |path: &str| by_name.get(path).is_some_and(Option::is_some);
        // A file makes way for a folder of its name, and the other way round.
        let added = by_name.keys().filter(|path| is_added(path));
        let folders: BTreeSet<&str> = added.flat_map(|path| above(path)).collect();
        index.remove_entries(|_, found, entry| {
            let Ok(found) = found.to_str() else {
                return false;
            };
            let is_stale = match by_name.get(found) {
                Some(blob) => blob.is_none() || entry.stage() != Stage::Unconflicted,
                None => false,
            };
            is_stale || folders.contains(found) || above(found).any(is_added)
        });
        let mut new = Vec::new();
        for (path, blob) in files {
            let Some(blob) = blob else { continue };
            let stat = self.verified_stat(path, *blob).unwrap_or_default();
            let kept = if fs::is_taken(&self.work_path(path)) {
                Flags::empty()
            } else {
                ABSENT | Flags::EXTENDED
            };
            let mode = if blob.executable {
                Mode::FILE_EXECUTABLE
            } else {
                Mode::FILE
            };
            let name: &BStr = path.as_str().into();
            match index.entry_mut_by_path_and_stage(name, Stage::Unconflicted) {
                Some(entry) => {
                    entry.stat = stat;
                    entry.id = gix_id(blob.id);
                    entry.mode = mode;
                    entry.flags &= kept;
                }
                None => new.push((stat, gix_id(blob.id), mode, name)),
            }
        }
        for (stat, id, mode, name) in new {
            index.dangerously_push_entry(stat, id, Flags::empty(), mode, name);
        }
    }

    /// The racy-clean rule of Git: an entry whose file changed in the second
    /// of the index's own writing, or later, proves nothing by its stat data.
    /// Writing the index again would make it look proven, so such entries are
    /// compared with their file now and told apart by a size of 0, which
    /// makes every reader compare content. Whole seconds, because `git` as
    /// usually built compares no finer.
    fn mark_racy(&self, index: &mut gix::index::File) {
        let timestamp = index.timestamp();
        let options = gix::index::entry::stat::Options::default();
        let racy: Vec<(usize, Option<Stat>)> = (index.entries().iter().enumerate())
            .filter(|(_, entry)| entry.stat.is_racy(timestamp, options))
            .map(|(at, entry)| {
                let path = entry.path(index).to_str().ok().and_then(TreePath::parse);
                let verified = path
                    .zip(executable(entry.mode))
                    .and_then(|(path, executable)| {
                        let id = id_of(&entry.id);
                        self.verified_stat(&path, Blob { id, executable })
                    });
                (at, verified)
            })
            .collect();
        let entries = index.entries_mut();
        for (at, verified) in racy {
            match verified {
                Some(stat) => entries[at].stat = stat,
                None => entries[at].stat.size = 0,
            }
        }
    }

    /// The stat data of a file that has exactly this content, read between
    /// two equal looks at them.
    pub(super) fn verified_stat(&self, path: &TreePath, blob: Blob) -> Option<Stat> {
        let file = self.work_path(path);
        let (metadata, before) = stat(&file)?;
        if !metadata.is_file() || SNAPSHOT_FILE_BYTES_MAX < metadata.len() {
            return None;
        }
        let executable = self.executable_on_disk(&metadata, Some(blob));
        let content = self.read_work_tree(path).ok()??;
        let (_, after) = stat(&file)?;
        let is_same = Self::blob_id(&content) == blob.id && executable == blob.executable;
        (is_same && after.matches(&before, EXACT)).then_some(after)
    }

    fn write_index(&self, index: &gix::index::File) -> Result<(), StoreError> {
        let side = self.private_dir().join("index.new");
        let failed = self.while_trying_to("write the index");
        let mut bytes = Vec::with_capacity(index.entries().len() * 128);
        let options = gix::index::write::Options::default();
        index.write_to(&mut bytes, options).map_err(failed)?;
        fs::remove(&side)?;
        fs::write_unflushed(&side, &bytes, false)?;
        point("index.prepared");
        swap::move_over(&side, &self.git_dir().join("index"))?;
        Ok(())
    }
}

/// The folders above a path, nearest first.
pub(super) fn above(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(path.rsplit_once('/'), |(above, _)| above.rsplit_once('/'))
        .map(|(above, _)| above)
}
