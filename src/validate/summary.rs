//! `S`: the summary (reference 3.4 and 6.9, DESIGN 8).

use super::small_talk;
use super::{Diagnostics, Place, Tree, known_path, quote};
use crate::domain::limits::SUMMARY_V2_BYTES_LIMIT;
use crate::domain::path::{FileKind, SUMMARY};
use crate::domain::version::MemoryVersion;
use crate::text::document;
use crate::text::entries;

/// What the first line has to be, in both versions.
const FIRST_LINE: &str = "v1";

/// Sections that every summary has.
const HEADINGS: [&str; 4] = [
    "User Profile",
    "User preferences",
    "General Tips",
    "What's in Memory",
];

pub(super) fn check(tree: &Tree<'_>, found: &mut Diagnostics) {
    let Some((path, text)) = tree.file(FileKind::Summary) else {
        if tree.needs_outputs() {
            found.add_summary_missing();
        }
        return;
    };
    let whole = Place::at(path, text, 0..text.len());
    if text.trim().is_empty() {
        found.add_summary_says_nothing(Place::whole(path));
        return;
    }
    check_size(tree, whole, found);
    let first_line = text.split('\n').next().unwrap_or_default();
    if first_line != FIRST_LINE {
        found.add_wrong_first_line(Place::at(path, text, 0..first_line.len()), first_line);
    }
    let document = document::parse(text, entries::markdown_start(path, text));
    for heading in HEADINGS {
        let is_there = document.sections.iter().any(|section| {
            let line = text[section.heading.clone()].trim();
            line == format!("## {heading}")
        });
        if !is_there {
            found.add_heading_missing(whole, heading);
        }
    }
    if tree.has_inputs() && entries::parse(path, text).is_empty() {
        found.add_summary_says_nothing(whole);
    }
    for bytes in small_talk::find(text, &document) {
        found.add_summary_small_talk(Place::at(path, text, bytes));
    }
}

fn check_size(tree: &Tree<'_>, whole: Place<'_>, found: &mut Diagnostics) {
    let size_bytes = whole.end;
    if let Some(size_bytes_max) = tree.facts.summary_bytes_max
        && size_bytes_max < size_bytes
    {
        found.add_summary_too_long(whole, size_bytes_max);
    }
    let is_bounded = tree.version == MemoryVersion::V2 && !tree.facts.is_grown_by_hand;
    if is_bounded && SUMMARY_V2_BYTES_LIMIT <= size_bytes {
        found.add_summary_v2_too_long(whole);
    }
}

impl Diagnostics {
    fn add_summary_missing(&mut self) {
        let path = known_path(SUMMARY);
        let message = "the summary is missing";
        self.add("S001", Place::whole(&path), message, None);
    }

    fn add_wrong_first_line(&mut self, place: Place<'_>, line: &str) {
        let message = format!("the first line is {} and must be `v1`", quote(line));
        self.add("S002", place, &message, None);
    }

    fn add_summary_too_long(&mut self, whole: Place<'_>, size_bytes_max: usize) {
        let message = format!(
            "the summary has {} bytes, {size_bytes_max} are allowed",
            whole.end
        );
        let hint = Some("move detail into a recap or the handbook and leave a pointer");
        self.add("S003", whole.rest_after(size_bytes_max), &message, hint);
    }

    fn add_summary_v2_too_long(&mut self, whole: Place<'_>) {
        let message = format!(
            "the summary has {} bytes, version 2 needs fewer than {SUMMARY_V2_BYTES_LIMIT}",
            whole.end
        );
        let place = whole.rest_after(SUMMARY_V2_BYTES_LIMIT);
        self.add("S004", place, &message, None);
    }

    fn add_heading_missing(&mut self, whole: Place<'_>, heading: &str) {
        let message = format!("the heading `## {heading}` is missing");
        self.add("S005", Place::whole(whole.path), &message, None);
    }

    fn add_summary_says_nothing(&mut self, whole: Place<'_>) {
        let message = "the summary has no entry although there is something to remember";
        self.add("S006", Place::whole(whole.path), message, None);
    }

    fn add_summary_small_talk(&mut self, place: Place<'_>) {
        let said = quote(&place.text[place.start..place.end]);
        let message = format!("{said} speaks to a person and is nothing to remember");
        self.add("S007", place, &message, None);
    }
}

impl Place<'_> {
    /// From a byte near `start` to the end.
    fn rest_after(self, start: usize) -> Self {
        Self {
            start: self.text.floor_char_boundary(start.min(self.end)),
            ..self
        }
    }
}
