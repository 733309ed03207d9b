//! Turns the records of a transcript into drafts of items.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read};

use serde_json::value::RawValue;

use crate::domain::id::ThreadId;
use crate::domain::item::{Item, ItemKind, Place, Provenance, Trust};
use crate::domain::session::{Citation, ReadReport, Source};
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;
use crate::sessions::citation::{Citations, FoundIn, split_answer};
use crate::sessions::claude::tree::Tree;
use crate::sessions::claude::wire::{Answered, Attachment, Message, Row, RowName};
use crate::sessions::draft::{Drafts, Standing};
use crate::sessions::records::{self, Sink, Taken};
use crate::sessions::tools::{self, Call};
use crate::sessions::wire::{Content, Object, Part as ContentPart};
use crate::sessions::words::{self, Piece, split_user_text};

/// Records looked at for a head, and messages looked at for our own mark.
const HEAD_RECORDS_MAX: u64 = 300;
const PROMPTS_MAX: u32 = 4;

/// Most calls that wait for their output, and records remembered by id.
const OPEN_CALLS_MAX: usize = 4_096;
const RECORD_IDS_MAX: usize = 2_000_000;

/// What stands for an output that is our own text.
const OWN_OUTPUT: &str = "[memory that was read; not evidence]";

/// What stands before a person's reason to turn a tool call down.
const REASONS: [&str; 2] = [
    "To tell you how to proceed, the user said:\n",
    "The user provided the following reason for the rejection:",
];

/// Which transcript of a session is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sessions) enum Part {
    Main,
    /// A sub-agent's, with its index in `Session::parts`.
    SubAgent(u16),
}

/// Everything a session's transcripts gave.
#[derive(Debug)]
pub(in crate::sessions) struct Finished {
    /// `sessionId` of the records, the file's own first.
    pub(in crate::sessions) session_id: Option<ThreadId>,
    pub(in crate::sessions) first_record: Option<String>,
    pub(in crate::sessions) cwd: Option<String>,
    pub(in crate::sessions) branch: Option<String>,
    pub(in crate::sessions) source: Source,
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

/// Reads one session: its transcript first, then those of its sub-agents.
pub(in crate::sessions) struct Reader<'a> {
    /// The name of the file, which is the id of the session.
    own_id: Option<&'a str>,
    head_only: bool,
    part: Part,
    /// Records that other files have too, and those already read.
    seen: HashSet<u64>,
    first_record: Option<String>,
    foreign_id: Option<ThreadId>,
    /// Where the first record of this very session stands.
    first_own_line: Option<u64>,
    cwd: Option<String>,
    branch: Option<String>,
    entrypoint: Option<String>,
    has_main_chain: bool,
    started_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    drafts: Drafts,
    tree: Tree,
    /// Messages that also call a tool: what they say beside is commentary.
    calling: HashSet<u64>,
    calls: HashMap<String, Call>,
    citations: Citations,
    has_external: bool,
    is_ours: bool,
    prompts: u32,
    has_human: bool,
    records: u64,
    known_records: u64,
    pub(in crate::sessions) report: ReadReport,
}

/// The record an item comes from.
#[derive(Debug, Clone, Copy)]
struct Origin {
    line_number: u64,
    at: Option<Timestamp>,
    node: u64,
    message: u64,
    is_sidechain: bool,
}

impl<'a> Reader<'a> {
    /// `seen` holds the ids of records that count elsewhere.
    pub(in crate::sessions) fn new(
        own_id: Option<&'a str>,
        seen: HashSet<u64>,
        head_only: bool,
    ) -> Self {
        Self {
            own_id,
            head_only,
            part: Part::Main,
            seen,
            first_record: None,
            foreign_id: None,
            first_own_line: None,
            cwd: None,
            branch: None,
            entrypoint: None,
            has_main_chain: false,
            started_at: None,
            updated_at: None,
            drafts: Drafts::default(),
            tree: Tree::default(),
            calling: HashSet::new(),
            calls: HashMap::new(),
            citations: Citations::default(),
            has_external: false,
            is_ours: false,
            prompts: 0,
            has_human: false,
            records: 0,
            known_records: 0,
            report: ReadReport::default(),
        }
    }

    pub(in crate::sessions) fn begin_part(&mut self, part: Part) {
        self.part = part;
    }

