//! A person's `git` inside a publication.
//!
//! Between the move of main and the last rename the folder is half old. A
//! `git commit -a`, `git commit --amend` or `git stash` in that moment takes
//! old versions for an edit, and new files for deleted ones. The record knows
//! better: what equals the old version, or was made on it without a trace of
//! the new one, is stale.
//!
//! - In a commit: [`Store::put_back`] commits the published versions on top
//!   (`Memrev-Kind: merge`), merged with what the person changed.
//! - In a stash: its id is kept beside what was displaced, and once it has
//!   been popped [`Store::settle_stash`] puts the published versions back.
//!
//! # Crash safety
//!
//! Both run before the record or the displaced folder goes, and doing either
//! again changes nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::domain::text::Redacted;
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::history::Commit;
use crate::store::late::is_made_on_old;
use crate::store::merge::merge_texts;
use crate::store::message::{CommitKind, CommitMessage};
use crate::store::publish::{Found, RunFolders};
use crate::store::record::{Record, RecordedFile};
use crate::store::{Blob, LateEdit, Store, commit, gix_id, id_of, objects};
use crate::sys::fs;
use crate::sys::stop::point;
use crate::sys::swap;

/// How far back main is searched for an interrupted publication.
const COMMITS_MAX: usize = 10_000;

/// How often a commit on top is tried when a person commits meanwhile.
const TRIES_MAX: usize = 3;

const STASH: &str = "refs/stash";
const STASH_BYTES_MAX: u64 = 4096;

/// What becomes of a recorded file, seen from what main has there.
pub(super) enum Standing {
    /// The published version, or the person's own: nothing to do.
    Stands,
    /// Stale: this has to come back.
    PutBack(Option<Blob>),
}

