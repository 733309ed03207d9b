//! What both files are brought up to date from: facts before and after, and
//! who wrote what is in the head tree.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::domain::id::ThreadId;
use crate::domain::note::{NOTE_MARK, Note};
use crate::domain::path::{HANDBOOK, SUMMARY, TreePath};
use crate::domain::recap::Recap;
use crate::domain::text::Raw;
use crate::domain::version::MemoryVersion;
use crate::model::offline::consolidate::facts::{self, Facts};
use crate::model::offline::consolidate::gate::Gate;
use crate::model::offline::consolidate::handbook::KEYWORDS_TITLE;
use crate::model::offline::consolidate::labels;
use crate::model::offline::consolidate::line::{self, Cited};
use crate::model::offline::consolidate::notes_apply::{
    self, Change, ForeignEntry, NoteEffects, PreparedNote,
};
use crate::model::offline::consolidate::outline::{self, Block, Section};
use crate::model::offline::consolidate::ranking::{self, Candidates};
use crate::model::offline::consolidate::tokens::{Features, common, folded};
use crate::model::offline::consolidate::{Before, OfflineInputs, RetireReason};
use crate::text::pointers::{self, Target};

/// Who answers for an entry of the head tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A person wrote it or reworded it.
    Person,
    /// These rules made it from a recap or note.
    Ours,
    /// Another worker, or these rules at another time.
    Foreign,
}

/// What becomes of a foreign or person's entry.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fate {
    Stays,
    Changes(Change),
}

pub(super) struct Context<'a> {
    pub(super) inputs: &'a OfflineInputs,
    pub(super) gate: Gate<'a>,
    /// From the inputs that the last baseline consumed.
    pub(super) old: Facts,
    pub(super) new: Facts,
    pub(super) effects: NoteEffects,
    pub(super) head_handbook: Section,
    pub(super) head_summary: Section,
    /// Folded texts that these rules would write, before or after.
    known: HashSet<String>,
    /// Folded first lines that they would write into the summary.
    known_summary: HashSet<String>,
    /// Folded texts that a person wrote, by file.
    person: BTreeMap<&'static str, HashSet<String>>,
    staged: Cited,
    /// Transcripts of the staged recaps, by file name and by thread id.
    rollouts: BTreeMap<String, String>,
    /// What the summary could say, from the old and the new facts.
    pub(super) candidates: [Candidates; 2],
    notes: Vec<PreparedNote>,
    gone_notes: Vec<PreparedNote>,
}

impl<'a> Context<'a> {
    pub(super) fn new(inputs: &'a OfflineInputs) -> Self {
        let gate = Gate::new(&inputs.withheld, &inputs.person_entries, &inputs.rewritings);
        let handbook = inputs
            .head_handbook
            .as_ref()
            .filter(|_| inputs.version == MemoryVersion::V1);
        let head_handbook = outline::parse(text_of(handbook));
        let head_summary = outline::parse(text_of(inputs.head_summary.as_ref()));
        let now: Vec<_> = inputs
            .recaps
            .iter()
            .map(|one| (&one.path, &one.recap))
            .collect();
        let mut new = facts::gather(&now, &inputs.resources, &gate);
        let mut old = if has_same_sources(inputs) {
            new.clone()
        } else {
            let resources = inputs.resources.iter().filter(|one| !one.is_new);
            let resources: Vec<_> = resources.cloned().collect();
            facts::gather(&recaps_before(inputs), &resources, &gate)
        };
        let prepare = |(note, is_new): (&Note, bool)| PreparedNote::new(note, is_new, &gate);
        let notes: Vec<_> = notes_now(inputs).map(prepare).collect();
        let notes_before: Vec<_> = notes_before(inputs)
            .map(|note| prepare((note, false)))
            .collect();
        let version = inputs.version;
        let open = |facts: &Facts| ranking::candidates(facts, version).without_withheld(&gate);
        let bare = [&old, &new].map(open);
        let mut context = Self {
            known_summary: bare.iter().flat_map(Candidates::first_lines).collect(),
            known: known_texts(&[&old, &new], notes.iter().chain(&notes_before)),
            person: person_texts(inputs),
            staged: staged(inputs),
            rollouts: rollouts(inputs),
            gone_notes: gone_notes(inputs)
                .map(|note| prepare((note, false)))
                .collect(),
            inputs,
            head_handbook,
            head_summary,
            candidates: [Candidates::default(), Candidates::default()],
            old: Facts::default(),
            new: Facts::default(),
            effects: NoteEffects::default(),
            notes: Vec::new(),
            gate,
        };
        let foreign = context.foreign_entries();
        context.effects = notes_apply::apply(&mut new, &notes, &foreign);
        notes_apply::apply(&mut old, &notes_before, &[]);
        context.candidates = bare;
        if !notes.is_empty() || !notes_before.is_empty() {
            let open =
                |facts: &Facts| ranking::candidates(facts, version).without_withheld(&context.gate);
            context.candidates = [&old, &new].map(open);
            for candidates in &context.candidates {
                context.known_summary.extend(candidates.first_lines());
            }
        }
        let gate = &context.gate;
        context.candidates[1].retain(&|text| !gate.blocks(line::core(text)));
        context.old = old;
        context.new = new;
        context.notes = notes;
        context
    }

