//! What the summary could say, best first.
//!
//! Notes come first, then what more sessions support, then what is newer;
//! ties break by thread id. *Recent* is what happened on the newest three days
//! on which there were sessions: the inputs tell the time, not a clock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::domain::id::ThreadId;
use crate::domain::note::NOTE_MARK;
use crate::domain::path::RECAPS;
use crate::domain::session::Agent;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::model::offline::consolidate::facts::{Facts, Group, Kind, Source, Statement, Task};
use crate::model::offline::consolidate::gate::Gate;
use crate::model::offline::consolidate::line::{self, Cited};
use crate::model::offline::consolidate::tokens::{
    self, Features, NearIndex, SAME_STATEMENT, folded,
};

/// Days with sessions that count as recent.
const RECENT_DAYS: usize = 3;

/// Most bytes of a preference or tip in the summary.
const LINE_BYTES_MAX: usize = 300;
const TITLE_BYTES_MAX: usize = 100;
const KEYWORDS_BYTES_MAX: usize = 160;
const SENTENCE_BYTES_MAX: usize = 160;
const DESCRIPTION_BYTES_MAX: usize = 200;
const LEARNING_BYTES_MAX: usize = 180;

/// Most learnings of a topic.
const LEARNINGS_MAX: usize = 2;

/// Most projects and tools that the profile names.
const PROFILE_NAMES_MAX: usize = 5;

/// How the lines of the profile begin that these rules write.
const PROFILE_STARTS: [&str; 5] = [
    "- Sessions in memory: ",
    "- Projects: ",
    "- Tools most used: ",
    "- Notes in memory: ",
    "- Resources in memory: ",
];

/// How the line begins that names projects without a topic of their own.
pub(super) const ALSO: &str = "- Also in memory: ";

/// Everything the summary could say.
#[derive(Debug, Clone, Default)]
pub(super) struct Candidates {
    pub(super) profile: Vec<String>,
    pub(super) preferences: Vec<Line>,
    pub(super) tips: Vec<Line>,
    /// Newest first.
    pub(super) topics: Vec<Topic>,
    /// Titles of the groups that have topics, newest first.
    pub(super) scopes: Vec<String>,
}

/// A preference or tip.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// As it is printed.
    pub(super) text: String,
    pub(super) features: Features,
}

/// A task (version 1) or recap (version 2).
#[derive(Debug, Clone)]
pub(super) struct Topic {
    /// Index into the scopes.
    pub(super) scope: usize,
    /// `2026-12-01`.
    pub(super) day: String,
    pub(super) is_recent: bool,
    /// As it is printed: compact, then with more and more below it.
    pub(super) levels: Vec<String>,
    /// Folded title.
    pub(super) title: String,
    pub(super) cited: Cited,
}

/// What `facts` give for a summary of `version`.
pub(super) fn candidates(facts: &Facts, version: MemoryVersion) -> Candidates {
    let groups: Vec<&Group> = facts
        .groups
        .iter()
        .filter(|group| !group.tasks.is_empty())
        .collect();
    let recent = recent_days(&groups);
    let mut topics: Vec<(Reverse<Timestamp>, ThreadId, Topic)> = Vec::new();
    for (scope, group) in groups.iter().enumerate() {
        match version {
            MemoryVersion::V1 => topics.extend(task_topics(group, scope, &recent)),
            MemoryVersion::V2 => topics.extend(recap_topics(group, scope, &recent)),
        }
    }
    topics.sort_by(|left, right| {
        (left.0, &left.1, &left.2.title).cmp(&(right.0, &right.1, &right.2.title))
    });
    Candidates {
        profile: profile(facts, &groups),
        preferences: lines(facts, &[Kind::Preference]),
        tips: lines(facts, &[Kind::Knowledge, Kind::Failure]),
        topics: topics.into_iter().map(|(_, _, topic)| topic).collect(),
        scopes: groups.iter().map(|group| group.title.clone()).collect(),
    }
}

