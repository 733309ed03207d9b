//! A source that is gone: its files, and what only it supported.
//!
//! An entry names its sources by pointers, by `[Task n]` marks and by a
//! note's path. One that names none is taken for the source's when the source
//! says the same words and no other one does.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::domain::id::ThreadId;
use crate::domain::note::NOTE_MARK;
use crate::domain::path::{FileKind, TreePath};
use crate::history::forget::{Files, Forgotten, Place, cut, line_number};
use crate::text::document::{self, Block, BlockKind, Document};
use crate::text::entries::{is_group, is_task, is_topics, markdown_start};
use crate::text::pointers::{self, Pointer, Target};
use crate::text::shingles::{self, Statement, hash_entry, normalise};

/// Shorter statements, in characters, are too common to be anybody's.
const STATEMENT_CHARS_MIN: usize = 6;

const SECTION_START: &str = "## Thread `";

/// Where the words of what is forgotten, and of the rest, are.
struct Sources<'a> {
    threads: BTreeSet<ThreadId>,
    recaps: BTreeSet<String>,
    note: Option<&'a TreePath>,
    gone: Vec<&'a str>,
    left: Vec<&'a str>,
}

pub(super) fn plan(
    files: &Files,
    also: &[String],
    thread_id: Option<&ThreadId>,
    gone: &BTreeSet<TreePath>,
) -> Forgotten {
    let raw = files
        .iter()
        .find(|(path, _)| path.kind() == FileKind::RawMemories);
    let parts = raw.map(|(_, text)| raw_parts(text)).unwrap_or_default();
    let is_source = |path: &TreePath| {
        let kind = path.kind();
        matches!(kind, FileKind::Recap | FileKind::Note | FileKind::Resource)
    };
    let texts = |is_gone: bool| {
        let files = files
            .iter()
            .filter(move |(path, _)| is_source(path) && gone.contains(*path) == is_gone);
        files.map(|(_, text)| text.as_str())
    };
    let raw_texts = |is_gone: bool| {
        let text = raw.map_or("", |(_, text)| text.as_str());
        let parts = parts
            .iter()
            .filter(move |(id, _)| (Some(id) == thread_id) == is_gone);
        parts.map(move |(_, range)| &text[range.clone()])
    };
    let sources = Sources {
        threads: thread_id.into_iter().cloned().collect(),
        recaps: (gone.iter().filter(|path| path.kind() == FileKind::Recap))
            .map(|path| path.name().to_owned())
            .collect(),
        note: gone.iter().find(|path| path.kind() != FileKind::Recap),
        gone: texts(true)
            .chain(raw_texts(true))
            .chain(also.iter().map(String::as_str))
            .collect(),
        left: texts(false).chain(raw_texts(false)).collect(),
    };
    let mut forgotten = Forgotten::default();
    for path in gone.iter().filter(|path| files.contains_key(*path)) {
        forgotten.files.insert(path.clone(), None);
    }
    if let Some((path, text)) = raw {
        let cuts: Vec<Range<usize>> = (parts.iter())
            .filter(|(id, _)| Some(id) == thread_id)
            .map(|(_, range)| range.clone())
            .collect();
        if !cuts.is_empty() {
            let text = cut::without(text, cuts);
            let is_bare = raw_parts(&text).is_empty();
            let bare = "# Raw Memories\n\nNo raw memories yet.\n".to_owned();
            forgotten
                .files
                .insert(path.clone(), Some(if is_bare { bare } else { text }));
        }
    }
    let titles = of_outputs(files, &sources, &mut forgotten);
    of_topics(files, &titles, &mut forgotten);
    forgotten
}

/// Each session's part of `raw_memories.md`.
fn raw_parts(text: &str) -> Vec<(ThreadId, Range<usize>)> {
    let mut parts: Vec<(ThreadId, Range<usize>)> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let id = line.trim_end().strip_prefix(SECTION_START);
        let id = id.and_then(|rest| ThreadId::parse(rest.strip_suffix('`')?));
        let follows = text[start + line.len()..].starts_with("updated_at: ");
        if let Some(id) = id.filter(|_| follows) {
            if let Some((_, range)) = parts.last_mut() {
                range.end = start;
            }
            parts.push((id, start..text.len()));
        }
        start += line.len();
    }
    parts
}

/// Titles of tasks, normalised: those that went and those that are left.
#[derive(Default)]
struct Titles {
    gone: BTreeSet<String>,
    left: BTreeSet<String>,
}

fn of_outputs(files: &Files, sources: &Sources<'_>, forgotten: &mut Forgotten) -> Titles {
    let mut titles = Titles::default();
    for (path, text) in files {
        let is_markdown = path.as_str().to_ascii_lowercase().ends_with(".md");
        if !path.kind().is_output() || !is_markdown {
            continue;
        }
        let mut page = Page {
            path,
            text,
            document: document::parse(text, markdown_start(path, text)),
            sources,
            cuts: Vec::new(),
        };
        page.read(&mut titles, forgotten);
        if !page.cuts.is_empty() {
            let new = cut::without(text, page.cuts);
            forgotten.files.insert(path.clone(), Some(new));
        }
    }
    titles
}

