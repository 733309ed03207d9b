//! An answer while it comes in, whichever service sends it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::domain::text::{Raw, Redacted};
use crate::model::ModelError;
use crate::model::protocol::{Answer, End, Opaque, ToolCall};
use crate::model::{Tokens, api::failure};
use crate::text::redact::redact_str;

/// Most bytes of text and arguments of one answer; real ones have a few
/// thousand.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Most calls of one answer.
const CALLS_MAX: usize = 128;

/// What has come so far.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) text: String,
    /// Why the model would not, in its own words.
    pub(super) refusal: String,
    /// By the service's own number of the part.
    calls: BTreeMap<u64, PartialCall>,
    /// Why it stopped; `None` while it goes on.
    pub(super) stop: Option<Stop>,
    /// What the service counted.
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) opaque: Vec<Value>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct PartialCall {
    id: String,
    name: String,
    arguments: String,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Finished,
    WantsTools,
    CutAtLimit,
    /// It would not, or a filter came between.
    Refused,
    /// What it was asked and its answer fill its window.
    WindowFull,
}

impl Gathered {
    /// Adds text of the answer.
    ///
    /// # Errors
    ///
    /// When the answer has no end.
    pub(super) fn push_text(&mut self, text: &str) -> Result<(), ModelError> {
        self.count(text)?;
        self.text.push_str(text);
        Ok(())
    }

    /// Adds to a call whose name or arguments come in pieces. An id or name
    /// that comes again replaces what was there.
    ///
    /// # Errors
    ///
    /// When the answer has no end.
    pub(super) fn push_call(
        &mut self,
        index: u64,
        id: &str,
        name: &str,
        arguments: &str,
    ) -> Result<(), ModelError> {
        self.count(arguments)?;
        if CALLS_MAX <= self.calls.len() && !self.calls.contains_key(&index) {
            return Err(unusable("it makes too many calls at once"));
        }
        let call = self.calls.entry(index).or_default();
        if !id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if !name.is_empty() {
            name.clone_into(&mut call.name);
        }
        call.arguments.push_str(arguments);
        Ok(())
    }

    /// Puts the whole arguments of a call in place of its pieces.
    pub(super) fn set_call(
        &mut self,
        index: u64,
        id: &str,
        name: &str,
        arguments: &str,
    ) -> Result<(), ModelError> {
        if let Some(call) = self.calls.get_mut(&index) {
            call.arguments.clear();
        }
        self.push_call(index, id, name, arguments)
    }

    fn count(&mut self, text: &str) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(text.len());
        if ANSWER_BYTES_MAX < self.bytes {
            return Err(unusable("it has no end"));
        }
        Ok(())
    }

    /// Whether anything of an answer has come.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty() && self.refusal.is_empty()
    }

    /// Tokens as the service counted them, or estimated where it did not.
    pub(super) fn tokens(&self, input_bytes: usize) -> Tokens {
        let estimate = |counted: u64, bytes: usize| match counted {
            0 => failure::tokens_of(bytes),
            counted => counted,
        };
        Tokens {
            calls: 1,
            input: estimate(self.input_tokens, input_bytes),
            output: estimate(self.output_tokens, self.bytes),
        }
    }

    /// The answer, now that it is whole. `forced` names the tool that an
    /// answer of a given form is sent through: its arguments are the text.
    ///
    /// # Errors
    ///
    /// When it is a refusal or overfilled the window.
    pub(super) fn into_answer(
        self,
        forced: Option<&str>,
        tokens: Tokens,
    ) -> Result<Answer, ModelError> {
        if self.stop == Some(Stop::WindowFull) {
            return Err(ModelError::TooLong);
        }
        if self.stop == Some(Stop::Refused) || !self.refusal.is_empty() {
            return Err(ModelError::Refused {
                reason: refusal_words(&self.refusal),
            });
        }
        let is_forced = |call: &PartialCall| forced == Some(call.name.as_str());
        let (forced_calls, calls): (Vec<_>, Vec<_>) = self.calls.into_values().partition(is_forced);
        let text = (forced_calls.into_iter().next()).map_or(self.text, |call| call.arguments);
        let calls: Vec<ToolCall> = (calls.into_iter().enumerate())
            .map(|(number, call)| ToolCall {
                // Some servers give none; only its result has to match it.
                id: if call.id.is_empty() {
                    format!("call-{number}")
                } else {
                    call.id
                },
                name: call.name,
                arguments: Raw::new(call.arguments),
            })
            .collect();
        let end = match self.stop {
            Some(Stop::CutAtLimit) => End::CutAtLimit,
            // What the service says of it differs; calls want an answer.
            _ if !calls.is_empty() => End::WantsTools,
            _ => End::Finished,
        };
        Ok(Answer {
            text: Raw::new(text),
            calls,
            end,
            tokens,
            rate_limits: None,
            opaque: (!self.opaque.is_empty()).then_some(Opaque(Value::Array(self.opaque))),
        })
    }
}

/// Longest words of a refusal that are shown, in characters.
const REFUSAL_CHARS_MAX: usize = 300;

fn refusal_words(words: &str) -> Redacted {
    if words.trim().is_empty() {
        return Redacted::literal("it gives no reason");
    }
    let words: String = redact_str(words)
        .as_str()
        .chars()
        .take(REFUSAL_CHARS_MAX)
        .collect();
    redact_str(&words)
}

pub(super) fn unusable(reason: &'static str) -> ModelError {
    ModelError::Unusable {
        reason: Redacted::literal(reason),
    }
}
