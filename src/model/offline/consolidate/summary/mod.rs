//! The summary: what fits the budget, best first, around what others wrote.
//!
//! Lines that these rules write are chosen anew each time. Lines of a person or
//! another worker stay where they are, word for word, while what they cite is
//! in the inputs, and their bytes are taken off the budget first. Only when
//! they alone exceed it, other workers' lines leave, the last ones first; a
//! person's lines never do.

use std::collections::{BTreeSet, HashSet};

use crate::domain::limits::{BYTES_PER_TOKEN, SUMMARY_TOKENS_MAX, SUMMARY_V2_BYTES_LIMIT};
use crate::domain::note::NOTE_MARK;
use crate::domain::path::SUMMARY;
use crate::domain::version::MemoryVersion;
use crate::model::offline::consolidate::RetireReason;
use crate::model::offline::consolidate::context::{Context, Fate, Origin};
use crate::model::offline::consolidate::line::{self, Cited};
use crate::model::offline::consolidate::notes_apply::Change;
use crate::model::offline::consolidate::outline::{self, Block, Section};
use crate::model::offline::consolidate::ranking::{self, Candidates, Line, Topic};
use crate::model::offline::consolidate::tokens::{Features, folded};

use self::budget::{Chosen, also_line, choose, uncovered};

mod budget;

const FORMAT_MARK: &str = "v1";
const PROFILE: &str = "User Profile";
const PREFERENCES: &str = "User preferences";
const TIPS: &str = "General Tips";
const TOPICS: &str = "What's in Memory";
const OLDER: &str = "Older Memory Topics";

/// The headings that must be there, in their order.
const HEADINGS: [&str; 4] = [PROFILE, PREFERENCES, TIPS, TOPICS];

pub(super) struct Summarised {
    pub(super) text: String,
    pub(super) retired: Vec<(String, RetireReason)>,
    /// What it could not keep to, in words.
    pub(super) remarks: Vec<String>,
}

/// The budget in bytes: the caller's, and what the readers take at most.
fn budget(context: &Context<'_>) -> usize {
    let limit = match context.inputs.version {
        MemoryVersion::V1 => SUMMARY_TOKENS_MAX * BYTES_PER_TOKEN,
        MemoryVersion::V2 => SUMMARY_V2_BYTES_LIMIT - 1,
    };
    context.inputs.summary_bytes_max.min(limit)
}

/// Whether a head's summary can stay as it is.
pub(super) fn is_valid(context: &Context<'_>, text: &str) -> bool {
    let has = |heading: &str| {
        let line = format!("## {heading}");
        text.lines().any(|one| one.trim() == line)
    };
    text.lines().next() == Some(FORMAT_MARK)
        && HEADINGS.iter().all(|heading| has(heading))
        && text.len() <= budget(context)
}

/// `tasks_gone` are folded titles of tasks that left the handbook.
pub(super) fn update(context: &Context<'_>, tasks_gone: &HashSet<String>) -> Summarised {
    let budget = budget(context);
    let [before, candidates] = &context.candidates;
    let mut retired = Vec::new();
    let mut remarks = Vec::new();
    let mut kept = keep(context, &context.head_summary, tasks_gone, &mut retired);
    shrink(context, &mut kept, budget, &mut retired, &mut remarks);

    let facts = Kept::of(context, &kept);
    let wanted = without_covered(candidates.clone(), before, &facts, &context.head_summary);
    let chosen = choose(&wanted, &kept, budget);
    let text = render(&wanted, &chosen, &kept);
    let left_out = wanted.topics.len().saturating_sub(chosen.topics.len());
    if left_out > 0 {
        remarks.push(format!(
            "{left_out} topics left out of the summary for its budget"
        ));
    }
    retired.extend(retired_lines(context, &text, &wanted));
    Summarised {
        text,
        retired,
        remarks,
    }
}

