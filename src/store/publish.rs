//! Publishing: one commit, then the work tree (DESIGN 6, step 9).
//!
//! The steps, each with a stop point behind it:
//!
//! 1. objects; new versions in `incoming/<run>/`; one flush for all of them
//! 2. the record, flushed with its folder
//! 3. main, by compare-and-swap
//! 4. per file a rename: the new version and the old one change places in
//!    one instant, so that an edit made a moment before is in our hands
//! 5. the index, only the published paths; one flush
//! 6. what a person's `git` took up of the half old folder is put back (see
//!    `stale`); the record moves to the displaced versions
//! 7. what was displaced and is not the old version is an edit that came
//!    late: it is merged into the work tree, on the version it was made on
//!
//! # Crash safety
//!
//! Until step 3 nothing has happened: recovery throws the record away. From
//! then on it is finished by doing steps 4 to 7 again; each of them sees by
//! where the files lie what is done already. While a record exists, a file
//! equal to its old version is stale and not an edit.
//!
//! # Not in here
//!
//! Whether the result is valid. Merging what a person committed before: that
//! shows as [`StoreError::Moved`] or [`StoreError::WorkTreeChanged`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::domain::limits::SNAPSHOT_FILE_BYTES_MAX;
use crate::domain::path::TreePath;
use crate::domain::time::Timestamp;
use crate::store::error::StoreError;
use crate::store::index::Absent;
use crate::store::pack::Written;
use crate::store::record::{Record, RecordedFile, folder_name};
use crate::store::{
    Blob, LateEdit, Publication, Published, Store, StoreLock, gix_id, index, objects,
};
use crate::sys::fs;
use crate::sys::stop::point;
use crate::sys::swap::{self, Exchange};

/// More new files than this are flushed with all else on the file system,
/// which then costs less than one flush each.
const FLUSHED_SINGLY_MAX: usize = 32;

/// Folders of one publication under `.git/memrev`.
pub(super) struct RunFolders {
    pub(super) incoming: PathBuf,
    pub(super) displaced: PathBuf,
}

/// What a publication is made of, by path.
type Plan = BTreeMap<TreePath, (RecordedFile, Option<Vec<u8>>)>;

impl Store {
    /// Publishes new versions: commit, then work tree.
    ///
    /// # Errors
    ///
    /// [`StoreError::Moved`] when main is not at the expected head,
    /// [`StoreError::WorkTreeChanged`] when a file to be published is neither
    /// the head's version nor the new one. Nothing has happened then. After
    /// any other error `recover` finishes or undoes what was begun.
    pub(crate) fn publish(
        &self,
        lock: &StoreLock,
        publication: &Publication<'_>,
        now: Timestamp,
    ) -> Result<Published, StoreError> {
        self.assert_locked(lock);
        if fs::is_taken(&self.record_file()) {
            self.recover(lock)?;
        }
        let repository = self.writer();
        let expected = publication.expected_head;
        self.assert_head(&repository, expected)?;
        let plan = self.plan(&repository, publication)?;
        let in_place = self.assert_unchanged(&plan)?;
        point("publish.begun");

        let files: Vec<RecordedFile> = plan.values().map(|(file, _)| file.clone()).collect();
        let written = self.write_publication(&repository, publication, &plan, now)?;
        let commit = written.commit;
        point("publish.objects_written");
        let record = Record {
            run: publication.run.clone(),
            old: expected,
            new: commit,
            files,
        };
        let folders = self.run_folders(&record);
        write_incoming(&folders, &plan, &in_place)?;
        point("publish.incoming_flushed");
        record.save(&self.record_file())?;
        point("publish.record_written");
        let message = &publication.message;
        if let Err(error) = self.move_main(&repository, Some(expected), &written, message, now) {
            self.discard(&record)?;
            return Err(error);
        }
        point("publish.main_moved");
        drop(written);
        let late_edits = self.finish(&repository, &record, &BTreeSet::new())?;
        Ok(Published { commit, late_edits })
    }

