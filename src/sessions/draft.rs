//! Items while a session is being read and may still be taken back.

use crate::domain::item::{Item, ItemKind, Place, Provenance, Trust};
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;
use crate::sessions::budget::Budget;
use crate::sessions::tools::Call;

/// What stands for an output that is our own text.
const OWN_OUTPUT: &str = "[memory that was read; not evidence]";

/// How sure it is that a draft becomes an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It stays as it is.
    Sure,
    /// A person's words by their text; an event may confirm it.
    Unconfirmed,
    /// Confirmed by an event.
    Confirmed,
    /// Known from an event alone so far.
    EventOnly,
    /// Taken back, or a second copy.
    Gone,
}

/// The record that a draft comes from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Origin {
    pub(super) part: u16,
    pub(super) line_number: u64,
    pub(super) at: Option<Timestamp>,
    /// Codex: the turn, counted from the start of the file.
    pub(super) turn: u32,
    /// Claude Code: hash of the record's own id, and of its message's id.
    pub(super) node: u64,
    pub(super) message: u64,
}

/// What a record says, on its way to becoming an item.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) provenance: Provenance,
    pub(super) trust: Trust,
    pub(super) kind: ItemKind,
    pub(super) text: String,
    pub(super) media_count: u32,
    pub(super) standing: Standing,
}

impl Said {
    pub(super) fn message(provenance: Provenance, text: impl Into<String>) -> Self {
        Self {
            provenance,
            trust: Trust::Own,
            kind: ItemKind::Message,
            text: text.into(),
            media_count: 0,
            standing: Standing::Sure,
        }
    }

    pub(super) fn with_media(self, media_count: u32) -> Self {
        Self {
            media_count,
            ..self
        }
    }

    pub(super) fn standing(self, standing: Standing) -> Self {
        Self { standing, ..self }
    }

    /// A call as it was made.
    pub(super) fn call(call: &Call, call_id: String) -> Self {
        let files = call.files.iter().map(|path| Raw::new(path.as_str()));
        Self {
            kind: ItemKind::ToolCall {
                call_id,
                tool: call.tool.clone(),
                files: files.collect(),
            },
            ..Self::message(Provenance::Tool, call.text.as_str())
        }
    }

    /// What came back. Of our own text only the fact is kept.
    pub(super) fn output(
        call_id: String,
        text: String,
        succeeded: Option<bool>,
        trust: Trust,
        reads_memory: bool,
    ) -> Self {
        let (provenance, text) = if reads_memory {
            (Provenance::HarnessContext, OWN_OUTPUT.to_owned())
        } else {
            (Provenance::Tool, text)
        };
        Self {
            trust,
            kind: ItemKind::ToolOutput { call_id, succeeded },
            ..Self::message(provenance, text)
        }
    }
}

#[derive(Debug)]
pub(super) struct Draft {
    /// Grows with every draft; stays valid when others are dropped.
    pub(super) id: u32,
    pub(super) item: Item,
    pub(super) origin: Origin,
    pub(super) standing: Standing,
}

/// The drafts of one session, within its budget.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    all: Vec<Draft>,
    next_id: u32,
    budget: Budget,
}

impl Drafts {
    pub(super) fn push(&mut self, origin: Origin, said: Said) -> u32 {
        let mut item = Item {
            place: Place {
                part: origin.part,
                line_number: u32::try_from(origin.line_number).unwrap_or(u32::MAX),
            },
            at: origin.at,
            provenance: said.provenance,
            trust: said.trust,
            kind: said.kind,
            text: Raw::new(said.text),
            media_count: said.media_count,
        };
        self.budget.admit(&mut item);
        let id = self.next_id;
        self.next_id = self.next_id.saturating_add(1);
        self.all.push(Draft {
            id,
            item,
            origin,
            standing: said.standing,
        });
        if self.budget.is_exceeded() {
            self.relieve();
        }
        id
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Draft> {
        let index = self.all.binary_search_by_key(&id, |draft| draft.id).ok()?;
        self.all.get_mut(index)
    }

    pub(super) fn all(&self) -> &[Draft] {
        &self.all
    }

    pub(super) fn all_mut(&mut self) -> &mut [Draft] {
        &mut self.all
    }

    /// The output of a call, if it was among the last drafts.
    pub(super) fn recent_output(&mut self, wanted: &str) -> Option<&mut Option<bool>> {
        const RECENT: usize = 64;
        let recent = self.all.iter_mut().rev().take(RECENT);
        let mut outputs = recent.filter_map(|draft| match &mut draft.item.kind {
            ItemKind::ToolOutput { call_id, succeeded } => Some((call_id, succeeded)),
            _ => None,
        });
        let (_, succeeded) = outputs.find(|(call_id, _)| *call_id == wanted)?;
        Some(succeeded)
    }

    /// Takes back everything of turn `turn` and later.
    pub(super) fn take_back_from(&mut self, turn: u32) {
        for draft in &mut self.all {
            if draft.origin.turn >= turn {
                draft.standing = Standing::Gone;
                draft.item.text = Raw::default();
            }
        }
    }

    /// Items given up for the budget.
    pub(super) fn dropped(&self) -> u64 {
        self.budget.dropped
    }

    pub(super) fn into_items(self) -> Vec<Item> {
        let kept = self.all.into_iter();
        let kept = kept.filter(|draft| draft.standing != Standing::Gone);
        kept.map(|draft| draft.item).collect()
    }

    fn relieve(&mut self) {
        self.all.retain(|draft| draft.standing != Standing::Gone);
        let mut items: Vec<&mut Item> = self.all.iter_mut().map(|draft| &mut draft.item).collect();
        let mut keeps = self.budget.relieve(&mut items).into_iter();
        self.all.retain(|_| keeps.next().unwrap_or(true));
    }
}
