//! Notes carried out on memory files that another worker wrote.
//!
//! A worker that reads prompts may pass over a note, and then the note would
//! count as consumed. So code does what notes ask for before such a worker
//! starts, by the rules that say what a note means ([`Asking`]), and the judge
//! sees to it that it stays done. Only the lines that a note is about change.
//!
//! Skills are looked through for every worker: the offline rules write none.
//!
//! # Not in here
//!
//! Files that are not there yet: the worker makes those, and [`Demand`] says
//! which lines they must have. What recaps say: the worker's business.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::entry::{Entry, EntryKind};
use crate::domain::note::{Note, NoteKind};
use crate::domain::path::{FileKind, HANDBOOK, SUMMARY, TreePath};
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::Withheld;
use crate::model::offline::consolidate::asks::Asking;
use crate::model::offline::consolidate::gate::Gate;
use crate::model::offline::consolidate::labels;
use crate::model::offline::consolidate::line;
use crate::model::offline::consolidate::note_text::{
    content, has_kind_label, is_preference, lines_of,
};
use crate::model::offline::consolidate::tokens::{Features, Matcher, common};
use crate::model::offline::consolidate::{Before, NoteInput, RemovedNote};
use crate::text::entries;
use crate::text::shingles;

mod edit;
mod skills;

pub(crate) use self::skills::{is_meant as is_meant_in_skill, lines as skill_lines};

/// Least share of a line's words that an entry has which says it.
const SAID_PART_MIN: f64 = 0.6;

/// What [`carry_out`] looks at.
pub(crate) struct OrderInputs<'a> {
    pub(crate) version: MemoryVersion,
    /// The memory files at the head.
    pub(crate) files: BTreeMap<TreePath, String>,
    pub(crate) notes: &'a [NoteInput],
    pub(crate) removed: &'a [RemovedNote],
    /// Only a new or edited note that is about one of these changes it.
    pub(crate) person_entries: &'a [Entry],
    pub(crate) withheld: &'a [Withheld],
    pub(crate) summary_bytes_max: usize,
    /// The worker applies notes to summary and handbook by itself.
    pub(crate) only_skills: bool,
}

/// What came of the notes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Carried {
    /// The memory files afterwards.
    pub(crate) files: BTreeMap<TreePath, String>,
    /// Lines that must stand in the result.
    pub(crate) demands: Vec<Demand>,
    /// What was taken out, normalised, and the note that asked for it.
    pub(crate) taken_out: BTreeMap<String, TreePath>,
    /// Texts that forget notes took out: to be withheld.
    pub(crate) forgotten: Vec<String>,
    /// New or edited notes that ask for a change of something not there.
    pub(crate) unmatched: Vec<TreePath>,
    /// For the worker: one line per note, without what it took out.
    pub(crate) told: Vec<String>,
}

/// A line of a new or edited note that the result must say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Demand {
    pub(crate) note: TreePath,
    pub(crate) text: String,
    features: Features,
}

impl Demand {
    /// What a line of memory files says, to be found again.
    pub(crate) fn of(note: &TreePath, text: &str) -> Self {
        let text = line::core(text).to_owned();
        Self {
            note: note.clone(),
            features: Features::of(&text),
            text,
        }
    }

    /// Whether an entry says this, perhaps polished: most of its words, and
    /// every number.
    pub(crate) fn is_said_by(&self, entry: &str) -> bool {
        let entry = Features::of(line::core(entry));
        let numbers = self.features.numbers();
        let has_numbers = common(&numbers, &entry.numbers()) == numbers.len();
        let alone = Matcher::new(std::iter::once(&self.features));
        let part = alone.part_of(&content(&self.features), &entry.tokens, 1.0);
        let turns =
            shingles::is_negated(&entry.folded) != shingles::is_negated(&self.features.folded);
        entry.is_same_as(&self.features) || (has_numbers && !turns && SAID_PART_MIN <= part)
    }
}

