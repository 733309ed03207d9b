//! The extractions folder: every recap within retention.
//!
//! `<home>/extractions/<version>/*.md`, one file per session. A recap without
//! a body is the remembered answer "nothing worth keeping".
//!
//! # Locking
//!
//! Writers hold the home's file lock for moments and show it. Readers need
//! none: a file is there whole or not at all.
//!
//! # Crash safety
//!
//! A new file is written and flushed before the thread's other files go. A
//! crash in between leaves two; the newer counts, and the next store or prune
//! removes the other.

mod retention;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use crate::domain::id::ThreadId;
use crate::domain::recap::{Recap, RecapHeader};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::sys::fs::{self, EntryType, FsError};
use crate::sys::lock::FileLock;
use crate::sys::stop;
use crate::text::recap;
use crate::text::recap_name;

pub(crate) use self::retention::{PruneRules, counts_from, overdue};

/// Largest recap file that is read. A recap has a few kilobytes; this leaves
/// room for what a person puts there.
const RECAP_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Names tried for a recap whose own belongs to another session.
const NAMES_MAX: u32 = 9;

/// The recaps of one version.
#[derive(Debug, Clone)]
pub(crate) struct Extractions {
    folder: PathBuf,
}

/// Everything that lies in the folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Loaded {
    /// The newest recap of each thread, no-ops included, by thread id.
    pub(crate) recaps: BTreeMap<ThreadId, StoredRecap>,
    /// Older files of a thread that a crash left.
    pub(crate) superseded: Vec<PathBuf>,
    /// Files that cannot be read or parsed, with the reason in words.
    pub(crate) damaged: Vec<DamagedRecap>,
}

/// A recap and the file it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredRecap {
    pub(crate) path: PathBuf,
    pub(crate) recap: Recap,
}

/// A file that does not hold a recap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DamagedRecap {
    pub(crate) path: PathBuf,
    pub(crate) problem: String,
}

/// What became of a recap that was to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stored {
    /// It lies there now; `replaced` says whether the thread had one with a
    /// body before (reference row 48: only then a no-op is news).
    Written { path: PathBuf, replaced: bool },
    /// The thread's file is as new or newer; nothing was written.
    NotNewer,
}

/// Names, sizes and times of all files, hashed: equal means unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signature([u8; 32]);

/// Why the folder did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecapsError {
    #[error(transparent)]
    Fs(#[from] FsError),
    /// Every name that this recap could have belongs to other sessions.
    #[error("no free file name for the recap of session `{thread_id}` in `{folder}`")]
    NoFreeName {
        thread_id: ThreadId,
        folder: PathBuf,
    },
}

impl Extractions {
    /// Names the folder; touches nothing.
    pub(crate) fn open(home: &Path, version: MemoryVersion) -> Self {
        let folder = home.join("extractions").join(version.label());
        Self { folder }
    }

    /// Reads all recaps; a missing folder has none. Damaged files are listed,
    /// not fatal.
    ///
    /// # Errors
    ///
    /// When the folder cannot be listed.
    pub(crate) fn load_all(&self) -> Result<Loaded, RecapsError> {
        let mut loaded = Loaded::default();
        let (mut files, damaged) = self.read_files(|_| true)?;
        files.sort_by(newest_first);
        for file in files {
            let thread_id = file.recap.header.thread_id.clone();
            match loaded.recaps.entry(thread_id) {
                Entry::Vacant(entry) => {
                    entry.insert(file);
                }
                Entry::Occupied(_) => loaded.superseded.push(file.path),
            }
        }
        loaded.superseded.sort();
        loaded.damaged = damaged;
        Ok(loaded)
    }

    /// A cheap look at the folder for the idle check.
    ///
    /// # Errors
    ///
    /// When the folder cannot be listed.
    pub(crate) fn signature(&self) -> Result<Signature, RecapsError> {
        let mut hasher = blake3::Hasher::new();
        for file in fs::list_files(&self.folder)? {
            let name = file.path.file_name().unwrap_or_default();
            let name = name.as_encoded_bytes();
            hasher.update(&name.len().to_le_bytes());
            hasher.update(name);
            hasher.update(&file.size_bytes.to_le_bytes());
            hasher.update(&file.modified.millis().to_le_bytes());
        }
        Ok(Signature(*hasher.finalize().as_bytes()))
    }

