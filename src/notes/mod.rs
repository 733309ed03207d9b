//! Notes and withheld entries: loaded, written, matched.