    /// Nothing came, went or changed that the files could show, and nothing
    /// in them has to go.
    pub(super) fn is_unchanged(&self) -> bool {
        self.old == self.new && self.effects.foreign.is_empty() && self.everything_stays()
    }

    fn everything_stays(&self) -> bool {
        let mut stays = !self.has_withheld_task(&self.head_handbook);
        for (file, head) in [
            (HANDBOOK, &self.head_handbook),
            (SUMMARY, &self.head_summary),
        ] {
            visit_all(head, &mut |block| {
                stays &= self.fate(file, block) == Fate::Stays
                    && self.with_live_pointers(file, block) == *block;
            });
        }
        stays
    }

    pub(super) fn origin(&self, file: &'static str, block: &Block) -> Origin {
        if self.is_person(file, &block.text) {
            return Origin::Person;
        }
        let is_ours = match file {
            SUMMARY => self.is_our_summary_line(block),
            _ => self.known.contains(&folded(line::core(&block.text))),
        };
        if is_ours {
            Origin::Ours
        } else {
            Origin::Foreign
        }
    }

    fn is_our_summary_line(&self, block: &Block) -> bool {
        if ranking::counted_start(&block.text).is_some() {
            return true;
        }
        let mut lines = block.text.lines();
        let first = lines.next().unwrap_or_default();
        let is_known = || self.known_summary.contains(&folded(line::core(first)));
        lines.all(ranking::is_below_topic) && (is_known() || ranking::is_quotation(first))
    }

    /// Whether any line of `text` is a person's entry of `file`.
    pub(super) fn is_person(&self, file: &str, text: &str) -> bool {
        let Some(theirs) = self.person.get(file).filter(|theirs| !theirs.is_empty()) else {
            return false;
        };
        items(text).any(|item| theirs.contains(&folded_entry(&item)))
    }

    /// What becomes of an entry that these rules did not make.
    pub(super) fn fate(&self, file: &'static str, block: &Block) -> Fate {
        let change = block
            .place
            .and_then(|place| self.effects.foreign.get(&(file, place)));
        if let Some(change) = change {
            return Fate::Changes(change.clone());
        }
        if self.is_person(file, &block.text) {
            return Fate::Stays;
        }
        let goes = |reason| Fate::Changes(Change::Goes(reason));
        if self.blocks(block) || (file == SUMMARY && self.blocks_topic(block)) {
            return goes(RetireReason::Withheld);
        }
        if !self.is_supported(&block.text) {
            return goes(RetireReason::Unsupported);
        }
        Fate::Stays
    }

