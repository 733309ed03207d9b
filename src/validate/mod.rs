//! What is wrong with a memory folder: files and facts in, diagnostics out.
//!
//! Errors refuse a worker's result. What a person wrote is theirs: the same
//! diagnostics then only tell them. Content that no rule speaks of (other
//! files, other sections) is never wrong.
//!
//! To add a rule: a row in [`rules::RULES`], a function `add_…` in the file of
//! its family, and a folder under `tests/corpus/validate/bad`.
//!
//! # Not in here
//!
//! No I/O: what has to be known of the outside is in [`Facts`]. Whether
//! entries got lost and whether withheld ones came back is judged by
//! `consolidate`, which knows the tree before.

mod files;
mod handbook;
mod notes;
mod pointers;
mod recaps;
pub(crate) mod render;
pub(crate) mod rules;
mod secrets;
mod skills;
mod small_talk;
mod summary;
pub(crate) mod wire;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::domain::path::{FileKind, TreePath};
use crate::domain::version::MemoryVersion;
use crate::text::document;
use crate::text::redact::redact_str;
use crate::text::terminal::safe_line;
use crate::text::truncate::middle_bytes;

pub(crate) use self::rules::Level;

/// Longest piece of a file that a message repeats, in bytes.
const QUOTE_BYTES_MAX: usize = 120;

/// What the rules must know and the files do not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// A worker made this tree, so its outputs have to be there.
    pub(crate) is_result: bool,
    /// Largest summary, in bytes; `None` sets no bound besides version 2's.
    pub(crate) summary_bytes_max: Option<usize>,
    /// A person let a summary of version 2 grow over its limit, and their
    /// entries stay.
    pub(crate) is_grown_by_hand: bool,
    /// Paths that are symbolic links.
    pub(crate) symlinks: Vec<TreePath>,
    /// Files whose bytes are not UTF-8 and that are not among the files.
    pub(crate) not_utf8: Vec<TreePath>,
}

/// One thing that is wrong, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diagnostic {
    /// Family and number, such as `S003`.
    pub(crate) code: &'static str,
    pub(crate) level: Level,
    pub(crate) path: TreePath,
    /// In the file; empty where the whole file is meant.
    pub(crate) bytes: Range<usize>,
    /// 1-based.
    pub(crate) line: usize,
    /// 1-based, in characters.
    pub(crate) column: usize,
    /// Redacted and safe to print.
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Looks a memory folder through. The result is in order of path and place.
pub(crate) fn check(
    files: &BTreeMap<TreePath, String>,
    version: MemoryVersion,
    facts: &Facts,
) -> Vec<Diagnostic> {
    let tree = Tree {
        files,
        version,
        facts,
    };
    let mut found = Diagnostics::default();
    files::check(&tree, &mut found);
    secrets::check(&tree, &mut found);
    summary::check(&tree, &mut found);
    if version == MemoryVersion::V1 {
        handbook::check(&tree, &mut found);
        skills::check(&tree, &mut found);
    }
    recaps::check(&tree, &mut found);
    notes::check(&tree, &mut found);
    pointers::check(&tree, &mut found);
    found.all.sort_by(|a, b| {
        let key = |d: &Diagnostic| (d.path.clone(), d.bytes.start, d.code, d.bytes.end);
        key(a).cmp(&key(b))
    });
    found.all.dedup();
    found.all
}

/// Those that refuse a worker's result.
pub(crate) fn errors_only(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    (diagnostics.into_iter())
        .filter(|diagnostic| diagnostic.level == Level::Error)
        .collect()
}

/// What the rules look at.
struct Tree<'a> {
    files: &'a BTreeMap<TreePath, String>,
    version: MemoryVersion,
    facts: &'a Facts,
}

impl<'a> Tree<'a> {
    fn of_kind(&self, kind: FileKind) -> impl Iterator<Item = (&'a TreePath, &'a str)> {
        (self.files.iter())
            .filter(move |(path, _)| path.kind() == kind)
            .map(|(path, text)| (path, text.as_str()))
    }

    fn file(&self, kind: FileKind) -> Option<(&'a TreePath, &'a str)> {
        self.of_kind(kind).next()
    }

    /// Whether there is anything to remember.
    fn has_inputs(&self) -> bool {
        [FileKind::Recap, FileKind::Note, FileKind::Resource]
            .into_iter()
            .any(|kind| self.file(kind).is_some())
    }

    fn needs_outputs(&self) -> bool {
        self.facts.is_result || self.has_inputs()
    }
}

/// Everything one run has to say.
#[derive(Default)]
struct Diagnostics {
    all: Vec<Diagnostic>,
}

/// A place in a file.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a TreePath,
    text: &'a str,
    start: usize,
    end: usize,
}

impl<'a> Place<'a> {
    fn at(path: &'a TreePath, text: &'a str, bytes: Range<usize>) -> Self {
        Self {
            path,
            text,
            start: bytes.start,
            end: bytes.end,
        }
    }

    /// The beginning of a file, also of one that is not there.
    fn whole(path: &'a TreePath) -> Self {
        Self::at(path, "", 0..0)
    }

    /// The line with this 1-based number, from `column_number` on.
    fn line(path: &'a TreePath, text: &'a str, line_number: usize, column_number: usize) -> Self {
        let index = line_number.saturating_sub(1);
        let start: usize = text.split_inclusive('\n').take(index).map(str::len).sum();
        let line = text[start..].lines().next().unwrap_or_default();
        let skipped = line.chars().take(column_number.saturating_sub(1));
        let skipped: usize = skipped.map(char::len_utf8).sum();
        Self::at(path, text, start + skipped..start + line.len())
    }
}

impl Diagnostics {
    fn add(&mut self, code: &'static str, place: Place<'_>, message: &str, hint: Option<&str>) {
        let (line, column) = document::place(place.text, place.start);
        self.all.push(Diagnostic {
            code,
            level: rules::level(code),
            path: place.path.clone(),
            bytes: place.start..place.end,
            line,
            column,
            message: redact_str(&safe_line(message)).into_string(),
            hint: hint.map(str::to_owned),
        });
    }
}

/// A piece of a file as it may stand in a message.
fn quote(text: &str) -> String {
    let line = safe_line(text.trim());
    format!(
        "`{}`",
        middle_bytes(redact_str(&line).as_str(), QUOTE_BYTES_MAX)
    )
}

/// A path that is one of our own constants.
fn known_path(path: &str) -> TreePath {
    TreePath::parse(path).expect("the names of memory files are tree paths")
}

#[cfg(test)]
mod tests;
