//! What a person did since the head: what is committed as theirs, what is
//! left alone and why, and what follows from it.

use crate::domain::session::MemoryMode;
use crate::domain::time::Timestamp;

/// Why a changed file stays where it is, uncommitted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LeftAlone {
    Secret,
    NotUtf8,
    /// In the words of the parser.
    DoesNotParse(String),
    ConflictMarkers,
    /// It changed too recently; looked at again from then on.
    TooFresh {
        quiet_at: Timestamp,
    },
    TooLarge,
    Symlink,
    Unfit,
    EditorLeftover,
    ConflictedCopy,
    /// Not a file this program knows: the person's own business.
    Foreign,
    /// A recap of a withheld thread or version.
    Withheld,
    /// A recap of a session whose mode is not enabled.
    Mode(MemoryMode),
    /// A recap that memory held before and let go.
    KnownBefore,
    /// A new recap of a thread of which we have a newer one.
    OursIsNewer,
}

impl LeftAlone {
    /// Nothing a person has to be told about.
    pub(crate) const fn is_quiet(&self) -> bool {
        matches!(self, Self::EditorLeftover | Self::Foreign)
    }
}
