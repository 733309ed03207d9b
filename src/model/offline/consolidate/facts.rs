//! What the recaps say, put in order: projects, tasks, statements.
//!
//! Everything here is counted or copied. Two statements that say the same are
//! joined and the newer wording stays; of two that disagree the newer stays.
//!
//! # Order
//!
//! Recaps are read by time of their session, then thread id, so the order in
//! which they were handed in has no effect.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::id::ThreadId;
use crate::domain::item::Trust;
use crate::domain::path::{EXTENSIONS, TreePath};
use crate::domain::recap::Recap;
use crate::domain::session::Agent;
use crate::domain::time::Timestamp;
use crate::model::offline::consolidate::body::{self, RecapBody, TaskBody};
use crate::model::offline::consolidate::gate::Gate;
use crate::model::offline::consolidate::line;
use crate::model::offline::consolidate::tokens::{Features, NearIndex, SAME_STATEMENT, SAME_TASK};
use crate::model::offline::consolidate::{ResourceInput, RetireReason};
use crate::model::offline::shape::{ALWAYS, CORRECTION, Outcome};
use crate::text::cues;

/// Most bytes of a statement that are copied; the rest is in its recap.
const STATEMENT_BYTES_MAX: usize = 1_000;

/// Most bytes of a resource's first line.
const RESOURCE_TITLE_BYTES_MAX: usize = 160;

/// Most keywords of a task.
const KEYWORDS_MAX: usize = 10;

/// Most bytes of a keyword.
const KEYWORD_BYTES_MAX: usize = 48;

/// Least share of common tokens at which two subjects are compared further.
const SUBJECT_SHARE_MIN: f64 = 0.6;

/// What all recaps together say.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Facts {
    /// The project with the newest session first.
    pub(super) groups: Vec<Group>,
    /// Lines of notes that replace or repeat no statement of a recap.
    pub(super) note_lines: Vec<NoteLine>,
    /// How many notes and resources there are.
    pub(super) note_count: usize,
    pub(super) resource_count: usize,
    /// Statements that recaps make and that are left out, with the reason;
    /// by folded text.
    pub(super) gone: BTreeMap<String, RetireReason>,
}

/// One project: a task group of the handbook, a scope of the summary.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// Identity of the project, or the folder where there is none.
    pub(super) key: String,
    /// Its name, made distinguishable from other projects of that name.
    pub(super) title: String,
    pub(super) cwd: Option<String>,
    pub(super) newest_at: Timestamp,
    /// By time of their first session.
    pub(super) tasks: Vec<Task>,
    /// By time of their first support.
    pub(super) statements: Vec<Statement>,
}

/// What was done once, or again in further sessions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Task {
    pub(super) title: String,
    /// Of the newest session.
    pub(super) outcome: Outcome,
    pub(super) sources: Vec<Source>,
    pub(super) keywords: Vec<String>,
    /// What the person asked for, or the recap's context. May be empty.
    pub(super) description: String,
}

impl Task {
    pub(super) fn newest_at(&self) -> Timestamp {
        let times = self.sources.iter().map(|source| source.updated_at);
        times.max().unwrap_or_default()
    }
}

/// A recap that a task rests on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    pub(super) updated_at: Timestamp,
    pub(super) thread_id: ThreadId,
    pub(super) path: TreePath,
    pub(super) agent: Option<Agent>,
    pub(super) cwd: Option<String>,
    pub(super) rollout_path: String,
    /// The recap in one sentence: its title.
    pub(super) sentence: String,
    /// First words of commands and files named in it, for the profile.
    pub(super) tools: BTreeSet<String>,
}

/// Where a statement belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    /// Meant beyond its task.
    Preference,
    /// Said in one task, without a word that makes it a default.
    Said,
    Knowledge,
    Failure,
}

