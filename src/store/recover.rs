//! Finishing or undoing what a killed process began.
//!
//! Nothing here waits for anything to run out: the store's lock is free as
//! soon as its process is gone, and whoever holds it may do this. Being
//! killed in here leaves the work for the next call.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::store::error::StoreError;
use crate::store::late::LATE_SECONDS;
use crate::store::publish::{Found, RunFolders};
use crate::store::record::Record;
use crate::store::stale::Standing;
use crate::store::{Blob, Recovery, Store, StoreLock, commit, locks};
use crate::sys::fs;
use crate::sys::stop::point;
use crate::sys::swap;

/// In our part of `.git`.
const DAMAGED_RECORD: &str = "publication.damaged";

const LATE: Duration = Duration::from_secs(LATE_SECONDS);

/// An unfinished object of gix is garbage after this; another program may be
/// writing a younger one.
const UNFINISHED_OBJECT_AGE: Duration = Duration::from_hours(1);

impl Store {
    /// Whether a publication was interrupted, so that the folder is half old
    /// and half new until `recover` is called.
    pub(crate) fn is_interrupted(&self) -> bool {
        fs::is_taken(&self.record_file())
    }

    /// Damaged files of `.git` that lie where recoveries put them.
    pub(crate) fn set_aside_before(&self) -> Vec<PathBuf> {
        let private = self.private_dir();
        let kept = fs::list(&private.join("set-aside")).unwrap_or_default();
        let mut kept: Vec<PathBuf> = kept.into_iter().map(|entry| entry.path).collect();
        kept.extend([private.join(DAMAGED_RECORD), self.damaged_index()]);
        kept.retain(|file| fs::is_taken(file));
        kept.sort();
        kept
    }

    /// Finishes or undoes what a killed process began. Call it first, under
    /// the lock; with nothing to do it lists a few folders.
    ///
    /// # Errors
    ///
    /// When a step fails; calling it again goes on from there.
    pub(crate) fn recover(&self, lock: &StoreLock) -> Result<Recovery, StoreError> {
        self.assert_locked(lock);
        locks::sweep(&self.git_dir())?;
        self.sweep_side_files()?;
        point("recover.swept");
        let mut recovery = Recovery::default();
        match Record::load(&self.record_file()) {
            Ok(None) => {}
            Ok(Some(record)) => {
                self.recover_publication(record, &mut recovery)?;
                point("recover.publication_done");
            }
            Err(StoreError::Unusable { .. }) => self.recover_without_record(&mut recovery)?,
            Err(error) => return Err(error),
        }
        self.make_missing_index()?;
        let mended = self.mend_index(&self.repository())?;
        recovery.set_aside.extend(mended);
        // What main names needs no other mark, and the rest goes nowhere.
        self.sweep_keeps()?;
        // Without a record what is incoming goes nowhere.
        fs::remove_all(&self.private_dir().join("incoming"))?;
        self.sweep_displaced(&mut recovery)?;
        point("recover.displaced_swept");
        self.sweep_objects();
        self.tidy_loose(lock)?;
        self.tidy_packs(lock)?;
        recovery.late_edits.sort();
        recovery.set_aside.sort();
        Ok(recovery)
    }

    fn recover_publication(
        &self,
        record: Record,
        recovery: &mut Recovery,
    ) -> Result<(), StoreError> {
        let repository = self.repository();
        let main = commit::main_of(&repository, self.folder())?;
        if !self.is_in_main(main, &record)? {
            self.discard(&record)?;
            recovery.discarded = Some(record.run);
            return Ok(());
        }
        let left_alone = self.overruled(&record, main)?;
        recovery.late_edits = self.finish(&repository, &record, &left_alone)?;
        recovery.finished = Some(record.new);
        Ok(())
    }

    /// A publication whose record is damaged: nobody can tell which files are
    /// stale, so the work tree stays as it is, and where it differs from main
    /// it is an edit. What lies in the publication's folders is kept.
    fn recover_without_record(&self, recovery: &mut Recovery) -> Result<(), StoreError> {
        for folder in ["displaced", "incoming"] {
            for entry in fs::list(&self.private_dir().join(folder))? {
                if !fs::is_taken(&entry.path.join("record")) {
                    recovery.set_aside.push(self.set_aside(&entry.path)?);
                }
            }
        }
        point("recover.folders_set_aside");
        let repository = self.repository();
        let main = self.snapshot(commit::main_of(&repository, self.folder())?)?;
        let paths = (main.files.iter()).map(|(path, blob)| (path, Some(*blob)));
        let mut settled: BTreeMap<TreePath, Option<Blob>> = (paths)
            .filter(|(path, blob)| {
                self.version_on_disk(&self.work_path(path), *blob) == Found::Version(*blob)
            })
            .map(|(path, blob)| (path.clone(), blob))
            .collect();
        for change in self.changed_paths(main.commit)? {
            if change.new.is_none() && !fs::is_taken(&self.work_path(&change.path)) {
                settled.insert(change.path, None);
            }
        }
        let settled = settled.iter().map(|(path, blob)| (path, *blob));
        self.update_index(&repository, settled)?;
        point("recover.index_settled");
        let kept = self.private_dir().join(DAMAGED_RECORD);
        swap::move_over(&self.record_file(), &kept)?;
        recovery.set_aside.push(kept);
        Ok(())
    }

