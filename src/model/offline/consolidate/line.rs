//! One line of Markdown from words that somebody else wrote.
//!
//! What a recap or a note says becomes the text of a bullet. It must not
//! become anything else: no heading, no list of its own, no code fence that
//! swallows what follows, no second line.

use std::collections::BTreeSet;

use crate::domain::id::ThreadId;
use crate::domain::note::NOTE_MARK;
use crate::domain::path::{EXTENSIONS, NOTES};
use crate::text::pointers::{self, Target};
use crate::text::terminal;

/// Marks where words were left out for want of room.
const CUT_MARK: &str = "…";

/// `text` as it can stand after `- `: one line, no block markers at its start.
/// Empty when nothing but markers was there.
pub(super) fn clean(text: &str) -> String {
    let safe = terminal::safe_line(text);
    let mut rest = safe.split_whitespace().collect::<Vec<_>>().join(" ");
    loop {
        let shorter = strip_marker(&rest);
        if shorter.len() == rest.len() {
            break;
        }
        rest = shorter.to_owned();
    }
    if rest.starts_with(['<', '|', '=']) {
        rest.insert(0, '\\');
    }
    rest
}

/// `text` with what looks like a reference to a session, recap, task or note
/// made plain by a backslash. Copied words cite nothing; only the rules do.
pub(super) fn without_pointers(text: &str) -> String {
    let out = made_plain(text, &|_| true);
    escape(
        &escape(&escape(&out, "[Task "), "(extensions/ad_hoc/notes"),
        "-hoc note]",
    )
}

/// A header field (folder, project, title, keyword) as it can stand anywhere
/// in a line of ours: one line, bounded, no markers at its start, and nothing
/// that reads as a reference, also not together with what we print behind it.
pub(super) fn of_header(text: &str, bytes_max: usize) -> String {
    let plain = without_pointers(&shorten(&clean(text), bytes_max));
    // `thread_id` and then our own colon would name a session.
    let bare = plain.trim_end_matches(['`', '"', '*', ' ']);
    match bare.strip_suffix("thread_id") {
        Some(before) => format!("{before}thread\\_id{}", &plain[bare.len()..]),
        None => plain,
    }
}

/// `text` with the references that `is_plain` names made plain.
pub(super) fn made_plain(text: &str, is_plain: &dyn Fn(&Target) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for pointer in pointers::find(text) {
        if !is_plain(&pointer.target) {
            continue;
        }
        // Behind the first letter or digit a backslash shows nothing in
        // Markdown when it stands before `_`, `-` or `/`.
        let inside = &text[pointer.bytes.clone()];
        let mark = inside.find(['_', '-', '/']).unwrap_or(0) + pointer.bytes.start;
        if mark < at {
            continue;
        }
        out.push_str(&text[at..mark]);
        out.push('\\');
        at = mark;
    }
    out.push_str(&text[at..]);
    out
}

/// The words beside the references of `text`.
pub(super) fn without_references(text: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    for pointer in pointers::find(text) {
        out.push_str(text.get(at..pointer.bytes.start).unwrap_or_default());
        at = at.max(pointer.bytes.end);
    }
    out.push_str(&text[at..]);
    out.trim_matches([' ', '—', ';', '-', '(', ')', ','])
        .to_owned()
}

/// A backslash before each `marker` that has none yet.
fn escape(text: &str, marker: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (start, _) in text.match_indices(marker) {
        out.push_str(&text[at..start]);
        if !out.ends_with('\\') {
            out.push('\\');
        }
        at = start;
    }
    out.push_str(&text[at..]);
    out
}

/// The recap files and sessions that a text refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cited {
    pub(super) files: BTreeSet<String>,
    pub(super) threads: BTreeSet<ThreadId>,
}

impl Cited {
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.threads.is_empty()
    }

    pub(super) fn add(&mut self, text: &str) {
        for pointer in pointers::find(text) {
            match pointer.target {
                Target::Recap(name) => {
                    self.files.insert(name);
                }
                Target::Thread(id) => {
                    self.threads.insert(id);
                }
            }
        }
    }
}

