//! What is withheld, as one value that answers "may this come in?".
//!
//! Each withheld thing is a file of its own in `withheld/` of the home and,
//! copied with the next commit, in every memory folder. The union counts, so
//! that a reset of a folder lifts nothing. What is released leaves a mark,
//! `<id>.released` in the home, by which a folder that is looked at later
//! knows that its copy says nothing any more.
//!
//! # Crash safety
//!
//! Files are created whole and never changed; a second save of the same thing
//! finds it there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::domain::id::{ObjectId, ThreadId};
use crate::domain::path::TreePath;
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;
use crate::domain::withheld::{Withheld, WithheldWhat};
use crate::sys::fs::{self, EntryType, FsError};
use crate::sys::stop;
use crate::text::shingles;
use crate::text::withheld::{self, WithheldError};

/// Largest file of a withheld thing, in bytes. An entry of 64 KiB has fewer
/// hashes than fill it.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Ends the name of the mark that something was released.
const RELEASED: &str = ".released";

/// Why what is withheld is not known. Nothing may come in then: what cannot be
/// read might withhold it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WithheldSetError {
    #[error(transparent)]
    Files(#[from] FsError),
    /// Remove or mend the file: a pass begins only when each can be read.
    #[error("`{}` does not say what is withheld", path.display())]
    Damaged {
        path: PathBuf,
        source: WithheldError,
    },
}

/// The union of what the home and the memory folders withhold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WithheldSet {
    /// Sorted by id, without repeats.
    all: Vec<Withheld>,
    /// Ids that the home says are released.
    released: BTreeSet<String>,
}

/// Reads `withheld/*.yaml` of the home and joins the copies of a memory folder.
///
/// # Errors
///
/// When a file cannot be read or does not parse.
pub(crate) fn load(
    home: &Path,
    copies: &[(TreePath, Raw)],
) -> Result<WithheldSet, WithheldSetError> {
    let mut all = Vec::new();
    let mut released = BTreeSet::new();
    for entry in fs::list(&home.join("withheld"))? {
        let name = entry.path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(id) = name.strip_suffix(RELEASED) {
            released.insert(id.to_owned());
            continue;
        }
        if entry.kind != EntryType::File || !name.ends_with(".yaml") || fs::is_side_file(&name) {
            continue;
        }
        // Gone since it was listed: released by a person just now.
        let Some(text) = fs::read_text_if_any(&entry.path, FILE_BYTES_MAX)? else {
            continue;
        };
        all.push(parse(&entry.path, &name, &text)?);
    }
    for (path, text) in copies {
        all.push(parse(
            Path::new(path.as_str()),
            path.name(),
            text.unredacted(),
        )?);
    }
    all.retain(|it| !released.contains(&it.id));
    Ok(WithheldSet {
        released,
        ..WithheldSet::union(all)
    })
}

fn parse(path: &Path, name: &str, text: &str) -> Result<Withheld, WithheldSetError> {
    withheld::parse(name, text).map_err(|source| WithheldSetError::Damaged {
        path: path.to_owned(),
        source,
    })
}

/// Writes new things to `withheld/` of the home, a file each.
///
/// # Errors
///
/// When one cannot be written; those before it are.
pub(crate) fn save(home: &Path, new: &[Withheld]) -> Result<(), WithheldSetError> {
    let folder = home.join("withheld");
    if !new.is_empty() {
        fs::make_folders(&folder)?;
    }
    for withheld in new {
        let file = folder.join(format!("{}.yaml", withheld.id));
        if fs::is_taken(&file) {
            continue;
        }
        fs::create_new(&file, withheld::print(withheld).as_str().as_bytes())?;
        stop::point("notes.withheld_saved");
    }
    Ok(())
}

/// Removes what is withheld no more from `withheld/` of the home, and leaves
/// the mark for copies elsewhere. Copies in memory folders are the caller's to
/// remove.
///
/// # Errors
///
/// When one cannot be removed; those before it are.
pub(crate) fn release(home: &Path, released: &[Withheld]) -> Result<(), WithheldSetError> {
    let folder = home.join("withheld");
    if !released.is_empty() {
        fs::make_folders(&folder)?;
    }
    for withheld in released {
        fs::create_new(&folder.join(format!("{}{RELEASED}", withheld.id)), b"")?;
        stop::point("notes.release_marked");
        fs::remove(&home.join("withheld").join(format!("{}.yaml", withheld.id)))?;
        stop::point("notes.withheld_released");
    }
    Ok(())
}

impl WithheldSet {
    /// The rest of it.
    pub(crate) fn without(&self, released: &[Withheld]) -> Self {
        let is_left = |held: &&Withheld| !released.iter().any(|it| it.id == held.id);
        Self {
            all: self.all.iter().filter(is_left).cloned().collect(),
            released: self.released.clone(),
        }
    }

