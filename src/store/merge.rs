//! Merging three versions, file by file, without following renames.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU8;

use gix::diff::blob::{Algorithm, InternedInput};
use gix::merge::blob::Resolution;
use gix::merge::blob::builtin_driver::text::{Conflict, ConflictStyle, Labels, Merge};

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::domain::text::Raw;
use crate::store::error::StoreError;
use crate::store::{Store, TreeChange};

/// A merge of two sides that grew from one base.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Merged {
    /// How the result differs from *our* side, sorted by path.
    pub(crate) files: Vec<MergedFile>,
    /// Paths where both sides changed the same lines, or one changed what the
    /// other removed. Our side won there.
    pub(crate) conflicts: Vec<TreePath>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MergedFile {
    pub(crate) path: TreePath,
    /// `None`: the path is gone.
    pub(crate) file: Option<MergedText>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MergedText {
    pub(crate) content: Raw,
    pub(crate) executable: bool,
}

/// Three texts made one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextMerge {
    pub(crate) content: Vec<u8>,
    /// Both sides changed the same lines; ours won there.
    pub(crate) had_conflict: bool,
}

/// Merges lines; where both sides changed the same ones, `ours` wins. So it
/// does as a whole where a side is binary, that is, holds a NUL.
pub(crate) fn merge_texts(base: &[u8], ours: &[u8], theirs: &[u8]) -> TextMerge {
    let whole = |content: &[u8], had_conflict| TextMerge {
        content: content.to_owned(),
        had_conflict,
    };
    if ours == theirs || base == theirs {
        return whole(ours, false);
    }
    if base == ours {
        return whole(theirs, false);
    }
    if [base, ours, theirs].iter().any(|side| side.contains(&0)) {
        return whole(ours, true);
    }
    let mut input = InternedInput::default();
    let merge = Merge::new(&mut input, ours, base, theirs, Algorithm::Histogram);
    let mut content = Vec::new();
    let marked = Conflict::Keep {
        style: ConflictStyle::Merge,
        marker_size: NonZeroU8::MIN,
    };
    let had_conflict = merge.run(&mut content, Labels::default(), marked) == Resolution::Conflict;
    if had_conflict {
        merge.run(&mut content, Labels::default(), Conflict::ResolveWithOurs);
    }
    TextMerge {
        content,
        had_conflict,
    }
}

/// A version of a file: what it is known by, and how to get at its bytes.
#[derive(Clone, PartialEq, Eq)]
struct Version<'a> {
    id: ObjectId,
    executable: bool,
    /// When its object need not exist.
    content: Option<&'a str>,
}

/// What becomes of one file, seen from our side.
enum Outcome {
    Ours,
    /// Ours stays, and theirs is lost.
    Conflict,
    Gone,
    Text {
        text: MergedText,
        /// Our side won some lines of it.
        had_conflict: bool,
    },
}

fn is_same(one: Option<&Version<'_>>, other: Option<&Version<'_>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.id == other.id && one.executable == other.executable,
        (one, other) => one.is_none() && other.is_none(),
    }
}

type Side<'a> = BTreeMap<TreePath, Version<'a>>;

impl Store {
    /// Merges three commits. A revert of X on HEAD is
    /// `merge_commits(X, HEAD, parent of X)`.
    ///
    /// # Errors
    ///
    /// When a commit, tree or blob cannot be read.
    pub(crate) fn merge_commits(
        &self,
        base: ObjectId,
        ours: ObjectId,
        theirs: ObjectId,
    ) -> Result<Merged, StoreError> {
        self.merge(&self.side(base)?, &self.side(ours)?, &self.side(theirs)?)
    }

    /// Merges changes that were made on `base` into the commit `ours`.
    ///
    /// # Errors
    ///
    /// As [`Store::merge_commits`].
    pub(crate) fn merge_changes(
        &self,
        base: ObjectId,
        ours: ObjectId,
        theirs: &[TreeChange],
    ) -> Result<Merged, StoreError> {
        let base = self.side(base)?;
        let mut changed: Side<'_> = base.clone();
        for change in theirs {
            match &change.file {
                None => {
                    changed.remove(&change.path);
                }
                Some(file) => {
                    let content = file.content.as_str();
                    let version = Version {
                        id: Self::blob_id(content.as_bytes()),
                        executable: file.executable,
                        content: Some(content),
                    };
                    changed.insert(change.path.clone(), version);
                }
            }
        }
        self.merge(&base, &self.side(ours)?, &changed)
    }

