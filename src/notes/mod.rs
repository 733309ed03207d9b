//! Notes and withheld entries: loaded, written, matched.

pub(crate) mod withheld_set;