    /// Each changed path with its versions; those that change nothing are out.
    fn plan(
        &self,
        repository: &gix::Repository,
        publication: &Publication<'_>,
    ) -> Result<Plan, StoreError> {
        let paths: Vec<&TreePath> = publication
            .changes
            .iter()
            .map(|change| &change.path)
            .collect();
        let known = self.versions_at(repository, publication.expected_head, &paths)?;
        let mut plan = Plan::new();
        for change in &publication.changes {
            let content = change
                .file
                .as_ref()
                .map(|file| file.content.as_str().as_bytes());
            let new = change
                .file
                .as_ref()
                .zip(content)
                .map(|(file, content)| Blob {
                    id: Self::blob_id(content),
                    executable: file.executable,
                });
            let old = known.get(&change.path).copied();
            let path = change.path.clone();
            if old == new {
                plan.remove(&path);
                continue;
            }
            let file = RecordedFile {
                path: path.clone(),
                old,
                new,
            };
            plan.insert(path, (file, content.map(<[u8]>::to_owned)));
        }
        Ok(plan)
    }

    /// Every file to be published must be the head's version, or the new one
    /// already; gives the numbers of the latter, and of those that a sparse
    /// checkout leaves out: they stay out.
    fn assert_unchanged(&self, plan: &Plan) -> Result<Vec<usize>, StoreError> {
        let absent = Absent::read(self, index::read(self)?.as_ref());
        let mut in_place = Vec::new();
        let mut changed = Vec::new();
        for (number, (file, _)) in plan.values().enumerate() {
            let found = self.version_on_disk(&self.work_path(&file.path), file.old);
            let makes_way = || self.makes_way(plan, &file.path);
            match found {
                Found::Version(version) if version == file.new => in_place.push(number),
                Found::Version(version) if version == file.old => {}
                Found::Version(None) if absent.contains(&file.path) => in_place.push(number),
                Found::NotPlain if file.old.is_none() && makes_way() => {}
                _ => changed.push(file.path.clone()),
            }
        }
        if changed.is_empty() {
            return Ok(in_place);
        }
        Err(StoreError::WorkTreeChanged { paths: changed })
    }

    /// A folder at `path` whose every file is removed by the same publication.
    fn makes_way(&self, plan: &Plan, path: &TreePath) -> bool {
        let folder = self.work_path(path);
        let below = walk_files(&folder);
        let is_removed = |file: &PathBuf| {
            let relative = file.strip_prefix(self.folder()).ok().and_then(Path::to_str);
            let path = relative.and_then(|path| TreePath::parse(&path.replace('\\', "/")));
            path.and_then(|path| plan.get(&path))
                .is_some_and(|(file, _)| file.new.is_none())
        };
        folder.symlink_metadata().is_ok_and(|found| found.is_dir())
            && below.is_some_and(|files| files.iter().all(is_removed))
    }

    fn write_publication(
        &self,
        repository: &gix::Repository,
        publication: &Publication<'_>,
        plan: &Plan,
        now: Timestamp,
    ) -> Result<Written, StoreError> {
        for (_, content) in plan.values() {
            if let Some(content) = content {
                self.write_blob(repository, content)?;
            }
        }
        let expected = publication.expected_head;
        let each = plan.iter().map(|(path, (file, _))| (path, file.new));
        let draft = objects::Draft {
            tree: self.edit_tree(repository, expected, each)?,
            parents: vec![gix_id(expected)],
            message: &publication.message,
            author: &publication.author,
            now,
        };
        self.write_commit(repository, &draft)
    }

    /// Steps 4 to 7; done again by recovery after a crash. Files whose number
    /// is in `left_alone` are not put in place.
    pub(super) fn finish(
        &self,
        repository: &gix::Repository,
        record: &Record,
        left_alone: &BTreeSet<usize>,
    ) -> Result<Vec<LateEdit>, StoreError> {
        let folders = self.run_folders(record);
        fs::make_folders(&folders.incoming)?;
        fs::make_folders(&folders.displaced)?;
        let mut overtaken = Vec::new();
        // A file may make way for a folder of its name: removals come first.
        let order = |removal: bool| {
            let files = record.files.iter().enumerate();
            let files = files.filter(|(number, _)| !left_alone.contains(number));
            files.filter(move |(_, file)| file.new.is_none() == removal)
        };
        for (number, file) in order(true).chain(order(false)) {
            if !self.put(&folders, number, file)? {
                overtaken.push(LateEdit {
                    path: file.path.clone(),
                    base: file.old,
                    had_conflict: true,
                });
            }
            point("publish.file_moved");
        }
        point("publish.files_moved");
        let each = order(true).chain(order(false));
        self.update_index(repository, each.map(|(_, file)| (&file.path, file.new)))?;
        point("publish.index_written");
        self.flush_places(record, &folders)?;
        point("publish.all_flushed");
        self.put_back(record)?;
        self.mark_stash(record, &folders)?;
        point("publish.stale_put_back");
        swap::move_over(&self.record_file(), &folders.displaced.join("record"))?;
        point("publish.record_removed");
        fs::remove_all(&folders.incoming)?;
        let mut late_edits = self.settle_displaced(record, &folders)?;
        point("publish.settled");
        late_edits.extend(overtaken);
        late_edits.sort();
        Ok(late_edits)
    }

