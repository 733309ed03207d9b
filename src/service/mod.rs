//! One pass over everything, and looks that touch nothing.
//!
//! [`pass`] is what `memrev run` and a background pass do; [`survey`] and
//! [`status`] say what a pass would do. Each step of a pass is also a command
//! of its own.

pub(crate) mod choice;
pub(crate) mod desk;
pub(crate) mod folder;
pub(crate) mod idle;
pub(crate) mod loss;
pub(crate) mod pass;
pub(crate) mod quota;
pub(crate) mod reset;
pub(crate) mod scan;
pub(crate) mod status;
pub(crate) mod survey;

use std::time::Duration;

/// Longest wait for a lock that others hold for moments.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The words of everything below an error, outermost first.
pub(crate) fn causes(error: &dyn std::error::Error) -> Vec<String> {
    let below = std::iter::successors(error.source(), |cause| cause.source());
    below.map(ToString::to_string).collect()
}

/// The words of an error and of everything below it, on one line.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut words = vec![error.to_string()];
    words.extend(causes(error));
    words.join(": ")
}
