//! From sessions to recaps.

pub(crate) mod reply;
pub(crate) mod select;
