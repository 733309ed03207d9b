//! What an agent last said about the quota it draws on.

use crate::domain::time::Timestamp;

/// Figures on a quota, as the newest transcript has them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RateLimits {
    /// The service said that a limit is reached.
    pub(crate) is_reached: bool,
    /// Short and long window, where told.
    pub(crate) windows: Vec<Window>,
}

/// One window of a quota.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Window {
    /// 0 to 100.
    pub(crate) used_percent: f64,
    /// When it begins anew; later figures are worth nothing.
    pub(crate) resets_at: Option<Timestamp>,
}
