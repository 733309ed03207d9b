//! From sessions to recaps.

pub(crate) mod select;
