//! Commits as they are read back, and which inputs they consumed.

use std::collections::{BTreeMap, BTreeSet};

use gix::traverse::commit::topo;

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::message::{self, ChangeKind, CommitKind, Input, Trailers};
use crate::store::{Change, Snapshot, Store, gix_id, id_of};

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) id: ObjectId,
    pub(crate) parents: Vec<ObjectId>,
    pub(crate) author: Author,
    /// Of ours [`Author::memrev`], as long as nobody rewrote it.
    pub(crate) committer: Author,
    pub(crate) authored_at: Timestamp,
    pub(crate) at: Timestamp,
    pub(crate) subject: Raw,
    /// Without the subject and our trailers.
    pub(crate) body: Raw,
    pub(crate) trailers: Trailers,
    /// The commit it takes back: ours of kind `revert`, or a plain `git revert`.
    pub(crate) reverts: Option<ObjectId>,
}

/// What the baselines of a history, less those taken back, have consumed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Consumption {
    /// Every input version that one of them names as added or changed.
    pub(crate) versions: BTreeSet<(TreePath, ObjectId)>,
    /// Per path what the newest of them that names it says. A path that is
    /// not in the tree now and not `Deleted` here is a pending deletion.
    pub(crate) latest: BTreeMap<TreePath, Input>,
}

impl Store {
    /// One commit.
    ///
    /// # Errors
    ///
    /// When it is missing, damaged or no commit.
    pub(crate) fn commit(&self, id: ObjectId) -> Result<Commit, StoreError> {
        self.read_commit(&self.repository(), id)
    }

    /// The commit that a name means to `git rev-parse`: an id or its beginning,
    /// a ref, `HEAD~2`. `None` when it means none, or several.
    ///
    /// # Errors
    ///
    /// When what it names cannot be read.
    pub(crate) fn resolve(&self, name: &str) -> Result<Option<ObjectId>, StoreError> {
        let repository = self.repository();
        let Ok(id) = repository.rev_parse_single(name) else {
            return Ok(None);
        };
        let object = id
            .object()
            .map_err(self.while_trying_to("read an object"))?;
        let commit = object.peel_to_commit();
        Ok(commit.ok().map(|commit| id_of(&commit.id)))
    }

    fn read_commit(
        &self,
        repository: &gix::Repository,
        id: ObjectId,
    ) -> Result<Commit, StoreError> {
        let object = self.find(repository, gix_id(id))?;
        let attempt = "read a commit";
        let object = object
            .try_into_commit()
            .map_err(self.while_trying_to(attempt))?;
        let commit = object.decode().map_err(self.while_trying_to(attempt))?;
        let author = commit.author().map_err(self.while_trying_to(attempt))?;
        let committer = commit.committer().map_err(self.while_trying_to(attempt))?;
        let text = commit.message.to_string();
        let parsed = message::parse(&text);
        Ok(Commit {
            id,
            parents: commit.parents().map(|parent| id_of(&parent)).collect(),
            author: known(&author),
            committer: known(&committer),
            authored_at: Timestamp::from_seconds(author.seconds()),
            at: Timestamp::from_seconds(committer.seconds()),
            subject: Raw::new(parsed.subject),
            body: Raw::new(parsed.body),
            trailers: parsed.trailers,
            reverts: parsed.reverts,
        })
    }

    /// First-parent commits from `from` on, newest first.
    pub(crate) fn history(
        &self,
        from: ObjectId,
    ) -> impl Iterator<Item = Result<Commit, StoreError>> + '_ {
        let repository = self.repository();
        let mut next = Some(from);
        std::iter::from_fn(move || {
            let commit = self.read_commit(&repository, next.take()?);
            if let Ok(commit) = &commit {
                next = commit.parents.first().copied();
            }
            Some(commit)
        })
    }

    /// What a commit changed against its first parent, sorted by path.
    ///
    /// # Errors
    ///
    /// When one of the two trees cannot be read.
    pub(crate) fn changed_paths(&self, commit: ObjectId) -> Result<Vec<Change>, StoreError> {
        let parent = self.commit(commit)?.parents.first().copied();
        let old = parent.map(|parent| self.snapshot(parent)).transpose()?;
        let new = self.snapshot(commit)?;
        Ok(changes_between(old.as_ref(), &new))
    }

    /// What all baselines in the history of `head` have consumed, merged
    /// branches included.
    ///
    /// # Errors
    ///
    /// When the history cannot be read.
    pub(crate) fn consumption(&self, head: ObjectId) -> Result<Consumption, StoreError> {
        let repository = self.repository();
        let failed = self.while_trying_to("walk the history");
        // Children before parents: whether a commit stands is known when it
        // comes, because everything that could take it back came before.
        let none: Option<[gix::ObjectId; 0]> = None;
        let walk = topo::Builder::from_iters(&repository.objects, [gix_id(head)], none).build();
        let mut taken_back = BTreeSet::new();
        let mut consumption = Consumption::default();
        for info in walk.map_err(&failed)? {
            let id = id_of(&info.map_err(&failed)?.id);
            let stands = !taken_back.contains(&id);
            let commit = self.read_commit(&repository, id)?;
            if !stands {
                continue;
            }
            taken_back.extend(commit.reverts);
            if commit.trailers.kind == Some(CommitKind::Baseline) {
                consumption.add(commit.trailers.inputs);
            }
        }
        Ok(consumption)
    }
}

impl Consumption {
    fn add(&mut self, inputs: Vec<Input>) {
        for input in inputs {
            if input.change != ChangeKind::Deleted {
                self.versions.insert((input.path.clone(), input.blob));
            }
            self.latest.entry(input.path.clone()).or_insert(input);
        }
    }
}

fn known(signature: &gix::actor::SignatureRef<'_>) -> Author {
    Author {
        name: signature.name.to_string(),
        email: signature.email.to_string(),
    }
}

/// How the files of two commits differ, sorted by path.
pub(super) fn changes_between(old: Option<&Snapshot>, new: &Snapshot) -> Vec<Change> {
    let none = BTreeMap::new();
    let old = old.map_or(&none, |old| &old.files);
    let paths: BTreeSet<&TreePath> = old.keys().chain(new.files.keys()).collect();
    let change = |path: &TreePath| {
        let (old, new) = (old.get(path), new.files.get(path));
        Some(Change {
            path: path.clone(),
            kind: ChangeKind::between(old, new)?,
            old: old.copied(),
            new: new.copied(),
            modified_at: None,
        })
    };
    paths.into_iter().filter_map(change).collect()
}
