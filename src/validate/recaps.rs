//! `R`: recaps in the memory folder (reference 3.2, DESIGN 5).

use std::collections::BTreeMap;

use super::{Diagnostics, Place, Tree, quote};
use crate::domain::id::ThreadId;
use crate::domain::path::{FileKind, TreePath};
use crate::text::header::HeaderError;
use crate::text::recap::{self, KEYS, KEYS_REQUIRED, RecapError};

pub(super) fn check(tree: &Tree<'_>, found: &mut Diagnostics) {
    let mut by_thread: BTreeMap<ThreadId, &TreePath> = BTreeMap::new();
    for (path, text) in tree.of_kind(FileKind::Recap) {
        let Some(thread_id) = check_recap(path, text, found) else {
            continue;
        };
        if let Some(first) = by_thread.get(&thread_id) {
            found.add_second_recap(Place::whole(path), &thread_id, first);
        } else {
            by_thread.insert(thread_id, path);
        }
    }
}

fn check_recap(path: &TreePath, text: &str, found: &mut Diagnostics) -> Option<ThreadId> {
    let whole = Place::whole(path);
    let (fields, body) = match recap::read_fields(text) {
        Ok(parts) => parts,
        Err(error) => {
            found.add_unreadable_header(header_place(path, text, &error), &error.to_string());
            return None;
        }
    };
    let missing: Vec<_> = (KEYS_REQUIRED.into_iter())
        .filter(|key| fields.text(key).is_none())
        .collect();
    for key in &missing {
        found.add_missing_field(whole, key);
    }
    for key in fields.keys().filter(|key| !KEYS.contains(key)) {
        found.add_unknown_field(field_place(path, text, key), key);
    }
    if body.trim().is_empty() {
        found.add_empty_recap(whole);
    }
    if missing.is_empty()
        && let Err(error) = recap::parse(path.name(), text)
    {
        let place = match &error {
            RecapError::Unreadable { field, .. } => field_place(path, text, field),
            _ => whole,
        };
        found.add_unreadable_field(place, &error.to_string());
    }
    fields.text("thread_id").and_then(ThreadId::parse)
}

fn header_place<'a>(path: &'a TreePath, text: &'a str, error: &RecapError) -> Place<'a> {
    let place = match error {
        RecapError::Header(header) => HeaderError::place(header),
        _ => None,
    };
    match place {
        Some((line, column)) => Place::line(path, text, line, column),
        None => Place::whole(path),
    }
}

/// The line that begins with `key`.
fn field_place<'a>(path: &'a TreePath, text: &'a str, key: &str) -> Place<'a> {
    let number = text.lines().position(|line| {
        line.strip_prefix(key)
            .is_some_and(|rest| rest.trim_start().starts_with(':'))
    });
    match number {
        Some(index) => Place::line(path, text, index + 1, 1),
        None => Place::whole(path),
    }
}

impl Diagnostics {
    fn add_unreadable_header(&mut self, place: Place<'_>, why: &str) {
        self.add("R001", place, why, None);
    }

    fn add_missing_field(&mut self, place: Place<'_>, key: &str) {
        let message = format!("the recap's header has no `{key}`");
        self.add("R002", place, &message, None);
    }

    fn add_unreadable_field(&mut self, place: Place<'_>, why: &str) {
        self.add("R003", place, why, None);
    }

    fn add_unknown_field(&mut self, place: Place<'_>, key: &str) {
        let message = format!("the recap's header has an unknown field {}", quote(key));
        self.add("R004", place, &message, None);
    }

    fn add_second_recap(&mut self, place: Place<'_>, thread_id: &ThreadId, first: &TreePath) {
        let first = quote(first.as_str());
        let message = format!("the session `{thread_id}` has another recap already: {first}");
        self.add("R005", place, &message, None);
    }

    fn add_empty_recap(&mut self, place: Place<'_>) {
        self.add("R006", place, "the recap has no text", None);
    }
}
