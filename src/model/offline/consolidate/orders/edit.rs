//! The text of a memory file with one line more, less or other.

use std::ops::Range;

use crate::domain::entry::{Entry, EntryKind};
use crate::domain::note::NOTE_MARK;
use crate::domain::path::FileKind;
use crate::model::offline::consolidate::handbook::{NOTES_TITLE, notes_lead};
use crate::model::offline::consolidate::line;
use crate::model::offline::consolidate::orders::{Demand, wants};

const PREFERENCES: &str = "## User preferences";
const KNOWLEDGE: &str = "## Reusable knowledge";
const TIPS: &str = "## General Tips";

/// An entry of one line with the note mark at its end.
pub(super) fn with_mark(text: &str, entry: &Entry) -> Option<String> {
    let own = text.get(entry.bytes.clone())?.trim_end();
    if own.contains('\n') {
        return None;
    }
    let end = entry.bytes.start + own.len();
    Some(format!("{} {NOTE_MARK}{}", &text[..end], &text[end..]))
}

/// A bullet with the words of a note; the tasks that it rests on stay.
pub(super) fn replaced(text: &str, entry: &Entry, demand: &Demand) -> String {
    let numbers = line::task_references(&entry.text);
    let marks = numbers
        .iter()
        .map(|n| format!("[Task {n}]"))
        .collect::<Vec<_>>()
        .concat();
    let marks = if marks.is_empty() {
        marks
    } else {
        format!("{marks} ")
    };
    // The summary has no room for where it came from.
    let bullet = match entry.path.kind() {
        FileKind::Summary => format!("- {} {NOTE_MARK}\n", demand.text),
        _ => format!("- {} ({}) {marks}{NOTE_MARK}\n", demand.text, demand.note),
    };
    splice(text, entry.bytes.clone(), &bullet)
}

/// Into the group of what notes say, at the end of its list.
pub(super) fn into_handbook(text: &str, found: &[Entry], demand: &Demand) -> String {
    let bullet = format!("- {} ({}) {NOTE_MARK}\n", demand.text, demand.note);
    let heading = if wants(demand) {
        PREFERENCES
    } else {
        KNOWLEDGE
    };
    let is_notes = |entry: &&Entry| {
        let title = entry.text.split_once(':').map_or("", |(_, title)| title);
        entry.kind == EntryKind::TaskGroup && title.trim() == NOTES_TITLE
    };
    let Some(group) = found.iter().find(is_notes) else {
        let lead = notes_lead().join("\n");
        let group = format!("# Task Group: {NOTES_TITLE}\n\n{lead}\n\n{heading}\n\n{bullet}");
        return format!("{}\n\n{group}", text.trim_end());
    };
    if let Some(end) = list_end(text, group.bytes.clone(), heading) {
        return splice(text, end, &bullet);
    }
    let own = text[group.bytes.clone()].trim_end();
    let end = group.bytes.start + own.len();
    let list = format!("\n\n{heading}\n\n{bullet}");
    splice(text, end..group.bytes.end, &list)
}

/// Below the heading that it belongs to; `None` without that heading.
pub(super) fn into_summary(text: &str, demand: &Demand) -> Option<String> {
    let bullet = format!("- {} {NOTE_MARK}\n", demand.text);
    let heading = if wants(demand) { PREFERENCES } else { TIPS };
    let end = list_end(text, 0..text.len(), heading)?;
    Some(splice(text, end, &bullet))
}

/// The end of what stands below a heading, without the blank lines before the
/// next one: an empty place right behind the last line.
fn list_end(text: &str, inside: Range<usize>, heading: &str) -> Option<Range<usize>> {
    let mut at = inside.start;
    let mut end = None;
    for line in text[inside].split_inclusive('\n') {
        let (is_it, is_next) = (line.trim_end() == heading, line.starts_with('#'));
        at += line.len();
        match end {
            None if is_it => end = Some(at),
            Some(_) if is_next => break,
            Some(_) if !line.trim().is_empty() => end = Some(at),
            _ => {}
        }
    }
    end.map(|end| end..end)
}

/// `text` with `part` in place of `bytes`, on lines of its own, and apart from
/// a heading before it.
fn splice(text: &str, bytes: Range<usize>, part: &str) -> String {
    let (before, after) = (&text[..bytes.start], &text[bytes.end..]);
    let last = before.trim_end().lines().next_back().unwrap_or_default();
    let follows_heading = last.starts_with('#') && part.starts_with('-');
    let gap = match before {
        _ if before.is_empty() || part.starts_with('\n') => "",
        _ if follows_heading && !before.ends_with("\n\n") && before.ends_with('\n') => "\n",
        _ if follows_heading && !before.ends_with('\n') => "\n\n",
        _ if !before.ends_with('\n') => "\n",
        _ => "",
    };
    let follows = if after.starts_with('#') { "\n" } else { "" };
    format!("{before}{gap}{part}{follows}{after}")
}

/// The file without an entry, and the texts of others that went along: what
/// rested on a task alone. `stays` says which entries never do.
pub(super) fn without(
    text: &str,
    target: &Entry,
    found: &[Entry],
    stays: &dyn Fn(&Entry) -> bool,
) -> (String, Vec<String>) {
    let mut edits: Vec<(Range<usize>, String)> = vec![(target.bytes.clone(), String::new())];
    let mut along = Vec::new();
    if target.kind == EntryKind::Task {
        let number = task_number(&target.text);
        let group = target.headings.first();
        for entry in found {
            let references = line::task_references(&entry.text);
            let rests_on_it = number.is_some_and(|number| references.contains(&number));
            let is_of_group = entry.kind == EntryKind::Bullet && entry.headings.first() == group;
            if !is_of_group || !rests_on_it || stays(entry) {
                continue;
            }
            if references.iter().all(|other| Some(*other) == number) {
                along.push(entry.text.clone());
                edits.push((entry.bytes.clone(), String::new()));
            } else {
                let keep = |other: u32| (Some(other) != number).then_some(other);
                let own = line::change_references(&text[entry.bytes.clone()], keep);
                edits.push((entry.bytes.clone(), own));
            }
        }
    }
    // From the end, so that the places above stay right.
    edits.sort_by_key(|(bytes, _)| std::cmp::Reverse(bytes.start));
    let mut left = text.to_owned();
    for (bytes, part) in edits {
        left.replace_range(bytes, &part);
    }
    (left, along)
}

fn task_number(title: &str) -> Option<u32> {
    let digits = title.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().ok()
}
