//! The inputs of the next tree, and what is new in them.
//!
//! Pure: a plan names files and blobs; nothing is read or written, so that a
//! pass with nothing to do stays cheap.

use std::collections::{BTreeMap, BTreeSet};

use crate::consolidate::edits::kind_in;
use crate::consolidate::input;
use crate::consolidate::select::Candidate;
use crate::domain::id::ObjectId;
use crate::domain::path::{EXTENSIONS, FileKind, RAW_MEMORIES, TreePath, WITHHELD};
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::{Withheld, WithheldWhat};
use crate::notes;
use crate::store::history::Consumption;
use crate::store::merge::Merged;
use crate::store::message::{ChangeKind, Input};
use crate::store::{Blob, NewFile, Store, TreeChange};
use crate::text::redact;
use crate::text::withheld as withheld_text;

/// Extension resources older than this are let go (reference 3.7).
const RESOURCE_DAYS_MAX: i64 = 7;
/// Length of the stamp at the start of a resource's name.
const STAMP_BYTES: usize = 19;

/// A file of the next tree before the worker has touched it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Planned {
    /// As the head has it.
    Head(Blob),
    New {
        content: Redacted,
        blob: ObjectId,
    },
}

impl Planned {
    pub(crate) const fn blob(&self) -> ObjectId {
        match self {
            Self::Head(blob) => blob.id,
            Self::New { blob, .. } => *blob,
        }
    }
}

/// The next tree before the worker has touched it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) files: BTreeMap<TreePath, Planned>,
    /// Withheld inputs: they stay in the tree, but no worker sees them.
    pub(crate) hidden: BTreeSet<TreePath>,
    /// When the next extension resource expires.
    pub(crate) holds_until: Option<Timestamp>,
}

/// What a plan is made of.
pub(crate) struct PlanFacts<'a> {
    pub(crate) version: MemoryVersion,
    pub(crate) head: &'a BTreeMap<TreePath, Blob>,
    pub(crate) chosen: &'a [Candidate],
    /// The union of home and folder.
    pub(crate) withheld: &'a [Withheld],
    pub(crate) now: Timestamp,
}

/// Syncs the inputs into the head tree: recaps of the selection, raw memories
/// (version 1), resources within their time, copies of what is withheld.
///
/// Recaps that are not selected leave; notes never do.
///
/// # Source
///
/// Reference 6.4, rows 76 to 79.
pub(crate) fn plan(facts: &PlanFacts<'_>) -> Plan {
    let mut plan = Plan::default();
    for (path, blob) in facts.head {
        let kind = kind_in(facts.version, path);
        if kind == FileKind::Recap || kind == FileKind::RawMemories {
            continue;
        }
        match expiry(path, kind, facts.head) {
            Some(expires_at) if expires_at <= facts.now => continue,
            expires_at => plan.holds_until = earlier(plan.holds_until, expires_at),
        }
        if kind.is_input() && is_withheld(path, blob.id, facts.withheld) {
            plan.hidden.insert(path.clone());
        }
        plan.files.insert(path.clone(), Planned::Head(*blob));
    }
    for candidate in facts.chosen {
        let (path, copy) = (candidate.path.clone(), candidate.copy.clone());
        put(&mut plan, facts.head, path, copy, candidate.blob);
    }
    if facts.version == MemoryVersion::V1 {
        let content = input::raw_memories(facts.chosen);
        let blob = Store::blob_id(content.as_str().as_bytes());
        let path = TreePath::parse(RAW_MEMORIES).expect("a constant path");
        put(&mut plan, facts.head, path, content, blob);
    }
    put_copies(&mut plan, facts.head, facts.withheld);
    plan
}

