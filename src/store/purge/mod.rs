//! Taking text out of a repository for good: a rewritten one takes its place.
//!
//! The new repository is built in `<home>/<folder>.purge/` beside the memory
//! folder, proven by looking into every object of it, and changes places with
//! the old one in one instant. The caller has taken the text out of main and
//! the work tree before, by a commit; main's tree is the same in both, but for ids
//! in copies of what is withheld.
//!
//! # What is carried over
//!
//! Everything that a ref or an entry of the stash reaches; refs with their
//! names; `config`, `info/`, `hooks/`, what recoveries set aside. Ids in
//! messages and in files of what is withheld become those of the new objects. Reflogs
//! but the stash's go, and with them what only they reach.
//!
//! # Crash safety
//!
//! Until the swap the old repository is in place and whole. `pending` in the
//! side folder says that a purge was begun; it goes last, so that `status` can
//! say that the purge has to be repeated. Repeating begins anew.
//!
//! # Limits
//!
//! The new objects are written in packs of at most
//! [`PACK_CONTENT_BYTES`](crate::store::pack::PACK_CONTENT_BYTES);
//! the ids of all objects are in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::domain::id::ObjectId;
use crate::domain::path::{FileKind, TreePath};
use crate::store::error::StoreError;
use crate::store::{Blob, Store, StoreLock, StorePaths, gix_id, id_of};
use crate::sys::fs::{self, EntryType};
use crate::sys::lock::FileLock;
use crate::sys::stop::point;
use crate::sys::swap::{self, Exchange};

mod refs;
mod rewrite;

/// A larger file of `.git` that is no object is not carried over, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Where the swap puts the old repository when it takes two renames.
const OLD: &str = "old.git";

const PENDING: &str = "pending";

/// Old and new ids of changed blobs, a line each, from before the swap on:
/// copies of what is withheld name versions by them.
const IDS: &str = "ids";

/// What becomes of texts, files and messages. Functions of the caller, because
/// this module knows no text.
pub(crate) struct Scrub<'a> {
    /// `None` when there is nothing to take out.
    pub(crate) bytes: &'a dyn Fn(&[u8]) -> Option<Vec<u8>>,
    /// Changed text files of a commit, `None` for those that go.
    pub(crate) files: Option<FilesScrub<'a>>,
    /// Whether a line of a message goes; asked after all trees.
    pub(crate) drops_line: &'a dyn Fn(&str) -> bool,
}

type FilesScrub<'a> = &'a dyn Fn(&BTreeMap<TreePath, String>) -> BTreeMap<TreePath, Option<String>>;

/// What a rewrite did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rewritten {
    pub(crate) commits: usize,
    pub(crate) files: usize,
    /// Old and new ids of blobs that changed.
    pub(crate) blobs: BTreeMap<ObjectId, ObjectId>,
    /// Commits that only a reflog had.
    pub(crate) only_in_reflog: usize,
}

/// Where a repository holds something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sighting {
    pub(crate) files: usize,
    pub(crate) trees: usize,
    pub(crate) messages: usize,
    /// Other files of `.git`: refs, logs, the index, hooks.
    pub(crate) others: Vec<PathBuf>,
}

impl Sighting {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Why the repository cannot be replaced by another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Attached {
    /// A work tree of `git worktree add`, by its folder.
    Worktree(PathBuf),
    /// Objects are borrowed from elsewhere.
    Alternates(PathBuf),
    Submodules(PathBuf),
}

impl Store {
    /// The folder beside the memory folder that a purge works in.
    pub(crate) fn purge_folder(paths: &StorePaths) -> PathBuf {
        paths.lock_file.with_extension("purge")
    }

    /// Whether a purge was begun here and not finished.
    pub(crate) fn has_unfinished_purge(paths: &StorePaths) -> bool {
        fs::is_taken(&Self::purge_folder(paths).join(PENDING))
    }

