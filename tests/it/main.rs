//! The only integration binary.
