//! Paths inside a memory folder and what lies at them.

use std::fmt;

/// Longest path in a memory folder, in bytes.
pub(crate) const TREE_PATH_BYTES_MAX: usize = 1024;

/// A relative path with `/` between its parts, below the memory folder.
///
/// It has no empty part, no `.` or `..`, no `.git` in any case, no NUL,
/// backslash or control character.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TreePath(String);

impl TreePath {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let part_fits = |part: &str| {
            !part.is_empty() && part != "." && part != ".." && !part.eq_ignore_ascii_case(".git")
        };
        let char_fits = |c: char| c != '\\' && !c.is_control();
        (text.len() <= TREE_PATH_BYTES_MAX
            && text.split('/').all(part_fits)
            && text.chars().all(char_fits))
        .then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part.
    pub(crate) fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    pub(crate) fn kind(&self) -> FileKind {
        FileKind::of(&self.0)
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for TreePath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// The file names that have a meaning (reference 3).
pub(crate) const SUMMARY: &str = "memory_summary.md";
pub(crate) const HANDBOOK: &str = "MEMORY.md";
pub(crate) const RAW_MEMORIES: &str = "raw_memories.md";
pub(crate) const RECAPS: &str = "rollout_summaries";
pub(crate) const SKILLS: &str = "skills";
pub(crate) const EXTENSIONS: &str = "extensions";
pub(crate) const NOTES: &str = "extensions/ad_hoc/notes";
pub(crate) const NOTE_INSTRUCTIONS: &str = "extensions/ad_hoc/instructions.md";
pub(crate) const WITHHELD: &str = "extensions/withheld/entries";
pub(crate) const WITHHELD_INSTRUCTIONS: &str = "extensions/withheld/instructions.md";
pub(crate) const WORKSPACE_DIFF: &str = "phase2_workspace_diff.md";

/// What a path in a memory folder is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FileKind {
    /// `memory_summary.md`: written by the worker.
    Summary,
    /// `MEMORY.md`: written by the worker, version 1.
    Handbook,
    /// `skills/**`: written by the worker, version 1.
    Skill,
    /// `raw_memories.md`: an input rebuilt by code, version 1.
    RawMemories,
    /// `rollout_summaries/*.md`: an input.
    Recap,
    /// `extensions/ad_hoc/notes/*.md`: an input a person or agent made.
    Note,
    /// `extensions/*/instructions.md`.
    Instructions,
    /// `extensions/*/resources/**`: an input.
    Resource,
    /// `extensions/withheld/entries/*.yaml`: copies of what is withheld.
    Withheld,
    /// Anything else: left alone.
    Foreign,
}

impl FileKind {
    fn of(path: &str) -> Self {
        match path {
            SUMMARY => return Self::Summary,
            HANDBOOK => return Self::Handbook,
            RAW_MEMORIES => return Self::RawMemories,
            _ => {}
        }
        let parts: Vec<&str> = path.split('/').collect();
        let is_markdown = has_extension(path, "md");
        match parts.as_slice() {
            [RECAPS, _] if is_markdown => Self::Recap,
            [SKILLS, _, ..] if parts.len() > 2 => Self::Skill,
            [EXTENSIONS, "ad_hoc", "notes", _] if is_markdown => Self::Note,
            [EXTENSIONS, "withheld", "entries", _] if has_extension(path, "yaml") => Self::Withheld,
            [EXTENSIONS, _, "instructions.md"] => Self::Instructions,
            [EXTENSIONS, _, "resources", _, ..] => Self::Resource,
            _ => Self::Foreign,
        }
    }

    /// A worker may write these and nothing else.
    pub(crate) const fn is_output(self) -> bool {
        matches!(self, Self::Summary | Self::Handbook | Self::Skill)
    }

    /// A change of these is work for a consolidation.
    pub(crate) const fn is_input(self) -> bool {
        matches!(
            self,
            Self::Recap | Self::Note | Self::Resource | Self::Instructions
        )
    }
}

fn has_extension(path: &str, extension: &str) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, end)| end == extension)
}

#[cfg(test)]
mod tests {
    use super::{FileKind, TreePath};

    #[test]
    fn tree_paths_stay_inside() {
        for (text, taken) in [
            ("MEMORY.md", true),
            ("skills/a/SKILL.md", true),
            ("", false),
            ("/etc/passwd", false),
            ("a//b", false),
            ("a/../b", false),
            (".git/config", false),
            ("skills/.GIT/x", false),
            ("a\\b", false),
            ("a\nb", false),
        ] {
            assert_eq!(TreePath::parse(text).is_some(), taken, "{text:?}");
        }
    }

    #[test]
    fn names_tell_the_kind() {
        for (path, kind) in [
            ("memory_summary.md", FileKind::Summary),
            ("MEMORY.md", FileKind::Handbook),
            ("raw_memories.md", FileKind::RawMemories),
            ("rollout_summaries/a.md", FileKind::Recap),
            ("rollout_summaries/a/b.md", FileKind::Foreign),
            ("rollout_summaries/a.txt", FileKind::Foreign),
            ("skills/deploy/SKILL.md", FileKind::Skill),
            ("skills/readme.md", FileKind::Foreign),
            ("extensions/ad_hoc/notes/n.md", FileKind::Note),
            ("extensions/ad_hoc/instructions.md", FileKind::Instructions),
            ("extensions/x/resources/a/b.md", FileKind::Resource),
            ("extensions/withheld/entries/e.yaml", FileKind::Withheld),
            ("README.md", FileKind::Foreign),
        ] {
            assert_eq!(TreePath::parse(path).unwrap().kind(), kind, "{path}");
        }
    }
}
