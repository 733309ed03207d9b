//! Tool calls, their outputs, and the events that say how they ended.

use serde_json::json;
use serde_json::value::RawValue;

use crate::domain::item::{Provenance, Trust};
use crate::sessions::codex::outputs;
use crate::sessions::codex::reader::Reader;
use crate::sessions::codex::wire::{Action, LineMetadata, Payload};
use crate::sessions::draft::{Origin, Said, Standing};
use crate::sessions::tools::{self, Call};
use crate::sessions::wire::Text;

/// Most calls that wait for their output.
const OPEN_CALLS_MAX: usize = 4_096;

/// A call whose output has not come yet.
#[derive(Debug)]
pub(super) struct OpenCall {
    call: Call,
    /// The output will be a person's answer.
    is_question: bool,
}

impl Reader<'_> {
    pub(super) fn call(&mut self, origin: Origin, payload: Payload<'_>) {
        let namespace = payload.namespace.get();
        // A tool of the same name in a foreign namespace asks nobody.
        let may_ask = ["", "functions"].contains(&namespace);
        let call_id = payload.call_id.full().or(payload.id.full());
        let call_id = call_id.unwrap_or_default().to_owned();
        let call = call_of(payload);
        let is_question = may_ask && call.tool == "request_user_input";
        self.has_external |= call.is_external_tool;
        self.script_outcome = None;
        let said = Said::call(&call, call_id.clone());
        let trust = if call.tool == "web_search" {
            Trust::External
        } else {
            Trust::Own
        };
        self.push(origin, Said { trust, ..said });
        if self.calls.len() < OPEN_CALLS_MAX {
            self.calls.insert(call_id, OpenCall { call, is_question });
        }
    }

    pub(super) fn output(
        &mut self,
        origin: Origin,
        payload: Payload<'_>,
        metadata: Option<&LineMetadata>,
    ) {
        let call_id = payload.call_id.get().to_owned();
        let is_tool_search = payload.kind.is("tool_search_output");
        let mut output = outputs::read(payload.output);
        if is_tool_search {
            output.text = payload
                .tools
                .map_or_else(String::new, |tools| tools.get().to_owned());
        }
        let open = self.calls.remove(&call_id);
        if let Some(open) = open.as_ref().filter(|open| open.is_question)
            && let Some(answers) = outputs::answered_questions(&open.call.text, &output.text)
        {
            let said = Said::message(Provenance::Human, answers);
            self.push(origin, said.standing(Standing::Confirmed));
            return;
        }
        let call = open.as_ref().map(|open| &open.call);
        let is_external = is_tool_search
            || call.is_some_and(|call| call.is_external_tool)
            || metadata.is_some_and(LineMetadata::names_foreign_server);
        self.has_external |= is_external;
        let is_fetched = call.is_some_and(|call| call.output_trust == Trust::External);
        let trust = if is_external || is_fetched {
            Trust::External
        } else {
            Trust::Own
        };
        let reads_memory = call.is_some_and(|call| call.reads_memory);
        let succeeded = self.script_outcome.take().or(output.succeeded);
        let said = Said::output(call_id, output.text, succeeded, trust, reads_memory);
        self.push(origin, said.with_media(output.media_count));
    }

    /// A command ended: of this call, or of the script that runs now.
    pub(super) fn command_ended(&mut self, call_id: &str, succeeded: Option<bool>) {
        let Some(succeeded) = succeeded else { return };
        if let Some(outcome) = self.drafts.recent_output(call_id) {
            *outcome = Some(succeeded);
        } else {
            let before = self.script_outcome.unwrap_or(true);
            self.script_outcome = Some(before && succeeded);
        }
    }

    /// An MCP server answered this call.
    pub(super) fn external_call(&mut self, call_id: &str) {
        match self.calls.get_mut(call_id) {
            Some(open) if open.call.reads_memory => {}
            Some(open) => open.call.is_external_tool = true,
            None => self.has_external = true,
        }
    }
}

fn call_of(payload: Payload<'_>) -> Call {
    let action = payload.action.map(RawValue::get).unwrap_or_default();
    let action_of = || serde_json::from_str::<Action<'_>>(action).unwrap_or_default();
    match payload.kind.get() {
        "custom_tool_call" => {
            let name = payload.name.get().to_owned();
            tools::from_text(&name, payload.input.into_string())
        }
        "local_shell_call" => {
            let command = tools::command_line(&action_of().command).unwrap_or_default();
            tools::from_json(
                "local_shell",
                "",
                &json!({ "command": command }).to_string(),
            )
        }
        "web_search_call" => {
            let stated = action_of();
            let text = stated.query.full().or(stated.url.full()).unwrap_or(action);
            tools::from_json("web_search", "", text)
        }
        "tool_search_call" => {
            let arguments = arguments_text(payload.arguments);
            tools::from_json("tool_search", "", &arguments)
        }
        _ => {
            let arguments = arguments_text(payload.arguments);
            tools::from_json(payload.name.get(), payload.namespace.get(), &arguments)
        }
    }
}

/// Arguments are JSON in a string, or JSON itself.
fn arguments_text(arguments: Option<&RawValue>) -> String {
    let json = arguments.map(RawValue::get).unwrap_or_default();
    match serde_json::from_str::<Text<'_>>(json) {
        Ok(Text(Some(text))) => text.into_owned(),
        _ => json.to_owned(),
    }
}
