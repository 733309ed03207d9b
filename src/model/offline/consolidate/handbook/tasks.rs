//! The handbook's tasks: which of the head's are ours, how they are numbered.

use crate::domain::path::HANDBOOK;
use crate::model::offline::consolidate::RetireReason;
use crate::model::offline::consolidate::context::Origin;
use crate::model::offline::consolidate::facts::{Group, Source, Task};
use crate::model::offline::consolidate::handbook::lists::Scope;
use crate::model::offline::consolidate::handbook::render::{Numbers, file_bullet, task_title};
use crate::model::offline::consolidate::handbook::{Slot, Work, cite_all, cites, folded, is_task};
use crate::model::offline::consolidate::labels::{self, without_outcome};
use crate::model::offline::consolidate::line::{self, Cited};
use crate::model::offline::consolidate::outline::{Block, Section};
use crate::model::offline::consolidate::tokens::{Features, SAME_TASK, share};

pub(super) const FILES_TITLE: &str = "rollout_summary_files";

pub(in crate::model::offline::consolidate) const KEYWORDS_TITLE: &str = "keywords";

pub(super) const SAID_TITLE: &str = "preferences of this task";

/// A task section of the head.
pub(super) struct HeadTask<'s> {
    pub(super) section: &'s Section,
    pub(super) number: Option<u32>,
    pub(super) title: Features,
    pub(super) cited: Cited,
}

/// What becomes of a task section of the head.
pub(super) enum TaskFate {
    /// It is the new group's task of this index.
    Ours(usize),
    Stays,
    Goes(RetireReason),
}

pub(super) fn head_tasks(head: &Section) -> Vec<HeadTask<'_>> {
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