    /// Moves a run's folder to `set-aside/`, under a name that is free.
    fn set_aside(&self, folder: &Path) -> Result<PathBuf, StoreError> {
        let kept = self.private_dir().join("set-aside");
        fs::make_folders(&kept)?;
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        let mut target = name(folder);
        target.push("-");
        target.push(name(folder.parent().unwrap_or(folder)));
        while fs::is_taken(&kept.join(&target)) {
            target.push("+");
        }
        let kept = kept.join(target);
        fs::rename(folder, &kept)?;
        Ok(kept)
    }

    /// A person may have committed on top before we came. What they committed
    /// stands: only files that main has as published, or stale, are put in
    /// place.
    fn overruled(&self, record: &Record, main: ObjectId) -> Result<BTreeSet<usize>, StoreError> {
        let paths: Vec<&TreePath> = record.files.iter().map(|file| &file.path).collect();
        let files = self.versions_at(&self.repository(), main, &paths)?;
        let standings = self.standings(&self.writer(), record, main)?;
        let overruled = standings.into_iter().enumerate().filter(|(number, it)| {
            let new = record.files[*number].new;
            matches!(it.1, Standing::Stands) && files.get(&it.0).copied() != new
        });
        Ok(overruled.map(|(number, _)| number).collect())
    }

    /// Settles edits that met a publication of late, and removes what was
    /// displaced longer ago.
    fn sweep_displaced(&self, recovery: &mut Recovery) -> Result<(), StoreError> {
        let displaced = self.private_dir().join("displaced");
        // Newest first: a save over the newest version may be made on the one
        // before it, which an older record does not know.
        let mut runs = fs::list(&displaced)?;
        runs.sort_by_key(|entry| self.age(&entry.path.join("record")));
        for entry in runs {
            let name = entry.path.file_name().unwrap_or_default();
            let folders = RunFolders {
                incoming: self.private_dir().join("incoming").join(name),
                displaced: entry.path.clone(),
            };
            let file = folders.displaced.join("record");
            let record = match Record::load(&file) {
                Err(StoreError::Unusable { .. }) => {
                    recovery.set_aside.push(self.set_aside(&entry.path)?);
                    continue;
                }
                record => record?,
            };
            if let Some(record) = record {
                let late_edits = &mut recovery.late_edits;
                late_edits.extend(self.settle_displaced(&record, &folders)?);
                late_edits.extend(self.settle_stash(&record, &folders)?);
                late_edits.extend(self.settle_stale_saves(&record, &folders)?);
                point("recover.run_settled");
                let is_young = self.age(&file).is_none_or(|age| age < LATE);
                if is_young || self.holds_stash(&folders)? {
                    continue;
                }
            }
            fs::remove_all(&folders.displaced)?;
        }
        Ok(())
    }

    /// By the file system's own clock: our lock file was written just now.
    /// `None` for a missing file and one that is newer than that.
    fn age(&self, file: &Path) -> Option<Duration> {
        let modified = |path: &Path| path.symlink_metadata().and_then(|found| found.modified());
        let now = modified(&self.paths.lock_file).ok()?;
        now.duration_since(modified(file).ok()?).ok()
    }

    fn sweep_side_files(&self) -> Result<(), StoreError> {
        let private = self.private_dir();
        for unfinished in ["index.new", "pack.new", "idx.new"] {
            fs::remove(&private.join(unfinished))?;
        }
        let git_dir = self.git_dir();
        for folder in [&private, &git_dir, &git_dir.join("info")] {
            for entry in fs::list(folder)? {
                let name = entry.path.file_name().and_then(|name| name.to_str());
                if name.is_some_and(fs::is_side_file) {
                    fs::remove(&entry.path)?;
                }
            }
        }
        Ok(())
    }

    /// gix leaves `objects/.tmp…` when it is killed, and we a pack without its
    /// index. Garbage harms nobody, so a failure does not stop the caller.
    fn sweep_objects(&self) {
        let objects = self.git_dir().join("objects");
        let mut entries = fs::list(&objects).unwrap_or_default();
        entries.extend(fs::list(&objects.join("pack")).unwrap_or_default());
        for entry in entries {
            let name = entry.path.file_name().and_then(|name| name.to_str());
            let extension = entry.path.extension();
            let is_headless = extension.is_some_and(|extension| extension == "pack")
                && !fs::is_taken(&entry.path.with_extension("idx"));
            let is_unfinished = entry.kind == fs::EntryType::File
                && (is_headless || name.is_some_and(|name| name.starts_with(".tmp")));
            let is_old = || {
                self.age(&entry.path)
                    .is_some_and(|age| UNFINISHED_OBJECT_AGE < age)
            };
            if is_unfinished && is_old() {
                fs::remove(&entry.path).ok();
            }
        }
    }
}