/// The head's summary with only what others wrote and what stays of it.
fn keep(
    context: &Context<'_>,
    head: &Section,
    tasks_gone: &HashSet<String>,
    retired: &mut Vec<(String, RetireReason)>,
) -> Section {
    let mut kept = Section {
        level: head.level,
        heading: head.heading.clone(),
        ..Section::default()
    };
    let mut anchor = None;
    for block in &head.blocks {
        if head.level == 0 && block.text.trim() == FORMAT_MARK {
            continue;
        }
        // A first line of prose right below the format mark.
        let block = match block.text.strip_prefix(FORMAT_MARK).map(str::trim_start) {
            Some(rest) if head.level == 0 => Block {
                text: rest.to_owned(),
                ..block.clone()
            },
            _ => block.clone(),
        };
        match kept_block(context, &block, tasks_gone) {
            Ok(()) => kept.blocks.push(Block {
                anchor: anchor.clone(),
                ..context.with_live_pointers(SUMMARY, &block)
            }),
            Err(Some(reason)) => retired.push((line::core(block.first_line()).to_owned(), reason)),
            Err(None) => anchor = Some(anchor_of(&block)),
        }
    }
    for child in &head.children {
        let child = keep(context, child, tasks_gone, retired);
        kept.children.push(child);
    }
    kept
}

/// Whether a block stays as it is. `Err(None)`: these rules wrote it and
/// decide anew.
fn kept_block(
    context: &Context<'_>,
    block: &Block,
    tasks_gone: &HashSet<String>,
) -> Result<(), Option<RetireReason>> {
    match context.origin(SUMMARY, block) {
        Origin::Ours => return Err(None),
        Origin::Person => {}
        Origin::Foreign => {
            let title = topic_title(block.first_line());
            if tasks_gone.contains(&title) && !title.is_empty() {
                return Err(Some(RetireReason::Unsupported));
            }
        }
    }
    match context.fate(SUMMARY, block) {
        Fate::Stays => Ok(()),
        // The note's line comes by rank, with its mark.
        Fate::Changes(Change::Becomes(_)) => Err(Some(RetireReason::Corrected)),
        Fate::Changes(Change::Goes(reason)) => Err(Some(reason)),
    }
}

/// The folded words before the colon of a topic line.
fn topic_title(first_line: &str) -> String {
    let core = line::core(first_line);
    folded(
        core.split_once([':', '：'])
            .map_or(core, |(title, _)| title),
    )
}

/// Takes other workers' blocks out, the last first, until the rest fits.
fn shrink(
    context: &Context<'_>,
    kept: &mut Section,
    budget: usize,
    retired: &mut Vec<(String, RetireReason)>,
    remarks: &mut Vec<String>,
) {
    let nothing = Candidates::default();
    let size = |kept: &Section| render(&nothing, &Chosen::default(), kept).len();
    let mut bytes = size(kept);
    if bytes <= budget {
        return;
    }
    let mut others = Vec::new();
    other_places(context, kept, &mut others);
    // Printing the file for each block that leaves is dear: while it must be
    // too long in any case, whatever headings leave too, it is not printed.
    let mut least = bytes.saturating_sub(headings_bytes(kept));
    while bytes > budget {
        let Some(gone) = others.pop().and_then(|place| remove(kept, place)) else {
            bytes = size(kept);
            if bytes > budget {
                remarks.push(format!(
                    "what people wrote takes {bytes} bytes of the summary, {budget} are allowed; it stays"
                ));
            }
            return;
        };
        least = least.saturating_sub(gone.text.len() + BLANKS_BYTES_MAX);
        retired.push((
            line::core(gone.first_line()).to_owned(),
            RetireReason::Demoted,
        ));
        if least <= budget {
            bytes = size(kept);
        }
    }
}

/// Most line ends that leave with a block.
const BLANKS_BYTES_MAX: usize = 3;

/// Where the blocks stand that no person wrote, in their order.
fn other_places(context: &Context<'_>, section: &Section, places: &mut Vec<usize>) {
    let others = section.blocks.iter();
    let others = others.filter(|block| !context.is_person(SUMMARY, &block.text));
    places.extend(others.filter_map(|block| block.place));
    for child in &section.children {
        other_places(context, child, places);
    }
}

fn headings_bytes(section: &Section) -> usize {
    let below = section.children.iter().map(headings_bytes);
    section.heading.len() + BLANKS_BYTES_MAX + below.sum::<usize>()
}

fn remove(section: &mut Section, place: usize) -> Option<Block> {
    let here = section
        .blocks
        .iter()
        .rposition(|block| block.place == Some(place));
    if let Some(at) = here {
        return Some(section.blocks.remove(at));
    }
    let mut children = section.children.iter_mut();
    children.find_map(|child| remove(child, place))
}

