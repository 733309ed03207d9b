//! What a model's reply says, believed only where it has the right form.
//!
//! A reply that is prose, an error message or cut off is a failed job, never
//! "nothing worth keeping": otherwise the session would count as done and what
//! was in it would be lost.

use serde::Deserialize;

use crate::domain::limits::RECAP_V2_BYTES;
use crate::domain::text::{Raw, Redacted};
use crate::domain::version::MemoryVersion;
use crate::extract::grounding::Grounding;
use crate::text::recap_name;
use crate::text::redact::redact_str;
use crate::text::thinking;
use crate::text::truncate::middle_bytes;

/// Largest reply that is looked at, in bytes. Real ones have a few thousand.
pub(crate) const REPLY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The JSON schema that a reply must meet.
pub(crate) const fn schema(version: MemoryVersion) -> &'static str {
    match version {
        MemoryVersion::V1 => include_str!("../../schemas/extraction-v1.json"),
        MemoryVersion::V2 => include_str!("../../schemas/extraction-v2.json"),
    }
}

/// What extraction found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing worth keeping.
    Nothing,
    Kept(Finding),
}

/// Fit to be written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) recap: Redacted,
    /// For the file name; `None` when nothing of it can stand in one.
    pub(crate) slug: Option<String>,
    /// Version 1 only.
    pub(crate) raw_memory: Option<Redacted>,
    /// Lines that gave out as the person's what they did not say.
    pub(crate) ungrounded: usize,
}

impl Finding {
    /// What is written down when there is nothing worth keeping: a header
    /// without a body, so that the answer survives.
    pub(crate) fn nothing() -> Self {
        Self {
            recap: Redacted::default(),
            slug: None,
            raw_memory: None,
            ungrounded: 0,
        }
    }
}

/// Why a reply cannot be used. What it said is not repeated: it may hold
/// anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReplyError {
    #[error("the reply is empty")]
    Empty,
    #[error("the reply has {bytes} bytes, {REPLY_BYTES_MAX} are allowed")]
    TooLong { bytes: usize },
    /// The JSON begins and does not end: the output limit was reached.
    #[error("the reply is cut off")]
    CutOff,
    #[error("the reply is not JSON")]
    NotJson,
    #[error("there is text after the JSON of the reply")]
    TextAfter,
    /// JSON, but not what the schema asks for; `problem` names at most keys.
    #[error("the reply does not meet the schema: {problem}")]
    Schema { problem: Redacted },
}

/// Reads the reply to an extraction.
///
/// Code fences and `<think>` blocks before the JSON are passed over. All
/// fields are redacted before anything is cut. `grounding` marks preferences
/// that are not the person's.
///
/// # Errors
///
/// [`ReplyError`]; the session is not done then.
///
/// # Source
///
/// Reference 5.8. Empty means exactly empty: white space is an answer.
pub(crate) fn parse(
    version: MemoryVersion,
    reply: &Raw,
    grounding: &Grounding,
) -> Result<Answer, ReplyError> {
    let text = reply.unredacted();
    if REPLY_BYTES_MAX < text.len() {
        return Err(ReplyError::TooLong { bytes: text.len() });
    }
    let json = json_part(text)?;
    match version {
        MemoryVersion::V1 => decode::<ReplyV1>(json).map(|reply| reply.answer(grounding)),
        MemoryVersion::V2 => decode::<ReplyV2>(json).map(|reply| reply.answer(grounding)),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyV1 {
    rollout_summary: String,
    #[serde(default)]
    rollout_slug: Option<String>,
    raw_memory: String,
}

impl ReplyV1 {
    fn answer(self, grounding: &Grounding) -> Answer {
        if self.raw_memory.is_empty() || self.rollout_summary.is_empty() {
            return Answer::Nothing;
        }
        let recap = grounding.mark(&self.rollout_summary);
        let raw_memory = grounding.mark(&self.raw_memory);
        Answer::Kept(Finding {
            recap: redact_str(&recap.text),
            slug: self.rollout_slug.as_deref().and_then(slug),
            raw_memory: Some(redact_str(&raw_memory.text)),
            ungrounded: recap.count + raw_memory.count,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyV2 {
    rollout_summary: String,
    rollout_slug: String,
}

impl ReplyV2 {
    fn answer(self, grounding: &Grounding) -> Answer {
        if self.rollout_summary.is_empty() {
            return Answer::Nothing;
        }
        let marked = grounding.mark(&self.rollout_summary);
        let whole = redact_str(&marked.text);
        let cut = middle_bytes(whole.as_str(), RECAP_V2_BYTES);
        Answer::Kept(Finding {
            recap: redact_str(&cut),
            slug: slug(&self.rollout_slug),
            raw_memory: None,
            ungrounded: marked.count,
        })
    }
}

fn slug(proposed: &str) -> Option<String> {
    recap_name::slug(redact_str(proposed).as_str())
}

fn decode<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, ReplyError> {
    let mut source = serde_json::Deserializer::from_str(json);
    let reply = T::deserialize(&mut source).map_err(|error| reply_error(&error))?;
    source.end().map_err(|_| ReplyError::TextAfter)?;
    Ok(reply)
}

fn reply_error(error: &serde_json::Error) -> ReplyError {
    use serde_json::error::Category;
    match error.classify() {
        Category::Eof => ReplyError::CutOff,
        Category::Data => ReplyError::Schema {
            problem: redact_str(&error.to_string()),
        },
        Category::Syntax | Category::Io => ReplyError::NotJson,
    }
}

/// The reply without what some models put around the JSON.
fn json_part(text: &str) -> Result<&str, ReplyError> {
    let mut rest = thinking::after(text).ok_or(ReplyError::CutOff)?;
    if rest.is_empty() {
        return Err(ReplyError::Empty);
    }
    if let Some(fenced) = rest.strip_prefix("```") {
        // The rest of the line names the language.
        let (_, inside) = fenced.split_once('\n').ok_or(ReplyError::CutOff)?;
        rest = inside.strip_suffix("```").unwrap_or(inside).trim();
    }
    if rest.is_empty() {
        return Err(ReplyError::Empty);
    }
    if rest.starts_with('{') {
        Ok(rest)
    } else {
        Err(ReplyError::NotJson)
    }
}

#[cfg(test)]
mod tests;
