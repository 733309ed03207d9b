//! Taking one commit back out of a tree that has grown since, file by file.
//!
//! First as `git revert` does it (see `merge`). Git gives up where a later
//! commit changed the line next to one that is to be undone, and in memory
//! files that is the rule: lists and sections grow at their ends. So where Git
//! sees a conflict, lines are taken apart finer: one that stands as the commit
//! left it goes, whatever came beside it. But what came below a heading
//! belongs to it, and is not torn from it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use gix::diff::blob::{Algorithm, InternedInput, diff_with_slider_heuristics};

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::domain::text::Raw;
use crate::store::error::StoreError;
use crate::store::history::changes_between;
use crate::store::merge::{MergedFile, MergedText, merge_texts};
use crate::store::{Blob, Store};

/// What undoing a commit does to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undoing {
    /// Nothing.
    Never,
    /// What changed since stays as it is, without a word.
    Yields,
    /// What changed since is a conflict.
    Insists,
}

/// A tree without one commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Undone {
    /// How it differs from today's, sorted by path. In places of conflict
    /// today's text stands.
    pub(crate) files: Vec<MergedFile>,
    pub(crate) conflicts: Vec<Conflict>,
}

/// A file in which a later commit changed what is to be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) path: TreePath,
    /// Empty when the whole file is in question.
    pub(crate) parts: Vec<ConflictPart>,
    /// It was removed since.
    pub(crate) is_gone: bool,
}

/// Lines of such a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConflictPart {
    /// 0-based lines of today's file; empty when they are gone.
    pub(crate) lines: Range<usize>,
    /// What the commit found there.
    pub(crate) before: Raw,
    /// What it left there.
    pub(crate) then: Raw,
    /// What stands there today.
    pub(crate) now: Raw,
}

impl Store {
    /// Undoes `commit` in the tree of `head`, on which `edited` lies (texts a
    /// person has not committed yet; `None` for a file that is gone).
    ///
    /// # Errors
    ///
    /// When a commit, tree or blob cannot be read.
    pub(crate) fn undo(
        &self,
        commit: ObjectId,
        head: ObjectId,
        edited: &BTreeMap<TreePath, Option<String>>,
        undoing: &dyn Fn(&TreePath) -> Undoing,
    ) -> Result<Undone, StoreError> {
        let parent = self.commit(commit)?.parents.first().copied();
        let before = parent.map(|parent| self.snapshot(parent)).transpose()?;
        let then = self.snapshot(commit)?;
        let now = self.snapshot(head)?.files;
        let mut undone = Undone::default();
        for change in changes_between(before.as_ref(), &then) {
            let insists = match undoing(&change.path) {
                Undoing::Never => continue,
                Undoing::Yields => false,
                Undoing::Insists => true,
            };
            let sides = Sides {
                before: self.version(change.old)?,
                then: self.version(change.new)?,
                now: match edited.get(&change.path) {
                    Some(text) => text.clone().map_or(Version::None, |text| Version::Text {
                        text,
                        executable: now.get(&change.path).is_some_and(|it| it.executable),
                    }),
                    None => self.version(now.get(&change.path).copied())?,
                },
            };
            let path = change.path;
            let (file, conflict) = undo_file(&path, &sides);
            let file = match file {
                Next::Stays => None,
                Next::Goes => Some(None),
                Next::Text(text) => Some(Some(text)),
            };
            (undone.files).extend(file.map(|file| MergedFile { path, file }));
            undone.conflicts.extend(conflict.filter(|_| insists));
        }
        Ok(undone)
    }

