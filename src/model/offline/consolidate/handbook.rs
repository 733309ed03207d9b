//! The handbook, brought up to date in place.
//!
//! The head's handbook is the starting point. Entries that these rules made
//! before follow the facts: they are reworded, renumbered, dropped. Entries of
//! a person or another worker stay word for word where they are while something
//! they rest on is in the inputs. What is new comes at the end of its list; a
//! new project comes first.
//!
//! An entry that the facts had before and the head has not was taken out by
//! somebody, and is not put back.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::domain::note::NOTE_MARK;
use crate::domain::path::{HANDBOOK, RECAPS};
use crate::domain::time::Timestamp;
use crate::model::offline::consolidate::RetireReason;
use crate::model::offline::consolidate::context::{Context, Fate, Origin, is_group_title};
use crate::model::offline::consolidate::facts::{Facts, Group, Kind, Source, Statement, Task};
use crate::model::offline::consolidate::labels::{self, Label};
use crate::model::offline::consolidate::line::{self, Cited};
use crate::model::offline::consolidate::notes_apply::Change;
use crate::model::offline::consolidate::outline::{self, Block, Section};
use crate::model::offline::consolidate::tokens::{Features, SAME_TASK, share};

/// What a handbook without any entry says.
const EMPTY: &str = "<!-- no task groups yet -->";

/// Key and title of the group that holds what only notes say.
const NOTES_KEY: &str = "extensions/ad_hoc";
const NOTES_TITLE: &str = "notes";

/// Most task marks that a bullet carries: the newest ones.
const REFERENCES_MAX: usize = 6;

const FILES_TITLE: &str = "rollout_summary_files";
const KEYWORDS_TITLE: &str = "keywords";
const SAID_TITLE: &str = "preferences of this task";

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
    let known: Vec<&Task> = old
        .iter()
        .chain(new)
        .flat_map(|group| &group.tasks)
        .collect();
    let is_foreign = |task: &HeadTask<'_>| {
        !context.is_person(HANDBOOK, &task.section.heading)
            && !known.iter().any(|one| is_same_task(one, task))
    };
    let groups = context.head_handbook.children.iter();
    context.has_foreign(HANDBOOK) || groups.flat_map(head_tasks).any(|task| is_foreign(&task))
}

fn notes_group(statements: Vec<Statement>) -> Group {
    Group {
        key: NOTES_KEY.to_owned(),
        title: NOTES_TITLE.to_owned(),
        cwd: None,
        newest_at: Timestamp::default(),
        tasks: Vec::new(),
        statements,
    }
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
    /// Another worker wrote in it: what is not there was left out on purpose.
    /// What a person takes out is withheld instead.
    is_tended: bool,
    /// Folded statements that stand in the new file already.
    written: HashSet<(String, String)>,
    retired: Vec<(String, RetireReason)>,
    tasks_gone: HashSet<String>,
}

/// A task section of the head.
struct HeadTask<'s> {
    section: &'s Section,
    number: Option<u32>,
    title: Features,
    cited: Cited,
}

/// What becomes of a task section of the head.
enum TaskFate {
    /// It is the new group's task of this index.
    Ours(usize),
    Stays,
    Goes(RetireReason),
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
            let votes = |group: &Group| {
                let sources = group.tasks.iter().flat_map(|task| &task.sources);
                sources.filter(|source| cites(&cited, source)).count()
            };
            let free = self
                .new
                .iter()
                .chain(self.old)
                .filter(|group| !taken.contains(&group.key));
            let voted = free
                .map(|group| (votes(group), group))
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
        let numbers = self.numbers(head, &head_tasks, &fates, &added);
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

    fn task_fate(&self, task: &HeadTask<'_>, old: Option<&Group>, new: Option<&Group>) -> TaskFate {
        let is_person = self.context.is_person(HANDBOOK, &task.section.heading);
        let find = |group: Option<&Group>| {
            let tasks = group.map_or(&[][..], |group| &group.tasks);
            tasks.iter().position(|one| is_same_task(one, task))
        };
        if !is_person {
            if let Some(index) = find(new) {
                return TaskFate::Ours(index);
            }
            if find(old).is_some() {
                return TaskFate::Goes(self.reason_for_task(task));
            }
            if self.context.gate.blocks(line::core(task.section.title())) {
                return TaskFate::Goes(RetireReason::Withheld);
            }
        }
        let is_supported = task.cited.is_empty() || self.context.has_any(&task.cited);
        if is_person || is_supported {
            TaskFate::Stays
        } else {
            TaskFate::Goes(RetireReason::Unsupported)
        }
    }

