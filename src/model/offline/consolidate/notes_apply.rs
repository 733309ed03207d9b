//! What notes do to the statements: remember, correct, forget.
//!
//! A note speaks each time it is in the inputs, not only when it is new: the
//! recaps behind a corrected statement still make it, and what a note took
//! out must stay out. Only entries that a person wrote are changed by a new or
//! edited note alone.
//!
//! Nothing in a note is an instruction to this code beyond its kind.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::note::{Note, NoteKind};
use crate::domain::path::{HANDBOOK, SUMMARY, TreePath};
use crate::domain::time::Timestamp;
use crate::model::offline::consolidate::RetireReason;
use crate::model::offline::consolidate::asks::{Asking, NAMED_SCORE, has_words};
use crate::model::offline::consolidate::facts::{Facts, Kind, NoteLine, Statement};
use crate::model::offline::consolidate::gate::Gate;
use crate::model::offline::consolidate::note_text::{has_kind_label, is_preference, lines_of};
use crate::model::offline::consolidate::tokens::{Features, Matcher};

/// More for a preference, and for one of the project that the note names.
const PREFERENCE_SCORE: f64 = 0.25;
const PROJECT_SCORE: f64 = 0.5;

/// A note as the rules read it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PreparedNote {
    pub(super) path: TreePath,
    asking: Asking,
    written_at: Option<Timestamp>,
    lines: Vec<NoteLine>,
    /// All its words, folded.
    folded: String,
    /// New or edited since the last baseline.
    is_new: bool,
    /// Header or label say the kind; else cue words were a guess.
    is_explicit: bool,
}

impl PreparedNote {
    pub(super) fn new(note: &Note, is_new: bool, gate: &Gate<'_>) -> Self {
        let text = note.text.unredacted();
        let mut lines: Vec<NoteLine> = lines_of(text)
            .into_iter()
            .map(|text| NoteLine {
                note: note.path.clone(),
                features: Features::of(&text),
                is_preference: is_preference(&text),
                text,
            })
            .collect();
        lines.retain(|line| !line.features.tokens.is_empty() && !gate.blocks(&line.text));
        Self {
            path: note.path.clone(),
            asking: Asking::of(note),
            written_at: note.written_at,
            lines,
            folded: Features::of(text).folded,
            is_new,
            is_explicit: note.kind.is_some() || has_kind_label(text),
        }
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = &NoteLine> {
        let says_something = self.asking.kind() != NoteKind::Forget;
        self.lines.iter().filter(move |_| says_something)
    }

    /// Also those of a forget note, which are never written.
    pub(super) fn all_lines(&self) -> impl Iterator<Item = &NoteLine> {
        self.lines.iter()
    }

    /// An entry of a person's is changed only by a new or edited note, and
    /// only when the judge agrees that the note is about it.
    fn may_change(&self, entry: &ForeignEntry) -> bool {
        !entry.is_person || (self.is_new && self.asking.is_about_features(&entry.features))
    }

    fn forgets(&self, matcher: &Matcher, entry: &Features) -> bool {
        self.asking.forgets(matcher, entry)
    }

    fn corrects(&self, matcher: &Matcher, entry: &Features) -> Option<f64> {
        self.asking.corrects(matcher, entry)
    }
}

/// An entry of the head tree that no recap or note accounts for: another
/// worker's or a person's.
#[derive(Debug, Clone)]
pub(super) struct ForeignEntry {
    /// `memory_summary.md` or `MEMORY.md`.
    pub(super) file: &'static str,
    /// Its place among the entries of that file.
    pub(super) place: usize,
    /// Without bullet, references and mark.
    pub(super) text: String,
    pub(super) features: Features,
    /// Only a new or edited note may change it.
    pub(super) is_person: bool,
}

/// What a note does to a foreign entry.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    Becomes(NoteLine),
    Goes(RetireReason),
}

/// What notes did to entries that are not in the facts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct NoteEffects {
    /// By file and place.
    pub(super) foreign: BTreeMap<(&'static str, usize), Change>,
    /// Texts that a forget note took out or keeps out.
    pub(super) forgotten: Vec<String>,
    /// New or edited notes that ask for a change of something not there.
    pub(super) unmatched: Vec<TreePath>,
}

/// Lets `notes` act on `facts` and on the foreign entries, oldest note first.
pub(super) fn apply(
    facts: &mut Facts,
    notes: &[PreparedNote],
    foreign: &[ForeignEntry],
) -> NoteEffects {
    let mut in_order: Vec<&PreparedNote> = notes.iter().collect();
    in_order
        .sort_by(|left, right| (left.written_at, &left.path).cmp(&(right.written_at, &right.path)));
    let matcher = {
        let statements = facts.groups.iter().flat_map(|group| &group.statements);
        let in_facts = statements.map(|one| &one.features);
        let elsewhere = foreign.iter().map(|entry| &entry.features);
        Matcher::new(in_facts.chain(elsewhere))
    };
    facts.note_count = notes.len();
    let mut scene = Scene {
        facts,
        foreign,
        matcher,
        effects: NoteEffects::default(),
    };
    for note in in_order {
        match note.asking.kind() {
            NoteKind::Remember => scene.remember(&note.lines),
            NoteKind::Correct => scene.correct(note),
            NoteKind::Forget => scene.forget(note),
        }
    }
    scene.overrule();
    let mut effects = scene.effects;
    effects.forgotten.sort();
    effects.forgotten.dedup();
    effects.unmatched.sort();
    effects
}

