//! The loss guard: no entry goes without a reason.

/// `[guard]`: how much may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GuardLimits {
    /// Unexplained losses up to this number always pass.
    pub(crate) unexplained_max: usize,
    /// Above the number, up to this share of all entries passes.
    pub(crate) unexplained_percent_max: usize,
    /// What a worker may retire: this share, but at least `retired_min`.
    pub(crate) retired_percent_max: usize,
    pub(crate) retired_min: usize,
    /// Baselines over which unexplained losses add up.
    pub(crate) baselines_counted: usize,
}

impl Default for GuardLimits {
    fn default() -> Self {
        Self {
            unexplained_max: 3,
            unexplained_percent_max: 10,
            retired_percent_max: 10,
            retired_min: 3,
            baselines_counted: 10,
        }
    }
}
