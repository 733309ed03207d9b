//! From a session to its recap.
