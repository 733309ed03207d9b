//! What forgetting changes in a memory folder.
//!
//! [`plan`] takes the files of a tree and says which of them become what:
//! entries that only the forgotten thing supports go, others lose the pointer
//! to it, headings that hold nothing any more go with what they held.
//!
//! # Not in here
//!
//! Nothing is read or written, and nothing is withheld: the caller publishes.
//! A worker's next pass words anew what now reads oddly.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::entry::Entry;
use crate::domain::id::ThreadId;
use crate::domain::path::{FileKind, TreePath};
use crate::domain::version::MemoryVersion;
use crate::text::phrase::Phrase;
use crate::text::recap;

mod cut;
mod phrase;
pub(crate) mod run;
mod sound;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use self::sound::settle;

/// The text files of a tree.
pub(crate) type Files = BTreeMap<TreePath, String>;

/// What is to be forgotten.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// A session: its recaps, and what only it supports.
    Thread(ThreadId),
    /// A note or resource: the file, and what only it supports.
    File(TreePath),
    /// Every entry that says this.
    Phrase(Phrase),
}

/// An entry of the memory files, or a line of a recap.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) path: TreePath,
    /// 1-based.
    pub(crate) line_number: u32,
    pub(crate) text: String,
}

/// What a tree becomes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Forgotten {
    /// Changed files; `None` for those that go.
    pub(crate) files: BTreeMap<TreePath, Option<String>>,
    /// Entries that go.
    pub(crate) entries: Vec<Place>,
    /// Entries that stay without the forgotten support.
    pub(crate) trimmed: Vec<Place>,
    /// Lines of recaps, raw memories and skills that go.
    pub(crate) lines: Vec<Place>,
    /// Notes and resources that say it and stay: files of a person's.
    pub(crate) untouched: Vec<TreePath>,
}

impl Forgotten {
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// Plans the forgetting of `target` in a tree. `also` are recaps of the
/// forgotten session that are not in the tree, to recognise its statements by.
pub(crate) fn plan(
    version: MemoryVersion,
    files: &Files,
    also: &[String],
    target: &Target,
) -> Forgotten {
    let mut forgotten = match target {
        Target::Thread(thread_id) => {
            let is_recap = |path: &TreePath, text: &str| {
                path.kind() == FileKind::Recap && thread_of(path, text).as_ref() == Some(thread_id)
            };
            let gone = files.iter().filter(|(path, text)| is_recap(path, text));
            let gone: BTreeSet<TreePath> = gone.map(|(path, _)| path.clone()).collect();
            source::plan(files, also, Some(thread_id), &gone)
        }
        Target::File(path) => source::plan(files, also, None, &BTreeSet::from([path.clone()])),
        Target::Phrase(phrase) => phrase::plan(files, phrase),
    };
    settle(version, files, &mut forgotten);
    for list in [
        &mut forgotten.entries,
        &mut forgotten.trimmed,
        &mut forgotten.lines,
    ] {
        list.sort();
        list.dedup();
    }
    forgotten
}

fn thread_of(path: &TreePath, text: &str) -> Option<ThreadId> {
    let recap = recap::parse(path.name(), text).ok()?;
    Some(recap.header.thread_id)
}

fn place(entry: &Entry) -> Place {
    Place {
        path: entry.path.clone(),
        line_number: entry.line_number,
        text: entry.text.clone(),
    }
}

/// The line on which a byte stands.
fn line_number(text: &str, at: usize) -> u32 {
    let (line, _) = crate::text::document::place(text, at);
    u32::try_from(line).unwrap_or(u32::MAX)
}
