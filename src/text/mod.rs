//! Markdown, headers, truncation, redaction: pure functions on text.
