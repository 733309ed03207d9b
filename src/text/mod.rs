//! Markdown, headers, truncation, redaction: pure functions on text.

pub(crate) mod cues;