impl Candidates {
    /// Keeps what `may_stand`, by first lines: a topic in all its forms.
    pub(super) fn retain(&mut self, may_stand: &dyn Fn(&str) -> bool) {
        let may_stand = |text: &str| may_stand(text.lines().next().unwrap_or_default());
        self.profile.retain(|line| may_stand(line));
        self.preferences.retain(|line| may_stand(&line.text));
        self.tips.retain(|line| may_stand(&line.text));
        self.topics
            .retain(|topic| topic.levels.iter().all(|text| may_stand(text)));
    }

    /// Without what would be withheld in the words that are printed.
    pub(super) fn without_withheld(mut self, gate: &Gate<'_>) -> Self {
        let is_open = |line: &str| {
            let core = line::core(line);
            let words = core.strip_prefix("desc: ").unwrap_or(core);
            !gate.blocks(words.strip_prefix("learnings: ").unwrap_or(words))
        };
        self.preferences.retain(|line| is_open(&line.text));
        self.tips.retain(|line| is_open(&line.text));
        self.topics.retain_mut(|topic| {
            topic.levels.retain(|level| level.lines().all(is_open));
            !topic.levels.is_empty() && !gate.blocks(&topic.title)
        });
        self
    }

    /// Folded first lines of everything that could be printed.
    pub(super) fn first_lines(&self) -> BTreeSet<String> {
        let lines = self
            .preferences
            .iter()
            .chain(&self.tips)
            .map(|line| line.text.as_str());
        let topics = self.topics.iter().flat_map(|topic| &topic.levels);
        let topics = topics.filter_map(|text| text.lines().next());
        lines
            .chain(topics)
            .map(|text| folded(line::core(text)))
            .collect()
    }
}

/// How a line begins that is one of the counted ones, whatever it counts.
pub(super) fn counted_start(first_line: &str) -> Option<&'static str> {
    let starts = PROFILE_STARTS.into_iter().chain([ALSO]);
    starts
        .into_iter()
        .find(|start| first_line.starts_with(start))
}

/// Whether a line is nothing but somebody's words in quotation marks, with the
/// project where they hold: these rules copied it from a session, though that
/// may be gone and nothing can tell what it said.
pub(super) fn is_quotation(first_line: &str) -> bool {
    let core = line::core(first_line);
    let words = match core
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once(" (in "))
    {
        Some((words, _)) => words,
        None => core,
    };
    let inside = words
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    first_line.starts_with("- ") && inside.is_some_and(|inside| !inside.contains('"'))
}

/// Whether a nested line is one that these rules put below a topic.
pub(super) fn is_below_topic(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("- desc: ") || line.starts_with("- learnings: ")
}

fn recent_days(groups: &[&Group]) -> BTreeSet<String> {
    let tasks = groups.iter().flat_map(|group| &group.tasks);
    let sources = tasks.flat_map(|task| &task.sources);
    let days: BTreeSet<String> = sources.map(|source| source.updated_at.date()).collect();
    days.into_iter().rev().take(RECENT_DAYS).collect()
}

type RankedTopic = (Reverse<Timestamp>, ThreadId, Topic);

