//! Transcripts of Claude Code: one record per line, a tree by `uuid`.
//!
//! `wire` has the shapes, `reader` and `content` turn records into drafts,
//! `tree` finds branches that a person left behind.

mod content;
mod reader;
mod tree;
mod wire;

pub(super) use reader::{Part, Reader, record_ids};
