//! The handbook, brought up to date in place.
//!
//! The head's handbook is the starting point. Entries that these rules made
//! before follow the facts: they are reworded, renumbered, dropped. Entries of
//! a person or another worker stay word for word where they are while something
//! they rest on is in the inputs. What is new comes at the end of its list; a
//! new project comes first.
//!
//! Where another worker wrote, what the facts had before and the head has not
//! was left out on purpose, and is not put back. What a person takes out is
//! withheld, so it is not among the facts; a task is not, so one that is gone
//! stays gone.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::domain::id::ThreadId;
use crate::domain::path::HANDBOOK;
use crate::domain::time::Timestamp;
use crate::model::offline::consolidate::RetireReason;
use crate::model::offline::consolidate::context::{Context, is_group_title};
use crate::model::offline::consolidate::facts::{Facts, Group, Kind, Source, Statement, Task};
use crate::model::offline::consolidate::labels::{self, Label};
use crate::model::offline::consolidate::line::{self, Cited};
use crate::model::offline::consolidate::outline::{self, Block, Section};
use crate::model::offline::consolidate::tokens::Features;

use self::lists::Scope;
use self::render::{NOTES_KEY, file_bullet, lead_lines, lead_only, notes_group};
use self::tasks::{HeadTask, TaskFate, head_tasks, is_same_task};

pub(super) use self::render::{NOTES_TITLE, notes_lead};
pub(super) use self::tasks::KEYWORDS_TITLE;

mod lists;
mod render;
mod tasks;

/// What a handbook without any entry says.
const EMPTY: &str = "<!-- no task groups yet -->";

/// The new handbook, and what the head's had that it has not.
pub(super) struct Updated {
    pub(super) text: String,
    pub(super) retired: Vec<(String, RetireReason)>,
    /// Folded titles of tasks that left.
    pub(super) tasks_gone: HashSet<String>,
}

pub(super) fn update(context: &Context<'_>) -> Updated {
    let head = &context.head_handbook;
    let new = with_notes(&context.new);
    let old = with_notes(&context.old);
    let mut work = Work {
        context,
        old: &old,
        new: &new,
        old_texts: texts(&old),
        new_texts: texts(&new),
        old_files: file_bullets(&old),
        head_texts: head_texts(head),
        head_is_blank: !head.children.iter().any(is_group),
        is_tended: is_tended(context, &old, &new),
        written: HashSet::new(),
        retired: Vec::new(),
        tasks_gone: HashSet::new(),
    };
    let mut file = Section::default();
    let is_placeholder = |block: &Block| block.text.trim() == EMPTY;
    let preamble = head.blocks.iter().filter(|block| !is_placeholder(block));
    file.blocks = preamble.cloned().collect();
    file.children = work.sections(head);
    if file.children.is_empty() && file.blocks.is_empty() {
        file.blocks.push(Block::paragraph(EMPTY));
    }
    Updated {
        text: outline::print(&file),
        retired: work.retired,
        tasks_gone: work.tasks_gone,
    }
}

/// The groups of `facts`, and one for the lines of notes that stand alone.
fn with_notes(facts: &Facts) -> Vec<Group> {
    let mut groups = facts.groups.clone();
    let statements: Vec<Statement> = facts
        .note_lines
        .iter()
        .map(|line| Statement {
            text: line.text.clone(),
            features: line.features.clone(),
            kind: if line.is_preference {
                Kind::Preference
            } else {
                Kind::Knowledge
            },
            tasks: BTreeSet::new(),
            threads: BTreeSet::new(),
            newest_at: Timestamp::default(),
            oldest_at: Timestamp::default(),
            is_default: false,
            is_external: false,
            note: Some(line.note.clone()),
        })
        .collect();
    if !statements.is_empty() {
        groups.push(notes_group(statements));
    }
    groups
}

