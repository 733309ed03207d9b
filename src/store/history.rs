//! Commits as they are read back.

use crate::domain::id::ObjectId;
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;
use crate::store::author::Author;
use crate::store::message::Trailers;

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) id: ObjectId,
    pub(crate) parents: Vec<ObjectId>,
    pub(crate) author: Author,
    pub(crate) at: Timestamp,
    pub(crate) subject: Raw,
    /// Without the subject and our trailers.
    pub(crate) body: Raw,
    pub(crate) trailers: Trailers,
    /// The commit it takes back: ours of kind `revert`, or a plain `git revert`.
    pub(crate) reverts: Option<ObjectId>,
}
