//! Text on either side of the redaction line.
//!
//! [`Raw`] is what a transcript, a model or a person's file held. It cannot be
//! printed, written or sent: it has no `Display` and one long-named accessor.
//! [`Redacted`] has been through `text::redact` and may go anywhere. Text that
//! comes back from disk is raw again.

use std::fmt;

/// Text nobody has looked through for secrets yet.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Raw(String);

impl Raw {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The unredacted text, to decide something about it or to redact it.
    /// What is derived from it and leaves the process must be redacted first.
    pub(crate) fn unredacted(&self) -> &str {
        &self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Shows the length only, so that a debug line cannot leak a secret.
impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({} bytes)", self.0.len())
    }
}

/// Text that may be written, sent, committed and logged.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Redacted(String);

impl Redacted {
    /// Marks `text` as redacted. Only `text::redact` may call this, and a test
    /// of the house rules sees to it; everybody else calls `text::redact`.
    pub(crate) fn seal(text: String) -> Self {
        Self(text)
    }

    /// Words of this program's own source, which hold no secret.
    pub(crate) fn literal(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
