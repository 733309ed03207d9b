//! Which code base a session was about.

use std::fmt;

/// The identity of a code base across clones, worktrees and renames.
///
/// One of, in this order of preference: `host/path` of the normalised origin
/// URL (`example.org/team/ledger`), the absolute root of the main work tree,
/// the absolute folder. A folder name alone is never an identity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Project(String);

impl Project {
    /// Takes an already normalised identity.
    pub(crate) fn new(identity: String) -> Self {
        Self(identity)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// What people call it: the last part of URL or path. Not an identity.
    pub(crate) fn name(&self) -> &str {
        let trimmed = self.0.trim_end_matches(['/', '\\']);
        match trimmed.rsplit(['/', '\\']).next() {
            Some(name) if !name.is_empty() => name,
            _ => &self.0,
        }
    }
}

impl fmt::Display for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
