//! The extractions folder: every recap within retention.