    /// Whether one record of a known kind was there.
    pub(in crate::sessions) fn knows_anything(&self) -> bool {
        self.known_records > 0
    }

    pub(in crate::sessions) fn finish(mut self) -> Finished {
        let left = self.tree.left_behind();
        // Records in front of a fork's own carry the id of another session:
        // they are copies.
        let own_line = self.first_own_line.filter(|_| self.foreign_id.is_some());
        if let Some(own_line) = own_line {
            self.citations.forget_before(own_line);
        }
        let is_copied = |place: Place| {
            own_line.is_some_and(|own| place.part == 0 && u64::from(place.line_number) < own)
        };
        for draft in self.drafts.all_mut() {
            if left.contains(&draft.node) || is_copied(draft.item.place) {
                draft.standing = Standing::Gone;
            }
            let speaks_between = draft.item.provenance == Provenance::AssistantFinal
                && self.calling.contains(&draft.message);
            if speaks_between {
                draft.item.provenance = Provenance::AssistantCommentary;
            }
        }
        let own = self.own_id.and_then(ThreadId::parse);
        let (session_id, forked_from) = match self.first_own_line {
            Some(_) => (own, self.foreign_id),
            None => (self.foreign_id.or(own), None),
        };
        let is_only_sidechain = !self.has_main_chain && self.known_records > 0;
        let source = match self.entrypoint.as_deref() {
            _ if is_only_sidechain => Source::SubAgent {
                parent: session_id.clone(),
            },
            Some(entry) if entry.starts_with("sdk") => Source::Exec,
            _ => Source::Interactive,
        };
        Finished {
            session_id,
            first_record: self.first_record,
            cwd: self.cwd,
            branch: self.branch,
            source,
            forked_from,
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

    fn row(&mut self, line_number: u64, row: Row<'_>) -> Taken {
        let kind = row.kind.get().to_owned();
        self.known_records += u64::from(is_known(&kind));
        let at = Timestamp::parse_rfc3339(row.timestamp.get());
        self.updated_at = self.updated_at.max(at);
        if let Some(taken) = self.copied(line_number, &row) {
            return taken;
        }
        self.see(line_number, &row, at);
        let node = hash(row.uuid.get());
        let origin = Origin {
            line_number,
            at,
            node,
            message: row
                .message
                .get()
                .map_or(0, |message| hash(message.id.get())),
            is_sidechain: row.is_sidechain.is_set() || self.part != Part::Main,
        };
        let parent = hash(
            row.parent_uuid
                .full()
                .or(row.logical_parent_uuid.full())
                .unwrap_or_default(),
        );
        let is_question = kind == "user" && self.is_question(&row);
        self.tree.push(node, parent, is_question);
        match kind.as_str() {
            "user" => self.user(origin, row),
            "assistant" => self.assistant(origin, row),
            "attachment" => return self.attachment(origin, row.attachment),
            "system" => return ignored("system", row.subtype.get()),
            other => return ignored(other, ""),
        }
        Taken::Read
    }

    /// Whether the record counts elsewhere: in a file that was forked or
    /// resumed, or earlier in this one.
    fn copied(&mut self, line_number: u64, row: &Row<'_>) -> Option<Taken> {
        if self.part == Part::Main
            && let Some(session) = row.session_id.full()
        {
            if self.own_id == Some(session) {
                self.first_own_line.get_or_insert(line_number);
            } else if self.foreign_id.is_none() && self.first_own_line.is_none() {
                self.foreign_id = ThreadId::parse(session);
            }
        }
        let uuid = row.uuid.full()?;
        if self.first_record.is_none() && self.part == Part::Main {
            self.first_record = Some(uuid.to_owned());
        }
        let is_new = self.seen.len() >= RECORD_IDS_MAX || self.seen.insert(hash(uuid));
        (!is_new).then(|| Taken::Ignored(Cow::Borrowed("a record that counts elsewhere")))
    }

    fn see(&mut self, line_number: u64, row: &Row<'_>, at: Option<Timestamp>) {
        if self.part != Part::Main {
            return;
        }
        if let Some(at) = at {
            // A fork starts with its own first record, not with its parent's.
            let is_fork_start =
                self.foreign_id.is_some() && self.first_own_line == Some(line_number);
            let first = self.started_at.filter(|_| !is_fork_start);
            self.started_at = Some(first.map_or(at, |first| first.min(at)));
        }
        let is_said = ["user", "assistant"].contains(&row.kind.get());
        self.has_main_chain |= is_said && !row.is_sidechain.is_set();
        let keep = |place: &mut Option<String>, text: Option<&str>| {
            if place.is_none() {
                *place = text.map(str::to_owned);
            }
        };
        keep(&mut self.cwd, row.cwd.full());
        keep(&mut self.entrypoint, row.entrypoint.full());
        if let Some(branch) = row.git_branch.full() {
            self.branch = Some(branch.to_owned());
        }
    }

    /// Whether a person typed this record: no tool result, no harness.
    fn is_question(&self, row: &Row<'_>) -> bool {
        let is_plain = !row.is_meta.is_set() && !row.is_compact_summary.is_set();
        let content = row.message.get().map(|message| &message.content);
        let is_typed = match content {
            Some(Content::Text(text)) => has_human_words(text),
            Some(Content::Parts(parts)) => {
                let mut parts = parts.iter().filter_map(Object::get);
                let mut has_words = false;
                let is_result = parts.any(|part| {
                    has_words |= part.kind.is("text") && has_human_words(part.text.get());
                    part.kind.is("tool_result")
                });
                has_words && !is_result
            }
            _ => false,
        };
        is_plain && is_typed && !row.is_sidechain.is_set() && self.part == Part::Main
    }

    fn user(&mut self, origin: Origin, row: Row<'_>) {
        let is_summary =
            row.is_compact_summary.is_set() || row.is_visible_in_transcript_only.is_set();
        let is_harness = row.is_meta.is_set() || is_summary;
        let Some(message) = row.message.0 else { return };
        let mut media_count = 0;
        let mut has_text = false;
        for part in message.content.into_parts() {
            match part.kind.get() {
                "tool_result" => self.tool_result(origin, part, row.tool_use_result),
                "text" => {
                    has_text = true;
                    let media = std::mem::take(&mut media_count);
                    self.user_text(origin, part.text.get(), is_harness, media);
                }
                _ if part.is_media() => media_count += 1,
                _ => {}
            }
        }
        if media_count > 0 && !is_harness {
            // Images behind the text, or alone.
            let provenance = self.human(origin);
            let is_added = has_text && self.add_media(media_count);
            if !is_added {
                self.push_message(origin, provenance, String::new(), media_count);
            }
        }
    }

    fn user_text(&mut self, origin: Origin, text: &str, is_harness: bool, mut media_count: u32) {
        if !is_harness && self.prompts < PROMPTS_MAX {
            self.prompts += 1;
            self.is_ours |= words::is_worker_prompt(text);
        }
        if is_harness {
            self.push_message(origin, Provenance::HarnessContext, text.to_owned(), 0);
            return;
        }
        let pieces = split_user_text(text);
        let has_words = pieces
            .iter()
            .any(|piece| piece.provenance == Provenance::Human);
        for Piece { provenance, text } in pieces {
            let is_human = provenance == Provenance::Human;
            let provenance = if is_human {
                self.human(origin)
            } else {
                provenance
            };
            self.has_human |= provenance == Provenance::Human;
            let media = if is_human {
                std::mem::take(&mut media_count)
            } else {
                0
            };
            self.push_message(origin, provenance, text.to_owned(), media);
        }
        if media_count > 0 && !has_words {
            let provenance = self.human(origin);
            self.push_message(origin, provenance, String::new(), media_count);
        }
    }

    /// Nobody types into a sub-agent: its parent does.
    fn human(&self, origin: Origin) -> Provenance {
        if origin.is_sidechain {
            Provenance::OtherAgent
        } else {
            Provenance::Human
        }
    }

    fn add_media(&mut self, media_count: u32) -> bool {
        let last = self.drafts.all_mut().last_mut();
        let last = last.filter(|draft| draft.item.kind == ItemKind::Message);
        last.map(|draft| draft.item.media_count += media_count)
            .is_some()
    }

    fn tool_result(&mut self, origin: Origin, part: ContentPart<'_>, result: Option<&RawValue>) {
        let call_id = part.tool_use_id.get().to_owned();
        let call = self.calls.remove(&call_id);
        let is_error = part.is_error.0;
        let (text, media_count) = text_of(part.content);
        if let Some(answers) = result.and_then(|result| answered(result.get())) {
            self.has_human |= !origin.is_sidechain;
            let provenance = self.human(origin);
            self.push_message(origin, provenance, answers, 0);
            return;
        }
        let is_external = call.as_ref().is_some_and(|call| call.is_external_tool);
        self.has_external |= is_external;
        let is_fetched = call
            .as_ref()
            .is_some_and(|call| call.output_trust == Trust::External);
        let trust = if is_external || is_fetched {
            Trust::External
        } else {
            Trust::Own
        };
        let reads_memory = call.as_ref().is_some_and(|call| call.reads_memory);
        let succeeded = match is_error {
            Some(true) => Some(false),
            _ if text.starts_with("Exit code ") => Some(text.starts_with("Exit code 0")),
            Some(false) => Some(true),
            None => None,
        };
        let reason = reason_of(&text).map(str::to_owned);
        let (provenance, text) = if reads_memory {
            (Provenance::HarnessContext, OWN_OUTPUT.to_owned())
        } else {
            (Provenance::Tool, text)
        };
        let kind = ItemKind::ToolOutput { call_id, succeeded };
        self.push(origin, provenance, trust, kind, text, media_count);
        if let Some(reason) = reason {
            let provenance = self.human(origin);
            self.push_message(origin, provenance, reason, 0);
        }
    }

    fn assistant(&mut self, origin: Origin, row: Row<'_>) {
        let is_error = row.is_api_error_message.is_set();
        let Some(message) = row.message.0 else { return };
        let message: Message<'_> = *message;
        let is_harness = is_error || message.model.is("<synthetic>");
        if message.stop_reason.is("tool_use") {
            self.note_calling(origin);
        }
        for part in message.content.into_parts() {
            match part.kind.get() {
                "text" => self.answer(origin, part.text.get(), is_harness),
                "tool_use" | "server_tool_use" | "mcp_tool_use" => self.tool_use(origin, part),
                "web_search_tool_result" | "web_fetch_tool_result" | "mcp_tool_result" => {
                    self.has_external = true;
                }
                _ => {}
            }
        }
    }

    fn answer(&mut self, origin: Origin, text: &str, is_harness: bool) {
        let (visible, cited) = split_answer(text);
        if visible.trim().is_empty() && cited.is_empty() {
            return;
        }
        let provenance = match () {
            () if is_harness => Provenance::HarnessContext,
            () if origin.is_sidechain => Provenance::OtherAgent,
            () => Provenance::AssistantFinal,
        };
        let answer = (text, visible.as_str());
        self.citations.push(
            FoundIn::Answer,
            origin.line_number,
            origin.at,
            answer,
            cited,
        );
        if !visible.is_empty() {
            self.push_message(origin, provenance, visible, 0);
        }
    }

    fn tool_use(&mut self, origin: Origin, part: ContentPart<'_>) {
        self.note_calling(origin);
        let json = part.input.map(RawValue::get).unwrap_or_default();
        let call = tools::from_json(part.name.get(), "", json);
        self.has_external |= call.is_external_tool;
        let call_id = part.id.get().to_owned();
        let kind = ItemKind::ToolCall {
            call_id: call_id.clone(),
            tool: call.tool.clone(),
            files: call
                .files
                .iter()
                .map(|path| Raw::new(path.as_str()))
                .collect(),
        };
        self.push(
            origin,
            Provenance::Tool,
            Trust::Own,
            kind,
            call.text.clone(),
            0,
        );
        if self.calls.len() < OPEN_CALLS_MAX {
            self.calls.insert(call_id, call);
        }
    }

    fn note_calling(&mut self, origin: Origin) {
        if origin.message != 0 && self.calling.len() < RECORD_IDS_MAX {
            self.calling.insert(origin.message);
        }
    }

    fn attachment(&mut self, origin: Origin, attachment: Object<Attachment<'_>>) -> Taken {
        let Some(attachment) = attachment.0 else {
            return ignored("attachment", "");
        };
        let kind = attachment.kind.get().to_owned();
        match kind.as_str() {
            // A person typed this while the assistant was at work.
            "queued_command" if !attachment.command_mode.is("task-notification") => {
                let (text, media_count) = text_of(attachment.prompt);
                self.user_text(origin, &text, false, media_count);
            }
            "hook_additional_context" | "hook_blocking_error" | "nested_memory" => {
                let (text, _) = text_of(attachment.content);
                if !text.trim().is_empty() {
                    self.push_message(origin, Provenance::HarnessContext, text, 0);
                }
            }
            other => return ignored("attachment", other),
        }
        Taken::Read
    }

    fn push_message(
        &mut self,
        origin: Origin,
        provenance: Provenance,
        text: String,
        media_count: u32,
    ) {
        self.push(
            origin,
            provenance,
            Trust::Own,
            ItemKind::Message,
            text,
            media_count,
        );
    }

    fn push(
        &mut self,
        origin: Origin,
        provenance: Provenance,
        trust: Trust,
        kind: ItemKind,
        text: String,
        media_count: u32,
    ) {
        let part = match self.part {
            Part::Main => 0,
            Part::SubAgent(index) => index,
        };
        let item = Item {
            place: Place {
                part,
                line_number: u32::try_from(origin.line_number).unwrap_or(u32::MAX),
            },
            at: origin.at,
            provenance,
            trust,
            kind,
            text: Raw::new(text),
            media_count,
        };
        let id = self.drafts.push(item, 0, Standing::Sure);
        if let Some(draft) = self.drafts.get_mut(id) {
            draft.node = origin.node;
            draft.message = origin.message;
        }
    }
}

impl Sink for Reader<'_> {
    fn take(&mut self, line_number: u64, json: &str) -> Result<Taken, serde_json::Error> {
        let row: Row<'_> = serde_json::from_str(json)?;
        self.records += 1;
        Ok(self.row(line_number, row))
    }

    fn is_satisfied(&self) -> bool {
        self.head_only
            && (self.records >= HEAD_RECORDS_MAX
                || (self.has_human && self.first_own_line.is_some()))
    }
}

/// The ids of all records of a transcript, for those that repeat them.
///
/// # Errors
///
/// When it cannot be read.
pub(in crate::sessions) fn record_ids(source: impl Read, ids: &mut HashSet<u64>) -> io::Result<()> {
    struct Ids<'a>(&'a mut HashSet<u64>);
    impl Sink for Ids<'_> {
        fn take(&mut self, _: u64, json: &str) -> Result<Taken, serde_json::Error> {
            let row: RowName<'_> = serde_json::from_str(json)?;
            if let Some(uuid) = row.uuid.full() {
                self.0.insert(hash(uuid));
            }
            Ok(Taken::Read)
        }
        fn is_satisfied(&self) -> bool {
            self.0.len() >= RECORD_IDS_MAX
        }
    }
    records::walk(source, &mut Ids(ids), &mut ReadReport::default()).map(|_| ())
}

