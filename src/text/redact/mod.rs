//! Finding secrets in text and putting tags in their place.
//!
//! Everything that is written, sent, committed or logged passes through
//! [`redact`]; nothing else makes a [`Redacted`]. A secret is replaced whole by
//! `[redacted:<kind>]`; of an assignment the name, the separator and the quotes
//! stay, so that JSON and YAML remain readable to programs.
//!
//! Redaction works on decoded text but knows quotes escaped by JSON in JSON.
//! It is idempotent: text between tags is looked through until nothing is
//! found, and tags themselves are never matched.
//!
//! # How it stays fast
//!
//! One scan looks for keywords (`sk-`, `password`, `://`); only where one
//! stands, a small hand-written check looks around it. There are no regular
//! expressions whose cost depends on the text.
//!
//! # Not in here
//!
//! Secrets without a shape or a telling name cannot be found. Names of people
//! and machines are not secrets.

mod around;
mod assignments;
mod headers;
mod keywords;
mod tokens;
mod values;

use std::ops::Range;

use crate::domain::item::{Item, ItemKind};
use crate::domain::text::{Raw, Redacted};

/// What a tag begins with. The kind and `]` follow.
const TAG_START: &str = "[redacted:";

/// The tag of the reference, which adopted files may hold.
const FOREIGN_TAG: &str = "[REDACTED_SECRET]";

/// Longest kind in a tag, in bytes: what is longer is not a tag of ours.
const KIND_BYTES_MAX: usize = 32;

/// Kinds known by a name or a header alone: a kind with a shape of its own
/// tells more about the same bytes.
const GENERAL_KINDS: [&str; 6] = [
    assignments::KIND,
    "secret-key",
    "authorization",
    "bearer-token",
    "url-password",
    "url-signature",
];

/// A secret and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Such as `github-token`; stands in the tag.
    pub(crate) kind: &'static str,
    /// The secret alone, at character borders.
    pub(crate) bytes: Range<usize>,
}

/// The only way from raw to redacted text.
pub(crate) fn redact(text: &Raw) -> Redacted {
    redact_str(text.unredacted())
}

/// As [`redact`], for text that is not wrapped.
pub(crate) fn redact_str(text: &str) -> Redacted {
    let first = findings(text);
    if first.is_empty() {
        return Redacted::seal(text.to_owned());
    }
    let mut current = replace(text, &first);
    // Each round hides at least one more byte, so this ends. One round more
    // than the first is needed only where hiding one secret bares another.
    loop {
        let left = findings(&current);
        if left.is_empty() {
            return Redacted::seal(current);
        }
        current = replace(&current, &left);
    }
}

/// Redacts every text of an item.
pub(crate) fn redact_item(item: Item) -> Item<Redacted> {
    let kind = match item.kind {
        ItemKind::Message => ItemKind::Message,
        ItemKind::ToolCall {
            call_id,
            tool,
            files,
        } => ItemKind::ToolCall {
            call_id: redact_str(&call_id).into_string(),
            tool: redact_str(&tool).into_string(),
            files: files.iter().map(redact).collect(),
        },
        ItemKind::ToolOutput { call_id, succeeded } => ItemKind::ToolOutput {
            call_id: redact_str(&call_id).into_string(),
            succeeded,
        },
    };
    Item {
        place: item.place,
        at: item.at,
        provenance: item.provenance,
        trust: item.trust,
        kind,
        text: redact(&item.text),
        media_count: item.media_count,
    }
}

/// Whether [`redact_str`] would change `text`.
pub(crate) fn contains_secret(text: &str) -> bool {
    !findings(text).is_empty()
}

/// Every secret in `text`, in order, not overlapping, never inside a tag.
pub(crate) fn findings(text: &str) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut segment_start = 0;
    for tag in tags(text) {
        find_in_segment(text, segment_start..tag.start, &mut all);
        segment_start = tag.end;
    }
    find_in_segment(text, segment_start..text.len(), &mut all);
    all
}

fn find_in_segment(text: &str, segment: Range<usize>, all: &mut Vec<Finding>) {
    let offset = segment.start;
    let found = keywords::scan(&text[segment]);
    all.extend(merge(found).into_iter().map(|finding| Finding {
        bytes: finding.bytes.start + offset..finding.bytes.end + offset,
        ..finding
    }));
}

/// Joins overlapping findings; the widest names the kind, and among equals
/// the one with a shape of its own rather than a telling name.
fn merge(mut found: Vec<Finding>) -> Vec<Finding> {
    found.sort_by_key(|finding| (finding.bytes.start, finding.bytes.end));
    let mut merged: Vec<Finding> = Vec::new();
    for next in found {
        match merged.last_mut() {
            Some(last) if next.bytes.start < last.bytes.end => {
                let wider = next.bytes.len() > last.bytes.len();
                let equal = next.bytes.len() == last.bytes.len();
                let is_plainer = GENERAL_KINDS.contains(&last.kind);
                if wider || (equal && is_plainer && !GENERAL_KINDS.contains(&next.kind)) {
                    last.kind = next.kind;
                }
                last.bytes.end = last.bytes.end.max(next.bytes.end);
            }
            _ => merged.push(next),
        }
    }
    merged
}

fn replace(text: &str, findings: &[Finding]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for finding in findings {
        out.push_str(&text[copied..finding.bytes.start]);
        out.push_str(TAG_START);
        out.push_str(finding.kind);
        out.push(']');
        copied = finding.bytes.end;
    }
    out.push_str(&text[copied..]);
    out
}

/// Where tags stand, ours and the reference's.
fn tags(text: &str) -> Vec<Range<usize>> {
    let ours = memchr::memmem::find_iter(text.as_bytes(), TAG_START).filter_map(|start| {
        let kind = &text[start + TAG_START.len()..];
        let end = kind.bytes().take(KIND_BYTES_MAX).position(|b| b == b']')?;
        let is_kind = kind[..end]
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit());
        (is_kind && 0 < end).then_some(start..start + TAG_START.len() + end + 1)
    });
    let theirs = memchr::memmem::find_iter(text.as_bytes(), FOREIGN_TAG)
        .map(|start| start..start + FOREIGN_TAG.len());
    let mut all: Vec<_> = ours.chain(theirs).collect();
    all.sort_by_key(|tag| tag.start);
    all
}

#[cfg(test)]
mod tests;