struct Scene<'a> {
    facts: &'a mut Facts,
    foreign: &'a [ForeignEntry],
    matcher: Matcher,
    effects: NoteEffects,
}

/// What a correction found.
#[derive(Clone, Copy)]
enum Target {
    Statement { group: usize, index: usize },
    NoteLine { index: usize },
    Foreign { index: usize },
}

impl Scene<'_> {
    /// A line that a statement says already gives it the note's words and
    /// mark; any other stands on its own.
    fn remember(&mut self, lines: &[NoteLine]) {
        for line in lines {
            if !self.attach_to_same(line) && !self.has_line(line) {
                self.facts.note_lines.push(line.clone());
            }
        }
    }

    fn has_line(&self, line: &NoteLine) -> bool {
        let mut lines = self.facts.note_lines.iter();
        lines.any(|known| known.features.is_same_as(&line.features))
    }

    fn attach_to_same(&mut self, line: &NoteLine) -> bool {
        let found = self
            .facts
            .groups
            .iter()
            .enumerate()
            .find_map(|(group, facts)| {
                let is_same = |one: &Statement| one.features.is_same_as(&line.features);
                let index = facts.statements.iter().position(is_same)?;
                Some((group, index))
            });
        if let Some((group, index)) = found {
            self.attach(group, index, line);
        }
        found.is_some()
    }

    fn attach(&mut self, group: usize, index: usize, line: &NoteLine) {
        let one = &mut self.facts.groups[group].statements[index];
        if one.kind == Kind::Said {
            one.kind = Kind::Preference;
        }
        one.text.clone_from(&line.text);
        one.features = line.features.clone();
        one.note = Some(line.note.clone());
        one.is_external = false;
    }

    /// The first line takes the place of the entry that fits best; further
    /// lines are remembered. What fits nothing is remembered and reported.
    fn correct(&mut self, note: &PreparedNote) {
        let Some((first, more)) = note.lines.split_first() else {
            return;
        };
        let target = self.best_target(note);
        match target {
            None => {
                if note.is_new && note.is_explicit {
                    self.effects.unmatched.push(note.path.clone());
                }
                self.remember(std::slice::from_ref(first));
            }
            Some(Target::Statement { group, index }) => {
                let one = &self.facts.groups[group].statements[index];
                let old = one.features.clone();
                self.drop_same_as(&old, (group, index));
                self.attach(group, index, first);
                self.mark_gone(&old, &first.features);
            }
            Some(Target::NoteLine { index }) => {
                let old = std::mem::replace(&mut self.facts.note_lines[index], first.clone());
                self.mark_gone(&old.features, &first.features);
            }
            Some(Target::Foreign { index }) => {
                let entry = &self.foreign[index];
                self.effects
                    .foreign
                    .insert((entry.file, entry.place), Change::Becomes(first.clone()));
            }
        }
        self.correct_summary(note, first);
        self.remember(more);
    }

    fn mark_gone(&mut self, old: &Features, new: &Features) {
        if old.folded != new.folded {
            self.facts
                .gone
                .insert(old.folded.clone(), RetireReason::Corrected);
        }
    }

    /// Near-equals of a corrected statement in other groups are as wrong.
    fn drop_same_as(&mut self, old: &Features, but: (usize, usize)) {
        for (group_index, group) in self.facts.groups.iter_mut().enumerate() {
            if group_index == but.0 {
                continue;
            }
            group.statements.retain(|one| {
                let is_same = one.note.is_none() && one.features.is_same_as(old);
                if is_same {
                    let folded = one.features.folded.clone();
                    self.facts.gone.insert(folded, RetireReason::Corrected);
                }
                !is_same
            });
        }
    }

    fn best_target(&self, note: &PreparedNote) -> Option<Target> {
        let mut best: Option<(f64, Target)> = None;
        let mut consider = |features: &Features, target: Target, more: f64| {
            let Some(score) = note.corrects(&self.matcher, features) else {
                return;
            };
            let score = if score < NAMED_SCORE {
                score
            } else {
                score + more
            };
            if best.is_none_or(|(known, _)| score > known) {
                best = Some((score, target));
            }
        };
        for (group, facts) in self.facts.groups.iter().enumerate() {
            let is_named = has_words(&note.folded, &Features::of(&facts.title).folded);
            let of_project = if is_named { PROJECT_SCORE } else { 0.0 };
            for (index, one) in facts.statements.iter().enumerate() {
                let is_wanted = one.kind == Kind::Preference;
                let more = of_project + if is_wanted { PREFERENCE_SCORE } else { 0.0 };
                consider(&one.features, Target::Statement { group, index }, more);
            }
        }
        for (index, line) in self.facts.note_lines.iter().enumerate() {
            if line.note != note.path {
                consider(&line.features, Target::NoteLine { index }, 0.0);
            }
        }
        for (index, entry) in self.foreign.iter().enumerate() {
            if entry.file == HANDBOOK && note.may_change(entry) {
                consider(&entry.features, Target::Foreign { index }, 0.0);
            }
        }
        best.map(|(_, target)| target)
    }

    /// In the summary the corrected entry goes; the note's line comes by rank.
    fn correct_summary(&mut self, note: &PreparedNote, line: &NoteLine) {
        let fits = |entry: &&ForeignEntry| {
            entry.file == SUMMARY
                && note.may_change(entry)
                && entry.features.folded != line.features.folded
        };
        let scored = self.foreign.iter().filter(fits).filter_map(|entry| {
            let score = note.corrects(&self.matcher, &entry.features)?;
            Some((score, entry))
        });
        let best = scored.fold(
            None,
            |best: Option<(f64, &ForeignEntry)>, (score, entry)| match best {
                Some((known, _)) if score <= known => best,
                _ => Some((score, entry)),
            },
        );
        if let Some((_, entry)) = best {
            self.effects.foreign.insert(
                (entry.file, entry.place),
                Change::Goes(RetireReason::Corrected),
            );
            let was_unmatched = |path: &TreePath| *path == note.path;
            self.effects.unmatched.retain(|path| !was_unmatched(path));
        }
    }

    fn forget(&mut self, note: &PreparedNote) {
        let mut forgotten = Vec::new();
        for group in &mut self.facts.groups {
            group.statements.retain(|one| {
                let goes = note.forgets(&self.matcher, &one.features);
                if goes {
                    forgotten.push((one.text.clone(), one.features.folded.clone()));
                }
                !goes
            });
        }
        self.facts.note_lines.retain(|line| {
            let goes = line.note != note.path && note.forgets(&self.matcher, &line.features);
            if goes {
                forgotten.push((line.text.clone(), line.features.folded.clone()));
            }
            !goes
        });
        let foreign = self.foreign;
        let mut is_matched = !forgotten.is_empty();
        for entry in foreign {
            if note.may_change(entry) && note.forgets(&self.matcher, &entry.features) {
                self.effects.foreign.insert(
                    (entry.file, entry.place),
                    Change::Goes(RetireReason::Forgotten),
                );
                self.effects.forgotten.push(entry.text.clone());
                is_matched = true;
            }
        }
        is_matched |= self.forget_tasks(note);
        for (text, folded) in forgotten {
            self.facts.gone.insert(folded, RetireReason::Forgotten);
            self.effects.forgotten.push(text);
        }
        if !is_matched && note.is_new {
            self.effects.unmatched.push(note.path.clone());
        }
    }

    /// A task whose title a note forgets goes with what only it supports.
    fn forget_tasks(&mut self, note: &PreparedNote) -> bool {
        let mut is_matched = false;
        for group in &mut self.facts.groups {
            let goes: BTreeSet<usize> = group
                .tasks
                .iter()
                .enumerate()
                .filter(|(_, task)| note.forgets(&self.matcher, &task.features))
                .map(|(index, _)| index)
                .collect();
            if goes.is_empty() {
                continue;
            }
            is_matched = true;
            for index in &goes {
                self.effects
                    .forgotten
                    .push(group.tasks[*index].title.clone());
            }
            group.remove_tasks(&goes, RetireReason::Forgotten, &mut self.facts.gone);
        }
        is_matched
    }

    /// A note's value wins over the recaps' (`port is 9090` over `8080`).
    fn overrule(&mut self) {
        let attached = self.facts.groups.iter().flat_map(|group| &group.statements);
        let attached = attached
            .filter(|one| one.note.is_some())
            .map(|one| one.features.clone());
        let free = self
            .facts
            .note_lines
            .iter()
            .map(|line| line.features.clone());
        let words: Vec<Features> = attached.chain(free).collect();
        if words.is_empty() {
            return;
        }
        for group in &mut self.facts.groups {
            group.statements.retain(|one| {
                let is_overruled = one.note.is_none()
                    && one.kind != Kind::Failure
                    && words.iter().any(|word| word.contradicts(&one.features));
                if is_overruled {
                    let folded = one.features.folded.clone();
                    self.facts.gone.insert(folded, RetireReason::Corrected);
                }
                !is_overruled
            });
        }
    }
}
