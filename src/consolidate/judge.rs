//! Whether a worker's result may become the next baseline: code alone decides.
//!
//! [`touched`] holds what the worker left in staging against the allow-list,
//! [`judge`] looks at the content: validation, secrets, withheld entries, the
//! person's entries, losses.
//!
//! Pure. A person's own edits never pass through here; they are committed as
//! they are, and `check` says what is wrong with them.

use std::collections::{BTreeMap, BTreeSet};

use crate::consolidate::coverage::{self, FreshRecap, LeftOutRecap};
use crate::consolidate::edits::{kind_in, states_something};
pub(crate) use crate::consolidate::fault::Fault;
use crate::consolidate::guard::{
    self, GuardFacts, GuardFault, GuardLimits, Loss, LossCount, Reason,
};
use crate::consolidate::orders;
use crate::consolidate::plan::Plan;
use crate::consolidate::theirs::Theirs;
use crate::domain::entry::Entry;
use crate::domain::id::ThreadId;
use crate::domain::limits::{SNAPSHOT_FILE_BYTES_MAX, SUMMARY_V2_BYTES_LIMIT};
use crate::domain::note::{Note, NoteKind};
use crate::domain::path::{FileKind, TreePath, WORKSPACE_DIFF};
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::{EntryHashes, Withheld, WithheldWhat};
use crate::model::offline::consolidate::asks::Asking;
use crate::model::offline::consolidate::orders::Carried;
use crate::model::{Retired, Skipped};
use crate::store::Store;
use crate::text::entries;
use crate::text::redact;
use crate::text::shingles::{self, Statement};
use crate::validate;

/// What lies in staging after the worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    File {
        bytes: Vec<u8>,
        executable: bool,
    },
    TooLarge {
        bytes: u64,
    },
    Symlink,
    /// Neither a file nor a folder that is looked into.
    Unfit {
        why: &'static str,
    },
    /// More new files or bytes than may be; the rest was not looked at.
    Flood {
        files: usize,
        bytes: u64,
    },
}

/// An output file as the worker left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputFile {
    pub(crate) text: String,
    pub(crate) executable: bool,
}

/// The output files of a tree.
pub(crate) type Outputs = BTreeMap<TreePath, OutputFile>;

/// The outputs in staging, and what was touched that is not the worker's.
///
/// `seen` is everything in staging but folders, by path as a string. The diff
/// file is nobody's: it is never committed, so a change of it says nothing.
pub(crate) fn touched(
    version: MemoryVersion,
    plan: &Plan,
    seen: &BTreeMap<String, Seen>,
) -> (Outputs, Vec<Fault>) {
    let (mut outputs, mut faults) = (Outputs::new(), Vec::new());
    for (name, seen) in seen {
        match look(version, plan, name, seen) {
            Ok(Some((path, file))) => {
                outputs.insert(path, file);
            }
            Ok(None) => {}
            Err(fault) => faults.push(fault),
        }
    }
    if faults
        .iter()
        .any(|fault| matches!(fault, Fault::Flood { .. }))
    {
        return (outputs, faults);
    }
    for path in plan.files.keys() {
        let is_output = kind_in(version, path).is_output();
        let is_shown = !plan.hidden.contains(path);
        if is_shown && !is_output && !seen.contains_key(path.as_str()) {
            faults.push(not_allowed(path.as_str(), "removed"));
        }
    }
    (outputs, faults)
}

fn look(
    version: MemoryVersion,
    plan: &Plan,
    name: &str,
    seen: &Seen,
) -> Result<Option<(TreePath, OutputFile)>, Fault> {
    let path = TreePath::parse(name);
    let is_output = (path.as_ref()).is_some_and(|path| kind_in(version, path).is_output());
    let (bytes, executable) = match seen {
        Seen::Symlink => {
            return Err(Fault::Symlink {
                path: name.to_owned(),
            });
        }
        Seen::Unfit { why } => {
            let path = name.to_owned();
            return Err(Fault::Unfit { path, why });
        }
        Seen::Flood { files, bytes } => {
            let (files, bytes) = (*files, *bytes);
            return Err(Fault::Flood { files, bytes });
        }
        Seen::TooLarge { bytes } => {
            let (path, bytes) = (name.to_owned(), *bytes);
            return Err(Fault::TooLarge { path, bytes });
        }
        Seen::File { .. } if name == WORKSPACE_DIFF => return Ok(None),
        Seen::File { bytes, executable } => (bytes, *executable),
    };
    let Some(path) = path else {
        return Err(not_allowed(name, "made"));
    };
    if !is_output {
        return unchanged(plan, &path, bytes).map(|()| None);
    }
    if bytes.len() as u64 > SNAPSHOT_FILE_BYTES_MAX {
        let (path, bytes) = (name.to_owned(), bytes.len() as u64);
        return Err(Fault::TooLarge { path, bytes });
    }
    match String::from_utf8(bytes.clone()) {
        Ok(text) => Ok(Some((path, OutputFile { text, executable }))),
        Err(_) => Err(Fault::NotUtf8 { path }),
    }
}