fn task_topics(group: &Group, scope: usize, recent: &BTreeSet<String>) -> Vec<RankedTopic> {
    let mut by_task: BTreeMap<usize, Vec<&Statement>> = BTreeMap::new();
    for one in learnings(group) {
        one.tasks
            .iter()
            .for_each(|task| by_task.entry(*task).or_default().push(one));
    }
    let mut topics = Vec::new();
    for (index, task) in group.tasks.iter().enumerate() {
        let Some(newest) = task.sources.iter().max() else {
            continue;
        };
        let day = newest.updated_at.date();
        let is_recent = recent.contains(&day);
        let title = line::shorten(&task.title, TITLE_BYTES_MAX);
        let some = &task.keywords[..task.keywords.len().min(3)];
        let compact = format!(
            "- {title}: {}",
            line::shorten(&some.join(", "), KEYWORDS_BYTES_MAX)
        );
        let mut levels = vec![compact];
        if is_recent {
            let all = line::shorten(&task.keywords.join(", "), KEYWORDS_BYTES_MAX);
            let below = desc(&title, task);
            levels.push(format!("- {title}: {all}\n{below}"));
            add_learnings(&mut levels, by_task.get(&index).map_or(&[], Vec::as_slice));
        }
        let mut cited = Cited::default();
        for source in &task.sources {
            cited.files.insert(source.path.name().to_owned());
            cited.threads.insert(source.thread_id.clone());
        }
        let topic = Topic {
            scope,
            day,
            is_recent,
            levels,
            title: folded(&task.title),
            cited,
        };
        topics.push((Reverse(newest.updated_at), newest.thread_id.clone(), topic));
    }
    topics
}

/// Version 2 has no handbook to look things up in: each recap is pointed at.
fn recap_topics(group: &Group, scope: usize, recent: &BTreeSet<String>) -> Vec<RankedTopic> {
    let mut by_recap: BTreeMap<&Source, Vec<&Task>> = BTreeMap::new();
    for task in &group.tasks {
        for source in &task.sources {
            by_recap.entry(source).or_default().push(task);
        }
    }
    let mut by_thread: BTreeMap<&ThreadId, Vec<&Statement>> = BTreeMap::new();
    for one in learnings(group) {
        one.threads
            .iter()
            .for_each(|thread| by_thread.entry(thread).or_default().push(one));
    }
    let mut topics = Vec::new();
    for (source, tasks) in by_recap {
        let day = source.updated_at.date();
        let is_recent = recent.contains(&day);
        let file = source.path.name();
        let sentence = line::shorten(&source.sentence, SENTENCE_BYTES_MAX);
        let thread = &source.thread_id;
        let mut levels = Vec::new();
        if is_recent {
            let first = format!("- {RECAPS}/{file} — {sentence}; thread_id={thread}");
            levels.push(first.clone());
            if let Some(task) = tasks.first() {
                levels.push(format!("{first}\n{}", desc(&sentence, task)));
            }
            add_learnings(
                &mut levels,
                by_thread.get(thread).map_or(&[], Vec::as_slice),
            );
        } else {
            let short = line::shorten(&sentence, TITLE_BYTES_MAX);
            levels.push(format!("- {short} — {RECAPS}/{file}"));
        }
        let topic = Topic {
            scope,
            day,
            is_recent,
            levels,
            title: folded(&source.sentence),
            cited: Cited {
                files: BTreeSet::from([file.to_owned()]),
                threads: BTreeSet::from([thread.clone()]),
            },
        };
        topics.push((Reverse(source.updated_at), thread.clone(), topic));
    }
    topics
}

/// What was asked for, where the title does not say it, and how it ended.
fn desc(title: &str, task: &Task) -> String {
    let mut parts = Vec::new();
    let description = line::shorten(&task.description, DESCRIPTION_BYTES_MAX);
    let (in_title, in_description) = (folded(title), folded(&description));
    if !in_description.is_empty() && !in_title.starts_with(&in_description) {
        parts.push(description);
    }
    parts.push(task.outcome.label().to_owned());
    if task.sources.len() > 1 {
        parts.push(format!("{} sessions", task.sources.len()));
    }
    format!("  - desc: {}", parts.join("; "))
}

/// One more level with the newest things learned, if there are any.
fn add_learnings(levels: &mut Vec<String>, learned: &[&Statement]) {
    let Some(mut text) = levels.last().cloned().filter(|_| !learned.is_empty()) else {
        return;
    };
    for one in learned.iter().take(LEARNINGS_MAX) {
        text.push_str("\n  - learnings: ");
        text.push_str(&line::shorten(&one.text, LEARNING_BYTES_MAX));
    }
    levels.push(text);
}

