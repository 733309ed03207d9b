//! What is to be purged, out of main and the work tree, by a receipt commit.

use std::collections::BTreeMap;

use crate::consolidate::absorb::{Hands, Place as Ground};
use crate::consolidate::beside;
use crate::domain::id::{ObjectId, RunId};
use crate::domain::path::{FileKind, TreePath, WITHHELD};
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::{Withheld, WithheldReason, WithheldWhat};
use crate::history::forget::{self, Files, Forgotten};
use crate::history::log::is_end_of;
use crate::history::purge::{Parts, PurgeError, Wish};
use crate::notes::withheld_set;
use crate::store::error::StoreError;
use crate::store::message::{CommitKind, CommitMessage};
use crate::store::{NewFile, Publication, Snapshot, Store, StoreLock, TreeChange};
use crate::sys::fs;
use crate::sys::stop;
use crate::text::needle::{Needles, PURGED};
use crate::text::redact;
use crate::text::withheld as withheld_text;

/// The text files of the head.
pub(super) fn files(store: &Store) -> Result<Files, PurgeError> {
    files_of(store, &store.snapshot(store.head()?)?)
}

pub(super) fn files_of(store: &Store, snapshot: &Snapshot) -> Result<Files, PurgeError> {
    let mut files = Files::new();
    for (path, blob) in &snapshot.files {
        match store.text(blob.id) {
            Ok(text) => files.insert(path.clone(), text.unredacted().to_owned()),
            Err(StoreError::NotText { .. }) => None,
            Err(error) => return Err(error.into()),
        };
    }
    Ok(files)
}