/// What the blocks that stay already say.
struct Kept {
    cited: Cited,
    titles: HashSet<String>,
    texts: Vec<Features>,
    /// Sections that another worker tends: what it left out stays out.
    tended: BTreeSet<String>,
    /// Another worker's lines have the note mark: it folded the notes in.
    has_notes: bool,
}

impl Kept {
    fn of(context: &Context<'_>, kept: &Section) -> Self {
        let mut facts = Self {
            cited: Cited::default(),
            titles: HashSet::new(),
            texts: Vec::new(),
            tended: BTreeSet::new(),
            has_notes: false,
        };
        for section in &kept.children {
            facts.add(context, section, section.title());
        }
        facts
    }

    fn add(&mut self, context: &Context<'_>, section: &Section, top: &str) {
        for block in &section.blocks {
            self.cited.add(&block.text);
            self.titles.insert(topic_title(block.first_line()));
            self.texts.push(Features::of(line::core(&block.text)));
            if !context.is_person(SUMMARY, &block.text) {
                self.tended.insert(top.to_owned());
                self.has_notes |= block.text.trim_end().ends_with(NOTE_MARK);
            }
        }
        for child in &section.children {
            self.add(context, child, top);
        }
    }

    fn says(&self, line: &Line) -> bool {
        self.texts
            .iter()
            .any(|text| text.is_same_as(&line.features))
    }

    fn covers(&self, topic: &Topic) -> bool {
        !self.cited.files.is_disjoint(&topic.cited.files)
            || !self.cited.threads.is_disjoint(&topic.cited.threads)
            || self.titles.contains(&topic.title)
    }
}

/// The candidates that nobody else's line stands for. In a section that
/// another worker tends, what could have been there before and is not was left
/// out on purpose.
fn without_covered(
    mut wanted: Candidates,
    before: &Candidates,
    kept: &Kept,
    head: &Section,
) -> Candidates {
    let mut in_head = HashSet::new();
    first_lines(head, &mut in_head);
    let was_left_out = |section: &str, known: &BTreeSet<String>, texts: &[&str]| {
        let is_in_head = |text: &&str| in_head.contains(&first_line(text));
        let is_note = texts.iter().any(|text| text.ends_with(NOTE_MARK));
        (kept.tended.contains(section) || (is_note && kept.has_notes))
            && texts.iter().any(|text| known.contains(&first_line(text)))
            && !texts.iter().any(is_in_head)
    };
    let known = before.first_lines();
    let line_stays = |section: &str, line: &Line| {
        !kept.says(line) && !was_left_out(section, &known, &[&line.text])
    };
    wanted
        .preferences
        .retain(|line| line_stays(PREFERENCES, line));
    wanted.tips.retain(|line| line_stays(TIPS, line));
    wanted.topics.retain(|topic| {
        let texts: Vec<&str> = topic.levels.iter().map(String::as_str).collect();
        !kept.covers(topic) && !was_left_out(TOPICS, &known, &texts)
    });
    if kept.tended.contains(PROFILE) {
        wanted.profile.clear();
    }
    wanted
}

fn first_line(text: &str) -> String {
    folded(line::core(text.lines().next().unwrap_or_default()))
}

fn first_lines(section: &Section, lines: &mut HashSet<String>) {
    lines.extend(section.blocks.iter().map(|block| first_line(&block.text)));
    section
        .children
        .iter()
        .for_each(|child| first_lines(child, lines));
}

/// The file: what was chosen, and around it what stays.
fn render(wanted: &Candidates, chosen: &Chosen, kept: &Section) -> String {
    let mut file = Section::default();
    file.blocks.push(Block::paragraph(FORMAT_MARK));
    for heading in HEADINGS {
        let mut section = Section::new(2, heading);
        match heading {
            PROFILE if chosen.has_profile => {
                section
                    .blocks
                    .extend(wanted.profile.iter().cloned().map(Block::bullet));
            }
            PREFERENCES => section.blocks = bullets(&wanted.preferences[..chosen.preferences]),
            TIPS => section.blocks = bullets(&wanted.tips[..chosen.tips]),
            TOPICS => section.children = topics(wanted, chosen),
            _ => {}
        }
        file.children.push(section);
    }
    merge(&mut file, kept, true);
    outline::print(&file)
}

