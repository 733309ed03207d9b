//! Which recaps an assistant's answer says it used.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::domain::id::ThreadId;
use crate::domain::session::Citation;
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;

const OPEN: &str = "<oai-mem-citation>";
const CLOSE: &str = "</oai-mem-citation>";

/// The answer without its citation blocks, and the thread ids in them.
pub(super) fn split_answer(answer: &str) -> (String, Vec<ThreadId>) {
    let mut visible = String::new();
    let mut ids = Vec::new();
    let mut rest = answer;
    while let Some((before, behind)) = rest.split_once(OPEN) {
        visible.push_str(before);
        // A block that is never closed reaches to the end (reference 9).
        let (block, behind) = behind.split_once(CLOSE).unwrap_or((behind, ""));
        let listed = between(block, "<rollout_ids>", "</rollout_ids>")
            .or_else(|| between(block, "<thread_ids>", "</thread_ids>"));
        let listed = listed.unwrap_or_default().lines();
        thread_ids(listed, &mut ids);
        rest = behind;
    }
    visible.push_str(rest);
    (visible.trim_end().to_owned(), ids)
}

/// Adds the ids that can be thread ids, each once.
pub(super) fn thread_ids<'a>(lines: impl Iterator<Item = &'a str>, ids: &mut Vec<ThreadId>) {
    for id in lines.filter_map(|line| ThreadId::parse(line.trim())) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
}

/// The citations of one session.
#[derive(Debug, Default)]
pub(super) struct Citations {
    of_answers: Vec<Cited>,
    /// An event repeats the answer without its block.
    of_events: Vec<Cited>,
}

#[derive(Debug)]
struct Cited {
    line_number: u64,
    visible: u64,
    citation: Citation,
}

/// Where a citation was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundIn {
    Answer,
    Event,
}

impl Citations {
    /// `visible` is the answer as a person sees it.
    pub(super) fn push(
        &mut self,
        found_in: FoundIn,
        line_number: u64,
        at: Option<Timestamp>,
        (answer, visible): (&str, &str),
        thread_ids: Vec<ThreadId>,
    ) {
        if thread_ids.is_empty() {
            return;
        }
        let citation = Citation {
            thread_ids,
            answer: Raw::new(answer),
            occurrence: 0,
            at,
        };
        let cited = Cited {
            line_number,
            visible: hash(visible.trim()),
            citation,
        };
        match found_in {
            FoundIn::Answer => self.of_answers.push(cited),
            FoundIn::Event => self.of_events.push(cited),
        }
    }

    /// Drops those of copied records.
    pub(super) fn forget_before(&mut self, line_number: u64) {
        self.of_answers
            .retain(|cited| cited.line_number >= line_number);
        self.of_events
            .retain(|cited| cited.line_number >= line_number);
    }

    /// In file order, each answer once, equal answers counted.
    pub(super) fn finish(self) -> Vec<Citation> {
        let mut twins: BTreeMap<u64, u32> = BTreeMap::new();
        for cited in &self.of_answers {
            *twins.entry(cited.visible).or_default() += 1;
        }
        let mut all = self.of_answers;
        for cited in self.of_events {
            match twins.get_mut(&cited.visible).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => all.push(cited),
            }
        }
        all.sort_by_key(|cited| cited.line_number);
        let mut seen: BTreeMap<u64, u32> = BTreeMap::new();
        let count = |cited: Cited| {
            let count = seen
                .entry(hash(cited.citation.answer.unredacted()))
                .or_default();
            let occurrence = *count;
            *count += 1;
            Citation {
                occurrence,
                ..cited.citation
            }
        };
        all.into_iter().map(count).collect()
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, behind) = text.split_once(open)?;
    Some(
        behind
            .split_once(close)
            .map_or(behind, |(inside, _)| inside),
    )
}