    /// Stores a recap unless the thread's newest file is as new by
    /// (`updated_at`, `items_read`). Two things come between these: an adopted
    /// recap counts over ours of the same session time, and one that a person
    /// asked for later over one as long.
    ///
    /// # Errors
    ///
    /// When a file cannot be written or removed. The old or the new recap
    /// counts then.
    pub(crate) fn store(&self, lock: &FileLock, recap: &Recap) -> Result<Stored, RecapsError> {
        let before = self.of_thread(&recap.header.thread_id)?;
        self.store_over(lock, recap, &before)
    }

    /// Stores a recap that a person or tool put or changed in a memory
    /// folder, with `adopted_at` as the header says. It also replaces one of
    /// ours of the same session time, whose `raw_memory` and `extracted_at`
    /// it keeps where it has none; only a newer `updated_at` stays.
    ///
    /// # Errors
    ///
    /// As [`Extractions::store`].
    pub(crate) fn adopt(&self, lock: &FileLock, recap: &Recap) -> Result<Stored, RecapsError> {
        let before = self.of_thread(&recap.header.thread_id)?;
        let mut adopted = recap.clone();
        if let Some(ours) = before.first() {
            let (ours, header) = (&ours.recap.header, &mut adopted.header);
            if header.raw_memory.is_none() {
                header.raw_memory.clone_from(&ours.raw_memory);
            }
            header.extracted_at = header.extracted_at.or(ours.extracted_at);
        }
        self.store_over(lock, &adopted, &before)
    }

    /// `before` is what the thread has, newest first.
    fn store_over(
        &self,
        _lock: &FileLock,
        recap: &Recap,
        before: &[StoredRecap],
    ) -> Result<Stored, RecapsError> {
        let newest = before.first().map(|stored| &stored.recap);
        if newest.is_some_and(|newest| rank(&recap.header) <= rank(&newest.header)) {
            return Ok(Stored::NotNewer);
        }
        let path = self.free_path(&recap.header)?;
        fs::make_folders(&self.folder)?;
        stop::point("recaps.before_write");
        fs::replace(&path, recap::print_extraction(recap).as_str().as_bytes())?;
        stop::point("recaps.written");
        let others = before.iter().map(|stored| &stored.path);
        self.remove_files(others.filter(|other| **other != path))?;
        stop::point("recaps.stored");
        let replaced = newest.is_some_and(|newest| !newest.is_no_op());
        Ok(Stored::Written { path, replaced })
    }

    /// Removes all files of a thread; says how many.
    ///
    /// # Errors
    ///
    /// When the folder cannot be listed or a file cannot be removed.
    pub(crate) fn remove_thread(
        &self,
        _lock: &FileLock,
        thread_id: &ThreadId,
    ) -> Result<usize, RecapsError> {
        let found = self.of_thread(thread_id)?;
        stop::point("recaps.before_remove");
        self.remove_files(found.iter().map(|stored| &stored.path))
    }

    /// Writes a file anew with other words, for what is forgotten: nothing
    /// about which recap of a session counts changes.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the old one is there then.
    pub(crate) fn reword(_lock: &FileLock, stored: &StoredRecap) -> Result<(), RecapsError> {
        let text = recap::print_extraction(&stored.recap);
        stop::point("recaps.before_reword");
        fs::replace(&stored.path, text.as_str().as_bytes())?;
        stop::point("recaps.reworded");
        Ok(())
    }

    /// Removes what is past retention, oldest first, at most
    /// [`retention::PRUNE_BATCH_MAX`], and what a crash left; says which threads went.
    ///
    /// # Errors
    ///
    /// When the folder cannot be listed or a file cannot be removed. What
    /// went before is gone, the rest goes next time.
    ///
    /// # Source
    ///
    /// Reference 4.3, DESIGN 5.
    pub(crate) fn prune(
        &self,
        _lock: &FileLock,
        rules: &PruneRules<'_>,
        now: Timestamp,
    ) -> Result<Vec<ThreadId>, RecapsError> {
        let loaded = self.load_all()?;
        self.remove_files(loaded.superseded.iter())?;
        let headers = loaded.recaps.values().map(|stored| &stored.recap.header);
        let overdue = overdue(headers, rules, now);
        let files = overdue.iter().filter_map(|id| loaded.recaps.get(id));
        stop::point("recaps.before_prune");
        self.remove_files(files.map(|stored| &stored.path))?;
        stop::point("recaps.pruned");
        Ok(overdue)
    }

