//! From a session to its tasks: which request of the person opens a new one.
//!
//! A task is a request and what follows until the next one that is really
//! new. Corrections, complaints, short additions and requests about the same
//! things belong to the task that they are about. The rules look at cues,
//! length, time and shared terms, never at the grammar of a language.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::domain::item::{Item, ItemKind, Place, Provenance};
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::model::offline::extract::pasted;
use crate::model::offline::extract::words::{
    self, is_question, one_line, sentences, terms, weight,
};
use crate::text::cues::{self, Cue, CueSet};

/// A message that says less than this adds to what was said before.
const NEW_REQUEST_WEIGHT_MIN: usize = 20;

/// A message that leads over ("ok, …", "and …"), or that stands around a pasted
/// log, opens a task only if it says at least this much.
const FOLLOW_UP_WEIGHT_MAX: usize = 60;

/// A sentence that praises or complains and says this much besides tells what
/// the work is about.
const REACTION_WEIGHT_MAX: usize = 40;

/// Where a secret stood.
const REDACTION_TAG: &str = "[redacted:";

/// A sentence that says less than this is no title.
const TITLE_WEIGHT_MIN: usize = 8;

/// After a pause of this many hours a request is about something new.
const NEW_AFTER_HOURS: i64 = 4;

/// A request that shares at least one in this many of its terms with the
/// task goes on with it.
const SHARED_TERMS_ONE_IN: usize = 4;

/// More tasks than this are joined with their neighbours.
const TASKS_MAX: usize = 20;

/// A line longer than this is no sentence of a person.
const SENTENCE_BYTES_MAX: usize = 600;

/// What the person said at one point.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) place: Place,
    /// Index into the session's items.
    pub(crate) item_index: usize,
    /// On one line, long pasted blocks named in their place.
    pub(crate) line: String,
    /// What the person typed, without what was pasted, on one line.
    pub(crate) own: String,
    pub(crate) has_pasted: bool,
    /// Sentences that may carry cues, in order.
    pub(crate) sentences: Vec<Sentence>,
    /// The cues of all its sentences together.
    pub(crate) cues: Vec<CueSet>,
    /// Begins a task.
    pub(crate) opens: bool,
}

impl Message {
    /// What it is about: its first sentence that is more than a reaction to
    /// what came before, or an announcement of what is pasted.
    fn topic(&self) -> Option<&str> {
        let tells = |sentence: &&Sentence| {
            let weight = weight(&sentence.text);
            let reacts = sentence.cues.has(Cue::Accept) || sentence.cues.has(Cue::Complaint);
            let reacts = reacts && weight < REACTION_WEIGHT_MAX;
            let goes_on = sentence.cues.has(Cue::FollowUp) || sentence.text.ends_with([':', '：']);
            let is_whole = !goes_on || FOLLOW_UP_WEIGHT_MAX <= weight;
            !reacts && is_whole && TITLE_WEIGHT_MIN <= weight && !has_redaction(&sentence.text)
        };
        (self.sentences.iter().find(tells)).map(|sentence| sentence.text.as_str())
    }

    /// Opens nothing of its own, whatever stands in it: an answer to a
    /// question, a short addition, a log with a word or two around it.
    fn only_adds(&self) -> bool {
        let weight = weight(&self.own);
        let goes_on =
            (self.sentences.first()).is_some_and(|sentence| sentence.cues.has(Cue::FollowUp));
        weight < NEW_REQUEST_WEIGHT_MIN
            || has_redaction(&self.own)
            || ((goes_on || self.has_pasted) && weight < FOLLOW_UP_WEIGHT_MAX)
    }

    /// Says something that is neither asked nor a reaction.
    pub(crate) fn states(&self) -> bool {
        self.sentences.iter().any(|sentence| {
            let reacts = sentence.cues.has(Cue::Accept) || sentence.cues.has(Cue::Hedge);
            !reacts && TITLE_WEIGHT_MIN <= weight(&sentence.text) && !is_question(&sentence.text)
        })
    }

    pub(crate) fn has(&self, cue: Cue) -> bool {
        self.cues.iter().any(|cues| cues.has(cue))
    }
}

#[derive(Debug)]
pub(crate) struct Sentence {
    pub(crate) text: String,
    pub(crate) cues: CueSet,
}

fn has_redaction(text: &str) -> bool {
    text.contains(REDACTION_TAG)
}

/// A request and what followed.
#[derive(Debug)]
pub(crate) struct Task {
    /// Never empty; the first one opened it.
    pub(crate) messages: Vec<Message>,
    /// Items from the opening message to before the next task.
    pub(crate) items: Range<usize>,
}

