//! A Markdown file as sections and blocks with their bytes.
//!
//! Enough structure to find entries, to point at what is wrong, and to edit a
//! section without touching what this program does not know: callers take
//! ranges and `splice` them.
//!
//! Only headings at the top level are structure: one inside of a list item, a
//! quotation or a fenced block is text.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// One heading and what stands under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    /// 1 to 6.
    pub(crate) level: u8,
    /// As written, without the marks.
    pub(crate) title: String,
    /// The heading's own line or lines, line end included.
    pub(crate) heading: Range<usize>,
    /// From after the heading to the next heading of any level.
    pub(crate) body: Range<usize>,
    /// Heading, body and all deeper sections below it.
    pub(crate) bytes: Range<usize>,
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Paragraph,
    /// One item of a list at the top level, nested lists included.
    Item,
    /// Fenced or indented code.
    Code,
    Quote,
    Table,
    Html,
    Rule,
}

/// A top-level block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) kind: BlockKind,
    pub(crate) bytes: Range<usize>,
    /// Of an item: where its own text ends and its nested lists begin. Of
    /// others: their end.
    pub(crate) own_end: usize,
    /// Number of the section it stands in; `None` before the first heading.
    pub(crate) section_index: Option<usize>,
}

/// A file taken apart. Ranges index the text it was parsed from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) sections: Vec<Section>,
    pub(crate) blocks: Vec<Block>,
    /// Code blocks at any depth; not code within a line.
    pub(crate) code: Vec<Range<usize>>,
    /// Links and images: where they lead, and their bytes.
    pub(crate) links: Vec<(String, Range<usize>)>,
}

/// Takes `text` apart. `start` leaves out what is not Markdown: a header, or
/// the first line of a summary.
pub(crate) fn parse(text: &str, start: usize) -> Document {
    let mut builder = Builder::default();
    let parser = Parser::new_ext(
        &text[start..],
        Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS,
    );
    for (event, range) in parser.into_offset_iter() {
        builder.event(&event, range.start + start..range.end + start);
    }
    let mut document = builder.document;
    finish_sections(text, &mut document.sections);
    document
}

impl Document {
    /// Titles from the outermost heading down to section `index`.
    pub(crate) fn headings(&self, index: usize) -> Vec<String> {
        let mut titles = Vec::new();
        let mut level_below = u8::MAX;
        for section in self.sections[..=index].iter().rev() {
            if section.level < level_below {
                titles.push(section.title.clone());
                level_below = section.level;
            }
            if level_below <= 1 {
                break;
            }
        }
        titles.reverse();
        titles
    }

    /// Whether `at` stands in a code block, where nothing is structure.
    pub(crate) fn is_in_code(&self, at: usize) -> bool {
        self.code.iter().any(|code| code.contains(&at))
    }
}

/// Line and column of a byte, both 1-based, the column in characters.
pub(crate) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line_number = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
    (line_number, before[line_start..].chars().count() + 1)
}

/// Where the lines of a text begin, for whoever asks often.
pub(crate) struct LineStarts(Vec<usize>);

impl LineStarts {
    pub(crate) fn of(text: &str) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes());
        Self(std::iter::once(0).chain(ends.map(|at| at + 1)).collect())
    }

    /// The line of a byte, 1-based.
    pub(crate) fn line_number(&self, at: usize) -> usize {
        self.0.partition_point(|start| *start <= at)
    }
}

#[derive(Default)]
struct Builder {
    document: Document,
    /// How many containers are open around the current event.
    depth: usize,
    /// How many of them are list levels.
    lists: usize,
    /// Title of the top-level heading that is open.
    title: Option<String>,
}

impl Builder {
    fn event(&mut self, event: &Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(*tag),
            Event::Code(text) | Event::Text(text) => self.add_to_title(text),
            Event::SoftBreak | Event::HardBreak => self.add_to_title(" "),
            Event::Rule if self.depth == 0 => self.block(BlockKind::Rule, range),
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>, range: Range<usize>) {
        let is_top = self.depth == 0;
        match tag {
            Tag::Heading { level, .. } if is_top => {
                self.title = Some(String::new());
                self.document.sections.push(Section {
                    level: *level as u8,
                    title: String::new(),
                    heading: range.clone(),
                    body: range.end..range.end,
                    bytes: range,
                });
            }
            Tag::List(_) => {
                self.lists += 1;
                if self.lists == 2
                    && let Some(item) = self.document.blocks.last_mut()
                    && item.kind == BlockKind::Item
                {
                    item.own_end = item.own_end.min(range.start);
                }
            }
            Tag::Item if self.lists == 1 && self.depth == 1 => self.block(BlockKind::Item, range),
            Tag::CodeBlock(_) => {
                self.document.code.push(range.clone());
                if is_top {
                    self.block(BlockKind::Code, range);
                }
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.document.links.push((dest_url.to_string(), range));
            }
            Tag::Paragraph if is_top => self.block(BlockKind::Paragraph, range),
            Tag::BlockQuote(_) if is_top => self.block(BlockKind::Quote, range),
            Tag::Table(_) if is_top => self.block(BlockKind::Table, range),
            Tag::HtmlBlock if is_top => self.block(BlockKind::Html, range),
            _ => {}
        }
        self.depth += 1;
    }

