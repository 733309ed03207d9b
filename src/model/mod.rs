//! One request to one back end.

pub(crate) mod offline;
