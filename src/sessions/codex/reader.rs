//! Turns the records of a rollout into drafts of items.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use serde_json::value::RawValue;

use crate::domain::id::ThreadId;
use crate::domain::item::{Item, ItemKind, Place, Provenance, Trust};
use crate::domain::session::{Citation, MemoryMode, ReadReport, Source};
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;
use crate::sessions::citation::{Citations, FoundIn, split_answer, thread_ids};
use crate::sessions::codex::fork::{Copying, ParentKeys};
use crate::sessions::codex::mirror::{self, Waitlist};
use crate::sessions::codex::outputs;
use crate::sessions::codex::wire::{
    Action, CompletedItem, DocumentSession, Git, Line, LineMetadata, MemoryCitation, Payload,
    SourceObject, SubAgentObject,
};
use crate::sessions::draft::{Drafts, Standing};
use crate::sessions::records::{self, Sink, Taken};
use crate::sessions::tools::{self, Call};
use crate::sessions::wire::{Content, List, Object, Part, Text};
use crate::sessions::words::{self, Piece, split_user_text};

/// Most calls that wait for their output.
const OPEN_CALLS_MAX: usize = 4_096;

/// Records looked at for a head, and messages looked at for our own mark.
const HEAD_RECORDS_MAX: u64 = 300;
const PROMPTS_MAX: u32 = 4;

/// What stands for an output that is our own text.
const OWN_OUTPUT: &str = "[memory that was read; not evidence]";

/// A call whose output has not come yet.
#[derive(Debug)]
struct OpenCall {
    call: Call,
    /// Arguments, when a person's answer is the output.
    asked: Option<String>,
}

/// What the session says about itself.
#[derive(Debug, Default)]
struct Meta {
    id: Option<ThreadId>,
    cwd: Option<String>,
    branch: Option<String>,
    repository_url: Option<String>,
    source: Option<Source>,
    mode: MemoryMode,
    forked_from: Option<ThreadId>,
}

/// Everything a rollout gave.
#[derive(Debug)]
pub(in crate::sessions) struct Finished {
    pub(in crate::sessions) thread_id: Option<ThreadId>,
    pub(in crate::sessions) cwd: Option<String>,
    pub(in crate::sessions) branch: Option<String>,
    pub(in crate::sessions) repository_url: Option<String>,
    pub(in crate::sessions) source: Source,
    pub(in crate::sessions) mode: MemoryMode,
    pub(in crate::sessions) forked_from: Option<ThreadId>,
    pub(in crate::sessions) started_at: Option<Timestamp>,
    pub(in crate::sessions) updated_at: Option<Timestamp>,
    pub(in crate::sessions) is_ours: bool,
    pub(in crate::sessions) items: Vec<Item>,
    pub(in crate::sessions) dropped: u64,
    pub(in crate::sessions) has_external: bool,
    pub(in crate::sessions) citations: Vec<Citation>,
    pub(in crate::sessions) report: ReadReport,
}

/// Reads one rollout.
pub(in crate::sessions) struct Reader<'a> {
    own_id: Option<ThreadId>,
    parent: &'a ParentKeys,
    head_only: bool,
    meta: Option<Meta>,
    started_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    copying: Option<Copying>,
    drafts: Drafts,
    turn: u32,
    /// The rollout says where turns begin.
    has_turn_events: bool,
    has_user_events: bool,
    users: Waitlist,
    answers: Waitlist,
    citations: Citations,
    calls: HashMap<String, OpenCall>,
    /// How the commands of the script that runs now ended.
    script_outcome: Option<bool>,
    has_external: bool,
    is_ours: bool,
    prompts: u32,
    has_human: bool,
    records: u64,
    known_records: u64,
    pub(in crate::sessions) report: ReadReport,
}

impl<'a> Reader<'a> {
    /// `parent` is empty unless this is a fork whose parent is at hand.
    pub(in crate::sessions) fn new(path: &Path, parent: &'a ParentKeys, head_only: bool) -> Self {
        Self {
            own_id: thread_id_of_name(path),
            parent,
            head_only,
            meta: None,
            started_at: None,
            updated_at: None,
            copying: None,
            drafts: Drafts::default(),
            turn: 0,
            has_turn_events: false,
            has_user_events: false,
            users: Waitlist::default(),
            answers: Waitlist::default(),
            citations: Citations::default(),
            calls: HashMap::new(),
            script_outcome: None,
            has_external: false,
            is_ours: false,
            prompts: 0,
            has_human: false,
            records: 0,
            known_records: 0,
            report: ReadReport::default(),
        }
    }