/// What can be told below a topic, the best first. Preferences, tips and notes
/// have lines of their own.
fn learnings(group: &Group) -> Vec<&Statement> {
    let is_tip = |one: &Statement| one.kind != Kind::Said && one.threads.len() > 1;
    let is_learned = |one: &&Statement| {
        let has_own_line = one.kind == Kind::Preference || one.note.is_some() || is_tip(one);
        !one.is_external && !has_own_line
    };
    let mut learned: Vec<&Statement> = group.statements.iter().filter(is_learned).collect();
    learned.sort_by(|left, right| {
        let rank = |one: &Statement| (one.kind == Kind::Said, Reverse(one.newest_at));
        rank(left)
            .cmp(&rank(right))
            .then_with(|| left.text.cmp(&right.text))
    });
    learned
}

/// A statement with what it is ranked by.
struct Ranked<'f> {
    text: &'f str,
    features: &'f Features,
    is_from_note: bool,
    threads: BTreeSet<&'f ThreadId>,
    newest_at: Timestamp,
    scopes: BTreeSet<&'f str>,
}

/// Preferences, or tips: of the latter only what two sessions support.
fn lines(facts: &Facts, kinds: &[Kind]) -> Vec<Line> {
    let are_preferences = kinds.contains(&Kind::Preference);
    let mut said: Vec<Ranked<'_>> = Vec::new();
    for line in &facts.note_lines {
        if line.is_preference == are_preferences {
            said.push(Ranked {
                text: &line.text,
                features: &line.features,
                is_from_note: true,
                threads: BTreeSet::new(),
                newest_at: Timestamp::default(),
                scopes: BTreeSet::new(),
            });
        }
    }
    for group in &facts.groups {
        let of_kind = group
            .statements
            .iter()
            .filter(|one| kinds.contains(&one.kind));
        said.extend(of_kind.filter(|one| !one.is_external).map(|one| Ranked {
            text: &one.text,
            features: &one.features,
            is_from_note: one.note.is_some(),
            threads: one.threads.iter().collect(),
            newest_at: one.newest_at,
            scopes: BTreeSet::from([group.title.as_str()]),
        }));
    }
    let mut joined = join(said);
    joined.retain(|one| are_preferences || one.is_from_note || one.threads.len() > 1);
    joined.sort_by(|left, right| {
        let rank = |one: &Ranked<'_>| {
            (
                Reverse(one.is_from_note),
                Reverse(one.threads.len()),
                Reverse(one.newest_at),
            )
        };
        rank(left)
            .cmp(&rank(right))
            .then_with(|| left.threads.first().cmp(&right.threads.first()))
            .then_with(|| left.text.cmp(right.text))
    });
    joined.iter().map(line).collect()
}