fn bullets(lines: &[Line]) -> Vec<Block> {
    lines
        .iter()
        .map(|line| Block::bullet(line.text.clone()))
        .collect()
}

fn topics(wanted: &Candidates, chosen: &Chosen) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut older = Section::new(3, OLDER);
    for (index, level) in &chosen.topics {
        let topic = &wanted.topics[*index];
        let scope = &wanted.scopes[topic.scope];
        let block = Block::bullet(topic.levels[*level].clone());
        let below = if topic.is_recent {
            let section = find_or_add(&mut sections, 3, scope);
            find_or_add(&mut section.children, 4, &topic.day)
        } else {
            find_or_add(&mut older.children, 4, scope)
        };
        below.blocks.push(block);
    }
    if chosen.also > 0 {
        let names = uncovered(wanted, chosen);
        let count = chosen.also.min(names.len());
        older.blocks.push(Block::bullet(also_line(&names, count)));
    }
    if !older.is_empty() {
        sections.push(older);
    }
    sections
}

fn find_or_add<'s>(sections: &'s mut Vec<Section>, level: usize, title: &str) -> &'s mut Section {
    let place = sections.iter().position(|section| section.title() == title);
    let place = place.unwrap_or_else(|| {
        sections.push(Section::new(level, title));
        sections.len() - 1
    });
    &mut sections[place]
}

/// Puts what stays of the head into `file`: each block behind the one it
/// stood behind, if that is still there, each section likewise.
fn merge(file: &mut Section, kept: &Section, is_top: bool) {
    let mut after = usize::from(is_top);
    let mut anchor = None;
    for block in &kept.blocks {
        if block.anchor != anchor {
            anchor.clone_from(&block.anchor);
            let place = anchor.as_ref().and_then(|anchor| {
                file.blocks
                    .iter()
                    .position(|one| one.place.is_none() && anchor_of(one) == *anchor)
            });
            // Where the line before it is gone, it stays behind the last one
            // of its kind.
            after = place.map_or(after, |place| place + 1);
        }
        file.blocks.insert(after, block.clone());
        after += 1;
    }
    let mut behind = 0;
    for child in &kept.children {
        let same = file
            .children
            .iter()
            .position(|one| is_same_heading(one, child));
        if let Some(place) = same {
            merge(&mut file.children[place], child, false);
            behind = place + 1;
            continue;
        }
        // A scope or day whose last line left has no reason to be there.
        let is_structure = child.level > 2;
        if is_structure && !has_blocks(child) {
            continue;
        }
        file.children.insert(behind, child.clone());
        behind += 1;
    }
}

/// How a line of these rules is found again: counted ones by their beginning.
fn anchor_of(block: &Block) -> String {
    let first = block.first_line();
    let counted = ranking::counted_start(first);
    counted.map_or_else(|| first_line(&block.text), str::to_owned)
}

fn is_same_heading(left: &Section, right: &Section) -> bool {
    let plain = |section: &Section| section.title().replace('’', "'");
    left.level == right.level && plain(left) == plain(right)
}

fn has_blocks(section: &Section) -> bool {
    !section.blocks.is_empty() || section.children.iter().any(has_blocks)
}

/// Lines that these rules wrote into the head's summary and that are not in
/// the new one.
fn retired_lines(
    context: &Context<'_>,
    text: &str,
    wanted: &Candidates,
) -> Vec<(String, RetireReason)> {
    let mut now = HashSet::new();
    first_lines(&outline::parse(text), &mut now);
    let possible = wanted.first_lines();
    let mut retired = Vec::new();
    visit(&context.head_summary, &mut |block| {
        let first = first_line(&block.text);
        let is_ours = context.origin(SUMMARY, block) == Origin::Ours;
        if !is_ours || now.contains(&first) || ranking::counted_start(block.first_line()).is_some()
        {
            return;
        }
        let reason = match context.new.gone.get(&first) {
            Some(reason) => *reason,
            None if possible.contains(&first) => RetireReason::Demoted,
            None => RetireReason::Unsupported,
        };
        retired.push((line::core(block.first_line()).to_owned(), reason));
    });
    retired
}

fn visit<'s>(section: &'s Section, look: &mut impl FnMut(&'s Block)) {
    if section.level > 0 {
        section.blocks.iter().for_each(&mut *look);
    }
    section.children.iter().for_each(|child| visit(child, look));
}