    /// Whether one record of a known kind was there.
    pub(in crate::sessions) fn knows_anything(&self) -> bool {
        self.known_records > 0
    }

    pub(in crate::sessions) fn finish(mut self) -> Finished {
        mirror::resolve(&mut self.drafts, self.has_user_events);
        let meta = self.meta.unwrap_or_default();
        let source = meta.source.unwrap_or(Source::Interactive);
        if matches!(source, Source::SubAgent { .. }) {
            // Nobody types into a sub-agent: its parent does.
            for draft in self.drafts.all_mut() {
                if draft.item.provenance == Provenance::Human {
                    draft.item.provenance = Provenance::OtherAgent;
                }
            }
        }
        Finished {
            thread_id: meta.id.or(self.own_id),
            cwd: meta.cwd,
            branch: meta.branch,
            repository_url: meta.repository_url,
            source,
            mode: meta.mode,
            forked_from: meta.forked_from,
            started_at: self.started_at,
            updated_at: self.updated_at,
            is_ours: self.is_ours,
            dropped: self.drafts.dropped(),
            items: self.drafts.into_items(),
            has_external: self.has_external,
            citations: self.citations.finish(),
            report: self.report,
        }
    }

    /// Begins a document of the first generation.
    pub(super) fn begin_document(&mut self, session: &DocumentSession<'_>) {
        let at = Timestamp::parse_rfc3339(session.timestamp.get());
        self.see_time(at);
        self.known_records += 1;
        self.meta = Some(Meta {
            id: ThreadId::parse(session.id.get()),
            ..Meta::default()
        });
        if self.own_id.is_none() {
            self.own_id = ThreadId::parse(session.id.get());
        }
    }

