//! Reading and writing blobs, trees and commits.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use gix::bstr::{BStr, ByteSlice as _};
use gix::objs::tree::EntryKind;
use gix::objs::{Write as _, WriteTo as _};

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::message::CommitMessage;
use crate::store::pack::Written;
use crate::store::{Blob, Snapshot, Store, Unfit, UnfitReason, gix_id, id_of, index};

/// Deepest nesting of folders that is read; Git itself knows no limit.
const DEPTH_MAX: usize = 64;

/// More paths than this are looked up by reading the whole tree.
const LOOKED_UP_MAX: usize = 32;

/// A commit that is to be written.
pub(super) struct Draft<'a> {
    pub(super) tree: gix::ObjectId,
    pub(super) parents: Vec<gix::ObjectId>,
    pub(super) message: &'a CommitMessage,
    pub(super) author: &'a Author,
    pub(super) now: Timestamp,
}

impl Store {
    /// The files of a commit.
    ///
    /// # Errors
    ///
    /// When the commit or a tree of it is missing or damaged.
    pub(crate) fn snapshot(&self, commit: ObjectId) -> Result<Snapshot, StoreError> {
        let repository = self.repository();
        let tree = self.tree_of(&repository, commit)?;
        let mut snapshot = Snapshot {
            commit,
            files: BTreeMap::new(),
            unfit: Vec::new(),
        };
        self.read_tree(&repository, tree, "", 0, &mut snapshot)?;
        Ok(snapshot)
    }

    fn read_tree(
        &self,
        repository: &gix::Repository,
        tree: gix::ObjectId,
        prefix: &str,
        depth: usize,
        snapshot: &mut Snapshot,
    ) -> Result<(), StoreError> {
        let tree = self.find(repository, tree)?;
        for entry in gix::objs::TreeRefIter::from_bytes(&tree.data, gix::hash::Kind::Sha1) {
            let entry = entry.map_err(self.while_trying_to("read a tree"))?;
            let path = entry
                .filename
                .to_str()
                .ok()
                .map(|name| format!("{prefix}{name}"));
            let fit = path.as_deref().and_then(TreePath::parse);
            let mut unfit = |why| {
                let path = format!("{prefix}{}", escape(entry.filename));
                snapshot.unfit.push(Unfit { path, why });
            };
            let executable = match (fit, entry.mode.kind()) {
                (Some(_), EntryKind::Tree) if depth < DEPTH_MAX => {
                    let prefix = format!("{prefix}{}/", entry.filename);
                    self.read_tree(
                        repository,
                        entry.oid.to_owned(),
                        &prefix,
                        depth + 1,
                        snapshot,
                    )?;
                    continue;
                }
                (Some(path), kind @ (EntryKind::Blob | EntryKind::BlobExecutable)) => {
                    (path, kind == EntryKind::BlobExecutable)
                }
                (None, _) | (_, EntryKind::Tree) => {
                    unfit(UnfitReason::Name);
                    continue;
                }
                (_, EntryKind::Link) => {
                    unfit(UnfitReason::Symlink);
                    continue;
                }
                (_, EntryKind::Commit) => {
                    unfit(UnfitReason::Repository);
                    continue;
                }
            };
            let (path, executable) = executable;
            let id = id_of(entry.oid);
            snapshot.files.insert(path, Blob { id, executable });
        }
        Ok(())
    }

    /// What a commit has at some paths. Looks up a few, reads all for many.
    pub(super) fn versions_at(
        &self,
        repository: &gix::Repository,
        commit: ObjectId,
        paths: &[&TreePath],
    ) -> Result<BTreeMap<TreePath, Blob>, StoreError> {
        if LOOKED_UP_MAX < paths.len() {
            return Ok(self.snapshot(commit)?.files);
        }
        let attempt = "read a tree";
        let tree = self.find(repository, self.tree_of(repository, commit)?)?;
        let tree = tree
            .try_into_tree()
            .map_err(self.while_trying_to(attempt))?;
        let mut versions = BTreeMap::new();
        for path in paths {
            let found = tree.lookup_entry_by_path(path.as_str());
            let found = found.map_err(self.while_trying_to(attempt))?;
            let version = found.and_then(|entry| {
                let executable = match entry.mode().kind() {
                    EntryKind::Blob => false,
                    EntryKind::BlobExecutable => true,
                    _ => return None,
                };
                let id = id_of(entry.oid());
                Some(Blob { id, executable })
            });
            versions.extend(version.map(|version| ((*path).clone(), version)));
        }
        Ok(versions)
    }

    /// A blob's bytes.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoObject`] when there is none of that name.
    pub(crate) fn blob(&self, id: ObjectId) -> Result<Vec<u8>, StoreError> {
        let repository = self.repository();
        let mut object = self.find(&repository, gix_id(id))?;
        Ok(std::mem::take(&mut object.data))
    }

    /// A blob as text. It comes from disk, so it is raw again.
    ///
    /// # Errors
    ///
    /// As [`Store::blob`], and [`StoreError::NotText`].
    pub(crate) fn text(&self, id: ObjectId) -> Result<Raw, StoreError> {
        let text = String::from_utf8(self.blob(id)?);
        text.map(Raw::new).map_err(|_| StoreError::NotText { id })
    }

