//! Turns the records of a rollout into drafts of items.
//!
//! Here is what the reader remembers and which record goes where; `meta`,
//! `messages` and `calls` have the rest of it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use crate::domain::id::ThreadId;
use crate::domain::item::Provenance;
use crate::domain::session::{ReadReport, Source};
use crate::domain::time::Timestamp;
use crate::sessions::citation::Citations;
use crate::sessions::codex::calls::OpenCall;
use crate::sessions::codex::fork::{Copying, ParentKeys};
use crate::sessions::codex::kinds::{
    is_known_envelope, is_known_event, is_known_item, unread_kinds,
};
use crate::sessions::codex::meta::{Meta, thread_id_of_name};
use crate::sessions::codex::mirror::{self, Waitlist};
use crate::sessions::codex::wire::{
    BareLine, CompletedItem, DocumentSession, Line, LineMetadata, Payload,
};
use crate::sessions::draft::{Drafts, Origin, Said, Standing};
use crate::sessions::facts::Facts;
use crate::sessions::records::{self, Sink, Taken};
use crate::sessions::skip;
use crate::sessions::wire::{Object, Text};

/// Records looked at for a head.
const HEAD_RECORDS_MAX: u64 = 300;

/// Reads one rollout.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one thing seen on the way through the file"
)]
pub(in crate::sessions) struct Reader<'a> {
    pub(super) own_id: Option<ThreadId>,
    pub(super) parent: &'a ParentKeys,
    head_only: bool,
    pub(super) meta: Option<Meta>,
    pub(super) started_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    pub(super) copying: Option<Copying>,
    pub(super) drafts: Drafts,
    turn: u32,
    /// The rollout says where turns begin.
    has_turn_events: bool,
    pub(super) has_user_events: bool,
    /// Messages say themselves who wrote them.
    pub(super) knows_authors: bool,
    pub(super) users: Waitlist,
    pub(super) answers: Waitlist,
    pub(super) citations: Citations,
    pub(super) calls: HashMap<String, OpenCall>,
    /// How the commands of the script that runs now ended.
    pub(super) script_outcome: Option<bool>,
    pub(super) has_external: bool,
    pub(super) is_ours: bool,
    pub(super) prompts: u32,
    pub(super) has_human: bool,
    records: u64,
    pub(super) known_records: u64,
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
            knows_authors: false,
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

    pub(in crate::sessions) fn finish(mut self) -> Facts {
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
        Facts {
            thread_id: meta.id.or(self.own_id),
            first_record: None,
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
        self.see_time(Timestamp::parse_rfc3339(session.timestamp.get()));
        self.known_records += 1;
        self.meta = Some(Meta {
            id: ThreadId::parse(session.id.get()),
            ..Meta::default()
        });
    }

    /// Takes one item of a document; `number` counts from 1.
    pub(super) fn document_item(&mut self, number: u64, json: &str) {
        let origin = Origin {
            line_number: number,
            ..Origin::default()
        };
        self.report.records += 1;
        match serde_json::from_str::<Object<Payload<'_>>>(json) {
            Ok(Object(Some(payload))) => match self.item(origin, *payload, None) {
                Taken::Read => self.report.read += 1,
                Taken::Ignored(kind) => records::count_ignored(&mut self.report, &kind),
            },
            Ok(Object(None)) => records::count_ignored(&mut self.report, "not an object"),
            Err(_) => self.report.damaged += 1,
        }
    }

    fn see_time(&mut self, at: Option<Timestamp>) {
        let Some(at) = at else { return };
        self.started_at.get_or_insert(at);
        self.updated_at = self.updated_at.max(Some(at));
    }

    /// A record of which only kind and time are of use.
    fn unread(&mut self, json: &str, kinds: (&str, &str)) -> Result<Taken, serde_json::Error> {
        let at = if let Some(at) = time_at_start(json).filter(|_| skip::is_object(json)) {
            Timestamp::parse_rfc3339(at)
        } else {
            let line: BareLine<'_> = serde_json::from_str(json)?;
            Timestamp::parse_rfc3339(line.timestamp.get())
        };
        self.records += 1;
        self.known_records += 1;
        self.see_time(at);
        Ok(Taken::ignored(kinds.0, kinds.1))
    }

    /// A record in its envelope.
    fn record(
        &mut self,
        origin: Origin,
        kind: &Text<'_>,
        payload: Payload<'_>,
        metadata: Option<&LineMetadata>,
    ) -> Taken {
        if kind.is("session_meta") {
            self.known_records += 1;
            return self.session_meta(&payload, origin.at);
        }
        if let Some(copying) = &mut self.copying {
            let is_item = kind.is("response_item");
            if copying.covers(is_item, &payload, origin.at, self.parent) {
                return Taken::Ignored(Cow::Borrowed("copied from the parent"));
            }
            self.copying = None;
        }
        match kind.get() {
            "response_item" => self.item(origin, payload, metadata),
            "event_msg" => self.event(origin, payload),
            "inter_agent_communication" => {
                self.known_records += 1;
                self.agent_message(origin, payload.content);
                Taken::Read
            }
            other => {
                self.known_records += u64::from(is_known_envelope(other));
                Taken::ignored(other, "")
            }
        }
    }

    /// A response item, enveloped or bare.
    fn item(
        &mut self,
        origin: Origin,
        payload: Payload<'_>,
        metadata: Option<&LineMetadata>,
    ) -> Taken {
        let kind = payload.kind.get();
        self.known_records += u64::from(is_known_item(kind));
        match (kind, payload.role.get()) {
            ("message", "user") => self.user_message(origin, payload),
            ("message", "assistant") => self.assistant_message(origin, payload, metadata),
            ("message", role) => return Taken::ignored("response_item/message", role),
            ("agent_message", _) => self.agent_message(origin, payload.content),
            (
                "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call"
                | "tool_search_call",
                _,
            ) => self.call(origin, payload),
            ("function_call_output" | "custom_tool_call_output" | "tool_search_output", _) => {
                self.output(origin, payload, metadata);
            }
            (other, _) => return Taken::ignored("response_item", other),
        }
        Taken::Read
    }

    fn event(&mut self, origin: Origin, payload: Payload<'_>) -> Taken {
        let kind = payload.kind.get();
        self.known_records += u64::from(is_known_event(kind));
        match kind {
            "task_started" | "turn_started" => {
                self.has_turn_events = true;
                self.turn += 1;
                self.script_outcome = None;
            }
            // Older rollouts have such events for context too.
            "user_message" if ["", "plain"].contains(&payload.event_kind.get()) => {
                self.user_event(origin, payload.message.get());
            }
            "agent_message" => {
                let text = payload.message.get();
                self.agent_event(origin, text, &payload.phase, &payload.memory_citation);
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
                    return Taken::ignored("event_msg", kind);
                };
                return self.completed(origin, *item);
            }
            other => return Taken::ignored("event_msg", other),
        }
        Taken::Read
    }

    /// The newest generation's mirrors of other records.
    fn completed(&mut self, origin: Origin, item: CompletedItem<'_>) -> Taken {
        match item.kind.get() {
            "UserMessage" => {
                let parts = item.content.into_parts();
                let texts = parts.iter().filter(|part| !part.is_media());
                let texts: Vec<&str> = texts.map(|part| part.text.get()).collect();
                self.user_event(origin, texts.join("\n").trim());
            }
            "AgentMessage" => {
                let parts = item.content.into_parts();
                let texts: Vec<&str> = parts.iter().map(|part| part.text.get()).collect();
                let text = texts.join("\n");
                self.agent_event(origin, &text, &item.phase, &item.memory_citation);
            }
            "CommandExecution" | "FileChange" | "McpToolCall" => {
                let by_status = match item.status.get() {
                    "completed" => Some(true),
                    "failed" | "declined" => Some(false),
                    _ => None,
                };
                let by_code = item.exit_code.0.map(|code| code == 0);
                self.command_ended(item.id.get(), by_code.or(by_status));
            }
            other => return Taken::ignored("event_msg/item_completed", other),
        }
        Taken::Read
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

    /// Where the rollout does not mark turns, each request begins one.
    pub(super) fn begin_turn_by_message(&mut self) {
        if !self.has_turn_events {
            self.turn += 1;
        }
    }

    pub(super) fn take_back(&mut self, id: u32) {
        if let Some(draft) = self.drafts.get_mut(id) {
            draft.standing = Standing::Gone;
        }
    }

    pub(super) fn push(&mut self, origin: Origin, said: Said) -> u32 {
        let turn = self.turn;
        self.drafts.push(Origin { turn, ..origin }, said)
    }
}

