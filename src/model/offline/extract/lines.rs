//! What a task may say, as lines with a rank, before the budget is known.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::domain::item::{Item, ItemKind, Place, Provenance, Trust};
use crate::domain::text::Redacted;
use crate::model::offline::extract::outcome::{Evidence, Verdict};
use crate::model::offline::extract::signals::{Signal, SignalKind, of_task};
use crate::model::offline::extract::tasks::Task;
use crate::model::offline::extract::words::{begin_of, code, one_line, shorten};
use crate::model::offline::extract::work::{
    Command, Failure, Files, Remedy, Work, done, failures, proven,
};
use crate::model::offline::shape;

/// Most lines of each kind in a task.
const FAILURES_MAX: usize = 8;
const PROVEN_MAX: usize = 5;
const DONE_MAX: usize = 6;
const FILES_MAX: usize = 8;

/// The assistant's last words are shown up to this many bytes.
const LAST_WORDS_BYTES_MAX: usize = 240;

const LAST_WORDS_BYTES_MIN: usize = 40;

/// The lists of a task, in the order of the recap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum List {
    Requests,
    Preferences,
    KeySteps,
    Failures,
    Knowledge,
    References,
}

impl List {
    pub(crate) const ALL: [Self; 6] = [
        Self::Requests,
        Self::Preferences,
        Self::KeySteps,
        Self::Failures,
        Self::Knowledge,
        Self::References,
    ];

    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Self::Requests => shape::REQUESTS,
            Self::Preferences => shape::PREFERENCES,
            Self::KeySteps => shape::KEY_STEPS,
            Self::Failures => shape::FAILURES,
            Self::Knowledge => shape::KNOWLEDGE,
            Self::References => shape::REFERENCES,
        }
    }
}

/// The person's words. Shortened in the middle when there is no room.
#[derive(Debug)]
pub(crate) struct Quote {
    pub(crate) list: List,
    /// Stands before the quotation mark.
    pub(crate) label: &'static str,
    pub(crate) text: String,
    /// Everywhere the same words stand.
    pub(crate) places: Vec<Place>,
    /// Opens the task, or carries a cue: goes last when there is no room.
    pub(crate) matters: bool,
}

impl Quote {
    /// Bytes of the line without the quotation itself.
    pub(crate) fn around_bytes(&self) -> usize {
        "- \"\" ()".len() + self.label.len() + places(&self.places).len()
    }

    /// The line, its quotation at most `bytes_max` bytes long.
    pub(crate) fn line(&self, bytes_max: usize) -> String {
        let text = shorten(&self.text, bytes_max);
        format!("- {}\"{text}\" ({})", self.label, places(&self.places))
    }
}

/// A line about the work. Whole or not at all.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) list: List,
    /// 0 is the last to go.
    pub(crate) rank: u8,
    pub(crate) line: String,
}

/// The person's words in a task: signals, then requests that are not signals
/// as a whole. The same words count once.
pub(crate) fn quotes(task: &Task) -> Vec<Quote> {
    let signals = of_task(task);
    let signal_texts: BTreeSet<&str> = signals.iter().map(|signal| signal.quote.as_str()).collect();
    let mut quotes: Vec<Quote> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, message) in task.messages.iter().enumerate() {
        let line = message.line.as_str();
        if let Some(at) = known.get(line) {
            quotes[*at].places.push(message.place);
        } else if !signal_texts.contains(line) {
            known.insert(line, quotes.len());
            let has_cue = message.cues.iter().any(|cues| !cues.is_empty());
            quotes.push(Quote {
                list: List::Requests,
                label: "",
                text: line.to_owned(),
                places: vec![message.place],
                matters: index == 0 || message.opens || has_cue,
            });
        }
    }
    drop(signal_texts);
    quotes.extend(signals.into_iter().map(signal_quote));
    quotes
}

fn signal_quote(signal: Signal) -> Quote {
    Quote {
        list: List::Preferences,
        label: match signal.kind {
            SignalKind::Always => shape::ALWAYS,
            SignalKind::Correction => shape::CORRECTION,
        },
        text: signal.quote,
        places: vec![signal.place],
        matters: true,
    }
}

/// What was done in a task.
///
/// With `uses_memory` the assistant's words are left out: they may repeat what
/// we wrote ourselves, which is never evidence.
pub(crate) fn facts(
    task: &Task,
    items: &[Item<Redacted>],
    work: &Work,
    uses_memory: bool,
) -> Vec<Fact> {
    let commands = work.commands_in(&task.items);
    let later = work.commands_in(&(task.items.start..items.len()));
    let mut facts = Vec::new();
    for failure in failures(commands, later).iter().take(FAILURES_MAX) {
        let is_solved = !matches!(failure.remedy, Remedy::None);
        facts.push(Fact {
            list: List::Failures,
            rank: u8::from(!is_solved),
            line: failure_line(failure),
        });
    }
    for command in proven(commands).into_iter().take(PROVEN_MAX) {
        let place = place(command.result_place);
        facts.push(fact(
            List::Knowledge,
            1,
            format!("- {} works here ({place})", code(&command.line)),
        ));
    }
    facts.extend(files_fact(&work.files_in(&task.items)));
    for command in done(commands).into_iter().take(DONE_MAX) {
        let place = place(command.place);
        facts.push(fact(
            List::KeySteps,
            3,
            format!("- ran {} ({place})", code(&command.line)),
        ));
    }
    if !uses_memory {
        facts.extend(last_words(task, items));
    }
    facts
}