impl Task {
    /// What it is about: the first sentence that says it, whichever message it
    /// stands in; else what the person said first.
    pub(crate) fn title(&self, bytes_max: usize) -> String {
        if let Some(topic) = self.topic() {
            return words::title(topic, bytes_max);
        }
        let says = |message: &&Message| 0 < weight(&message.own) && !has_redaction(&message.own);
        let message = self.messages.iter().find(says);
        let line = message.map_or(&self.messages[0].line, |message| &message.own);
        words::title(line, bytes_max)
    }

    fn topic(&self) -> Option<&str> {
        self.messages.iter().find_map(Message::topic)
    }
}

/// The tasks of a session, in order. Empty when no person said anything.
pub(crate) fn split(items: &[Item<Redacted>]) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut known = BTreeSet::new();
    let mut answered = false;
    let mut last_at: Option<Timestamp> = None;
    for (item_index, item) in items.iter().enumerate() {
        let Some(mut message) = message(item_index, item) else {
            answered |= is_work(item);
            last_at = item.at.or(last_at);
            continue;
        };
        let new_terms = terms(&message.own);
        let pause = last_at
            .zip(item.at)
            .map(|(before, now)| now.seconds() - before.seconds());
        // A greeting or a bare log is no task yet: the request behind it is.
        let has_task = tasks.last().is_some_and(|task| task.topic().is_some());
        message.opens = tasks.is_empty()
            || (answered && has_task && is_new_request(&message, &new_terms, &known, pause));
        last_at = item.at.or(last_at);
        answered = false;
        if message.opens {
            known = new_terms;
            tasks.push(Task {
                messages: vec![message],
                items: item_index..items.len(),
            });
            let count = tasks.len();
            if let Some(before) = count.checked_sub(2) {
                tasks[before].items.end = item_index;
            }
        } else if let Some(task) = tasks.last_mut() {
            known.extend(new_terms);
            task.messages.push(message);
        }
    }
    join_surplus(tasks)
}

fn message(item_index: usize, item: &Item<Redacted>) -> Option<Message> {
    if item.provenance != Provenance::Human || item.kind != ItemKind::Message {
        return None;
    }
    let parts = pasted::take_apart(item.text.as_str());
    if weight(&parts.line) == 0 {
        return None;
    }
    let sentences: Vec<Sentence> = sentences_with_cues(&parts.own);
    Some(Message {
        place: item.place,
        item_index,
        cues: sentences.iter().map(|sentence| sentence.cues).collect(),
        line: parts.line,
        own: one_line(&parts.own),
        has_pasted: parts.has_pasted,
        sentences,
        opens: false,
    })
}

/// The sentences of what the person typed, with their cues.
fn sentences_with_cues(own: &str) -> Vec<Sentence> {
    (sentences(own).into_iter())
        .filter(|sentence| sentence.len() <= SENTENCE_BYTES_MAX)
        .map(|sentence| Sentence {
            text: one_line(sentence),
            cues: cues::find(sentence),
        })
        .collect()
}

/// The assistant did or answered something.
fn is_work(item: &Item<Redacted>) -> bool {
    matches!(
        item.provenance,
        Provenance::AssistantFinal | Provenance::OtherAgent | Provenance::Tool
    )
}

fn is_new_request(
    message: &Message,
    new_terms: &BTreeSet<String>,
    known: &BTreeSet<String>,
    pause_seconds: Option<i64>,
) -> bool {
    let takes_back = message.has(Cue::Correction) || message.has(Cue::Complaint);
    if takes_back || message.only_adds() {
        return false;
    }
    let is_default = |cues: &CueSet| cues.states_default() || cues.has(Cue::Convention);
    let only_states_a_default = (message.cues.iter())
        .filter(|cues| !cues.has(Cue::Accept))
        .all(is_default);
    if only_states_a_default && !message.cues.is_empty() {
        return false;
    }
    if pause_seconds.is_some_and(|seconds| NEW_AFTER_HOURS * 3_600 <= seconds) {
        return true;
    }
    let shared = new_terms
        .iter()
        .filter(|term| known.contains(*term))
        .count();
    shared * SHARED_TERMS_ONE_IN < new_terms.len().max(1)
}

/// Joins neighbours evenly until there are at most [`TASKS_MAX`].
fn join_surplus(tasks: Vec<Task>) -> Vec<Task> {
    let per_group = tasks.len().div_ceil(TASKS_MAX).max(1);
    let mut joined: Vec<Task> = Vec::new();
    for (index, task) in tasks.into_iter().enumerate() {
        match joined.last_mut() {
            Some(group) if index % per_group != 0 => {
                group.items.end = task.items.end;
                group.messages.extend(task.messages);
            }
            _ => joined.push(task),
        }
    }
    joined
}

#[cfg(test)]
mod tests;
