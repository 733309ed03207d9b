//! Whether a result accounts for every new recap: it is cited, or it was
//! skipped with a reason. Otherwise it would count as consumed although nobody
//! looked at it.
//!
//! Pure.
//!
//! # Limits
//!
//! Asks for a citation, not for what it is worth.

use crate::consolidate::fault::Fault;
use crate::domain::entry::Entry;
use crate::domain::id::ThreadId;
use crate::domain::path::{FileKind, HANDBOOK, SUMMARY, TreePath};
use crate::domain::text::Redacted;
use crate::domain::version::MemoryVersion;
use crate::model::Skipped;
use crate::text::redact;
use crate::text::terminal;
use crate::text::truncate;

/// Longest reason that is kept, in bytes.
const REASON_BYTES_MAX: usize = 400;

/// A recap that is new or changed in this pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FreshRecap {
    pub(crate) path: TreePath,
    pub(crate) thread_id: ThreadId,
}

/// A new recap that nothing cites, with the worker's reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftOutRecap {
    pub(crate) path: TreePath,
    pub(crate) thread_id: ThreadId,
    /// On one line.
    pub(crate) reason: Redacted,
}

/// What [`account`] found, in the order of the recaps.
#[derive(Debug, Default)]
pub(super) struct Accounted {
    pub(super) unnamed: Vec<Fault>,
    pub(super) left_out: Vec<LeftOutRecap>,
}

/// Looks for each new recap in the file that leads to recaps: the handbook of
/// version 1, the summary of version 2.
pub(super) fn account(
    version: MemoryVersion,
    new: &[Entry],
    fresh: &[FreshRecap],
    skipped: &[Skipped],
) -> Accounted {
    let (kind, place) = match version {
        MemoryVersion::V1 => (FileKind::Handbook, HANDBOOK),
        MemoryVersion::V2 => (FileKind::Summary, SUMMARY),
    };
    let leading = || new.iter().filter(|entry| entry.path.kind() == kind);
    let mut accounted = Accounted::default();
    for recap in fresh {
        let (path, thread_id) = (recap.path.clone(), recap.thread_id.clone());
        let cites = |entry: &Entry| {
            let mut files = entry.recap_files.iter();
            entry.thread_ids.contains(&thread_id) || files.any(|name| name == path.name())
        };
        if leading().any(cites) {
            continue;
        }
        let mut reasons = skipped.iter().filter(|it| it.thread_id == thread_id);
        match reasons.find_map(|it| reason(&it.reason)) {
            Some(reason) => accounted.left_out.push(LeftOutRecap {
                path,
                thread_id,
                reason,
            }),
            None => accounted.unnamed.push(Fault::Unnamed {
                path,
                thread_id,
                place,
            }),
        }
    }
    accounted
}

/// `None` for one that says nothing.
fn reason(words: &str) -> Option<Redacted> {
    let line = terminal::safe_line(words);
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let says_something = line.contains(char::is_alphanumeric);
    says_something.then(|| redact::redact_str(&truncate::middle_bytes(&line, REASON_BYTES_MAX)))
}

#[cfg(test)]
mod tests {
    use super::{FreshRecap, account};
    use crate::domain::id::ThreadId;
    use crate::domain::path::TreePath;
    use crate::domain::version::MemoryVersion;
    use crate::model::Skipped;
    use crate::text::entries;

    const TASK: &str =
        "# Task Group: demo\n\nscope: x\n\n## Task 1: a\n\n### rollout_summary_files\n\n- ";

    /// What is said of one fresh recap, `a1` in `2026-01-01T00-00-00-aaaa.md`.
    #[track_caller]
    fn check(version: MemoryVersion, file: &str, text: &str, reason: Option<&str>, expected: &str) {
        let path = |path: &str| TreePath::parse(path).unwrap();
        let thread_id = ThreadId::parse("a1").unwrap();
        let fresh = [FreshRecap {
            path: path("rollout_summaries/2026-01-01T00-00-00-aaaa.md"),
            thread_id: thread_id.clone(),
        }];
        let skipped = reason.map(|reason| Skipped {
            thread_id,
            reason: reason.to_owned(),
        });
        let new = entries::parse(&path(file), text);
        let told = account(version, &new, &fresh, skipped.as_slice());
        let left_out = told.left_out.iter().map(|it| it.reason.as_str());
        let unnamed = told.unnamed.iter().map(|_| "unnamed");
        let told: Vec<&str> = left_out.chain(unnamed).collect();
        assert_eq!(told.join(" "), expected, "{text}");
    }

    #[test]
    fn a_new_recap_is_cited_by_file_or_session_where_it_is_looked_up() {
        use MemoryVersion::{V1, V2};
        let by_file = format!("{TASK}2026-01-01T00-00-00-aaaa.md\n");
        let by_thread = format!("{TASK}x (thread_id=a1)\n");
        for (version, file, text) in [
            (V1, "MEMORY.md", by_file.as_str()),
            (V1, "MEMORY.md", &by_thread),
            (V2, "memory_summary.md", "v1\n\n- x; thread_id=a1\n"),
        ] {
            check(version, file, text, None, "");
        }
        for (version, file, text) in [
            (V1, "MEMORY.md", TASK),
            (V1, "MEMORY.md", "- thread_id=a2\n"),
            (V1, "memory_summary.md", "v1\n\n- x; thread_id=a1\n"),
            (V2, "MEMORY.md", &by_file),
        ] {
            check(version, file, text, None, "unnamed");
        }
    }

    #[test]
    fn a_reason_excuses_and_an_empty_one_does_not() {
        let version = MemoryVersion::V1;
        for (reason, expected) in [
            ("only\n  small talk", "only small talk"),
            ("雑談のみ", "雑談のみ"),
            ("", "unnamed"),
            (" …", "unnamed"),
        ] {
            check(version, "MEMORY.md", TASK, Some(reason), expected);
        }
    }
}
