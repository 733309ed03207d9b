//! What forget notes do to skills.
//!
//! A skill whose name or description a note is about goes as a whole; of any
//! other the lines that the note is about.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;

use crate::domain::entry::{Entry, EntryKind};
use crate::domain::path::{FileKind, TreePath};
use crate::model::offline::consolidate::asks::Asking;
use crate::model::offline::consolidate::line;
use crate::model::offline::consolidate::tokens::{Features, Matcher};

/// The lines of a skill's file that say something, as entries.
pub(crate) fn lines(path: &TreePath, text: &str) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut start = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let bytes = start..start + line.len();
        start = bytes.end;
        let words = words(line);
        if !words.chars().any(char::is_alphanumeric) {
            continue;
        }
        found.push(Entry {
            path: path.clone(),
            kind: EntryKind::Bullet,
            headings: Vec::new(),
            text: words.to_owned(),
            bytes,
            line_number: u32::try_from(index + 1).unwrap_or(u32::MAX),
            thread_ids: Vec::new(),
            recap_files: Vec::new(),
            is_from_note: false,
        });
    }
    found
}

/// Without list or heading marker, or the key of a header's field.
fn words(line: &str) -> &str {
    let line = line.trim().trim_start_matches('#').trim_start();
    let mut bare = ["name:", "description:"].iter();
    let bare = bare.find_map(|key| line.strip_prefix(key));
    line::core(bare.unwrap_or(line))
}

/// Takes out what a forget note is about; gives the texts that went.
pub(super) fn forget(files: &mut BTreeMap<TreePath, String>, asking: &Asking) -> Vec<String> {
    let mut gone = Vec::new();
    let mut whole = BTreeSet::new();
    let paths: Vec<TreePath> = (files.keys())
        .filter(|path| path.kind() == FileKind::Skill)
        .cloned()
        .collect();
    for path in &paths {
        let text = files[path].clone();
        let found = lines(path, &text);
        let meant: Vec<&Entry> = found.iter().filter(|it| is_meant(asking, it)).collect();
        if meant.is_empty() {
            continue;
        }
        gone.extend(meant.iter().map(|it| it.text.clone()));
        let in_header = meant
            .iter()
            .any(|it| is_header_field(&text[it.bytes.clone()]));
        let is_main = path.name() == "SKILL.md";
        let says_more = found.len() > meant.len() + header_fields(&text, &found);
        if is_main && (in_header || !says_more) {
            whole.insert(folder(path).to_owned());
        }
        let mut left = text;
        for entry in meant.iter().rev() {
            left.replace_range(entry.bytes.clone(), "");
        }
        files.insert(path.clone(), left);
    }
    files.retain(|path, _| path.kind() != FileKind::Skill || !whole.contains(folder(path)));
    gone
}

/// Whether a forget note is about a line of a skill.
pub(crate) fn is_meant(asking: &Asking, entry: &Entry) -> bool {
    let features = Features::of(&entry.text);
    let alone = Matcher::new(once(&features));
    asking.forgets(&alone, &features)
}

fn is_header_field(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("name:") || line.starts_with("description:")
}

/// How many lines are the header's fields or headings: they say nothing of
/// their own.
fn header_fields(text: &str, found: &[Entry]) -> usize {
    let is_frame = |entry: &&Entry| {
        let line = &text[entry.bytes.clone()];
        is_header_field(line) || line.starts_with('#')
    };
    found.iter().filter(is_frame).count()
}

/// `skills/<name>`.
fn folder(path: &TreePath) -> &str {
    let text = path.as_str();
    let mut borders = text.match_indices('/').map(|(at, _)| at);
    borders.nth(1).map_or(text, |at| &text[..at])
}
