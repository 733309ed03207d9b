//! Ranges out of a text, and the headings that hold nothing without them.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::domain::path::{FileKind, TreePath};
use crate::text::document::{self, Document};
use crate::text::entries::{is_group, is_task, markdown_start};

/// Headings of a summary up to this level are part of its shape.
const SUMMARY_SHAPE_LEVEL: u8 = 2;

/// `text` without the ranges, which may overlap and come in any order.
pub(super) fn without(text: &str, mut cuts: Vec<Range<usize>>) -> String {
    cuts.sort_by_key(|range| (range.start, range.end));
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for range in cuts {
        if copied < range.start {
            out.push_str(&text[copied..range.start]);
        }
        copied = copied.max(range.end);
    }
    out.push_str(&text[copied.min(text.len())..]);
    out
}

/// Takes out the headings of a memory file that `old` filled and that hold
/// nothing any more, outermost last; runs of blank lines become one.
pub(super) fn without_bare_headings(path: &TreePath, old: &str, text: &str) -> String {
    let bare_before = bare(path, &parse(path, old));
    let mut text = one_blank_line(text);
    loop {
        let document = parse(path, &text);
        let bare_now = bare_sections(path, &document);
        let found = bare_now.into_iter().find(|index| {
            let headings = document.headings(*index);
            !bare_before.contains(&headings)
        });
        let Some(index) = found else {
            return text;
        };
        let bytes = document.sections[index].bytes.clone();
        text = one_blank_line(&without(&text, vec![bytes]));
    }
}

fn parse(path: &TreePath, text: &str) -> Document {
    document::parse(text, markdown_start(path, text))
}

fn bare(path: &TreePath, document: &Document) -> BTreeSet<Vec<String>> {
    let bare = bare_sections(path, document).into_iter();
    bare.map(|index| document.headings(index)).collect()
}

/// Sections that hold nothing that counts, and may go.
fn bare_sections(path: &TreePath, document: &Document) -> Vec<usize> {
    let sections = &document.sections;
    let is_bare = |index: &usize| {
        let section = &sections[*index];
        let has_deeper = (sections.iter().enumerate())
            .any(|(other, it)| other != *index && section.bytes.contains(&it.bytes.start));
        let own_blocks = (document.blocks.iter())
            .filter(|block| block.section_index == Some(*index))
            .count();
        let is_in_task = sections.iter().any(|it| {
            is_task(it)
                && it.bytes.start < section.bytes.start
                && it.bytes.contains(&section.bytes.start)
        });
        match path.kind() {
            // Its first lines say what the group is about and are no entry.
            FileKind::Handbook if is_group(section) => !has_deeper && own_blocks <= 1,
            // A task keeps its sections, also without a keyword.
            FileKind::Handbook if is_task(section) || is_in_task => false,
            FileKind::Summary if section.level <= SUMMARY_SHAPE_LEVEL => false,
            _ => !has_deeper && own_blocks == 0,
        }
    };
    (0..sections.len()).filter(is_bare).collect()
}

fn one_blank_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blanks = 0;
    for line in text.split_inclusive('\n') {
        if line.trim().is_empty() {
            blanks += 1;
            if 1 < blanks {
                continue;
            }
        } else {
            blanks = 0;
        }
        out.push_str(line);
    }
    let end = out.trim_end().len();
    if end < out.len() {
        out.truncate(end);
        out.push('\n');
    }
    out
}
