//! Rules that copy and never invent: the back end that needs nothing.
