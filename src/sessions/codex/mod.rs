//! Rollouts of Codex, from its first generation to the newest.
//!
//! `wire` has the shapes, `reader` turns records into drafts (with `meta`,
//! `messages` and `calls`), `outputs` knows how tool outputs say what became
//! of a call, `mirror` matches events with the messages they repeat, `fork`
//! knows which records a fork copied.
//!
//! # Compatibility
//!
//! G0 is one JSON document; G1 has bare items; all later ones have envelopes
//! and differ by fields only, so one reader takes them all.

mod calls;
mod document;
mod fork;
mod kinds;
mod messages;
mod meta;
mod mirror;
mod outputs;
mod reader;
mod wire;

pub(super) use document::read_document;
pub(super) use fork::{ParentKeys, read_parent};
pub(super) use reader::Reader;