    /// Takes one item of a document; `number` counts from 1.
    pub(super) fn document_item(&mut self, number: u64, json: &str) {
        self.report.records += 1;
        match serde_json::from_str::<Object<Payload<'_>>>(json) {
            Ok(Object(Some(payload))) => match self.item(number, None, *payload, None) {
                Taken::Read => self.report.read += 1,
                Taken::Ignored(kind) => records::count_ignored(&mut self.report, &kind),
            },
            Ok(Object(None)) => records::count_ignored(&mut self.report, "not an object"),
            Err(_) => {
                self.report.damaged += 1;
            }
        }
    }

    fn see_time(&mut self, at: Option<Timestamp>) {
        let Some(at) = at else { return };
        self.started_at.get_or_insert(at);
        self.updated_at = self.updated_at.max(Some(at));
    }

    fn record(&mut self, line_number: u64, line: Line<'_>) -> Taken {
        let at = Timestamp::parse_rfc3339(line.timestamp.get());
        let kind = line.kind;
        let Some(payload) = line.payload.0 else {
            return self.ignored(kind.get(), "");
        };
        if kind.is("session_meta") {
            self.known_records += 1;
            return self.session_meta(*payload, at);
        }
        let is_item = kind.is("response_item");
        if let Some(copying) = &mut self.copying {
            if copying.covers(is_item, &payload, at, self.parent) {
                return Taken::Ignored(Cow::Borrowed("copied from the parent"));
            }
            self.copying = None;
        }
        match kind.get() {
            "response_item" => self.item(line_number, at, *payload, line.metadata.get()),
            "event_msg" => self.event(line_number, at, *payload),
            "inter_agent_communication" => {
                self.known_records += 1;
                self.agent_message(line_number, at, payload.content);
                Taken::Read
            }
            other => {
                self.known_records += u64::from(is_known_envelope(other));
                self.ignored(other, "")
            }
        }
    }

    fn ignored(&self, kind: &str, inner: &str) -> Taken {
        const KIND_BYTES_MAX: usize = 80;
        let short = |text: &str| text.chars().take(KIND_BYTES_MAX).collect::<String>();
        Taken::Ignored(Cow::Owned(match (kind, inner) {
            ("", "") => "without a type".to_owned(),
            (kind, "") => short(kind),
            (kind, inner) => format!("{}/{}", short(kind), short(inner)),
        }))
    }

    fn session_meta(&mut self, payload: Payload<'_>, at: Option<Timestamp>) -> Taken {
        let id = ThreadId::parse(payload.id.get());
        let is_foreign = match (&id, self.meta.as_ref().and_then(|meta| meta.id.as_ref())) {
            (Some(id), Some(own)) => id != own,
            _ => false,
        };
        if is_foreign {
            let meta = self.meta.get_or_insert_default();
            meta.forked_from = meta.forked_from.take().or(id);
            let own = meta.id.as_ref().map_or("", ThreadId::as_str);
            if self.drafts.all().is_empty() {
                self.copying = Some(Copying::new(own, at, true));
            }
            return Taken::Ignored(Cow::Borrowed("copied from the parent"));
        }
        let created = Timestamp::parse_rfc3339(payload.timestamp.get());
        if self.meta.is_none() {
            self.started_at = created.or(self.started_at);
        }
        self.meta = Some(self.meta_of(payload, id, at));
        Taken::Read
    }

    /// A later meta of the same session adds to the first.
    fn meta_of(
        &mut self,
        payload: Payload<'_>,
        id: Option<ThreadId>,
        at: Option<Timestamp>,
    ) -> Meta {
        let first = self.meta.take();
        let is_first = first.is_none();
        let mut meta = first.unwrap_or_default();
        meta.id = id.or(meta.id);
        if let Some(cwd) = payload.cwd.full() {
            meta.cwd.get_or_insert_with(|| cwd.to_owned());
        }
        if let Some(Git {
            branch,
            repository_url,
        }) = payload.git.get()
        {
            meta.branch = branch.full().map(str::to_owned).or(meta.branch);
            meta.repository_url = repository_url
                .full()
                .map(str::to_owned)
                .or(meta.repository_url);
        }
        if let Some(mode) = MemoryMode::parse(payload.memory_mode.get()) {
            meta.mode = mode;
        }
        if is_first {
            meta.source = source_of(&payload);
            meta.forked_from = ThreadId::parse(payload.forked_from_id.get());
            if meta.forked_from.is_some() {
                let own = meta.id.as_ref().map_or("", ThreadId::as_str);
                self.copying = Some(Copying::new(own, at, false));
            }
        }
        meta
    }

    /// A response item, enveloped or bare.
    fn item(
        &mut self,
        line_number: u64,
        at: Option<Timestamp>,
        payload: Payload<'_>,
        metadata: Option<&LineMetadata>,
    ) -> Taken {
        let kind = payload.kind.get();
        self.known_records += u64::from(is_known_item(kind));
        match kind {
            "message" => return self.message(line_number, at, payload, metadata),
            "agent_message" => self.agent_message(line_number, at, payload.content),
            "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call"
            | "tool_search_call" => self.call(line_number, at, payload),
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                self.output(line_number, at, payload, metadata);
            }
            other => return self.ignored("response_item", other),
        }
        Taken::Read
    }

    fn message(
        &mut self,
        line_number: u64,
        at: Option<Timestamp>,
        payload: Payload<'_>,
        metadata: Option<&LineMetadata>,
    ) -> Taken {
        match payload.role.get() {
            "user" => self.user_message(line_number, at, payload),
            "assistant" => self.assistant_message(line_number, at, payload, metadata),
            role => return self.ignored("response_item/message", role),
        }
        Taken::Read
    }

    fn user_message(&mut self, line_number: u64, at: Option<Timestamp>, payload: Payload<'_>) {
        let passthrough = payload.passthrough;
        let mut media_count = 0;
        let mut typed = Vec::new();
        let mut is_sure = false;
        let parts = payload.content.into_parts();
        let mut pieces: Vec<(Provenance, &str)> = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            if part.is_media() {
                media_count += 1;
                continue;
            }
            let text = part.text.get();
            if is_media_wrapper(text) {
                continue;
            }
            self.look_for_mark(text);
            let stated = passthrough.get().and_then(|said| said.provenance(index));
            is_sure |= stated == Some(Provenance::Human);
            match stated {
                Some(Provenance::Human) | None => {
                    let split = split_user_text(text).into_iter();
                    let split = split.map(|Piece { provenance, text }| (provenance, text));
                    pieces.extend(split);
                    typed.push(text);
                }
                Some(other) => pieces.push((other, text)),
            }
        }
        let has_words = pieces.iter().any(|(who, _)| *who == Provenance::Human);
        if !has_words && media_count > 0 {
            pieces.push((Provenance::Human, ""));
        }
        self.note_environment(&pieces);
        let has_human = has_words || media_count > 0;
        let standing = if is_sure {
            Standing::Sure
        } else {
            Standing::Unconfirmed
        };
        self.add_pieces(
            line_number,
            at,
            &pieces,
            &typed.join("\n"),
            has_human,
            standing,
            media_count,
        );
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one call, and a struct for it would only rename"
    )]
    fn add_pieces(
        &mut self,
        line_number: u64,
        at: Option<Timestamp>,
        pieces: &[(Provenance, &str)],
        typed: &str,
        has_human: bool,
        standing: Standing,
        mut media_count: u32,
    ) {
        let other_half = has_human
            .then(|| self.users.other_half(typed, false))
            .flatten();
        if has_human && other_half.is_none() {
            self.begin_turn_by_message();
        }
        let is_confirmed = other_half.is_some();
        for event_draft in other_half.into_iter().flatten() {
            self.take_back(event_draft);
        }
        let mut waiting = Vec::new();
        for (provenance, text) in pieces {
            let is_human = *provenance == Provenance::Human;
            let standing = match standing {
                _ if !is_human => Standing::Sure,
                Standing::Unconfirmed if is_confirmed => Standing::Confirmed,
                Standing::Sure if is_confirmed => Standing::Confirmed,
                other => other,
            };
            let media = if is_human {
                std::mem::take(&mut media_count)
            } else {
                0
            };
            let id = self.push_message(
                line_number,
                at,
                *provenance,
                (*text).to_owned(),
                media,
                standing,
            );
            if is_human {
                self.has_human = true;
                waiting.push(id);
            }
        }
        if has_human && !is_confirmed {
            self.users.wait(waiting, typed, false);
        }
    }

    fn assistant_message(
        &mut self,
        line_number: u64,
        at: Option<Timestamp>,
        payload: Payload<'_>,
        metadata: Option<&LineMetadata>,
    ) {
        let mut text = String::new();
        let mut media_count = 0;
        for part in payload.content.into_parts() {
            if part.is_media() {
                media_count += 1;
                continue;
            }
            if !text.is_empty() && !part.text.get().is_empty() {
                text.push('\n');
            }
            text.push_str(part.text.get());
        }
        if metadata.is_some_and(|data| data.compaction_output.is_set()) {
            self.push_message(
                line_number,
                at,
                Provenance::HarnessContext,
                text,
                0,
                Standing::Sure,
            );
            return;
        }
        let (visible, cited) = split_answer(&text);
        let answer = (text.as_str(), visible.as_str());
        self.citations
            .push(FoundIn::Answer, line_number, at, answer, cited);
        if let Some(events) = self.answers.other_half(&visible, false) {
            for event in events {
                self.take_back(event);
            }
        } else {
            self.answers.wait(Vec::new(), &visible, false);
        }
        let provenance = answer_provenance(&payload.phase);
        if !visible.is_empty() || media_count > 0 {
            self.push_message(
                line_number,
                at,
                provenance,
                visible,
                media_count,
                Standing::Sure,
            );
        }
    }

    fn agent_message(&mut self, line_number: u64, at: Option<Timestamp>, content: Content<'_>) {
        let parts = content.into_parts();
        let texts: Vec<&str> = parts
            .iter()
            .map(|part: &Part<'_>| part.text.get())
            .collect();
        let text = texts.join("\n");
        if !text.trim().is_empty() {
            self.push_message(
                line_number,
                at,
                Provenance::OtherAgent,
                text,
                0,
                Standing::Sure,
            );
        }
    }

    fn call(&mut self, line_number: u64, at: Option<Timestamp>, payload: Payload<'_>) {
        let kind = payload.kind.get().to_owned();
        let name = payload.name.get();
        let namespace = payload.namespace.get();
        let action: Action<'_> = payload
            .action
            .and_then(|action| serde_json::from_str(action.get()).ok())
            .unwrap_or_default();
        let arguments = arguments_text(payload.arguments);
        let call = match kind.as_str() {
            "custom_tool_call" => tools::from_text(name, payload.input.into_string()),
            "local_shell_call" => {
                let line = tools::command_line(&action.command).unwrap_or_default();
                tools::from_json(
                    "local_shell",
                    "",
                    &serde_json::json!({"command": line}).to_string(),
                )
            }
            "web_search_call" => {
                let text = action.query.full().or(action.url.full());
                let text = text
                    .or(payload.action.map(RawValue::get))
                    .unwrap_or_default();
                tools::from_json("web_search", "", text)
            }
            "tool_search_call" => tools::from_json("tool_search", "", &arguments),
            _ => tools::from_json(name, namespace, &arguments),
        };
        let is_question =
            call.tool == "request_user_input" && ["", "functions"].contains(&namespace);
        let asked = is_question.then(|| call.text.clone());
        let call_id = payload
            .call_id
            .full()
            .or(payload.id.full())
            .unwrap_or_default()
            .to_owned();
        self.has_external |= call.is_external_tool;
        self.script_outcome = None;
        let kind = ItemKind::ToolCall {
            call_id: call_id.clone(),
            tool: call.tool.clone(),
            files: call
                .files
                .iter()
                .map(|path| Raw::new(path.as_str()))
                .collect(),
        };
        let is_web_search = call.tool == "web_search";
        let trust = if is_web_search {
            Trust::External
        } else {
            Trust::Own
        };
        self.push(
            line_number,
            at,
            Provenance::Tool,
            trust,
            kind,
            call.text.clone(),
            0,
            Standing::Sure,
        );
        if self.calls.len() < OPEN_CALLS_MAX {
            self.calls.insert(call_id, OpenCall { call, asked });
        }
    }

    fn output(
        &mut self,
        line_number: u64,
        at: Option<Timestamp>,
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
        if let Some(asked) = open.as_ref().and_then(|open| open.asked.as_deref())
            && let Some(answers) = outputs::answered_questions(asked, &output.text)
        {
            self.push_message(
                line_number,
                at,
                Provenance::Human,
                answers,
                0,
                Standing::Confirmed,
            );
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
        let (provenance, text) = if reads_memory {
            (Provenance::HarnessContext, OWN_OUTPUT.to_owned())
        } else {
            (Provenance::Tool, output.text)
        };
        let succeeded = self.script_outcome.take().or(output.succeeded);
        let kind = ItemKind::ToolOutput { call_id, succeeded };
        self.push(
            line_number,
            at,
            provenance,
            trust,
            kind,
            text,
            output.media_count,
            Standing::Sure,
        );
    }

    fn event(&mut self, line_number: u64, at: Option<Timestamp>, payload: Payload<'_>) -> Taken {
        let kind = payload.kind.get();
        self.known_records += u64::from(is_known_event(kind));
        match kind {
            "task_started" | "turn_started" => {
                self.has_turn_events = true;
                self.turn += 1;
                self.script_outcome = None;
            }
            "user_message" if is_typed(&payload.event_kind) => {
                self.user_event(line_number, at, payload.message.get());
            }
            "agent_message" => {
                let text = payload.message.get();
                self.agent_event(
                    line_number,
                    at,
                    text,
                    &payload.phase,
                    &payload.memory_citation,
                );
            }
            "exec_command_end" => {
                let succeeded = payload.exit_code.0.map(|code| code == 0);
                self.command_ended(payload.call_id.get(), succeeded);
            }
            "patch_apply_end" => self.command_ended(payload.call_id.get(), payload.success.0),
            "mcp_tool_call_end" => self.external_call(payload.call_id.get()),
            "thread_rolled_back" => self.roll_back(payload.num_turns.0.unwrap_or(0)),
            "item_completed" => {
                let Some(item) = payload.item.0 else {
                    return self.ignored("event_msg", kind);
                };
                return self.completed(line_number, at, *item);
            }
            other => return self.ignored("event_msg", other),
        }
        Taken::Read
    }

    fn completed(
        &mut self,
        line_number: u64,
        at: Option<Timestamp>,
        item: CompletedItem<'_>,
    ) -> Taken {
        match item.kind.get() {
            "UserMessage" => {
                let parts = item.content.into_parts();
                let texts = parts.iter().filter(|part| !part.is_media());
                let texts: Vec<&str> = texts.map(|part| part.text.get()).collect();
                let text = texts.join("\n");
                if text.trim().is_empty() {
                    self.has_user_events = true;
                } else {
                    self.user_event(line_number, at, text.trim());
                }
            }
            "AgentMessage" => {
                let parts = item.content.into_parts();
                let texts: Vec<&str> = parts.iter().map(|part| part.text.get()).collect();
                self.agent_event(
                    line_number,
                    at,
                    &texts.join("\n"),
                    &item.phase,
                    &item.memory_citation,
                );
            }
            "CommandExecution" | "FileChange" => {
                let by_status = match item.status.get() {
                    "completed" => Some(true),
                    "failed" | "declined" => Some(false),
                    _ => None,
                };
                let by_code = item.exit_code.0.map(|code| code == 0);
                self.command_ended(item.id.get(), by_code.or(by_status));
            }
            "McpToolCall" => {
                self.command_ended(item.id.get(), Some(!item.status.is("failed")));
            }
            other => return self.ignored("event_msg/item_completed", other),
        }
        Taken::Read
    }

    fn user_event(&mut self, line_number: u64, at: Option<Timestamp>, text: &str) {
        self.has_user_events = true;
        self.look_for_mark(text);
        if let Some(drafts) = self.users.other_half(text, true) {
            for id in drafts {
                if let Some(draft) = self.drafts.get_mut(id) {
                    draft.standing = Standing::Confirmed;
                }
            }
            return;
        }
        self.begin_turn_by_message();
        let mut waiting = Vec::new();
        for Piece { provenance, text } in split_user_text(text) {
            let id = self.push_message(
                line_number,
                at,
                provenance,
                text.to_owned(),
                0,
                Standing::EventOnly,
            );
            waiting.push(id);
        }
        self.users.wait(waiting, text, true);
    }

    fn agent_event(
        &mut self,
        line_number: u64,
        at: Option<Timestamp>,
        text: &str,
        phase: &Text<'_>,
        citation: &Object<MemoryCitation<'_>>,
    ) {
        let (visible, _) = split_answer(text);
        let mut cited = Vec::new();
        if let Some(citation) = citation.get() {
            thread_ids(citation.thread_ids.0.iter().map(Text::get), &mut cited);
        }
        let answer = (text, visible.as_str());
        self.citations
            .push(FoundIn::Event, line_number, at, answer, cited);
        if self.answers.other_half(&visible, true).is_some() {
            return;
        }
        let provenance = answer_provenance(phase);
        let id = self.push_message(
            line_number,
            at,
            provenance,
            visible.clone(),
            0,
            Standing::EventOnly,
        );
        self.answers.wait(vec![id], &visible, true);
    }

    fn command_ended(&mut self, call_id: &str, succeeded: Option<bool>) {
        let Some(succeeded) = succeeded else { return };
        if let Some(outcome) = self.drafts.recent_output(call_id) {
            *outcome = Some(succeeded);
        } else {
            let before = self.script_outcome.unwrap_or(true);
            self.script_outcome = Some(before && succeeded);
        }
    }

    fn external_call(&mut self, call_id: &str) {
        self.has_external = true;
        if let Some(open) = self.calls.get_mut(call_id) {
            open.call.is_external_tool = !open.call.reads_memory;
        }
    }

    fn roll_back(&mut self, count: i64) {
        if let Some(turn) = mirror::turn_before(&self.drafts, count, self.has_user_events) {
            self.drafts.take_back_from(turn);
        }
        self.users.clear();
        self.answers.clear();
        self.calls.clear();
        self.turn += 1;
    }

    fn begin_turn_by_message(&mut self) {
        if !self.has_turn_events {
            self.turn += 1;
        }
    }

    fn take_back(&mut self, id: u32) {
        if let Some(draft) = self.drafts.get_mut(id) {
            draft.standing = Standing::Gone;
        }
    }

    fn look_for_mark(&mut self, text: &str) {
        if self.prompts < PROMPTS_MAX {
            self.prompts += 1;
            self.is_ours |= words::is_worker_prompt(text);
        }
    }

    fn note_environment(&mut self, pieces: &[(Provenance, &str)]) {
        if self.meta.as_ref().is_some_and(|meta| meta.cwd.is_some()) {
            return;
        }
        let contexts = pieces
            .iter()
            .filter(|(who, _)| *who == Provenance::HarnessContext);
        let folder = contexts
            .filter_map(|(_, text)| words::folder_of_environment(text))
            .next();
        if let Some(folder) = folder {
            self.meta.get_or_insert_default().cwd = Some(folder.to_owned());
        }
    }

    fn push_message(
        &mut self,
        line_number: u64,
        at: Option<Timestamp>,
        provenance: Provenance,
        text: String,
        media_count: u32,
        standing: Standing,
    ) -> u32 {
        let kind = ItemKind::Message;
        self.push(
            line_number,
            at,
            provenance,
            Trust::Own,
            kind,
            text,
            media_count,
            standing,
        )
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the fields of an item, one by one"
    )]
    fn push(
        &mut self,
        line_number: u64,
        at: Option<Timestamp>,
        provenance: Provenance,
        trust: Trust,
        kind: ItemKind,
        text: String,
        media_count: u32,
        standing: Standing,
    ) -> u32 {
        let item = Item {
            place: Place {
                part: 0,
                line_number: u32::try_from(line_number).unwrap_or(u32::MAX),
            },
            at,
            provenance,
            trust,
            kind,
            text: Raw::new(text),
            media_count,
        };
        self.drafts.push(item, self.turn, standing)
    }
}

