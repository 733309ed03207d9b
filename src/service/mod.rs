//! One pass over everything, and looks that touch nothing.
//!
//! [`pass`] is what `memrev run` and a background pass do; [`survey`] and
//! [`status`] say what a pass would do. Each step of a pass is also a command
//! of its own.

pub(crate) mod choice;
pub(crate) mod folder;
pub(crate) mod idle;
pub(crate) mod pass;
pub(crate) mod quota;
pub(crate) mod reset;
pub(crate) mod scan;
pub(crate) mod status;
pub(crate) mod survey;