/// Does to the memory files what new, edited and deleted notes ask for.
pub(crate) fn carry_out(inputs: &OrderInputs<'_>) -> Carried {
    let mut desk = Desk {
        inputs,
        gate: Gate::new(inputs.withheld, inputs.person_entries, &[]),
        persons: person_keys(inputs.person_entries),
        carried: Carried {
            files: inputs.files.clone(),
            ..Carried::default()
        },
    };
    if !inputs.only_skills {
        desk.take_back();
    }
    let mut fresh: Vec<&Note> = (inputs.notes.iter())
        .filter(|one| one.before != Before::Same)
        .map(|one| &one.note)
        .collect();
    fresh.sort_by(|a, b| (a.written_at, &a.path).cmp(&(b.written_at, &b.path)));
    for note in fresh {
        desk.carry_out(note);
    }
    desk.carried
}

/// Whether a forget note is about a text that stands in these entries.
pub(crate) fn still_there<'e>(
    asking: &Asking,
    found: &'e [Entry],
    person_entries: &[Entry],
) -> Vec<&'e Entry> {
    let persons = person_keys(person_entries);
    let features: Vec<Features> = found.iter().map(features).collect();
    let matcher = Matcher::new(features.iter());
    let is_meant = |(entry, features): &(&Entry, &Features)| {
        let may = !persons.contains(&key(entry)) || asking.is_about_features(features);
        is_target(entry) && may && asking.forgets(&matcher, features)
    };
    let all = found.iter().zip(&features);
    all.filter(is_meant).map(|(entry, _)| entry).collect()
}

type Key = (TreePath, String);

fn key(entry: &Entry) -> Key {
    (entry.path.clone(), shingles::normalise(&entry.text))
}

fn person_keys(entries: &[Entry]) -> BTreeSet<Key> {
    entries.iter().map(key).collect()
}

/// Groups only hold other entries.
fn is_target(entry: &Entry) -> bool {
    entry.kind != EntryKind::TaskGroup
}

/// What an entry says; of a task its title.
fn features(entry: &Entry) -> Features {
    let text = line::core(&entry.text);
    if entry.kind == EntryKind::Task {
        let title = labels::task_title(text).unwrap_or(text);
        return Features::of(labels::without_outcome(title));
    }
    Features::of(text)
}

struct Desk<'a> {
    inputs: &'a OrderInputs<'a>,
    gate: Gate<'a>,
    persons: BTreeSet<Key>,
    carried: Carried,
}