impl Sink for Reader<'_> {
    fn take(&mut self, line_number: u64, json: &str) -> Result<Taken, serde_json::Error> {
        let line: Line<'_> = serde_json::from_str(json)?;
        self.records += 1;
        self.see_time(Timestamp::parse_rfc3339(line.timestamp.get()));
        if line.payload.0.is_some() {
            return Ok(self.record(line_number, line));
        }
        if line.record_type.0.is_some() {
            self.known_records += 1;
            return Ok(self.ignored(line.record_type.get(), ""));
        }
        if line.kind.0.is_none() && line.id.0.is_some() && line.timestamp.0.is_some() {
            // The first line of the generation without envelope.
            let payload: Payload<'_> = serde_json::from_str(json)?;
            let at = Timestamp::parse_rfc3339(line.timestamp.get());
            self.known_records += 1;
            return Ok(self.session_meta(payload, at));
        }
        if is_known_item(line.kind.get()) {
            let payload: Payload<'_> = serde_json::from_str(json)?;
            return Ok(self.item(line_number, None, payload, None));
        }
        Ok(self.ignored(line.kind.get(), ""))
    }

    fn is_satisfied(&self) -> bool {
        self.head_only
            && (self.records >= HEAD_RECORDS_MAX || (self.has_human && self.meta.is_some()))
    }
}

