//! Whether the repository is ours to write now (DESIGN 6).

use std::collections::BTreeMap;

use gix::bstr::ByteSlice as _;
use gix::index::entry::Stage;
use gix::state::InProgress;

use crate::domain::id::{ObjectId, RunId};
use crate::domain::path::TreePath;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::store::error::{NotOurs, StoreError};
use crate::store::message::{CommitKind, CommitMessage};
use crate::store::{
    Blob, KeptKind, KeptRef, Store, StoreLock, commit, gix_id, id_of, index, objects,
};

impl Store {
    /// Whether we may write now; gives the head. Call `recover` before it.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotOurs`] with what the person is in the middle of.
    pub(crate) fn readiness(&self) -> Result<ObjectId, StoreError> {
        let repository = self.repository();
        if let Some(operation) = repository.state() {
            return Err(self.not_ours(NotOurs::Underway(name_of(&operation))));
        }
        self.assert_on_main(&repository)?;
        let unmerged = self.unmerged()?;
        if !unmerged.is_empty() {
            return Err(self.not_ours(NotOurs::Unmerged { paths: unmerged }));
        }
        self.head()
    }

    /// HEAD must name main, whether main has a commit or not.
    pub(super) fn assert_on_main(&self, repository: &gix::Repository) -> Result<(), StoreError> {
        let head = repository.head();
        let head = head.map_err(|_| {
            // gix looks at the branch as well.
            let of_main = commit::main_of(repository, self.folder()).err();
            let of_main = of_main.filter(|error| matches!(error, StoreError::Damaged { .. }));
            of_main.unwrap_or_else(|| self.damaged("HEAD is empty or unreadable"))
        })?;
        let branch = match head.kind {
            gix::head::Kind::Symbolic(reference) => reference.name,
            gix::head::Kind::Unborn(name) => name,
            gix::head::Kind::Detached { target, .. } => {
                let commit = id_of(&target);
                return Err(self.not_ours(NotOurs::Detached { commit }));
            }
        };
        if branch.as_bstr() == "refs/heads/main" {
            return Ok(());
        }
        let branch = branch.shorten().to_str_lossy().into_owned();
        Err(self.not_ours(NotOurs::OtherBranch { branch }))
    }

    /// Whether HEAD names main and main has no commit yet.
    pub(super) fn readiness_is_unborn(&self) -> Result<bool, StoreError> {
        let repository = self.repository();
        let head = (repository.head()).map_err(self.while_trying_to("read HEAD"))?;
        Ok(head.is_unborn() && self.assert_on_main(&repository).is_ok())
    }

    fn unmerged(&self) -> Result<Vec<TreePath>, StoreError> {
        let Some(index) = index::read(self)? else {
            return Ok(Vec::new());
        };
        let unmerged = |entry: &&gix::index::Entry| entry.stage() != Stage::Unconflicted;
        let path = |entry: &gix::index::Entry| TreePath::parse(entry.path(&index).to_str().ok()?);
        let mut paths: Vec<_> = (index.entries().iter().filter(unmerged))
            .filter_map(path)
            .collect();
        paths.dedup();
        Ok(paths)
    }

    /// Keeps content that is only in the index on `refs/memrev/kept/<run>`:
    /// the commit that we make of the work tree would overwrite it.
    ///
    /// # Errors
    ///
    /// When the index or the head cannot be read or the ref not written.
    pub(crate) fn keep_staged(
        &self,
        lock: &StoreLock,
        run: &RunId,
        now: Timestamp,
    ) -> Result<Option<KeptRef>, StoreError> {
        self.assert_locked(lock);
        let head = self.head()?;
        let staged = self.staged_only(head)?;
        if staged.is_empty() {
            return Ok(None);
        }
        let repository = self.writer();
        let files = staged.iter().map(|(path, blob)| (path, Some(*blob)));
        let tree = self.edit_tree(&repository, head, files)?;
        for kept in self.kept_refs(KeptKind::Kept)? {
            if self.tree_of(&repository, kept.commit)? == tree {
                return Ok(Some(kept));
            }
        }
        let subject = Redacted::literal("kept: content that was only in the index");
        let message = CommitMessage::new(CommitKind::Kept, subject).run(run.clone());
        let commit = objects::Draft {
            tree,
            parents: vec![gix_id(head)],
            message: &message,
            author: &crate::store::author::Author::memrev(),
            now,
        };
        let commit = self.write_commit(&repository, &commit)?;
        self.write_kept_ref(&repository, KeptKind::Kept, run, &commit, now)
            .map(Some)
    }

    /// Staged blobs that are neither the head's nor the work tree's.
    fn staged_only(&self, head: ObjectId) -> Result<BTreeMap<TreePath, Blob>, StoreError> {
        let Some(index) = index::read(self)? else {
            return Ok(BTreeMap::new());
        };
        let snapshot = self.snapshot(head)?;
        let mut staged = BTreeMap::new();
        for entry in index.entries() {
            let Some(path) = entry.path(&index).to_str().ok().and_then(TreePath::parse) else {
                continue;
            };
            let intent_only = entry
                .flags
                .contains(gix::index::entry::Flags::INTENT_TO_ADD);
            let id = id_of(&entry.id);
            if intent_only || snapshot.files.get(&path).is_some_and(|blob| blob.id == id) {
                continue;
            }
            let Some(executable) = index::executable(entry.mode) else {
                continue;
            };
            let on_disk = self.read_work_tree(&path)?;
            if on_disk.is_none_or(|bytes| Self::blob_id(&bytes) != id) {
                staged.insert(path, Blob { id, executable });
            }
        }
        Ok(staged)
    }
}

const fn name_of(operation: &InProgress) -> &'static str {
    match operation {
        InProgress::ApplyMailbox | InProgress::ApplyMailboxRebase => "`git am`",
        InProgress::Bisect => "bisect",
        InProgress::CherryPick | InProgress::CherryPickSequence => "cherry-pick",
        InProgress::Merge => "merge",
        InProgress::Rebase | InProgress::RebaseInteractive => "rebase",
        InProgress::Revert | InProgress::RevertSequence => "revert",
    }
}
