//! What the headers of an answer say of the service's limits.

use reqwest::header::HeaderMap;

use crate::domain::quota::{RateLimits, Window};
use crate::domain::time::Timestamp;

/// What a service counts, as its headers name it.
const COUNTED: &[&str] = &["requests", "tokens", "input-tokens", "output-tokens"];

/// Reads the figures; `None` when there are none.
///
/// # Source
///
/// `x-ratelimit-{limit,remaining,reset}-<what>` of `OpenAI` and those that
/// follow it, `anthropic-ratelimit-<what>-{limit,remaining,reset}`, and
/// `x-codex-{primary,secondary}-{used-percent,reset-at,reset-after-seconds}`.
pub(super) fn read(headers: &HeaderMap, now: Timestamp) -> Option<RateLimits> {
    let mut windows: Vec<Window> = Vec::new();
    for what in COUNTED {
        for style in ["x-ratelimit-{}-", "anthropic-ratelimit-"] {
            let name = |part: &str| match style {
                "anthropic-ratelimit-" => format!("{style}{what}-{part}"),
                _ => format!("x-ratelimit-{part}-{what}"),
            };
            let limit = number(headers, &name("limit"));
            let remaining = number(headers, &name("remaining"));
            let (Some(limit), Some(remaining)) = (limit, remaining) else {
                continue;
            };
            if limit <= 0.0 {
                continue;
            }
            windows.push(Window {
                used_percent: (100.0 * (1.0 - remaining / limit)).clamp(0.0, 100.0),
                resets_at: text(headers, &name("reset")).and_then(|text| instant(text, now)),
            });
        }
    }
    for which in ["primary", "secondary"] {
        let name = |part: &str| format!("x-codex-{which}-{part}");
        let Some(used_percent) = number(headers, &name("used-percent")) else {
            continue;
        };
        let at = text(headers, &name("reset-at")).and_then(|text| text.parse().ok());
        let after = text(headers, &name("reset-after-seconds")).and_then(|text| text.parse().ok());
        windows.push(Window {
            used_percent,
            resets_at: at
                .map(Timestamp::from_seconds)
                .or_else(|| after.map(|seconds| now.plus_seconds(seconds))),
        });
    }
    (!windows.is_empty()).then_some(RateLimits {
        is_reached: false,
        windows,
    })
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn number(headers: &HeaderMap, name: &str) -> Option<f64> {
    let number: f64 = text(headers, name)?.parse().ok()?;
    number.is_finite().then_some(number)
}

/// An instant, or a span such as `6m0s` or `20ms` from now on.
fn instant(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Some(at) = Timestamp::parse_rfc3339(text) {
        return Some(at);
    }
    let millis = span_millis(text)?;
    Some(Timestamp::from_millis(now.millis().saturating_add(millis)))
}

/// A bare number counts as seconds.
fn span_millis(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut total = 0.0_f64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit());
        let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
        let number: f64 = number.parse().ok()?;
        let end = after.find(|c: char| c.is_ascii_digit());
        let (unit, after) = after.split_at(end.unwrap_or(after.len()));
        let millis = match unit {
            "ms" => 1.0,
            "s" | "" => 1_000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            "d" => 86_400_000.0,
            _ => return None,
        };
        total += number * millis;
        rest = after;
    }
    // Ten years: longer spans are no figures.
    let is_span = !text.is_empty() && total < 3.2e11;
    #[expect(clippy::cast_possible_truncation, reason = "bounded a line above")]
    is_span.then_some(total as i64)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

    use super::read;
    use crate::domain::time::Timestamp;

    const NOW: Timestamp = Timestamp::from_seconds(1_000);

    /// `expected` lists `used percent @ second of the reset`.
    #[track_caller]
    fn check(headers: &str, expected: &[&str]) {
        let mut map = HeaderMap::new();
        for line in headers.lines() {
            let (name, value) = line.trim().split_once(": ").unwrap();
            let name: HeaderName = name.parse().unwrap();
            map.insert(name, HeaderValue::from_str(value).unwrap());
        }
        let limits = read(&map, NOW).unwrap_or_default();
        let windows: Vec<String> = (limits.windows.iter())
            .map(|window| {
                let at = window.resets_at.map_or_else(
                    || "?".to_owned(),
                    |at| format!("{}.{:03}", at.seconds(), at.millis() % 1000),
                );
                format!("{} @ {at}", window.used_percent)
            })
            .collect();
        assert_eq!(windows, expected, "{headers}");
    }

    #[test]
    fn the_figures_of_each_service_are_read() {
        check(
            "x-ratelimit-limit-requests: 60
             x-ratelimit-remaining-requests: 15
             x-ratelimit-reset-requests: 6m0s
             x-ratelimit-limit-tokens: 100
             x-ratelimit-remaining-tokens: 100
             x-ratelimit-reset-tokens: 20ms",
            &["75 @ 1360.000", "0 @ 1000.020"],
        );
        check(
            "anthropic-ratelimit-input-tokens-limit: 1000
             anthropic-ratelimit-input-tokens-remaining: 0
             anthropic-ratelimit-input-tokens-reset: 1970-01-01T00:30:00Z",
            &["100 @ 1800.000"],
        );
        check(
            "x-codex-primary-used-percent: 12.5
             x-codex-primary-reset-after-seconds: 30
             x-codex-secondary-used-percent: 80
             x-codex-secondary-reset-at: 5000",
            &["12.5 @ 1030.000", "80 @ 5000.000"],
        );
    }

    #[test]
    fn figures_that_are_none_are_not_there() {
        check(
            "x-ratelimit-limit-requests: 0
             x-ratelimit-remaining-requests: 0
             x-ratelimit-limit-tokens: many
             x-ratelimit-remaining-tokens: 1",
            &[],
        );
        check(
            "x-ratelimit-limit-requests: 4
             x-ratelimit-remaining-requests: 3
             x-ratelimit-reset-requests: soon",
            &["25 @ ?"],
        );
    }
}