    /// What keeps the repository from being replaced, sorted.
    ///
    /// # Errors
    ///
    /// When a folder cannot be listed.
    pub(crate) fn attached(&self) -> Result<Vec<Attached>, StoreError> {
        let git_dir = self.git_dir();
        let mut attached = Vec::new();
        for entry in fs::list(&git_dir.join("worktrees"))? {
            let named = fs::read_text_if_any(&entry.path.join("gitdir"), 64 * 1024)?;
            let folder = named.map(|text| PathBuf::from(text.trim()));
            let folder = folder.and_then(|file| file.parent().map(Path::to_owned));
            attached.push(Attached::Worktree(folder.unwrap_or(entry.path)));
        }
        for name in ["alternates", "http-alternates"] {
            let file = git_dir.join("objects").join("info").join(name);
            let text = fs::read_text_if_any(&file, 64 * 1024)?.unwrap_or_default();
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            attached.extend(lines.map(|line| Attached::Alternates(PathBuf::from(line))));
        }
        for entry in fs::list(&git_dir.join("modules"))? {
            attached.push(Attached::Submodules(entry.path));
        }
        attached.sort();
        Ok(attached)
    }

    /// Says that a purge is under way, until [`Store::end_purge`]. Throws away
    /// what an earlier one left; gives the new ids of blobs that it changed.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub(crate) fn begin_purge(
        &self,
        lock: &StoreLock,
        words: &str,
    ) -> Result<BTreeMap<ObjectId, ObjectId>, StoreError> {
        self.assert_locked(lock);
        let folder = Self::purge_folder(&self.paths);
        fs::make_folders(&folder)?;
        fs::replace(&folder.join(PENDING), words.as_bytes())?;
        point("purge.begun");
        let mut ids = self.changed_ids()?;
        // Of one that was stopped before its swap there is no such object.
        let repository = self.repository();
        ids.retain(|_, new| repository.has_object(gix_id(*new)));
        self.rename_withheld(&ids)?;
        for left in [".git", OLD] {
            fs::remove_all(&folder.join(left))?;
        }
        point("purge.earlier_removed");
        Ok(ids)
    }

    fn changed_ids(&self) -> Result<BTreeMap<ObjectId, ObjectId>, StoreError> {
        let file = Self::purge_folder(&self.paths).join(IDS);
        let text = fs::read_text_if_any(&file, u64::MAX)?.unwrap_or_default();
        let pair = |line: &str| {
            let (old, new) = line.split_once(' ')?;
            Some((ObjectId::parse(old)?, ObjectId::parse(new)?))
        };
        Ok(text.lines().filter_map(pair).collect())
    }

