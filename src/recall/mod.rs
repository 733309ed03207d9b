//! Memory for those who ask: the summary under its budget.
//!
//! # Not in here
//!
//! No lease, no model, no ledger. A failure here must never become a failure
//! of the agent that asked.

pub(crate) mod inject;
pub(crate) mod scope;
