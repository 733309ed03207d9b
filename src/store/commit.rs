//! Moving main, and commits of what the work tree already holds.

use std::path::Path;

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::domain::time::Timestamp;
use crate::store::author::Author;
use crate::store::error::{NotOurs, StoreError};
use crate::store::locks::GitLock;
use crate::store::message::CommitMessage;
use crate::store::pack::Written;
use crate::store::{Blob, Store, StoreLock, TreeChange, gix_id, id_of, objects};
use crate::sys::fs;
use crate::sys::stop::point;

const MAIN: &str = "refs/heads/main";
const HEAD_BYTES_MAX: u64 = 4096;

/// The commit that main is at.
pub(super) fn main_of(repository: &gix::Repository, folder: &Path) -> Result<ObjectId, StoreError> {
    let git = |source| StoreError::Git {
        attempt: "read main",
        folder: folder.to_owned(),
        source,
    };
    let damaged = |what| StoreError::Damaged {
        folder: folder.to_owned(),
        what,
    };
    let main = repository
        .try_find_reference(MAIN)
        .map_err(|_| damaged("main is empty or unreadable".to_owned()))?;
    let target = main.as_ref().map(|main| main.target());
    match target {
        None => Err(StoreError::NotOurs {
            folder: folder.to_owned(),
            state: NotOurs::Unborn,
        }),
        Some(target) => match target.try_id() {
            Some(id) if repository.has_object(id) => Ok(id_of(id)),
            Some(id) => Err(damaged(format!("main names {id}, which is not there"))),
            None => Err(git("main is a symbolic ref".into())),
        },
    }
}

impl Store {
    /// Commits paths whose content the work tree has already: a person's
    /// edits, notes and the like. The work tree is not touched.
    ///
    /// # Errors
    ///
    /// [`StoreError::Moved`] when main is not at `expected_head` any more;
    /// nothing is committed then.
    pub(crate) fn commit_paths(
        &self,
        lock: &StoreLock,
        expected_head: ObjectId,
        changes: &[TreeChange],
        message: &CommitMessage,
        author: &Author,
        now: Timestamp,
    ) -> Result<ObjectId, StoreError> {
        self.assert_locked(lock);
        let repository = self.writer();
        self.assert_head(&repository, expected_head)?;
        let files = self.write_blobs(&repository, changes)?;
        let each = || files.iter().map(|(path, blob)| (path, *blob));
        let tree = self.edit_tree(&repository, expected_head, each())?;
        point("commit.tree_written");
        let draft = objects::Draft {
            tree,
            parents: vec![gix_id(expected_head)],
            message,
            author,
            now,
        };
        let written = self.write_commit(&repository, &draft)?;
        point("commit.objects_flushed");
        self.assert_written(&written)?;
        // The index first: stopped in between, it says what the work tree has,
        // as after `git add`; the other way round it would show the person's
        // own edit as taken back.
        self.update_index(&repository, each())?;
        point("commit.index_written");
        self.move_main(&repository, Some(expected_head), &written, message, now)?;
        point("commit.main_moved");
        Ok(written.commit)
    }

    pub(super) fn write_blobs(
        &self,
        repository: &gix::Repository,
        changes: &[TreeChange],
    ) -> Result<Vec<(TreePath, Option<Blob>)>, StoreError> {
        let mut files = Vec::with_capacity(changes.len());
        for change in changes {
            let blob = match &change.file {
                None => None,
                Some(file) => Some(Blob {
                    id: self.write_blob(repository, file.content.as_str().as_bytes())?,
                    executable: file.executable,
                }),
            };
            files.push((change.path.clone(), blob));
        }
        Ok(files)
    }

    pub(super) fn assert_head(
        &self,
        repository: &gix::Repository,
        expected: ObjectId,
    ) -> Result<(), StoreError> {
        self.assert_on_main(repository)?;
        let found = main_of(repository, self.folder())?;
        if found == expected {
            return Ok(());
        }
        Err(StoreError::Moved { expected, found })
    }

    /// Moves main from `expected` to what was `written` by compare-and-swap, under the
    /// locks of HEAD and main that every Git program knows, and writes both
    /// reflogs. gix could do it, but a kill in the middle would leave its
    /// lock files for a person to judge; ours are proven (see `locks`).
    pub(super) fn move_main(
        &self,
        repository: &gix::Repository,
        expected: Option<ObjectId>,
        written: &Written,
        message: &CommitMessage,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let new = written.commit;
        let git_dir = repository.git_dir().to_owned();
        let head_lock = GitLock::take(&git_dir, "HEAD", None)?;
        point("main.head_locked");
        let main_lock = GitLock::take(&git_dir, MAIN, Some(&format!("{new}\n")))?;
        point("main.locked");
        let head = fs::read_text_if_any(&git_dir.join("HEAD"), HEAD_BYTES_MAX)?;
        if head.as_deref().map(str::trim) != Some(&format!("ref: {MAIN}")) {
            self.assert_on_main(repository)?;
        }
        let found = match main_of(repository, self.folder()) {
            Ok(found) => Some(found),
            Err(StoreError::NotOurs { .. }) => None,
            Err(error) => return Err(error),
        };
        if found != expected {
            let none = ObjectId::from_bytes([0; 20]);
            return Err(StoreError::Moved {
                expected: expected.unwrap_or(none),
                found: found.unwrap_or(none),
            });
        }
        self.assert_written(written)?;
        let line = reflog_line(expected, new, message, now);
        for name in ["HEAD", MAIN] {
            let log = git_dir.join("logs").join(name);
            fs::make_folders(log.parent().unwrap_or(&git_dir))?;
            fs::append(&log, line.as_bytes())?;
        }
        point("main.logged");
        main_lock.commit()?;
        point("main.moved");
        fs::flush_folder_of(&git_dir.join(MAIN))?;
        drop(head_lock);
        Ok(())
    }
}

fn reflog_line(
    old: Option<ObjectId>,
    new: ObjectId,
    message: &CommitMessage,
    now: Timestamp,
) -> String {
    let old = old.unwrap_or(ObjectId::from_bytes([0; 20]));
    let Author { name, email } = Author::memrev();
    let text = message.render();
    let subject = text.lines().next().unwrap_or_default();
    let seconds = now.seconds();
    format!("{old} {new} {name} <{email}> {seconds} +0000\tmemrev: {subject}\n")
}