/// The tree that a kept result makes of a head, with copies of everything that
/// is withheld by now. Memory files stay as the head has them.
pub(crate) fn offered(
    version: MemoryVersion,
    head: &BTreeMap<TreePath, Blob>,
    merged: &Merged,
    withheld: &[Withheld],
) -> Plan {
    let mut plan = Plan::default();
    for (path, blob) in head {
        plan.files.insert(path.clone(), Planned::Head(*blob));
    }
    for file in &merged.files {
        let kind = kind_in(version, &file.path);
        // What is withheld goes by what is withheld now.
        if kind.is_output() || kind == FileKind::Withheld {
            continue;
        }
        match &file.file {
            None => {
                plan.files.remove(&file.path);
            }
            Some(text) => {
                let content = redact::redact(&text.content);
                let blob = Store::blob_id(content.as_str().as_bytes());
                put(&mut plan, head, file.path.clone(), content, blob);
            }
        }
    }
    put_copies(&mut plan, head, withheld);
    let is_hidden = |(path, planned): &(&TreePath, &Planned)| {
        kind_in(version, path).is_input() && is_withheld(path, planned.blob(), withheld)
    };
    let hidden = plan.files.iter().filter(is_hidden);
    plan.hidden = hidden.map(|(path, _)| path.clone()).collect();
    plan
}

fn put_copies(plan: &mut Plan, head: &BTreeMap<TreePath, Blob>, withheld: &[Withheld]) {
    for entry in withheld {
        let content = withheld_text::print(entry);
        let blob = Store::blob_id(content.as_str().as_bytes());
        if let Some(path) = TreePath::parse(&format!("{WITHHELD}/{}.yaml", entry.id)) {
            put(plan, head, path, content, blob);
        }
    }
}

fn put(
    plan: &mut Plan,
    head: &BTreeMap<TreePath, Blob>,
    path: TreePath,
    content: Redacted,
    blob: ObjectId,
) {
    let planned = match head.get(&path) {
        Some(old) if old.id == blob => Planned::Head(*old),
        _ => Planned::New { content, blob },
    };
    plan.files.insert(path, planned);
}

fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

/// When a resource goes: direct children of `resources/` that end in `.md`
/// and begin with a stamp, of an extension that has instructions.
fn expiry(path: &TreePath, kind: FileKind, head: &BTreeMap<TreePath, Blob>) -> Option<Timestamp> {
    let parts: Vec<&str> = path.as_str().split('/').collect();
    let [_, extension, "resources", name] = parts.as_slice() else {
        return None;
    };
    let is_markdown = (name.rsplit_once('.')).is_some_and(|(_, end)| end == "md");
    if kind != FileKind::Resource || !is_markdown {
        return None;
    }
    let instructions = TreePath::parse(&format!("{EXTENSIONS}/{extension}/instructions.md"))?;
    head.get(&instructions)?;
    let stamp = Timestamp::parse_file_stamp(name.get(..STAMP_BYTES)?)?;
    Some(stamp.plus_seconds(RESOURCE_DAYS_MAX * 86_400))
}

fn is_withheld(path: &TreePath, blob: ObjectId, withheld: &[Withheld]) -> bool {
    withheld.iter().any(|entry| {
        matches!(&entry.what, WithheldWhat::Input { path: held, blob: version }
            if held == path && *version == blob)
    })
}

/// Input files of a tree that are withheld.
pub(crate) fn held_back(
    version: MemoryVersion,
    files: &BTreeMap<TreePath, Blob>,
    withheld: &[Withheld],
) -> Vec<TreePath> {
    let is_held = |(path, blob): &(&TreePath, &Blob)| {
        kind_in(version, path).is_input() && is_withheld(path, blob.id, withheld)
    };
    let held = files.iter().filter(is_held);
    held.map(|(path, _)| path.clone()).collect()
}

/// What [`inputs`] compares a plan with.
pub(crate) struct Before<'a> {
    pub(crate) version: MemoryVersion,
    /// The tree of the last baseline that was not taken back; empty without one.
    pub(crate) base: &'a BTreeMap<TreePath, Blob>,
    /// What the standing baselines have consumed.
    pub(crate) consumption: &'a Consumption,
}

