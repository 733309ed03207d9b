//! Unified text diffs as people and workers read them (reference 6.6).
//!
//! The text equals that of `git diff` without its `index` lines and without
//! the function names after `@@`; bytes that are not UTF-8 are replaced.

use std::fmt::Write as _;
use std::ops::Range;

use gix::diff::blob::{Algorithm, Diff, Hunk, InternedInput, diff_with_slider_heuristics};

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::store::error::StoreError;
use crate::store::history::changes_between;
use crate::store::message::ChangeKind;
use crate::store::{Blob, Store};

/// Unchanged lines shown around a change.
const CONTEXT_LINES: u32 = 3;

/// One side of a file in a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiffSide<'a> {
    pub(crate) content: &'a [u8],
    pub(crate) executable: bool,
}

/// The difference of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileDiff {
    pub(crate) path: TreePath,
    pub(crate) kind: ChangeKind,
    /// From `diff --git` to the last hunk, ends in a newline. Not redacted.
    pub(crate) text: String,
    pub(crate) lines_added: usize,
    pub(crate) lines_removed: usize,
}

/// Compares two versions of a file; `None` when they are the same.
pub(crate) fn diff_file(
    path: &TreePath,
    old: Option<DiffSide<'_>>,
    new: Option<DiffSide<'_>>,
) -> Option<FileDiff> {
    let kind = ChangeKind::between(old.as_ref(), new.as_ref())?;
    let mut text = header(path, old, new);
    let input = InternedInput::new(content(old), content(new));
    let diff = diff_with_slider_heuristics(Algorithm::Histogram, &input);
    if diff.hunks().next().is_some() {
        let name = |side: Option<DiffSide<'_>>, letter: char| match side {
            Some(_) => format!("{letter}/{path}"),
            None => "/dev/null".to_owned(),
        };
        let _ = writeln!(text, "--- {}", name(old, 'a'));
        let _ = writeln!(text, "+++ {}", name(new, 'b'));
        hunks(&mut text, &input, &diff);
    }
    Some(FileDiff {
        path: path.clone(),
        kind,
        text,
        lines_added: usize::try_from(diff.count_additions()).unwrap_or(usize::MAX),
        lines_removed: usize::try_from(diff.count_removals()).unwrap_or(usize::MAX),
    })
}

fn content(side: Option<DiffSide<'_>>) -> &[u8] {
    side.map_or(b"", |side| side.content)
}

fn header(path: &TreePath, old: Option<DiffSide<'_>>, new: Option<DiffSide<'_>>) -> String {
    let mode = |side: DiffSide<'_>| if side.executable { "100755" } else { "100644" };
    let mut text = format!("diff --git a/{path} b/{path}\n");
    let _ = match (old, new) {
        (None, Some(new)) => writeln!(text, "new file mode {}", mode(new)),
        (Some(old), None) => writeln!(text, "deleted file mode {}", mode(old)),
        (Some(old), Some(new)) if old.executable != new.executable => {
            writeln!(text, "old mode {}\nnew mode {}", mode(old), mode(new))
        }
        _ => Ok(()),
    };
    text
}

/// Changes less than two contexts apart share one `@@` block.
fn hunks(text: &mut String, input: &InternedInput<&[u8]>, diff: &Diff) {
    let mut block: Vec<Hunk> = Vec::new();
    for hunk in diff.hunks() {
        let is_far = |last: &Hunk| 2 * CONTEXT_LINES < hunk.before.start - last.before.end;
        if block.last().is_some_and(is_far) {
            write_block(text, input, &block);
            block.clear();
        }
        block.push(hunk);
    }
    write_block(text, input, &block);
}

fn write_block(text: &mut String, input: &InternedInput<&[u8]>, block: &[Hunk]) {
    let (Some(first), Some(last)) = (block.first(), block.last()) else {
        return;
    };
    let length = u32::try_from(input.before.len()).unwrap_or(u32::MAX);
    let lead = first.before.start.min(CONTEXT_LINES);
    let tail = (length - last.before.end).min(CONTEXT_LINES);
    let before = first.before.start - lead..last.before.end + tail;
    let after = first.after.start - lead..last.after.end + tail;
    let _ = writeln!(text, "@@ -{} +{} @@", range(&before), range(&after));
    let mut at = before.start;
    for hunk in block {
        lines(text, input, ' ', &input.before, at..hunk.before.start);
        lines(text, input, '-', &input.before, hunk.before.clone());
        lines(text, input, '+', &input.after, hunk.after.clone());
        at = hunk.before.end;
    }
    lines(text, input, ' ', &input.before, at..before.end);
}