    fn reason_for_task(&self, task: &HeadTask<'_>) -> RetireReason {
        let title = without_outcome(labels::task_title(task.section.title()).unwrap_or_default());
        if self.context.gate.blocks(title) {
            RetireReason::Withheld
        } else if self
            .context
            .effects
            .forgotten
            .iter()
            .any(|text| text == title)
        {
            RetireReason::Forgotten
        } else if self.context.has_any(&task.cited) {
            RetireReason::Superseded
        } else {
            RetireReason::Unsupported
        }
    }

    /// New tasks that the head has not, without those it had once.
    fn added_tasks(
        &self,
        head_tasks: &[HeadTask<'_>],
        fates: &[TaskFate],
        old: Option<&Group>,
        new: Option<&Group>,
    ) -> Vec<usize> {
        let Some(new) = new else { return Vec::new() };
        let is_there = |index: usize| {
            fates
                .iter()
                .any(|fate| matches!(fate, TaskFate::Ours(at) if *at == index))
                || head_tasks
                    .iter()
                    .any(|task| is_same_task(&new.tasks[index], task))
        };
        let was_taken_out = |task: &Task| {
            let before = old.filter(|_| self.is_tended);
            before.is_some_and(|old| old.tasks.iter().any(|one| is_one_task(one, task)))
        };
        (0..new.tasks.len())
            .filter(|index| !is_there(*index) && !was_taken_out(&new.tasks[*index]))
            .collect()
    }

    /// Numbers for the new group's tasks. Where somebody else's bullets or
    /// tasks use the head's numbers, those stay; else they run from 1.
    fn numbers(
        &self,
        head: &Section,
        head_tasks: &[HeadTask<'_>],
        fates: &[TaskFate],
        added: &[usize],
    ) -> Numbers {
        let keeps = fates.iter().any(|fate| matches!(fate, TaskFate::Stays))
            || self.has_foreign_references(head);
        let mut numbers = Numbers::default();
        let mut next = 1;
        for (task, fate) in head_tasks.iter().zip(fates) {
            let number = match fate {
                TaskFate::Goes(_) => {
                    numbers.gone.extend(task.number);
                    continue;
                }
                TaskFate::Ours(_) | TaskFate::Stays => task.number.filter(|_| keeps),
            };
            let number = number.unwrap_or(next);
            if let TaskFate::Ours(index) = fate {
                // The same task twice in the head: the first one is it.
                numbers.of_task.entry(*index).or_insert(number);
            }
            next = next.max(number + 1);
        }
        for index in added {
            numbers.of_task.insert(*index, next);
            next += 1;
        }
        numbers
    }

    fn has_foreign_references(&self, section: &Section) -> bool {
        let own = section.blocks.iter().any(|block| {
            self.context.origin(HANDBOOK, block) != Origin::Ours
                && !line::task_references(&block.text).is_empty()
        });
        own || section
            .children
            .iter()
            .any(|child| self.has_foreign_references(child))
    }

    fn head_task(
        &mut self,
        task: &HeadTask<'_>,
        fate: &TaskFate,
        scope: &Scope<'_>,
    ) -> Option<Section> {
        match fate {
            TaskFate::Ours(index) => {
                let is_first = self.written.insert((
                    format!("task {index}"),
                    scope.new.map_or_else(String::new, |new| new.key.clone()),
                ));
                is_first.then(|| self.task(task.section, *index, scope))
            }
            TaskFate::Stays => self.foreign_task(task.section),
            TaskFate::Goes(reason) => {
                let title = task.section.title();
                self.retired.push((title.to_owned(), *reason));
                self.tasks_gone.insert(folded(without_outcome(
                    labels::task_title(title).unwrap_or(title),
                )));
                None
            }
        }
    }

    /// One of the facts' tasks, on the base of what the head has of it.
    fn task(&mut self, head: &Section, index: usize, scope: &Scope<'_>) -> Section {
        let (Some(new), Some(number)) = (scope.new, scope.numbers.of_task.get(&index)) else {
            return head.clone();
        };
        let task = &new.tasks[index];
        let mut section = Section::new(2, &format!("Task {number}: {}", task_title(task)));
        section.blocks.clone_from(&head.blocks);
        let child = |title: &str| head.children.iter().find(|child| child.title() == title);
        section.children.push(self.files(child(FILES_TITLE), task));
        section
            .children
            .push(self.keywords(child(KEYWORDS_TITLE), task, scope));
        let said = child(SAID_TITLE)
            .cloned()
            .unwrap_or_else(|| Section::new(3, SAID_TITLE));
        let said = self.list(&said, Slot::Task, Some(index), scope);
        if !said.is_empty() {
            section.children.push(said);
        }
        let ours = [FILES_TITLE, KEYWORDS_TITLE, SAID_TITLE];
        let others = head
            .children
            .iter()
            .filter(|child| !ours.contains(&child.title()));
        section.children.extend(others.cloned());
        section
    }

    /// The recap files of a task; bullets that others put there stay while
    /// their recap is there.
    fn files(&self, head: Option<&Section>, task: &Task) -> Section {
        let mut section = Section::new(3, FILES_TITLE);
        let ours: Vec<Block> = task
            .sources
            .iter()
            .map(|source| Block::bullet(file_bullet(source)))
            .collect();
        let is_ours = |block: &Block| {
            self.old_files.contains(&block.text) || ours.iter().any(|one| one.text == block.text)
        };
        let mut covered = Cited::default();
        for block in head.iter().flat_map(|head| &head.blocks) {
            let mut cited = Cited::default();
            cited.add(&block.text);
            let is_person = self.context.is_person(HANDBOOK, &block.text);
            let is_of_task = task.sources.iter().any(|source| cites(&cited, source));
            let has_words = !block.text.trim_end().ends_with(')');
            let is_foreign = !is_ours(block) && (!is_of_task || has_words);
            if is_person || (is_foreign && (cited.is_empty() || self.context.has_any(&cited))) {
                covered.files.extend(cited.files);
                section.blocks.push(block.clone());
            }
        }
        let missing = ours.iter().zip(&task.sources);
        let missing = missing.filter(|(_, source)| !covered.files.contains(source.path.name()));
        section
            .blocks
            .extend(missing.map(|(block, _)| block.clone()));
        section
    }

    fn keywords(&self, head: Option<&Section>, task: &Task, scope: &Scope<'_>) -> Section {
        let ours = |task: &Task| format!("- {}", task.keywords.join(", "));
        if let Some(head) = head {
            let old_tasks = scope.old.map_or(&[][..], |old| &old.tasks);
            let before = old_tasks.iter().find(|old| is_one_task(old, task));
            let texts: Vec<&str> = head
                .blocks
                .iter()
                .map(|block| block.text.as_str())
                .collect();
            let is_ours = before.is_some_and(|before| texts == [ours(before)]);
            if !is_ours && !texts.is_empty() {
                return head.clone();
            }
        }
        let mut section = Section::new(3, KEYWORDS_TITLE);
        section.blocks.push(Block::bullet(ours(task)));
        section
    }

    /// Somebody else's task: word for word, without dead pointers.
    fn foreign_task(&self, section: &Section) -> Option<Section> {
        let mut kept = section.clone();
        let is_alive = |block: &Block| {
            let mut cited = Cited::default();
            cited.add(&block.text);
            let has_dead = cited.files.iter().any(|file| !self.context.has_file(file));
            !has_dead || self.context.is_person(HANDBOOK, &block.text)
        };
        for child in &mut kept.children {
            child.blocks.retain(is_alive);
        }
        kept.blocks.retain(is_alive);
        Some(kept)
    }

    /// A list of statements: the head's blocks each with its fate, then what
    /// is new. `task` limits it to what was said in one task.
    fn list(
        &mut self,
        head: &Section,
        slot: Slot,
        task: Option<usize>,
        scope: &Scope<'_>,
    ) -> Section {
        let mut section = Section {
            level: head.level,
            heading: head.heading.clone(),
            ..Section::default()
        };
        let in_slot = |one: &&Statement| {
            one.kind == slot.kind() && (task.is_none() || one.tasks.first().copied() == task)
        };
        let wanted: Vec<&Statement> = scope
            .new
            .map_or(&[][..], |new| &new.statements)
            .iter()
            .filter(in_slot)
            .collect();
        for block in &head.blocks {
            if self.context.origin(HANDBOOK, block) == Origin::Ours {
                section.blocks.extend(self.ours(block, &wanted, scope));
            } else {
                let kept = self.foreign_blocks(std::slice::from_ref(block), &|number| {
                    scope.numbers.is_gone(number).then_some(())
                });
                section.blocks.extend(kept);
            }
        }
        for one in wanted {
            if !self.is_taken_out(one) && self.is_first(one, scope) {
                section.blocks.push(bullet(one, scope.numbers));
            }
        }
        for child in &head.children {
            section.children.extend(self.foreign_section(child, scope));
        }
        section
    }

    /// The facts had it before and the head has not: somebody took it out.
    fn is_taken_out(&self, one: &Statement) -> bool {
        let folded = &one.features.folded;
        let is_elsewhere = one.note.is_some() && one.tasks.is_empty();
        self.is_tended
            && !self.head_texts.contains(folded)
            && (self.old_texts.contains(folded) && !is_elsewhere)
    }

    /// Whether `one` is not in the file yet; it is now.
    fn is_first(&mut self, one: &Statement, scope: &Scope<'_>) -> bool {
        // A note's line may stand in any group; a statement once per group.
        let group = scope
            .new
            .filter(|_| one.note.is_none() || !one.tasks.is_empty());
        let key = group.map_or_else(String::new, |group| group.key.clone());
        self.written.insert((one.features.folded.clone(), key))
    }

    /// The successor of a block that these rules wrote, if there is one.
    fn ours(&mut self, block: &Block, wanted: &[&Statement], scope: &Scope<'_>) -> Option<Block> {
        let features = Features::of(line::core(&block.text));
        let exact = wanted
            .iter()
            .find(|one| one.features.folded == features.folded);
        // A note's line that took the place of somebody's entry stays there;
        // one whose statement left goes to the other notes.
        let was_attached = scope.old.is_some_and(|old| {
            old.statements
                .iter()
                .any(|one| one.features.folded == features.folded)
        });
        let free_line = || {
            let mut groups = self
                .new
                .iter()
                .filter(|group| group.key == NOTES_KEY && !was_attached);
            let mut lines = groups.next()?.statements.iter();
            lines.find(|one| one.features.folded == features.folded)
        };
        let successor = match exact {
            Some(one) => Some(*one),
            None => free_line().or_else(|| self.successor(&features, wanted, scope)),
        };
        let Some(one) = successor else {
            if !self.new_texts.contains(&features.folded) {
                let reason = self.reason_for(&features.folded, scope);
                self.retired
                    .push((line::core(&block.text).to_owned(), reason));
            }
            return None;
        };
        if one.features.folded != features.folded && !self.new_texts.contains(&features.folded) {
            let reason = self.reason_for(&features.folded, scope);
            self.retired
                .push((line::core(&block.text).to_owned(), reason));
        }
        self.is_first(one, scope).then(|| Block {
            is_apart: block.is_apart,
            ..bullet(one, scope.numbers)
        })
    }

    /// What says the same in other words now, or what a note put in its place.
    fn successor<'w>(
        &self,
        features: &Features,
        wanted: &[&'w Statement],
        scope: &Scope<'_>,
    ) -> Option<&'w Statement> {
        let is_new = |one: &&&Statement| !self.head_texts.contains(&one.features.folded);
        let same = wanted
            .iter()
            .filter(is_new)
            .find(|one| one.features.is_same_as(features));
        let before = scope.old.and_then(|old| {
            old.statements
                .iter()
                .find(|one| one.features.folded == features.folded)
        });
        let replaced = || {
            let before = before?;
            let shares = |one: &&&Statement| {
                let is_notes = one.note.is_some() != before.note.is_some();
                is_notes && !one.threads.is_disjoint(&before.threads)
            };
            wanted.iter().filter(is_new).find(shares)
        };
        same.or_else(replaced).copied()
    }

    fn reason_for(&self, folded: &str, scope: &Scope<'_>) -> RetireReason {
        if let Some(reason) = self.context.new.gone.get(folded) {
            return *reason;
        }
        let old = scope.old.map_or(&[][..], |old| &old.statements);
        let is_alive = old
            .iter()
            .filter(|one| one.features.folded == folded)
            .flat_map(|one| &one.threads)
            .any(|thread| self.context.has_thread(thread));
        if is_alive {
            RetireReason::Superseded
        } else {
            RetireReason::Unsupported
        }
    }

    /// Blocks of others, each with its fate. `is_gone` says which task
    /// numbers no longer are; a bullet that rests only on such goes too.
    fn foreign_blocks(
        &mut self,
        blocks: &[Block],
        is_gone: &dyn Fn(u32) -> Option<()>,
    ) -> Vec<Block> {
        let mut kept = Vec::new();
        for block in blocks {
            match self.context.fate(HANDBOOK, block) {
                Fate::Stays => {
                    kept.extend(self.with_live_references(block, is_gone));
                }
                Fate::Changes(Change::Becomes(line)) => {
                    self.retired
                        .push((line::core(&block.text).to_owned(), RetireReason::Corrected));
                    self.written
                        .insert((line.features.folded.clone(), String::new()));
                    let text = format!("- {} ({}) {NOTE_MARK}", line.text, line.note);
                    kept.push(Block {
                        is_apart: block.is_apart,
                        ..Block::bullet(text)
                    });
                }
                Fate::Changes(Change::Goes(reason)) => {
                    self.retired
                        .push((line::core(&block.text).to_owned(), reason));
                }
            }
        }
        kept
    }

    fn with_live_references(
        &mut self,
        block: &Block,
        is_gone: &dyn Fn(u32) -> Option<()>,
    ) -> Option<Block> {
        let references = line::task_references(&block.text);
        let dead = references
            .iter()
            .filter(|number| is_gone(**number).is_some())
            .count();
        if dead == 0 || self.context.is_person(HANDBOOK, &block.text) {
            return Some(block.clone());
        }
        if dead == references.len() {
            let text = line::core(&block.text).to_owned();
            self.retired.push((text, RetireReason::Unsupported));
            return None;
        }
        let keep = |number: u32| is_gone(number).is_none().then_some(number);
        Some(Block {
            text: line::change_references(&block.text, keep),
            ..block.clone()
        })
    }

    /// A section of another kind: its blocks each with their fate.
    fn foreign_section(&mut self, section: &Section, scope: &Scope<'_>) -> Option<Section> {
        let mut kept = Section {
            level: section.level,
            heading: section.heading.clone(),
            blocks: self.foreign_blocks(&section.blocks, &|number| {
                scope.numbers.is_gone(number).then_some(())
            }),
            children: Vec::new(),
        };
        for child in &section.children {
            kept.children.extend(self.foreign_section(child, scope));
        }
        let was_empty = section.is_empty();
        let is_person = self.context.is_person(HANDBOOK, &section.heading);
        (was_empty || is_person || !kept.is_empty()).then_some(kept)
    }
}

/// Old and new self of a group, and how its tasks are numbered.
struct Scope<'g> {
    old: Option<&'g Group>,
    new: Option<&'g Group>,
    numbers: &'g Numbers,
}

