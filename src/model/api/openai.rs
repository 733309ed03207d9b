//! The back end `openai`: the Responses API.
//!
//! Nothing is kept by the service (`store` is off), so what it wants to know
//! of its own reasoning goes along sealed, as [`Opaque`].

use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use crate::model::api::failure::{self, Failure, Words};
use crate::model::api::gathered::{Gathered, Stop};
use crate::model::api::http::Flow;
use crate::model::api::key::Key;
use crate::model::api::wire::{self, Wire};
use crate::model::protocol::{Ask, Opaque, ToolCall, Turn};
use crate::text::redact::redact_str;

const SEALED_REASONING: &str = "reasoning.encrypted_content";

/// The wire, and what the service was found not to offer.
#[derive(Debug, Default)]
pub(super) struct Responses {
    /// The model does not reason, and refuses to be asked for it.
    has_no_reasoning: AtomicBool,
}

impl Wire for Responses {
    fn path(&self) -> &'static str {
        "responses"
    }

    fn headers(&self, key: Option<&Key>) -> Vec<(&'static str, HeaderValue)> {
        wire::bearer(key)
    }

    fn body(&self, model: &str, ask: &Ask<'_>) -> Value {
        let mut body = json!({
            "model": model,
            "instructions": ask.system.as_str(),
            "input": ask.turns.iter().flat_map(items).collect::<Vec<_>>(),
            "max_output_tokens": ask.output_tokens_max,
            "store": false,
            "stream": true,
        });
        if let Some(schema) = ask.schema {
            body["text"] = json!({"format": {
                "type": "json_schema",
                "name": schema.name,
                "strict": true,
                "schema": wire::schema(schema.json),
            }});
        }
        if !ask.tools.is_empty() {
            let tools = ask.tools.iter().map(|tool| {
                json!({
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": wire::schema(tool.parameters),
                    "strict": false,
                })
            });
            body["tools"] = tools.collect();
            if !self.has_no_reasoning.load(Ordering::Relaxed) {
                body["include"] = json!([SEALED_REASONING]);
            }
        }
        body
    }

    fn step_down(&self, _: &Ask<'_>, words: &Words) -> bool {
        let is_about_it = words.hold(&[SEALED_REASONING, "encrypted content"]);
        is_about_it && !self.has_no_reasoning.swap(true, Ordering::Relaxed)
    }

    fn event(&self, gathered: &mut Gathered, event: &Value) -> Result<Flow, Failure> {
        match event["type"].as_str().unwrap_or_default() {
            "response.output_text.delta" => {
                gathered.push_text(event["delta"].as_str().unwrap_or_default())?;
            }
            "response.output_item.done" => {
                let index = event["output_index"].as_u64().unwrap_or(0);
                item(gathered, index, &event["item"])?;
            }
            "response.completed" | "response.incomplete" => {
                self.whole(gathered, &event["response"])?;
                return Ok(Flow::Enough);
            }
            "response.failed" => {
                return Err(failure::of_stream(&Words::of_json(&event["response"])));
            }
            "error" => return Err(failure::of_stream(&Words::of_json(event))),
            _ => {}
        }
        Ok(Flow::More)
    }

    fn whole(&self, gathered: &mut Gathered, response: &Value) -> Result<(), Failure> {
        if gathered.is_empty() {
            let output = response["output"].as_array().into_iter().flatten();
            for (index, part) in (0..).zip(output) {
                item(gathered, index, part)?;
            }
        }
        let usage = &response["usage"];
        gathered.input_tokens = usage["input_tokens"].as_u64().unwrap_or(0);
        gathered.output_tokens = usage["output_tokens"].as_u64().unwrap_or(0);
        let why = response["incomplete_details"]["reason"].as_str();
        gathered.stop = match response["status"].as_str().unwrap_or_default() {
            "completed" => Some(Stop::Finished),
            "incomplete" if why == Some("content_filter") => Some(Stop::Refused),
            "incomplete" => Some(Stop::CutAtLimit),
            "failed" => return Err(failure::of_stream(&Words::of_json(response))),
            _ => None,
        };
        Ok(())
    }
}

/// Takes a finished part of an answer. Text that came in pieces is there.
fn item(gathered: &mut Gathered, index: u64, item: &Value) -> Result<(), Failure> {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    match item["type"].as_str().unwrap_or_default() {
        "message" => {
            let came_in_pieces = !gathered.text.is_empty();
            for part in item["content"].as_array().into_iter().flatten() {
                match part["type"].as_str().unwrap_or_default() {
                    "output_text" if !came_in_pieces => gathered.push_text(&text(part, "text"))?,
                    "refusal" => gathered.refusal = text(part, "refusal"),
                    _ => {}
                }
            }
        }
        "function_call" => gathered.set_call(
            index,
            &text(item, "call_id"),
            &text(item, "name"),
            &text(item, "arguments"),
        )?,
        // Only what is sealed goes back: a summary in words may hold anything.
        "reasoning" if item["encrypted_content"].is_string() => gathered.opaque.push(json!({
            "type": "reasoning",
            "id": item["id"],
            "summary": [],
            "encrypted_content": item["encrypted_content"],
        })),
        _ => {}
    }
    Ok(())
}

/// A turn as items of the conversation.
fn items(turn: &Turn) -> Vec<Value> {
    match turn {
        Turn::User(parts) => {
            let parts = parts.iter();
            let content = parts.map(|part| json!({"type": "input_text", "text": part.as_str()}));
            vec![json!({"role": "user", "content": content.collect::<Vec<_>>()})]
        }
        Turn::Assistant {
            text,
            calls,
            opaque,
        } => {
            let mut items = match opaque {
                Some(Opaque(Value::Array(sealed))) => sealed.clone(),
                _ => Vec::new(),
            };
            if !text.is_empty() {
                let content = json!([{"type": "output_text", "text": text.as_str()}]);
                items.push(json!({"role": "assistant", "content": content}));
            }
            items.extend(calls.iter().map(function_call));
            items
        }
        Turn::Results(results) => (results.iter())
            .map(|result| {
                json!({
                    "type": "function_call_output",
                    "call_id": redact_str(&result.call_id).as_str(),
                    "output": wire::result_text(result),
                })
            })
            .collect(),
    }
}

fn function_call(call: &ToolCall) -> Value {
    json!({
        "type": "function_call",
        "call_id": redact_str(&call.id).as_str(),
        "name": redact_str(&call.name).as_str(),
        "arguments": wire::arguments(call),
    })
}
