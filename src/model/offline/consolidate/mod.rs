//! Consolidation by rules: recaps and notes into handbook and summary.
//!
//! A pure function of the head tree's memory files, the staged inputs and what
//! is withheld. It copies words and counts things; it invents nothing. The
//! same inputs give the same bytes, whatever order they come in.
//!
//! # Not in here
//!
//! No files, no clock, no Git: the caller gathers [`OfflineInputs`] and writes
//! what [`OfflineOutput`] says.

pub(crate) mod asks;
mod body;
mod context;
mod facts;
mod gate;
mod handbook;
mod labels;
mod line;
mod note_text;
mod notes_apply;
pub(crate) mod orders;
mod outline;
mod ranking;
mod series;
mod summary;
mod tokens;

use std::collections::{BTreeMap, HashSet};

use crate::domain::entry::{Entry, EntryKind, Rewriting};
use crate::domain::item::Trust;
use crate::domain::note::Note;
use crate::domain::path::{HANDBOOK, SUMMARY, TreePath};
use crate::domain::recap::Recap;
use crate::domain::text::{Raw, Redacted};
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::Withheld;
use crate::text::{entries, redact};

use self::context::Context;

/// What became of an input since the last baseline that consumed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Before<T> {
    /// The last baseline consumed exactly this version.
    Same,
    /// No baseline consumed a version of it (or that one was reverted).
    Absent,
    /// A baseline consumed another version: its content, where the caller
    /// still has it (the blob in the head tree).
    Other(Option<T>),
}

/// A recap that is staged now.
#[derive(Debug, Clone)]
pub(crate) struct RecapInput {
    /// `rollout_summaries/<stem>.md`, as it is named in pointers.
    pub(crate) path: TreePath,
    /// With `raw_memory` where the caller knows it (version 1).
    pub(crate) recap: Recap,
    pub(crate) before: Before<Recap>,
}

/// A recap that the head tree has and staging has not.
#[derive(Debug, Clone)]
pub(crate) struct RemovedRecap {
    pub(crate) path: TreePath,
    /// Its content in the head tree, where it parsed.
    pub(crate) recap: Option<Recap>,
}

/// A note that is staged now.
#[derive(Debug, Clone)]
pub(crate) struct NoteInput {
    pub(crate) note: Note,
    pub(crate) before: Before<Note>,
}

/// A note that the head tree has and staging has not.
#[derive(Debug, Clone)]
pub(crate) struct RemovedNote {
    /// Its content in the head tree, where it parsed.
    pub(crate) note: Option<Note>,
}

/// A file below `extensions/<name>/resources/`.
#[derive(Debug, Clone)]
pub(crate) struct ResourceInput {
    pub(crate) path: TreePath,
    pub(crate) text: Raw,
    /// [`Trust::External`] unless the extension's instructions say otherwise.
    pub(crate) trust: Trust,
    /// Added or changed since the last baseline.
    pub(crate) is_new: bool,
}

/// Everything the rules look at. The order within the lists has no effect.
#[derive(Debug, Clone)]
pub(crate) struct OfflineInputs {
    pub(crate) version: MemoryVersion,
    /// Selected recaps; those without a body (no-ops) are ignored.
    pub(crate) recaps: Vec<RecapInput>,
    pub(crate) removed_recaps: Vec<RemovedRecap>,
    pub(crate) notes: Vec<NoteInput>,
    pub(crate) removed_notes: Vec<RemovedNote>,
    pub(crate) resources: Vec<ResourceInput>,
    /// `memory_summary.md` of the head tree.
    pub(crate) head_summary: Option<Raw>,
    /// `MEMORY.md` of the head tree; not looked at in version 2.
    pub(crate) head_handbook: Option<Raw>,
    /// Entries a person wrote: changed only when a new or edited note says so.
    pub(crate) person_entries: Vec<Entry>,
    /// What a person's lines took the place of, in either file.
    pub(crate) rewritings: Vec<Rewriting>,
    pub(crate) withheld: Vec<Withheld>,
    /// Largest summary that may be published, in bytes (DESIGN 10).
    pub(crate) summary_bytes_max: usize,
}

