//! Usage and lease metadata in SQLite.