    /// What the thread has, newest first. Only files are read whose name has
    /// the thread's hash (reference 3.1), or which a person named.
    fn of_thread(&self, thread_id: &ThreadId) -> Result<Vec<StoredRecap>, RecapsError> {
        let stem = recap_name::stem(thread_id, Timestamp::default(), None);
        let wanted = hash_in(&stem);
        let may_be = |name: &str| hash_in(name).is_none_or(|hash| Some(hash) == wanted);
        let (mut files, _) = self.read_files(may_be)?;
        files.retain(|stored| stored.recap.header.thread_id == *thread_id);
        files.sort_by(newest_first);
        Ok(files)
    }

    fn read_files(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<(Vec<StoredRecap>, Vec<DamagedRecap>), RecapsError> {
        let (mut files, mut damaged) = (Vec::new(), Vec::new());
        for entry in fs::list(&self.folder)? {
            let path = entry.path;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if entry.kind == EntryType::Folder || !is_recap_name(&name) || !is_wanted(&name) {
                continue;
            }
            match read(&path, &name) {
                Ok(None) => {}
                Ok(Some(recap)) => files.push(StoredRecap { path, recap }),
                Err(problem) => damaged.push(DamagedRecap { path, problem }),
            }
        }
        Ok((files, damaged))
    }

    /// Removes files and flushes the folder once; says how many they were.
    fn remove_files<'a>(
        &self,
        files: impl Iterator<Item = &'a PathBuf>,
    ) -> Result<usize, RecapsError> {
        let mut removed = 0;
        for file in files {
            fs::remove(file)?;
            removed += 1;
        }
        if 0 < removed {
            fs::flush_folder(&self.folder)?;
        }
        Ok(removed)
    }

    /// Where the recap goes: its name of reference 3.1, numbered if a file of
    /// another session (or of nobody we could tell) has it.
    fn free_path(&self, header: &RecapHeader) -> Result<PathBuf, RecapsError> {
        for number in 1..=NAMES_MAX {
            let slug = match (number, header.slug.as_deref()) {
                (1, slug) => slug.map(str::to_owned),
                (_, None) => Some(number.to_string()),
                // In front, where a long slug does not cut it off.
                (_, Some(slug)) => Some(format!("{number}_{slug}")),
            };
            let stem = recap_name::stem(&header.thread_id, header.updated_at, slug.as_deref());
            let name = format!("{stem}.md");
            let path = self.folder.join(&name);
            let is_ours = match read(&path, &name) {
                Ok(None) => true,
                Ok(Some(owner)) => owner.header.thread_id == header.thread_id,
                // Whatever it is, it may be all that somebody has of it.
                Err(_) => false,
            };
            if is_ours {
                return Ok(path);
            }
        }
        Err(RecapsError::NoFreeName {
            thread_id: header.thread_id.clone(),
            folder: self.folder.clone(),
        })
    }
}

/// What decides which of two recaps of a session counts.
fn rank(header: &RecapHeader) -> impl Ord {
    let seconds = |time: Option<Timestamp>| time.map(Timestamp::seconds);
    (
        header.updated_at.seconds(),
        // A person's edit counts over ours until the session is newer.
        seconds(header.adopted_at),
        header.items_read,
        // Asked for again, a session may give a better recap of the same.
        seconds(header.asked_at),
    )
}

fn newest_first(a: &StoredRecap, b: &StoredRecap) -> Ordering {
    let (left, right) = (&a.recap.header, &b.recap.header);
    let by_rank = rank(right).cmp(&rank(left));
    let by_rank = by_rank.then(right.extracted_at.cmp(&left.extracted_at));
    by_rank.then_with(|| a.path.cmp(&b.path))
}

/// `None` when there is no such file; the problem in words when it is no recap.
fn read(path: &Path, name: &str) -> Result<Option<Recap>, String> {
    let text = fs::read_text_if_any(path, RECAP_BYTES_MAX);
    let Some(text) = text.map_err(|error| error.source.to_string())? else {
        return Ok(None);
    };
    recap::parse(name, &text)
        .map(Some)
        .map_err(|error| error.to_string())
}

fn is_recap_name(name: &str) -> bool {
    let is_markdown = Path::new(name).extension().is_some_and(|end| end == "md");
    is_markdown && !fs::is_side_file(name)
}

/// The four characters of a recap's name that come from its thread id alone;
/// `None` for a name of another shape.
fn hash_in(name: &str) -> Option<&str> {
    let stamp = name.get(..19)?;
    Timestamp::parse_file_stamp(stamp)?;
    let hash = name.get(19..)?.strip_prefix('-')?.get(..4)?;
    let is_hash = hash.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let ends = matches!(name.as_bytes().get(24), None | Some(b'-' | b'.'));
    (is_hash && ends).then_some(hash)
}