    /// A block of another worker without references to what is gone: they
    /// become plain words; a transcript that is not the recap's becomes the
    /// recap's. A person's block is as it is.
    pub(super) fn with_live_pointers(&self, file: &str, block: &Block) -> Block {
        let is_dead = |target: &Target| match target {
            Target::Recap(name) => !self.staged.files.contains(name),
            Target::Thread(id) => !self.staged.threads.contains(id),
        };
        let text = line::made_plain(&self.with_right_rollouts(&block.text), &is_dead);
        if text == block.text || self.is_person(file, &block.text) {
            return block.clone();
        }
        Block {
            text,
            ..block.clone()
        }
    }

    fn with_right_rollouts(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let named = pointers::rollout_of(line, &self.rollouts);
            match named.filter(|named| !named.is_right) {
                Some(named) => {
                    out.push_str(&line[..named.bytes.start]);
                    out.push_str(named.actual);
                    out.push_str(&line[named.bytes.end..]);
                }
                None => out.push_str(line),
            }
        }
        out
    }

    /// Whether a heading's words, with number and outcome or without, are
    /// withheld. A person's heading never is.
    pub(super) fn blocks_heading(&self, section: &Section) -> bool {
        let title = section.title();
        let bare = labels::task_title(title).unwrap_or(title);
        let forms = [title, bare, labels::without_outcome(bare)];
        forms.iter().any(|form| self.gate.blocks(form))
            && !self.is_person(HANDBOOK, &section.heading)
    }

    /// Whether a list of words, or one of them, is withheld.
    pub(super) fn blocks_words(&self, file: &str, block: &Block) -> bool {
        let words = line::core(&block.text);
        let mut each = words.split(',').map(str::trim);
        (self.gate.blocks(words) || each.any(|word| self.gate.blocks(word)))
            && !self.is_person(file, &block.text)
    }

    /// Whether a section of the handbook has a task or keywords that are
    /// withheld: those are no blocks with a fate of their own.
    fn has_withheld_task(&self, section: &Section) -> bool {
        let is_task = section.level == 2 && labels::task_title(section.title()).is_some();
        let mut words = section.blocks.iter();
        let are_keywords = section.title() == KEYWORDS_TITLE;
        (is_task && self.blocks_heading(section))
            || (are_keywords && words.any(|block| self.blocks_words(HANDBOOK, block)))
            || section
                .children
                .iter()
                .any(|child| self.has_withheld_task(child))
    }

    /// Whether a topic's title is withheld: what stands before its colon, or
    /// beside its references.
    fn blocks_topic(&self, block: &Block) -> bool {
        let core = line::core(block.first_line());
        let title = match core.split_once([':', '：']) {
            Some((title, _)) if pointers::find(title).is_empty() => title.to_owned(),
            _ => line::without_references(core),
        };
        self.gate.blocks(&title)
    }

    pub(super) fn blocks(&self, block: &Block) -> bool {
        self.gate.blocks(line::core(&block.text))
            || self.gate.blocks(line::core(block.first_line()))
    }

    /// Whether something that a text rests on is still in the inputs. What
    /// cites nothing rests on nothing that could go.
    pub(super) fn is_supported(&self, text: &str) -> bool {
        if text.trim_end().ends_with(NOTE_MARK) {
            return self.has_note_for(text);
        }
        if let Some(path) = line::resource_in(text) {
            return self
                .inputs
                .resources
                .iter()
                .any(|one| one.path.as_str() == path);
        }
        let mut cited = Cited::default();
        cited.add(text);
        cited.is_empty() || self.has_any(&cited)
    }

    pub(super) fn has_any(&self, cited: &Cited) -> bool {
        !cited.files.is_disjoint(&self.staged.files)
            || !cited.threads.is_disjoint(&self.staged.threads)
    }

    pub(super) fn has_thread(&self, thread: &ThreadId) -> bool {
        self.staged.threads.contains(thread)
    }

    /// A line that another worker made from a note goes when that note is
    /// gone or says something else: it fits the old text better than any note
    /// there is now.
    fn has_note_for(&self, text: &str) -> bool {
        let line = Features::of(line::core(text)).tokens;
        let fit = |note: &PreparedNote| {
            note.all_lines()
                .map(|one| common(&line, &one.features.tokens))
                .max()
                .unwrap_or(0)
        };
        let now = self.notes.iter().map(fit).max().unwrap_or(0);
        let before = self.gone_notes.iter().map(fit).max().unwrap_or(0);
        let unknown_gone = self
            .inputs
            .removed_notes
            .iter()
            .any(|removed| removed.note.is_none());
        now > 0 && before <= now || (before == 0 && !unknown_gone)
    }

    /// Whether another worker wrote an entry of the head's file.
    pub(super) fn has_foreign(&self, file: &'static str) -> bool {
        let head = if file == HANDBOOK {
            &self.head_handbook
        } else {
            &self.head_summary
        };
        let mut has = false;
        visit_claims(head, &mut |block| {
            has |= self.origin(file, block) == Origin::Foreign;
        });
        has
    }

    /// Entries of the head tree that no recap or note accounts for.
    fn foreign_entries(&self) -> Vec<ForeignEntry> {
        let mut entries = Vec::new();
        for (file, head) in [
            (HANDBOOK, &self.head_handbook),
            (SUMMARY, &self.head_summary),
        ] {
            visit_claims(head, &mut |block| {
                let origin = self.origin(file, block);
                let Some(place) = block.place.filter(|_| origin != Origin::Ours) else {
                    return;
                };
                let text = line::core(block.first_line()).to_owned();
                entries.push(ForeignEntry {
                    file,
                    place,
                    features: Features::of(line::core(&block.text)),
                    text,
                    is_person: origin == Origin::Person,
                });
            });
        }
        entries
    }
}

