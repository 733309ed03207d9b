//! `K`: skills, version 1 (reference 3.6). They are optional, so rules warn.

use super::{Diagnostics, Place, Tree, quote};
use crate::domain::path::{FileKind, TreePath};
use crate::text::header::{self, HeaderError};

/// Longest name of a skill, in bytes (reference 3.6).
const NAME_BYTES_MAX: usize = 64;

/// A skill's body has fewer lines than this (reference 3.6).
const BODY_LINES_LIMIT: usize = 500;

pub(super) fn check(tree: &Tree<'_>, found: &mut Diagnostics) {
    for (path, text) in tree.of_kind(FileKind::Skill) {
        if let ["skills", folder, "SKILL.md"] = path.as_str().split('/').collect::<Vec<_>>()[..] {
            check_skill(path, text, folder, found);
        }
    }
}

fn check_skill(path: &TreePath, text: &str, folder: &str, found: &mut Diagnostics) {
    let parts = header::split(text).and_then(|split| {
        let fields = split.header.map(header::parse).transpose()?;
        Ok((fields, split.body))
    });
    let (fields, body) = match parts {
        Ok((Some(fields), body)) => (fields, body),
        Ok((None, _)) => {
            found.add_no_front_matter(Place::whole(path), "the skill has no front matter");
            return;
        }
        Err(error) => {
            let (line, column) = HeaderError::place(&error).unwrap_or((1, 1));
            let place = Place::line(path, text, line, column);
            found.add_no_front_matter(place, &error.to_string());
            return;
        }
    };
    let name = fields.text("name").unwrap_or_default();
    let is_name_byte = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_name_byte);
    if !fits || name != folder {
        found.add_unfit_name(Place::whole(path), name, folder);
    }
    if fields
        .text("description")
        .is_none_or(|text| text.trim().is_empty())
    {
        found.add_no_description(Place::whole(path));
    }
    let lines = body.lines().count();
    if BODY_LINES_LIMIT <= lines {
        found.add_long_skill(Place::whole(path), lines);
    }
}

impl Diagnostics {
    fn add_no_front_matter(&mut self, place: Place<'_>, why: &str) {
        self.add("K001", place, why, None);
    }

    fn add_unfit_name(&mut self, place: Place<'_>, name: &str, folder: &str) {
        let (name, folder) = (quote(name), quote(folder));
        let message = format!(
            "the skill's name is {name} and must be its folder's, {folder}, of at most \
             {NAME_BYTES_MAX} of `a-z`, `0-9`, `-`"
        );
        self.add("K002", place, &message, None);
    }

    fn add_no_description(&mut self, place: Place<'_>) {
        let message = "the skill has no description, so nobody will know when to use it";
        self.add("K003", place, message, None);
    }

    fn add_long_skill(&mut self, place: Place<'_>, lines: usize) {
        let message = format!("the skill has {lines} lines; keep it under {BODY_LINES_LIMIT}");
        self.add("K004", place, &message, None);
    }
}