pub(super) fn task_number(title: &str) -> Option<u32> {
    let digits = title.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// The head's task is this one: it cites one of its recaps and is called so.
pub(super) fn is_same_task(task: &Task, head: &HeadTask<'_>) -> bool {
    is_called_alike(&task.features, &head.title)
        && task.sources.iter().any(|source| cites(&head.cited, source))
}

pub(super) fn is_one_task(left: &Task, right: &Task) -> bool {
    let shares = |source: &Source| {
        let mut others = right.sources.iter();
        others.any(|other| other.thread_id == source.thread_id)
    };
    is_called_alike(&left.features, &right.features) && left.sources.iter().any(shares)
}

pub(super) fn is_called_alike(left: &Features, right: &Features) -> bool {
    left.folded == right.folded || share(&left.tokens, &right.tokens) >= SAME_TASK
}

impl Work<'_> {
    pub(super) fn task_fate(
        &self,
        task: &HeadTask<'_>,
        old: Option<&Group>,
        new: Option<&Group>,
    ) -> TaskFate {
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
            if self.context.blocks_heading(task.section) {
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

    pub(super) fn reason_for_task(&self, task: &HeadTask<'_>) -> RetireReason {
        let title = without_outcome(labels::task_title(task.section.title()).unwrap_or_default());
        if self.context.blocks_heading(task.section) {
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
    pub(super) fn added_tasks(
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
        // The head has it still, under a title that is withheld by now.
        let is_renamed = |task: &Task| {
            head_tasks.iter().any(|head| {
                let cites_it = |source: &Source| cites(&head.cited, source);
                task.sources.iter().any(cites_it) && self.context.blocks_heading(head.section)
            })
        };
        let was_taken_out = |task: &Task| {
            // A statement that a person takes out is withheld, a task is not.
            let before = old.filter(|_| !self.head_is_blank && !is_renamed(task));
            before.is_some_and(|old| old.tasks.iter().any(|one| is_one_task(one, task)))
        };
        (0..new.tasks.len())
            .filter(|index| !is_there(*index) && !was_taken_out(&new.tasks[*index]))
            .collect()
    }

    /// Numbers for the new group's tasks. Where somebody else's bullets or
    /// tasks use the head's numbers, those stay; else they run from 1.
    pub(super) fn numbers(
        &self,
        head: &Section,
        head_tasks: &[HeadTask<'_>],
        fates: &[TaskFate],
        added: &[usize],
        new: Option<&Group>,
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
        Self::lend_numbers(&mut numbers, head_tasks, fates, new);
        numbers
    }

    /// A task that another worker tells in its own words has that number.
    fn lend_numbers(
        numbers: &mut Numbers,
        head_tasks: &[HeadTask<'_>],
        fates: &[TaskFate],
        new: Option<&Group>,
    ) {
        let told = head_tasks.iter().zip(fates);
        let told = told.filter(|(_, fate)| matches!(fate, TaskFate::Stays));
        let told: Vec<&HeadTask<'_>> = told.map(|(task, _)| task).collect();
        for (index, task) in new.iter().flat_map(|new| &new.tasks).enumerate() {
            let tells_it = |head: &&&HeadTask<'_>| {
                task.sources.iter().any(|source| cites(&head.cited, source))
            };
            if let Some(number) = told.iter().find(tells_it).and_then(|head| head.number) {
                numbers.of_task.entry(index).or_insert(number);
            }
        }
    }

    pub(super) fn has_foreign_references(&self, section: &Section) -> bool {
        let own = section.blocks.iter().any(|block| {
            self.context.origin(HANDBOOK, block) != Origin::Ours
                && !line::task_references(&block.text).is_empty()
        });
        own || section
            .children
            .iter()
            .any(|child| self.has_foreign_references(child))
    }

    pub(super) fn head_task(
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
            TaskFate::Stays => Some(self.foreign_task(task.section)),
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
    pub(super) fn task(&mut self, head: &Section, index: usize, scope: &Scope<'_>) -> Section {
        let (Some(new), Some(number)) = (scope.new, scope.numbers.of_task.get(&index)) else {
            return head.clone();
        };
        let task = &new.tasks[index];
        let mut section = Section::new(2, &format!("Task {number}: {}", task_title(task)));
        section.blocks = self.open_blocks(&head.blocks);
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
        section.children.extend(others.map(|other| Section {
            blocks: self.open_blocks(&other.blocks),
            ..other.clone()
        }));
        section
    }

    /// Without what is withheld; a person's blocks stay.
    fn open_blocks(&self, blocks: &[Block]) -> Vec<Block> {
        let is_open = |block: &&Block| {
            !self.context.blocks(block) || self.context.is_person(HANDBOOK, &block.text)
        };
        blocks.iter().filter(is_open).cloned().collect()
    }

    /// The recap files of a task; bullets that others put there stay while
    /// their recap is there.
    pub(super) fn files(&self, head: Option<&Section>, task: &Task) -> Section {
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
                let block = self.context.with_live_pointers(HANDBOOK, block);
                section.blocks.push(block);
            }
        }
        let missing = ours.iter().zip(&task.sources);
        let missing = missing.filter(|(_, source)| !covered.files.contains(source.path.name()));
        section
            .blocks
            .extend(missing.map(|(block, _)| block.clone()));
        section
    }

    pub(super) fn keywords(
        &self,
        head: Option<&Section>,
        task: &Task,
        scope: &Scope<'_>,
    ) -> Section {
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
            let is_open = |block: &Block| !self.context.blocks_words(HANDBOOK, block);
            if !is_ours && !texts.is_empty() && head.blocks.iter().all(is_open) {
                return head.clone();
            }
        }
        let mut section = Section::new(3, KEYWORDS_TITLE);
        section.blocks.push(Block::bullet(ours(task)));
        section
    }

    /// Leaves the keywords that are not withheld; a task has at least one.
    fn take_withheld_words(&self, block: &mut Block) {
        if !self.context.blocks_words(HANDBOOK, block) {
            return;
        }
        let words = line::core(&block.text).split(',').map(str::trim);
        let open: Vec<&str> = words
            .filter(|word| !self.context.gate.blocks(word))
            .collect();
        let joined = open.join(", ");
        let is_open = !open.is_empty() && !self.context.gate.blocks(&joined);
        block.text = format!("- {}", if is_open { &joined } else { "session" });
    }

    /// Somebody else's task: word for word, without dead pointers.
    pub(super) fn foreign_task(&self, section: &Section) -> Section {
        let mut kept = section.clone();
        let is_alive = |block: &Block| {
            let mut cited = Cited::default();
            cited.add(&block.text);
            let has_live = cited.is_empty() || self.context.has_any(&cited);
            let is_open = !self.context.blocks(block);
            (has_live && is_open) || self.context.is_person(HANDBOOK, &block.text)
        };
        for child in &mut kept.children {
            if child.title() == KEYWORDS_TITLE {
                for block in &mut child.blocks {
                    self.take_withheld_words(block);
                }
            }
        }
        let children = kept.children.iter_mut().map(|child| &mut child.blocks);
        for blocks in children.chain([&mut kept.blocks]) {
            blocks.retain(is_alive);
            for block in blocks {
                *block = self.context.with_live_pointers(HANDBOOK, block);
            }
        }
        kept
    }
}
