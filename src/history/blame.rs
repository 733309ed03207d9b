//! Which commit brought a line, followed back through rewording and moves.
//!
//! As `git blame -M -C` goes: first parents only, a line that is new in its
//! file is looked for among the lines that left the memory files in the same
//! commit, then among all that the parent's memory files have.
//!
//! # Limits
//!
//! One diff for each commit that touches the file. A line of few letters is
//! not followed out of its file: it may stand anywhere.

use crate::consolidate::hands;
use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::domain::text::Raw;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::trail::{LineMap, Trail};
use crate::text::shingles::{self, SAME_SIMILARITY_MIN};

/// Fewest bytes of a line's words by which it is known elsewhere: as `git
/// blame -M` counts.
const WORDS_BYTES_MIN: usize = 20;

/// Most times that a line is followed to another place.
const STEPS_MAX: usize = 100;

/// Where a line stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) path: TreePath,
    /// 0-based.
    pub(crate) line: usize,
    pub(crate) text: Raw,
}

/// A commit that moved or reworded the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) commit: ObjectId,
    /// Where it stood before.
    pub(crate) from: Spot,
    pub(crate) is_reworded: bool,
}

/// Where a line comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blame {
    /// The commit that brought it, and where it stood there.
    pub(crate) commit: ObjectId,
    pub(crate) spot: Spot,
    /// Newest first.
    pub(crate) steps: Vec<Step>,
    /// The history ends before an answer: the commit is only the oldest that
    /// is there.
    pub(crate) is_cut: bool,
}

/// Follows the line of `spot` in the tree of `head` back.
///
/// # Errors
///
/// When the history cannot be read, other than that its beginning is missing.
pub(crate) fn blame(store: &Store, head: ObjectId, spot: Spot) -> Result<Blame, StoreError> {
    let trail = store.trail();
    let mut found = Blame {
        commit: head,
        spot,
        steps: Vec::new(),
        is_cut: false,
    };
    loop {
        let parent = match trail.parent(found.commit) {
            Ok(Some(parent)) => parent,
            Ok(None) => return Ok(found),
            Err(error) => return Err(error),
        };
        let path = found.spot.path.clone();
        let new = trail.blob_at(found.commit, &path)?;
        let old = match trail.blob_at(parent, &path) {
            Err(StoreError::NoObject { id }) if id == parent => {
                found.is_cut = true;
                return Ok(found);
            }
            old => old?,
        };
        if new.map(|blob| blob.id) == old.map(|blob| blob.id) {
            found.commit = parent;
            continue;
        }
        let text = |at, blob| -> Result<String, StoreError> {
            let text = Option::map(blob, |blob| trail.text_going_back(at, &path, blob));
            Ok(text.transpose()?.unwrap_or_default())
        };
        let new = text(found.commit, new)?;
        let old = text(parent, old)?;
        let map = LineMap::between(&old, &new);
        if let Some(Some(line)) = map.old_of_new.get(found.spot.line) {
            found.spot.line = *line;
            found.commit = parent;
            continue;
        }
        let change = Change {
            trail: &trail,
            store,
            commit: found.commit,
            parent,
        };
        let before = if found.steps.len() < STEPS_MAX {
            change.origin(&found.spot, &old, &map)?
        } else {
            None
        };
        let Some(before) = before else {
            return Ok(found);
        };
        found.steps.push(Step {
            commit: found.commit,
            is_reworded: words(before.text.unredacted()) != words(found.spot.text.unredacted()),
            from: before.clone(),
        });
        found.spot = before;
        found.commit = parent;
    }
}

fn words(line: &str) -> String {
    shingles::normalise(line)
}

/// One commit against its parent.
struct Change<'a> {
    trail: &'a Trail<'a>,
    store: &'a Store,
    commit: ObjectId,
    parent: ObjectId,
}

impl Change<'_> {
    /// Where a line that is new in its file stood before: first among what
    /// left this file, then what left others, then what is still there.
    fn origin(&self, spot: &Spot, old: &str, map: &LineMap) -> Result<Option<Spot>, StoreError> {
        if words(spot.text.unredacted()).len() < WORDS_BYTES_MIN {
            return Ok(None);
        }
        let old_lines: Vec<&str> = old.lines().collect();
        let gone = map
            .gone
            .iter()
            .filter_map(|line| Some((*line, *old_lines.get(*line)?)));
        if let Some(found) = best(spot, &spot.path, gone) {
            return Ok(Some(found));
        }
        let mut left = Vec::new();
        let mut all = Vec::new();
        for (path, blob) in self.store.snapshot(self.parent)?.files {
            if !hands::is_memory_file(path.kind()) {
                continue;
            }
            let text = self.trail.text(blob)?;
            if path != spot.path {
                let now = self.trail.blob_at(self.commit, &path)?;
                let now = now.map(|now| self.trail.text(now)).transpose()?;
                let gone = LineMap::between(&text, &now.unwrap_or_default()).gone;
                left.extend(best(
                    spot,
                    &path,
                    numbered(&text).filter(|(line, _)| gone.contains(line)),
                ));
            }
            all.extend(best(spot, &path, numbered(&text)));
        }
        let likeness = |it: &Spot| similarity(spot, it.text.unredacted());
        let closest = |spots: Vec<Spot>| {
            spots
                .into_iter()
                .rev()
                .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
        };
        Ok(closest(left).or_else(|| closest(all)))
    }
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate()
}

fn similarity(spot: &Spot, line: &str) -> f64 {
    shingles::similarity(spot.text.unredacted(), line)
}

/// The line that says the same, if there is one; the first of equals.
fn best<'a>(
    spot: &Spot,
    path: &TreePath,
    lines: impl Iterator<Item = (usize, &'a str)>,
) -> Option<Spot> {
    let mut best: Option<(f64, usize, &str)> = None;
    for (line, text) in lines {
        if words(text).len() < WORDS_BYTES_MIN {
            continue;
        }
        let likeness = similarity(spot, text);
        if SAME_SIMILARITY_MIN <= likeness && best.is_none_or(|(most, ..)| most < likeness) {
            best = Some((likeness, line, text));
        }
    }
    best.map(|(_, line, text)| Spot {
        path: path.clone(),
        line,
        text: Raw::new(text),
    })
}
