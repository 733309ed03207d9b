//! Bounds that more than one module must agree on, with their sources.

/// Estimated tokens are bytes divided by this, rounded up (reference 7.1).
pub(crate) const BYTES_PER_TOKEN: usize = 4;

/// Most tokens of a summary that a new session is given (reference 7).
pub(crate) const SUMMARY_TOKENS_MAX: usize = 2_500;

/// A version 2 summary must be smaller than this (reference 3.4).
pub(crate) const SUMMARY_V2_BYTES_LIMIT: usize = 10_000;

/// Byte budget of a version 2 recap, the marker on top (reference 5.8).
pub(crate) const RECAP_V2_BYTES: usize = 9_000;

/// Largest part of a message or injected fragment (reference 5.7, 7).
pub(crate) const FRAGMENT_BYTES_MAX: usize = 8_900;

/// Input tokens of an extraction when the model's window is unknown.
pub(crate) const INPUT_TOKENS_DEFAULT: usize = 150_000;

/// Largest file that enters a snapshot of the memory folder (reference 6.5).
pub(crate) const SNAPSHOT_FILE_BYTES_MAX: u64 = 10 * 1024 * 1024;

/// Files that a worker may leave besides those it was given.
pub(crate) const NEW_FILES_MAX: usize = 500;

/// Bytes of all of these together.
pub(crate) const NEW_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// How long a granted lease lasts, in seconds (reference 5.2, 6.2).
pub(crate) const LEASE_SECONDS: i64 = 3_600;

/// How often a running consolidation renews its lease, in seconds.
pub(crate) const LEASE_RENEW_SECONDS: u64 = 90;

/// Wait after a failed job, in seconds (reference 5.8, 6.2).
pub(crate) const RETRY_SECONDS: i64 = 3_600;

/// Tries that a job has before only a newer input revives it.
pub(crate) const RETRIES: u32 = 3;

/// No background consolidation for this long after a success, in seconds.
pub(crate) const COOLDOWN_SECONDS: i64 = 6 * 3_600;

/// Extractions that run at once in one pass (reference 5.3).
pub(crate) const EXTRACTIONS_AT_ONCE_MAX: usize = 8;

/// Sessions that a pass looks at, newest first (reference 5.1).
pub(crate) const SCAN_SESSIONS_MAX: usize = 5_000;
