//! One pass over everything.