#[derive(Default)]
struct Numbers {
    /// By index of the new group's tasks.
    of_task: BTreeMap<usize, u32>,
    /// Numbers of the head whose task is no more.
    gone: BTreeSet<u32>,
}

impl Numbers {
    fn is_gone(&self, number: u32) -> bool {
        self.gone.contains(&number)
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

fn lead_only(group: &Group) -> Section {
    let mut section = Section::new(1, &format!("Task Group: {}", group.title));
    section
        .blocks
        .push(Block::paragraph(lead_lines(group).join("\n")));
    section
}

/// `scope:` and `applies_to:`.
fn lead_lines(group: &Group) -> [String; 2] {
    if group.key == NOTES_KEY {
        return [
            "scope: what notes ask to remember".to_owned(),
            "applies_to: cwd=any; reuse_rule=holds until a note changes it".to_owned(),
        ];
    }
    if group.key.starts_with("extensions/") {
        return [
            format!("scope: what lies in {}/resources", group.key),
            "applies_to: cwd=any; reuse_rule=open the file before relying on it".to_owned(),
        ];
    }
    let key = if group.key.is_empty() {
        "unknown folders"
    } else {
        &group.key
    };
    let cwd = group.cwd.as_deref().unwrap_or("unknown");
    [
        format!("scope: sessions in {key}"),
        format!(
            "applies_to: cwd={cwd}; reuse_rule=this project; check against the code before relying on it"
        ),
    ]
}

fn head_tasks(head: &Section) -> Vec<HeadTask<'_>> {
    let tasks = head.children.iter().filter(|child| is_task(child));
    tasks
        .map(|section| {
            let title = labels::task_title(section.title()).unwrap_or_default();
            let mut cited = Cited::default();
            cite_all(section, &mut cited);
            HeadTask {
                section,
                number: task_number(section.title()),
                title: Features::of(without_outcome(title)),
                cited,
            }
        })
        .collect()
}

fn is_task(section: &Section) -> bool {
    section.level == 2 && labels::task_title(section.title()).is_some()
}

fn task_number(title: &str) -> Option<u32> {
    let digits = title.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// `refund sign, success` without the outcome.
fn without_outcome(title: &str) -> &str {
    match title.rsplit_once([',', '，']) {
        Some((before, after)) if labels::outcome_word(after).is_some() => before.trim(),
        _ => title,
    }
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

/// The head's task is this one: it cites one of its recaps and is called so.
fn is_same_task(task: &Task, head: &HeadTask<'_>) -> bool {
    let title = Features::of(&task.title);
    let is_called_so =
        title.folded == head.title.folded || share(&title.tokens, &head.title.tokens) >= SAME_TASK;
    is_called_so && task.sources.iter().any(|source| cites(&head.cited, source))
}

fn is_one_task(left: &Task, right: &Task) -> bool {
    let threads = |task: &Task| -> BTreeSet<String> {
        task.sources
            .iter()
            .map(|source| source.thread_id.to_string())
            .collect()
    };
    let (left_title, right_title) = (Features::of(&left.title), Features::of(&right.title));
    let is_called_so = left_title.folded == right_title.folded
        || share(&left_title.tokens, &right_title.tokens) >= SAME_TASK;
    is_called_so && !threads(left).is_disjoint(&threads(right))
}

/// `title, outcome`.
fn task_title(task: &Task) -> String {
    format!("{}, {}", task.title, task.outcome.label())
}

fn file_bullet(source: &Source) -> String {
    format!(
        "- {RECAPS}/{} (cwd={}, rollout_path={}, updated_at={}, thread_id={})",
        source.path.name(),
        source.cwd.as_deref().unwrap_or("unknown"),
        source.rollout_path,
        source.updated_at,
        source.thread_id,
    )
}

fn bullet(one: &Statement, numbers: &Numbers) -> Block {
    let mut text = format!("- {}", one.text);
    if let Some(note) = &one.note {
        text.push_str(&format!(" ({note})"));
    }
    let of_tasks: Vec<u32> = one
        .tasks
        .iter()
        .filter_map(|task| numbers.of_task.get(task).copied())
        .collect();
    let newest = &of_tasks[of_tasks.len().saturating_sub(REFERENCES_MAX)..];
    if one.kind != Kind::Said && !newest.is_empty() {
        text.push(' ');
        newest
            .iter()
            .for_each(|number| text.push_str(&format!("[Task {number}]")));
    }
    if one.note.is_some() {
        text.push(' ');
        text.push_str(NOTE_MARK);
    }
    Block::bullet(text)
}