fn unchanged(plan: &Plan, path: &TreePath, bytes: &[u8]) -> Result<(), Fault> {
    match plan.files.get(path) {
        Some(planned) if Store::blob_id(bytes) == planned.blob() => Ok(()),
        Some(_) => Err(not_allowed(path.as_str(), "changed")),
        None => Err(not_allowed(path.as_str(), "made")),
    }
}

fn not_allowed(path: &str, what: &'static str) -> Fault {
    Fault::NotAllowed {
        path: path.to_owned(),
        what,
    }
}

/// A note that is new or changed in this pass.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FreshNote {
    pub(crate) path: TreePath,
    pub(crate) text: String,
    pub(crate) asking: Asking,
}

impl FreshNote {
    pub(crate) fn of(note: &Note) -> Self {
        Self {
            path: note.path.clone(),
            text: note.text.unredacted().to_owned(),
            asking: Asking::of(note),
        }
    }

    /// It asks to correct or to forget.
    pub(crate) fn is_order(&self) -> bool {
        matches!(self.asking.kind(), NoteKind::Correct | NoteKind::Forget)
    }

    /// It asks for a change of this entry: by the rule of the offline worker,
    /// or in words that are like the entry's.
    pub(crate) fn asks_about(&self, entry: &str) -> bool {
        self.is_order() && (self.asking.is_about(entry) || guard::speaks_of(&self.text, entry))
    }
}

/// What [`judge`] knows besides the result.
pub(crate) struct JudgeFacts<'a> {
    pub(crate) version: MemoryVersion,
    pub(crate) old: &'a Outputs,
    pub(crate) new: &'a Outputs,
    /// The other files of the new tree.
    pub(crate) beside: Beside<'a>,
    /// The consumed version of recaps that changed in this pass.
    pub(crate) old_recaps: &'a BTreeMap<ThreadId, String>,
    pub(crate) threads: &'a BTreeSet<ThreadId>,
    pub(crate) fresh_threads: &'a BTreeSet<ThreadId>,
    pub(crate) fresh_notes: &'a [FreshNote],
    pub(crate) gone_notes: &'a [String],
    /// What code made of the notes before the worker started.
    pub(crate) carried: &'a Carried,
    /// Code carried notes out on summary and handbook too.
    pub(crate) is_by_code: bool,
    /// Recaps that are new or changed in this pass.
    pub(crate) fresh_recaps: &'a [FreshRecap],
    pub(crate) retired: &'a [Retired],
    /// New recaps that the worker found nothing in.
    pub(crate) skipped: &'a [Skipped],
    pub(crate) withheld: &'a [Withheld],
    /// Entries of the head that the person wrote.
    pub(crate) person_entries: &'a [Entry],
    /// Errors in the person's lines, which stay as they are.
    pub(crate) theirs: &'a Theirs,
    pub(crate) earlier: &'a [LossCount],
    pub(crate) limits: &'a GuardLimits,
    /// Whether the tree has recaps or notes to remember at all.
    pub(crate) has_inputs: bool,
}

/// What became of a result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdict {
    /// Nothing in it means accepted.
    pub(crate) faults: Vec<Fault>,
    pub(crate) losses: Vec<Loss>,
    /// New recaps that nothing cites, each with the worker's reason.
    pub(crate) left_out: Vec<LeftOutRecap>,
    pub(crate) entries_before: usize,
    pub(crate) entries_after: usize,
    /// A person took the result as it is: limits of the loss guard that it
    /// goes over.
    pub(crate) accepted_over: Option<Vec<GuardFault>>,
}

impl Verdict {
    pub(crate) fn is_accepted(&self) -> bool {
        self.faults.is_empty()
    }

    /// The person's word stands for the limits of the loss guard, and for
    /// nothing else.
    pub(crate) fn accept(&mut self) {
        let mut over = Vec::new();
        let faults = std::mem::take(&mut self.faults);
        for fault in faults {
            match fault {
                Fault::Guard(fault) => over.push(fault),
                fault => self.faults.push(fault),
            }
        }
        for loss in &mut self.losses {
            if loss.reason == Reason::Unexplained {
                loss.reason = Reason::Accepted;
            }
        }
        self.accepted_over = Some(over);
    }
}

