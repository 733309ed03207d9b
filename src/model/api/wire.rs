//! What a service's own file has to say of it, and what all of them need.

use reqwest::header::HeaderValue;
use serde_json::Value;

use crate::model::api::failure::{Failure, Words};
use crate::model::api::gathered::Gathered;
use crate::model::api::http::Flow;
use crate::model::api::key::Key;
use crate::model::protocol::{Ask, ToolCall, ToolResult};
use crate::text::redact::redact_str;

/// How a service is asked, and how its answer is read. Values that make up
/// a body are redacted texts and words of this program alone.
pub(super) trait Wire: Send + Sync {
    /// Below the endpoint.
    fn path(&self) -> &'static str;

    fn headers(&self, key: Option<&Key>) -> Vec<(&'static str, HeaderValue)>;

    fn body(&self, model: &str, ask: &Ask<'_>) -> Value;

    /// The service refused the form of the request with these words. `true`:
    /// it is now asked in a simpler form. Becomes `false` after a few times.
    fn step_down(&self, _: &Ask<'_>, _: &Words) -> bool {
        false
    }

    /// The tool whose call is the answer.
    fn forced<'a>(&self, _: &Ask<'a>) -> Option<&'a str> {
        None
    }

    /// Takes the next event of a stream.
    fn event(&self, gathered: &mut Gathered, event: &Value) -> Result<Flow, Failure>;

    /// Takes an answer that came in one piece.
    fn whole(&self, gathered: &mut Gathered, body: &Value) -> Result<(), Failure>;
}

/// The key as most services want it.
pub(super) fn bearer(key: Option<&Key>) -> Vec<(&'static str, HeaderValue)> {
    let headers = key.map(|key| ("authorization", key.bearer()));
    headers.into_iter().collect()
}

/// A JSON schema without what only people read: strict services refuse keys
/// that they do not know.
pub(super) fn schema(json: &str) -> Value {
    let mut schema: Value = serde_json::from_str(json).unwrap_or_default();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
    }
    schema
}

/// A call's arguments on their way back to who wrote them: what a model wrote
/// may hold what it read.
pub(super) fn arguments(call: &ToolCall) -> String {
    redact_str(call.arguments.unredacted()).into_string()
}

/// A result where the service has no place for its being an error.
pub(super) fn result_text(result: &ToolResult) -> String {
    let content = result.content.as_str();
    if result.is_error {
        format!("error: {content}")
    } else {
        content.to_owned()
    }
}