/// Topics that have the title of a task that went name no session.
fn of_topics(files: &Files, titles: &Titles, forgotten: &mut Forgotten) {
    let Some((path, old)) = files
        .iter()
        .find(|(path, _)| path.kind() == FileKind::Summary)
    else {
        return;
    };
    let text = match forgotten.files.get(path) {
        Some(Some(text)) => text.clone(),
        Some(None) => return,
        None => old.clone(),
    };
    let document = document::parse(&text, markdown_start(path, &text));
    let mut cuts = Vec::new();
    for block in &document.blocks {
        let headings = block.section_index.map(|index| document.headings(index));
        let is_topic = headings.is_some_and(|all| all.iter().any(|title| is_topics(title)));
        let own = own_words(&text[block.bytes.start..block.own_end]);
        let is_gone = |title: &String| own == *title || own.starts_with(&format!("{title} "));
        if is_topic
            && block.kind == BlockKind::Item
            && titles.gone.iter().any(is_gone)
            && !titles.left.iter().any(is_gone)
        {
            forgotten.entries.push(Place {
                path: path.clone(),
                line_number: line_number(old, old.find(&text[block.bytes.clone()]).unwrap_or(0)),
                text: first_line(&text[block.bytes.clone()]),
            });
            cuts.push(block.bytes.clone());
        }
    }
    if !cuts.is_empty() {
        let new = cut::without(&text, cuts);
        forgotten.files.insert(path.clone(), Some(new));
    }
}

fn own_words(text: &str) -> String {
    normalise(text)
}

fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.trim_start_matches(['-', '*', '+', ' ']).to_owned()
}

/// One memory file.
struct Page<'a> {
    path: &'a TreePath,
    text: &'a str,
    document: Document,
    sources: &'a Sources<'a>,
    cuts: Vec<Range<usize>>,
}

/// What a block rests on.
#[derive(Default)]
struct Support {
    dead: Vec<Range<usize>>,
    has_live: bool,
}

impl Page<'_> {
    fn read(&mut self, titles: &mut Titles, forgotten: &mut Forgotten) {
        let gone_tasks = self.tasks(titles, forgotten);
        let blocks = self.document.blocks.clone();
        for block in blocks {
            let is_cut = (self.cuts.iter())
                .any(|cut| cut.start <= block.bytes.start && block.bytes.end <= cut.end);
            if is_cut {
                continue;
            }
            let support = self.support(&block, &gone_tasks);
            let place = Place {
                path: self.path.clone(),
                line_number: line_number(self.text, block.bytes.start),
                text: first_line(&self.text[block.bytes.clone()]),
            };
            if support.dead.is_empty() {
                if !support.has_live && self.is_said_by_gone_alone(&block) {
                    self.cuts.push(block.bytes.clone());
                    forgotten.entries.push(place);
                }
            } else if support.has_live {
                self.cuts.extend(support.dead);
                forgotten.trimmed.push(place);
            } else {
                self.cuts.push(block.bytes.clone());
                forgotten.entries.push(place);
            }
        }
    }

    /// Cuts the tasks whose sources are all gone; gives their numbers by the
    /// group they stand in.
    fn tasks(
        &mut self,
        titles: &mut Titles,
        forgotten: &mut Forgotten,
    ) -> BTreeMap<usize, BTreeSet<u32>> {
        let mut gone: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
        if self.path.kind() != FileKind::Handbook {
            return gone;
        }
        for task in self
            .document
            .sections
            .iter()
            .filter(|section| is_task(section))
        {
            let (number, title) = number_and_title(&task.title);
            let own = pointers::find(&self.text[task.bytes.clone()]);
            let dead = own.iter().filter(|pointer| self.is_dead(pointer)).count();
            if dead == 0 || dead < own.len() {
                titles.left.insert(title);
                continue;
            }
            titles.gone.insert(title);
            forgotten.entries.push(Place {
                path: self.path.clone(),
                line_number: line_number(self.text, task.bytes.start),
                text: task.title.clone(),
            });
            self.cuts.push(task.bytes.clone());
            if let (Some(group), Some(number)) = (self.group_of(task.bytes.start), number) {
                gone.entry(group).or_default().insert(number);
            }
        }
        gone
    }

    fn group_of(&self, at: usize) -> Option<usize> {
        let mut groups = self.document.sections.iter();
        groups.position(|section| is_group(section) && section.bytes.contains(&at))
    }

    fn is_dead(&self, pointer: &Pointer) -> bool {
        match &pointer.target {
            Target::Thread(id) => self.sources.threads.contains(id),
            Target::Recap(name) => self.sources.recaps.contains(name),
        }
    }

    fn support(&self, block: &Block, gone_tasks: &BTreeMap<usize, BTreeSet<u32>>) -> Support {
        let text = &self.text[block.bytes.clone()];
        let start = block.bytes.start;
        let mut support = Support::default();
        for pointer in pointers::find(text) {
            let bytes = start + pointer.bytes.start..start + pointer.bytes.end;
            if self.is_dead(&pointer) {
                support.dead.push(self.with_frame(&bytes));
            } else {
                support.has_live = true;
            }
        }
        let none = BTreeSet::new();
        let gone = self
            .group_of(start)
            .and_then(|group| gone_tasks.get(&group));
        for (numbers, bytes) in task_marks(text) {
            let gone = gone.unwrap_or(&none);
            if numbers.iter().all(|number| gone.contains(number)) {
                support
                    .dead
                    .push(self.with_frame(&(start + bytes.start..start + bytes.end)));
            } else {
                support.has_live = true;
            }
        }
        if let Some(note) = self.sources.note {
            let named = format!("({note})");
            if let Some(at) = text.find(&named) {
                support
                    .dead
                    .push(self.with_frame(&(start + at..start + at + named.len())));
                if let Some(mark) = text.find(NOTE_MARK) {
                    support
                        .dead
                        .push(self.with_frame(&(start + mark..start + mark + NOTE_MARK.len())));
                }
            }
        }
        // A note that is named supports it as well.
        let names_note = text.contains("(extensions/ad_hoc/notes/");
        let is_gone_note = self
            .sources
            .note
            .is_some_and(|note| text.contains(note.as_str()));
        support.has_live |= names_note && !is_gone_note;
        support
    }

    /// With the separator before it, or else the one behind.
    fn with_frame(&self, bytes: &Range<usize>) -> Range<usize> {
        let line_start = self.text[..bytes.start].rfind('\n').map_or(0, |at| at + 1);
        let before = &self.text[line_start..bytes.start];
        let bare = before.trim_end_matches([' ', ',', ';']);
        let is_first = bare.trim_start_matches([' ', '-', '*', '+']).is_empty();
        let after = &self.text[bytes.end..];
        // What follows without a separator of its own keeps this one.
        let is_followed = after.starts_with(|c: char| !c.is_whitespace() && !",;.)".contains(c));
        if !is_first && is_followed {
            return bytes.clone();
        }
        if !is_first {
            return line_start + bare.len()..bytes.end;
        }
        let skipped = after.len() - after.trim_start_matches([' ', ',', ';']).len();
        bytes.start..bytes.end + skipped
    }

    /// A statement that names no source, in the words of what is gone.
    fn is_said_by_gone_alone(&self, block: &Block) -> bool {
        let own = &self.text[block.bytes.start..block.own_end];
        let is_statement = matches!(block.kind, BlockKind::Item | BlockKind::Paragraph)
            && STATEMENT_CHARS_MIN <= normalise(own).chars().count();
        // A line with a note's mark rests on a note, and the other way round.
        let has_mark = own.trim_end().ends_with(NOTE_MARK);
        let is_head = self.path.kind() == FileKind::Handbook
            && block.section_index.is_some_and(|index| {
                let section = &self.document.sections[index];
                is_group(section) && block.kind == BlockKind::Paragraph
            });
        let is_skill = self.path.kind() == FileKind::Skill;
        if !is_statement || is_head || is_skill || has_mark != self.sources.note.is_some() {
            return false;
        }
        says(&self.sources.gone, own) && !says(&self.sources.left, own)
    }
}

