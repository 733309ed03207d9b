//! Commits beside main: refused attempts, and what was only in the index.

use gix::refs::transaction::{PreviousValue, RefEdit};

use crate::domain::id::{ObjectId, RunId};
use crate::domain::time::Timestamp;
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::message::CommitMessage;
use crate::store::pack::Written;
use crate::store::{KeptKind, KeptRef, Store, StoreLock, TreeChange, gix_id, id_of, objects};
use crate::sys::stop::point;

impl KeptKind {
    /// With a slash at its end.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Attempt => "refs/memrev/attempts/",
            Self::Kept => "refs/memrev/kept/",
        }
    }
}

impl KeptRef {
    /// The name that `git show` takes.
    pub(crate) fn name(&self) -> String {
        format!("{}{}", self.kind.prefix(), self.run)
    }
}

impl Store {
    /// Keeps `parent` with `changes` as a commit beside main.
    ///
    /// # Errors
    ///
    /// When an object or the ref cannot be written.
    #[expect(clippy::too_many_arguments, reason = "one call, each its own type")]
    pub(crate) fn keep_ref(
        &self,
        lock: &StoreLock,
        kind: KeptKind,
        run: &RunId,
        parent: ObjectId,
        changes: &[TreeChange],
        message: &CommitMessage,
        now: Timestamp,
    ) -> Result<KeptRef, StoreError> {
        self.assert_locked(lock);
        let repository = self.writer();
        let files = self.write_blobs(&repository, changes)?;
        let each = files.iter().map(|(path, blob)| (path, *blob));
        let tree = self.edit_tree(&repository, parent, each)?;
        let draft = objects::Draft {
            tree,
            parents: vec![gix_id(parent)],
            message,
            author: &Author::memrev(),
            now,
        };
        let commit = self.write_commit(&repository, &draft)?;
        self.write_kept_ref(&repository, kind, run, &commit, now)
    }

    pub(super) fn write_kept_ref(
        &self,
        repository: &gix::Repository,
        kind: KeptKind,
        run: &RunId,
        written: &Written,
        now: Timestamp,
    ) -> Result<KeptRef, StoreError> {
        let commit = written.commit;
        let kept = KeptRef {
            kind,
            run: run.clone(),
            commit,
        };
        point("kept.objects_flushed");
        self.assert_written(written)?;
        let name = self.full_name(&kept)?;
        let edit = RefEdit::update(name, gix_id(commit), PreviousValue::Any, "memrev: kept");
        self.edit_ref(repository, edit, now)?;
        point("kept.written");
        Ok(kept)
    }

    /// All commits beside main of that kind, oldest run first.
    ///
    /// # Errors
    ///
    /// When the refs cannot be read.
    pub(crate) fn kept_refs(&self, kind: KeptKind) -> Result<Vec<KeptRef>, StoreError> {
        let repository = self.repository();
        let platform = repository.references();
        let platform = platform.map_err(self.while_trying_to("list refs"))?;
        let found = platform.prefixed(kind.prefix());
        let mut kept = Vec::new();
        for reference in found.map_err(self.while_trying_to("list refs"))? {
            let reference = reference.map_err(self.while_trying_to("list refs"))?;
            let name = reference.name().as_bstr().to_string();
            let run = name.strip_prefix(kind.prefix());
            if let (Some(run), Some(commit)) = (run, reference.target().try_id()) {
                let run = RunId::new(run.to_owned());
                let commit = id_of(commit);
                kept.push(KeptRef { kind, run, commit });
            }
        }
        kept.sort();
        Ok(kept)
    }

    /// Removes one; a missing one is fine.
    ///
    /// # Errors
    ///
    /// When the ref cannot be removed.
    pub(crate) fn remove_kept_ref(
        &self,
        lock: &StoreLock,
        kept: &KeptRef,
    ) -> Result<(), StoreError> {
        self.assert_locked(lock);
        let repository = self.repository();
        let name = self.full_name(kept)?;
        let found = (repository.try_find_reference(name.as_ref()))
            .map_err(self.while_trying_to("find a ref"))?;
        if found.is_none() {
            return Ok(());
        }
        let edit = RefEdit::delete(name, PreviousValue::Any);
        self.edit_ref(&repository, edit, Timestamp::default())?;
        point("kept.removed");
        Ok(())
    }

    fn full_name(&self, kept: &KeptRef) -> Result<gix::refs::FullName, StoreError> {
        let name = gix::refs::FullName::try_from(kept.name());
        name.map_err(self.while_trying_to("name a ref"))
    }

    /// An isolated repository has no committer of its own, and gix wants one
    /// for the log.
    fn edit_ref(
        &self,
        repository: &gix::Repository,
        edit: RefEdit,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let committer = objects::signature(&Author::memrev(), now);
        let mut time = gix::date::parse::TimeBuf::default();
        let edited = repository.edit_references_as(Some(edit), Some(committer.to_ref(&mut time)));
        edited
            .map(drop)
            .map_err(self.while_trying_to("write a ref"))
    }
}
