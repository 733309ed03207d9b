//! Items while a session is being read and may still be taken back.

use crate::domain::item::{Item, ItemKind};
use crate::domain::text::Raw;
use crate::sessions::budget::Budget;

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

#[derive(Debug)]
pub(super) struct Draft {
    /// Grows with every draft; stays valid when others are dropped.
    pub(super) id: u32,
    pub(super) item: Item,
    pub(super) turn: u32,
    pub(super) standing: Standing,
    /// Claude Code: hash of the record's own id, and of its message's id.
    pub(super) node: u64,
    pub(super) message: u64,
}

/// The drafts of one session, within its budget.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    all: Vec<Draft>,
    next_id: u32,
    budget: Budget,
}

impl Drafts {
    pub(super) fn push(&mut self, mut item: Item, turn: u32, standing: Standing) -> u32 {
        self.budget.admit(&mut item);
        let id = self.next_id;
        self.next_id = self.next_id.saturating_add(1);
        self.all.push(Draft {
            id,
            item,
            turn,
            standing,
            node: 0,
            message: 0,
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
        recent
            .filter_map(|draft| match &mut draft.item.kind {
                ItemKind::ToolOutput { call_id, succeeded } if call_id == wanted => Some(succeeded),
                _ => None,
            })
            .next()
    }

    /// Takes back everything of turn `turn` and later.
    pub(super) fn take_back_from(&mut self, turn: u32) {
        for draft in &mut self.all {
            if draft.turn >= turn {
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
