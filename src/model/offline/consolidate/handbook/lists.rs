//! The handbook's lists of statements, each of the head's blocks with its fate.

use crate::domain::note::NOTE_MARK;
use crate::domain::path::HANDBOOK;
use crate::model::offline::consolidate::RetireReason;
use crate::model::offline::consolidate::context::{Fate, Origin};
use crate::model::offline::consolidate::facts::{Group, Statement};
use crate::model::offline::consolidate::handbook::render::{NOTES_KEY, Numbers, bullet};
use crate::model::offline::consolidate::handbook::{Slot, Work};
use crate::model::offline::consolidate::line;
use crate::model::offline::consolidate::notes_apply::Change;
use crate::model::offline::consolidate::outline::{Block, Section};
use crate::model::offline::consolidate::tokens::Features;

/// Old and new self of a group, and how its tasks are numbered.
pub(super) struct Scope<'g> {
    pub(super) old: Option<&'g Group>,
    pub(super) new: Option<&'g Group>,
    pub(super) numbers: &'g Numbers,
}

impl Work<'_> {
    /// A list of statements: the head's blocks each with its fate, then what
    /// is new. `task` limits it to what was said in one task.
    pub(super) fn list(
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
            if !self.may_come(one, scope) {
                continue;
            }
            let block = bullet(one, scope.numbers);
            // A person's own line says it already.
            let is_theirs = self.head_texts.contains(&one.features.folded)
                && self.context.is_person(HANDBOOK, &block.text);
            if !is_theirs && self.is_first(one, scope) {
                section.blocks.push(block);
            }
        }
        for child in &head.children {
            section.children.extend(self.foreign_section(child, scope));
        }
        section
    }

    /// Nobody took it out, nor all tasks that it belongs to.
    fn may_come(&self, one: &Statement, scope: &Scope<'_>) -> bool {
        let has_task = |task| scope.numbers.of_task.contains_key(task);
        let is_homeless = !one.tasks.is_empty() && !one.tasks.iter().any(has_task);
        !self.is_taken_out(one) && (!is_homeless || one.note.is_some())
    }

    /// The facts had it before and the head has not: somebody took it out.
    pub(super) fn is_taken_out(&self, one: &Statement) -> bool {
        let folded = &one.features.folded;
        let is_elsewhere = one.note.is_some() && one.tasks.is_empty();
        self.is_tended
            && !self.head_texts.contains(folded)
            && (self.old_texts.contains(folded) && !is_elsewhere)
    }

    /// Whether `one` is not in the file yet; it is now.
    pub(super) fn is_first(&mut self, one: &Statement, scope: &Scope<'_>) -> bool {
        // A note's line may stand in any group; a statement once per group.
        let group = scope
            .new
            .filter(|_| one.note.is_none() || !one.tasks.is_empty());
        let key = group.map_or_else(String::new, |group| group.key.clone());
        self.written.insert((one.features.folded.clone(), key))
    }

    /// The successor of a block that these rules wrote, if there is one.
    pub(super) fn ours(
        &mut self,
        block: &Block,
        wanted: &[&Statement],
        scope: &Scope<'_>,
    ) -> Option<Block> {
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
    pub(super) fn successor<'w>(
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

    pub(super) fn reason_for(&self, folded: &str, scope: &Scope<'_>) -> RetireReason {
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
    pub(super) fn foreign_blocks(
        &mut self,
        blocks: &[Block],
        is_gone: &dyn Fn(u32) -> Option<()>,
    ) -> Vec<Block> {
        let mut kept = Vec::new();
        for block in blocks {
            match self.context.fate(HANDBOOK, block) {
                Fate::Stays => {
                    let block = self.context.with_live_pointers(HANDBOOK, block);
                    kept.extend(self.with_live_references(&block, is_gone));
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
                    if reason == RetireReason::Withheld {
                        kept.extend(self.reworded(block));
                    }
                }
            }
        }
        kept
    }

    /// Somebody's line in the words that a person gave it in the other file.
    fn reworded(&mut self, block: &Block) -> Option<Block> {
        let old = Features::of(line::core(&block.text));
        let (text, features) = self.context.gate.rewording(&old)?;
        let is_new = !self.head_texts.contains(&features.folded)
            && !self.new_texts.contains(&features.folded)
            && self
                .written
                .insert((features.folded.clone(), String::new()));
        let references = line::task_references(&block.text);
        let marks: Vec<String> = references
            .iter()
            .map(|number| format!("[Task {number}]"))
            .collect();
        let marks = marks.concat();
        is_new.then(|| Block {
            is_apart: block.is_apart,
            ..Block::bullet(format!("- {text} {marks}").trim_end().to_owned())
        })
    }

    pub(super) fn with_live_references(
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
    pub(super) fn foreign_section(
        &mut self,
        section: &Section,
        scope: &Scope<'_>,
    ) -> Option<Section> {
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
