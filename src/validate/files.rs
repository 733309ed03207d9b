//! `F`: what holds for files of any content.

use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization;

use super::{Diagnostics, Place, Tree, quote};
use crate::domain::limits::SNAPSHOT_FILE_BYTES_MAX;
use crate::domain::path::{FileKind, TreePath};
use crate::text::document;
use crate::text::terminal::is_invisible;
use crate::text::withheld;

pub(super) fn check(tree: &Tree<'_>, found: &mut Diagnostics) {
    for path in &tree.facts.symlinks {
        found.add_symlink(Place::whole(path));
    }
    for path in &tree.facts.not_utf8 {
        found.add_not_utf8(Place::whole(path));
    }
    check_twins(tree, found);
    for (path, text) in tree.files {
        if SNAPSHOT_FILE_BYTES_MAX < text.len() as u64 {
            found.add_large_file(Place::whole(path), text.len());
            continue;
        }
        let kind = path.kind();
        if kind.is_output() || kind == FileKind::Note {
            check_conflict_markers(path, text, found);
        }
        check_control_characters(path, text, found);
        if kind == FileKind::Withheld
            && let Err(error) = withheld::parse(path.name(), text)
        {
            found.add_unreadable_withheld(Place::whole(path), &error.to_string());
        }
    }
}

/// Paths that are one on file systems that fold case or normalise names.
fn check_twins(tree: &Tree<'_>, found: &mut Diagnostics) {
    let mut first: BTreeMap<String, &TreePath> = BTreeMap::new();
    for path in tree.files.keys() {
        let folded: String = path.as_str().nfc().collect::<String>().to_lowercase();
        match first.get(&folded) {
            Some(other) => found.add_twin(Place::whole(path), other),
            None => {
                first.insert(folded, path);
            }
        }
    }
}

/// The three markers of a conflict, each at the start of a line, in order and
/// outside of code blocks. A lone row of equals signs is a heading.
fn check_conflict_markers(path: &TreePath, text: &str, found: &mut Diagnostics) {
    if !text.contains("<<<<<<< ") {
        return;
    }
    let document = document::parse(text, 0);
    let mut at = 0;
    let mut begin: Option<std::ops::Range<usize>> = None;
    let mut has_middle = false;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if document.is_in_code(start) {
            continue;
        }
        let line = line.trim_end();
        if line.starts_with("<<<<<<< ") {
            begin = Some(start..start + line.len());
            has_middle = false;
        } else if line == "=======" {
            has_middle = true;
        } else if line.starts_with(">>>>>>> ")
            && has_middle
            && let Some(bytes) = begin.take()
        {
            found.add_conflict(Place::at(path, text, bytes));
        }
    }
}

/// Named once a line, and once a file where they are no matter of memory:
/// such files have many.
fn check_control_characters(path: &TreePath, text: &str, found: &mut Diagnostics) {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r');
    if text.bytes().all(is_plain) {
        return;
    }
    let is_bad = |c: char| {
        let is_control = c.is_control() && !matches!(c, '\n' | '\t' | '\r');
        is_control || (is_invisible(c) && !matches!(c, '\u{ad}' | '\u{feff}' | '\u{200b}'))
    };
    let is_memory = path.kind().is_output() || path.kind() == FileKind::Note;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let line_start = at;
        at += line.len();
        let Some((start, c)) = line.char_indices().find(|(_, c)| is_bad(*c)) else {
            continue;
        };
        let start = line_start + start;
        let place = Place::at(path, text, start..start + c.len_utf8());
        if !is_memory {
            found.add_control_character_elsewhere(place, c);
            return;
        }
        found.add_control_character(place, c);
    }
}

impl Diagnostics {
    fn add_symlink(&mut self, place: Place<'_>) {
        self.add("F001", place, "this is a symbolic link", None);
    }

    fn add_twin(&mut self, place: Place<'_>, other: &TreePath) {
        let message = format!(
            "on many file systems this is the same path as {}",
            quote(other.as_str())
        );
        self.add("F002", place, &message, None);
    }

    fn add_conflict(&mut self, place: Place<'_>) {
        let message = "a merge conflict was left in the file";
        let hint = Some("keep one side and delete the three marker lines");
        self.add("F003", place, message, hint);
    }

    fn add_not_utf8(&mut self, place: Place<'_>) {
        self.add("F004", place, "the file is not UTF-8", None);
    }

    fn add_control_character(&mut self, place: Place<'_>, c: char) {
        self.add("F005", place, &named(c), None);
    }

    fn add_large_file(&mut self, place: Place<'_>, bytes: usize) {
        let message = format!("the file has {bytes} bytes, {SNAPSHOT_FILE_BYTES_MAX} are allowed");
        self.add("F006", place, &message, None);
    }

    fn add_unreadable_withheld(&mut self, place: Place<'_>, why: &str) {
        let message = format!("what this file withholds cannot be read: {why}");
        self.add("F007", place, &message, None);
    }

    fn add_control_character_elsewhere(&mut self, place: Place<'_>, c: char) {
        self.add("F008", place, &named(c), None);
    }
}

fn named(c: char) -> String {
    format!(
        "the character U+{:04X} is invisible and may deceive",
        u32::from(c)
    )
}
