//! From sessions to recaps.

pub(crate) mod input;
pub(crate) mod reply;
pub(crate) mod select;