    /// The union of `lists`; of entries with one id the first counts.
    pub(crate) fn union(lists: impl IntoIterator<Item = Withheld>) -> Self {
        let mut all: Vec<Withheld> = lists.into_iter().collect();
        all.sort_by(|left, right| left.id.cmp(&right.id));
        all.dedup_by(|later, first| later.id == first.id);
        let released = BTreeSet::new();
        Self { all, released }
    }

    /// Whether a copy of this name was released, here or in another folder.
    pub(crate) fn is_released(&self, id: &str) -> bool {
        self.released.contains(id)
    }

    pub(crate) fn as_slice(&self) -> &[Withheld] {
        &self.all
    }

    /// This version of this input file must not come in.
    pub(crate) fn blocks_input(&self, path: &TreePath, blob: ObjectId) -> bool {
        self.all.iter().any(|withheld| match &withheld.what {
            WithheldWhat::Input {
                path: held_path,
                blob: held_blob,
            } => held_path == path && *held_blob == blob,
            _ => false,
        })
    }

    /// A session as it was at `updated_at` must not come in.
    pub(crate) fn blocks_thread(&self, thread_id: &ThreadId, updated_at: Timestamp) -> bool {
        self.all.iter().any(|withheld| match &withheld.what {
            WithheldWhat::Thread {
                thread_id: held_id,
                until,
            } => held_id == thread_id && updated_at <= *until,
            _ => false,
        })
    }

    /// An entry that says this must not come in.
    pub(crate) fn blocks_entry(&self, text: &str) -> bool {
        self.all.iter().any(|withheld| match &withheld.what {
            WithheldWhat::Entry(hashes) => shingles::matches(hashes, text),
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{WithheldSetError, load, release, save};
    use crate::domain::id::ThreadId;
    use crate::domain::path::TreePath;
    use crate::domain::text::Raw;
    use crate::domain::time::Timestamp;
    use crate::domain::withheld::{Withheld, WithheldReason, WithheldWhat};
    use crate::text::shingles;
    use crate::text::withheld;

    const NOW: Timestamp = Timestamp::from_seconds(1_770_000_000);

    fn entry(id: &str, text: &str) -> Withheld {
        Withheld {
            id: id.to_owned(),
            reason: WithheldReason::Forgotten,
            since: NOW,
            what: WithheldWhat::Entry(shingles::hash_entry([7; 16], text)),
        }
    }

    #[test]
    fn home_and_folder_copies_are_joined() {
        let home = tempfile::tempdir().unwrap();
        let thread_id = ThreadId::parse("019cd700-0000-7000-8000-000000000001").unwrap();
        let thread = Withheld {
            what: WithheldWhat::Thread {
                thread_id: thread_id.clone(),
                until: NOW,
            },
            ..entry("b", "")
        };
        save(home.path(), &[entry("a", "always deploy to staging first")]).unwrap();
        let copy = TreePath::parse("extensions/withheld/entries/b.yaml").unwrap();
        let copies = [(copy, Raw::new(withheld::print(&thread).into_string()))];
        let set = load(home.path(), &copies).unwrap();

        assert!(set.blocks_entry("- Always deploy to staging first. [ad-hoc note]"));
        assert!(!set.blocks_entry("- Always run the tests first."));
        assert!(set.blocks_thread(&thread_id, NOW));
        assert!(!set.blocks_thread(&thread_id, NOW.plus_seconds(1)));
    }

    #[test]
    fn a_release_lifts_copies_as_well() {
        let home = tempfile::tempdir().unwrap();
        let held = entry("a", "always deploy to staging first");
        save(home.path(), std::slice::from_ref(&held)).unwrap();
        for _ in 0..2 {
            release(home.path(), std::slice::from_ref(&held)).unwrap();
        }
        let copy = TreePath::parse("extensions/withheld/entries/a.yaml").unwrap();
        let copies = [(copy, Raw::new(withheld::print(&held).into_string()))];
        let set = load(home.path(), &copies).unwrap();
        assert!(set.as_slice().is_empty() && set.is_released("a"));
    }

    #[test]
    fn saving_twice_writes_once() {
        let home = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            save(home.path(), &[entry("a", "tabs, not spaces")]).unwrap();
        }
        assert_eq!(load(home.path(), &[]).unwrap().as_slice().len(), 1);
    }

    #[test]
    fn a_damaged_file_lets_nothing_in() {
        let home = tempfile::tempdir().unwrap();
        save(home.path(), &[entry("a", "tabs")]).unwrap();
        let file = home.path().join("withheld/a.yaml");
        crate::sys::fs::replace(&file, b"what: everything\n").unwrap();
        let error = load(home.path(), &[]).unwrap_err();
        assert!(matches!(error, WithheldSetError::Damaged { path, .. } if path == file));
    }
}
