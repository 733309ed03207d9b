//! References from memory files to sessions and recaps.
//!
//! Two forms count: `thread_id=<id>` (also with a colon) and a recap's file,
//! either below `rollout_summaries/` or by a name of the shape that recaps
//! have. A thread id inside a path is no reference, and a word without any digit
//! (`thread_id: String`) is no thread id.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::domain::id::ThreadId;
use crate::domain::path::RECAPS;
use crate::domain::time::Timestamp;

/// What is referred to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Thread(ThreadId),
    /// File name with `.md`, without the folder.
    Recap(String),
}

/// One reference and where it stands, folder or `thread_id=` included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pointer {
    pub(crate) target: Target,
    pub(crate) bytes: Range<usize>,
}

/// Made once: most texts searched are a line.
static THREAD_KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("thread_id"));
static NAME_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(".md"));

/// Every reference in `text`, in order.
pub(crate) fn find(text: &str) -> Vec<Pointer> {
    let mut pointers: Vec<Pointer> = (threads(text).into_iter()).chain(recaps(text)).collect();
    pointers.sort_by_key(|pointer| pointer.bytes.start);
    pointers
}

/// The transcript that a line of a memory file names beside a recap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedRollout<'a> {
    /// Of the value in the line.
    pub(crate) bytes: Range<usize>,
    /// What the recap says.
    pub(crate) actual: &'a str,
    pub(crate) is_right: bool,
}

/// The `rollout_path=` of a line that cites one recap, or one session.
/// `rollouts` has what recaps say, by file name and by thread id.
///
/// A path may hold anything, so the right one is known by what it is; any other
/// is taken to end where the next field or the bracket does.
pub(crate) fn rollout_of<'a>(
    line: &str,
    rollouts: &'a BTreeMap<String, String>,
) -> Option<NamedRollout<'a>> {
    const KEY: &str = "rollout_path=";
    let start = line.find(KEY)? + KEY.len();
    let start = start + usize::from(line[start..].starts_with('`'));
    let mut cited = find(line).into_iter().filter_map(|pointer| {
        let name = match pointer.target {
            Target::Recap(name) => name,
            Target::Thread(id) => id.to_string(),
        };
        rollouts.get(&name)
    });
    let actual = cited.next()?;
    if cited.any(|other| other != actual) {
        return None;
    }
    let value = line[start..].trim_end();
    let ends = ["`", ", ", ")", ";"].iter();
    let end = ends.filter_map(|end| value.find(end)).min();
    Some(NamedRollout {
        bytes: start..start + end.unwrap_or(value.len()),
        actual,
        is_right: begins_with_path(value, actual),
    })
}

/// Whether `value` begins with this path and goes on with something else. The
/// backslashes that make a name plain do not count, nor what was cut off a
/// very long one.
fn begins_with_path(value: &str, path: &str) -> bool {
    const CUT_BYTES_MIN: usize = 200;
    let plain = |text: &str| -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").replace('\\', "")
    };
    let (value, path) = (plain(value), plain(path));
    let ends_here = |rest: &str| rest.is_empty() || rest.starts_with(['`', ',', ')', ';', ' ']);
    let is_cut = || {
        let kept = value.split('…').next().unwrap_or_default();
        kept.len() < value.len() && CUT_BYTES_MIN <= kept.len() && path.starts_with(kept)
    };
    value.strip_prefix(path.as_str()).is_some_and(ends_here) || is_cut()
}

fn threads(text: &str) -> Vec<Pointer> {
    (THREAD_KEY.find_iter(text.as_bytes()))
        .filter_map(|start| {
            let after_key =
                text[start + THREAD_KEY.needle().len()..].trim_start_matches(['`', '"', '*', ' ']);
            let value = after_key.strip_prefix(['=', ':'])?;
            let value = value.trim_start_matches([' ', '`', '"', '<', '*']);
            let value_start = text.len() - value.len();
            let is_id_char = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
            let length = value.find(|c| !is_id_char(c)).unwrap_or(value.len());
            let id = value[..length].trim_end_matches(['.', ':', '-']);
            if !id.bytes().any(|byte| byte.is_ascii_digit()) {
                return None;
            }
            Some(Pointer {
                target: Target::Thread(ThreadId::parse(id)?),
                bytes: start..value_start + id.len(),
            })
        })
        .collect()
}

