//! What a rollout says about its session: `session_meta`, once or often.

use std::borrow::Cow;
use std::path::Path;

use serde_json::value::RawValue;

use crate::domain::id::ThreadId;
use crate::domain::session::{MemoryMode, Source};
use crate::domain::time::Timestamp;
use crate::sessions::codex::fork::Copying;
use crate::sessions::codex::reader::Reader;
use crate::sessions::codex::wire::{Git, Payload, SourceObject, SubAgentObject};
use crate::sessions::records::Taken;
use crate::sessions::wire::Text;

/// Length of a UUID in text.
const UUID_BYTES: usize = 36;

/// What is known of the session itself.
#[derive(Debug, Default)]
pub(super) struct Meta {
    pub(super) id: Option<ThreadId>,
    pub(super) cwd: Option<String>,
    pub(super) branch: Option<String>,
    pub(super) repository_url: Option<String>,
    pub(super) source: Option<Source>,
    pub(super) mode: MemoryMode,
    pub(super) forked_from: Option<ThreadId>,
}

impl Reader<'_> {
    /// The first is the session's own. The same id again is a resume; another
    /// id begins the copied history of the session it was forked from.
    pub(super) fn session_meta(&mut self, payload: &Payload<'_>, at: Option<Timestamp>) -> Taken {
        let id = ThreadId::parse(payload.id.get());
        let own = self.meta.as_ref().and_then(|meta| meta.id.clone());
        if let (Some(id), Some(own)) = (&id, own)
            && *id != own
        {
            let meta = self.meta.get_or_insert_default();
            meta.forked_from.get_or_insert_with(|| id.clone());
            if self.drafts.all().is_empty() {
                self.copying = Some(Copying::new(own.as_str(), at, true));
            }
            return Taken::Ignored(Cow::Borrowed("copied from the parent"));
        }
        let is_first = self.meta.as_ref().is_none_or(|meta| meta.id.is_none());
        let mut meta = self.meta.take().unwrap_or_default();
        add_to(&mut meta, payload);
        meta.id = id.or(meta.id);
        if is_first {
            let created = Timestamp::parse_rfc3339(payload.timestamp.get());
            self.started_at = created.or(self.started_at);
            meta.source = source_of(payload);
            meta.forked_from = ThreadId::parse(payload.forked_from_id.get());
            if meta.forked_from.is_some() {
                let own = meta.id.as_ref().map_or("", ThreadId::as_str);
                self.copying = Some(Copying::new(own, at, false));
            }
        }
        self.meta = Some(meta);
        Taken::Read
    }
}

/// Later ones know the branch better; the folder stays the first.
fn add_to(meta: &mut Meta, payload: &Payload<'_>) {
    if let Some(cwd) = payload.cwd.full() {
        meta.cwd.get_or_insert_with(|| cwd.to_owned());
    }
    if let Some(Git {
        branch,
        repository_url,
    }) = payload.git.get()
    {
        let newer = |text: &Text<'_>, old: &mut Option<String>| {
            if let Some(text) = text.full() {
                *old = Some(text.to_owned());
            }
        };
        newer(branch, &mut meta.branch);
        newer(repository_url, &mut meta.repository_url);
    }
    if let Some(mode) = MemoryMode::parse(payload.memory_mode.get()) {
        meta.mode = mode;
    }
}

/// The id in `rollout-2025-11-03T09-00-00-<id>.jsonl`, when it is a UUID.
pub(super) fn thread_id_of_name(path: &Path) -> Option<ThreadId> {
    let name = path.file_name()?.to_str()?;
    let stem = name.split('.').next()?;
    let id = stem.get(stem.len().checked_sub(UUID_BYTES)?..)?;
    let is_uuid = id.bytes().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    is_uuid.then(|| ThreadId::parse(id)).flatten()
}

/// `None` when the transcript does not say.
fn source_of(payload: &Payload<'_>) -> Option<Source> {
    let parent = || {
        let stated = ThreadId::parse(payload.parent_thread_id.get());
        spawning_parent(payload.source).or(stated)
    };
    match payload.thread_source.get() {
        "" | "user" => {}
        "subagent" => return Some(Source::SubAgent { parent: parent() }),
        other => return Some(Source::Other(other.to_owned())),
    }
    let json = payload.source.map(RawValue::get).unwrap_or_default();
    if json.starts_with('{') {
        let object: SourceObject<'_> = serde_json::from_str(json).unwrap_or_default();
        return Some(match object.custom.full() {
            Some(name) => Source::Other(name.to_owned()),
            None => Source::SubAgent { parent: parent() },
        });
    }
    let name: Text<'_> = serde_json::from_str(json).unwrap_or_default();
    match name.get() {
        "exec" => Some(Source::Exec),
        "" | "unknown" if payload.originator.get().contains("exec") => Some(Source::Exec),
        "" => None,
        "cli" | "vscode" | "atlas" | "chatgpt" | "unknown" => Some(Source::Interactive),
        other => Some(Source::Other(other.to_owned())),
    }
}

fn spawning_parent(source: Option<&RawValue>) -> Option<ThreadId> {
    let object: SourceObject<'_> = serde_json::from_str(source?.get()).ok()?;
    let agent: SubAgentObject<'_> = serde_json::from_str(object.subagent?.get()).ok()?;
    ThreadId::parse(agent.thread_spawn.get()?.parent_thread_id.get())
}
