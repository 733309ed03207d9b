//! Markdown, headers, truncation, redaction: pure functions on text.
//!
//! # Not in here
//!
//! No I/O, no clock. What a file means for memory as a whole is judged in
//! `validate`; which entries are withheld is loaded by `notes`.

pub(crate) mod citation;
pub(crate) mod cues;
pub(crate) mod document;
pub(crate) mod entries;
pub(crate) mod header;
pub(crate) mod needle;
pub(crate) mod note;
pub(crate) mod note_kind;
pub(crate) mod phrase;
pub(crate) mod pointers;
pub(crate) mod purged;
pub(crate) mod recap;
pub(crate) mod recap_name;
pub(crate) mod redact;
pub(crate) mod shingles;
pub(crate) mod strip;
pub(crate) mod terminal;
pub(crate) mod thinking;
pub(crate) mod truncate;
pub(crate) mod withheld;
