//! What the records of a transcript say, and who says it.

use serde_json::value::RawValue;

use crate::domain::item::{Provenance, Trust};
use crate::sessions::citation::{FoundIn, split_answer};
use crate::sessions::claude::reader::{Part, RECORD_IDS_MAX, Reader, Record};
use crate::sessions::claude::wire::{Answered, Attachment, Row};
use crate::sessions::draft::{Draft, Said};
use crate::sessions::records::Taken;
use crate::sessions::tools;
use crate::sessions::wire::{Content, Object, Part as ContentPart};
use crate::sessions::words::{self, Piece, split_user_text};

/// Messages looked at for the mark of our own prompts.
const PROMPTS_MAX: u32 = 4;

/// Most calls that wait for their output.
const OPEN_CALLS_MAX: usize = 4_096;

/// How an output begins whose call a person turned down, and what stands
/// before the reason they gave.
const TURNED_DOWN: &str = "The user doesn't want to";
const REASONS: [&str; 2] = [
    "To tell you how to proceed, the user said:\n",
    "The user provided the following reason for the rejection:",
];

/// Whether a person typed this record: no tool result, no harness.
pub(super) fn is_question(row: &Row<'_>) -> bool {
    let is_harness = row.is_meta.is_set() || row.is_compact_summary.is_set();
    if !row.kind.is("user") || is_harness {
        return false;
    }
    match row.message.get().map(|message| &message.content) {
        Some(Content::Text(text)) => has_human_words(text),
        Some(Content::Parts(parts)) => {
            let mut has_words = false;
            let mut parts = parts.iter().filter_map(Object::get);
            let has_result = parts.any(|part| {
                has_words |= part.kind.is("text") && has_human_words(part.text.get());
                part.kind.is("tool_result")
            });
            has_words && !has_result
        }
        _ => false,
    }
}

