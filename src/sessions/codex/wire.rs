//! What is read of a Codex rollout line, over all generations.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::sessions::unescape::{long_content, long_text};
use crate::sessions::wire::{Content, Flag, List, Number, Object, Part, Text};

/// One line: an envelope since September 2025, a bare item before.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line<'a> {
    #[serde(borrow)]
    pub(super) timestamp: Text<'a>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) record_type: Text<'a>,
    #[serde(borrow)]
    pub(super) payload: Object<Payload<'a>>,
    pub(super) metadata: Object<LineMetadata>,
    /// Only in the first line of the generation without envelope.
    #[serde(borrow)]
    pub(super) id: Text<'a>,
}

/// The same line when only its time is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BareLine<'a> {
    #[serde(borrow)]
    pub(super) timestamp: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LineMetadata {
    pub(super) compaction_output: Flag,
    pub(super) mcp_attribution: Object<Attribution>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Attribution {
    pub(super) sources: List<Object<AttributionSource>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AttributionSource {
    server_name: OwnedText,
}

/// A name that need not be borrowed.
#[derive(Debug, Default)]
struct OwnedText(String);

impl<'de> Deserialize<'de> for OwnedText {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Text::deserialize(from).map(|text| Self(text.into_string()))
    }
}

impl LineMetadata {
    /// Whether an MCP server other than ours had a part in this output.
    pub(super) fn names_foreign_server(&self) -> bool {
        let sources = self.mcp_attribution.get().map(|all| &all.sources.0[..]);
        let mut sources = sources.unwrap_or_default().iter().filter_map(Object::get);
        sources.any(|source| source.server_name.0 != "memrev")
    }
}

/// All fields of all kinds that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Payload<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) role: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Content<'a>,
    #[serde(borrow)]
    pub(super) phase: Text<'a>,
    #[serde(borrow, rename = "internal_chat_message_metadata_passthrough")]
    pub(super) passthrough: Object<Passthrough<'a>>,

    // tools
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) namespace: Text<'a>,
    #[serde(borrow)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "long_text")]
    pub(super) input: Text<'a>,
    #[serde(borrow, deserialize_with = "long_content")]
    pub(super) output: Content<'a>,
    #[serde(borrow)]
    pub(super) action: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tools: Option<&'a RawValue>,
    pub(super) exit_code: Number,
    pub(super) success: Flag,

    // events
    #[serde(borrow, deserialize_with = "long_text")]
    pub(super) message: Text<'a>,
    #[serde(borrow, rename = "kind")]
    pub(super) event_kind: Text<'a>,
    #[serde(borrow)]
    pub(super) turn_id: Text<'a>,
    pub(super) num_turns: Number,
    #[serde(borrow)]
    pub(super) memory_citation: Object<MemoryCitation<'a>>,
    #[serde(borrow)]
    pub(super) item: Object<CompletedItem<'a>>,

    // session_meta
    #[serde(borrow)]
    pub(super) timestamp: Text<'a>,
    #[serde(borrow)]
    pub(super) cwd: Text<'a>,
    #[serde(borrow)]
    pub(super) originator: Text<'a>,
    #[serde(borrow)]
    pub(super) source: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) thread_source: Text<'a>,
    #[serde(borrow)]
    pub(super) memory_mode: Text<'a>,
    #[serde(borrow)]
    pub(super) forked_from_id: Text<'a>,
    #[serde(borrow)]
    pub(super) parent_thread_id: Text<'a>,
    #[serde(borrow)]
    pub(super) git: Object<Git<'a>>,
}

/// What the newest generation says about the parts of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Passthrough<'a> {
    #[serde(borrow)]
    pub(super) turn_id: Text<'a>,
    #[serde(borrow)]
    pub(super) content_item_kinds: List<Text<'a>>,
    #[serde(borrow)]
    pub(super) content_item_metadata: List<Object<ItemMetadata<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ItemMetadata<'a> {
    #[serde(borrow)]
    pub(super) provenance: Object<PartProvenance<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PartProvenance<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) namespace: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MemoryCitation<'a> {
    #[serde(
        borrow,
        alias = "rollout_ids",
        alias = "threadIds",
        rename = "rolloutIds"
    )]
    pub(super) thread_ids: List<Text<'a>>,
}

/// The item of an `item_completed` event: a mirror of other records.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompletedItem<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Content<'a>,
    #[serde(borrow)]
    pub(super) phase: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    pub(super) exit_code: Number,
    #[serde(borrow)]
    pub(super) memory_citation: Object<MemoryCitation<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Git<'a> {
    #[serde(borrow)]
    pub(super) branch: Text<'a>,
    #[serde(borrow)]
    pub(super) repository_url: Text<'a>,
}

/// `source` of a `session_meta` when it is an object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SourceObject<'a> {
    #[serde(borrow)]
    pub(super) subagent: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) custom: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SubAgentObject<'a> {
    #[serde(borrow)]
    pub(super) thread_spawn: Object<ThreadSpawn<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ThreadSpawn<'a> {
    #[serde(borrow)]
    pub(super) parent_thread_id: Text<'a>,
}

/// The action of a local shell call or a web search.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Action<'a> {
    pub(super) command: serde_json::Value,
    #[serde(borrow)]
    pub(super) query: Text<'a>,
    #[serde(borrow)]
    pub(super) url: Text<'a>,
}

/// The first generation: one document per session.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Document<'a> {
    #[serde(borrow)]
    pub(super) session: Object<DocumentSession<'a>>,
    #[serde(borrow)]
    pub(super) items: Option<Vec<&'a RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DocumentSession<'a> {
    #[serde(borrow)]
    pub(super) timestamp: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
}

impl Payload<'_> {
    /// The turn this record belongs to, where it says so.
    pub(super) fn turn(&self) -> Option<&str> {
        let nested = || self.passthrough.get()?.turn_id.full();
        self.turn_id.full().or_else(nested)
    }

    /// The same for two copies of one item, whatever ids, ordinals and times
    /// the copies were given.
    pub(super) fn identity(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for text in [
            &self.kind,
            &self.role,
            &self.name,
            &self.call_id,
            &self.input,
        ] {
            text.get().hash(&mut hasher);
        }
        self.arguments.map(RawValue::get).hash(&mut hasher);
        for content in [&self.content, &self.output] {
            match content {
                Content::None => {}
                Content::Text(text) => text.hash(&mut hasher),
                Content::Parts(parts) => {
                    let texts = parts.iter().filter_map(Object::get);
                    texts.for_each(|part: &Part<'_>| part.text.get().hash(&mut hasher));
                }
                Content::Map(map) => {
                    map.content.get().hash(&mut hasher);
                    map.output.get().hash(&mut hasher);
                }
            }
        }
        hasher.finish()
    }
}
