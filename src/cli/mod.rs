//! The command line: arguments, reports, exit codes.
