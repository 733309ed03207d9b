//! `X`: secrets, in every file. The secret itself is never repeated.

use super::{Diagnostics, Place, Tree};
use crate::text::redact;

pub(super) fn check(tree: &Tree<'_>, found: &mut Diagnostics) {
    for (path, text) in tree.files {
        for finding in redact::findings(text) {
            found.add_secret(Place::at(path, text, finding.bytes), finding.kind);
        }
    }
}

impl Diagnostics {
    fn add_secret(&mut self, place: Place<'_>, kind: &str) {
        let message = format!("this looks like a secret ({kind})");
        let hint = Some("take it out and replace it where it is valid");
        self.add("X001", place, &message, hint);
    }
}