/// Whether another worker wrote an entry or a task of the head's handbook.
fn is_tended(context: &Context<'_>, old: &[Group], new: &[Group]) -> bool {
    let mut known: HashMap<&str, Vec<&Task>> = HashMap::new();
    for task in old.iter().chain(new).flat_map(|group| &group.tasks) {
        for source in &task.sources {
            known.entry(source.path.name()).or_default().push(task);
            known
                .entry(source.thread_id.as_str())
                .or_default()
                .push(task);
        }
    }
    let is_foreign = |task: &HeadTask<'_>| {
        let files = task.cited.files.iter().map(String::as_str);
        let mut cited = files.chain(task.cited.threads.iter().map(ThreadId::as_str));
        let is_known = |name: &str| {
            let mut tasks = known.get(name).into_iter().flatten();
            tasks.any(|one| is_same_task(one, task))
        };
        !context.is_person(HANDBOOK, &task.section.heading) && !cited.any(is_known)
    };
    let groups = context.head_handbook.children.iter();
    context.has_foreign(HANDBOOK) || groups.flat_map(head_tasks).any(|task| is_foreign(&task))
}

fn texts(groups: &[Group]) -> HashSet<String> {
    let statements = groups.iter().flat_map(|group| &group.statements);
    statements.map(|one| one.features.folded.clone()).collect()
}

fn file_bullets(groups: &[Group]) -> HashSet<String> {
    let tasks = groups.iter().flat_map(|group| &group.tasks);
    tasks
        .flat_map(|task| &task.sources)
        .map(file_bullet)
        .collect()
}

fn head_texts(section: &Section) -> HashSet<String> {
    let mut texts = HashSet::new();
    let own = section.blocks.iter().map(|block| folded(&block.text));
    texts.extend(own);
    for child in &section.children {
        texts.extend(head_texts(child));
    }
    texts
}

fn folded(text: &str) -> String {
    Features::of(line::core(text)).folded
}

/// The parts of a task group, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    Task,
    Preferences,
    Knowledge,
    Failures,
}

impl Slot {
    const LISTS: [Self; 3] = [Self::Preferences, Self::Knowledge, Self::Failures];

    fn of(title: &str) -> Option<Self> {
        if labels::task_title(title).is_some() {
            return Some(Self::Task);
        }
        match labels::find(title) {
            Some((Label::Preferences, "")) => Some(Self::Preferences),
            Some((Label::Knowledge, "")) => Some(Self::Knowledge),
            Some((Label::Failures, "")) => Some(Self::Failures),
            _ => None,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Task => "Task",
            Self::Preferences => "User preferences",
            Self::Knowledge => "Reusable knowledge",
            Self::Failures => "Failures and how to do differently",
        }
    }

    const fn kind(self) -> Kind {
        match self {
            Self::Task => Kind::Said,
            Self::Preferences => Kind::Preference,
            Self::Knowledge => Kind::Knowledge,
            Self::Failures => Kind::Failure,
        }
    }
}

struct Work<'a> {
    context: &'a Context<'a>,
    old: &'a [Group],
    new: &'a [Group],
    old_texts: HashSet<String>,
    new_texts: HashSet<String>,
    /// The file bullets that the old groups have.
    old_files: HashSet<String>,
    /// Folded texts of all blocks of the head.
    head_texts: HashSet<String>,
    /// The head has no group at all: what was there is made anew.
    head_is_blank: bool,
    /// Another worker wrote in it: what is not there was left out on purpose.
    /// What a person takes out is withheld instead.
    is_tended: bool,
    /// Folded statements that stand in the new file already.
    written: HashSet<(String, String)>,
    retired: Vec<(String, RetireReason)>,
    tasks_gone: HashSet<String>,
}

