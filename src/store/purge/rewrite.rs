//! Every object that is reached, once, into the new repository.
//!
//! An object in which nothing changes keeps its id, and so does a history up
//! to the first commit that held the text. A changed commit or tag loses its
//! signature, which would not hold any more.
//!
//! # Limits
//!
//! Git's notes on commits are carried over with the new ids while they lie in
//! one folder, as up to some hundred do; more of them keep their old names.

use std::collections::{BTreeMap, HashMap, HashSet};

use gix::bstr::ByteSlice as _;
use gix::objs::tree::{EntryKind, EntryMode};
use gix::objs::{Kind, WriteTo as _};

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::store::error::StoreError;
use crate::store::pack::{Objects, PACK_CONTENT_BYTES};
use crate::store::purge::refs::RefTarget;
use crate::store::purge::{Rewritten, Scrub, id, refs, with_new_ids};
use crate::store::{Blob, Store, gix_id, id_of};
use crate::sys::stop::point;

/// Deepest nesting of folders; one more is no memory of ours.
const DEPTH_MAX: usize = 512;

/// How files of what is withheld begin that name a version by its id.
const WITHHELD_INPUT: &[u8] = b"what: input";

/// What stands in names that held the text: no character that Git refuses.
pub(super) const NAME_MARK: &str = "purged";

pub(super) fn rewrite(
    old: &Store,
    new: &Store,
    scrub: &Scrub<'_>,
) -> Result<Rewritten, StoreError> {
    let mut work = Rewrite {
        old,
        new,
        scrub,
        repository: old.writer(),
        done: HashMap::new(),
        roots: HashMap::new(),
        pending: Objects::new(),
        pending_bytes: 0,
        written: HashSet::new(),
        told: Rewritten::default(),
    };
    work.run()?;
    Ok(work.told)
}

/// One of Git's notes: what it is about, and its text.
type Note = (ObjectId, EntryMode, ObjectId);

pub(super) struct Rewrite<'a> {
    pub(super) old: &'a Store,
    pub(super) new: &'a Store,
    pub(super) scrub: &'a Scrub<'a>,
    pub(super) repository: gix::Repository,
    /// Old and new ids of objects that are in the new repository.
    pub(super) done: HashMap<ObjectId, ObjectId>,
    /// Of the trees of commits, which files may leave.
    roots: HashMap<ObjectId, ObjectId>,
    pending: Objects,
    pending_bytes: usize,
    written: HashSet<ObjectId>,
    told: Rewritten,
}