impl Desk<'_> {
    fn text(&self, file: &str) -> Option<(TreePath, &str)> {
        let path = TreePath::parse(file)?;
        let text = self.carried.files.get(&path)?;
        (!text.trim().is_empty()).then_some((path, text.as_str()))
    }

    /// Entries of summary and handbook.
    fn entries(&self) -> Vec<Entry> {
        let files = self.carried.files.iter();
        files
            .filter(|(path, _)| matches!(path.kind(), FileKind::Summary | FileKind::Handbook))
            .flat_map(|(path, text)| entries::parse(path, text))
            .filter(|entry| !entry.text.trim().is_empty())
            .collect()
    }

    fn is_persons(&self, entry: &Entry) -> bool {
        self.persons.contains(&key(entry))
    }

    /// Lines that a deleted note, or the old text of an edited one, fits
    /// better than any note there is now.
    fn take_back(&mut self) {
        let inputs = self.inputs;
        let edited = inputs.notes.iter().filter_map(|one| match &one.before {
            Before::Other(Some(note)) => Some(note),
            _ => None,
        });
        let removed = inputs.removed.iter().filter_map(|one| one.note.as_ref());
        let gone: Vec<&Note> = edited.chain(removed).collect();
        if gone.is_empty() {
            return;
        }
        let lines = |note: &Note| -> Vec<Features> {
            let lines = lines_of(note.text.unredacted());
            lines.iter().map(|line| Features::of(line)).collect()
        };
        let now: Vec<Features> = (inputs.notes.iter())
            .flat_map(|one| lines(&one.note))
            .collect();
        let before: Vec<(TreePath, Features)> = gone
            .iter()
            .flat_map(|note| lines(note).into_iter().map(|it| (note.path.clone(), it)))
            .collect();
        for entry in self.entries() {
            if !entry.is_from_note || self.is_persons(&entry) || !is_target(&entry) {
                continue;
            }
            let words = features(&entry).tokens;
            let fit = |line: &Features| common(&words, &line.tokens);
            let now = now.iter().map(fit).max().unwrap_or(0);
            let best = before.iter().max_by_key(|(_, line)| fit(line));
            let Some((note, _)) = best.filter(|(_, line)| now < fit(line)) else {
                continue;
            };
            self.take_out(&entry, note);
            let told = format!("{note}: a line that only its old text supported was taken out");
            self.carried.told.push(told);
        }
    }

    fn carry_out(&mut self, note: &Note) {
        let asking = Asking::of(note);
        if self.inputs.only_skills && asking.kind() != NoteKind::Forget {
            return;
        }
        let told = match asking.kind() {
            NoteKind::Remember => {
                let lines = lines_of(note.text.unredacted());
                self.remember(note, &lines)
            }
            NoteKind::Correct => self.correct(note, &asking),
            NoteKind::Forget => self.forget(note, &asking),
        };
        let told = format!("{} ({}): {told}", note.path, asking.kind().label());
        self.carried.told.push(told);
    }

    fn remember(&mut self, note: &Note, lines: &[String]) -> String {
        let count = lines.iter().filter(|line| self.place(note, line)).count();
        format!("{count} of its lines stand in the memory files that are there")
    }

    /// Writes a line where nothing says it yet; whether it stands somewhere.
    fn place(&mut self, note: &Note, text: &str) -> bool {
        let demand = Demand::of(&note.path, text);
        if demand.features.tokens.is_empty() || self.gate.blocks(text) {
            return false;
        }
        let mut stands = false;
        for file in [HANDBOOK, SUMMARY] {
            let is_of_version = file == SUMMARY || self.inputs.version == MemoryVersion::V1;
            if is_of_version {
                stands |= self.place_in(file, &demand);
            }
        }
        let known = self.carried.demands.iter();
        let demanded: usize = known.map(|demand| demand.text.len()).sum();
        // The summary cannot hold any number of lines.
        let has_room = self.inputs.version == MemoryVersion::V1
            || demanded + text.len() <= self.inputs.summary_bytes_max / 2;
        if has_room || stands {
            self.carried.demands.push(demand);
        }
        stands
    }

    fn place_in(&mut self, file: &str, demand: &Demand) -> bool {
        let Some((path, text)) = self.text(file) else {
            return false;
        };
        let found = entries::parse(&path, text);
        let same = found.iter().find(|entry| {
            entry.kind == EntryKind::Bullet && features(entry).is_same_as(&demand.features)
        });
        let placed = match same {
            Some(entry) if entry.is_from_note || self.is_persons(entry) => return true,
            Some(entry) => edit::with_mark(text, entry),
            None => None,
        };
        let placed = placed.or_else(|| {
            if file == HANDBOOK {
                return Some(edit::into_handbook(text, &found, demand));
            }
            let placed = edit::into_summary(text, demand)?;
            (placed.len() <= self.inputs.summary_bytes_max).then_some(placed)
        });
        let Some(placed) = placed else { return false };
        self.carried.files.insert(path, placed);
        true
    }

    /// The first line takes the place of the entry that fits best, in each
    /// file; further lines are remembered.
    fn correct(&mut self, note: &Note, asking: &Asking) -> String {
        let lines = lines_of(note.text.unredacted());
        let Some((first, more)) = lines.split_first() else {
            return "it says nothing".to_owned();
        };
        let demand = Demand::of(&note.path, first);
        let mut replaced = 0;
        if !self.gate.blocks(first) {
            for file in [HANDBOOK, SUMMARY] {
                replaced += usize::from(self.replace_in(file, note, asking, &demand));
            }
        }
        let is_explicit = note.kind.is_some() || has_kind_label(note.text.unredacted());
        if replaced == 0 && is_explicit {
            self.carried.unmatched.push(note.path.clone());
        }
        self.place(note, first);
        self.remember(note, more);
        match replaced {
            0 => "no line fitted; its own stand in the memory files that are there".to_owned(),
            _ => "the line that fitted best was replaced".to_owned(),
        }
    }

    fn replace_in(&mut self, file: &str, note: &Note, asking: &Asking, demand: &Demand) -> bool {
        let Some((path, text)) = self.text(file) else {
            return false;
        };
        let found = entries::parse(&path, text);
        let all: Vec<Features> = found.iter().map(features).collect();
        let matcher = Matcher::new(all.iter());
        let mut best: Option<(f64, usize)> = None;
        for (index, (entry, features)) in found.iter().zip(&all).enumerate() {
            let is_statement = matches!(entry.kind, EntryKind::Bullet | EntryKind::Topic);
            let may_change = !self.is_persons(entry) || asking.is_about_features(features);
            if !is_statement || !may_change || features.folded == demand.features.folded {
                continue;
            }
            let score = asking.corrects(&matcher, features);
            if let Some(score) = score.filter(|it| best.is_none_or(|(known, _)| known < *it)) {
                best = Some((score, index));
            }
        }
        let Some((_, index)) = best else { return false };
        let (target, old) = (found[index].clone(), all[index].clone());
        if target.kind == EntryKind::Bullet {
            let placed = edit::replaced(text, &target, demand);
            self.carried.files.insert(path, placed);
            self.write_down(&target, &note.path);
        } else {
            self.take_out(&target, &note.path);
        }
        // What says the same elsewhere in the file is as wrong.
        for entry in self.entries() {
            let is_same = entry.kind == EntryKind::Bullet && features(&entry).is_same_as(&old);
            if is_same && entry.path == target.path && !self.is_persons(&entry) {
                self.take_out(&entry, &note.path);
            }
        }
        true
    }

    fn forget(&mut self, note: &Note, asking: &Asking) -> String {
        let mut count = self.forget_in_skills(note, asking);
        if !self.inputs.only_skills {
            let found = self.entries();
            let meant = still_there(asking, &found, self.inputs.person_entries);
            for entry in &meant {
                let text = match entry.kind {
                    EntryKind::Task => {
                        let title = labels::task_title(&entry.text).unwrap_or(&entry.text);
                        labels::without_outcome(title)
                    }
                    _ => &entry.text,
                };
                self.carried.forgotten.push(text.to_owned());
                self.take_out(entry, &note.path);
            }
            count += meant.len();
            let before = self.carried.demands.len();
            let matcher = Matcher::new(self.carried.demands.iter().map(|it| &it.features));
            (self.carried.demands).retain(|it| !asking.forgets(&matcher, &it.features));
            count += before - self.carried.demands.len();
            if count == 0 {
                self.carried.unmatched.push(note.path.clone());
            }
        }
        format!("{count} entries were taken out")
    }

    fn forget_in_skills(&mut self, note: &Note, asking: &Asking) -> usize {
        let gone = skills::forget(&mut self.carried.files, asking);
        for text in &gone {
            let words = shingles::normalise(text);
            self.carried.taken_out.insert(words, note.path.clone());
        }
        self.carried.forgotten.extend(gone.iter().cloned());
        gone.len()
    }

    /// Takes an entry out of its file, if it is there still: another may have
    /// taken it along. With a task goes what rests on it alone.
    fn take_out(&mut self, entry: &Entry, note: &TreePath) {
        let Some(text) = self.carried.files.get(&entry.path) else {
            return;
        };
        let found = entries::parse(&entry.path, text);
        let is_it = |it: &&Entry| {
            it.kind == entry.kind && key(it) == key(entry) && it.headings == entry.headings
        };
        let Some(target) = found.iter().find(is_it) else {
            return;
        };
        let (left, along) = edit::without(text, target, &found, &|it| self.is_persons(it));
        self.carried.files.insert(entry.path.clone(), left);
        self.write_down(entry, note);
        for text in along {
            let words = shingles::normalise(&text);
            self.carried.taken_out.insert(words, note.clone());
        }
    }

    fn write_down(&mut self, entry: &Entry, note: &TreePath) {
        let words = shingles::normalise(&entry.text);
        self.carried.taken_out.insert(words, note.clone());
    }
}

/// Whether a line of a note is of those that say what somebody wants.
fn wants(demand: &Demand) -> bool {
    is_preference(&demand.text)
}

#[cfg(test)]
mod tests;
