//! Summary and handbook as entries: the units that must not get lost.
//!
//! - `# Task Group: …` is a group; its bytes reach to the next first-level
//!   heading, so they contain its tasks and bullets.
//! - `## Task n: …` inside a group is a task with all its lists.
//! - A list item under "What's in Memory" is a topic; items that only carry
//!   its `desc:` or `learnings:` belong to it.
//! - Every other list item, paragraph, table, quotation or code block is a
//!   bullet. Nested items belong to the outer one.
//!
//! # Not in here
//!
//! Whether the file is as it should be: see `validate`.

use std::ops::Range;

use crate::domain::entry::{Entry, EntryKind};
use crate::domain::id::ThreadId;
use crate::domain::note::NOTE_MARK;
use crate::domain::path::{FileKind, TreePath};
use crate::text::document::{self, Block, BlockKind, Document, LineStarts, Section};
use crate::text::pointers::{self, Target};

/// The summary's section that lists topics.
pub(crate) const TOPICS_TITLE: &str = "What's in Memory";

/// How the heading of a handbook's group begins.
pub(crate) const GROUP_TITLE_START: &str = "Task Group";

/// Parts of a topic that some writers put beside it instead of below.
const TOPIC_PARTS: [&str; 4] = ["desc:", "learnings:", "description:", "learning:"];

/// All entries of a file, in the order in which they start.
pub(crate) fn parse(path: &TreePath, text: &str) -> Vec<Entry> {
    let reader = Reader {
        path,
        text,
        document: document::parse(text, markdown_start(path, text)),
        is_handbook: path.kind() == FileKind::Handbook,
        lines: LineStarts::of(text),
    };
    reader.entries()
}

/// Where Markdown begins: after the first line of a summary, which is a format
/// mark and would turn a ruler below it into a heading.
pub(crate) fn markdown_start(path: &TreePath, text: &str) -> usize {
    let first_line = text.split_inclusive('\n').next().unwrap_or_default();
    let is_mark = path.kind() == FileKind::Summary && first_line.trim() == "v1";
    if is_mark { first_line.len() } else { 0 }
}

/// Whether a heading opens a group of the handbook.
pub(crate) fn is_group(section: &Section) -> bool {
    section.level == 1 && section.title.starts_with(GROUP_TITLE_START)
}

/// Whether a heading is a task's: `Task`, a number, and something behind.
pub(crate) fn is_task(section: &Section) -> bool {
    let number = section.title.strip_prefix("Task ").unwrap_or_default();
    section.level == 2 && number.starts_with(|c: char| c.is_numeric())
}

/// Whether a heading opens the list of topics, with any apostrophe.
pub(crate) fn is_topics(title: &str) -> bool {
    title.replace('’', "'") == TOPICS_TITLE
}

/// Whether an entry is a count of the profile, such as `Sessions in memory:
/// 12, since 2025-11-30.`: each pass counts anew.
pub(crate) fn is_count(entry: &Entry) -> bool {
    let title = entry
        .headings
        .last()
        .map(|title| title.trim().to_lowercase());
    entry.path.kind() == FileKind::Summary
        && title.as_deref() == Some("user profile")
        && entry.text.chars().any(char::is_numeric)
}

struct Reader<'a> {
    path: &'a TreePath,
    text: &'a str,
    document: Document,
    is_handbook: bool,
    lines: LineStarts,
}