/// Looks at the content of a result.
pub(crate) fn judge(facts: &JudgeFacts<'_>) -> Verdict {
    let old = all_entries(facts.old);
    let new = all_entries(facts.new);
    let mut faults = secrets(facts.new);
    let errors = errors_in_outputs(facts.version, facts.new, facts.beside, true);
    faults.extend(facts.theirs.excuse(facts.new, errors));
    faults.extend(withheld(&new, facts));
    if is_far_too_large(facts) {
        // Refused for its size alone; comparing every entry with every other
        // would take minutes.
        return Verdict {
            faults,
            entries_before: old.len(),
            entries_after: new.len(),
            ..Verdict::default()
        };
    }
    faults.extend(overruled(&new, facts));
    let accounted = coverage::account(facts.version, &new, facts.fresh_recaps, facts.skipped);
    faults.extend(accounted.unnamed);
    faults.extend(orders::check(facts, &new));

    let retired = retired(facts);
    let losses = guard::losses(&GuardFacts {
        old: &old,
        new: &new,
        recaps: facts.beside.recaps,
        is_full: is_full(facts),
        old_recaps: facts.old_recaps,
        threads: facts.threads,
        fresh_threads: facts.fresh_threads,
        fresh_notes: facts.fresh_notes,
        gone_notes: facts.gone_notes,
        taken_out: &facts.carried.taken_out,
        retired: &retired,
        withheld: facts.withheld,
    });
    let limits = guard::verdict(
        &losses,
        old.len(),
        new.len(),
        facts.has_inputs,
        facts.earlier,
        facts.limits,
    );
    faults.extend(limits.into_iter().map(Fault::Guard));
    faults.retain(|fault| !is_empty_by_wish(fault, &old, &new, facts));
    Verdict {
        faults,
        losses,
        left_out: accounted.left_out,
        entries_before: old.len(),
        entries_after: new.len(),
        accepted_over: None,
    }
}

/// Whether a fault says no more than that nothing is left, and the person took
/// away all that was said: a memory whose every statement is withheld is
/// validly empty. Fresh recaps are accounted for apart.
fn is_empty_by_wish(fault: &Fault, old: &[Entry], new: &[Entry], facts: &JudgeFacts<'_>) -> bool {
    let file = match fault {
        Fault::Guard(GuardFault::NothingLeft) => None,
        Fault::Invalid { code, path, .. } if matches!(*code, "M002" | "S006") => {
            let left = facts.new.get(path);
            if left.is_none_or(|file| file.text.trim().is_empty()) {
                // Not even a frame for what comes next.
                return false;
            }
            Some(path)
        }
        _ => return false,
    };
    let is_held = |entry: &Entry| {
        facts.withheld.iter().any(|held| match &held.what {
            WithheldWhat::Entry(hashes) => shingles::matches(hashes, &entry.text),
            _ => false,
        })
    };
    let is_of = |entry: &&Entry| file.is_none_or(|path| entry.path == *path);
    let said = (old.iter().filter(is_of)).filter(|entry| states_something(entry));
    let said: Vec<&Entry> = said.collect();
    if said.is_empty() {
        // Taken away before; nothing may be said elsewhere either.
        let mut held = facts.withheld.iter();
        let holds_entries = held.any(|held| matches!(held.what, WithheldWhat::Entry(_)));
        return holds_entries && !new.iter().any(states_something);
    }
    said.into_iter().all(is_held)
}

/// Whether the new summary is out of all proportion to its budget.
fn is_far_too_large(facts: &JudgeFacts<'_>) -> bool {
    const TIMES: usize = 4;
    let summary = (facts.new.iter()).find(|(path, _)| path.kind() == FileKind::Summary);
    summary.is_some_and(|(_, file)| facts.beside.summary_bytes_max * TIMES < file.text.len())
}

/// Whether the new summary takes two thirds of its budget or more.
fn is_full(facts: &JudgeFacts<'_>) -> bool {
    let summary = (facts.new.iter()).find(|(path, _)| path.kind() == FileKind::Summary);
    summary.is_some_and(|(_, file)| facts.beside.summary_bytes_max * 2 <= file.text.len() * 3)
}

/// These outputs with other texts: what is not among the texts is gone.
pub(crate) fn with_texts(outputs: &Outputs, texts: &BTreeMap<TreePath, String>) -> Outputs {
    let of = |(path, text): (&TreePath, &String)| {
        let executable = outputs.get(path).is_some_and(|file| file.executable);
        let text = text.clone();
        (path.clone(), OutputFile { text, executable })
    };
    texts.iter().map(of).collect()
}

/// Entries of summary and handbook, in file order.
pub(crate) fn all_entries(outputs: &Outputs) -> Vec<Entry> {
    (outputs.iter())
        .filter(|(path, _)| matches!(path.kind(), FileKind::Summary | FileKind::Handbook))
        .flat_map(|(path, file)| entries::parse(path, &file.text))
        .filter(|entry| !entry.text.trim().is_empty())
        .collect()
}