/// Files of head and work tree that hold it, or have it in their name.
pub(super) fn files_with(store: &Store, needles: &Needles) -> Result<Vec<TreePath>, PurgeError> {
    let snapshot = store.snapshot(store.head()?)?;
    let mut found: Vec<TreePath> = Vec::new();
    for (path, blob) in &snapshot.files {
        let bytes = store.blob(blob.id)?;
        if needles.is_in(path.as_str().as_bytes()) || needles.is_in(&bytes) {
            found.push(path.clone());
        }
    }
    for change in store.changes(&snapshot)?.files {
        let bytes = store.read_work_tree(&change.path)?.unwrap_or_default();
        if needles.is_in(change.path.as_str().as_bytes()) || needles.is_in(&bytes) {
            found.push(change.path);
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The note or resource of a name that main has or had, the newest first.
pub(super) fn note_in_history(store: &Store, name: &str) -> Result<Option<TreePath>, PurgeError> {
    let is_named = |path: &&TreePath| {
        matches!(path.kind(), FileKind::Note | FileKind::Resource) && is_end_of(path.as_str(), name)
    };
    for commit in store.history(store.head()?) {
        let snapshot = store.snapshot(commit?.id)?;
        if let Some(path) = snapshot.files.keys().find(is_named) {
            return Ok(Some(path.clone()));
        }
    }
    Ok(None)
}

/// Takes it out of the folder; gives the files that had it and the receipt.
pub(super) fn take_out(
    parts: &Parts<'_>,
    store: &Store,
    lock: &StoreLock,
    version: MemoryVersion,
    wish: &Wish,
    receipt: Option<&str>,
) -> Result<(Vec<TreePath>, ObjectId), PurgeError> {
    let now = parts.clock.now();
    let run = parts.ids.run_id(now);
    store.recover(lock)?;
    let head = store.readiness()?;
    let mut found = Vec::new();
    if let Some(needles) = wish.needles() {
        found = files_with(store, needles)?;
        let snapshot = store.snapshot(head)?;
        scrub_uncommitted(store, &snapshot, needles)?;
    }
    stop::point("purge.uncommitted_cleaned");
    let ground = Ground {
        home: parts.home,
        version,
        store,
        modes: parts.modes,
        policy: parts.policy,
        now,
    };
    let hands = Hands {
        lock,
        run: &run,
        person: parts.person,
        ids: parts.ids,
    };
    let absorbed = beside::take_in(&ground, &hands)?;
    stop::point("purge.edits_committed");
    let snapshot = store.snapshot(absorbed.head)?;
    let mut changes = match wish {
        Wish::Texts { needles, .. } => scrubbed(store, version, &snapshot, needles)?,
        Wish::File(path) if snapshot.files.contains_key(path) => {
            found = vec![path.clone()];
            vec![TreeChange {
                path: path.clone(),
                file: None,
            }]
        }
        Wish::File(_) | Wish::Thread(_) | Wish::Note(_) => Vec::new(),
    };
    changes.extend(withheld_file(parts, wish, &snapshot)?);
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    let publication = Publication {
        run: &run,
        expected_head: absorbed.head,
        changes,
        message: message(version, &run, receipt),
        author: parts.person.clone(),
    };
    let published = store.publish(lock, &publication, now)?;
    stop::point("purge.receipt_published");
    Ok((found, published.commit))
}

/// In files that are not as the head has them, where they lie: some of them
/// nobody may commit, and what is committed must not have it.
fn scrub_uncommitted(
    store: &Store,
    snapshot: &Snapshot,
    needles: &Needles,
) -> Result<(), PurgeError> {
    for change in store.changes(snapshot)?.files {
        let Some(bytes) = store.read_work_tree(&change.path)? else {
            continue;
        };
        let file = store.folder().join(change.path.as_str());
        if let Some(scrubbed) = needles.scrub(&bytes) {
            fs::reword(&file, &scrubbed)?;
            stop::point("purge.file_cleaned");
        }
        if change.old.is_none()
            && let Some(path) = new_path(&change.path, needles)
        {
            let target = store.folder().join(path.as_str());
            if let Some(folder) = target.parent() {
                fs::make_folders(folder)?;
            }
            fs::rename(&file, &target)?;
        }
    }
    Ok(())
}

/// A path without the text; `None` for one that does not have it.
fn new_path(path: &TreePath, needles: &Needles) -> Option<TreePath> {
    let scrubbed = needles.scrub_text(path.as_str())?.replace(PURGED, "purged");
    let scrubbed = if scrubbed.is_empty() {
        "purged.md".to_owned()
    } else {
        scrubbed
    };
    TreePath::parse(&scrubbed)
}

/// What the head's files become, mended so that they are valid memory files.
fn scrubbed(
    store: &Store,
    version: MemoryVersion,
    snapshot: &Snapshot,
    needles: &Needles,
) -> Result<Vec<TreeChange>, PurgeError> {
    let files = files_of(store, snapshot)?;
    let mut plan = Forgotten::default();
    for (path, text) in &files {
        if let Some(scrubbed) = needles.scrub_text(text) {
            plan.files.insert(path.clone(), Some(scrubbed));
        }
    }
    forget::settle(version, &files, &mut plan);
    let mut new: BTreeMap<TreePath, Option<String>> = plan.files;
    for (path, text) in &files {
        if let Some(renamed) = new_path(path, needles) {
            let text = new.remove(path).flatten().unwrap_or_else(|| text.clone());
            new.insert(path.clone(), None);
            new.insert(renamed, Some(text));
        }
    }
    // What is no text is nobody's memory, and goes as a whole.
    for (path, blob) in &snapshot.files {
        let is_binary = !files.contains_key(path);
        if is_binary && needles.is_in(&store.blob(blob.id)?) {
            new.insert(path.clone(), None);
        }
    }
    let changes = new.into_iter().map(|(path, text)| TreeChange {
        file: text.map(|text| NewFile {
            content: redact::redact_str(&text),
            executable: snapshot
                .files
                .get(&path)
                .is_some_and(|blob| blob.executable),
        }),
        path,
    });
    Ok(changes.collect())
}

/// A file that was an input must not come in again in this version.
fn withheld_file(
    parts: &Parts<'_>,
    wish: &Wish,
    snapshot: &Snapshot,
) -> Result<Option<TreeChange>, PurgeError> {
    let Wish::File(path) = wish else {
        return Ok(None);
    };
    let blob = snapshot.files.get(path).filter(|_| path.kind().is_input());
    let Some(blob) = blob else {
        return Ok(None);
    };
    let what = WithheldWhat::Input {
        path: path.clone(),
        blob: blob.id,
    };
    let named = crate::consolidate::absorb::name(
        vec![(WithheldReason::Forgotten, what)],
        parts.ids,
        parts.clock.now(),
    );
    withheld_set::save(parts.home.root(), &named)?;
    Ok(named.first().and_then(copy_of))
}

fn copy_of(withheld: &Withheld) -> Option<TreeChange> {
    let path = TreePath::parse(&format!("{WITHHELD}/{}.yaml", withheld.id))?;
    let file = Some(NewFile {
        content: withheld_text::print(withheld),
        executable: false,
    });
    Some(TreeChange { path, file })
}

/// Without a word of what is purged.
fn message(version: MemoryVersion, run: &RunId, receipt: Option<&str>) -> CommitMessage {
    let subject = "forget: purged from memory and history";
    let message = CommitMessage::new(CommitKind::Forget, redact::redact_str(subject))
        .version(version)
        .run(run.clone());
    match receipt {
        Some(hash) => {
            let body = format!("Hash of the text with the key of its home: {hash}");
            message.body(redact::redact_str(&body))
        }
        None => message,
    }
}