impl crate::sessions::codex::wire::Passthrough<'_> {
    /// Who wrote part `index`, where the transcript says so.
    fn provenance(&self, index: usize) -> Option<Provenance> {
        let said = self.content_item_metadata.0.get(index);
        let said = said.and_then(|said| said.get()?.provenance.get());
        if let Some(said) = said.filter(|said| said.kind.full().is_some()) {
            return Some(match said.kind.get() {
                "user" => Provenance::Human,
                "tool" if said.namespace.is("collaboration") => Provenance::OtherAgent,
                _ => Provenance::HarnessContext,
            });
        }
        let List(kinds) = &self.content_item_kinds;
        match kinds.get(index)?.full()? {
            "unknown" => None,
            kind if kind.starts_with("user.") => Some(Provenance::Human),
            kind if kind.starts_with("multi_agent.") => Some(Provenance::OtherAgent),
            _ => Some(Provenance::HarnessContext),
        }
    }
}

/// The id in `rollout-2025-11-03T09-00-00-<id>.jsonl`, when it is a UUID.
pub(in crate::sessions) fn thread_id_of_name(path: &Path) -> Option<ThreadId> {
    let name = path.file_name()?.to_str()?;
    let stem = name.split('.').next()?;
    let start = stem.len().checked_sub(36)?;
    let id = stem.get(start..)?;
    let is_uuid = id.bytes().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    is_uuid.then(|| ThreadId::parse(id)).flatten()
}

