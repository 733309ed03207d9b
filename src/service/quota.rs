//! Whether enough of a quota is left to spend some of it in the background.
//!
//! Back ends that draw on an agent's own quota must not use it up. The agent's
//! newest transcript carries the figures; without figures a pass is allowed.

use crate::domain::quota::{RateLimits, Window};
use crate::domain::time::Timestamp;

/// Why a pass stops before it spends anything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Refusal {
    Reached,
    TooLittleLeft {
        used_percent: f64,
        remaining_percent_min: u32,
    },
}

/// Decides whether a pass may spend.
///
/// # Source
///
/// Reference 2: refuse when a limit is reached or a window is used up beyond
/// `100 - remaining_percent_min`; equality passes, unknown figures pass.
/// DESIGN 11: figures past their reset time are unknown.
pub(crate) fn decide(
    limits: Option<&RateLimits>,
    remaining_percent_min: u32,
    now: Timestamp,
) -> Option<Refusal> {
    let limits = limits?;
    let counts = |window: &&Window| window.resets_at.is_none_or(|at| now < at);
    let mut windows = limits.windows.iter().filter(counts).peekable();
    let is_known = windows.peek().is_some() || limits.windows.is_empty();
    if limits.is_reached && is_known {
        return Some(Refusal::Reached);
    }
    let used_max = 100.0 - f64::from(remaining_percent_min);
    windows
        .find(|window| used_max < window.used_percent)
        .map(|window| Refusal::TooLittleLeft {
            used_percent: window.used_percent,
            remaining_percent_min,
        })
}

#[cfg(test)]
mod tests {
    use super::{Refusal, decide};
    use crate::domain::quota::{RateLimits, Window};
    use crate::domain::time::Timestamp;

    const NOW: Timestamp = Timestamp::from_seconds(1_000);

    fn limits(used: &[f64]) -> RateLimits {
        RateLimits {
            is_reached: false,
            windows: (used.iter())
                .map(|used_percent| Window {
                    used_percent: *used_percent,
                    resets_at: Some(Timestamp::from_seconds(2_000)),
                })
                .collect(),
        }
    }

    #[test]
    fn unknown_limits_allow_a_pass() {
        assert_eq!(decide(None, 25, NOW), None);
        assert_eq!(decide(Some(&RateLimits::default()), 25, NOW), None);
    }

    #[test]
    fn exactly_the_wanted_remainder_allows_a_pass() {
        assert_eq!(decide(Some(&limits(&[75.0, 75.0])), 25, NOW), None);
    }

    #[test]
    fn either_window_can_refuse() {
        for used in [[75.1, 0.0], [0.0, 75.1]] {
            let refusal = decide(Some(&limits(&used)), 25, NOW);
            assert!(matches!(refusal, Some(Refusal::TooLittleLeft { .. })));
        }
    }

    #[test]
    fn a_reached_limit_refuses() {
        let reached = RateLimits {
            is_reached: true,
            ..limits(&[10.0])
        };
        assert_eq!(decide(Some(&reached), 25, NOW), Some(Refusal::Reached));
    }

    #[test]
    fn figures_past_their_reset_time_are_unknown() {
        let later = Timestamp::from_seconds(2_000);
        let mut used_up = limits(&[99.0]);
        assert_eq!(decide(Some(&used_up), 25, later), None);
        used_up.is_reached = true;
        assert_eq!(decide(Some(&used_up), 25, later), None);
    }
}