    fn version(&self, blob: Option<Blob>) -> Result<Version, StoreError> {
        let Some(blob) = blob else {
            return Ok(Version::None);
        };
        match self.text(blob.id) {
            Ok(text) => Ok(Version::Text {
                text: text.unredacted().to_owned(),
                executable: blob.executable,
            }),
            Err(StoreError::NotText { .. }) => Ok(Version::Binary(blob)),
            Err(error) => Err(error),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Version {
    None,
    Text { text: String, executable: bool },
    Binary(Blob),
}

struct Sides {
    before: Version,
    then: Version,
    now: Version,
}

/// What becomes of a file.
enum Next {
    Stays,
    Goes,
    Text(MergedText),
}

/// What becomes of the file, and the conflict, if any.
fn undo_file(path: &TreePath, sides: &Sides) -> (Next, Option<Conflict>) {
    let conflict = |parts| Conflict {
        path: path.clone(),
        parts,
        is_gone: sides.now == Version::None,
    };
    let merged = |text: &str, executable| MergedText {
        content: Raw::new(text),
        executable,
    };
    if sides.now == sides.before {
        return (Next::Stays, None);
    }
    match (&sides.before, &sides.then, &sides.now) {
        (Version::Text { text, executable }, then, now) if then == now => {
            (Next::Text(merged(text, *executable)), None)
        }
        (Version::None, then, now) if then == now => (Next::Goes, None),
        (
            before @ (Version::Text { .. } | Version::None),
            Version::Text { text: then, .. },
            Version::Text {
                text: now,
                executable,
            },
        ) => {
            let before = match before {
                Version::Text { text, .. } => text.as_str(),
                _ => "",
            };
            let (text, parts) = undo_text(before, then, now);
            let conflict = (!parts.is_empty()).then(|| conflict(parts));
            let file = if text == *now {
                Next::Stays
            } else {
                Next::Text(merged(&text, *executable))
            };
            (file, conflict)
        }
        _ => (Next::Stays, Some(conflict(Vec::new()))),
    }
}

/// `now` without what led from `before` to `then`.
fn undo_text(before: &str, then: &str, now: &str) -> (String, Vec<ConflictPart>) {
    let merge = merge_texts(then.as_bytes(), now.as_bytes(), before.as_bytes());
    if let (false, Ok(text)) = (merge.had_conflict, String::from_utf8(merge.content)) {
        return (text, Vec::new());
    }
    let [before, then, now] = [before, then, now].map(with_line_end);
    Undo {
        before: split(&before),
        then: split(&then),
        now: split(&now),
    }
    .run()
}

/// A last line that has no end is no other line when one comes below it.
fn with_line_end(text: &str) -> Cow<'_, str> {
    if text.is_empty() || text.ends_with('\n') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{text}\n"))
}

fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// One change of `then`, by either side.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    /// It is the undoing, not a later change.
    undoes: bool,
    /// Lines of `then`.
    at: Range<usize>,
    /// Lines of the side's own text.
    to: Range<usize>,
}

/// Changes that cannot be told apart, or a single one.
#[derive(Debug)]
struct Group {
    edits: Vec<Edit>,
    at: Range<usize>,
}

struct Undo<'a> {
    before: Vec<&'a str>,
    then: Vec<&'a str>,
    now: Vec<&'a str>,
}