/// A line that only a note supports.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NoteLine {
    pub(super) note: TreePath,
    /// Without the note mark.
    pub(super) text: String,
    pub(super) features: Features,
    pub(super) is_preference: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) features: Features,
    pub(super) kind: Kind,
    /// Indexes into the group's tasks, ascending.
    pub(super) tasks: BTreeSet<usize>,
    pub(super) threads: BTreeSet<ThreadId>,
    pub(super) newest_at: Timestamp,
    pub(super) is_default: bool,
    /// Only external content supports it.
    pub(super) is_external: bool,
    /// The note that put these words here.
    pub(super) note: Option<TreePath>,
}

/// Reads `recaps`, without those that say nothing or are withheld.
pub(super) fn gather(
    recaps: &[(&TreePath, &Recap)],
    resources: &[ResourceInput],
    gate: &Gate<'_>,
) -> Facts {
    let mut read: Vec<ReadRecap<'_>> = recaps
        .iter()
        .filter(|(_, recap)| !recap.is_no_op())
        .filter(|(_, recap)| !gate.blocks_thread(&recap.header.thread_id, recap.header.updated_at))
        .map(|(path, recap)| ReadRecap::new(path, recap))
        .collect();
    read.sort_by(|left, right| left.source.cmp(&right.source));

    let mut by_key: BTreeMap<String, Vec<ReadRecap<'_>>> = BTreeMap::new();
    let projects = projects_of_folders(&read);
    for recap in read {
        by_key.entry(recap.key(&projects)).or_default().push(recap);
    }
    let titles = titles(by_key.keys());
    let mut facts = Facts {
        resource_count: resources.len(),
        ..Facts::default()
    };
    for (key, recaps) in by_key {
        let title = titles.get(&key).cloned().unwrap_or_default();
        let group = gather_group(key, title, &recaps, gate, &mut facts.gone);
        facts.groups.push(group);
    }
    facts.groups.extend(gather_resources(resources, gate));
    promote_across_groups(&mut facts.groups);
    let newest_first = |group: &Group| (std::cmp::Reverse(group.newest_at), group.key.clone());
    facts.groups.sort_by_key(newest_first);
    facts
}

/// Per extension, one line for each resource: what it is called and where it
/// lies. What it says stays there.
fn gather_resources(resources: &[ResourceInput], gate: &Gate<'_>) -> Vec<Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let mut sorted: Vec<&ResourceInput> = resources.iter().collect();
    sorted.sort_by_key(|resource| &resource.path);
    for resource in sorted {
        let parts: Vec<&str> = resource.path.as_str().split('/').collect();
        let [_, extension, ..] = parts.as_slice() else {
            continue;
        };
        let first = resource.text.unredacted().lines().map(line::clean);
        let name = resource.path.name().to_owned();
        let title = first
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or(name);
        let title = line::without_pointers(&line::shorten(&title, RESOURCE_TITLE_BYTES_MAX));
        let is_external = resource.trust == Trust::External;
        let mark = if is_external {
            " (external source)"
        } else {
            ""
        };
        let text = format!("{title} — {}{mark}", resource.path);
        if gate.blocks(&text) || gate.blocks(&title) {
            continue;
        }
        let group = groups
            .entry((*extension).to_owned())
            .or_insert_with(|| Group {
                key: format!("{EXTENSIONS}/{extension}"),
                title: format!("extension {extension}"),
                cwd: None,
                newest_at: Timestamp::default(),
                tasks: Vec::new(),
                statements: Vec::new(),
            });
        group.statements.push(Statement {
            features: Features::of(&text),
            text,
            kind: Kind::Knowledge,
            tasks: BTreeSet::new(),
            threads: BTreeSet::new(),
            newest_at: Timestamp::default(),
            is_default: false,
            // A pointer is no support for anything, whatever the trust.
            is_external: true,
            note: None,
        });
    }
    groups.into_values().collect()
}

/// A recap with its body understood.
struct ReadRecap<'a> {
    recap: &'a Recap,
    body: RecapBody,
    source: Source,
}