impl Work<'_> {
    fn sections(&mut self, head: &Section) -> Vec<Section> {
        let places = self.match_groups(head);
        let mut sections: Vec<Section> = Vec::new();
        let mut first_group = None;
        for (index, section) in head.children.iter().enumerate() {
            let is_group = is_group(section);
            let (old, new) = places.get(&index).copied().unwrap_or_default();
            let old = old.map(|at| &self.old[at]);
            let new = new.map(|at| &self.new[at]);
            let updated = self.group(section, old, new);
            let updated = updated.or_else(|| self.kept_heading(section));
            if let Some(updated) = updated {
                if is_group {
                    first_group.get_or_insert(sections.len());
                }
                sections.push(updated);
            }
        }
        let taken: BTreeSet<usize> = places.values().filter_map(|(_, new)| *new).collect();
        let mut added = Vec::new();
        let mut added_last = Vec::new();
        for (at, group) in self.new.iter().enumerate() {
            if taken.contains(&at) {
                continue;
            }
            let old = self.old.iter().find(|old| old.key == group.key);
            let empty = Section::new(1, &format!("Task Group: {}", group.title));
            let section = self.group(&empty, old, Some(group));
            let is_project = group.key != NOTES_KEY && !group.tasks.is_empty();
            let list = if is_project {
                &mut added
            } else {
                &mut added_last
            };
            list.extend(section);
        }
        let at = first_group.unwrap_or(sections.len());
        sections.splice(at..at, added);
        sections.extend(added_last);
        // Where there are inputs there is a group, so that the file is valid.
        if self.context.inputs.has_any() && !sections.iter().any(is_group) {
            sections.push(lead_only(&notes_group(Vec::new())));
        }
        sections
    }

    /// A heading that a person wrote stays though nothing is below it.
    fn kept_heading(&self, section: &Section) -> Option<Section> {
        self.context
            .is_person(HANDBOOK, &section.heading)
            .then(|| Section {
                level: section.level,
                heading: section.heading.clone(),
                ..Section::default()
            })
    }

    /// For the head's groups their old and new selves: by title, else by the
    /// recaps they cite. No group has two places.
    fn match_groups(&self, head: &Section) -> BTreeMap<usize, (Option<usize>, Option<usize>)> {
        let mut matched = BTreeMap::new();
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let groups = || {
            head.children
                .iter()
                .enumerate()
                .filter(|(_, section)| is_group(section))
        };
        let find = |groups: &[Group], key: &str| groups.iter().position(|group| group.key == key);
        for (index, section) in groups() {
            let title = group_title(section);
            let titled = |groups: &[Group]| groups.iter().position(|group| group.title == title);
            let old = titled(self.old);
            // A project whose title changed is known by its key, one whose
            // identity changed by its title.
            let moved = old.and_then(|old| find(self.new, &self.old[old].key));
            let new = moved.or_else(|| titled(self.new));
            let key = new
                .map(|at| &self.new[at].key)
                .or(old.map(|at| &self.old[at].key));
            if let Some(key) = key
                && taken.insert(key.clone())
            {
                matched.insert(index, (old.or_else(|| find(self.old, key)), new));
            }
        }
        for (index, section) in groups() {
            if matched.contains_key(&index) {
                continue;
            }
            let mut cited = Cited::default();
            cite_all(section, &mut cited);
            let count = |group: &Group| {
                let sources = group.tasks.iter().flat_map(|task| &task.sources);
                sources.filter(|source| cites(&cited, source)).count()
            };
            let free = self
                .new
                .iter()
                .chain(self.old)
                .filter(|group| !taken.contains(&group.key));
            let voted = free
                .map(|group| (count(group), group))
                .filter(|(votes, _)| *votes > 0);
            // Of equals the first: newer facts before older ones.
            let best = voted.reduce(|best, next| if next.0 > best.0 { next } else { best });
            if let Some((_, group)) = best {
                taken.insert(group.key.clone());
                matched.insert(
                    index,
                    (find(self.old, &group.key), find(self.new, &group.key)),
                );
            }
        }
        matched
    }

    /// A group of the head, or an empty one, with the facts applied; `None`
    /// when nothing is left of it.
    fn group(
        &mut self,
        head: &Section,
        old: Option<&Group>,
        new: Option<&Group>,
    ) -> Option<Section> {
        let head_tasks = head_tasks(head);
        let fates: Vec<TaskFate> = head_tasks
            .iter()
            .map(|task| self.task_fate(task, old, new))
            .collect();
        let added = self.added_tasks(&head_tasks, &fates, old, new);
        let numbers = self.numbers(head, &head_tasks, &fates, &added, new);
        let scope = Scope {
            old,
            new,
            numbers: &numbers,
        };
        let mut parts: Vec<(Slot, Section)> = Vec::new();
        let mut slot = Slot::Task;
        let mut at_task = 0;
        for child in &head.children {
            slot = Slot::of(child.title()).unwrap_or(slot);
            let part = if is_task(child) {
                at_task += 1;
                self.head_task(&head_tasks[at_task - 1], &fates[at_task - 1], &scope)
            } else if Slot::of(child.title()).is_some() {
                Some(self.list(child, slot, None, &scope)).filter(|part| !part.is_empty())
            } else {
                self.foreign_section(child, &scope)
            };
            parts.extend(part.map(|part| (slot, part)));
        }
        for index in added {
            let part = self.task(&Section::default(), index, &scope);
            insert(&mut parts, Slot::Task, part);
        }
        for slot in Slot::LISTS {
            if !head
                .children
                .iter()
                .any(|child| Slot::of(child.title()) == Some(slot))
            {
                let part = self.list(&Section::new(2, slot.title()), slot, None, &scope);
                if !part.is_empty() {
                    insert(&mut parts, slot, part);
                }
            }
        }
        let lead = self.lead(head, old, new);
        let is_group = is_group(head);
        if parts.is_empty() && (is_group || lead.is_empty()) {
            return None;
        }
        Some(Section {
            level: head.level,
            heading: heading(head, old, new),
            blocks: lead,
            children: parts.into_iter().map(|(_, part)| part).collect(),
        })
    }

    /// The lines between a group's heading and its first part.
    fn lead(&mut self, head: &Section, old: Option<&Group>, new: Option<&Group>) -> Vec<Block> {
        if !is_group(head) {
            return self.foreign_blocks(&head.blocks, &|_| None);
        }
        let Some(new) = new else {
            return head.blocks.clone();
        };
        if head.blocks.is_empty() {
            return vec![Block::paragraph(lead_lines(new).join("\n"))];
        }
        let Some(old) = old else {
            return head.blocks.clone();
        };
        let pairs: Vec<(String, String)> =
            lead_lines(old).into_iter().zip(lead_lines(new)).collect();
        let renew = |text: &str| {
            let lines = text.lines().map(|line| {
                let pair = pairs.iter().find(|(old, _)| old == line);
                pair.map_or(line, |(_, new)| new)
            });
            lines.collect::<Vec<_>>().join("\n")
        };
        let blocks = head.blocks.iter();
        blocks
            .map(|block| Block {
                text: renew(&block.text),
                ..block.clone()
            })
            .collect()
    }
}

