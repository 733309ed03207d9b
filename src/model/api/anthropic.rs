//! The back end `anthropic`: the Messages API.
//!
//! An answer of a given form is asked for as the call of one tool, whose
//! arguments then are the answer.

use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use crate::model::api::failure::{self, Failure, Words};
use crate::model::api::gathered::{Gathered, Stop};
use crate::model::api::http::Flow;
use crate::model::api::key::Key;
use crate::model::api::wire::{self, Wire};
use crate::model::protocol::{Ask, ToolCall, Turn};
use crate::text::redact::redact_str;

/// The version of the protocol that is spoken here.
const VERSION: &str = "2023-06-01";

#[derive(Debug, Default)]
pub(super) struct Messages;

impl Wire for Messages {
    fn path(&self) -> &'static str {
        "messages"
    }

    fn headers(&self, key: Option<&Key>) -> Vec<(&'static str, HeaderValue)> {
        let mut headers = vec![("anthropic-version", HeaderValue::from_static(VERSION))];
        headers.extend(key.map(|key| ("x-api-key", key.header())));
        headers
    }

    fn body(&self, model: &str, ask: &Ask<'_>) -> Value {
        let mut body = json!({
            "model": model,
            "messages": ask.turns.iter().map(message).collect::<Vec<_>>(),
            "max_tokens": ask.output_tokens_max,
            "stream": true,
        });
        if !ask.system.is_empty() {
            body["system"] = ask.system.as_str().into();
        }
        let tool = |name: &str, description: &str, schema: &str| {
            json!({
                "name": name,
                "description": description,
                "input_schema": wire::schema(schema),
            })
        };
        if let Some(schema) = ask.schema {
            let about = "Gives the answer. Call it once, with all of it.";
            body["tools"] = json!([tool(schema.name, about, schema.json)]);
            body["tool_choice"] = json!({"type": "tool", "name": schema.name});
        } else if !ask.tools.is_empty() {
            let tools = ask.tools.iter();
            body["tools"] = tools
                .map(|spec| tool(spec.name, spec.description, spec.parameters))
                .collect();
        }
        body
    }

    fn forced<'a>(&self, ask: &Ask<'a>) -> Option<&'a str> {
        ask.schema.map(|schema| schema.name)
    }

    fn event(&self, gathered: &mut Gathered, event: &Value) -> Result<Flow, Failure> {
        let index = event["index"].as_u64().unwrap_or(0);
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => usage(gathered, &event["message"]["usage"]),
            "content_block_start" => {
                let block = &event["content_block"];
                // The arguments begin as `{}` and come in pieces.
                let name = block["name"].as_str().unwrap_or_default();
                match block["type"].as_str().unwrap_or_default() {
                    "text" => gathered.push_text(block["text"].as_str().unwrap_or_default())?,
                    "tool_use" => {
                        let id = block["id"].as_str().unwrap_or_default();
                        gathered.push_call(index, id, name, "")?;
                    }
                    _ => {}
                }
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                match delta["type"].as_str().unwrap_or_default() {
                    "text_delta" => {
                        gathered.push_text(delta["text"].as_str().unwrap_or_default())?;
                    }
                    "input_json_delta" => {
                        let piece = delta["partial_json"].as_str().unwrap_or_default();
                        gathered.push_call(index, "", "", piece)?;
                    }
                    _ => {}
                }
            }
            "message_delta" => {
                stop(gathered, &event["delta"]);
                usage(gathered, &event["usage"]);
            }
            "message_stop" => return Ok(Flow::Enough),
            "error" => return Err(failure::of_stream(&Words::of_json(event))),
            _ => {}
        }
        Ok(Flow::More)
    }

    fn whole(&self, gathered: &mut Gathered, message: &Value) -> Result<(), Failure> {
        if message["type"] == "error" {
            return Err(failure::of_stream(&Words::of_json(message)));
        }
        let blocks = message["content"].as_array().into_iter().flatten();
        for (index, block) in (0..).zip(blocks) {
            match block["type"].as_str().unwrap_or_default() {
                "text" => gathered.push_text(block["text"].as_str().unwrap_or_default())?,
                "tool_use" => gathered.push_call(
                    index,
                    block["id"].as_str().unwrap_or_default(),
                    block["name"].as_str().unwrap_or_default(),
                    &block["input"].to_string(),
                )?,
                _ => {}
            }
        }
        usage(gathered, &message["usage"]);
        stop(gathered, message);
        Ok(())
    }
}

fn stop(gathered: &mut Gathered, holder: &Value) {
    let stop = match holder["stop_reason"].as_str() {
        None => return,
        Some("max_tokens") => Stop::CutAtLimit,
        Some("tool_use") => Stop::WantsTools,
        Some("refusal") => Stop::Refused,
        Some("model_context_window_exceeded") => Stop::WindowFull,
        Some(_) => Stop::Finished,
    };
    gathered.stop = Some(stop);
}

/// What was read from and written to the service's cache was sent, too.
fn usage(gathered: &mut Gathered, usage: &Value) {
    let input = [
        "input_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
    ];
    let counts = input.map(|name| usage[name].as_u64());
    if counts.iter().any(Option::is_some) {
        let sum = counts.into_iter().flatten().fold(0, u64::saturating_add);
        gathered.input_tokens = gathered.input_tokens.max(sum);
    }
    if let Some(tokens) = usage["output_tokens"].as_u64() {
        gathered.output_tokens = tokens;
    }
}

fn message(turn: &Turn) -> Value {
    match turn {
        Turn::User(parts) => {
            let parts = parts.iter().filter(|part| !part.is_empty());
            let content = parts.map(|part| json!({"type": "text", "text": part.as_str()}));
            json!({"role": "user", "content": content.collect::<Vec<_>>()})
        }
        Turn::Assistant { text, calls, .. } => {
            let mut content = Vec::new();
            // The service refuses an empty text.
            if !text.as_str().trim().is_empty() {
                content.push(json!({"type": "text", "text": text.as_str()}));
            }
            content.extend(calls.iter().map(tool_use));
            json!({"role": "assistant", "content": content})
        }
        Turn::Results(results) => {
            let content = results.iter().map(|result| {
                json!({
                    "type": "tool_result",
                    "tool_use_id": redact_str(&result.call_id).as_str(),
                    "content": result.content.as_str(),
                    "is_error": result.is_error,
                })
            });
            json!({"role": "user", "content": content.collect::<Vec<_>>()})
        }
    }
}

fn tool_use(call: &ToolCall) -> Value {
    // It has to be an object, also where the model wrote none.
    let input: Value = serde_json::from_str(&wire::arguments(call)).unwrap_or_default();
    json!({
        "type": "tool_use",
        "id": redact_str(&call.id).as_str(),
        "name": redact_str(&call.name).as_str(),
        "input": if input.is_object() { input } else { json!({}) },
    })
}
