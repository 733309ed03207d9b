//! Errors that no worker has to answer for: a person's lines hold them.
//!
//! A person's own edit is theirs: it is committed as it is, and `check` and
//! `status` say what is wrong with it. Their lines stay, so an error in one
//! neither calls a worker nor speaks against its result while the line stands
//! there unchanged. Otherwise memory would freeze over it.
//!
//! A line is a person's when it came after the last baseline, when it belongs
//! to one of their entries, or when that baseline let the same error pass. A
//! skill may be anybody's: what stood in it before is held against nobody.
//!
//! Pure.
//!
//! # Not in here
//!
//! Errors of a whole file, such as a heading that is missing: a worker mends
//! those beside the person's words. Secrets, see [`crate::consolidate::mend`].

use std::collections::BTreeSet;

use crate::consolidate::fault::Fault;
use crate::consolidate::hands::is_memory_file;
use crate::consolidate::judge::Outputs;
use crate::domain::entry::{Entry, EntryKind};
use crate::domain::path::TreePath;
use crate::text::entries;
use crate::text::shingles;

/// Rules about a line, besides all about pointers.
const LINE_CODES: [&str; 4] = ["F003", "F005", "M003", "S007"];

/// Rules about what a memory says: whether it may say nothing, a baseline
/// decided.
const EMPTY_CODES: [&str; 2] = ["M002", "S006"];

/// A case twin of another file: only who made it can say which one goes.
const TWIN_CODE: &str = "F002";

/// Code, file, message, and the words around; the message names the pointer.
type Key = (&'static str, TreePath, String, String);

/// Errors of the head that are not held against a result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Theirs {
    known: BTreeSet<Key>,
}

/// What [`sort`] must know.
pub(crate) struct TheirsFacts<'a> {
    /// The memory files at the head.
    pub(crate) outputs: &'a Outputs,
    /// Those of the last baseline, and the errors in them.
    pub(crate) base: &'a Outputs,
    pub(crate) base_errors: &'a [Fault],
    /// Entries of the head that the person wrote.
    pub(crate) own: &'a [Entry],
}

/// Errors at the head, by who has to mend them.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    pub(crate) theirs: Theirs,
    /// What `status` tells the person.
    pub(crate) persons: Vec<Fault>,
    /// What a worker has to mend.
    pub(crate) workers: Vec<Fault>,
}

/// Sorts the validator's errors at the head.
pub(crate) fn sort(errors: Vec<Fault>, facts: &TheirsFacts<'_>) -> Sorted {
    let mut sorted = Sorted::default();
    let base: BTreeSet<Key> = (facts.base_errors.iter())
        .flat_map(|error| keys(facts.base, error))
        .collect();
    for error in errors {
        let Fault::Invalid { code, path, .. } = &error else {
            sorted.workers.push(error);
            continue;
        };
        if EMPTY_CODES.contains(code) {
            let had = facts.base_errors.iter().any(
                |it| matches!(it, Fault::Invalid { code: had, path: at, .. } if had == code && at == path),
            );
            if !had {
                sorted.workers.push(error);
            }
            continue;
        }
        let keys = keys(facts.outputs, &error);
        if keys.iter().any(|key| base.contains(key)) || is_persons(&error, facts) {
            sorted.theirs.known.extend(keys);
            sorted.persons.push(error);
        } else {
            sorted.workers.push(error);
        }
    }
    sorted
}

impl Theirs {
    /// The errors of a result without those that stand unchanged in it.
    pub(crate) fn excuse(&self, new: &Outputs, mut errors: Vec<Fault>) -> Vec<Fault> {
        if !self.known.is_empty() {
            errors.retain(|error| !keys(new, error).iter().any(|key| self.known.contains(key)));
        }
        errors
    }
}

fn is_persons(error: &Fault, facts: &TheirsFacts<'_>) -> bool {
    let Fault::Invalid {
        code,
        path,
        line_number,
        ..
    } = error
    else {
        return false;
    };
    if *code == TWIN_CODE {
        return true;
    }
    if !is_about_a_line(code) {
        return false;
    }
    let Some(line) = line_of(facts.outputs, path, *line_number) else {
        return false;
    };
    let was_there = (facts.base.get(path)).is_some_and(|old| old.text.lines().any(|it| it == line));
    let is_in = |entry: &Entry| covers(facts.outputs, entry, path, *line_number);
    !was_there || !is_memory_file(path.kind()) || facts.own.iter().any(is_in)
}

fn is_about_a_line(code: &str) -> bool {
    code.starts_with('P') || LINE_CODES.contains(&code)
}

/// Whether a line belongs to an entry with all below it. Titles of tasks and
/// groups stand for themselves.
fn covers(outputs: &Outputs, entry: &Entry, path: &TreePath, line_number: usize) -> bool {
    let first = entry.line_number as usize;
    let is_title = matches!(entry.kind, EntryKind::Task | EntryKind::TaskGroup);
    let file = outputs.get(path);
    let text = file.and_then(|file| file.text.get(entry.bytes.clone()));
    let lines = match text {
        Some(text) if !is_title => text.lines().count(),
        _ => 1,
    };
    entry.path == *path && (first..first + lines.max(1)).contains(&line_number)
}

/// An error by its line, and by the entry that the line belongs to: a worker
/// may break the entry's lines anew.
fn keys(outputs: &Outputs, error: &Fault) -> Vec<Key> {
    let Fault::Invalid {
        code,
        path,
        line_number,
        message,
    } = error
    else {
        return Vec::new();
    };
    let key = |words: String| (*code, path.clone(), message.clone(), words);
    if *code == TWIN_CODE {
        return vec![key(String::new())];
    }
    let (true, Some(line)) = (is_about_a_line(code), line_of(outputs, path, *line_number)) else {
        return Vec::new();
    };
    let mut keys = vec![key(words_of(line))];
    if is_memory_file(path.kind()) {
        let text = &outputs[path].text;
        let all = entries::parse(path, text).into_iter();
        let around = all.filter(|it| covers(outputs, it, path, *line_number));
        keys.extend(around.map(|it| key(words_of(&it.text))));
    }
    keys
}

fn line_of<'a>(outputs: &'a Outputs, path: &TreePath, line_number: usize) -> Option<&'a str> {
    let file = outputs.get(path)?;
    file.text.lines().nth(line_number.checked_sub(1)?)
}

/// Rows of marks have no words: they are compared as they are.
fn words_of(text: &str) -> String {
    let words = shingles::normalise(text);
    if words.is_empty() {
        text.trim().to_owned()
    } else {
        words
    }
}

#[cfg(test)]
mod tests;