fn secrets(outputs: &Outputs) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, file) in outputs {
        if let Some(line_number) = secret_lines(&file.text).first().copied() {
            let path = path.clone();
            faults.push(Fault::Secret { path, line_number });
        }
    }
    faults
}

/// The numbers of lines that hold, or begin, what looks like a secret.
pub(crate) fn secret_lines(text: &str) -> Vec<usize> {
    let line_of = |at: usize| {
        let before = text.get(..at).unwrap_or_default();
        before.matches('\n').count() + 1
    };
    let findings = redact::findings(text);
    let mut lines: Vec<usize> = findings.iter().map(|it| line_of(it.bytes.start)).collect();
    lines.dedup();
    lines
}

/// The sources beside which memory files are valid or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beside<'a> {
    /// Recap text by path, of the same tree.
    pub(crate) recaps: &'a BTreeMap<TreePath, String>,
    /// Its notes and resources.
    pub(crate) others: &'a BTreeSet<TreePath>,
    pub(crate) summary_bytes_max: usize,
}

/// The validator's errors in the memory files of a tree. What is wrong with a
/// person's notes is not the worker's fault, and secrets are judged apart.
pub(crate) fn errors_in_outputs(
    version: MemoryVersion,
    outputs: &Outputs,
    beside: Beside<'_>,
    is_result: bool,
) -> Vec<Fault> {
    let mut files = beside.recaps.clone();
    let others = beside.others.iter();
    files.extend(others.map(|path| (path.clone(), String::new())));
    let outputs = outputs.iter();
    files.extend(outputs.map(|(path, file)| (path.clone(), file.text.clone())));
    let facts = validate::Facts {
        is_result,
        summary_bytes_max: Some(beside.summary_bytes_max),
        // A budget above the format's limit is one that a person's own entries
        // need.
        is_grown_by_hand: SUMMARY_V2_BYTES_LIMIT < beside.summary_bytes_max,
        ..validate::Facts::default()
    };
    let errors = validate::errors_only(validate::check(&files, version, &facts));
    (errors.into_iter())
        .filter(|it| kind_in(version, &it.path).is_output() && !it.code.starts_with('X'))
        .map(|it| Fault::Invalid {
            code: it.code,
            path: it.path,
            line_number: it.line,
            message: it.message,
        })
        .collect()
}

fn withheld(new: &[Entry], facts: &JudgeFacts<'_>) -> Vec<Fault> {
    let mut lines = new.to_vec();
    lines.extend(orders::new_in_skills(facts));
    brought_back(&lines, facts.withheld, facts.person_entries)
}

/// Entries that say what is withheld, unless a person wrote them. At the head
/// a reset can have brought them back.
pub(crate) fn brought_back(
    entries: &[Entry],
    withheld: &[Withheld],
    person_entries: &[Entry],
) -> Vec<Fault> {
    let own: BTreeSet<String> = (person_entries.iter())
        .map(|entry| shingles::normalise(&entry.text))
        .collect();
    let entry_hashes = |held: &'_ Withheld| match &held.what {
        WithheldWhat::Entry(hashes) => Some(hashes.clone()),
        _ => None,
    };
    let hashes: Vec<EntryHashes> = withheld.iter().filter_map(entry_hashes).collect();
    if hashes.is_empty() {
        return Vec::new();
    }
    let is_held = |entry: &&Entry| {
        let statement = Statement::of(&entry.text);
        let comes_back = hashes.iter().any(|held| statement.is_withheld_as(held));
        comes_back && !own.contains(&shingles::normalise(&entry.text))
    };
    (entries.iter())
        .filter(is_held)
        .map(|entry| Fault::Withheld {
            path: entry.path.clone(),
            line_number: entry.line_number,
        })
        .collect()
}

fn overruled(new: &[Entry], facts: &JudgeFacts<'_>) -> Vec<Fault> {
    let kept: BTreeSet<(&TreePath, String)> = new
        .iter()
        .map(|entry| (&entry.path, shingles::normalise(&entry.text)))
        .collect();
    let is_overruled = |entry: &&Entry| {
        let words = shingles::normalise(&entry.text);
        let mut notes = facts.fresh_notes.iter();
        let is_asked_for = notes.any(|note| note.asks_about(&entry.text));
        !kept.contains(&(&entry.path, words)) && !is_asked_for
    };
    (facts.person_entries.iter())
        .filter(is_overruled)
        .map(|entry| Fault::PersonOverruled {
            path: entry.path.clone(),
            text: entry.text.trim().to_owned(),
        })
        .collect()
}

fn retired(facts: &JudgeFacts<'_>) -> Vec<(String, String)> {
    (facts.retired.iter())
        .map(|it| (it.entry.clone(), it.reason.clone()))
        .collect()
}

#[cfg(test)]
mod tests;