impl OfflineInputs {
    /// Whether there is anything to remember.
    fn has_any(&self) -> bool {
        !self.recaps.is_empty() || !self.notes.is_empty() || !self.resources.is_empty()
    }
}

/// Why an entry of the head tree is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RetireReason {
    /// All recaps and notes it rests on left the inputs.
    Unsupported,
    /// Its session has a newer recap that no longer says this.
    Superseded,
    /// A newer statement gives the same thing another value.
    Contradicted,
    /// A *correct* note replaced it.
    Corrected,
    /// A *forget* note removed it.
    Forgotten,
    /// It matches something withheld.
    Withheld,
    /// A near-equal entry stands for it.
    Joined,
    /// Out of the summary for its budget; still in handbook or recap.
    Demoted,
}

impl RetireReason {
    /// As the commit message has it.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Unsupported => "its sources left the inputs",
            Self::Superseded => "its session has a newer recap",
            Self::Contradicted => "contradicted by newer",
            Self::Corrected => "corrected by a note",
            Self::Forgotten => "forgotten by a note",
            Self::Withheld => "withheld",
            Self::Joined => "joined with a near-equal entry",
            Self::Demoted => "left the summary for its budget",
        }
    }
}

/// An entry of the head tree that the new files do not have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RetiredEntry {
    /// `memory_summary.md` or `MEMORY.md`.
    pub(crate) file: &'static str,
    pub(crate) text: Redacted,
    pub(crate) reason: RetireReason,
}

/// What the rules made of the inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfflineOutput {
    pub(crate) summary: Redacted,
    /// `None` in version 2.
    pub(crate) handbook: Option<Redacted>,
    /// Sorted by file, then text.
    pub(crate) retired: Vec<RetiredEntry>,
    /// Entry texts that a *forget* note removed or keeps out: to be withheld.
    pub(crate) forgotten: Vec<Redacted>,
    /// *Correct* and *forget* notes that match nothing, sorted.
    pub(crate) unmatched_notes: Vec<TreePath>,
    /// The worker's own words for the commit message, a few lines.
    pub(crate) words: Redacted,
}

/// Folds the inputs into the memory files of `inputs.version`.
pub(crate) fn consolidate(inputs: &OfflineInputs) -> OfflineOutput {
    let context = Context::new(inputs);
    if is_settled(&context) && (context.has_foreign(SUMMARY) || context.has_foreign(HANDBOOK)) {
        return as_it_is(&context);
    }
    let output = fold(&context);
    // Blank lines are somebody's taste, and no reason for a change.
    if is_settled(&context) && says_the_same(&context, &output) {
        return as_it_is(&context);
    }
    output
}

fn fold(context: &Context<'_>) -> OfflineOutput {
    let inputs = context.inputs;
    let handbook = (inputs.version == MemoryVersion::V1).then(|| handbook::update(context));
    let tasks_gone = handbook
        .as_ref()
        .map_or_else(HashSet::new, |book| book.tasks_gone.clone());
    let summary = summary::update(context, &tasks_gone);
    let mut retired: Vec<RetiredEntry> = Vec::new();
    let lists = [
        (
            HANDBOOK,
            handbook.as_ref().map_or(&[][..], |book| &book.retired),
        ),
        (SUMMARY, &summary.retired[..]),
    ];
    for (file, list) in lists {
        retired.extend(list.iter().map(|(text, reason)| RetiredEntry {
            file,
            text: redact::redact_str(text),
            reason: *reason,
        }));
    }
    retired.sort();
    retired.dedup();
    OfflineOutput {
        words: words(inputs, &retired, &summary.remarks),
        summary: redact::redact_str(&sweep(context, SUMMARY, summary.text)),
        handbook: handbook.map(|book| redact::redact_str(&sweep(context, HANDBOOK, book.text))),
        retired,
        forgotten: forgotten(context),
        unmatched_notes: context.effects.unmatched.clone(),
    }
}