    /// Puts one new version in place, once. `Ok(false)`: a person made or
    /// removed the file in the last moment, and theirs stays.
    fn put(
        &self,
        folders: &RunFolders,
        number: usize,
        file: &RecordedFile,
    ) -> Result<bool, StoreError> {
        let incoming = folders.incoming.join(number.to_string());
        let displaced = folders.displaced.join(number.to_string());
        let target = self.work_path(&file.path);
        match (file.old, file.new) {
            (_, None) => self.put_nothing(&displaced, &target, &file.path),
            (_, Some(_)) if !fs::is_taken(&incoming) => Ok(true),
            (None, Some(_)) => {
                let moved = self.make_way_to(&file.path)? && swap::move_new(&incoming, &target)?;
                fs::remove(&incoming)?;
                Ok(moved)
            }
            (Some(old), Some(new)) => {
                self.replace(&incoming, &displaced, &target, file, (old, new))
            }
        }
    }

    fn put_nothing(
        &self,
        displaced: &Path,
        target: &Path,
        path: &TreePath,
    ) -> Result<bool, StoreError> {
        let is_pending = !fs::is_taken(displaced) && fs::is_taken(target);
        if is_pending && self.has_plain_parents(path) {
            swap::move_new(target, displaced)?;
        }
        self.remove_empty_folders(path)?;
        Ok(true)
    }

    fn replace(
        &self,
        incoming: &Path,
        displaced: &Path,
        target: &Path,
        file: &RecordedFile,
        (old, new): (Blob, Blob),
    ) -> Result<bool, StoreError> {
        let in_hand = self.version_on_disk(incoming, Some(new));
        if in_hand != Found::Version(Some(new)) {
            // They have changed places; what we hold is what lay there.
            swap::move_over(incoming, displaced)?;
            return Ok(true);
        }
        if !self.has_plain_parents(&file.path) {
            fs::remove(incoming)?;
            return Ok(false);
        }
        match swap::exchange(incoming, target)? {
            Exchange::Done => {
                point("publish.file_exchanged");
                swap::move_over(incoming, displaced)?;
                Ok(true)
            }
            Exchange::Missing => {
                fs::remove(incoming)?;
                Ok(false)
            }
            Exchange::Unsupported => {
                // The second way has a gap between the look and the rename.
                // A link made by an earlier try is of no use any more.
                if self.version_on_disk(displaced, Some(old)) == Found::Version(Some(old)) {
                    fs::remove(displaced)?;
                }
                if !fs::is_taken(target) {
                    fs::remove(incoming)?;
                    return Ok(false);
                }
                swap::link_new(target, displaced)?;
                swap::move_over(incoming, target)?;
                Ok(true)
            }
        }
    }

