//! What a rollout last said about the quota its agent draws on.

use serde::Deserialize;

use crate::domain::quota::{RateLimits, Window};
use crate::domain::time::Timestamp;
use crate::sessions::Found;
use crate::sys::fs;

/// The figures come with every answer, so the end of a rollout has them. A
/// rollout whose last 256 KiB hold none counts as one without figures.
const TAIL_BYTES: u64 = 256 * 1024;

/// The snapshot that counts when a rollout tells of several limits.
const MAIN_LIMIT: &str = "codex";

#[derive(Deserialize)]
struct Record {
    timestamp: Option<String>,
    payload: Option<Payload>,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(rename = "type")]
    kind: Option<String>,
    rate_limits: Option<Snapshot>,
}

#[derive(Deserialize)]
struct Snapshot {
    limit_id: Option<String>,
    primary: Option<WireWindow>,
    secondary: Option<WireWindow>,
    rate_limit_reached_type: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct WireWindow {
    used_percent: Option<f64>,
    /// Seconds since the epoch, in newer generations.
    resets_at: Option<i64>,
    /// Seconds from the record's own time, in older ones.
    resets_in_seconds: Option<i64>,
}

/// The newest figures of a plain rollout; `None` where it has none.
pub(super) fn newest(found: &Found) -> Option<RateLimits> {
    let bytes = fs::read_tail(&found.path, TAIL_BYTES).ok()?;
    let mut newest_of_any = None;
    for line in bytes.split(|byte| *byte == b'\n').rev() {
        let Some((is_main, limits)) = parse(line) else {
            continue;
        };
        if is_main {
            return Some(limits);
        }
        newest_of_any.get_or_insert(limits);
    }
    newest_of_any
}

fn parse(line: &[u8]) -> Option<(bool, RateLimits)> {
    let record: Record = serde_json::from_slice(line).ok()?;
    let payload = record.payload?;
    if payload.kind.as_deref() != Some("token_count") {
        return None;
    }
    let snapshot = payload.rate_limits?;
    let at = record
        .timestamp
        .as_deref()
        .and_then(Timestamp::parse_rfc3339);
    let windows = [snapshot.primary, snapshot.secondary];
    let windows = windows.into_iter().flatten().filter_map(|window| {
        let resets_at = match (window.resets_at, window.resets_in_seconds, at) {
            (Some(seconds), _, _) => Some(Timestamp::from_seconds(seconds)),
            (None, Some(seconds), Some(at)) => Some(at.plus_seconds(seconds)),
            _ => None,
        };
        Some(Window {
            used_percent: window.used_percent?,
            resets_at,
        })
    });
    let limits = RateLimits {
        is_reached: snapshot
            .rate_limit_reached_type
            .is_some_and(|kind| !kind.is_null()),
        windows: windows.collect(),
    };
    let is_main = snapshot.limit_id.is_none_or(|id| id == MAIN_LIMIT);
    Some((is_main, limits))
}

#[cfg(test)]
mod tests {
    use super::newest;
    use crate::domain::session::Agent;
    use crate::domain::time::Timestamp;
    use crate::sessions::Found;
    use crate::sys::fs;

    /// Whether a limit is reached; per window what is used and when it resets.
    type Figures = (bool, Vec<(f64, Option<i64>)>);

    fn figures(lines: &[&str]) -> Option<Figures> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rollout.jsonl");
        fs::replace(&path, lines.join("\n").as_bytes()).unwrap();
        let found = Found {
            agent: Agent::Codex,
            path,
            size: 0,
            modified: Timestamp::default(),
            sub_agents: Vec::new(),
            earlier: Vec::new(),
            home: None,
        };
        let limits = newest(&found)?;
        let windows = limits.windows.iter();
        let windows = windows.map(|w| (w.used_percent, w.resets_at.map(Timestamp::seconds)));
        Some((limits.is_reached, windows.collect()))
    }

    const OLD: &str = r#"{"timestamp":"1970-01-01T00:01:40Z","type":"event_msg","payload":{"type":"token_count","rate_limits":{"primary":{"used_percent":12.5,"resets_in_seconds":50},"secondary":null}}}"#;
    const NEW: &str = r#"{"timestamp":"1970-01-01T00:02:00Z","type":"event_msg","payload":{"type":"token_count","rate_limits":{"limit_id":"codex","primary":{"used_percent":80.0,"resets_at":400},"secondary":{"used_percent":1.0},"rate_limit_reached_type":"primary"}}}"#;
    const OTHER: &str = r#"{"timestamp":"1970-01-01T00:03:00Z","type":"event_msg","payload":{"type":"token_count","rate_limits":{"limit_id":"other","primary":{"used_percent":99.0}}}}"#;

    #[test]
    fn the_newest_figures_of_the_main_limit_count() {
        assert_eq!(figures(&[OLD]), Some((false, vec![(12.5, Some(150))])));
        let newest = Some((true, vec![(80.0, Some(400)), (1.0, None)]));
        assert_eq!(figures(&[OLD, NEW, OTHER, "{}", "rubbish"]), newest);
        assert_eq!(figures(&[OTHER]), Some((false, vec![(99.0, None)])));
        assert_eq!(figures(&["{}"]), None);
    }
}
