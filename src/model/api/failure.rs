//! What a service says when it does not answer, and whether asking again helps.

use std::time::Duration;

use serde_json::Value;

use crate::domain::endpoint::KeyPlace;
use crate::domain::limits::BYTES_PER_TOKEN;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::model::ModelError;
use crate::model::api::http::Head;
use crate::model::api::key::Secrets;
use crate::text::redact::redact_str;

/// Most of a failure's body that is read, in bytes.
pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;

/// Longest words of a service that are shown, in characters.
const WORDS_CHARS_MAX: usize = 300;

/// Why one try came to nothing.
#[derive(Debug)]
pub(super) enum Failure {
    /// Asking again can help, after the wait that the service names.
    Again {
        after: Option<Duration>,
        error: ModelError,
    },
    /// Asking the same again cannot.
    Final(ModelError),
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self::Final(error)
    }
}

/// What is known of the service that failed.
pub(super) struct Facts<'a> {
    pub(super) model: &'a str,
    /// The address that was asked.
    pub(super) address: &'a str,
    pub(super) key_place: Option<&'a KeyPlace>,
    pub(super) now: Timestamp,
}

/// The words of a failure, in whichever of the known forms they come.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Words {
    /// `code`, `type` and `status`, in lower case, separated by spaces.
    pub(super) codes: String,
    pub(super) message: String,
}

impl Words {
    /// Reads a body of any kind; what is no JSON is not repeated, nor are
    /// secrets that were sent.
    pub(super) fn of_body(body: &[u8], secrets: &Secrets) -> Self {
        let Ok(mut json) = serde_json::from_slice(body) else {
            return Self::default();
        };
        secrets.hide_in_json(&mut json);
        Self::of_json(&json)
    }

    /// Reads `{"error": {"message", "code", "type"}}`, the same without
    /// `error`, `{"error": "…"}` or `{"detail": "…"}`.
    pub(super) fn of_json(json: &Value) -> Self {
        let json = if json.is_array() { &json[0] } else { json };
        let error = match &json["error"] {
            Value::Null => json,
            Value::String(message) => {
                return Self {
                    codes: String::new(),
                    message: message.clone(),
                };
            }
            error => error,
        };
        let text = |name: &str| error[name].as_str().unwrap_or_default();
        let message = ["message", "detail"].into_iter().map(text);
        let message = message.max_by_key(|text| text.len()).unwrap_or_default();
        let codes = ["code", "type", "status"].map(text).join(" ");
        Self {
            codes: codes.to_lowercase(),
            message: message.to_owned(),
        }
    }

    /// Whether code or message hold one of these words, given in lower case.
    pub(super) fn hold(&self, words: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        (words.iter()).any(|word| self.codes.contains(word) || message.contains(word))
    }

    fn shown(&self) -> String {
        let message = if self.message.trim().is_empty() {
            self.codes.trim()
        } else {
            &self.message
        };
        let redacted = redact_str(message);
        redacted.as_str().chars().take(WORDS_CHARS_MAX).collect()
    }
}

/// How services say that a request does not fit the model's window.
const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "context window",
    "context length",
    "context size",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "request_too_large",
    "input length and `max_tokens` exceed",
];

/// How they say that a filter came between.
const FILTERED: &[&str] = &[
    "content_filter",
    "content_policy",
    "content management policy",
    "responsibleaipolicyviolation",
    "invalid_prompt",
];

/// How they say that money, not patience, is wanted.
const USED_UP: &[&str] = &[
    "insufficient_quota",
    "billing",
    "credit balance",
    "insufficient credits",
    "insufficient_balance",
];

