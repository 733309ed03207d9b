//! The Git repository of a memory folder.
