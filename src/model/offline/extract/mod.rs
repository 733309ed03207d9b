//! Extraction by rules: what the person asked, took back and wants from now
//! on, word for word; what was run, what failed, what then worked.
//!
//! The rules copy, they never invent. The result depends on the session alone
//! and is the same on every machine. Its shape is in [`shape`].
//!
//! # Not in here
//!
//! No trust in what came from outside: items of external trust give no line at
//! all, and no words but the person's give a preference.
//!
//! # Limits
//!
//! One pass over the items for each kind of thing looked for, however long the
//! session; a recap has at most [`render::RECAP_BYTES_MAX`] bytes.

mod command_line;
mod errors;
#[cfg(test)]
mod fixture;
mod keywords;
mod lines;
mod outcome;
mod pasted;
mod raw_memory;
mod related;
mod render;
mod signals;
mod tasks;
mod words;
mod work;

use std::fmt::Write as _;

use serde_json::json;

use crate::domain::item::{Item, Trust};
use crate::domain::text::{Raw, Redacted};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::model::offline::extract::render::TaskView;
use crate::model::offline::extract::tasks::{Message, Task};
use crate::model::offline::extract::work::Work;
use crate::model::offline::shape;
use crate::model::{ExtractionRequest, Reply, SessionFacts, Tokens};

/// Messages that say at least this much make a conversation without any work
/// worth keeping, when there are [`MESSAGES_MIN`] of them.
const MESSAGE_WEIGHT_MIN: usize = 20;
const MESSAGES_MIN: usize = 3;

/// Titles are cut to these many bytes.
const TITLE_BYTES_MAX: usize = 100;
const TASK_TITLE_BYTES_MAX: usize = 72;

/// Words of the title in the slug.
const SLUG_WORDS_MAX: usize = 6;

/// Answers an extraction request without a model.
pub(crate) fn extract(request: &ExtractionRequest<'_>) -> Reply {
    let found = find(request.facts, request.items);
    let (recap, slug, raw_memory) = match &found {
        Some(found) => (
            found.recap.as_str(),
            found.slug.as_str(),
            found.raw_memory.as_str(),
        ),
        None => ("", "", ""),
    };
    let reply = match request.version {
        MemoryVersion::V1 => json!({
            "rollout_summary": recap,
            "rollout_slug": (!slug.is_empty()).then_some(slug),
            "raw_memory": raw_memory,
        }),
        MemoryVersion::V2 => json!({"rollout_summary": recap, "rollout_slug": slug}),
    };
    Reply {
        text: Raw::new(reply.to_string()),
        rests_on: Some(Trust::Own),
        is_cut: false,
        tokens: Tokens::default(),
    }
}

struct Found {
    recap: String,
    slug: String,
    raw_memory: String,
}

/// `None` when nothing is worth keeping.
fn find(facts: &SessionFacts, items: &[Item<Redacted>]) -> Option<Found> {
    let tasks = tasks::split(items);
    let work = work::gather(items, facts.cwd.as_ref().map(Redacted::as_str));
    if !is_worth_keeping(&tasks, &work) {
        return None;
    }
    let title = tasks.first()?.title(TITLE_BYTES_MAX);
    let head = format!("# {title}\n\n{}\n", context_line(facts));
    let verdicts: Vec<_> = (tasks.iter().enumerate())
        .map(|(index, task)| {
            let next = tasks.get(index + 1).and_then(|task| task.messages.first());
            outcome::judge(task, items, work.commands_in(&task.items), next)
        })
        .collect();
    let views = (tasks.iter().zip(&verdicts))
        .map(|(task, verdict)| TaskView {
            title: task.title(TASK_TITLE_BYTES_MAX),
            outcome: lines::outcome_line(verdict),
            quotes: lines::quotes(task),
            facts: lines::facts(task, items, &work, facts.uses_memory),
            reference: lines::reference_line(task, items),
        })
        .collect();
    let texts = render::fit(head.len(), views);
    let outcomes: Vec<shape::Outcome> = verdicts.iter().map(|verdict| verdict.outcome).collect();
    let files = work.files_in(&(0..items.len()));
    let requests = tasks
        .iter()
        .flat_map(|task| &task.messages)
        .map(|message| message.own.as_str());
    let keywords = keywords::keywords(files.keys().map(String::as_str), requests);
    Some(Found {
        recap: render::recap(&head, &texts),
        slug: slug(&title, &keywords),
        raw_memory: raw_memory::print(facts, &title, &keywords, &outcomes, &texts),
    })
}

/// Somebody wanted something, and there is something to learn from it: work
/// was done, something was stated, or it was talked about at some length. A
/// question that was looked up and answered is over.
fn is_worth_keeping(tasks: &[Task], work: &Work) -> bool {
    if tasks.iter().any(|task| !signals::of_task(task).is_empty()) {
        return true;
    }
    let messages = || tasks.iter().flat_map(|task| &task.messages);
    let says_much = messages().filter(|message| MESSAGE_WEIGHT_MIN <= words::weight(&message.own));
    let (said, any_said) = (says_much.clone().count(), messages().next().is_some());
    let states = says_much.into_iter().any(Message::states);
    let changed = work.commands.iter().any(|command| !command.only_looks) || work.has_files();
    any_said && (changed || (states && MESSAGES_MIN <= said))
}

/// Which agent, where, when.
fn context_line(facts: &SessionFacts) -> String {
    let mut line = format!("{} session", facts.agent);
    let mut add = |before: &str, value: Option<&Redacted>| {
        if let Some(value) = value.map(|value| words::one_line(value.as_str())) {
            let _ = write!(line, "{before} {}", words::code(&value));
        }
    };
    add(" in", facts.project.as_ref());
    let cwd = facts.cwd.as_ref();
    add(", cwd", cwd.filter(|_| facts.cwd != facts.project));
    add(", branch", facts.git_branch.as_ref());
    let _ = write!(line, ", {}.", span(facts.started_at, facts.updated_at));
    line
}

/// `2026-12-01 05:06 to 06:10 UTC`.
fn span(from: Option<Timestamp>, to: Timestamp) -> String {
    let minute = |at: Timestamp| at.to_string().get(11..16).unwrap_or_default().to_owned();
    let end = format!("{} {}", to.date(), minute(to));
    match from.map(|from| (from.date(), minute(from))) {
        Some((date, begin)) if date != to.date() => format!("{date} {begin} to {end} UTC"),
        Some((date, begin)) if begin != minute(to) => {
            format!("{date} {begin} to {} UTC", minute(to))
        }
        _ => format!("{end} UTC"),
    }
}

/// Words for the file name: of the title, else of the keywords. Only ASCII can
/// stand in one.
fn slug(title: &str, keywords: &[String]) -> String {
    let ascii_words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect()
    };
    let mut words = ascii_words(title);
    if words.iter().all(|word| word.len() < 3) {
        words = keywords.iter().flat_map(|word| ascii_words(word)).collect();
    }
    words.truncate(SLUG_WORDS_MAX);
    words.join("-")
}

#[cfg(test)]
mod tests;
