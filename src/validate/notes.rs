//! `N`: notes.

use super::{Diagnostics, Place, Tree};
use crate::domain::path::FileKind;
use crate::text::header::HeaderError;
use crate::text::note::{self, Leftover, NoteError};

pub(super) fn check(tree: &Tree<'_>, found: &mut Diagnostics) {
    for (path, text) in tree.of_kind(FileKind::Note) {
        match note::leftover(path.name()) {
            Some(Leftover::Temporary) => continue,
            Some(Leftover::ConflictedCopy) => {
                found.add_conflicted_copy(Place::whole(path));
                continue;
            }
            None => {}
        }
        match note::parse(path, text) {
            Ok(note) if note.written_at.is_none() => found.add_undated_note(Place::whole(path)),
            Ok(_) => {}
            Err(NoteError::Blank) => found.add_empty_note(Place::whole(path)),
            Err(error) => {
                let place = match &error {
                    NoteError::Header(header) => HeaderError::place(header),
                    NoteError::Blank | NoteError::UnknownKind => kind_line(text),
                };
                let (line, column) = place.unwrap_or((1, 1));
                let place = Place::line(path, text, line, column);
                found.add_unreadable_note(place, &error.to_string());
            }
        }
    }
}

fn kind_line(text: &str) -> Option<(usize, usize)> {
    let index = text.lines().position(|line| line.starts_with("kind"))?;
    Some((index + 1, 1))
}

impl Diagnostics {
    fn add_unreadable_note(&mut self, place: Place<'_>, why: &str) {
        self.add("N001", place, why, None);
    }

    fn add_empty_note(&mut self, place: Place<'_>) {
        self.add("N002", place, "the note is empty", None);
    }

    fn add_undated_note(&mut self, place: Place<'_>) {
        let message = "the note's name does not begin with a time, so it counts as the oldest";
        let hint = Some("call it `2026-12-01T05-30-00-<a few words>.md`");
        self.add("N003", place, message, hint);
    }

    fn add_conflicted_copy(&mut self, place: Place<'_>) {
        let message = "this is a synchroniser's second version of a note and is not read";
        let hint = Some("join it with the first one by hand and delete it");
        self.add("N004", place, message, hint);
    }
}
