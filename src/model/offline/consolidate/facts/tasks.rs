//! Tasks: what was done in one session, or again in others.

use std::collections::BTreeSet;
use std::iter::once;

use crate::domain::session::Agent;
use crate::model::offline::consolidate::body::{RecapBody, TaskBody};
use crate::model::offline::consolidate::facts::{ReadRecap, Task};
use crate::model::offline::consolidate::gate::Gate;
use crate::model::offline::consolidate::line;
use crate::model::offline::consolidate::tokens::{Features, NearIndex, SAME_TASK};
use crate::model::offline::shape::Outcome;

/// Most bytes of a title that is made of a message.
const TITLE_BYTES_MAX: usize = 120;

/// Around a message that a recap quotes.
const QUOTATION_MARKS: &[char] = &['"', '“', '”', '„', '«', '»', '「', '」', '『', '』'];

/// Most keywords of a task.
const KEYWORDS_MAX: usize = 10;

/// Most bytes of a keyword.
const KEYWORD_BYTES_MAX: usize = 48;

/// The tasks of a group, and per recap where each of its tasks went; `None`
/// for one of which everything that could be its title is withheld.
pub(super) fn join_tasks(
    recaps: &[ReadRecap<'_>],
    project: &str,
    gate: &Gate<'_>,
) -> (Vec<Task>, Vec<Vec<Option<usize>>>) {
    let titles: Vec<Vec<Option<Title>>> = (recaps.iter())
        .map(|recap| {
            let tasks = recap.body.tasks.iter();
            tasks.map(|task| title(task, gate)).collect()
        })
        .collect();
    let features = titles
        .iter()
        .flatten()
        .flatten()
        .map(|title| &title.features);
    let mut index = NearIndex::new(SAME_TASK, features);
    let mut tasks: Vec<Task> = Vec::new();
    let mut places = Vec::new();
    for (recap, titles) in recaps.iter().zip(titles) {
        let mut of_recap = Vec::new();
        for (task, title) in recap.body.tasks.iter().zip(titles) {
            let Some(Title { text, features }) = title else {
                of_recap.push(None);
                continue;
            };
            let found = index.near(&features).into_iter().next();
            let place = found.unwrap_or_else(|| {
                tasks.push(Task {
                    title: text,
                    features: features.clone(),
                    outcome: Outcome::Uncertain,
                    sources: Vec::new(),
                    keywords: Vec::new(),
                    description: String::new(),
                });
                index.insert(&features)
            });
            add_source(&mut tasks[place], task, recap, project, gate);
            of_recap.push(Some(place));
        }
        places.push(of_recap);
    }
    (tasks, places)
}

struct Title {
    text: String,
    features: Features,
}

/// A task's title. One that says what is withheld makes way for what else was
/// asked for in the task: the rest of it is nobody's to take away with a
/// sentence. `None` when nothing else was.
fn title(task: &TaskBody, gate: &Gate<'_>) -> Option<Title> {
    let requests = (task.requests.iter())
        .map(|text| line::of_header(&line::without_evidence(text), TITLE_BYTES_MAX))
        .map(|text| text.trim_matches(QUOTATION_MARKS).to_owned());
    let features = Features::of(&task.title);
    let is_another = |text: &String| !Features::of(text).is_same_as(&features);
    let text = once(task.title.clone())
        .chain(requests.filter(is_another))
        .find(|text| !text.is_empty() && !gate.blocks(text))?;
    let features = Features::of(&text);
    Some(Title { text, features })
}

/// Recaps come oldest first, so what is set here is the newest session's word.
fn add_source(
    known: &mut Task,
    task: &TaskBody,
    recap: &ReadRecap<'_>,
    project: &str,
    gate: &Gate<'_>,
) {
    if known.sources.last() != Some(&recap.source) {
        known.sources.push(recap.source.clone());
    }
    known.outcome = task.outcome.unwrap_or(Outcome::Uncertain);
    let mut words = keywords(task, project);
    words.retain(|word| !gate.blocks(word));
    if words.is_empty() || gate.blocks(&words.join(", ")) {
        words = vec![project.to_owned()];
    }
    for keyword in words {
        let is_known = known.keywords.contains(&keyword);
        if !is_known && known.keywords.len() < KEYWORDS_MAX {
            known.keywords.push(keyword);
        }
    }
    let asked = task
        .requests
        .first()
        .map(|text| line::without_evidence(text));
    let context = Some(recap.body.context.clone()).filter(|text| !is_session_line(text));
    let described = [asked, context].into_iter().flatten();
    let mut described = described.filter(|text| !text.is_empty());
    if let Some(description) = described.next() {
        known.description = description;
    }
}

/// Whether a context only names the session, as the offline recaps' does.
fn is_session_line(context: &str) -> bool {
    Agent::ALL.iter().any(|agent| {
        let rest = context.strip_prefix(agent.label());
        rest.is_some_and(|rest| rest.starts_with(" session"))
    })
}

/// The recap's own keywords, else what stands in code spans.
fn keywords(task: &TaskBody, project: &str) -> Vec<String> {
    let fits = |word: &String| !word.is_empty() && word.len() <= KEYWORD_BYTES_MAX;
    let mut words: Vec<String> = task
        .keywords
        .iter()
        .filter(|word| fits(word))
        .cloned()
        .collect();
    if words.is_empty() {
        let lists = [&task.knowledge, &task.failures, &task.steps];
        for text in lists.into_iter().flatten() {
            let spans = code_spans(text).map(|span| {
                let words = span.replace(',', " ");
                line::of_header(&words, words.len())
            });
            words.extend(spans.filter(fits));
        }
    }
    if words.is_empty() {
        words.push(project.to_owned());
    }
    let mut seen = BTreeSet::new();
    words.retain(|word| seen.insert(word.to_lowercase()));
    words.truncate(KEYWORDS_MAX);
    words
}

/// What stands between single backticks.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).map(str::trim)
}

/// Commands by their first word: `cargo test --lib` counts for `cargo`.
pub(super) fn tools(body: &RecapBody) -> BTreeSet<String> {
    let mut tools = BTreeSet::new();
    for task in &body.tasks {
        for text in [&task.steps, &task.failures, &task.knowledge]
            .into_iter()
            .flatten()
        {
            // What stands behind a colon is what the command said.
            let parts: Vec<&str> = text.split('`').collect();
            for pair in parts.chunks(2) {
                if let [before, span] = pair
                    && !before.trim_end().ends_with([':', '：'])
                {
                    tools.extend(tool(span.trim()));
                }
            }
        }
    }
    tools
}

/// How messages begin, and no command does.
const COMPLAINTS: &[&str] = &[
    "error",
    "warning",
    "fatal",
    "failed",
    "failure",
    "assertion",
    "panicked",
    "thread",
    "exception",
    "traceback",
    "no",
    "not",
    "cannot",
    "could",
    "expected",
    "unexpected",
    "unknown",
    "invalid",
    "missing",
    "permission",
    "undefined",
    "unresolved",
    "mismatched",
    "note",
];

fn tool(span: &str) -> Option<String> {
    let mut words = span.split_whitespace();
    let first = words.next()?;
    // A command has arguments; a single word may be a name of anything.
    words.next()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_+".contains(c);
    let fits = first.len() <= 20 && first.starts_with(|c: char| c.is_ascii_lowercase());
    let is_complaint = COMPLAINTS.contains(&first);
    (fits && !is_complaint && first.chars().all(is_name)).then(|| first.to_owned())
}