fn source_of(payload: &Payload<'_>) -> Option<Source> {
    let parent = ThreadId::parse(payload.parent_thread_id.get());
    if payload.thread_source.is("subagent") {
        return Some(Source::SubAgent {
            parent: spawning_parent(payload.source).or(parent),
        });
    }
    if let Some(other) = payload.thread_source.full().filter(|name| *name != "user") {
        return Some(Source::Other(other.to_owned()));
    }
    let json = payload.source.map(RawValue::get).unwrap_or_default();
    if json.starts_with('{') {
        let object: SourceObject<'_> = serde_json::from_str(json).unwrap_or_default();
        return Some(match object.custom.full() {
            Some(name) => Source::Other(name.to_owned()),
            None => Source::SubAgent {
                parent: spawning_parent(payload.source).or(parent),
            },
        });
    }
    let name: Text<'_> = serde_json::from_str(json).unwrap_or_default();
    match name.get() {
        "" | "unknown" if payload.originator.get().contains("exec") => Some(Source::Exec),
        "" => None,
        "cli" | "vscode" | "atlas" | "chatgpt" | "unknown" => Some(Source::Interactive),
        "exec" => Some(Source::Exec),
        other => Some(Source::Other(other.to_owned())),
    }
}

fn spawning_parent(source: Option<&RawValue>) -> Option<ThreadId> {
    let object: SourceObject<'_> = serde_json::from_str(source?.get()).ok()?;
    let agent: SubAgentObject<'_> = serde_json::from_str(object.subagent?.get()).ok()?;
    ThreadId::parse(agent.thread_spawn.get()?.parent_thread_id.get())
}