impl Reader<'_> {
    fn entries(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        if self.is_handbook {
            entries.extend(self.groups_and_tasks());
        }
        let mut last_topic: Option<(usize, Option<usize>)> = None;
        for block in &self.document.blocks {
            let Some(kind) = self.kind(block) else {
                continue;
            };
            let own = self.own_text(block);
            let is_part = TOPIC_PARTS
                .iter()
                .any(|part| own.to_lowercase().starts_with(part));
            if let (true, Some((index, section))) = (is_part, last_topic)
                && section == block.section_index
            {
                let start = entries[index].bytes.start;
                let text = std::mem::take(&mut entries[index].text);
                entries[index] = self.entry(
                    EntryKind::Topic,
                    self.headings(block),
                    text,
                    start..self.trimmed_end(&block.bytes),
                );
                continue;
            }
            if kind == EntryKind::Topic {
                last_topic = Some((entries.len(), block.section_index));
            }
            let bytes = block.bytes.start..self.trimmed_end(&block.bytes);
            entries.push(self.entry(kind, self.headings(block), own, bytes));
        }
        entries.sort_by_key(|entry| (entry.bytes.start, std::cmp::Reverse(entry.bytes.end)));
        entries
    }

    fn groups_and_tasks(&self) -> impl Iterator<Item = Entry> {
        self.document
            .sections
            .iter()
            .enumerate()
            .filter_map(|(index, section)| {
                let kind = if is_group(section) {
                    EntryKind::TaskGroup
                } else if is_task(section) {
                    EntryKind::Task
                } else {
                    return None;
                };
                let mut headings = self.document.headings(index);
                headings.pop();
                let bytes = section.bytes.start..self.trimmed_end(&section.bytes);
                Some(self.entry(kind, headings, section.title.clone(), bytes))
            })
    }

    /// What a block is, if it is an entry of its own.
    fn kind(&self, block: &Block) -> Option<EntryKind> {
        if matches!(block.kind, BlockKind::Html | BlockKind::Rule) {
            return None;
        }
        let Some(index) = block.section_index else {
            return Some(EntryKind::Bullet);
        };
        if self.is_handbook {
            let section = &self.document.sections[index];
            let is_group_head = is_group(section) && block.kind == BlockKind::Paragraph;
            if is_group_head || self.is_inside_task(index) {
                return None;
            }
        }
        let is_topic = block.kind == BlockKind::Item
            && self
                .document
                .headings(index)
                .iter()
                .any(|title| is_topics(title));
        Some(if is_topic {
            EntryKind::Topic
        } else {
            EntryKind::Bullet
        })
    }

    fn is_inside_task(&self, index: usize) -> bool {
        let nearest = self.document.sections[..=index]
            .iter()
            .rev()
            .find(|s| s.level <= 2);
        nearest.is_some_and(is_task)
    }

    fn headings(&self, block: &Block) -> Vec<String> {
        (block.section_index).map_or_else(Vec::new, |index| self.document.headings(index))
    }

    /// A block's own text on one line, without marker and nested lists.
    fn own_text(&self, block: &Block) -> String {
        let own = &self.text[block.bytes.start..block.own_end];
        if matches!(block.kind, BlockKind::Code | BlockKind::Table) {
            return own.trim_end().to_owned();
        }
        let own = if block.kind == BlockKind::Item {
            without_marker(own)
        } else {
            own
        };
        own.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The end of a range without the blank lines that follow its content.
    fn trimmed_end(&self, bytes: &Range<usize>) -> usize {
        let content = self.text[bytes.clone()].trim_end();
        let end = bytes.start + content.len();
        let has_newline = self.text[end..bytes.end].starts_with('\n');
        let has_crlf = self.text[end..bytes.end].starts_with("\r\n");
        end + usize::from(has_newline) + 2 * usize::from(has_crlf)
    }

    fn entry(
        &self,
        kind: EntryKind,
        headings: Vec<String>,
        text: String,
        bytes: Range<usize>,
    ) -> Entry {
        let (thread_ids, recap_files) = self.cited(&bytes);
        let line = self.lines.line_number(bytes.start);
        Entry {
            path: self.path.clone(),
            kind,
            headings,
            is_from_note: text.trim_end().ends_with(NOTE_MARK),
            text,
            bytes,
            line_number: u32::try_from(line).unwrap_or(u32::MAX),
            thread_ids,
            recap_files,
        }
    }

    fn cited(&self, bytes: &Range<usize>) -> (Vec<ThreadId>, Vec<String>) {
        let (mut threads, mut recaps) = (Vec::new(), Vec::new());
        for pointer in pointers::find(&self.text[bytes.clone()]) {
            match pointer.target {
                Target::Thread(id) if !threads.contains(&id) => threads.push(id),
                Target::Recap(name) if !recaps.contains(&name) => recaps.push(name),
                Target::Thread(_) | Target::Recap(_) => {}
            }
        }
        (threads, recaps)
    }
}