/// An empty range is named by the line before it, a length of one is not said.
fn range(lines: &Range<u32>) -> String {
    match lines.end - lines.start {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        length => format!("{},{length}", lines.start + 1),
    }
}

fn lines(
    text: &mut String,
    input: &InternedInput<&[u8]>,
    mark: char,
    side: &[gix::diff::blob::Token],
    range: Range<u32>,
) {
    let index = |at: u32| usize::try_from(at).unwrap_or(usize::MAX);
    for token in &side[index(range.start)..index(range.end)] {
        let line: &[u8] = input.interner[*token];
        text.push(mark);
        text.push_str(&String::from_utf8_lossy(line));
        if !line.ends_with(b"\n") {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

impl Store {
    /// The differences between two commits, sorted by path; without an old
    /// one, everything is new.
    ///
    /// # Errors
    ///
    /// When a commit, tree or blob cannot be read.
    pub(crate) fn diff(
        &self,
        old: Option<ObjectId>,
        new: ObjectId,
    ) -> Result<Vec<FileDiff>, StoreError> {
        let old = old.map(|old| self.snapshot(old)).transpose()?;
        let new = self.snapshot(new)?;
        let mut diffs = Vec::new();
        for change in changes_between(old.as_ref(), &new) {
            let bytes = |blob: Option<Blob>| blob.map(|blob| self.blob(blob.id)).transpose();
            let (old, new) = (bytes(change.old)?, bytes(change.new)?);
            let old = side(old.as_deref(), change.old);
            diffs.extend(diff_file(
                &change.path,
                old,
                side(new.as_deref(), change.new),
            ));
        }
        Ok(diffs)
    }
}

fn side(content: Option<&[u8]>, blob: Option<Blob>) -> Option<DiffSide<'_>> {
    Some(DiffSide {
        content: content?,
        executable: blob?.executable,
    })
}

#[cfg(test)]
mod tests {
    use super::{DiffSide, diff_file};
    use crate::domain::path::TreePath;

    #[track_caller]
    fn check(old: Option<(&str, bool)>, new: Option<(&str, bool)>, expected: Option<&str>) {
        let path = TreePath::parse("a b.md").unwrap();
        let old = old.map(|(text, executable)| DiffSide {
            content: text.as_bytes(),
            executable,
        });
        let new = new.map(|(text, executable)| DiffSide {
            content: text.as_bytes(),
            executable,
        });
        let found = diff_file(&path, old, new);
        assert_eq!(found.map(|diff| diff.text).as_deref(), expected);
    }

    #[test]
    fn equal_versions_have_no_difference() {
        check(None, None, None);
        check(Some(("a\n", false)), Some(("a\n", false)), None);
    }

    #[test]
    fn additions_deletions_and_modes_are_said() {
        check(
            None,
            Some(("one\ntwo\n", true)),
            Some(
                "diff --git a/a b.md b/a b.md\nnew file mode 100755\n\
                 --- /dev/null\n+++ b/a b.md\n@@ -0,0 +1,2 @@\n+one\n+two\n",
            ),
        );
        check(
            Some(("one\n", false)),
            None,
            Some(
                "diff --git a/a b.md b/a b.md\ndeleted file mode 100644\n\
                 --- a/a b.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n",
            ),
        );
        check(
            Some(("", false)),
            Some(("", true)),
            Some("diff --git a/a b.md b/a b.md\nold mode 100644\nnew mode 100755\n"),
        );
    }

    #[test]
    fn three_lines_of_context_and_the_missing_newline_are_shown() {
        check(
            Some(("1\n2\n3\n4\n5\n6\n7\n8\n9", false)),
            Some(("1\n2\n3\n4\nfive\n6\n7\n8\n9\n", false)),
            Some(
                "diff --git a/a b.md b/a b.md\n--- a/a b.md\n+++ b/a b.md\n\
                 @@ -2,8 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n-9\n\
                 \\ No newline at end of file\n+9\n",
            ),
        );
    }
}