fn text_of(text: Option<&Raw>) -> &str {
    text.map_or("", Raw::unredacted)
}

/// Calls `visit` for every block that states something: not for the lists of
/// files and keywords, nor for the lines under a group's heading.
fn visit_claims<'s>(section: &'s Section, visit: &mut impl FnMut(&'s Block)) {
    let title = section.title().to_lowercase();
    let is_list = title == "rollout_summary_files" || title == "keywords";
    let is_lead = section.level == 0 || (section.level == 1 && is_group_title(&title));
    if !is_list && !is_lead {
        section.blocks.iter().for_each(&mut *visit);
    }
    for child in &section.children {
        visit_claims(child, visit);
    }
}

fn visit_all<'s>(section: &'s Section, visit: &mut impl FnMut(&'s Block)) {
    section.blocks.iter().for_each(&mut *visit);
    section
        .children
        .iter()
        .for_each(|child| visit_all(child, visit));
}

/// Whether a first-level heading opens a task group.
pub(super) fn is_group_title(title: &str) -> bool {
    title.to_lowercase().starts_with("task group")
}

/// Recaps and resources are all as the last baseline consumed them.
fn has_same_sources(inputs: &OfflineInputs) -> bool {
    inputs.recaps.iter().all(|one| one.before == Before::Same)
        && inputs.removed_recaps.is_empty()
        && inputs.resources.iter().all(|one| !one.is_new)
}

fn recaps_before(inputs: &OfflineInputs) -> Vec<(&TreePath, &Recap)> {
    let staged = inputs.recaps.iter().filter_map(|one| match &one.before {
        Before::Same => Some((&one.path, &one.recap)),
        Before::Other(Some(recap)) => Some((&one.path, recap)),
        Before::Absent | Before::Other(None) => None,
    });
    let removed = inputs.removed_recaps.iter();
    let removed = removed.filter_map(|one| Some((&one.path, one.recap.as_ref()?)));
    staged.chain(removed).collect()
}

