//! The words of this program as plain data.
//!
//! This is the glossary: a *session* is one conversation of an agent, made of
//! *items*; a *recap* is what extraction wrote about it; a *note* is a small
//! file by which somebody asks to remember, correct or forget; the *memory
//! folder* is the Git work tree that holds the *summary* and (version 1) the
//! *handbook*, whose bullets, tasks and topics are *entries*; a *baseline* is
//! the commit that publishes an accepted consolidation; *withheld* is what
//! must not come back.
//!
//! # Not in here
//!
//! No I/O, no clock, no randomness, no `serde`: wire formats have structs of
//! their own where they are read.

pub(crate) mod endpoint;
pub(crate) mod entry;
pub(crate) mod id;
pub(crate) mod item;
pub(crate) mod limits;
pub(crate) mod note;
pub(crate) mod path;
pub(crate) mod project;
pub(crate) mod quota;
pub(crate) mod recap;
pub(crate) mod session;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod version;
pub(crate) mod withheld;
pub(crate) mod yaml_guard;
