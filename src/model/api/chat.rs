//! The back end `chat`: chat completions, as many servers offer them.
//!
//! # Compatibility
//!
//! Servers differ in how they are told the form of an answer. The strictest
//! way is tried first; a server that refuses it is asked in a looser way from
//! then on, for as long as this process lives. In the looser ways the schema
//! stands in the prompt. The same goes for the name of the output limit.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use crate::model::api::failure::{self, Failure, Words};
use crate::model::api::gathered::{Gathered, Stop};
use crate::model::api::http::Flow;
use crate::model::api::key::Key;
use crate::model::api::wire::{self, Wire};
use crate::model::protocol::{Ask, Turn};
use crate::text::redact::redact_str;

/// The wire, and what the server was found not to offer.
#[derive(Debug, Default)]
pub(super) struct Completions {
    form: AtomicU8,
    /// The server wants `max_completion_tokens`.
    has_new_limit: AtomicBool,
}

/// Values of [`Completions::form`], strictest first.
const SCHEMA: u8 = 0;
const JSON_OBJECT: u8 = 1;
const PLAIN: u8 = 2;

impl Wire for Completions {
    fn path(&self) -> &'static str {
        "chat/completions"
    }

    fn headers(&self, key: Option<&Key>) -> Vec<(&'static str, HeaderValue)> {
        wire::bearer(key)
    }

    fn body(&self, model: &str, ask: &Ask<'_>) -> Value {
        let form = self.form.load(Ordering::Relaxed);
        let mut system = ask.system.as_str().to_owned();
        if let Some(schema) = ask.schema
            && form != SCHEMA
        {
            let schema = wire::schema(schema.json);
            system = format!(
                "{system}\n\nAnswer with one JSON object and nothing else. It meets this JSON schema:\n{schema}"
            );
        }
        let mut messages = vec![json!({"role": "system", "content": system})];
        messages.extend(ask.turns.iter().flat_map(as_messages));
        let mut body = json!({
            "model": model,
            "messages": messages,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        let limit = if self.has_new_limit.load(Ordering::Relaxed) {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body[limit] = ask.output_tokens_max.into();
        if let Some(schema) = ask.schema {
            match form {
                SCHEMA => {
                    body["response_format"] = json!({"type": "json_schema", "json_schema": {
                        "name": schema.name,
                        "strict": true,
                        "schema": wire::schema(schema.json),
                    }});
                }
                JSON_OBJECT => body["response_format"] = json!({"type": "json_object"}),
                _ => {}
            }
        }
        if !ask.tools.is_empty() {
            let tools = ask.tools.iter().map(|tool| {
                json!({"type": "function", "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": wire::schema(tool.parameters),
                }})
            });
            body["tools"] = tools.collect();
        }
        body
    }

    fn step_down(&self, ask: &Ask<'_>, words: &Words) -> bool {
        if words.hold(&["max_completion_tokens"]) {
            return !self.has_new_limit.swap(true, Ordering::Relaxed);
        }
        let form = self.form.load(Ordering::Relaxed);
        let is_about_form = words.hold(&[
            "response_format",
            "json_schema",
            "json_object",
            "json mode",
            "structured output",
            "grammar",
        ]);
        let can = ask.schema.is_some() && is_about_form && form < PLAIN;
        if can {
            // Others may have found out the same at the same time.
            self.form.fetch_max(form + 1, Ordering::Relaxed);
        }
        can
    }

    fn event(&self, gathered: &mut Gathered, event: &Value) -> Result<Flow, Failure> {
        if !event["error"].is_null() {
            return Err(failure::of_stream(&Words::of_json(event)));
        }
        let choice = &event["choices"][0];
        message(gathered, &choice["delta"])?;
        finish(gathered, choice);
        usage(gathered, event);
        Ok(Flow::More)
    }

    fn whole(&self, gathered: &mut Gathered, completion: &Value) -> Result<(), Failure> {
        let choice = &completion["choices"][0];
        message(gathered, &choice["message"])?;
        finish(gathered, choice);
        usage(gathered, completion);
        if gathered.stop.is_none() && !gathered.is_empty() {
            gathered.stop = Some(Stop::Finished);
        }
        Ok(())
    }
}

fn message(gathered: &mut Gathered, message: &Value) -> Result<(), Failure> {
    if let Some(text) = message["content"].as_str() {
        gathered.push_text(text)?;
    }
    for part in message["content"].as_array().into_iter().flatten() {
        gathered.push_text(part["text"].as_str().unwrap_or_default())?;
    }
    if let Some(words) = message["refusal"].as_str() {
        gathered.refusal.push_str(words);
    }
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    for (position, call) in (0..).zip(calls) {
        let index = call["index"].as_u64().unwrap_or(position);
        let function = &call["function"];
        let arguments = match &function["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            // Some servers send the object itself.
            object => object.to_string(),
        };
        gathered.push_call(
            index,
            call["id"].as_str().unwrap_or_default(),
            function["name"].as_str().unwrap_or_default(),
            &arguments,
        )?;
    }
    Ok(())
}

fn finish(gathered: &mut Gathered, choice: &Value) {
    let stop = match choice["finish_reason"].as_str() {
        None => return,
        Some("length") => Stop::CutAtLimit,
        Some("tool_calls" | "function_call") => Stop::WantsTools,
        Some("content_filter") => Stop::Refused,
        Some(_) => Stop::Finished,
    };
    gathered.stop = Some(stop);
}

fn usage(gathered: &mut Gathered, body: &Value) {
    let usage = &body["usage"];
    if let Some(tokens) = usage["prompt_tokens"].as_u64() {
        gathered.input_tokens = tokens;
    }
    if let Some(tokens) = usage["completion_tokens"].as_u64() {
        gathered.output_tokens = tokens;
    }
}

fn as_messages(turn: &Turn) -> Vec<Value> {
    match turn {
        // Several servers take one text only, and no list of parts.
        Turn::User(parts) => (parts.iter())
            .map(|part| json!({"role": "user", "content": part.as_str()}))
            .collect(),
        Turn::Assistant { text, calls, .. } => {
            let mut message = json!({"role": "assistant", "content": text.as_str()});
            if !calls.is_empty() {
                let calls = calls.iter().map(|call| {
                    json!({
                        "id": redact_str(&call.id).as_str(),
                        "type": "function",
                        "function": {
                            "name": redact_str(&call.name).as_str(),
                            "arguments": wire::arguments(call),
                        },
                    })
                });
                message["tool_calls"] = calls.collect();
            }
            vec![message]
        }
        Turn::Results(results) => (results.iter())
            .map(|result| {
                json!({
                    "role": "tool",
                    "tool_call_id": redact_str(&result.call_id).as_str(),
                    "content": wire::result_text(result),
                })
            })
            .collect(),
    }
}