/// Whether a line of one of the texts says what `statement` does.
fn says(texts: &[&str], statement: &str) -> bool {
    let hashes = hash_entry([0; 16], without_place(statement));
    let normal = normalise(without_place(statement));
    let lines = texts.iter().flat_map(|text| text.lines());
    let mut lines = lines.filter(|line| !line.trim().is_empty());
    lines.any(|line| {
        // Cheap first: most lines have nothing in common with it.
        shingles::normalise(line).contains(&normal) || Statement::of(line).is_withheld_as(&hashes)
    })
}

/// `… (in harbour)`: where it holds is no part of what was said.
fn without_place(statement: &str) -> &str {
    let bare = statement.trim_end();
    let bare = bare.strip_suffix(NOTE_MARK).unwrap_or(bare).trim_end();
    match bare.rfind(" (in ") {
        Some(at) if bare.ends_with(')') => &bare[..at],
        _ => bare,
    }
}

/// `Task 2: title, outcome` as number and normalised title.
fn number_and_title(heading: &str) -> (Option<u32>, String) {
    let rest = heading.strip_prefix("Task ").unwrap_or(heading);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest[..digits].parse().ok();
    let title = rest[digits..].trim_start_matches([':', ' ']);
    let title = title.rsplit_once(',').map_or(title, |(title, _)| title);
    (number, normalise(title))
}

/// `[Task 1]` and `[Task 1, 2]` with their bytes.
fn task_marks(text: &str) -> Vec<(Vec<u32>, Range<usize>)> {
    const OPEN: &str = "[Task ";
    let mut marks = Vec::new();
    for (start, _) in text.match_indices(OPEN) {
        let inner = &text[start + OPEN.len()..];
        let Some(end) = inner.find(']') else {
            continue;
        };
        let numbers = inner[..end].split(',').map(|part| part.trim().parse().ok());
        if let Some(numbers) = numbers.collect::<Option<Vec<u32>>>() {
            marks.push((numbers, start..start + OPEN.len() + end + 1));
        }
    }
    marks
}
