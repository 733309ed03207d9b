//! `M`: the handbook, version 1 (reference 3.5).
//!
//! Its finer shape is a wish of the prompt, not a contract, so most of it only
//! warns.

use super::small_talk;
use super::{Diagnostics, Place, Tree, known_path, quote};
use crate::domain::path::{FileKind, HANDBOOK};
use crate::text::document::{self, Document, Section};
use crate::text::entries::{is_group, is_task};

pub(super) fn check(tree: &Tree<'_>, found: &mut Diagnostics) {
    let Some((path, text)) = tree.file(FileKind::Handbook) else {
        if tree.needs_outputs() {
            found.add_handbook_missing();
        }
        return;
    };
    let document = document::parse(text, 0);
    if tree.has_inputs() && !document.sections.iter().any(is_group) {
        found.add_no_task_group(Place::whole(path));
    }
    for bytes in small_talk::find(text, &document) {
        found.add_handbook_small_talk(Place::at(path, text, bytes));
    }
    for section in &document.sections {
        let place = Place::at(path, text, title_bytes(text, section));
        if is_group(section) {
            check_group(place, section, found);
        } else if is_task(section) && is_in_group(&document, section) {
            check_task(place, &document, section, found);
        }
    }
}

fn title_bytes(text: &str, section: &Section) -> std::ops::Range<usize> {
    let title = text[section.heading.clone()].trim_end();
    section.heading.start..section.heading.start + title.len()
}

fn is_in_group(document: &Document, task: &Section) -> bool {
    let mut groups = document.sections.iter().filter(|section| is_group(section));
    groups.any(|group| group.bytes.contains(&task.bytes.start))
}

fn check_group(place: Place<'_>, group: &Section, found: &mut Diagnostics) {
    let body = &place.text[group.body.clone()];
    for key in ["scope:", "applies_to:"] {
        let has_line = body.lines().any(|line| {
            let line = line.trim_start_matches(['-', '*', ' ']);
            line.starts_with(key)
        });
        if !has_line {
            found.add_group_without(place, key);
        }
    }
}

fn check_task(place: Place<'_>, document: &Document, task: &Section, found: &mut Diagnostics) {
    for title in ["rollout_summary_files", "keywords"] {
        let has_section = document
            .sections
            .iter()
            .any(|section| section.title == title && task.bytes.contains(&section.bytes.start));
        if !has_section {
            found.add_task_without(place, title);
        }
    }
}

impl Diagnostics {
    fn add_handbook_missing(&mut self) {
        let path = known_path(HANDBOOK);
        self.add("M001", Place::whole(&path), "the handbook is missing", None);
    }

    fn add_no_task_group(&mut self, place: Place<'_>) {
        let message = "the handbook has no task group although there is something to remember";
        let hint = Some("a group begins with a line `# Task Group: <what it is about>`");
        self.add("M002", place, message, hint);
    }

    fn add_handbook_small_talk(&mut self, place: Place<'_>) {
        let said = quote(&place.text[place.start..place.end]);
        let message = format!("{said} speaks to a person and is nothing to remember");
        self.add("M003", place, &message, None);
    }

    fn add_group_without(&mut self, place: Place<'_>, key: &str) {
        let message = format!("the task group has no `{key}` line");
        self.add("M004", place, &message, None);
    }

    fn add_task_without(&mut self, place: Place<'_>, title: &str) {
        let message = format!("the task has no section `### {title}`");
        self.add("M005", place, &message, None);
    }
}