impl Reader<'_> {
    pub(super) fn user(&mut self, record: Record, row: Row<'_>) {
        let is_summary =
            row.is_compact_summary.is_set() || row.is_visible_in_transcript_only.is_set();
        let is_harness = row.is_meta.is_set() || is_summary;
        let Some(message) = row.message.0 else {
            return;
        };
        let mut media_count = 0;
        let mut has_text = false;
        for part in message.content.into_parts() {
            match part.kind.get() {
                "tool_result" => self.tool_result(record, part, row.tool_use_result),
                "text" => {
                    has_text = true;
                    let media_count = std::mem::take(&mut media_count);
                    self.user_text(record, part.text.get(), is_harness, media_count);
                }
                _ if part.is_media() => media_count += 1,
                _ => {}
            }
        }
        if media_count > 0 && !is_harness && !(has_text && self.add_media(record, media_count)) {
            // Images alone.
            let said = Said::message(self.human(record), "");
            self.drafts
                .push(record.origin, said.with_media(media_count));
        }
    }

    fn user_text(&mut self, record: Record, text: &str, is_harness: bool, mut media_count: u32) {
        if is_harness {
            let said = Said::message(Provenance::HarnessContext, text);
            self.drafts.push(record.origin, said);
            return;
        }
        if self.prompts < PROMPTS_MAX && self.part == Part::Main {
            self.prompts += 1;
            self.is_ours |= words::is_worker_prompt(text);
        }
        let mut pieces = split_user_text(text);
        let is_human = |piece: &Piece<'_>| piece.provenance == Provenance::Human;
        if media_count > 0 && !pieces.iter().any(is_human) {
            pieces.push(Piece {
                provenance: Provenance::Human,
                text: "",
            });
        }
        for Piece { provenance, text } in pieces {
            if provenance == Provenance::Human {
                let said = Said::message(self.human(record), text);
                let said = said.with_media(std::mem::take(&mut media_count));
                self.has_human |= said.provenance == Provenance::Human;
                self.drafts.push(record.origin, said);
            } else {
                self.drafts
                    .push(record.origin, Said::message(provenance, text));
            }
        }
    }

    /// Nobody types into a sub-agent: its parent does.
    #[expect(clippy::unused_self, reason = "reads better where it is called")]
    fn human(&self, record: Record) -> Provenance {
        if record.is_sidechain {
            Provenance::OtherAgent
        } else {
            Provenance::Human
        }
    }

    /// Counts images that stand behind their text.
    fn add_media(&mut self, record: Record, media_count: u32) -> bool {
        let human = self.human(record);
        let mut drafts = self.drafts.all_mut().iter_mut().rev();
        let is_here = |draft: &&mut Draft| draft.origin.line_number == record.origin.line_number;
        let words = drafts.by_ref().take_while(is_here);
        let mut words = words.filter(|draft| draft.item.provenance == human);
        let Some(words) = words.next() else {
            return false;
        };
        words.item.media_count += media_count;
        true
    }

    fn tool_result(&mut self, record: Record, part: ContentPart<'_>, result: Option<&RawValue>) {
        let call_id = part.tool_use_id.into_string();
        let call = self.calls.remove(&call_id);
        if let Some(answers) = result.and_then(|result| answered(result.get())) {
            let said = Said::message(self.human(record), answers);
            self.drafts.push(record.origin, said);
            return;
        }
        let (text, media_count) = part.content.into_text();
        let call = call.as_ref();
        self.has_external |= call.is_some_and(|call| call.is_external_tool);
        let trust = call.map_or(Trust::Own, |call| call.output_trust);
        let reads_memory = call.is_some_and(|call| call.reads_memory);
        let succeeded = match part.is_error.0 {
            Some(true) => Some(false),
            _ if text.starts_with("Exit code ") => Some(text.starts_with("Exit code 0")),
            Some(false) => Some(true),
            None => None,
        };
        let reason = reason_of(&text).map(str::to_owned);
        let said = Said::output(call_id, text, succeeded, trust, reads_memory);
        self.drafts
            .push(record.origin, said.with_media(media_count));
        if let Some(reason) = reason {
            let said = Said::message(self.human(record), reason);
            self.drafts.push(record.origin, said);
        }
    }

    pub(super) fn assistant(&mut self, record: Record, row: Row<'_>) {
        let is_error = row.is_api_error_message.is_set();
        let Some(message) = row.message.0 else {
            return;
        };
        let is_harness = is_error || message.model.is("<synthetic>");
        if message.stop_reason.is("tool_use") {
            self.note_calling(record);
        }
        for part in message.content.into_parts() {
            match part.kind.get() {
                "text" => self.answer(record, part.text.get(), is_harness),
                "tool_use" | "server_tool_use" | "mcp_tool_use" => self.tool_use(record, &part),
                "web_search_tool_result" | "web_fetch_tool_result" | "mcp_tool_result" => {
                    self.has_external = true;
                }
                _ => {}
            }
        }
    }

    fn answer(&mut self, record: Record, text: &str, is_harness: bool) {
        let (visible, cited) = split_answer(text);
        let provenance = match () {
            () if is_harness => Provenance::HarnessContext,
            () if record.is_sidechain => Provenance::OtherAgent,
            () => Provenance::AssistantFinal,
        };
        let answer = (text, visible.as_str());
        let (line_number, at) = (record.origin.line_number, record.origin.at);
        (self.citations).push(FoundIn::Answer, line_number, at, answer, cited);
        if !visible.trim().is_empty() {
            self.drafts
                .push(record.origin, Said::message(provenance, visible));
        }
    }

    fn tool_use(&mut self, record: Record, part: &ContentPart<'_>) {
        self.note_calling(record);
        let json = part.input.map(RawValue::get).unwrap_or_default();
        let call = tools::from_json(part.name.get(), "", json);
        self.has_external |= call.is_external_tool;
        let call_id = part.id.get().to_owned();
        let said = Said::call(&call, call_id.clone());
        self.drafts.push(record.origin, said);
        if self.calls.len() < OPEN_CALLS_MAX {
            self.calls.insert(call_id, call);
        }
    }

    fn note_calling(&mut self, record: Record) {
        if record.origin.message != 0 && self.calling.len() < RECORD_IDS_MAX {
            self.calling.insert(record.origin.message);
        }
    }

    pub(super) fn attachment(&mut self, record: Record, said: Object<Attachment<'_>>) -> Taken {
        let Some(attachment) = said.0 else {
            return Taken::ignored("attachment", "");
        };
        match attachment.kind.get() {
            // A person typed this while the assistant was at work.
            "queued_command" if !attachment.command_mode.is("task-notification") => {
                let (text, media_count) = attachment.prompt.into_text();
                self.user_text(record, &text, false, media_count);
            }
            "hook_additional_context" | "nested_memory" => {
                let (text, _) = attachment.content.into_text();
                if !text.trim().is_empty() {
                    let said = Said::message(Provenance::HarnessContext, text);
                    self.drafts.push(record.origin, said);
                }
            }
            other => return Taken::ignored("attachment", other),
        }
        Taken::Read
    }
}

fn has_human_words(text: &str) -> bool {
    let pieces = split_user_text(text);
    pieces
        .iter()
        .any(|piece| piece.provenance == Provenance::Human)
}

/// A person's answers to the assistant's questions, each with its question in
/// front.
fn answered(result: &str) -> Option<String> {
    if !result.starts_with('{') || !result.contains("\"questions\"") {
        return None;
    }
    let answered: Answered<'_> = serde_json::from_str(result).ok()?;
    let answers = answered.answers.as_object()?;
    let mut rendered = Vec::new();
    for question in answered.questions.0.iter().filter_map(Object::get) {
        let question = question.question.get();
        let answer = answers.get(question).and_then(serde_json::Value::as_str);
        if let Some(answer) = answer.map(str::trim).filter(|answer| !answer.is_empty()) {
            rendered.push(format!("{question}\n{answer}"));
        }
    }
    (!rendered.is_empty()).then(|| rendered.join("\n\n"))
}

/// What a person said when turning a tool call down.
fn reason_of(text: &str) -> Option<&str> {
    if !text.starts_with(TURNED_DOWN) {
        return None;
    }
    let (_, reason) = REASONS.iter().find_map(|mark| text.split_once(mark))?;
    Some(reason.trim()).filter(|reason| !reason.is_empty())
}