/// Takes out what the judge would know as withheld in the form it has here, such
/// as a title that together with its keywords reads like a withheld topic.
/// A person's entries stay, and what holds one.
fn sweep(context: &Context<'_>, file: &'static str, mut text: String) -> String {
    let Some(path) = TreePath::parse(file).filter(|_| context.gate.has_entries()) else {
        return text;
    };
    // Bottom up, so that the places above stay right.
    for entry in entries::parse(&path, &text).into_iter().rev() {
        let is_whole = entry.kind != EntryKind::TaskGroup;
        let Some(bytes) = text.get(entry.bytes.clone()) else {
            continue;
        };
        // Nor what a person wrote in the other file: their words may be here too.
        let is_persons = context.is_person(file, bytes) || context.gate.is_persons(&entry.text);
        if is_whole && context.gate.blocks(&entry.text) && !is_persons {
            text.replace_range(entry.bytes, "");
        }
    }
    text
}

fn forgotten(context: &Context<'_>) -> Vec<Redacted> {
    let texts = context.effects.forgotten.iter();
    texts.map(|text| redact::redact_str(text)).collect()
}

/// The head's files are valid, and the inputs say what they said.
fn is_settled(context: &Context<'_>) -> bool {
    let inputs = context.inputs;
    let summary = inputs.head_summary.as_ref().map(Raw::unredacted);
    let handbook = inputs.head_handbook.as_ref().map_or("", Raw::unredacted);
    let needs_groups = inputs.version == MemoryVersion::V1 && inputs.has_any();
    let has_groups = handbook
        .lines()
        .any(|line| line.starts_with("# Task Group"));
    let has_handbook = inputs.version == MemoryVersion::V2 || inputs.head_handbook.is_some();
    summary.is_some_and(|summary| summary::is_valid(context, summary))
        && has_handbook
        && (has_groups || !needs_groups)
        && context.is_unchanged()
}

fn says_the_same(context: &Context<'_>, output: &OfflineOutput) -> bool {
    let same = |head: Option<&Raw>, new: Option<&Redacted>| {
        let head = head.map_or("", Raw::unredacted).lines().map(str::trim_end);
        let new = new.map_or("", Redacted::as_str).lines().map(str::trim_end);
        let is_full = |line: &&str| !line.is_empty();
        head.filter(is_full).eq(new.filter(is_full))
    };
    let inputs = context.inputs;
    let handbook = inputs
        .head_handbook
        .as_ref()
        .filter(|_| output.handbook.is_some());
    same(inputs.head_summary.as_ref(), Some(&output.summary))
        && same(handbook, output.handbook.as_ref())
}

/// The head's files to the byte.
fn as_it_is(context: &Context<'_>) -> OfflineOutput {
    let inputs = context.inputs;
    let text = |head: Option<&Raw>| redact::redact_str(head.map_or("", Raw::unredacted));
    OfflineOutput {
        summary: text(inputs.head_summary.as_ref()),
        handbook: (inputs.version == MemoryVersion::V1)
            .then(|| text(inputs.head_handbook.as_ref())),
        retired: Vec::new(),
        forgotten: forgotten(context),
        unmatched_notes: context.effects.unmatched.clone(),
        words: Redacted::default(),
    }
}

/// A few lines for the commit message: counts, and what could not be kept to.
fn words(inputs: &OfflineInputs, retired: &[RetiredEntry], remarks: &[String]) -> Redacted {
    let mut lines = vec![format!(
        "folded {} and {} by rules",
        counted(inputs.recaps.len(), "recap"),
        counted(inputs.notes.len(), "note"),
    )];
    let mut by_reason: BTreeMap<RetireReason, usize> = BTreeMap::new();
    for entry in retired {
        *by_reason.entry(entry.reason).or_default() += 1;
    }
    let counts = by_reason.into_iter();
    lines.extend(counts.map(|(reason, count)| {
        let entries = if count == 1 { "entry" } else { "entries" };
        format!("{count} {entries} gone: {}", reason.label())
    }));
    lines.extend(remarks.iter().cloned());
    redact::redact_str(&lines.join("\n"))
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests;