impl Rewrite<'_> {
    fn run(&mut self) -> Result<(), StoreError> {
        let refs = self.refs()?;
        let stash = self.stash()?;
        // Notes name commits in their trees, which must be done by then.
        let is_about_commits = |one: &&refs::Ref| one.name.starts_with("refs/notes/");
        let target = |one: &refs::Ref| match one.target {
            RefTarget::Object(id) => Some(id),
            RefTarget::Ref(_) => None,
        };
        let mut tips: Vec<ObjectId> = (refs.iter().filter(|one| !is_about_commits(one)))
            .filter_map(target)
            .collect();
        tips.extend(stash.iter().flat_map(|entry| entry.ids));
        let notes: Vec<ObjectId> = (refs.iter().filter(is_about_commits))
            .filter_map(target)
            .collect();
        let mut seen = HashSet::new();
        let (commits, mut tags) = self.reached(&tips, &mut seen)?;
        let (about_commits, more) = self.reached(&notes, &mut seen)?;
        tags.extend(more);
        // All trees first: what they lose tells which lines of messages go.
        for commit in &commits {
            let tree = self.old.tree_of(&self.repository, *commit)?;
            self.root(id(&tree))?;
        }
        for commit in commits.iter().chain(&about_commits) {
            self.commit(*commit)?;
        }
        for object in tags.iter().chain(&tips).chain(&notes) {
            if self.has(*object) {
                self.object(*object)?;
            }
        }
        self.told.files = self.told.blobs.len();
        self.flush()?;
        point("purge.objects_written");
        self.told.only_in_reflog = self.only_in_reflog()?;
        self.write_refs(&refs)?;
        self.write_stash(&stash)?;
        self.write_shallow()
    }

    pub(super) fn failed<E>(&self, attempt: &'static str) -> impl Fn(E) -> StoreError + use<E>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.old.while_trying_to(attempt)
    }

    /// Commits that the tips reach, parents before children, and tags.
    fn reached(
        &self,
        tips: &[ObjectId],
        seen: &mut HashSet<ObjectId>,
    ) -> Result<(Vec<ObjectId>, Vec<ObjectId>), StoreError> {
        let (mut commits, mut tags) = (Vec::new(), Vec::new());
        for tip in tips.iter().filter(|tip| self.has(**tip)) {
            let mut tip = *tip;
            loop {
                let object = self.old.find(&self.repository, gix_id(tip))?;
                if object.kind != Kind::Tag {
                    break;
                }
                tags.push(tip);
                match target_of_tag(&object.data) {
                    Some(target) => tip = target,
                    None => break,
                }
            }
            // `true`: its parents are done.
            let mut stack = vec![(tip, false)];
            while let Some((commit, parents_done)) = stack.pop() {
                if parents_done {
                    commits.push(commit);
                    continue;
                }
                if seen.contains(&commit) || !self.is_commit(commit)? {
                    continue;
                }
                seen.insert(commit);
                stack.push((commit, true));
                let parents = self.old.commit(commit)?.parents;
                let there = parents.into_iter().rev();
                let there = there.filter(|id| self.has(*id));
                stack.extend(there.map(|parent| (parent, false)));
            }
        }
        // Outer tags name inner ones.
        tags.reverse();
        Ok((commits, tags))
    }

    fn has(&self, id: ObjectId) -> bool {
        self.repository.has_object(gix_id(id))
    }

    fn is_commit(&self, id: ObjectId) -> Result<bool, StoreError> {
        Ok(self.old.find(&self.repository, gix_id(id))?.kind == Kind::Commit)
    }

    /// Any object, with all that it needs.
    fn object(&mut self, old: ObjectId) -> Result<ObjectId, StoreError> {
        if let Some(new) = self.done.get(&old) {
            return Ok(*new);
        }
        let object = self.old.find(&self.repository, gix_id(old))?;
        let (kind, data) = (object.kind, object.data.clone());
        drop(object);
        match kind {
            Kind::Blob => self.blob(old),
            Kind::Tree => self.tree(old, 0),
            Kind::Commit => self.commit(old),
            Kind::Tag => self.tag(old, &data),
        }
    }

    fn blob(&mut self, old: ObjectId) -> Result<ObjectId, StoreError> {
        if let Some(new) = self.done.get(&old) {
            return Ok(*new);
        }
        let data = self.old.find(&self.repository, gix_id(old))?.data.clone();
        let mut scrubbed = (self.scrub.bytes)(&data);
        let now = scrubbed.as_deref().unwrap_or(&data);
        if now.starts_with(WITHHELD_INPUT) {
            let renamed = with_new_ids(now, |id| self.done.get(&id).copied());
            scrubbed = renamed.or(scrubbed);
        }
        let new = self.put(Kind::Blob, scrubbed.unwrap_or(data))?;
        if new != old {
            self.told.blobs.insert(old, new);
        }
        self.done.insert(old, new);
        Ok(new)
    }

    /// The tree of a commit, without the files that go.
    fn root(&mut self, old: ObjectId) -> Result<ObjectId, StoreError> {
        let Some(files) = self.scrub.files else {
            return self.tree(old, 0);
        };
        if let Some(new) = self.roots.get(&old) {
            return Ok(*new);
        }
        let mut texts = BTreeMap::new();
        let mut blobs: BTreeMap<TreePath, Blob> = BTreeMap::new();
        self.texts(old, "", 0, &mut texts, &mut blobs)?;
        let edits = files(&texts);
        let edited = if edits.is_empty() {
            old
        } else {
            self.edited(old, &edits, &blobs)?
        };
        let new = self.tree(edited, 0)?;
        self.roots.insert(old, new);
        Ok(new)
    }

    fn texts(
        &self,
        tree: ObjectId,
        prefix: &str,
        depth: usize,
        texts: &mut BTreeMap<TreePath, String>,
        blobs: &mut BTreeMap<TreePath, Blob>,
    ) -> Result<(), StoreError> {
        let tree = self.old.find(&self.repository, gix_id(tree))?;
        for entry in gix::objs::TreeRefIter::from_bytes(&tree.data, gix::hash::Kind::Sha1) {
            let entry = entry.map_err(self.failed("read a tree"))?;
            let Ok(name) = entry.filename.to_str() else {
                continue;
            };
            let path = format!("{prefix}{name}");
            match entry.mode.kind() {
                EntryKind::Tree if depth < DEPTH_MAX => {
                    self.texts(id(entry.oid), &format!("{path}/"), depth + 1, texts, blobs)?;
                }
                kind @ (EntryKind::Blob | EntryKind::BlobExecutable) => {
                    let Some(path) = TreePath::parse(&path) else {
                        continue;
                    };
                    let blob = Blob {
                        id: id(entry.oid),
                        executable: kind == EntryKind::BlobExecutable,
                    };
                    let data = self
                        .old
                        .find(&self.repository, entry.oid.to_owned())?
                        .data
                        .clone();
                    if let Ok(text) = String::from_utf8(data) {
                        texts.insert(path.clone(), text);
                    }
                    blobs.insert(path, blob);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A tree with other files; it and its new objects are in memory.
    fn edited(
        &self,
        tree: ObjectId,
        edits: &BTreeMap<TreePath, Option<String>>,
        blobs: &BTreeMap<TreePath, Blob>,
    ) -> Result<ObjectId, StoreError> {
        let failed = self.failed("write a tree");
        let mut editor = self.repository.edit_tree(gix_id(tree)).map_err(&failed)?;
        for (path, text) in edits {
            match text {
                None => drop(editor.remove(path.as_str()).map_err(&failed)?),
                Some(text) => {
                    let blob = self.old.write_blob(&self.repository, text.as_bytes())?;
                    let executable = blobs.get(path).is_some_and(|blob| blob.executable);
                    let kind = if executable {
                        EntryKind::BlobExecutable
                    } else {
                        EntryKind::Blob
                    };
                    editor
                        .upsert(path.as_str(), kind, gix_id(blob))
                        .map_err(&failed)?;
                }
            }
        }
        Ok(id(&editor.write().map_err(&failed)?))
    }

    fn tree(&mut self, old: ObjectId, depth: usize) -> Result<ObjectId, StoreError> {
        if let Some(new) = self.done.get(&old) {
            return Ok(*new);
        }
        if DEPTH_MAX < depth {
            return Err(self.old.damaged("its folders are nested too deep"));
        }
        let data = self.old.find(&self.repository, gix_id(old))?.data.clone();
        let mut entries: Vec<gix::objs::tree::Entry> = Vec::new();
        let mut is_changed = false;
        for entry in gix::objs::TreeRefIter::from_bytes(&data, gix::hash::Kind::Sha1) {
            let entry = entry.map_err(self.failed("read a tree"))?;
            let was = id(entry.oid);
            let is_there = self.repository.has_object(entry.oid);
            if depth == 0
                && entry.mode.kind() == EntryKind::Tree
                && let Some(notes) = self.fan(was, &entry.filename.to_string(), 1)?
            {
                // The first letters of a new id may lead to another folder.
                is_changed = true;
                for (about, mode, note) in notes {
                    let note = self.blob(note)?;
                    entries.push(gix::objs::tree::Entry {
                        mode,
                        filename: about.to_string().into(),
                        oid: gix_id(note),
                    });
                }
                continue;
            }
            let now = match entry.mode.kind() {
                // A commit of another repository, or a hole in a partial clone.
                EntryKind::Commit => was,
                _ if !is_there => was,
                EntryKind::Tree => self.tree(was, depth + 1)?,
                EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => self.blob(was)?,
            };
            let mut name = self.name(entry.filename);
            if let Some(id) = name.to_str().ok().and_then(ObjectId::parse) {
                // Git's notes are named after what they are about.
                let new = self.done.get(&id).copied().unwrap_or(id);
                name = new.to_string().into();
            }
            while name != entry.filename && entries.iter().any(|it| it.filename == name) {
                name.push(b'+');
            }
            is_changed |= now != was || name != entry.filename;
            entries.push(gix::objs::tree::Entry {
                mode: entry.mode,
                filename: name,
                oid: gix_id(now),
            });
        }
        let mut bytes = data;
        if is_changed {
            entries.sort();
            bytes = Vec::new();
            let tree = gix::objs::Tree { entries };
            tree.write_to(&mut bytes)
                .map_err(self.failed("write a tree"))?;
        }
        let new = self.put(Kind::Tree, bytes)?;
        self.done.insert(old, new);
        Ok(new)
    }

    /// Git's notes below a folder that has the first letters of what they are
    /// about, by the new ids; `None` when it is another folder, or none of the
    /// ids changed.
    fn fan(
        &self,
        tree: ObjectId,
        letters: &str,
        depth: usize,
    ) -> Result<Option<Vec<Note>>, StoreError> {
        let mut notes = Vec::new();
        let is_fan = self.add_fan(tree, letters, depth, &mut notes)?;
        let new = |(about, mode, note): Note| {
            (self.done.get(&about).copied().unwrap_or(about), mode, note)
        };
        let is_changed = |(about, ..): &Note| self.done.get(about).is_some_and(|new| new != about);
        let is_wanted = is_fan && notes.iter().any(is_changed);
        Ok(is_wanted.then(|| notes.into_iter().map(new).collect()))
    }

    fn add_fan(
        &self,
        tree: ObjectId,
        letters: &str,
        depth: usize,
        notes: &mut Vec<Note>,
    ) -> Result<bool, StoreError> {
        let is_hex = letters.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || letters.len() != 2 * depth || DEPTH_MAX < depth {
            return Ok(false);
        }
        let data = self.old.find(&self.repository, gix_id(tree))?.data.clone();
        for entry in gix::objs::TreeRefIter::from_bytes(&data, gix::hash::Kind::Sha1) {
            let entry = entry.map_err(self.failed("read a tree"))?;
            let letters = format!("{letters}{}", entry.filename);
            let is_fan = match entry.mode.kind() {
                EntryKind::Tree => self.add_fan(id(entry.oid), &letters, depth + 1, notes)?,
                EntryKind::Blob => match ObjectId::parse(&letters) {
                    Some(about) => {
                        notes.push((about, entry.mode, id(entry.oid)));
                        true
                    }
                    None => false,
                },
                _ => false,
            };
            if !is_fan {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn name(&self, name: &gix::bstr::BStr) -> gix::bstr::BString {
        match (self.scrub.bytes)(name) {
            None => name.to_owned(),
            Some(scrubbed) => {
                let scrubbed = scrubbed.replace("[purged]", NAME_MARK);
                if scrubbed.is_empty() {
                    NAME_MARK.into()
                } else {
                    scrubbed.into()
                }
            }
        }
    }

    fn commit(&mut self, old: ObjectId) -> Result<ObjectId, StoreError> {
        if let Some(new) = self.done.get(&old) {
            return Ok(*new);
        }
        let data = self.old.find(&self.repository, gix_id(old))?.data.clone();
        let (head, message) = split(&data);
        let mut lines: Vec<(bool, Vec<u8>)> = Vec::new();
        let mut is_changed = false;
        let mut is_signature = false;
        for line in head.split_inclusive(|byte| *byte == b'\n') {
            let named = |key: &[u8]| line.strip_prefix(key).and_then(parse_id);
            is_signature = is_signed(line) || (is_signature && line.starts_with(b" "));
            let now = if let Some(tree) = named(b"tree ") {
                format!("tree {}\n", self.root(tree)?).into_bytes()
            } else if let Some(parent) = named(b"parent ") {
                let parent = self.done.get(&parent).copied().unwrap_or(parent);
                format!("parent {parent}\n").into_bytes()
            } else {
                self.header(line)
            };
            is_changed |= now != line;
            lines.push((is_signature, now));
        }
        let message_now = self.message(message);
        is_changed |= message_now != message;
        let mut bytes = data;
        if is_changed {
            bytes = Vec::new();
            for (_, line) in lines.iter().filter(|(is_signature, _)| !is_signature) {
                bytes.extend_from_slice(line);
            }
            bytes.push(b'\n');
            bytes.extend_from_slice(&message_now);
            self.told.commits += 1;
        }
        let new = self.put(Kind::Commit, bytes)?;
        self.done.insert(old, new);
        Ok(new)
    }

    /// A line of a header, which has to stay one line.
    fn header(&self, line: &[u8]) -> Vec<u8> {
        let Some(scrubbed) = (self.scrub.bytes)(line) else {
            return line.to_vec();
        };
        let key = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        if scrubbed.starts_with(key) && scrubbed.ends_with(b"\n") {
            return scrubbed;
        }
        [key, b" [purged]\n"].concat()
    }

    fn message(&self, message: &[u8]) -> Vec<u8> {
        let scrubbed = (self.scrub.bytes)(message);
        let was_scrubbed = scrubbed.is_some();
        let mut message = scrubbed.unwrap_or_else(|| message.to_vec());
        if let Some(renamed) = with_new_ids(&message, |id| self.done.get(&id).copied()) {
            message = renamed;
        }
        let drops =
            |line: &[u8]| std::str::from_utf8(line).is_ok_and(|line| (self.scrub.drops_line)(line));
        if message.lines().any(drops) {
            let mut kept = Vec::new();
            for (number, line) in message.split_inclusive(|byte| *byte == b'\n').enumerate() {
                if !drops(line.trim_end_with(|c| c == '\n')) {
                    kept.extend_from_slice(line);
                } else if number == 0 {
                    kept.extend_from_slice(b"[purged]\n");
                }
            }
            message = kept;
        }
        if was_scrubbed && message.trim().is_empty() {
            message = b"[purged]\n".to_vec();
        }
        message
    }

    fn tag(&mut self, old: ObjectId, data: &[u8]) -> Result<ObjectId, StoreError> {
        let (head, message) = split(data);
        let mut bytes = Vec::new();
        for line in head.split_inclusive(|byte| *byte == b'\n') {
            if let Some(target) = line.strip_prefix(b"object ").and_then(parse_id) {
                let new = self.object(target)?;
                bytes.extend_from_slice(format!("object {new}\n").as_bytes());
            } else {
                bytes.extend_from_slice(&self.header(line));
            }
        }
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.message(message));
        if bytes != data
            && let Some(at) = bytes.find("-----BEGIN ")
        {
            bytes.truncate(at);
        }
        let new = self.put(Kind::Tag, bytes)?;
        self.done.insert(old, new);
        Ok(new)
    }

    /// Puts an object into the new repository, once.
    fn put(&mut self, kind: Kind, bytes: Vec<u8>) -> Result<ObjectId, StoreError> {
        let hash = gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, &bytes);
        let hash = hash.map_err(self.failed("name an object"))?;
        let new = id_of(&hash);
        if self.written.insert(new) {
            self.pending_bytes += bytes.len();
            self.pending.insert(hash, (kind, bytes));
        }
        if PACK_CONTENT_BYTES < self.pending_bytes {
            self.flush()?;
        }
        Ok(new)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if !self.pending.is_empty() {
            self.new.write_objects(&self.pending)?;
            self.pending.clear();
            self.pending_bytes = 0;
            point("purge.pack_written");
        }
        Ok(())
    }

    /// Commits that main's log knows and nothing else reaches.
    fn only_in_reflog(&self) -> Result<usize, StoreError> {
        let moves = self.old.moves()?;
        let lost: HashSet<ObjectId> = (moves.iter().map(|step| step.new))
            .filter(|id| !self.done.contains_key(id) && self.repository.has_object(gix_id(*id)))
            .collect();
        Ok(lost.len())
    }
}

/// Header and message of a commit or tag, without the blank line between.
fn split(data: &[u8]) -> (&[u8], &[u8]) {
    match data.find("\n\n") {
        Some(at) => (&data[..=at], &data[at + 2..]),
        None => (data, &[]),
    }
}

fn is_signed(line: &[u8]) -> bool {
    [&b"gpgsig "[..], b"gpgsig-sha256 ", b"mergetag "]
        .iter()
        .any(|key| line.starts_with(key))
}

fn parse_id(rest: &[u8]) -> Option<ObjectId> {
    ObjectId::parse(std::str::from_utf8(rest).ok()?.trim_end_matches('\n'))
}

fn target_of_tag(data: &[u8]) -> Option<ObjectId> {
    let line = data.lines().next()?;
    parse_id(line.strip_prefix(b"object ")?)
}
