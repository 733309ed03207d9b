//! Diagnostics as text for people.
//!
//! ```text
//! memory_summary.md:1:1: error[S002] the first line is `# Memory` and must be `v1`
//!   | # Memory
//!   | ^^^^^^^^
//!   hint: …
//! ```
//!
//! Lines that hold a secret are not shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::Diagnostic;
use crate::domain::path::TreePath;
use crate::text::redact;
use crate::text::terminal::safe_line;

/// Longest source line that is shown, in characters.
const LINE_CHARS_MAX: usize = 160;

/// One line, `file:line:column: level[code] message`.
pub(crate) fn line(diagnostic: &Diagnostic) -> String {
    format!(
        "{}:{}:{}: {}[{}] {}",
        safe_line(diagnostic.path.as_str()),
        diagnostic.line,
        diagnostic.column,
        diagnostic.level.label(),
        diagnostic.code,
        diagnostic.message
    )
}

/// All of them, each with the offending text underlined and its hint.
pub(crate) fn text(diagnostics: &[Diagnostic], files: &BTreeMap<TreePath, String>) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", line(diagnostic));
        if let Some(source) = files.get(&diagnostic.path) {
            out.push_str(&excerpt(source, &diagnostic.bytes).unwrap_or_default());
        }
        if let Some(hint) = &diagnostic.hint {
            let _ = writeln!(out, "  hint: {hint}");
        }
    }
    out
}

/// For the checks of a pull request on GitHub: one command a line.
pub(crate) fn github(diagnostics: &[Diagnostic]) -> String {
    let escape = |text: &str| text.replace('%', "%25").replace(['\r', '\n'], " ");
    let mut out = String::new();
    for diagnostic in diagnostics {
        let path = escape(&safe_line(diagnostic.path.as_str()))
            .replace(',', "%2C")
            .replace(':', "%3A");
        let _ = writeln!(
            out,
            "::{} file={path},line={},col={},title={}::{}",
            diagnostic.level.label(),
            diagnostic.line,
            diagnostic.column,
            diagnostic.code,
            escape(&diagnostic.message)
        );
    }
    out
}

/// The line with a row of carets below; nothing for a whole file and nothing
/// for a line with a secret in it.
fn excerpt(source: &str, bytes: &Range<usize>) -> Option<String> {
    if bytes.is_empty() || source.len() < bytes.end {
        return None;
    }
    let start = source[..bytes.start]
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    let end = source[bytes.start..]
        .find('\n')
        .map_or(source.len(), |length| bytes.start + length);
    let findings = redact::findings(source);
    if findings
        .iter()
        .any(|finding| finding.bytes.start < end && start < finding.bytes.end)
    {
        return None;
    }
    let before = safe_line(&source[start..bytes.start]);
    let marked = safe_line(&source[bytes.start..bytes.end.min(end)]);
    let after = safe_line(source[bytes.end.min(end)..end].trim_end());
    if LINE_CHARS_MAX < before.chars().count() {
        return None;
    }
    let shown: String = format!("{before}{marked}{after}")
        .chars()
        .take(LINE_CHARS_MAX)
        .collect();
    let blanks = " ".repeat(width(&before));
    let room = LINE_CHARS_MAX.saturating_sub(before.chars().count()).max(1);
    let carets = "^".repeat(width(&marked.chars().take(room).collect::<String>()).max(1));
    Some(format!("  | {shown}\n  | {blanks}{carets}\n"))
}

/// Columns on a terminal: two for the wide letters of East Asia.
fn width(text: &str) -> usize {
    let is_wide = |c: char| {
        matches!(u32::from(c), 0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3
            | 0xF900..=0xFAFF | 0xFE30..=0xFE4F | 0xFF00..=0xFF60 | 0xFFE0..=0xFFE6
            | 0x1F300..=0x1FAFF | 0x20000..=0x3FFFD)
    };
    text.chars().map(|c| if is_wide(c) { 2 } else { 1 }).sum()
}