impl<'a> ReadRecap<'a> {
    fn new(path: &TreePath, recap: &'a Recap) -> Self {
        let body = body::read(recap);
        let header = &recap.header;
        let first_task = body.tasks.first().map(|task| task.title.as_str());
        let sentence = [
            body.title.as_str(),
            first_task.unwrap_or_default(),
            &body.context,
        ]
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or("a session");
        let source = Source {
            updated_at: header.updated_at,
            thread_id: header.thread_id.clone(),
            path: path.clone(),
            agent: header.agent,
            cwd: header.cwd.as_ref().map(|cwd| line::clean(cwd.as_str())),
            rollout_path: line::clean(header.rollout_path.as_str()),
            sentence: sentence.to_owned(),
            tools: tools(&body),
        };
        Self {
            recap,
            body,
            source,
        }
    }

    fn folder(&self) -> Option<String> {
        let cwd = self.source.cwd.as_deref()?;
        let trimmed = cwd.trim_end_matches(['/', '\\']);
        Some(if trimmed.is_empty() { cwd } else { trimmed }.to_owned())
    }

    fn project(&self) -> Option<String> {
        let project = self.recap.header.project.as_ref()?;
        Some(line::clean(project.as_str())).filter(|text| !text.is_empty())
    }

    fn key(&self, projects: &BTreeMap<String, String>) -> String {
        let by_folder = || {
            let folder = self.folder()?;
            Some(projects.get(&folder).cloned().unwrap_or(folder))
        };
        self.project().or_else(by_folder).unwrap_or_default()
    }
}

/// Folders whose project another recap names. A recap that a person or
/// another tool wrote often has only the folder.
fn projects_of_folders(recaps: &[ReadRecap<'_>]) -> BTreeMap<String, String> {
    recaps
        .iter()
        .filter_map(|recap| Some((recap.folder()?, recap.project()?)))
        .collect()
}

/// Short names; two projects with one name are told apart by their identity.
fn titles<'a>(keys: impl Iterator<Item = &'a String> + Clone) -> BTreeMap<String, String> {
    let mut bearers: BTreeMap<String, u32> = BTreeMap::new();
    for key in keys.clone() {
        *bearers.entry(name(key).to_owned()).or_default() += 1;
    }
    keys.map(|key| {
        let short = name(key).to_owned();
        let title = match bearers.get(&short) {
            Some(1) | None => short,
            Some(_) => format!("{short} ({key})"),
        };
        (key.clone(), title)
    })
    .collect()
}

/// What people call a project.
fn name(key: &str) -> &str {
    if key.is_empty() {
        return "no folder";
    }
    let trimmed = key.trim_end_matches(['/', '\\']);
    match trimmed.rsplit(['/', '\\']).next() {
        Some(name) if !name.is_empty() => name,
        _ => key,
    }
}