impl Undo<'_> {
    fn run(&self) -> (String, Vec<ConflictPart>) {
        let mut text = String::new();
        let mut parts = Vec::new();
        let mut copied = 0;
        // How much longer each side is than `then`, up to here.
        let (mut ahead_now, mut ahead_before) = (0_isize, 0_isize);
        for group in self.groups() {
            text.extend(self.then[copied..group.at.start].iter().copied());
            copied = group.at.end;
            let starts = (
                shifted(group.at.start, ahead_now),
                shifted(group.at.start, ahead_before),
            );
            for edit in &group.edits {
                let grown = signed(edit.to.len()) - signed(edit.at.len());
                if edit.undoes {
                    ahead_before += grown;
                } else {
                    ahead_now += grown;
                }
            }
            let now = starts.0..shifted(group.at.end, ahead_now);
            let before = starts.1..shifted(group.at.end, ahead_before);
            let (now_lines, before_lines) = (&self.now[now.clone()], &self.before[before]);
            if group.edits.iter().all(|edit| !edit.undoes) {
                text.extend(now_lines.iter().copied());
            } else if group.edits.iter().all(|edit| edit.undoes) || now_lines == before_lines {
                text.extend(before_lines.iter().copied());
            } else if self.is_only_grown(&group) {
                for edit in group.edits.iter().filter(|edit| !edit.undoes) {
                    text.extend(self.now[edit.to.clone()].iter().copied());
                }
            } else {
                text.extend(now_lines.iter().copied());
                parts.push(ConflictPart {
                    lines: now,
                    before: Raw::new(before_lines.concat()),
                    then: Raw::new(self.then[group.at].concat()),
                    now: Raw::new(now_lines.concat()),
                });
            }
        }
        text.extend(self.then[copied..].iter().copied());
        (text, parts)
    }

    /// Lines that only go, with others that only came in between.
    fn is_only_grown(&self, group: &Group) -> bool {
        pairs(group).all(|(back, later)| self.is_free(back, later))
    }

    /// Groups in order: changes that overlap, and those that touch and belong
    /// together.
    fn groups(&self) -> Vec<Group> {
        let mut edits = hunks(&self.then, &self.before, true);
        edits.extend(hunks(&self.then, &self.now, false));
        edits.sort_by_key(|edit| (edit.at.start, edit.at.end, edit.undoes));
        let mut groups: Vec<Group> = Vec::new();
        for edit in edits {
            match groups.last_mut() {
                Some(last) if self.is_one(last, &edit) => {
                    last.at.end = last.at.end.max(edit.at.end);
                    last.edits.push(edit);
                }
                _ => groups.push(Group {
                    at: edit.at.clone(),
                    edits: vec![edit],
                }),
            }
        }
        groups
    }

    fn is_one(&self, last: &Group, next: &Edit) -> bool {
        if next.at.start < last.at.end {
            return true;
        }
        let others = last.edits.iter().filter(|edit| edit.undoes != next.undoes);
        let mut touching = others.filter(|edit| edit.at.end == next.at.start);
        touching.any(|edit| {
            let (back, later) = if next.undoes {
                (next, edit)
            } else {
                (edit, next)
            };
            !self.is_free(back, later)
        })
    }

    /// Whether undoing `back` leaves what a `later` commit did as it was: the
    /// two touch, or lines came in between those that go.
    fn is_free(&self, back: &Edit, later: &Edit) -> bool {
        let came = &self.now[later.to.clone()];
        if back.at.is_empty() && later.at.is_empty() {
            // Two insertions at one place have no order.
            return back.at != later.at;
        }
        if later.at.end <= back.at.start {
            // What comes back must not come below a heading that is new.
            return !back.at.is_empty() || levels(came).is_empty();
        }
        let is_behind = back.at.end <= later.at.start;
        if is_behind && back.at.is_empty() {
            return true;
        }
        let is_inside = later.at.is_empty() && back.to.is_empty();
        if !is_behind && !is_inside {
            return false;
        }
        let went = &self.then[back.at.start..later.at.start.min(back.at.end)];
        let stays = &self.before[back.to.clone()];
        if levels(went) == levels(stays) {
            return true;
        }
        // What came below a heading that goes belongs to it, unless it has a
        // heading of its own rank.
        let Some(highest) = levels(went).into_iter().min() else {
            return true;
        };
        let first = came.iter().find(|line| !line.trim().is_empty());
        first.is_none_or(|line| level(line).is_some_and(|level| level <= highest))
    }
}

/// Each undoing with each later change.
fn pairs(group: &Group) -> impl Iterator<Item = (&Edit, &Edit)> {
    let backs = group.edits.iter().filter(|edit| edit.undoes);
    backs.flat_map(|back| {
        let later = group.edits.iter().filter(|edit| !edit.undoes);
        later.map(move |later| (back, later))
    })
}

/// How many `#` a heading has.
fn level(line: &str) -> Option<usize> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    (0 < level && (rest.starts_with(' ') || rest.trim().is_empty())).then_some(level)
}

fn levels(lines: &[&str]) -> Vec<usize> {
    lines.iter().filter_map(|line| level(line)).collect()
}

fn hunks(then: &[&str], other: &[&str], undoes: bool) -> Vec<Edit> {
    let (then, other) = (then.concat(), other.concat());
    let input = InternedInput::new(then.as_bytes(), other.as_bytes());
    let diff = diff_with_slider_heuristics(Algorithm::Histogram, &input);
    let range = |lines: Range<u32>| index(lines.start)..index(lines.end);
    diff.hunks()
        .map(|hunk| Edit {
            undoes,
            at: range(hunk.before),
            to: range(hunk.after),
        })
        .collect()
}

fn index(line: u32) -> usize {
    usize::try_from(line).unwrap_or(usize::MAX)
}

fn signed(count: usize) -> isize {
    isize::try_from(count).unwrap_or(isize::MAX)
}

