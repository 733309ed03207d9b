//! One turn with a language model, whatever the wire looks like.
//!
//! A [`Protocol`] sends an [`Ask`] and gives back an [`Answer`]. Extraction is
//! one ask with a schema; the consolidation worker is a conversation of asks
//! with tools, in which each answer and its results become further turns.
//!
//! # Not in here
//!
//! What the services call these things. What a tool does. Retries, and taking
//! calls out of the budgets: every protocol a caller gets hold of does that by
//! itself, through the [`Meter`] of the ask.

use crate::domain::quota::RateLimits;
use crate::domain::text::{Raw, Redacted};
use crate::model::{Meter, ModelError, Tokens};

/// A service that answers asks. Calls block, and may come from several
/// threads at once.
pub(crate) trait Protocol: Send + Sync {
    /// The back end and its model, for headers, trailers and the ledger:
    /// `chat/qwen3-8b`.
    fn name(&self) -> &str;

    /// Asks once, and waits for the whole answer.
    ///
    /// # Errors
    ///
    /// [`ModelError`] when there is no answer that could be looked at. A
    /// refusal and a content filter are [`ModelError::Refused`], a request
    /// over the model's window is [`ModelError::TooLong`], and
    /// [`ModelError::Cancelled`] follows within a fraction of a second when
    /// the meter says to stop.
    fn ask(&self, ask: &Ask<'_>) -> Result<Answer, ModelError>;
}

/// All that a service is told.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) system: &'a Redacted,
    /// The conversation so far, oldest first; it begins and ends with what is
    /// ours ([`Turn::User`] or [`Turn::Results`]).
    pub(crate) turns: &'a [Turn],
    /// None: the model can only talk.
    pub(crate) tools: &'a [ToolSpec],
    /// The text of the answer must be JSON of this shape. Not together with
    /// tools: not every service can do both.
    pub(crate) schema: Option<ReplySchema>,
    /// Most tokens of the answer, reasoning included where the service counts
    /// it so.
    pub(crate) output_tokens_max: u64,
    /// Whether to go on, and what this may cost.
    pub(crate) meter: &'a dyn Meter,
}

/// A shape that an answer must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplySchema {
    /// Lower-case words and underscores, at most 64 bytes: services show it to
    /// the model.
    pub(crate) name: &'static str,
    /// A JSON schema, as JSON.
    pub(crate) json: &'static str,
}

/// One side's turn in a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Turn {
    /// What we say, as consecutive texts.
    User(Vec<Redacted>),
    /// What the model said before, see [`Answer::into_turn`].
    Assistant {
        text: Redacted,
        calls: Vec<ToolCall>,
        opaque: Option<Opaque>,
    },
    /// What its calls came to: one result for each, in their order.
    Results(Vec<ToolResult>),
}

/// Something the model may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToolSpec {
    /// Lower-case words and underscores.
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// The JSON schema of its arguments, an object, as JSON.
    pub(crate) parameters: &'static str,
}

/// Something the model wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolCall {
    /// The service's name for this call; its result must carry it.
    pub(crate) id: String,
    /// As the model wrote it: not necessarily one of our tools.
    pub(crate) name: String,
    /// JSON as the model wrote it: not necessarily whole or of the schema.
    pub(crate) arguments: Raw,
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolResult {
    /// [`ToolCall::id`].
    pub(crate) call_id: String,
    pub(crate) content: Redacted,
    /// The tool could not do it; the model is to try otherwise.
    pub(crate) is_error: bool,
}

/// What a service wants back unchanged with the next turn, such as sealed
/// reasoning. Only the protocol that made it looks inside.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Opaque(pub(super) serde_json::Value);

/// What a model said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// May be empty beside calls.
    pub(crate) text: Raw,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) end: End,
    /// What this ask used up, thrown-away tries included; the meter has been
    /// told of it already.
    pub(crate) tokens: Tokens,
    /// What the service said of its limits; the meter knows.
    pub(crate) rate_limits: Option<RateLimits>,
    pub(crate) opaque: Option<Opaque>,
}

impl Answer {
    /// The answer as a turn of the conversation that goes on. `redact` is
    /// `text::redact::redact`, which has to see what is sent.
    pub(crate) fn into_turn(self, redact: impl Fn(&Raw) -> Redacted) -> Turn {
        Turn::Assistant {
            text: redact(&self.text),
            calls: self.calls,
            opaque: self.opaque,
        }
    }
}

/// Why a model stopped talking. Refusals and filters are errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Finished,
    /// It waits for the results of its calls.
    WantsTools,
    /// At [`Ask::output_tokens_max`], or at the model's own limit. The last
    /// call may be cut in two.
    CutAtLimit,
}