/// Puts a part behind the last one of its slot or an earlier slot.
fn insert(parts: &mut Vec<(Slot, Section)>, slot: Slot, part: Section) {
    let behind = parts.iter().rposition(|(other, _)| *other <= slot);
    parts.insert(behind.map_or(0, |at| at + 1), (slot, part));
}

fn is_group(section: &Section) -> bool {
    section.level == 1 && is_group_title(section.title())
}

fn group_title(section: &Section) -> &str {
    let title = section.title();
    title.split_once(':').map_or(title, |(_, name)| name.trim())
}

/// The heading follows the facts unless somebody gave it other words.
fn heading(head: &Section, old: Option<&Group>, new: Option<&Group>) -> String {
    let is_ours = is_group(head) && old.is_some_and(|old| group_title(head) == old.title);
    match new {
        Some(new) if is_ours => format!("# Task Group: {}", new.title),
        _ => head.heading.clone(),
    }
}

fn is_task(section: &Section) -> bool {
    section.level == 2 && labels::task_title(section.title()).is_some()
}

fn cite_all(section: &Section, cited: &mut Cited) {
    section
        .blocks
        .iter()
        .for_each(|block| cited.add(&block.text));
    section
        .children
        .iter()
        .for_each(|child| cite_all(child, cited));
}

fn cites(cited: &Cited, source: &Source) -> bool {
    cited.files.contains(source.path.name()) || cited.threads.contains(&source.thread_id)
}