    /// Makes the renames and the index durable, so that nothing is lost with
    /// the record.
    fn flush_places(&self, record: &Record, folders: &RunFolders) -> Result<(), StoreError> {
        let folder_of = |path: &TreePath| self.work_path(path).parent().map(Path::to_owned);
        let mut places: BTreeSet<PathBuf> = (record.files.iter())
            .filter_map(|file| folder_of(&file.path))
            .collect();
        places.insert(folders.displaced.clone());
        places.insert(self.git_dir());
        for place in places {
            // A folder that is gone needs nothing; its own folder is flushed.
            if place.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                fs::flush_folder(&place)?;
            }
        }
        swap::flush_file(&self.git_dir().join("index"))?;
        Ok(())
    }

    /// Makes the folders above `path`. `Ok(false)` when one of them is a
    /// file or a link, which stays.
    pub(super) fn make_way_to(&self, path: &TreePath) -> Result<bool, StoreError> {
        let target = self.work_path(path);
        let Some(folder) = target.parent() else {
            return Ok(false);
        };
        let mut above: Vec<&Path> = (folder.ancestors())
            .take_while(|above| *above != self.folder())
            .collect();
        above.reverse();
        for folder in above {
            match folder.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Ok(false),
                Err(_) => fs::make_folders(folder)?,
            }
        }
        // An empty folder may lie where the file goes.
        fs::remove_if_empty(&target)?;
        Ok(true)
    }

    /// Removes the folders above a removed file that hold nothing any more,
    /// but not those of the layout, where people and agents drop files.
    pub(super) fn remove_empty_folders(&self, path: &TreePath) -> Result<(), StoreError> {
        let mut above = path.as_str();
        while let Some((folder, _)) = above.rsplit_once('/') {
            let is_layout = !folder.contains('/') || folder.starts_with("extensions/");
            if is_layout {
                break;
            }
            fs::remove_if_empty(&self.folder().join(folder))?;
            above = folder;
        }
        Ok(())
    }

    /// What lies at a path; `known` decides the exec bit where the file
    /// system has none.
    pub(super) fn version_on_disk(&self, file: &Path, known: Option<Blob>) -> Found {
        let Some((metadata, _)) = index::stat(file) else {
            return if fs::is_taken(file) {
                Found::NotPlain
            } else {
                Found::Version(None)
            };
        };
        if !metadata.is_file() {
            return Found::NotPlain;
        }
        let executable = self.executable_on_disk(&metadata, known);
        match fs::read(file, SNAPSHOT_FILE_BYTES_MAX) {
            Ok(content) => Found::Version(Some(Blob {
                id: Self::blob_id(&content),
                executable,
            })),
            Err(error) if error.is_not_found() => Found::Version(None),
            Err(_) => Found::NotPlain,
        }
    }

    pub(super) fn record_file(&self) -> PathBuf {
        self.private_dir().join("publication")
    }

    pub(super) fn run_folders(&self, record: &Record) -> RunFolders {
        // A run that publishes twice has two folders.
        let name = format!("{}-{}", folder_name(&record.run), record.new.short());
        RunFolders {
            incoming: self.private_dir().join("incoming").join(&name),
            displaced: self.private_dir().join("displaced").join(&name),
        }
    }

    /// Throws away a publication that has not reached main.
    pub(super) fn discard(&self, record: &Record) -> Result<(), StoreError> {
        let folders = self.run_folders(record);
        fs::remove_all(&folders.incoming)?;
        point("publish.incoming_discarded");
        fs::remove(&self.record_file())?;
        fs::remove_if_empty(&folders.displaced)?;
        Ok(())
    }
}

/// What lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A plain file, or nothing.
    Version(Option<Blob>),
    /// A folder, a link, or a file too large or closed to us.
    NotPlain,
}

fn write_incoming(folders: &RunFolders, plan: &Plan, in_place: &[usize]) -> Result<(), StoreError> {
    fs::remove_all(&folders.incoming)?;
    fs::make_folders(&folders.incoming)?;
    fs::make_folders(&folders.displaced)?;
    let mut sides = Vec::new();
    for (number, (file, content)) in plan.values().enumerate() {
        let (Some(new), Some(content)) = (file.new, content) else {
            continue;
        };
        if in_place.contains(&number) {
            continue;
        }
        let side = folders.incoming.join(number.to_string());
        fs::write_unflushed(&side, content, new.executable)?;
        sides.push(side);
    }
    if FLUSHED_SINGLY_MAX < sides.len() {
        swap::flush_file_system(&folders.incoming)?;
        return Ok(());
    }
    for side in &sides {
        swap::flush_file(side)?;
    }
    fs::flush_folder(&folders.incoming)?;
    Ok(())
}

/// All that is not a folder below `folder`; `None` when it cannot be listed.
fn walk_files(folder: &Path) -> Option<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::list(&folder).ok()? {
            if entry.kind == fs::EntryType::Folder {
                folders.push(entry.path);
            } else {
                files.push(entry.path);
            }
        }
    }
    Some(files)
}