    /// Copies in the work tree of what is withheld, as the head has them.
    fn rename_withheld(&self, ids: &BTreeMap<ObjectId, ObjectId>) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        let head = self.snapshot(self.head()?)?;
        for (path, blob) in &head.files {
            if path.kind() != FileKind::Withheld {
                continue;
            }
            let stale = self
                .read_work_tree(path)?
                .map(|bytes| Self::blob_id(&bytes));
            if stale.and_then(|id| ids.get(&id)) == Some(&blob.id) {
                fs::reword(&self.work_path(path), &self.blob(blob.id)?)?;
                point("purge.withheld_renamed");
            }
        }
        Ok(())
    }

    /// The purge is done and proven.
    ///
    /// # Errors
    ///
    /// When its folder cannot be removed.
    pub(crate) fn end_purge(&self, lock: &StoreLock) -> Result<(), StoreError> {
        self.assert_locked(lock);
        fs::remove_all(&Self::purge_folder(&self.paths))?;
        point("purge.ended");
        Ok(())
    }

    /// Where the repository holds what `is_hit` finds, unreachable objects and
    /// packs included.
    ///
    /// # Errors
    ///
    /// When an object or file cannot be read.
    pub(crate) fn sightings(&self, is_hit: &dyn Fn(&[u8]) -> bool) -> Result<Sighting, StoreError> {
        let repository = self.repository();
        let mut sighting = Sighting::default();
        let attempt = "list all objects";
        let all = repository.objects.iter();
        for id in all.map_err(self.while_trying_to(attempt))? {
            let id = id.map_err(self.while_trying_to(attempt))?;
            let object = self.find(&repository, id)?;
            if is_hit(&object.data) {
                match object.kind {
                    gix::objs::Kind::Blob => sighting.files += 1,
                    gix::objs::Kind::Tree => sighting.trees += 1,
                    gix::objs::Kind::Commit | gix::objs::Kind::Tag => sighting.messages += 1,
                }
            }
        }
        let git_dir = self.git_dir();
        for file in plain_files(&git_dir, &["objects"])? {
            let name = file.strip_prefix(&git_dir).unwrap_or(&file).to_owned();
            let is_named = is_hit(name.as_os_str().as_encoded_bytes());
            if is_named || is_hit(&fs::read(&file, u64::MAX)?) {
                sighting.others.push(name);
            }
        }
        Ok(sighting)
    }

    /// Builds the rewritten repository in the side folder, proven: nothing in
    /// it is found by `is_hit`, and none of `gone` is there.
    ///
    /// # Errors
    ///
    /// When something cannot be read or written, or the proof fails. The old
    /// repository is as it was.
    pub(crate) fn rebuild_without(
        &self,
        lock: &StoreLock,
        scrub: &Scrub<'_>,
        is_hit: &dyn Fn(&[u8]) -> bool,
        gone: &dyn Fn() -> Vec<ObjectId>,
    ) -> Result<Rewritten, StoreError> {
        self.assert_locked(lock);
        let folder = Self::purge_folder(&self.paths);
        let git_dir = folder.join(".git");
        fs::remove_all(&git_dir)?;
        self.carry_over(&git_dir, scrub)?;
        point("purge.carried_over");
        let new = Self::open(StorePaths {
            folder: folder.clone(),
            lock_file: self.paths.lock_file.clone(),
        })?;
        let rewritten = rewrite::rewrite(self, &new, scrub)?;
        point("purge.rewritten");
        swap::flush_file_system(&folder)?;
        drop(new);
        let new = Self::open(StorePaths {
            folder,
            lock_file: self.paths.lock_file.clone(),
        })?;
        let sighting = new.sightings(is_hit)?;
        let repository = new.repository();
        let is_left = gone()
            .into_iter()
            .any(|id| repository.has_object(gix_id(id)));
        if !sighting.is_empty() || is_left {
            return Err(self.damaged("the rewritten repository still has the text"));
        }
        let (old, new) = (self.snapshot(self.head()?)?, new.snapshot(new.head()?)?);
        let is_same = |(path, blob): (&TreePath, &Blob)| {
            let found = new.files.get(path);
            let renamed = rewritten
                .blobs
                .get(&blob.id)
                .filter(|_| path.kind() == FileKind::Withheld);
            let renamed = renamed.map(|id| Blob { id: *id, ..*blob });
            found == Some(blob) || (found.is_some() && found == renamed.as_ref())
        };
        if old.files.len() != new.files.len() || !old.files.iter().all(is_same) {
            return Err(self.damaged("the rewritten repository has another tree"));
        }
        // Those of an earlier purge that was stopped count until the end.
        let mut ids = self.changed_ids()?;
        ids.extend(rewritten.blobs.clone());
        let ids = ids.iter().map(|(old, new)| format!("{old} {new}\n"));
        let ids = ids.collect::<String>();
        fs::replace(&Self::purge_folder(&self.paths).join(IDS), ids.as_bytes())?;
        point("purge.proven");
        Ok(rewritten)
    }

    /// Puts the rewritten repository in the place of the old one, and removes
    /// the old one. Gives the store of the new one.
    ///
    /// # Errors
    ///
    /// When the swap cannot be made; the old one is in place then.
    pub(crate) fn swap_rewritten(&self, lock: &StoreLock) -> Result<Self, StoreError> {
        self.assert_locked(lock);
        let folder = Self::purge_folder(&self.paths);
        let (old, new) = (self.git_dir(), folder.join(".git"));
        match swap::exchange(&new, &old)? {
            Exchange::Done => {}
            Exchange::Missing => return Err(self.damaged("there is no rewritten repository")),
            // See `return_interrupted` for a stop between the two.
            Exchange::Unsupported => {
                swap::move_new_folder(&old, &folder.join(OLD))?;
                point("purge.old_moved_away");
                swap::move_new_folder(&new, &old)?;
            }
        }
        fs::flush_folder(self.folder())?;
        fs::flush_folder(&folder)?;
        point("purge.swapped");
        let store = Self::open(self.paths.clone())?;
        store.rename_withheld(&store.changed_ids()?)?;
        store.update_index(&store.repository(), std::iter::empty())?;
        point("purge.index_made");
        for left in [".git", OLD] {
            fs::remove_all(&folder.join(left))?;
        }
        fs::flush_folder(&folder)?;
        point("purge.old_removed");
        Ok(store)
    }

    /// A stop between the two renames of a swap left no repository at all: the
    /// old one goes back. Nobody else can be at it while its lock is free.
    pub(super) fn return_interrupted(paths: &StorePaths) -> Result<(), StoreError> {
        let old = Self::purge_folder(paths).join(OLD);
        if !fs::is_taken(&old) || fs::is_taken(&paths.folder.join(".git")) {
            return Ok(());
        }
        let _lock = FileLock::acquire(&paths.lock_file, std::time::Duration::ZERO)?;
        Ok(swap::move_new_folder(&old, &paths.folder.join(".git"))?)
    }

    /// After a swap the index may be missing: main's tree is what it has.
    pub(super) fn make_missing_index(&self) -> Result<(), StoreError> {
        let is_missing = !fs::is_taken(&self.git_dir().join("index"));
        if is_missing && Self::has_unfinished_purge(&self.paths) {
            self.update_index(&self.repository(), std::iter::empty())?;
        }
        Ok(())
    }

    /// The files of `.git` that a person or we put there, without the text.
    fn carry_over(&self, git_dir: &Path, scrub: &Scrub<'_>) -> Result<(), StoreError> {
        let old = self.git_dir();
        for folder in [
            "objects/pack",
            "objects/info",
            "refs/heads",
            "refs/tags",
            "info",
            "hooks",
        ] {
            fs::make_folders(&git_dir.join(folder))?;
        }
        fs::make_private(git_dir)?;
        let mut files = Vec::new();
        for name in ["HEAD", "config", "description", "memrev-format"] {
            files.push(old.join(name));
        }
        for folder in ["info", "hooks", "memrev/set-aside"] {
            files.extend(plain_files(&old.join(folder), &[])?);
        }
        for file in files {
            if !fs::is_taken(&file) {
                continue;
            }
            let relative = file.strip_prefix(&old).unwrap_or(&file);
            let name = relative.as_os_str().as_encoded_bytes();
            let name = (scrub.bytes)(name).map_or(relative.to_owned(), |name| {
                PathBuf::from(String::from_utf8_lossy(&name).into_owned())
            });
            let target = git_dir.join(name);
            if let Some(folder) = target.parent() {
                fs::make_folders(folder)?;
            }
            let bytes = fs::read(&file, FILE_BYTES_MAX)?;
            let bytes = (scrub.bytes)(&bytes).unwrap_or(bytes);
            fs::write_unflushed(&target, &bytes, fs::is_executable(&file))?;
        }
        Ok(())
    }
}