fn gather_group(
    key: String,
    title: String,
    recaps: &[ReadRecap<'_>],
    gate: &Gate<'_>,
    gone: &mut BTreeMap<String, RetireReason>,
) -> Group {
    let (tasks, places) = join_tasks(recaps, name(&key), gate);
    let mut said = Vec::new();
    for (recap, task_indexes) in recaps.iter().zip(&places) {
        for (task, index) in recap.body.tasks.iter().zip(task_indexes) {
            if let Some(index) = index {
                said.extend(statements_of(task, *index, recap));
            }
        }
    }
    said.retain(|statement| {
        let blocked = gate.blocks(&statement.text);
        if blocked {
            gone.insert(statement.features.folded.clone(), RetireReason::Withheld);
        }
        !blocked
    });
    let statements = drop_contradicted(join(said, gone), gone);
    let newest = recaps.iter().max_by_key(|recap| &recap.source);
    Group {
        cwd: newest.and_then(|recap| recap.source.cwd.clone()),
        newest_at: newest.map_or_else(Timestamp::default, |recap| recap.source.updated_at),
        key,
        title,
        tasks,
        statements,
    }
}

/// The tasks of a group, and per recap where each of its tasks went; `None`
/// for one whose title is withheld.
fn join_tasks(
    recaps: &[ReadRecap<'_>],
    project: &str,
    gate: &Gate<'_>,
) -> (Vec<Task>, Vec<Vec<Option<usize>>>) {
    let features: Vec<Vec<Features>> = recaps
        .iter()
        .map(|recap| {
            let titles = recap.body.tasks.iter().map(|task| task.title.as_str());
            titles.map(Features::of).collect()
        })
        .collect();
    let mut index = NearIndex::new(SAME_TASK, features.iter().flatten());
    let mut tasks: Vec<Task> = Vec::new();
    let mut places = Vec::new();
    for (recap, features) in recaps.iter().zip(&features) {
        let mut of_recap = Vec::new();
        for (task, features) in recap.body.tasks.iter().zip(features) {
            if gate.blocks(&task.title) {
                of_recap.push(None);
                continue;
            }
            let found = index.near(features).into_iter().next();
            let place = found.unwrap_or_else(|| {
                tasks.push(Task {
                    title: task.title.clone(),
                    outcome: Outcome::Uncertain,
                    sources: Vec::new(),
                    keywords: Vec::new(),
                    description: String::new(),
                });
                index.insert(features)
            });
            add_source(&mut tasks[place], task, recap, project);
            of_recap.push(Some(place));
        }
        places.push(of_recap);
    }
    (tasks, places)
}

/// Recaps come oldest first, so what is set here is the newest session's word.
fn add_source(known: &mut Task, task: &TaskBody, recap: &ReadRecap<'_>, project: &str) {
    if known.sources.last() != Some(&recap.source) {
        known.sources.push(recap.source.clone());
    }
    known.outcome = task.outcome.unwrap_or(Outcome::Uncertain);
    for keyword in keywords(task, project) {
        let is_known = known.keywords.contains(&keyword);
        if !is_known && known.keywords.len() < KEYWORDS_MAX {
            known.keywords.push(keyword);
        }
    }
    let asked = task
        .requests
        .first()
        .map(|text| line::without_evidence(text));
    let context = Some(recap.body.context.clone());
    let described = [asked, context].into_iter().flatten();
    let mut described = described.filter(|text| !text.is_empty());
    if let Some(description) = described.next() {
        known.description = description;
    }
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
            let spans = code_spans(text).map(|span| span.replace(',', " "));
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
fn tools(body: &RecapBody) -> BTreeSet<String> {
    let mut tools = BTreeSet::new();
    for task in &body.tasks {
        for text in [&task.steps, &task.failures, &task.knowledge]
            .into_iter()
            .flatten()
        {
            for span in code_spans(text) {
                tools.extend(tool(span));
            }
        }
    }
    tools
}

fn tool(span: &str) -> Option<String> {
    let mut words = span.split_whitespace();
    let first = words.next()?;
    // A command has arguments; a single word may be a name of anything.
    words.next()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_+".contains(c);
    let fits = first.len() <= 20 && first.starts_with(|c: char| c.is_ascii_lowercase());
    (fits && first.chars().all(is_name)).then(|| first.to_owned())
}

fn statements_of(task: &TaskBody, index: usize, recap: &ReadRecap<'_>) -> Vec<Statement> {
    let lists = [
        (Kind::Said, &task.preferences),
        (Kind::Knowledge, &task.knowledge),
        (Kind::Failure, &task.failures),
    ];
    let mut statements = Vec::new();
    for (kind, texts) in lists {
        statements.extend(
            texts
                .iter()
                .filter_map(|text| statement(kind, text, index, recap)),
        );
    }
    statements
}

fn statement(kind: Kind, text: &str, task: usize, recap: &ReadRecap<'_>) -> Option<Statement> {
    let bare = line::without_evidence(text);
    let (bare, says_external) = without_external_mark(&bare);
    let (bare, says_default) = match bare.strip_prefix(ALWAYS) {
        Some(rest) => (rest, true),
        None => (bare.strip_prefix(CORRECTION).unwrap_or(bare), false),
    };
    let text = line::shorten(&line::clean(bare), STATEMENT_BYTES_MAX);
    let text = line::without_pointers(&text);
    let features = Features::of(&text);
    if features.tokens.is_empty() {
        return None;
    }
    // A person's words stay theirs in a session that also saw the web.
    let is_quotation = kind == Kind::Said && text.starts_with(['"', '“', '„', '«', '「', '『']);
    let is_external =
        says_external || (recap.recap.header.trust == Some(Trust::External) && !is_quotation);
    Some(Statement {
        is_default: kind == Kind::Said
            && !is_external
            && (says_default || cues::find(&text).states_default()),
        text,
        features,
        kind,
        tasks: BTreeSet::from([task]),
        threads: BTreeSet::from([recap.source.thread_id.clone()]),
        newest_at: recap.source.updated_at,
        is_external,
        note: None,
    })
}

fn without_external_mark(text: &str) -> (&str, bool) {
    for mark in ["[external]", "(external)"] {
        if let Some(rest) = text.strip_suffix(mark).or(text.strip_prefix(mark)) {
            return (rest.trim(), true);
        }
    }
    (text, false)
}

/// Joins statements of one kind that say the same, oldest first.
fn join(said: Vec<Statement>, gone: &mut BTreeMap<String, RetireReason>) -> Vec<Statement> {
    let mut index = NearIndex::new(SAME_STATEMENT, said.iter().map(|one| &one.features));
    let mut joined: Vec<Statement> = Vec::new();
    for one in said {
        let near = index.near(&one.features);
        let same = near.into_iter().find(|place| {
            let known = &joined[*place];
            known.kind == one.kind && known.features.is_same_as(&one.features)
        });
        match same {
            Some(place) => join_two(&mut joined[place], one, gone),
            None => {
                index.insert(&one.features);
                joined.push(one);
            }
        }
    }
    for one in &mut joined {
        // Two tasks in one session are one occasion.
        let is_supported = one.tasks.len() > 1 && one.threads.len() > 1;
        if one.kind == Kind::Said && !one.is_external && (one.is_default || is_supported) {
            one.kind = Kind::Preference;
        }
    }
    once_in_all_kinds(joined)
}

/// The same words in two lists are one statement: the first kind has it.
fn once_in_all_kinds(joined: Vec<Statement>) -> Vec<Statement> {
    let mut best: BTreeMap<String, Kind> = BTreeMap::new();
    for one in &joined {
        let kind = best.entry(one.features.folded.clone()).or_insert(one.kind);
        *kind = one.kind.min(*kind);
    }
    let mut supports: BTreeMap<String, Vec<&Statement>> = BTreeMap::new();
    for one in &joined {
        supports
            .entry(one.features.folded.clone())
            .or_default()
            .push(one);
    }
    let kept = joined
        .iter()
        .filter(|one| best.get(&one.features.folded) == Some(&one.kind));
    kept.map(|one| {
        let mut one = one.clone();
        for other in supports.get(&one.features.folded).into_iter().flatten() {
            if other.is_external == one.is_external {
                one.tasks.extend(&other.tasks);
                one.threads.extend(other.threads.iter().cloned());
                one.newest_at = one.newest_at.max(other.newest_at);
            }
        }
        one
    })
    .collect()
}

/// The newer wording stays: where the two differ, it is the later word. What
/// only a fetched text says never rewords what the person said.
fn join_two(known: &mut Statement, newer: Statement, gone: &mut BTreeMap<String, RetireReason>) {
    if known.is_external || !newer.is_external {
        if known.features.folded != newer.features.folded {
            gone.insert(known.features.folded.clone(), RetireReason::Joined);
            gone.remove(&newer.features.folded);
        }
        known.text = newer.text;
        known.features = newer.features;
        known.newest_at = newer.newest_at;
    }
    if known.is_external == newer.is_external {
        known.tasks.extend(newer.tasks);
        known.threads.extend(newer.threads);
    } else if known.is_external {
        known.tasks = newer.tasks;
        known.threads = newer.threads;
    }
    known.is_external &= newer.is_external;
    known.is_default |= newer.is_default;
}

/// Leaves out what a newer statement of another session says otherwise.
fn drop_contradicted(
    statements: Vec<Statement>,
    gone: &mut BTreeMap<String, RetireReason>,
) -> Vec<Statement> {
    let subjects: Vec<Features> = statements
        .iter()
        .map(|one| one.features.subject())
        .collect();
    let mut by_age: Vec<usize> = (0..statements.len())
        .filter(|place| statements[*place].kind != Kind::Failure)
        .collect();
    by_age.sort_by_key(|place| {
        let one = &statements[*place];
        (one.newest_at, one.threads.last().cloned())
    });
    let mut index = NearIndex::new(SUBJECT_SHARE_MIN, subjects.iter());
    let mut indexed: Vec<usize> = Vec::new();
    let mut dropped = BTreeSet::new();
    for place in by_age {
        let newer = &statements[place];
        for found in index.near(&subjects[place]) {
            let older_place = indexed[found];
            let older = &statements[older_place];
            let may_overrule = older.is_external || !newer.is_external;
            if may_overrule
                && older.threads.is_disjoint(&newer.threads)
                && newer.features.contradicts(&older.features)
            {
                dropped.insert(older_place);
            }
        }
        index.insert(&subjects[place]);
        indexed.push(place);
    }
    let mut kept = Vec::new();
    for (place, one) in statements.into_iter().enumerate() {
        if dropped.contains(&place) {
            gone.insert(one.features.folded, RetireReason::Contradicted);
        } else {
            kept.push(one);
        }
    }
    kept
}

/// What was said once in each of two projects is meant beyond both.
fn promote_across_groups(groups: &mut [Group]) {
    let mut places: Vec<(usize, usize)> = Vec::new();
    for (group_index, group) in groups.iter().enumerate() {
        for (index, one) in group.statements.iter().enumerate() {
            if matches!(one.kind, Kind::Said | Kind::Preference) && !one.is_external {
                places.push((group_index, index));
            }
        }
    }
    let of = |groups: &[Group], (group, index): (usize, usize)| -> Features {
        groups[group].statements[index].features.clone()
    };
    let features: Vec<Features> = places.iter().map(|place| of(groups, *place)).collect();
    let mut index = NearIndex::new(SAME_STATEMENT, features.iter());
    let mut promoted = BTreeSet::new();
    for (here, one) in features.iter().enumerate() {
        for there in index.near(one) {
            let is_other_group = places[there].0 != places[here].0;
            if is_other_group && features[there].is_same_as(one) {
                promoted.extend([places[here], places[there]]);
            }
        }
        index.insert(one);
    }
    for (group, index) in promoted {
        groups[group].statements[index].kind = Kind::Preference;
    }
}

impl Group {
    /// Takes tasks out, with the statements that only they support.
    pub(super) fn remove_tasks(
        &mut self,
        goes: &BTreeSet<usize>,
        reason: RetireReason,
        gone: &mut BTreeMap<String, RetireReason>,
    ) {
        let mut moved = BTreeMap::new();
        let mut kept = Vec::new();
        for (index, task) in std::mem::take(&mut self.tasks).into_iter().enumerate() {
            if !goes.contains(&index) {
                moved.insert(index, kept.len());
                kept.push(task);
            }
        }
        self.tasks = kept;
        self.statements.retain_mut(|one| {
            let tasks = std::mem::take(&mut one.tasks);
            let left = tasks.iter().filter_map(|task| moved.get(task).copied());
            one.tasks = left.collect();
            let stays = !one.tasks.is_empty() || one.note.is_some();
            if !stays {
                gone.insert(one.features.folded.clone(), reason);
            }
            stays
        });
    }
}