/// The time of a record that begins with it, as all of today's do.
fn time_at_start(json: &str) -> Option<&str> {
    let rest = json.strip_prefix("{\"timestamp\":\"")?;
    let (time, _) = rest.split_once('"')?;
    (!time.contains('\\')).then_some(time)
}

impl Sink for Reader<'_> {
    fn take(&mut self, line_number: u64, json: &str) -> Result<Taken, serde_json::Error> {
        if self.copying.is_none()
            && let Some(kinds) = unread_kinds(json)
        {
            return self.unread(json, kinds);
        }
        let line: Line<'_> = serde_json::from_str(json)?;
        let at = Timestamp::parse_rfc3339(line.timestamp.get());
        let mut origin = Origin {
            line_number,
            at,
            ..Origin::default()
        };
        self.records += 1;
        self.see_time(at);
        if let Some(payload) = line.payload.0 {
            return Ok(self.record(origin, &line.kind, *payload, line.metadata.get()));
        }
        if let Some(state) = line.record_type.full() {
            self.known_records += 1;
            return Ok(Taken::ignored(state, ""));
        }
        if line.kind.0.is_none() && line.id.0.is_some() && at.is_some() {
            // The first line of the generation without envelope.
            let payload: Payload<'_> = serde_json::from_str(json)?;
            self.known_records += 1;
            return Ok(self.session_meta(&payload, at));
        }
        if is_known_item(line.kind.get()) {
            let payload: Payload<'_> = serde_json::from_str(json)?;
            origin.at = None;
            return Ok(self.item(origin, payload, None));
        }
        Ok(Taken::ignored(line.kind.get(), ""))
    }

    fn is_satisfied(&self) -> bool {
        self.head_only
            && (self.records >= HEAD_RECORDS_MAX || (self.has_human && self.meta.is_some()))
    }
}
