//! Loose objects into packs, once there are too many of them.
//!
//! We write packs ourselves; loose objects come from a person's `git`. A
//! loose object costs an inode and slows every look for an object down.
//!
//! # Crash safety
//!
//! A loose object goes only after the pack that holds it is flushed and in
//! place. Being killed in here leaves an object twice.
//!
//! # Locking
//!
//! Under the store's lock, and under the lock by which `git gc` keeps others
//! away; while a `git gc` runs, nothing is done. Whether one runs is told by
//! its process, not by the age of its file.
//!
//! # Not in here
//!
//! Nothing is pruned: what no ref, log, index or work tree reaches stays
//! loose, where Git's own time limits count for it.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use gix::objs::Kind;
use gix::objs::tree::EntryKind;

use crate::domain::id::ObjectId;
use crate::store::error::StoreError;
use crate::store::locks::GitLock;
use crate::store::pack::{Objects, PACK_CONTENT_BYTES};
use crate::store::{Store, StoreLock, gix_id, id_of, index};
use crate::sys::fs::{self, EntryType};
use crate::sys::process;
use crate::sys::stop::point;

/// More loose objects than this are packed: Git's own `gc.auto`.
const LOOSE_MAX: usize = 6_700;

/// One of the 256 folders of objects, by which Git guesses their number.
const SAMPLE: &str = "17";

/// How many loose objects were left because nothing reaches them.
const LEFT: &str = "loose-left";

/// Larger logs of refs than this are not read, in bytes.
const LOG_BYTES_MAX: u64 = 256 * 1024 * 1024;

impl Store {
    /// Packs what is reached of the loose objects when there are too many.
    /// Not beside a publication.
    ///
    /// # Errors
    ///
    /// When an object cannot be read or a file not be written or removed.
    pub(crate) fn tidy_loose(&self, lock: &StoreLock) -> Result<(), StoreError> {
        self.tidy_loose_over(lock, LOOSE_MAX, PACK_CONTENT_BYTES)
    }

