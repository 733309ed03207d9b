//! The two layouts of memory.

use std::fmt;

/// Which pipeline: V1 has a handbook and raw memories, V2 a summary alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum MemoryVersion {
    V1,
    V2,
}

impl MemoryVersion {
    pub(crate) const ALL: [Self; 2] = [Self::V1, Self::V2];

    /// `v1` or `v2`: in configuration, ledger, trailers and folder names.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }

    /// The memory folder's name in the home.
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::V1 => "memories",
            Self::V2 => "memories_v2",
        }
    }

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::V1 => Self::V2,
            Self::V2 => Self::V1,
        }
    }

    pub(crate) fn parse(label: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|version| version.label() == label)
    }
}

impl fmt::Display for MemoryVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}