/// Names end before `.md`, which is looked for first: most text has none.
fn recaps(text: &str) -> Vec<Pointer> {
    (NAME_END.find_iter(text.as_bytes()))
        .filter_map(|dot| {
            let end = dot + ".md".len();
            let goes_on = text[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
            let path_start = text[..dot].rfind(ends_path).map_or(0, |at| {
                at + text[at..].chars().next().map_or(1, char::len_utf8)
            });
            let path = &text[path_start..end];
            let (start, name) = match path.rsplit_once(&format!("{RECAPS}/")) {
                Some((before, name)) if is_apart(before) => (path_start + before.len(), name),
                _ if is_recap_name(path) => (path_start, path),
                _ => return None,
            };
            let is_name = !goes_on && !name.contains('/') && ".md".len() < name.len();
            is_name.then(|| Pointer {
                target: Target::Recap(name.to_owned()),
                bytes: start..end,
            })
        })
        .collect()
}

/// Whether a folder's name may begin after `before`: scripts without spaces
/// put words directly before it.
fn is_apart(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn ends_path(c: char) -> bool {
    c.is_whitespace()
        || "`'\"()[]<>{}|,;=*".contains(c)
        || "，；、。（）「」『』【】《》：".contains(c)
}

/// `2026-12-01T05-33-44-ILrR….md`.
fn is_recap_name(name: &str) -> bool {
    name.split_at_checked(19).is_some_and(|(stamp, rest)| {
        Timestamp::parse_file_stamp(stamp).is_some() && rest.starts_with('-')
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{find, rollout_of};

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = find(text).into_iter().map(|p| &text[p.bytes]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn references_are_found_in_every_form() {
        check(
            "- rollout_summaries/2026-12-01T05-33-44-ILrR-x.md — y; thread_id=01a23018-3e69",
            &[
                "rollout_summaries/2026-12-01T05-33-44-ILrR-x.md",
                "thread_id=01a23018-3e69",
            ],
        );
        check(
            "- 2026-12-01T05-33-44-ILrR.md (cwd=/a, thread_id=a1, note)",
            &["2026-12-01T05-33-44-ILrR.md", "thread_id=a1"],
        );
        check(
            "[x](rollout_summaries/日.md), `thread_id`: `b2`.",
            &["rollout_summaries/日.md", "thread_id`: `b2"],
        );
        check(
            "memories/rollout_summaries/a.md。见rollout_summaries/b.md",
            &["rollout_summaries/a.md", "rollout_summaries/b.md"],
        );
        check(
            "见：rollout_summaries/b.md，其余",
            &["rollout_summaries/b.md"],
        );
    }

    #[test]
    fn a_transcript_is_held_against_that_of_the_one_recap_of_the_line() {
        let known = |name: &str, path: &str| (name.to_owned(), path.to_owned());
        let rollouts = BTreeMap::from([
            known("a1", "/s/a (1), b.jsonl"),
            known("rollout.md", "/s/a (1), b.jsonl"),
            known("b2", "/s/c.jsonl"),
        ]);
        for (line, expected) in [
            (
                "- r (rollout_path=/s/a (1), b.jsonl, thread_id=a1)",
                Some(true),
            ),
            (
                "- r (rollout_path=`/s/a (1), b.jsonl`, thread_id=a1)",
                Some(true),
            ),
            (
                "- rollout_summaries/rollout.md (rollout_path=/nope)",
                Some(false),
            ),
            (
                "- r (rollout_path=/s/a (1),  b\\.jsonl, thread_id=a1)",
                Some(true),
            ),
            ("- r (rollout_path=/nope, thread_id=a1)", Some(false)),
            (
                "- r (rollout_path=/s/c.jsonl.old, thread_id=b2)",
                Some(false),
            ),
            ("- r (rollout_path=, thread_id=b2)", Some(false)),
            ("- two: thread_id=a1, thread_id=b2, rollout_path=/x", None),
            ("- unknown: thread_id=c3, rollout_path=/x", None),
            ("- r (thread_id=a1)", None),
        ] {
            let named = rollout_of(line, &rollouts);
            assert_eq!(named.map(|it| it.is_right), expected, "{line}");
        }
        let line = "- r (rollout_path=/nope, thread_id=b2)";
        let named = rollout_of(line, &rollouts).unwrap();
        assert_eq!(&line[named.bytes], "/nope");
        assert_eq!(named.actual, "/s/c.jsonl");
    }

    #[test]
    fn what_only_looks_like_one_is_none() {
        check(
            "see README.md and skills/a/SKILL.md, rollout_summaries/.md",
            &[],
        );
        check("thread_id: Option<ThreadId>", &[]);
        check(
            "thread_ids=[] rollout_path=/x/2026-12-01T05-33-44-a.jsonl",
            &[],
        );
        check("rollout_summaries/a.mdx", &[]);
    }
}