    fn end(&mut self, tag: TagEnd) {
        self.depth = self.depth.saturating_sub(1);
        match tag {
            TagEnd::List(_) => self.lists = self.lists.saturating_sub(1),
            TagEnd::Heading(_) if self.depth == 0 => {
                if let (Some(title), Some(section)) =
                    (self.title.take(), self.document.sections.last_mut())
                {
                    title.trim().clone_into(&mut section.title);
                }
            }
            _ => {}
        }
    }

    fn block(&mut self, kind: BlockKind, bytes: Range<usize>) {
        self.document.blocks.push(Block {
            kind,
            own_end: bytes.end,
            bytes,
            section_index: self.document.sections.len().checked_sub(1),
        });
    }

    fn add_to_title(&mut self, text: &str) {
        if let Some(title) = &mut self.title {
            title.push_str(text);
        }
    }
}

/// Sets where bodies and sections end, once all headings are known.
fn finish_sections(text: &str, sections: &mut [Section]) {
    for index in 0..sections.len() {
        let level = sections[index].level;
        let next = sections
            .get(index + 1)
            .map_or(text.len(), |next| next.heading.start);
        let end = sections[index + 1..]
            .iter()
            .find(|later| later.level <= level)
            .map_or(text.len(), |later| later.heading.start);
        let section = &mut sections[index];
        section.body = section.heading.end..next;
        section.bytes.end = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{BlockKind, LineStarts, parse, place};

    const TEXT: &str = "intro\n\n# A\n\ntext\n\n## B `x`\n\n- one\n  - two\n- three\n\n```\n# no\n- no\n```\n\n# C\n> # no\n\n- # no\n";

    #[test]
    fn only_top_level_headings_make_sections() {
        let document = parse(TEXT, 0);
        let titles: Vec<_> = document
            .sections
            .iter()
            .map(|s| (s.level, s.title.as_str()))
            .collect();
        assert_eq!(titles, [(1, "A"), (2, "B x"), (1, "C")]);
        assert_eq!(document.headings(1), ["A", "B x"]);
        assert_eq!(document.headings(2), ["C"]);
        let a = document.sections.iter().find(|s| s.title == "A").unwrap();
        assert_eq!(&TEXT[a.body.clone()], "\ntext\n\n");
        assert!(TEXT[a.bytes.clone()].ends_with("```\n\n"));
    }

    #[test]
    fn blocks_are_items_paragraphs_and_code() {
        let document = parse(TEXT, 0);
        let blocks: Vec<_> = (document.blocks.iter())
            .map(|block| (block.kind, &TEXT[block.bytes.start..block.own_end]))
            .collect();
        assert_eq!(
            blocks,
            [
                (BlockKind::Paragraph, "intro\n"),
                (BlockKind::Paragraph, "text\n"),
                (BlockKind::Item, "- one\n  "),
                (BlockKind::Item, "- three\n\n"),
                (BlockKind::Code, "```\n# no\n- no\n```"),
                (BlockKind::Quote, "> # no\n"),
                (BlockKind::Item, "- # no\n"),
            ]
        );
        assert!(document.is_in_code(TEXT.find("# no").unwrap()));
    }

    #[test]
    fn places_count_characters() {
        assert_eq!(place("äö\nüx", 0), (1, 1));
        assert_eq!(place("äö\nüx", 7), (2, 2));
        assert_eq!(place("äö\nüx", 99), (2, 3));
        for text in ["", "a", "a\n", "ä\n\nb\r\nc"] {
            let starts = LineStarts::of(text);
            for at in 0..=text.len() {
                assert_eq!(starts.line_number(at), place(text, at).0, "{text:?} {at}");
            }
        }
    }

    proptest! {
        #[test]
        fn ranges_lie_inside_and_in_order(text in "([#>`*_ -]|\\PC|\n|- |# |```\n|  ){0,80}") {
            let document = parse(&text, 0);
            let mut last = 0;
            for block in &document.blocks {
                prop_assert!(text.get(block.bytes.clone()).is_some());
                prop_assert!(last <= block.bytes.start && block.own_end <= block.bytes.end);
                last = block.bytes.start;
            }
            let covered: usize = document.sections.iter().map(|s| s.heading.len() + s.body.len()).sum();
            let first = document.sections.first().map_or(text.len(), |s| s.heading.start);
            prop_assert_eq!(first + covered, text.len());
        }
    }
}