fn fact(list: List, rank: u8, line: String) -> Fact {
    Fact { list, rank, line }
}

fn failure_line(failure: &Failure<'_>) -> String {
    let command = failure.command;
    let mut line = format!(
        "- {} failed ({}",
        code(&command.line),
        place(command.result_place)
    );
    if 1 < failure.times {
        let _ = write!(line, ", {} times", failure.times);
    }
    line.push(')');
    if let Some(error) = &command.error {
        let _ = write!(line, ": {}", code(error));
    }
    let worked = |command: &Command| place(command.result_place);
    let _ = match &failure.remedy {
        Remedy::None => Ok(()),
        Remedy::Again { then, .. } => write!(line, "; it worked later ({})", worked(then)),
        Remedy::Instead(then) => {
            write!(
                line,
                "; then {} worked ({})",
                code(&then.line),
                worked(then)
            )
        }
    };
    if let Remedy::Again { between, .. } = &failure.remedy {
        for (index, helped) in between.iter().enumerate() {
            let before = if index == 0 { ", after" } else { " and" };
            let _ = write!(line, "{before} {} ({})", code(&helped.line), worked(helped));
        }
    }
    line
}

fn files_fact(files: &Files) -> Option<Fact> {
    let first = files.values().map(|(first, _)| *first).min()?;
    let last = files.values().map(|(_, last)| *last).max()?;
    let names: Vec<String> = files
        .keys()
        .take(FILES_MAX)
        .map(|path| code(path))
        .collect();
    let more = match files.len().saturating_sub(FILES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let line = format!(
        "- changed {}{more} ({})",
        names.join(", "),
        range(first, last)
    );
    Some(fact(List::KeySteps, 2, line))
}

/// The beginning of the assistant's last answer, named as such. Not when
/// something from outside came before it: the words may not be its own.
fn last_words(task: &Task, items: &[Item<Redacted>]) -> Option<Fact> {
    let items = &items[task.items.clone()];
    if items.iter().any(|item| item.trust == Trust::External) {
        return None;
    }
    let answer = items.iter().rev().find(|item| {
        item.provenance == Provenance::AssistantFinal && item.kind == ItemKind::Message
    })?;
    let text = answer.text.as_str().trim();
    let begin = one_line(begin_of(text, 4_000));
    let paragraph = one_line(text.split("\n\n").next().unwrap_or(text));
    // A paragraph that only announces the next one says nothing.
    let tells = LAST_WORDS_BYTES_MIN <= paragraph.len() && !paragraph.ends_with([':', '：']);
    let words = shorten(
        if tells { &paragraph } else { &begin },
        LAST_WORDS_BYTES_MAX,
    );
    (!words.is_empty()).then(|| {
        let line = format!(
            "- the assistant's last words: \"{words}\" ({})",
            place(answer.place)
        );
        fact(List::KeySteps, 4, line)
    })
}

/// The line that says how a task ended.
pub(crate) fn outcome_line(verdict: &Verdict) -> String {
    let label = format!("{}{}", shape::OUTCOME, verdict.outcome.label());
    match &verdict.evidence {
        Evidence::Said { line, place: at } => {
            format!("{label} ({}: \"{}\")", place(*at), shorten(line, 120))
        }
        Evidence::Check {
            command,
            passed,
            place: at,
        } => {
            let result = if *passed { "passed" } else { "failed" };
            format!("{label} ({}: {} {result})", place(*at), code(command))
        }
        Evidence::Aborted { place: at } => format!("{label} ({}: broken off)", place(*at)),
        Evidence::WentOn { place: at } => {
            format!("{label} ({}: the person went on)", place(*at))
        }
        Evidence::None => format!("{label} (no evidence)"),
    }
}

/// Where the evidence of a task stands.
pub(crate) fn reference_line(task: &Task, items: &[Item<Redacted>]) -> String {
    let first = task.messages[0].place;
    let last = (items[task.items.clone()].iter().rev())
        .find(|item| item.place.part == first.part)
        .map_or(first, |item| item.place);
    format!("- [1] {} of the rollout", range(first, last))
}

/// `line 12`, or `line 2:17` for line 17 of a sub-agent's transcript.
fn place(place: Place) -> String {
    format!("line {}", number(place))
}

fn number(place: Place) -> String {
    match place.part {
        0 => place.line_number.to_string(),
        part => format!("{part}:{}", place.line_number),
    }
}

fn range(first: Place, last: Place) -> String {
    if first == last {
        place(first)
    } else {
        format!("lines {}-{}", number(first), number(last))
    }
}

/// At most four places, the rest counted.
fn places(places: &[Place]) -> String {
    const LISTED_MAX: usize = 4;
    let [only] = places else {
        let listed: Vec<String> = places
            .iter()
            .take(LISTED_MAX)
            .map(|at| number(*at))
            .collect();
        let more = match places.len().saturating_sub(LISTED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        return format!("lines {}{more}", listed.join(", "));
    };
    place(*only)
}
