//! Which recaps an assistant's answer says it used.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::domain::id::ThreadId;
use crate::domain::session::Citation;
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;
use crate::text::citation;

/// The answer as a person sees it, and the thread ids that it cites.
pub(super) fn split_answer(answer: &str) -> (String, Vec<ThreadId>) {
    let mut ids = Vec::new();
    if let Some(cited) = citation::parse(answer) {
        thread_ids(cited.iter().map(String::as_str), &mut ids);
    }
    (citation::strip(answer).trim_end().to_owned(), ids)
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