fn shifted(line: usize, by: isize) -> usize {
    line.saturating_add_signed(by)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::undo_text;

    /// Lines, parted by blanks.
    fn lines(words: &str) -> String {
        let lines = words.split(' ').map(|word| format!("- {word}\n"));
        lines.collect::<Vec<_>>().concat()
    }

    #[track_caller]
    fn check(before: &str, then: &str, now: &str, expected: &str) {
        let (text, parts) = undo_text(before, then, now);
        let parts: Vec<String> = (parts.iter())
            .map(|part| {
                let lines = &part.lines;
                format!("{}..{}: {}", lines.start, lines.end, part.now.unredacted())
            })
            .collect();
        assert_eq!((text.as_str(), parts), (expected, Vec::new()));
    }

    #[track_caller]
    fn check_conflict(before: &str, then: &str, now: &str, expected: (usize, usize, &str, &str)) {
        let (text, parts) = undo_text(before, then, now);
        assert_eq!(text, now, "in a conflict today's text stands");
        let [part] = &parts[..] else {
            panic!("{parts:?}")
        };
        let found = (
            part.lines.start,
            part.lines.end,
            part.then.unredacted(),
            part.now.unredacted(),
        );
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_that_stand_as_the_commit_left_them_go_whatever_came_beside_them() {
        for (before, then, now, expected) in [
            ("a b", "a X b", "a X b c", "a b c"),
            ("a b", "a b X", "a b X c", "a b c"),
            ("a b", "X a b", "c X a b", "c a b"),
            ("a b", "a X Y b", "a X c Y b", "a c b"),
            ("a b", "a X b", "c X b", "c b"),
            ("a b", "a X", "c X", "c b"),
            ("a b", "A b", "A c", "a c"),
        ] {
            check(&lines(before), &lines(then), &lines(now), &lines(expected));
        }
    }

    #[test]
    fn lines_that_were_changed_since_are_a_conflict() {
        let (before, then, now) = (lines("a b"), lines("a X b"), lines("a Y b"));
        check_conflict(&before, &then, &now, (1, 2, "- X\n", "- Y\n"));
        let (before, then, now) = (lines("a b c"), lines("a X c"), lines("a c"));
        check_conflict(&before, &then, &now, (1, 1, "- X\n", ""));
    }

    #[test]
    fn what_came_below_a_heading_is_not_torn_from_it() {
        let before = "# a\n- 1\n";
        let then = "# a\n- 1\n# X\n- 2\n";
        for now in [
            "# a\n- 1\n# X\n- 2\n- 3\n",
            "# a\n- 1\n# X\n- 3\n- 2\n",
            "# a\n- 1\n# X\n- 2\n## Y\n- 3\n",
        ] {
            let (text, parts) = undo_text(before, then, now);
            assert_eq!((text.as_str(), parts.len()), (now, 1));
        }
    }

    #[test]
    fn sections_beside_the_one_that_goes_stay() {
        let before = "# a\n- 1\n";
        let then = "# a\n- 1\n# X\n- 2\n";
        check(
            before,
            then,
            "# a\n- 1\n# X\n- 2\n# b\n- 3\n",
            "# a\n- 1\n# b\n- 3\n",
        );
        check(
            before,
            then,
            "# a\n- 1\n# b\n- 3\n# X\n- 2\n",
            "# a\n- 1\n# b\n- 3\n",
        );
        check(
            "### d\n\n- 1\n",
            "### d\n\n#### 2\n\n- 2\n\n- 1\n",
            "### d\n\n#### 3\n\n- 3\n\n#### 2\n\n- 2\n\n- 1\n",
            "### d\n\n#### 3\n\n- 3\n\n- 1\n",
        );
    }

    #[test]
    fn both_sides_of_a_file_that_begins_and_ends_anyhow() {
        check("", "- X\n", "- X\n- a\n", "- a\n");
        check("- a", "- a\n- X", "- a\n- X\n- b\n", "- a\n- b\n");
    }

    proptest! {
        #[test]
        fn nothing_of_a_later_commit_goes(
            start in proptest::collection::vec(0_u8..40, 0..12),
            from in 0_usize..12, gone in 0_usize..3, ours in 0_usize..4,
            later in 0_usize..14, added in 1_usize..4,
        ) {
            let name = |n: &u8| format!("- {n}\n");
            let start: Vec<String> = start.iter().map(name).collect();
            let mut then = start.clone();
            let from = from.min(then.len());
            let to = (from + gone).min(then.len());
            then.splice(from..to, (0..ours).map(|n| format!("- ours {n}\n")));
            let mut now = then.clone();
            let later = later.min(now.len());
            now.splice(later..later, (0..added).map(|n| format!("- later {n}\n")));
            let (text, parts) = undo_text(&start.concat(), &then.concat(), &now.concat());
            let left: Vec<&str> = text.split_inclusive('\n').filter(|line| !line.contains("later")).collect();
            prop_assert_eq!(text.matches("later").count(), added);
            if parts.is_empty() {
                prop_assert_eq!(left, start);
            } else {
                prop_assert!(0 < gone, "{:?}", parts);
            }
        }
    }
}