impl Store {
    /// Whether the publication's commit, perhaps amended, is main's or behind
    /// it.
    pub(super) fn is_in_main(&self, main: ObjectId, record: &Record) -> Result<bool, StoreError> {
        let is_amended = |commit: &Commit| {
            commit.trailers.run.as_ref() == Some(&record.run)
                && commit.parents.first() == Some(&record.old)
        };
        for commit in self.history(main).take(COMMITS_MAX) {
            let commit = commit?;
            if commit.id == record.new || is_amended(&commit) {
                return Ok(true);
            }
            if commit.id == record.old {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// What became of each recorded file at `main`, by its number. New blobs
    /// go to `repository`.
    pub(super) fn standings(
        &self,
        repository: &gix::Repository,
        record: &Record,
        main: ObjectId,
    ) -> Result<Vec<(TreePath, Standing)>, StoreError> {
        let paths: Vec<&TreePath> = record.files.iter().map(|file| &file.path).collect();
        let files = self.versions_at(repository, main, &paths)?;
        let mut standings = Vec::new();
        for file in &record.files {
            let found = files.get(&file.path).copied();
            let standing = if main == record.new || found == file.new {
                Standing::Stands
            } else if found == file.old {
                Standing::PutBack(file.new)
            } else {
                self.standing_of_edit(repository, file, found)?
            };
            standings.push((file.path.clone(), standing));
        }
        Ok(standings)
    }

    fn standing_of_edit(
        &self,
        repository: &gix::Repository,
        file: &RecordedFile,
        found: Option<Blob>,
    ) -> Result<Standing, StoreError> {
        let (Some(old), Some(new), Some(found)) = (file.old, file.new, found) else {
            return Ok(Standing::Stands);
        };
        let (base, theirs) = (self.blob(old.id)?, self.blob(new.id)?);
        let ours = self.blob(found.id)?;
        if !is_made_on_old(&base, &theirs, &ours) {
            return Ok(Standing::Stands);
        }
        let merged = merge_texts(&base, &ours, &theirs).content;
        let id = self.write_blob(repository, &merged)?;
        let executable = found.executable;
        Ok(Standing::PutBack(Some(Blob { id, executable })))
    }

    /// Commits on top of main what a person's commit had stale; gives that
    /// commit. The index follows, the work tree has it already.
    pub(super) fn put_back(&self, record: &Record) -> Result<Option<ObjectId>, StoreError> {
        for _ in 0..TRIES_MAX {
            let repository = self.writer();
            let main = commit::main_of(&repository, self.folder())?;
            if main == record.new || !self.is_in_main(main, record)? {
                return Ok(None);
            }
            let standings = self.standings(&repository, record, main)?;
            let stale: BTreeMap<TreePath, Option<Blob>> = (standings.into_iter())
                .filter_map(|(path, standing)| match standing {
                    Standing::PutBack(blob) => Some((path, blob)),
                    Standing::Stands => None,
                })
                .collect();
            if stale.is_empty() {
                return Ok(None);
            }
            match self.commit_put_back(&repository, record, main, &stale) {
                Err(StoreError::Moved { .. }) => {}
                done => return done.map(Some),
            }
        }
        // The record stays, so the next recovery tries again.
        let found = self.head()?;
        let expected = record.new;
        Err(StoreError::Moved { expected, found })
    }

    fn commit_put_back(
        &self,
        repository: &gix::Repository,
        record: &Record,
        main: ObjectId,
        stale: &BTreeMap<TreePath, Option<Blob>>,
    ) -> Result<ObjectId, StoreError> {
        let each = || stale.iter().map(|(path, blob)| (path, *blob));
        let subject =
            Redacted::literal("merge: published versions of files that were committed stale");
        let message = CommitMessage::new(CommitKind::Merge, subject)
            .body(Redacted::literal(
                "A commit was made while a baseline was being published. It has some files in\n\
                 the version of before, which nobody edited. They are put back here.",
            ))
            .run(record.run.clone());
        // There is no clock here; just after the commit it follows.
        let now = self.commit(main)?.at;
        let draft = objects::Draft {
            tree: self.edit_tree(repository, main, each())?,
            parents: vec![gix_id(main)],
            message: &message,
            author: &Author::memrev(),
            now,
        };
        let written = self.write_commit(repository, &draft)?;
        point("stale.objects_flushed");
        self.move_main(repository, Some(main), &written, &message, now)?;
        point("stale.main_moved");
        self.update_index(repository, each())?;
        point("stale.index_written");
        Ok(written.commit)
    }

    /// Remembers a stash that was made while the record lay there.
    pub(super) fn mark_stash(
        &self,
        record: &Record,
        folders: &RunFolders,
    ) -> Result<(), StoreError> {
        let Some(stash) = self.stash()? else {
            return Ok(());
        };
        if self.commit(stash)?.parents.first() == Some(&record.new) {
            fs::replace(&stash_file(folders), stash.to_string().as_bytes())?;
        }
        Ok(())
    }

    /// Whether a marked stash has not been popped yet.
    pub(super) fn holds_stash(&self, folders: &RunFolders) -> Result<bool, StoreError> {
        Ok(marked(folders)?.is_some_and(|stash| self.stash().ok().flatten() == Some(stash)))
    }

    /// Puts the published versions back where a popped stash brought the old
    /// ones. An old version that it did not hold was put there on purpose.
    pub(super) fn settle_stash(
        &self,
        record: &Record,
        folders: &RunFolders,
    ) -> Result<Vec<LateEdit>, StoreError> {
        let Some(stash) = marked(folders)? else {
            return Ok(Vec::new());
        };
        if self.stash()? == Some(stash) {
            return Ok(Vec::new());
        }
        let repository = self.repository();
        let paths: Vec<&TreePath> = record.files.iter().map(|file| &file.path).collect();
        let main = self.versions_at(&repository, self.head()?, &paths)?;
        let stashed = match self.versions_at(&repository, stash, &paths) {
            Err(StoreError::NoObject { .. }) => BTreeMap::new(),
            found => found?,
        };
        let mut settled = Vec::new();
        for file in &record.files {
            let is_stale = main.get(&file.path).copied() == file.new
                && stashed.get(&file.path).copied() == file.old
                && self.version_on_disk(&self.work_path(&file.path), file.old)
                    == Found::Version(file.old);
            if is_stale {
                self.lay_out(file, folders)?;
                point("stale.file_put_back");
                settled.push(LateEdit {
                    path: file.path.clone(),
                    base: file.old,
                    had_conflict: false,
                });
            }
        }
        fs::remove(&stash_file(folders))?;
        Ok(settled)
    }

    /// Puts the new version of one file into the work tree.
    fn lay_out(&self, file: &RecordedFile, folders: &RunFolders) -> Result<(), StoreError> {
        let target = self.work_path(&file.path);
        let Some(new) = file.new else {
            fs::remove(&target)?;
            return self.remove_empty_folders(&file.path);
        };
        if self.make_way_to(&file.path)? {
            let side = folders.displaced.join("popped");
            fs::remove(&side)?;
            fs::write_unflushed(&side, &self.blob(new.id)?, new.executable)?;
            swap::flush_file(&side)?;
            swap::move_over(&side, &target)?;
            fs::flush_folder_of(&target)?;
        }
        Ok(())
    }

    /// The newest stash of the person's.
    fn stash(&self) -> Result<Option<ObjectId>, StoreError> {
        let repository = self.repository();
        let found = repository.try_find_reference(STASH);
        let found = found.map_err(self.while_trying_to("look for a stash"))?;
        Ok(found.and_then(|found| found.target().try_id().map(id_of)))
    }
}

fn stash_file(folders: &RunFolders) -> PathBuf {
    folders.displaced.join("stash")
}

fn marked(folders: &RunFolders) -> Result<Option<ObjectId>, StoreError> {
    let text = fs::read_text_if_any(&stash_file(folders), STASH_BYTES_MAX)?;
    Ok(text.and_then(|text| ObjectId::parse(text.trim())))
}
