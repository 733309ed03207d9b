//! Turns the records of a transcript into drafts of items.
//!
//! Here is what the reader remembers and which records count; `content` has
//! what they say.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read};

use crate::domain::id::ThreadId;
use crate::domain::item::{Place, Provenance};
use crate::domain::session::{MemoryMode, ReadReport, Source};
use crate::domain::time::Timestamp;
use crate::sessions::citation::Citations;
use crate::sessions::claude::content;
use crate::sessions::claude::tree::Tree;
use crate::sessions::claude::wire::{Row, RowName};
use crate::sessions::draft::{Drafts, Origin, Standing};
use crate::sessions::facts::Facts;
use crate::sessions::records::{self, Sink, Taken};
use crate::sessions::tools::Call;

/// Records looked at for a head.
const HEAD_RECORDS_MAX: u64 = 300;

/// Most records remembered by id.
pub(super) const RECORD_IDS_MAX: usize = 2_000_000;

/// Which transcript of a session is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sessions) enum Part {
    Main,
    /// A sub-agent's, with its index in `Session::parts`.
    SubAgent(u16),
}

/// Reads one session: its transcript first, then those of its sub-agents.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one thing seen on the way through the file"
)]
pub(in crate::sessions) struct Reader<'a> {
    /// The name of the file, which is the id of the session.
    own_id: Option<&'a str>,
    head_only: bool,
    pub(super) part: Part,
    /// Records that other files have too, and those already read.
    seen: HashSet<u64>,
    first_record: Option<String>,
    /// The session that the first records name, when it is another one.
    foreign_id: Option<ThreadId>,
    /// Where the first record of this very session stands.
    first_own_line: Option<u64>,
    cwd: Option<String>,
    branch: Option<String>,
    entrypoint: Option<String>,
    has_main_chain: bool,
    started_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    pub(super) drafts: Drafts,
    tree: Tree,
    /// Messages that also call a tool: what they say beside is commentary.
    pub(super) calling: HashSet<u64>,
    pub(super) calls: HashMap<String, Call>,
    pub(super) citations: Citations,
    pub(super) has_external: bool,
    pub(super) is_ours: bool,
    pub(super) prompts: u32,
    pub(super) has_human: bool,
    records: u64,
    known_records: u64,
    pub(in crate::sessions) report: ReadReport,
}

/// The record that is being read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) origin: Origin,
    /// A sub-agent's, in the session's own file or in its own.
    pub(super) is_sidechain: bool,
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

    pub(in crate::sessions) fn finish(mut self) -> Facts {
        self.settle_drafts();
        let own = self.own_id.and_then(ThreadId::parse);
        let (thread_id, forked_from) = match self.first_own_line {
            Some(_) => (own, self.foreign_id),
            None => (self.foreign_id.or(own), None),
        };
        let is_only_sidechain = !self.has_main_chain && self.known_records > 0;
        let source = match self.entrypoint.as_deref() {
            _ if is_only_sidechain => Source::SubAgent {
                parent: thread_id.clone(),
            },
            Some(entry) if entry.starts_with("sdk") => Source::Exec,
            _ => Source::Interactive,
        };
        Facts {
            thread_id,
            first_record: self.first_record,
            cwd: self.cwd,
            branch: self.branch,
            repository_url: None,
            source,
            mode: MemoryMode::default(),
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

    /// What only the whole file can tell.
    fn settle_drafts(&mut self) {
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
            if left.contains(&draft.origin.node) || is_copied(draft.item.place) {
                draft.standing = Standing::Gone;
            }
            let speaks_between = draft.item.provenance == Provenance::AssistantFinal
                && self.calling.contains(&draft.origin.message);
            if speaks_between {
                draft.item.provenance = Provenance::AssistantCommentary;
            }
        }
    }

    fn row(&mut self, line_number: u64, row: Row<'_>) -> Taken {
        self.known_records += u64::from(is_known(row.kind.get()));
        let at = Timestamp::parse_rfc3339(row.timestamp.get());
        self.updated_at = self.updated_at.max(at);
        if self.is_copied(line_number, &row) {
            return Taken::Ignored(Cow::Borrowed("a record that counts elsewhere"));
        }
        self.see(line_number, &row, at);
        let part = match self.part {
            Part::Main => 0,
            Part::SubAgent(index) => index,
        };
        let record = Record {
            origin: Origin {
                part,
                line_number,
                at,
                turn: 0,
                node: hash(row.uuid.get()),
                message: row
                    .message
                    .get()
                    .map_or(0, |message| hash(message.id.get())),
            },
            is_sidechain: row.is_sidechain.is_set() || self.part != Part::Main,
        };
        let parent = row.parent_uuid.full().or(row.logical_parent_uuid.full());
        let parent = hash(parent.unwrap_or_default());
        let is_question = !record.is_sidechain && content::is_question(&row);
        self.tree.push(record.origin.node, parent, is_question);
        match row.kind.get() {
            "user" => self.user(record, row),
            "assistant" => self.assistant(record, row),
            "attachment" => return self.attachment(record, row.attachment),
            "system" => return Taken::ignored("system", row.subtype.get()),
            other => return Taken::ignored(other, ""),
        }
        Taken::Read
    }

    /// Whether the record counts elsewhere: in a file that was forked or
    /// resumed, or earlier in this one.
    fn is_copied(&mut self, line_number: u64, row: &Row<'_>) -> bool {
        if self.part == Part::Main
            && let Some(session) = row.session_id.full()
        {
            if self.own_id == Some(session) {
                self.first_own_line.get_or_insert(line_number);
            } else if self.foreign_id.is_none() && self.first_own_line.is_none() {
                self.foreign_id = ThreadId::parse(session);
            }
        }
        let Some(uuid) = row.uuid.full() else {
            return false;
        };
        if self.part == Part::Main {
            self.first_record.get_or_insert_with(|| uuid.to_owned());
        }
        self.seen.len() < RECORD_IDS_MAX && !self.seen.insert(hash(uuid))
    }

    fn see(&mut self, line_number: u64, row: &Row<'_>, at: Option<Timestamp>) {
        if self.part != Part::Main {
            return;
        }
        if let Some(at) = at {
            // A fork starts with its own first record, not with its parent's.
            let is_fork = self.foreign_id.is_some();
            let is_start = is_fork && self.first_own_line == Some(line_number);
            let first = self.started_at.filter(|_| !is_start);
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
}

impl Sink for Reader<'_> {
    fn take(&mut self, line_number: u64, json: &str) -> Result<Taken, serde_json::Error> {
        let row: Row<'_> = serde_json::from_str(json)?;
        self.records += 1;
        Ok(self.row(line_number, row))
    }

    fn is_satisfied(&self) -> bool {
        let is_known = self.has_human && self.first_own_line.is_some();
        self.head_only && (self.records >= HEAD_RECORDS_MAX || is_known)
    }
}

/// Collects the ids of all records of a transcript, for those that repeat
/// them.
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

/// 0 for an absent id.
fn hash(id: &str) -> u64 {
    if id.is_empty() {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish().max(1)
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