/// Judges a status that is no success.
pub(super) fn of_status(head: &Head, words: &Words, facts: &Facts<'_>) -> Failure {
    let said = words.shown();
    let tell = |what: String| {
        let text = if said.is_empty() {
            what
        } else {
            format!("{what}: {said}")
        };
        redact_str(&text)
    };
    let refused = |what: String| Failure::Final(ModelError::Refused { reason: tell(what) });
    let after = retry_after(head, facts.now);
    match head.status {
        300..=399 => refused(format!(
            "{} answers with a redirect, which is not followed",
            facts.address
        )),
        401 | 403 => refused(key_words(facts)),
        402 => refused("the account has no money left".to_owned()),
        404 => refused(format!(
            "{} does not know the model `{}`",
            facts.address, facts.model
        )),
        413 => Failure::Final(ModelError::TooLong),
        429 | 503 if words.hold(USED_UP) => refused("the account's quota is used up".to_owned()),
        429 => Failure::Again {
            after,
            error: ModelError::RateLimited {
                retry_after_seconds: after.map(round_up),
            },
        },
        501 => refused("the service cannot do this (501)".to_owned()),
        // 409 is a lock that was not had in time, 425 is "too early".
        408 | 409 | 425 | 500.. => Failure::Again {
            after,
            error: ModelError::Unreachable {
                reason: tell(format!("the service answers {}", head.status)),
            },
        },
        _ if words.hold(TOO_LONG) => Failure::Final(ModelError::TooLong),
        _ if words.hold(FILTERED) => refused("a filter of the service stopped it".to_owned()),
        status => refused(format!("the service answers {status}")),
    }
}

/// Judges a failure that comes in place of the rest of an answer.
pub(super) fn of_stream(words: &Words) -> Failure {
    let reason = redact_str(&words.message);
    if words.hold(TOO_LONG) {
        return Failure::Final(ModelError::TooLong);
    }
    if words.hold(FILTERED) || words.hold(USED_UP) {
        return Failure::Final(ModelError::Refused { reason });
    }
    let error = if words.hold(&["rate_limit"]) {
        ModelError::RateLimited {
            retry_after_seconds: None,
        }
    } else {
        ModelError::Unreachable { reason }
    };
    Failure::Again { after: None, error }
}

fn key_words(facts: &Facts<'_>) -> String {
    match facts.key_place {
        Some(place) => format!("{} does not accept the key in {place}", facts.address),
        None => format!(
            "{} wants a key: name its variable in `model.key_env`",
            facts.address
        ),
    }
}

/// What is told when the wait that a service names is longer than an ask
/// lasts: whoever asks next keeps to it.
pub(super) fn asks_for_patience(after: Duration) -> ModelError {
    ModelError::RateLimited {
        retry_after_seconds: Some(round_up(after)),
    }
}

fn round_up(duration: Duration) -> u64 {
    (duration.as_secs()).saturating_add(u64::from(duration.subsec_nanos() != 0))
}

/// Longest wait that is believed, in seconds.
const AFTER_SECONDS_MAX: f64 = 7.0 * 86_400.0;

/// How long the service asks to wait. A date is taken by the service's own
/// clock where it tells that, so that a wrong one does not matter.
fn retry_after(head: &Head, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| head.headers.get(name)?.to_str().ok().map(str::trim);
    let seconds = |seconds: f64| {
        let is_wait = seconds.is_finite() && 0.0 <= seconds;
        is_wait.then(|| Duration::from_secs_f64(seconds.min(AFTER_SECONDS_MAX)))
    };
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return seconds(millis / 1000.0);
    }
    let after = text("retry-after")?;
    if let Ok(number) = after.parse::<f64>() {
        return seconds(number);
    }
    let at = Timestamp::parse_http_date(after)?;
    let now = text("date")
        .and_then(Timestamp::parse_http_date)
        .unwrap_or(now);
    let millis = at.millis().saturating_sub(now.millis());
    Some(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
}

/// Tokens that a service which does not count is taken to have used.
pub(super) fn tokens_of(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// What went wrong, for a failure of the connection.
pub(super) fn unreachable(address: &str, reason: &Redacted) -> ModelError {
    ModelError::Unreachable {
        reason: redact_str(&format!("{address}: {reason}")),
    }
}