fn ignored(kind: &str, inner: &str) -> Taken {
    const KIND_BYTES_MAX: usize = 80;
    let short = |text: &str| text.chars().take(KIND_BYTES_MAX).collect::<String>();
    Taken::Ignored(Cow::Owned(match (kind, inner) {
        ("", _) => "without a type".to_owned(),
        (kind, "") => short(kind),
        (kind, inner) => format!("{}/{}", short(kind), short(inner)),
    }))
}

/// 0 for an absent id.
fn hash(id: &str) -> u64 {
    if id.is_empty() {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish().max(1)
}

fn has_human_words(text: &str) -> bool {
    let pieces = split_user_text(text);
    pieces
        .iter()
        .any(|piece| piece.provenance == Provenance::Human)
}

/// The text of a content, and how many images it had.
fn text_of(content: Content<'_>) -> (String, u32) {
    let mut text = String::new();
    let mut media_count = 0;
    for part in content.into_parts() {
        if part.is_media() {
            media_count += 1;
            continue;
        }
        if !text.is_empty() && !part.text.get().is_empty() {
            text.push('\n');
        }
        text.push_str(part.text.get());
    }
    (text, media_count)
}

/// A person's answers to the assistant's questions.
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
    if !text.starts_with("The user doesn't want to") {
        return None;
    }
    let (_, reason) = REASONS.iter().find_map(|mark| text.split_once(mark))?;
    Some(reason.trim()).filter(|reason| !reason.is_empty())
}

fn is_known(kind: &str) -> bool {
    const KINDS: [&str; 8] = [
        "user",
        "assistant",
        "system",
        "attachment",
        "progress",
        "summary",
        "queue-operation",
        "file-history-snapshot",
    ];
    KINDS.contains(&kind)
}