/// Takes one heading, quote, list or fence marker off the start.
fn strip_marker(text: &str) -> &str {
    let text = text.trim_start();
    for marker in ["#", ">", "```", "~~~"] {
        if let Some(rest) = text.strip_prefix(marker) {
            return rest.trim_start();
        }
    }
    if matches!(text, "-" | "*" | "+") || text.chars().all(|c| "-*_ ".contains(c)) {
        return "";
    }
    for marker in ["- ", "* ", "+ ", "[ ] ", "[x] "] {
        if let Some(rest) = text.strip_prefix(marker) {
            return rest.trim_start();
        }
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits > 0 && digits < 10 {
        let after = &text[digits..];
        if let Some(rest) = after.strip_prefix(". ").or(after.strip_prefix(") ")) {
            return rest.trim_start();
        }
    }
    text
}

/// At most `bytes_max` bytes of `text`, cut between words where there are
/// any, never within a character; the mark counts.
pub(super) fn shorten(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let mut end = bytes_max.saturating_sub(CUT_MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = &text[..end];
    // A word cut in half is dropped, unless that would cost half of the text.
    let at_space = kept.rfind(' ').filter(|space| *space > end / 2);
    let kept = kept[..at_space.unwrap_or(end)].trim_end();
    format!("{kept}{CUT_MARK}")
}

/// `text` without the places of its evidence: `(line 12)`, `(lines 3-9)`,
/// `(line 2:17)`, `(line 6, 2 times)`. They differ from session to session where the words do not.
pub(super) fn without_evidence(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find("(line") {
        let after = &rest[open + "(line".len()..];
        let Some(close) = after.find(')') else { break };
        let inside = after[..close].strip_prefix('s').unwrap_or(&after[..close]);
        let places = inside.strip_suffix(" times").unwrap_or(inside);
        let is_place = places.chars().any(|c| c.is_ascii_digit())
            && places
                .chars()
                .all(|c| c.is_ascii_digit() || " ,-–:".contains(c));
        if is_place {
            out.push_str(rest[..open].trim_end());
        } else {
            out.push_str(&rest[..=open + "(line".len() + close]);
        }
        rest = &after[close + 1..];
    }
    out.push_str(rest);
    out.trim().to_owned()
}

/// A bullet's words: without marker, `[Task n]` references and note mark.
pub(super) fn core(bullet: &str) -> &str {
    let mut text = bullet.trim();
    for marker in ["- ", "* ", "+ "] {
        if let Some(rest) = text.strip_prefix(marker) {
            text = rest.trim_start();
            break;
        }
    }
    loop {
        let shorter = text.strip_suffix(NOTE_MARK).unwrap_or(text).trim_end();
        let shorter = strip_note_pointer(strip_task_reference(shorter));
        if shorter.len() == text.len() {
            return text;
        }
        text = shorter;
    }
}

/// Takes `(extensions/ad_hoc/notes/….md)` off the end.
fn strip_note_pointer(text: &str) -> &str {
    let Some(inner) = text.strip_suffix(')') else {
        return text;
    };
    match inner.rfind('(') {
        Some(open) if inner[open + 1..].starts_with(NOTES) && !inner[..open].ends_with('\\') => {
            inner[..open].trim_end()
        }
        _ => text,
    }
}

/// The path of an extension's resource that stands in `text`.
pub(super) fn resource_in(text: &str) -> Option<&str> {
    let start = text.find(EXTENSIONS)?;
    let path = &text[start..];
    let end = path.find([' ', ')', ';']).unwrap_or(path.len());
    let path = &path[..end];
    path.contains("/resources/").then_some(path)
}

fn strip_task_reference(text: &str) -> &str {
    let Some(inner) = text.strip_suffix(']') else {
        return text;
    };
    match inner.rfind('[') {
        Some(open) if is_task_reference(&inner[open + 1..]) && !inner[..open].ends_with('\\') => {
            inner[..open].trim_end()
        }
        _ => text,
    }
}

/// `Task 1` or `Task 1, Task 3` between the brackets.
fn is_task_reference(inside: &str) -> bool {
    !inside.is_empty() && inside.split(',').all(|part| task_number(part).is_some())
}

fn task_number(part: &str) -> Option<u32> {
    part.trim().strip_prefix("Task ")?.trim().parse().ok()
}

/// The numbers that the `[Task n]` marks of a bullet name, in order.
pub(super) fn task_references(bullet: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    let mut rest = bullet;
    while let Some(open) = rest.find('[') {
        let is_plain = rest[..open].ends_with('\\');
        rest = &rest[open + 1..];
        let Some(close) = rest.find(']') else { break };
        let inside = &rest[..close];
        if is_task_reference(inside) && !is_plain {
            numbers.extend(inside.split(',').filter_map(task_number));
        }
    }
    numbers
}

/// `bullet` with its task references changed by `change`: `None` drops one.
pub(super) fn change_references(bullet: &str, change: impl Fn(u32) -> Option<u32>) -> String {
    let mut out = String::with_capacity(bullet.len());
    let mut rest = bullet;
    while let Some(open) = rest.find('[') {
        let after = &rest[open + 1..];
        let Some(close) = after.find(']') else { break };
        let inside = &after[..close];
        if is_task_reference(inside) && !rest[..open].ends_with('\\') {
            let kept: Vec<String> = inside
                .split(',')
                .filter_map(|part| task_number(part).and_then(&change))
                .map(|number| format!("Task {number}"))
                .collect();
            if kept.is_empty() {
                out.push_str(rest[..open].trim_end());
            } else {
                out.push_str(&rest[..open]);
                out.push('[');
                out.push_str(&kept.join(", "));
                out.push(']');
            }
        } else {
            out.push_str(&rest[..=open + 1 + close]);
        }
        rest = &after[close + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        change_references, clean, core, shorten, task_references, without_evidence,
        without_pointers,
    };

    #[test]
    fn words_cannot_become_structure() {
        for (text, cleaned) in [
            ("- - # Task Group: evil", "Task Group: evil"),
            ("## User preferences", "User preferences"),
            ("```\nrm -rf x", "rm -rf x"),
            ("1. one\n2. two", "one 2. two"),
            ("> quoted", "quoted"),
            ("<!-- open", "\\<!-- open"),
            ("---", ""),
            ("a\tb\u{1b}[31m  c\u{202e}", "a b c"),
            ("2026 was fine", "2026 was fine"),
            ("`code` first", "`code` first"),
        ] {
            assert_eq!(clean(text), cleaned, "{text:?}");
        }
    }

    #[test]
    fn the_core_has_no_marks() {
        assert_eq!(core("- use uv [Task 1][Task 12]"), "use uv");
        assert_eq!(core("- use uv [Task 1, Task 2] [ad-hoc note]"), "use uv");
        assert_eq!(core("* see [docs] [1]"), "see [docs] [1]");
        for copied in [
            "see [Task 7]",
            "x [ad-hoc note]",
            "x (extensions/ad_hoc/notes/n.md)",
        ] {
            let plain = without_pointers(copied);
            assert_ne!(plain, copied);
            assert_eq!(core(&format!("- {plain} [Task 1]")), plain);
            assert_eq!(task_references(&plain), [0; 0]);
            assert_eq!(without_pointers(&plain), plain);
        }
    }

    #[test]
    fn references_are_read_and_changed() {
        let bullet = "- see [a] first [Task 1][Task 2, Task 3]";
        assert_eq!(task_references(bullet), [1, 2, 3]);
        let moved = change_references(bullet, |number| (number != 1).then_some(number + 10));
        assert_eq!(moved, "- see [a] first[Task 12, Task 13]");
        assert_eq!(change_references("- x [Task 1]", |_| None), "- x");
    }

    #[test]
    fn places_of_evidence_go_and_other_brackets_stay() {
        for (text, bare) in [
            ("\"use uv\" (line 33)", "\"use uv\""),
            (
                "`a` failed (line 2:17): x; then `b` worked (lines 4-9)",
                "`a` failed: x; then `b` worked",
            ),
            ("`a` failed (line 6, 2 times): x", "`a` failed: x"),
            ("a (line of code)", "a (line of code)"),
            ("success (line 5: passed)", "success (line 5: passed)"),
            ("open (line 4", "open (line 4"),
        ] {
            assert_eq!(without_evidence(text), bare);
        }
    }

    proptest! {
        #[test]
        fn cuts_fit_and_split_no_character(text in "\\PC{0,80}", bytes_max in 4_usize..60) {
            let cut = shorten(&text, bytes_max);
            prop_assert!(cut.len() <= bytes_max);
        }

        #[test]
        fn cleaning_is_done_once(text in "[#>*` \\-+0-9.a<文]{0,20}") {
            let once = clean(&text);
            prop_assert_eq!(clean(&once), once);
        }
    }
}
