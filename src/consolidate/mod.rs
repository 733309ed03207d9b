//! Recaps and notes into a new tree of memory files: the second stage.
//!
//! [`select`] decides which recaps take part, [`edits`] what a person did
//! since the head, [`staging`] and [`input`] build what the worker sees,
//! [`worker`] drives it, [`judge`] and [`guard`] decide about the result,
//! [`message`] words the commit, and [`run`] does it all in ten steps.
//!
//! # Not in here
//!
//! No Git of its own (`store`), no SQL (`ledger`), no back end (`model`).
//! Every file but `run`, `pending`, `past`, `worker` and the effects of
//! `staging` is a function from values to values.

pub(crate) mod edits;
pub(crate) mod guard;
pub(crate) mod select;