impl Before<'_> {
    /// The version of an input that counts as consumed, if any does.
    pub(crate) fn consumed(&self, path: &TreePath) -> Option<&Input> {
        let latest = self.consumption.latest.get(path)?;
        (latest.change != ChangeKind::Deleted).then_some(latest)
    }

    fn has_consumed(&self, path: &TreePath, blob: ObjectId) -> bool {
        let version = (path.clone(), blob);
        self.consumed(path).is_some() && self.consumption.versions.contains(&version)
    }
}

/// The inputs that no standing baseline has consumed, by path; also memory
/// files that a person changed since the last baseline.
///
/// The thread ids of new recaps are filled in by the caller.
pub(crate) fn inputs(plan: &Plan, before: &Before<'_>) -> Vec<Input> {
    let mut found: BTreeMap<TreePath, Input> = BTreeMap::new();
    let mut add = |path: &TreePath, change: ChangeKind, blob: ObjectId| {
        let input = Input {
            change,
            path: path.clone(),
            blob,
            thread_id: None,
        };
        found.insert(path.clone(), input);
    };
    for (path, planned) in &plan.files {
        let blob = planned.blob();
        let kind = kind_in(before.version, path);
        // A version that was let go and comes again is news.
        let is_new_here = matches!(planned, Planned::New { .. });
        let is_consumed = before.has_consumed(path, blob) && !is_new_here;
        if plan.hidden.contains(path) || is_consumed || is_seeded(path, blob) {
            continue;
        }
        if kind.is_input() {
            add(
                path,
                added_or_modified(before.consumed(path).is_some()),
                blob,
            );
        } else if kind.is_output() {
            let base = before.base.get(path).map(|base| base.id);
            if base.is_some_and(|base| base != blob) {
                add(path, ChangeKind::Modified, blob);
            } else if base.is_none() && !before.base.is_empty() {
                add(path, ChangeKind::Added, blob);
            }
        }
    }
    for (path, latest) in &before.consumption.latest {
        let is_shown = plan.files.contains_key(path) && !plan.hidden.contains(path);
        let kind = kind_in(before.version, path);
        if kind.is_input() && !is_shown && latest.change != ChangeKind::Deleted {
            let input = Input {
                change: ChangeKind::Deleted,
                ..latest.clone()
            };
            found.insert(path.clone(), input);
        }
    }
    found.into_values().collect()
}

/// The instructions that this program itself puts into every memory folder
/// are no news.
fn is_seeded(path: &TreePath, blob: ObjectId) -> bool {
    (notes::SEEDS.iter())
        .any(|(seed, text)| path.as_str() == *seed && blob == Store::blob_id(text.as_bytes()))
}

const fn added_or_modified(is_known: bool) -> ChangeKind {
    if is_known {
        ChangeKind::Modified
    } else {
        ChangeKind::Added
    }
}

/// Whether the worker has something to look at: an input, or raw memories
/// that changed on their own.
pub(crate) fn has_work(plan: &Plan, inputs: &[Input], head: &BTreeMap<TreePath, Blob>) -> bool {
    let is_changed_raw = |(path, planned): (&TreePath, &Planned)| {
        let is_raw = path.as_str() == RAW_MEMORIES && head.contains_key(path);
        is_raw && matches!(planned, Planned::New { .. })
    };
    !inputs.is_empty() || plan.files.iter().any(is_changed_raw)
}

/// How the planned tree differs from the head.
pub(crate) fn changes(plan: &Plan, head: &BTreeMap<TreePath, Blob>) -> Vec<TreeChange> {
    let new = plan
        .files
        .iter()
        .filter_map(|(path, planned)| match planned {
            Planned::Head(_) => None,
            Planned::New { content, .. } => Some(TreeChange {
                path: path.clone(),
                file: Some(NewFile {
                    content: content.clone(),
                    executable: false,
                }),
            }),
        });
    let gone = (head.keys())
        .filter(|path| !plan.files.contains_key(*path))
        .map(|path| TreeChange {
            path: path.clone(),
            file: None,
        });
    let mut changes: Vec<TreeChange> = new.chain(gone).collect();
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

#[cfg(test)]
mod tests;