/// One line for what was said in several projects; the newest wording.
fn join(said: Vec<Ranked<'_>>) -> Vec<Ranked<'_>> {
    let mut index = NearIndex::new(SAME_STATEMENT, said.iter().map(|one| one.features));
    let mut joined: Vec<Ranked<'_>> = Vec::new();
    let mut essences: BTreeMap<String, usize> = BTreeMap::new();
    for one in said {
        let near = index.near(one.features).into_iter();
        let mut same = near.filter(|place| joined[*place].features.is_same_as(one.features));
        let essence = tokens::essence(one.text).unwrap_or_else(|| one.features.folded.clone());
        let same = same.next().or_else(|| essences.get(&essence).copied());
        essences
            .entry(essence)
            .or_insert_with(|| same.unwrap_or(joined.len()));
        let Some(place) = same else {
            index.insert(one.features);
            joined.push(one);
            continue;
        };
        let known = &mut joined[place];
        // Of two ways to ask for one thing the one with less around it.
        let is_reasked = !known.features.is_same_as(one.features);
        let is_better = if is_reasked && one.is_from_note == known.is_from_note {
            one.text.len() <= known.text.len()
        } else {
            (one.is_from_note, one.newest_at) > (known.is_from_note, known.newest_at)
        };
        if is_better {
            known.text = one.text;
            known.features = one.features;
            known.is_from_note = one.is_from_note;
        }
        known.newest_at = known.newest_at.max(one.newest_at);
        known.threads.extend(one.threads);
        known.scopes.extend(one.scopes);
    }
    joined
}

/// What holds in one project says so: a rule that is too broad does harm.
fn line(one: &Ranked<'_>) -> Line {
    let mut text = format!("- {}", line::shorten(one.text, LINE_BYTES_MAX));
    if !one.is_from_note
        && one.scopes.len() == 1
        && let Some(scope) = one.scopes.first()
    {
        text.push_str(" (in ");
        text.push_str(scope);
        text.push(')');
    }
    if one.is_from_note {
        text.push(' ');
        text.push_str(NOTE_MARK);
    }
    Line {
        text,
        features: one.features.clone(),
    }
}

/// Counts only.
fn profile(facts: &Facts, groups: &[&Group]) -> Vec<String> {
    let [_, _, _, notes_start, resources_start] = PROFILE_STARTS;
    let mut lines = session_lines(groups);
    for (start, count) in [
        (notes_start, facts.note_count),
        (resources_start, facts.resource_count),
    ] {
        if count > 0 {
            lines.push(format!("{start}{count}."));
        }
    }
    lines
}

fn session_lines(groups: &[&Group]) -> Vec<String> {
    let tasks = groups.iter().flat_map(|group| &group.tasks);
    let sources = tasks.flat_map(|task| &task.sources);
    let sessions: BTreeMap<&ThreadId, &Source> =
        sources.map(|source| (&source.thread_id, source)).collect();
    let mut agents: BTreeMap<Agent, usize> = BTreeMap::new();
    let mut tools: BTreeMap<String, usize> = BTreeMap::new();
    let mut days: BTreeSet<String> = BTreeSet::new();
    for source in sessions.values() {
        days.insert(source.updated_at.date());
        if let Some(agent) = source.agent {
            *agents.entry(agent).or_default() += 1;
        }
        for tool in &source.tools {
            *tools.entry(tool.clone()).or_default() += 1;
        }
    }
    let (Some(first), Some(last)) = (days.first(), days.last()) else {
        return Vec::new();
    };
    let span = if first == last {
        first.clone()
    } else {
        format!("{first} to {last}")
    };
    let by_agent: Vec<String> = agents
        .into_iter()
        .map(|(agent, count)| format!("{agent} {count}"))
        .collect();
    let by_agent = if by_agent.is_empty() {
        String::new()
    } else {
        format!(" ({})", by_agent.join(", "))
    };
    let per_group = groups.iter().map(|group| {
        let sources = group.tasks.iter().flat_map(|task| &task.sources);
        let threads: BTreeSet<&ThreadId> = sources.map(|source| &source.thread_id).collect();
        (group.title.clone(), threads.len())
    });
    let [sessions_start, projects_start, tools_start, ..] = PROFILE_STARTS;
    let mut lines = vec![
        format!("{sessions_start}{}{by_agent}, {span}.", sessions.len()),
        format!(
            "{projects_start}{}; most sessions in {}.",
            groups.len(),
            most(per_group)
        ),
    ];
    if !tools.is_empty() {
        lines.push(format!("{tools_start}{}.", most(tools)));
    }
    lines
}

/// `a (9), b (7)`: the largest counts, names in order among equals.
fn most(counts: impl IntoIterator<Item = (String, usize)>) -> String {
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by(|left, right| (Reverse(left.1), &left.0).cmp(&(Reverse(right.1), &right.0)));
    counts.truncate(PROFILE_NAMES_MAX);
    let named = counts
        .iter()
        .map(|(name, count)| format!("{} ({count})", line::shorten(name, 60)));
    named.collect::<Vec<_>>().join(", ")
}