    fn side(&self, commit: ObjectId) -> Result<Side<'static>, StoreError> {
        let files = self.snapshot(commit)?.files.into_iter();
        let version = |(path, blob): (TreePath, crate::store::Blob)| {
            let version = Version {
                id: blob.id,
                executable: blob.executable,
                content: None,
            };
            (path, version)
        };
        Ok(files.map(version).collect())
    }

    fn merge(
        &self,
        base: &Side<'_>,
        ours: &Side<'_>,
        theirs: &Side<'_>,
    ) -> Result<Merged, StoreError> {
        let paths: BTreeSet<&TreePath> = base.keys().chain(theirs.keys()).collect();
        let mut merged = Merged::default();
        for path in paths {
            let sides = (base.get(path), ours.get(path), theirs.get(path));
            let outcome = match self.merge_file(sides) {
                Ok(outcome) => outcome,
                // Binary content cannot be handed on as text.
                Err(StoreError::NotText { .. }) => Outcome::Conflict,
                Err(error) => return Err(error),
            };
            let (file, had_conflict) = match outcome {
                Outcome::Ours => continue,
                Outcome::Conflict => (None, true),
                Outcome::Gone => (Some(None), false),
                Outcome::Text { text, had_conflict } => (Some(Some(text)), had_conflict),
            };
            if had_conflict {
                merged.conflicts.push(path.clone());
            }
            let path = path.clone();
            (merged.files).extend(file.map(|file| MergedFile { path, file }));
        }
        Ok(merged)
    }

    fn merge_file(
        &self,
        (base, ours, theirs): (
            Option<&Version<'_>>,
            Option<&Version<'_>>,
            Option<&Version<'_>>,
        ),
    ) -> Result<Outcome, StoreError> {
        if is_same(base, theirs) || is_same(ours, theirs) {
            return Ok(Outcome::Ours);
        }
        let (ours, theirs) = match (ours, theirs) {
            _ if is_same(base, ours) => return self.take(theirs),
            (Some(ours), Some(theirs)) => (ours, theirs),
            _ => return Ok(Outcome::Conflict),
        };
        let base_content = base.map(|base| self.bytes(base)).transpose()?;
        let base_content = base_content.unwrap_or_default();
        let merged = merge_texts(&base_content, &self.bytes(ours)?, &self.bytes(theirs)?);
        // The side that changed the exec bit decides about it.
        let base_executable = base.is_some_and(|base| base.executable);
        let executable = if ours.executable == base_executable {
            theirs.executable
        } else {
            ours.executable
        };
        let id = Self::blob_id(&merged.content);
        let is_ours = id == ours.id && executable == ours.executable;
        if is_ours && merged.had_conflict {
            return Ok(Outcome::Conflict);
        }
        if is_ours {
            return Ok(Outcome::Ours);
        }
        let content = String::from_utf8(merged.content).map_err(|_| StoreError::NotText { id })?;
        let text = MergedText {
            content: Raw::new(content),
            executable,
        };
        Ok(Outcome::Text {
            text,
            had_conflict: merged.had_conflict,
        })
    }

    fn take(&self, theirs: Option<&Version<'_>>) -> Result<Outcome, StoreError> {
        let Some(theirs) = theirs else {
            return Ok(Outcome::Gone);
        };
        Ok(Outcome::Text {
            text: self.merged_text(theirs)?,
            had_conflict: false,
        })
    }

    fn merged_text(&self, version: &Version<'_>) -> Result<MergedText, StoreError> {
        let content = match version.content {
            Some(content) => Raw::new(content),
            None => self.text(version.id)?,
        };
        Ok(MergedText {
            content,
            executable: version.executable,
        })
    }

    fn bytes(&self, version: &Version<'_>) -> Result<Vec<u8>, StoreError> {
        match version.content {
            Some(content) => Ok(content.as_bytes().to_owned()),
            None => self.blob(version.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::merge_texts;

    #[track_caller]
    fn check(base: &str, ours: &str, theirs: &str, merged: &str, had_conflict: bool) {
        let result = merge_texts(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
        let content = String::from_utf8(result.content).unwrap();
        assert_eq!(
            (content.as_str(), result.had_conflict),
            (merged, had_conflict)
        );
    }

    #[test]
    fn our_side_wins_only_the_lines_both_changed() {
        check(
            "a\nb\nc\nd\n",
            "A\nb\nc\nd\n",
            "a\nb\nc\nD\n",
            "A\nb\nc\nD\n",
            false,
        );
        check(
            "a\nb\nc\nd\n",
            "a\nours\nc\nd\n",
            "a\ntheirs\nc\nD\n",
            "a\nours\nc\nD\n",
            true,
        );
        check("a\n", "a\n", "b\n", "b\n", false);
        check("a\n", "b\n", "a\n", "b\n", false);
        check("a\n", "b\n", "b\n", "b\n", false);
        check("", "ours\n", "theirs\n", "ours\n", true);
        check("a\0", "b\0", "c\0", "b\0", true);
        check("a\nb", "a\nb\nc", "x\na\nb", "x\na\nb\nc", false);
    }
}
