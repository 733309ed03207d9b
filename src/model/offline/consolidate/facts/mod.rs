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
use crate::model::offline::consolidate::body::{self, RecapBody};
use crate::model::offline::consolidate::gate::Gate;
use crate::model::offline::consolidate::line;
use crate::model::offline::consolidate::tokens::Features;
use crate::model::offline::consolidate::{ResourceInput, RetireReason};
use crate::model::offline::shape::Outcome;

use self::statements::{drop_contradicted, join, promote_across_groups, statements_of};
use self::tasks::{join_tasks, tools};

mod statements;
mod tasks;

/// Most bytes of a resource's first line.
const RESOURCE_TITLE_BYTES_MAX: usize = 160;

/// Most bytes of what a recap's header says, as it is copied.
const NAME_BYTES_MAX: usize = 120;
const FOLDER_BYTES_MAX: usize = 400;
pub(super) const TRANSCRIPT_BYTES_MAX: usize = 1_000;

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
    /// Of the title.
    pub(super) features: Features,
    /// Of the newest session.
    pub(super) outcome: Outcome,
    pub(super) sources: Vec<Source>,
    pub(super) keywords: Vec<String>,
    /// What the person asked for, or the recap's context. May be empty.
    pub(super) description: String,
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
    /// When it was first said.
    pub(super) oldest_at: Timestamp,
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
            oldest_at: Timestamp::default(),
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
            cwd: header
                .cwd
                .as_ref()
                .map(|cwd| line::of_header(cwd.as_str(), FOLDER_BYTES_MAX)),
            rollout_path: line::of_header(header.rollout_path.as_str(), TRANSCRIPT_BYTES_MAX),
            sentence: line::of_header(sentence, FOLDER_BYTES_MAX),
            tools: tools(&body),
        };
        Self {
            recap,
            body,
            source,
        }
    }

    fn folder(&self) -> Option<String> {
        let cwd = line::clean(self.recap.header.cwd.as_ref()?.as_str());
        let cwd = cwd.as_str();
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
        let key = self.project().or_else(by_folder).unwrap_or_default();
        // The keys of notes and resources are not to be had by a name.
        if key.starts_with(EXTENSIONS) {
            return format!("./{key}");
        }
        key
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
        (key.clone(), line::of_header(&title, NAME_BYTES_MAX))
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
    let project = line::of_header(name(&key), NAME_BYTES_MAX);
    let (tasks, places) = join_tasks(recaps, &project, gate);
    let mut said = Vec::new();
    for (recap, task_indexes) in recaps.iter().zip(&places) {
        for (task, index) in recap.body.tasks.iter().zip(task_indexes) {
            if let Some(index) = index {
                said.extend(statements_of(task, *index, recap));
            }
        }
    }
    said.retain_mut(|statement| {
        if !gate.blocks(&statement.text) {
            return true;
        }
        gone.insert(statement.features.folded.clone(), RetireReason::Withheld);
        // A person put it in other words: those are the ones that hold.
        let reworded = gate.rewording(&statement.features);
        let reworded = reworded.filter(|_| !statement.is_external);
        if let Some((text, features)) = reworded {
            text.clone_into(&mut statement.text);
            statement.features = features.clone();
        }
        reworded.is_some()
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
