//! Every entry and line that says a phrase.

use std::ops::Range;

use crate::domain::entry::EntryKind;
use crate::domain::path::{FileKind, TreePath};
use crate::history::forget::cut;
use crate::history::forget::{Files, Forgotten, Place, line_number, place};
use crate::text::document;
use crate::text::entries::{self, is_group, markdown_start};
use crate::text::phrase::Phrase;
use crate::text::recap;
use crate::text::strip::{self, Stripped};

pub(super) fn plan(files: &Files, phrase: &Phrase) -> Forgotten {
    let mut forgotten = Forgotten::default();
    for (path, text) in files {
        match path.kind() {
            FileKind::Summary | FileKind::Handbook => {
                let new = of_output(path, text, phrase, &mut forgotten);
                put(&mut forgotten, path, text, new);
            }
            FileKind::Recap => {
                let Ok((_, body)) = recap::read_fields(text) else {
                    continue;
                };
                let start = offset(text, body);
                let stripped = strip::phrase(&text[start..], phrase);
                forgotten.lines.extend(places(&stripped, path, text, start));
                let new = format!("{}{}", &text[..start], stripped.text);
                put(&mut forgotten, path, text, new);
            }
            FileKind::RawMemories | FileKind::Skill => {
                let stripped = strip::phrase(text, phrase);
                forgotten.lines.extend(places(&stripped, path, text, 0));
                put(&mut forgotten, path, text, stripped.text);
            }
            FileKind::Note | FileKind::Resource if phrase.is_in(text) => {
                forgotten.untouched.push(path.clone());
            }
            _ => {}
        }
    }
    forgotten
}

fn offset(text: &str, part: &str) -> usize {
    // A part of it, so the difference of their places.
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

fn put(forgotten: &mut Forgotten, path: &TreePath, old: &str, new: String) {
    if new != old {
        forgotten.files.insert(path.clone(), Some(new));
    }
}

fn of_output(path: &TreePath, text: &str, phrase: &Phrase, forgotten: &mut Forgotten) -> String {
    let mut cuts: Vec<Range<usize>> = titled(path, text, phrase);
    for entry in entries::parse(path, text) {
        let is_group = entry.kind == EntryKind::TaskGroup;
        let is_in_cut = cuts.iter().any(|cut| contains(cut, &entry.bytes));
        if is_in_cut || (!is_group && phrase.is_in(&entry.text)) {
            forgotten.entries.push(place(&entry));
            cuts.push(entry.bytes);
        }
    }
    // What is below an entry, or in the lists of a task.
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let range = start..start + line.len();
        start = range.end;
        let is_heading = line.starts_with('#');
        let is_gone = cuts.iter().any(|cut| contains(cut, &range));
        if is_gone || is_heading || !phrase.is_in(line) {
            continue;
        }
        forgotten.lines.push(Place {
            path: path.clone(),
            line_number: line_number(text, range.start),
            text: line.trim().to_owned(),
        });
        cuts.push(range);
    }
    cut::without(text, cuts)
}

/// Topics' headings, and groups whose first lines say it, with all they hold.
fn titled(path: &TreePath, text: &str, phrase: &Phrase) -> Vec<Range<usize>> {
    const TOPIC_LEVEL_MIN: u8 = 3;
    let document = document::parse(text, markdown_start(path, text));
    let is_about = |section: &&document::Section| match path.kind() {
        FileKind::Summary => TOPIC_LEVEL_MIN <= section.level && phrase.is_in(&section.title),
        FileKind::Handbook => {
            let head = &text[section.heading.start..section.body.end];
            is_group(section) && phrase.is_in(head)
        }
        _ => false,
    };
    let sections = document.sections.iter().filter(is_about);
    sections.map(|section| section.bytes.clone()).collect()
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Where in `text` the lines that went stood; what was stripped began at `start`.
fn places(stripped: &Stripped, path: &TreePath, text: &str, start: usize) -> Vec<Place> {
    let place = |range: &Range<usize>| Place {
        path: path.clone(),
        line_number: line_number(text, start + range.start),
        text: text[start + range.start..start + range.end]
            .trim()
            .to_owned(),
    };
    stripped.gone.iter().map(place).collect()
}