    /// The id that `content` has as a blob. Writes nothing.
    pub(crate) fn blob_id(content: &[u8]) -> ObjectId {
        let kind = gix::objs::Kind::Blob;
        let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, content);
        // The hasher fails only on input made to collide, which Git refuses,
        // too. Such a file never equals any version we know.
        id.map_or(ObjectId::from_bytes([0; 20]), |id| id_of(&id))
    }

    pub(super) fn find<'repo>(
        &self,
        repository: &'repo gix::Repository,
        id: gix::ObjectId,
    ) -> Result<gix::Object<'repo>, StoreError> {
        if id == gix::ObjectId::empty_tree(gix::hash::Kind::Sha1) {
            // It need not exist.
            let object = repository.find_object(id);
            return object.map_err(self.while_trying_to("read an object"));
        }
        let found = repository.try_find_object(id);
        let found = found.map_err(self.while_trying_to("read an object"))?;
        found.ok_or(StoreError::NoObject { id: id_of(&id) })
    }

    pub(super) fn tree_of(
        &self,
        repository: &gix::Repository,
        commit: ObjectId,
    ) -> Result<gix::ObjectId, StoreError> {
        let object = self.find(repository, gix_id(commit))?;
        let commit = object
            .try_into_commit()
            .map_err(self.while_trying_to("read a commit"))?;
        let tree = commit
            .tree_id()
            .map_err(self.while_trying_to("read a commit"))?;
        Ok(tree.detach())
    }

    /// Writes the tree of `base` with some paths set or removed.
    pub(super) fn edit_tree<'a>(
        &self,
        repository: &gix::Repository,
        base: ObjectId,
        files: impl Iterator<Item = (&'a TreePath, Option<Blob>)> + Clone,
    ) -> Result<gix::ObjectId, StoreError> {
        let tree = self.tree_of(repository, base)?;
        let failed = self.while_trying_to("write a tree");
        let mut editor = repository.edit_tree(tree).map_err(&failed)?;
        // Removals first: a file may make way for a folder of its name.
        for (path, _) in files.clone().filter(|(_, blob)| blob.is_none()) {
            editor.remove(path.as_str()).map_err(&failed)?;
        }
        for (path, blob) in files.clone() {
            if let Some(blob) = blob {
                let kind = if blob.executable {
                    EntryKind::BlobExecutable
                } else {
                    EntryKind::Blob
                };
                (editor.upsert(path.as_str(), kind, gix_id(blob.id))).map_err(&failed)?;
            }
        }
        let tree = editor.write().map_err(&failed)?.detach();
        self.hold_trees(repository, tree, files.map(|(path, _)| path))?;
        Ok(tree)
    }

    /// Writes the trees above `paths` again, also those that are there: they
    /// may be garbage that another program is about to remove.
    fn hold_trees<'a>(
        &self,
        repository: &gix::Repository,
        tree: gix::ObjectId,
        paths: impl Iterator<Item = &'a TreePath>,
    ) -> Result<(), StoreError> {
        let attempt = "write a tree";
        let root = self.find(repository, tree)?;
        self.put_object(repository, gix::objs::Kind::Tree, &root.data)?;
        let root = root
            .try_into_tree()
            .map_err(self.while_trying_to(attempt))?;
        let folders: BTreeSet<&str> = paths.flat_map(|path| index::above(path.as_str())).collect();
        for folder in folders {
            let found = root.lookup_entry_by_path(folder);
            let found = found.map_err(self.while_trying_to(attempt))?;
            if let Some(entry) = found.filter(|entry| entry.mode().is_tree()) {
                let tree = self.find(repository, entry.object_id())?;
                self.put_object(repository, gix::objs::Kind::Tree, &tree.data)?;
            }
        }
        Ok(())
    }

    /// Writes an object whether there is one of its name or not: that one may
    /// be garbage, or gone from under a repository that is open for long.
    fn put_object(
        &self,
        repository: &gix::Repository,
        kind: gix::objs::Kind,
        content: &[u8],
    ) -> Result<ObjectId, StoreError> {
        let id = repository.objects.write_buf(kind, content);
        Ok(id_of(&id.map_err(self.while_trying_to("write an object"))?))
    }

    pub(super) fn write_blob(
        &self,
        repository: &gix::Repository,
        content: &[u8],
    ) -> Result<ObjectId, StoreError> {
        self.put_object(repository, gix::objs::Kind::Blob, content)
    }

    /// Writes a commit and flushes it with every object written before it.
    pub(super) fn write_commit(
        &self,
        repository: &gix::Repository,
        draft: &Draft<'_>,
    ) -> Result<Written, StoreError> {
        let commit = gix::objs::Commit {
            tree: draft.tree,
            parents: draft.parents.iter().copied().collect(),
            author: signature(draft.author, draft.now),
            committer: signature(&Author::memrev(), draft.now),
            encoding: None,
            message: draft.message.render().into(),
            extra_headers: Vec::new(),
        };
        let mut content = Vec::new();
        (commit.write_to(&mut content)).map_err(self.while_trying_to("write a commit"))?;
        let id = self.put_object(repository, gix::objs::Kind::Commit, &content)?;
        self.persist(repository, id)
    }
}

/// Name, address and time, in UTC.
pub(super) fn signature(author: &Author, now: Timestamp) -> gix::actor::Signature {
    gix::actor::Signature {
        name: author.name.as_str().into(),
        email: author.email.as_str().into(),
        time: gix::date::Time::new(now.seconds(), 0),
    }
}

/// A name as it may be shown: bad bytes and control characters escaped.
pub(super) fn escape(name: &BStr) -> String {
    let mut shown = String::new();
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                shown.extend(c.escape_default());
            } else {
                shown.push(c);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}