/// Takes `- `, `12. `, and a check box off.
fn without_marker(item: &str) -> &str {
    let item = item.trim_start();
    let digits = item.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match &item[digits..] {
        numbered if 0 < digits => numbered.strip_prefix(['.', ')']),
        bullet => bullet.strip_prefix(['-', '*', '+']),
    };
    let text = rest.unwrap_or(item).trim_start();
    ["[ ] ", "[x] ", "[X] "]
        .iter()
        .find_map(|check_box| text.strip_prefix(check_box))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::{prop_assert, proptest};

    use super::parse;
    use crate::domain::id::ThreadId;
    use crate::domain::path::TreePath;

    /// One line per entry: line, kind, headings, text, what it cites.
    #[track_caller]
    fn check(path: &str, text: &str, expected: &str) {
        let mut told = String::new();
        for entry in parse(&TreePath::parse(path).unwrap(), text) {
            let ids = entry.thread_ids.iter().map(ThreadId::as_str);
            let files = entry.recap_files.iter().map(String::as_str);
            let cited = [""].into_iter().chain(ids).chain(files);
            let cited = cited.collect::<Vec<_>>().join(" ");
            let mark = if entry.is_from_note { " (note)" } else { "" };
            writeln!(
                told,
                "{} {:?} {} | {}{mark} |{}",
                entry.line_number,
                entry.kind,
                entry.headings.join(" > "),
                entry.text,
                cited,
            )
            .unwrap();
        }
        let expected: Vec<_> = expected.lines().map(str::trim).collect();
        let expected = expected.join("\n");
        assert_eq!(told.trim_end(), expected);
    }

    #[test]
    fn a_summary_is_topics_and_bullets() {
        check(
            "memory_summary.md",
            "v1\n---\n\n## User Profile\n\nWorks on\nengines.\n\n## User preferences\n\n- Short changelogs.\n  - really\n\
             - use uv [ad-hoc note]\n\n## What's in Memory\n\nTopics:\n\n### engine\n\n#### 2026-12-01\n\n\
             - build: cargo, make\n  - desc: how; thread_id=a1\n  - learnings: x\n- rollout_summaries/r.md — y; thread_id=b2\n\
             - z\n- desc: of z, thread_id=c3\n\n```\n- no\n```\n",
            "6 Bullet User Profile | Works on engines. |
             11 Bullet User preferences | Short changelogs. |
             13 Bullet User preferences | use uv [ad-hoc note] (note) |
             17 Bullet What's in Memory | Topics: |
             23 Topic What's in Memory > engine > 2026-12-01 | build: cargo, make | a1
             26 Topic What's in Memory > engine > 2026-12-01 | rollout_summaries/r.md — y; thread_id=b2 | b2 r.md
             27 Topic What's in Memory > engine > 2026-12-01 | z | c3
             30 Bullet What's in Memory > engine > 2026-12-01 | ```
             - no
             ``` |",
        );
    }

    #[test]
    fn a_handbook_is_groups_tasks_and_bullets() {
        check(
            "MEMORY.md",
            "# Task Group: engine\n\nscope: work\napplies_to: cwd=/x\n\n## Task 1: build, success\n\n\
             ### rollout_summary_files\n\n- rollout_summaries/r.md (thread_id=a1)\n\n### keywords\n\n- a, b\n\n\
             ## User preferences\n\n- short [Task 1]\n\n## Reusable knowledge\n\n1. first\n2) [x] second\n\n\
             # Task Group: other\n\n## Notes\n\ntext\n",
            "1 TaskGroup  | Task Group: engine | a1 r.md
             6 Task Task Group: engine | Task 1: build, success | a1 r.md
             18 Bullet Task Group: engine > User preferences | short [Task 1] |
             22 Bullet Task Group: engine > Reusable knowledge | first |
             23 Bullet Task Group: engine > Reusable knowledge | second |
             25 TaskGroup  | Task Group: other |
             29 Bullet Task Group: other > Notes | text |",
        );
    }

    #[test]
    fn foreign_files_are_bullets_too() {
        check(
            "MEMORY.md",
            "# Memory\n\n- [uv](uv.md) — wants uv\n",
            "3 Bullet Memory | [uv](uv.md) — wants uv |",
        );
        check("MEMORY.md", "<!-- - no -->\n\n***\n", "");
        check("memory_summary.md", "", "");
    }

    #[test]
    fn bytes_cover_the_whole_entry_and_its_line_end() {
        let text = "- a\n  - b\n\n- c";
        let entries = parse(&TreePath::parse("MEMORY.md").unwrap(), text);
        let covered: Vec<_> = entries
            .into_iter()
            .map(|entry| &text[entry.bytes])
            .collect();
        assert_eq!(covered, ["- a\n  - b\n", "- c"]);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "([#>`*_ -]|\\PC|\n|- |# Task Group: |## Task 1|v1\n|desc: |```\n|  ){0,60}") {
            for path in ["MEMORY.md", "memory_summary.md"] {
                for entry in parse(&TreePath::parse(path).unwrap(), &text) {
                    prop_assert!(text.get(entry.bytes).is_some());
                }
            }
        }
    }
}
