//! Calls the command line and returns its exit code.

fn main() {}