    pub(super) fn tidy_loose_over(
        &self,
        lock: &StoreLock,
        loose_max: usize,
        pack_bytes_max: usize,
    ) -> Result<(), StoreError> {
        self.assert_locked(lock);
        if !self.has_many_loose(loose_max)? || fs::is_taken(&self.record_file()) {
            return Ok(());
        }
        let loose = self.loose_objects()?;
        let left = fs::read_text_if_any(&self.private_dir().join(LEFT), 64)?;
        let left: usize = left.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        if loose.len() <= left.saturating_add(loose_max) || self.is_collecting()? {
            return Ok(());
        }
        // `git gc` gives up where it finds this lock.
        let _gc = match GitLock::take(&self.git_dir(), "gc.pid", None) {
            Ok(lock) => lock,
            Err(StoreError::GitLocked { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        point("loose.locked");
        let reached = self.reached(&loose)?;
        let mut objects = Objects::new();
        let mut bytes = 0;
        let repository = self.repository();
        for id in &reached {
            let object = match self.find(&repository, gix_id(*id)) {
                Ok(object) => object,
                // Another program packed it meanwhile.
                Err(StoreError::NoObject { .. }) => continue,
                Err(error) => return Err(error),
            };
            bytes += object.data.len();
            objects.insert(gix_id(*id), (object.kind, object.data.clone()));
            if pack_bytes_max < bytes {
                self.pack_loose(&objects)?;
                objects.clear();
                bytes = 0;
            }
        }
        self.pack_loose(&objects)?;
        let left = loose.len() - reached.len();
        fs::replace(&self.private_dir().join(LEFT), left.to_string().as_bytes())?;
        point("loose.tidied");
        Ok(())
    }

    fn pack_loose(&self, objects: &Objects) -> Result<(), StoreError> {
        if objects.is_empty() {
            return Ok(());
        }
        self.write_objects(objects)?;
        point("loose.packed");
        let folder = self.git_dir().join("objects");
        for (number, id) in objects.keys().enumerate() {
            let name = id.to_string();
            fs::remove(&folder.join(&name[..2]).join(&name[2..]))?;
            if number == 0 {
                point("loose.first_removed");
            }
        }
        Ok(())
    }

    /// A guess that looks into one folder of 256, as Git's.
    fn has_many_loose(&self, loose_max: usize) -> Result<bool, StoreError> {
        let sample = fs::list(&self.git_dir().join("objects").join(SAMPLE))?;
        Ok(loose_max.div_ceil(256) < sample.len() || loose_max < 256)
    }

    fn loose_objects(&self) -> Result<BTreeSet<ObjectId>, StoreError> {
        let mut loose = BTreeSet::new();
        for folder in fs::list(&self.git_dir().join("objects"))? {
            let name = name_of(&folder.path);
            let is_fan = name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
            if folder.kind != EntryType::Folder || !is_fan {
                continue;
            }
            let files = fs::list(&folder.path)?.into_iter();
            let ids =
                files.filter_map(|file| ObjectId::parse(&format!("{name}{}", name_of(&file.path))));
            loose.extend(ids);
        }
        Ok(loose)
    }

    /// Whether a `git gc` runs, by the process that it names.
    fn is_collecting(&self) -> Result<bool, StoreError> {
        let text = fs::read_text_if_any(&self.git_dir().join("gc.pid"), 4096)?;
        let pid = text.and_then(|text| text.split_whitespace().next()?.parse().ok());
        Ok(pid.is_some_and(process::may_exist))
    }

    /// Those of `loose` that refs, logs, the index or a work tree reach.
    fn reached(&self, loose: &BTreeSet<ObjectId>) -> Result<BTreeSet<ObjectId>, StoreError> {
        let repository = self.repository();
        let mut seen: HashSet<ObjectId> = HashSet::new();
        let mut next = self.roots()?;
        while let Some(id) = next.pop() {
            if !seen.insert(id) {
                continue;
            }
            let object = match self.find(&repository, gix_id(id)) {
                Ok(object) => object,
                // A log may name what was pruned, a shallow clone lacks parents.
                Err(StoreError::NoObject { .. }) => continue,
                Err(error) => return Err(error),
            };
            let attempt = "read an object";
            match object.kind {
                Kind::Blob => {}
                Kind::Tag => {
                    let tag = gix::objs::TagRef::from_bytes(&object.data, gix::hash::Kind::Sha1);
                    let tag = tag.map_err(self.while_trying_to(attempt))?;
                    next.push(id_of(&tag.target()));
                }
                Kind::Commit => {
                    let commit =
                        gix::objs::CommitRef::from_bytes(&object.data, gix::hash::Kind::Sha1);
                    let commit = commit.map_err(self.while_trying_to(attempt))?;
                    next.push(id_of(&commit.tree()));
                    next.extend(commit.parents().map(|parent| id_of(&parent)));
                }
                Kind::Tree => {
                    let entries =
                        gix::objs::TreeRefIter::from_bytes(&object.data, gix::hash::Kind::Sha1);
                    for entry in entries {
                        let entry = entry.map_err(self.while_trying_to(attempt))?;
                        match entry.mode.kind() {
                            EntryKind::Tree => next.push(id_of(entry.oid)),
                            EntryKind::Commit => {}
                            // Nothing is below a file: it need not be read.
                            _ => drop(seen.insert(id_of(entry.oid))),
                        }
                    }
                }
            }
        }
        Ok(loose
            .intersection(&seen.into_iter().collect())
            .copied()
            .collect())
    }

    /// What Git would keep: every id in refs, logs, heads and indexes.
    fn roots(&self) -> Result<Vec<ObjectId>, StoreError> {
        let mut roots = Vec::new();
        if let Some(index) = index::read(self)? {
            roots.extend(index.entries().iter().map(|entry| id_of(&entry.id)));
        }
        let git_dir = self.git_dir();
        let mut folders = vec![git_dir.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::list(&folder)? {
                let name = name_of(&entry.path);
                let is_top = folder == git_dir;
                let is_other = matches!(name.as_str(), "objects" | "hooks" | "info" | "memrev");
                match entry.kind {
                    EntryType::Folder if !(is_top && is_other) => folders.push(entry.path),
                    // Refs, packed or not, logs, HEAD and its like: text with ids.
                    EntryType::File if name != "index" => {
                        let bytes = fs::read(&entry.path, LOG_BYTES_MAX)?;
                        roots.extend(super::purge::ids_in(&bytes).into_iter().map(|(_, id)| id));
                    }
                    _ => {}
                }
            }
        }
        Ok(roots)
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