/// Every file below a folder, sorted, but those in the folders named.
fn plain_files(folder: &Path, without: &[&str]) -> Result<Vec<PathBuf>, StoreError> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::list(&next)? {
            let is_left_out = without.iter().any(|name| entry.path == folder.join(name));
            match entry.kind {
                EntryType::Folder if !is_left_out => folders.push(entry.path),
                EntryType::File => files.push(entry.path),
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The ids that a text names, each with its place.
pub(super) fn ids_in(bytes: &[u8]) -> Vec<(usize, ObjectId)> {
    const HEX: usize = 40;
    let mut found = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let run = (bytes[start..].iter()).take_while(|byte| byte.is_ascii_hexdigit());
        let length = run.count();
        if length == HEX
            && let Ok(text) = std::str::from_utf8(&bytes[start..start + HEX])
        {
            found.extend(ObjectId::parse(text).map(|id| (start, id)));
        }
        start += length.max(1);
    }
    found
}

/// `bytes` with the ids that have a new one.
fn with_new_ids(bytes: &[u8], new_of: impl Fn(ObjectId) -> Option<ObjectId>) -> Option<Vec<u8>> {
    let mut out = None;
    for (at, id) in ids_in(bytes) {
        if let Some(new) = new_of(id).filter(|new| *new != id) {
            let text = out.get_or_insert_with(|| bytes.to_vec());
            text[at..at + 40].copy_from_slice(new.to_string().as_bytes());
        }
    }
    out
}

fn id(id: &gix::oid) -> ObjectId {
    id_of(id)
}
