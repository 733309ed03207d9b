//! Finishing or undoing what a killed process began.
//!
//! Nothing here waits for anything to run out: the store's lock is free as
//! soon as its process is gone, and whoever holds it may do this. Being
//! killed in here leaves the work for the next call.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::domain::id::ObjectId;
use crate::store::error::StoreError;
use crate::store::publish::RunFolders;
use crate::store::record::Record;
use crate::store::{Recovery, Store, StoreLock, commit, locks};
use crate::sys::fs;
use crate::sys::stop::point;

/// How far back main is searched for an interrupted publication.
const COMMITS_MAX: usize = 10_000;

/// An unfinished object of gix is garbage after this; another program may be
/// writing a younger one.
const UNFINISHED_OBJECT_AGE: Duration = Duration::from_hours(1);

impl Store {
    /// Whether a publication was interrupted, so that the folder is half old
    /// and half new until `recover` is called.
    pub(crate) fn is_interrupted(&self) -> bool {
        fs::is_taken(&self.record_file())
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
        if let Some(record) = Record::load(&self.record_file())? {
            self.recover_publication(record, &mut recovery)?;
            point("recover.publication_done");
        }
        // Without a record what is incoming goes nowhere.
        fs::remove_all(&self.private_dir().join("incoming"))?;
        self.sweep_displaced(&mut recovery)?;
        point("recover.displaced_swept");
        self.sweep_objects();
        self.tidy_packs(lock)?;
        recovery.late_edits.sort();
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

    /// Whether the publication's commit is main's or behind it.
    fn is_in_main(&self, main: ObjectId, record: &Record) -> Result<bool, StoreError> {
        for commit in self.history(main).take(COMMITS_MAX) {
            let commit = commit?;
            if commit.id == record.new {
                return Ok(true);
            }
            if commit.id == record.old {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// A person may have committed on top before we came. What they committed
    /// stands: only files that main has as published are put in place.
    fn overruled(&self, record: &Record, main: ObjectId) -> Result<BTreeSet<usize>, StoreError> {
        if main == record.new {
            return Ok(BTreeSet::new());
        }
        let files = self.snapshot(main)?.files;
        let recorded = record.files.iter().enumerate();
        let overruled = recorded.filter(|(_, file)| files.get(&file.path).copied() != file.new);
        Ok(overruled.map(|(number, _)| number).collect())
    }

    /// Displaced versions that nobody wrote to since are no longer needed.
    fn sweep_displaced(&self, recovery: &mut Recovery) -> Result<(), StoreError> {
        let displaced = self.private_dir().join("displaced");
        for entry in fs::list(&displaced)? {
            let name = entry.path.file_name().unwrap_or_default();
            let folders = RunFolders {
                incoming: self.private_dir().join("incoming").join(name),
                displaced: entry.path.clone(),
            };
            if let Some(record) = Record::load(&folders.displaced.join("record"))? {
                let late_edits = self.settle(&record, &folders, true)?;
                recovery.late_edits.extend(late_edits);
            }
            point("recover.run_settled");
            fs::remove_all(&folders.displaced)?;
        }
        Ok(())
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
    /// index. Their age is measured by
    /// the file system's own clock: our lock file was written just now.
    /// Garbage harms nobody, so a failure does not stop the caller.
    fn sweep_objects(&self) {
        let modified = |path: &std::path::Path| path.symlink_metadata()?.modified();
        let Ok(now) = modified(&self.paths.lock_file) else {
            return;
        };
        let objects = self.git_dir().join("objects");
        let mut entries = fs::list(&objects).unwrap_or_default();
        entries.extend(fs::list(&objects.join("pack")).unwrap_or_default());
        for entry in entries {
            let name = entry.path.file_name().and_then(|name| name.to_str());
            let is_pack = entry
                .path
                .extension()
                .is_some_and(|extension| extension == "pack");
            let is_headless = is_pack && !fs::is_taken(&entry.path.with_extension("idx"));
            let is_unfinished = entry.kind == fs::EntryType::File
                && (is_headless || name.is_some_and(|name| name.starts_with(".tmp")));
            let age = || now.duration_since(modified(&entry.path).ok()?).ok();
            if is_unfinished && age().is_some_and(|age| UNFINISHED_OBJECT_AGE < age) {
                fs::remove(&entry.path).ok();
            }
        }
    }
}
