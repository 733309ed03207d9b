//! Events that repeat messages: who typed what, and never twice.
//!
//! A message of the role of the user is a response item; what the person sent
//! comes again as an event, before or after it. An event without its message
//! stands for itself; a message without its event, in a rollout that has such
//! events, was put there by the harness.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::item::Provenance;
use crate::sessions::draft::{Draft, Drafts, Standing};

/// Messages that may still find their event, or the other way round.
const WAITING_MAX: usize = 16;

/// One message or event that waits for its other half.
#[derive(Debug)]
struct Waiting {
    drafts: Vec<u32>,
    text: Collapsed,
    is_event: bool,
    line_number: u64,
}

/// A message and its event stand next to each other, give or take one record.
const NEIGHBOUR_LINES_MAX: u64 = 2;

/// What is compared of a text: long ones differ early or were cut.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// A text as halves are compared: white space collapsed, at most
/// [`TEXT_BYTES_MAX`] and the word that crosses it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Collapsed(String);

impl Collapsed {
    pub(super) fn of(text: &str) -> Self {
        let mut collapsed = String::with_capacity(text.len().min(TEXT_BYTES_MAX));
        for word in text.split_whitespace() {
            if collapsed.len() >= TEXT_BYTES_MAX {
                break;
            }
            if !collapsed.is_empty() {
                collapsed.push(' ');
            }
            collapsed.push_str(word);
        }
        Self(collapsed)
    }

    /// One of them ends as the other reads.
    fn overlaps(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.0.as_str(), other.0.as_str());
        !ours.is_empty() && !theirs.is_empty() && (ours.ends_with(theirs) || theirs.ends_with(ours))
    }
}

/// The halves that wait, oldest first.
#[derive(Debug, Default)]
pub(super) struct Waitlist(Vec<Waiting>);

impl Waitlist {
    /// The drafts of the other half, which then waits no longer.
    pub(super) fn other_half(&mut self, text: &Collapsed, is_event: bool) -> Option<Vec<u32>> {
        let is_same = |one: &Waiting| one.is_event != is_event && one.text == *text;
        let is_part = |one: &Waiting| one.is_event != is_event && one.text.overlaps(text);
        let same = self.0.iter().position(is_same);
        let at = same.or_else(|| self.0.iter().position(is_part))?;
        Some(self.0.remove(at).drafts)
    }

    /// The drafts of a message just before this event, which says the same in
    /// other words.
    pub(super) fn neighbour(&mut self, line_number: u64) -> Option<Vec<u32>> {
        let last = self.0.last().filter(|one| !one.is_event)?;
        let is_near = line_number.saturating_sub(last.line_number) <= NEIGHBOUR_LINES_MAX;
        is_near
            .then(|| self.0.pop())
            .flatten()
            .map(|one| one.drafts)
    }

    pub(super) fn wait(
        &mut self,
        drafts: Vec<u32>,
        text: Collapsed,
        is_event: bool,
        line_number: u64,
    ) {
        if self.0.len() == WAITING_MAX {
            self.0.remove(0);
        }
        self.0.push(Waiting {
            drafts,
            text,
            is_event,
            line_number,
        });
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Decides what became of halves that stayed alone.
pub(super) fn resolve(drafts: &mut Drafts, has_user_events: bool) {
    let answered = turns_with(drafts.all(), |draft| {
        draft.standing == Standing::Sure && is_answer(draft)
    });
    let mut spoken = BTreeMap::new();
    for draft in drafts.all() {
        // The message says itself that the person wrote it, but its event
        // reads differently: one of them is enough.
        if draft.standing == Standing::Sure && is_human(draft) {
            *spoken.entry(draft.origin.turn).or_insert(0_u32) += 1;
        }
    }
    for draft in drafts.all_mut() {
        match draft.standing {
            Standing::Unconfirmed if has_user_events && is_human(draft) => {
                draft.item.provenance = Provenance::HarnessContext;
            }
            Standing::EventOnly if is_answer(draft) && answered.contains(&draft.origin.turn) => {
                draft.standing = Standing::Gone;
            }
            Standing::EventOnly if is_human(draft) => {
                let waiting = spoken.get_mut(&draft.origin.turn);
                if let Some(count) = waiting.filter(|count| **count > 0) {
                    *count -= 1;
                    draft.standing = Standing::Gone;
                }
            }
            _ => {}
        }
    }
}

/// The turn from which `count` turns of the person are taken back.
pub(super) fn turn_before(drafts: &Drafts, count: i64, has_user_events: bool) -> Option<u32> {
    let begun = turns_with(drafts.all(), |draft| {
        let is_standing = match draft.standing {
            Standing::Gone => false,
            Standing::Unconfirmed => !has_user_events,
            Standing::Sure | Standing::Confirmed | Standing::EventOnly => true,
        };
        is_standing && is_human(draft)
    });
    let count = usize::try_from(count).ok().filter(|count| *count > 0)?;
    let nth = begun.iter().rev().nth(count - 1);
    nth.or(begun.first()).copied()
}

fn turns_with(drafts: &[Draft], is_wanted: impl Fn(&Draft) -> bool) -> BTreeSet<u32> {
    let wanted = drafts.iter().filter(|draft| is_wanted(draft));
    wanted.map(|draft| draft.origin.turn).collect()
}

fn is_human(draft: &Draft) -> bool {
    draft.item.provenance == Provenance::Human
}

fn is_answer(draft: &Draft) -> bool {
    matches!(
        draft.item.provenance,
        Provenance::AssistantFinal | Provenance::AssistantCommentary
    )
}