fn notes_now(inputs: &OfflineInputs) -> impl Iterator<Item = (&Note, bool)> {
    let notes = inputs.notes.iter();
    notes.map(|one| (&one.note, one.before != Before::Same))
}

fn notes_before(inputs: &OfflineInputs) -> impl Iterator<Item = &Note> {
    let same = inputs.notes.iter().filter(|one| one.before == Before::Same);
    same.map(|one| &one.note).chain(gone_notes(inputs))
}

/// Old texts of notes that were edited or removed.
fn gone_notes(inputs: &OfflineInputs) -> impl Iterator<Item = &Note> {
    let edited = inputs.notes.iter().filter_map(|one| match &one.before {
        Before::Other(Some(note)) => Some(note),
        _ => None,
    });
    let removed = inputs
        .removed_notes
        .iter()
        .filter_map(|one| one.note.as_ref());
    edited.chain(removed)
}

fn known_texts<'n>(
    facts: &[&Facts],
    notes: impl Iterator<Item = &'n PreparedNote>,
) -> HashSet<String> {
    let mut known = HashSet::new();
    for group in facts.iter().flat_map(|facts| &facts.groups) {
        known.extend(
            group
                .statements
                .iter()
                .map(|one| one.features.folded.clone()),
        );
    }
    // Joined and contradicted statements stood there once.
    known.extend(facts.iter().flat_map(|facts| facts.gone.keys().cloned()));
    for note in notes {
        known.extend(note.lines().map(|line| line.features.folded.clone()));
    }
    known
}

fn person_texts(inputs: &OfflineInputs) -> BTreeMap<&'static str, HashSet<String>> {
    let mut texts: BTreeMap<&'static str, HashSet<String>> = BTreeMap::new();
    for entry in &inputs.person_entries {
        let file = match entry.path.as_str() {
            HANDBOOK => HANDBOOK,
            SUMMARY => SUMMARY,
            _ => continue,
        };
        let folded = folded_entry(&entry.text);
        if !folded.is_empty() {
            texts.entry(file).or_default().insert(folded);
        }
    }
    texts
}

/// A block's own words, those of each bullet nested in it, and all of it: an
/// entry is one of these on one line.
fn items(text: &str) -> impl Iterator<Item = String> {
    let mut items: Vec<String> = vec![String::new()];
    for line in text.lines() {
        let trimmed = line.trim_start();
        let starts = ["- ", "* ", "+ "]
            .iter()
            .any(|marker| trimmed.starts_with(marker));
        match items.last_mut() {
            Some(last) if !starts => {
                last.push(' ');
                last.push_str(trimmed);
            }
            _ => items.push(trimmed.to_owned()),
        }
    }
    items.push(text.to_owned());
    items.into_iter()
}

/// An entry's or heading's words, so that both forms of it are equal.
fn folded_entry(line: &str) -> String {
    Features::of(line::core(line.trim_start().trim_start_matches('#'))).folded
}

fn staged(inputs: &OfflineInputs) -> Cited {
    let recaps = inputs.recaps.iter().filter(|one| !one.recap.is_no_op());
    let mut staged = Cited {
        files: BTreeSet::new(),
        threads: BTreeSet::new(),
    };
    for one in recaps {
        staged.files.insert(one.path.name().to_owned());
        staged.threads.insert(one.recap.header.thread_id.clone());
    }
    staged
}

fn rollouts(inputs: &OfflineInputs) -> BTreeMap<String, String> {
    let mut rollouts = BTreeMap::new();
    for one in &inputs.recaps {
        let header = &one.recap.header;
        let rollout = header.rollout_path.as_str();
        let rollout = line::of_header(rollout, facts::TRANSCRIPT_BYTES_MAX);
        rollouts.insert(one.path.name().to_owned(), rollout.clone());
        rollouts.insert(header.thread_id.to_string(), rollout);
    }
    rollouts
}