/// Arguments are JSON in a string, or JSON itself.
fn arguments_text(arguments: Option<&RawValue>) -> String {
    let json = arguments.map(RawValue::get).unwrap_or_default();
    match serde_json::from_str::<Text<'_>>(json) {
        Ok(Text(Some(text))) => text.into_owned(),
        _ => json.to_owned(),
    }
}

fn answer_provenance(phase: &Text<'_>) -> Provenance {
    if phase.is("commentary") {
        Provenance::AssistantCommentary
    } else {
        Provenance::AssistantFinal
    }
}

/// Older rollouts have events for context too.
fn is_typed(event_kind: &Text<'_>) -> bool {
    ["", "plain"].contains(&event_kind.get())
}

/// Texts that only frame an image.
fn is_media_wrapper(text: &str) -> bool {
    let text = text.trim();
    text == "</image>"
        || text == "<image>"
        || (text.starts_with("<image name=") && text.ends_with('>'))
}

fn is_known_envelope(kind: &str) -> bool {
    const KINDS: [&str; 6] = [
        "turn_context",
        "compacted",
        "world_state",
        "token_usage_record",
        "inter_agent_communication_metadata",
        "event_msg",
    ];
    KINDS.contains(&kind)
}

fn is_known_item(kind: &str) -> bool {
    const KINDS: [&str; 14] = [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "web_search_call",
        "tool_search_call",
        "tool_search_output",
        "agent_message",
        "ghost_snapshot",
        "image_generation_call",
        "additional_tools",
    ];
    KINDS.contains(&kind)
}

fn is_known_event(kind: &str) -> bool {
    const KINDS: [&str; 12] = [
        "user_message",
        "agent_message",
        "agent_reasoning",
        "token_count",
        "task_started",
        "task_complete",
        "turn_aborted",
        "item_completed",
        "thread_rolled_back",
        "context_compacted",
        "exec_command_end",
        "patch_apply_end",
    ];
    KINDS.contains(&kind)
}
