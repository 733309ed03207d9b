//! Whether a result keeps to what notes ask for: what code carried out before
//! the worker started stays done, and a new file says what new notes say.
//!
//! Pure.
//!
//! # Limits
//!
//! Looks at words. What a note means beyond them is the worker's to find out.

use std::collections::BTreeSet;

use crate::consolidate::fault::Fault;
use crate::consolidate::guard;
use crate::consolidate::judge::{self, JudgeFacts, Outputs};
use crate::domain::entry::Entry;
use crate::domain::note::NoteKind;
use crate::domain::path::{FileKind, TreePath};
use crate::model::offline::consolidate::orders::{
    Demand, is_meant_in_skill, skill_lines, still_there,
};
use crate::text::shingles;

/// Longest part of a line that a fault repeats, in characters.
const SHOWN_CHARS_MAX: usize = 200;

/// What speaks against the result, by note and place.
pub(super) fn check(facts: &JudgeFacts<'_>, new: &[Entry]) -> Vec<Fault> {
    let mut faults = demands(facts, new);
    faults.extend(standing(facts, new));
    faults.extend(brought_back(facts, new));
    faults.extend(not_forgotten(facts, new));
    faults
}

/// Lines of new and edited notes that nothing says.
fn demands(facts: &JudgeFacts<'_>, new: &[Entry]) -> Vec<Fault> {
    let own: BTreeSet<String> = words(facts.person_entries);
    let is_said = |demand: &Demand| {
        new.iter().any(|entry| {
            let counts = entry.is_from_note || own.contains(&shingles::normalise(&entry.text));
            counts && demand.is_said_by(&entry.text)
        })
    };
    let unsaid = facts.carried.demands.iter().filter(|it| !is_said(it));
    unsaid
        .map(|demand| Fault::NoteUnsaid {
            note: demand.note.clone(),
            line: shown(&demand.text),
        })
        .collect()
}

/// Lines that earlier notes brought, and that are gone: only a new note, or
/// the worker with a reason, takes one away.
fn standing(facts: &JudgeFacts<'_>, new: &[Entry]) -> Vec<Fault> {
    let own = words(facts.person_entries);
    let mut seen = BTreeSet::new();
    let mut faults = Vec::new();
    for old in judge::all_entries(&prepared(facts)) {
        let text = shingles::normalise(&old.text);
        if !old.is_from_note || own.contains(&text) || !seen.insert(text) {
            continue;
        }
        let line = Demand::of(&old.path, &old.text);
        let is_said = |entry: &Entry| entry.is_from_note && line.is_said_by(&entry.text);
        let is_meant = facts
            .fresh_notes
            .iter()
            .any(|it| it.asks_about(&old.text) || guard::speaks_of(&it.text, &old.text));
        let is_retired = facts
            .retired
            .iter()
            .any(|it| !it.reason.trim().is_empty() && guard::is_near_equal(&it.entry, &old.text));
        if !new.iter().any(is_said) && !is_meant && !is_retired {
            faults.push(Fault::NoteDropped {
                path: old.path.clone(),
                line: shown(&old.text),
            });
        }
    }
    faults
}

/// What code took out for a note, back again.
fn brought_back(facts: &JudgeFacts<'_>, new: &[Entry]) -> Vec<Fault> {
    let left = words(&all(&prepared(facts)));
    let lines = new.iter().cloned().chain(in_skills(facts.new));
    let mut faults = Vec::new();
    for entry in lines {
        let text = shingles::normalise(&entry.text);
        if let (Some(note), false) = (facts.carried.taken_out.get(&text), left.contains(&text)) {
            faults.push(undone(note, &entry));
        }
    }
    faults
}

/// What a new forget note is about, in words that code did not see before.
fn not_forgotten(facts: &JudgeFacts<'_>, new: &[Entry]) -> Vec<Fault> {
    let left = words(&all(&prepared(facts)));
    let is_new = |entry: &&Entry| !left.contains(&shingles::normalise(&entry.text));
    let skills = in_skills(facts.new);
    let mut faults = Vec::new();
    for note in facts.fresh_notes {
        if note.asking.kind() != NoteKind::Forget {
            continue;
        }
        let in_files = if facts.is_by_code {
            still_there(&note.asking, new, facts.person_entries)
        } else {
            Vec::new()
        };
        let in_skills = skills.iter();
        let in_skills = in_skills.filter(|it| is_meant_in_skill(&note.asking, it));
        let found = in_files.into_iter().chain(in_skills).filter(is_new);
        faults.extend(found.map(|entry| undone(&note.path, entry)));
    }
    faults.sort_by_key(Fault::words);
    faults.dedup();
    faults
}

fn undone(note: &TreePath, entry: &Entry) -> Fault {
    Fault::NoteUndone {
        note: note.clone(),
        path: entry.path.clone(),
        line_number: entry.line_number,
    }
}

/// Lines of skills that were not there and say what is withheld.
pub(super) fn new_in_skills(facts: &JudgeFacts<'_>) -> Vec<Entry> {
    let old = words(&in_skills(facts.old));
    let mut found = in_skills(facts.new);
    found.retain(|entry| !old.contains(&shingles::normalise(&entry.text)));
    found
}

/// The lines of skills, as entries.
pub(super) fn in_skills(outputs: &Outputs) -> Vec<Entry> {
    let skills = outputs.iter();
    skills
        .filter(|(path, _)| path.kind() == FileKind::Skill)
        .flat_map(|(path, file)| skill_lines(path, &file.text))
        .collect()
}

fn all(outputs: &Outputs) -> Vec<Entry> {
    let mut found = judge::all_entries(outputs);
    found.extend(in_skills(outputs));
    found
}

fn prepared(facts: &JudgeFacts<'_>) -> Outputs {
    judge::with_texts(facts.old, &facts.carried.files)
}

fn words(entries: &[Entry]) -> BTreeSet<String> {
    let texts = entries.iter();
    texts
        .map(|entry| shingles::normalise(&entry.text))
        .collect()
}

fn shown(text: &str) -> String {
    let text = text.trim();
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
