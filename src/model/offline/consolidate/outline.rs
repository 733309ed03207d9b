//! A memory file as headings with the blocks below them, word for word.
//!
//! Summary and handbook are flat: headings, and under each a run of bullets
//! and paragraphs. The rules take blocks out and put blocks in; every block
//! that they leave alone is printed with the bytes it was read with. Only blank
//! lines between blocks may change.
//!
//! Lines in a code fence are never headings or bullets.

/// A heading and what is below it up to the next heading of its level.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Section {
    /// 1 to 6; 0 for the file itself.
    pub(super) level: usize,
    /// The heading line, word for word; empty for the file itself.
    pub(super) heading: String,
    pub(super) blocks: Vec<Block>,
    pub(super) children: Vec<Self>,
}

/// A bullet with what is nested below it, or a paragraph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Block {
    /// Word for word, without the last line end.
    pub(super) text: String,
    pub(super) is_bullet: bool,
    /// A blank line stood before it.
    pub(super) is_apart: bool,
    /// Its index among the blocks of the file it was read from.
    pub(super) place: Option<usize>,
    /// Folded first line of the block it stood behind, where that is needed.
    pub(super) anchor: Option<String>,
}

impl Block {
    pub(super) fn bullet(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_bullet: true,
            ..Self::default()
        }
    }

    pub(super) fn paragraph(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_apart: true,
            ..Self::default()
        }
    }

    pub(super) fn first_line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }
}

impl Section {
    pub(super) fn new(level: usize, title: &str) -> Self {
        Self {
            level,
            heading: format!("{} {title}", "#".repeat(level)),
            ..Self::default()
        }
    }

    /// The heading's words.
    pub(super) fn title(&self) -> &str {
        self.heading.trim_start().trim_start_matches('#').trim()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.children.is_empty()
    }
}

/// Reads a file. Never fails: what is no heading is a block.
pub(super) fn parse(text: &str) -> Section {
    let mut reader = Reader::default();
    for line in text.lines() {
        reader.take(line);
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    /// The open sections, the file itself first.
    open: Vec<Section>,
    block: Option<Block>,
    blocks_begun: usize,
    /// Blank lines that belong to the block only if it goes on.
    blanks: Vec<String>,
    /// The fence that is open: its character and length.
    fence: Option<(char, usize)>,
}

impl Reader {
    fn take(&mut self, line: &str) {
        if self.open.is_empty() {
            self.open.push(Section::default());
        }
        if let Some((mark, length)) = self.fence {
            self.go_on(line);
            if is_fence_end(line, mark, length) {
                self.fence = None;
            }
            return;
        }
        if let Some(level) = heading_level(line) {
            self.end_block();
            self.blanks.clear();
            self.open_section(level, line);
        } else if line.trim().is_empty() {
            self.blanks.push(line.to_owned());
        } else {
            self.take_words(line);
        }
        self.fence = self.fence.or(fence_start(line));
    }

    fn take_words(&mut self, line: &str) {
        let is_nested = line.starts_with([' ', '\t']);
        let after_blank = !self.blanks.is_empty();
        let goes_on = match &self.block {
            Some(block) if block.is_bullet => is_nested || (!after_blank && !is_bullet(line)),
            Some(_) => !after_blank && !is_bullet(line),
            None => false,
        };
        if goes_on {
            self.go_on(line);
            return;
        }
        self.end_block();
        self.block = Some(Block {
            text: line.to_owned(),
            is_bullet: is_bullet(line),
            is_apart: after_blank,
            place: Some(self.blocks_begun),
            anchor: None,
        });
        self.blocks_begun += 1;
        self.blanks.clear();
    }

    fn go_on(&mut self, line: &str) {
        let blanks = std::mem::take(&mut self.blanks);
        let block = self.block.get_or_insert_default();
        for line in blanks.iter().map(String::as_str).chain([line]) {
            block.text.push('\n');
            block.text.push_str(line);
        }
    }

    fn end_block(&mut self) {
        let Some(block) = self.block.take() else {
            return;
        };
        if let Some(section) = self.open.last_mut() {
            section.blocks.push(block);
        }
    }

    fn open_section(&mut self, level: usize, line: &str) {
        self.close_down_to(level);
        self.open.push(Section {
            level,
            heading: line.to_owned(),
            ..Section::default()
        });
    }

    /// Closes all open sections of this level or deeper.
    fn close_down_to(&mut self, level: usize) {
        while self.open.len() > 1 && self.open.last().is_some_and(|last| last.level >= level) {
            self.close_last();
        }
    }

    fn close_last(&mut self) {
        if let Some(closed) = self.open.pop()
            && let Some(parent) = self.open.last_mut()
        {
            parent.children.push(closed);
        }
    }

    fn finish(mut self) -> Section {
        self.end_block();
        while self.open.len() > 1 {
            self.close_last();
        }
        self.open.pop().unwrap_or_default()
    }
}

/// An ATX heading: up to three spaces, one to six `#`, then a space.
fn heading_level(line: &str) -> Option<usize> {
    let trimmed = line.trim_start_matches(' ');
    let rest = trimmed.trim_start_matches('#');
    let level = trimmed.len() - rest.len();
    let fits = line.len() - trimmed.len() <= 3 && (1..=6).contains(&level);
    (fits && (rest.is_empty() || rest.starts_with([' ', '\t']))).then_some(level)
}

/// A bullet that is not nested.
fn is_bullet(line: &str) -> bool {
    let trimmed = line.trim_start_matches(' ');
    let indent = line.len() - trimmed.len();
    let is_marked = ["- ", "* ", "+ "]
        .iter()
        .any(|marker| trimmed.starts_with(marker));
    indent < 2 && (is_marked || matches!(trimmed, "-" | "*" | "+"))
}

fn fence_start(line: &str) -> Option<(char, usize)> {
    let trimmed = line.trim_start();
    // A fence may be the first thing in a bullet.
    let trimmed = trimmed.strip_prefix("- ").unwrap_or(trimmed).trim_start();
    ['`', '~'].into_iter().find_map(|mark| {
        let rest = trimmed.trim_start_matches(mark);
        let length = trimmed.len() - rest.len();
        (length >= 3 && !(mark == '`' && rest.contains('`'))).then_some((mark, length))
    })
}

fn is_fence_end(line: &str, mark: char, length: usize) -> bool {
    let trimmed = line.trim();
    trimmed.len() >= length && trimmed.chars().all(|c| c == mark)
}

/// Prints what [`parse`] read: one blank line around headings, blocks as
/// they were, a line end at the end.
pub(super) fn print(file: &Section) -> String {
    let mut out = String::new();
    print_section(file, &mut out);
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

fn print_section(section: &Section, out: &mut String) {
    if !section.heading.is_empty() {
        blank_line(out);
        out.push_str(&section.heading);
        out.push('\n');
    }
    let mut is_first = true;
    let mut after_bullet = false;
    for block in &section.blocks {
        let is_apart =
            block.is_apart || (is_first && block.is_bullet) || (after_bullet && !block.is_bullet);
        if is_apart {
            blank_line(out);
        }
        out.push_str(&block.text);
        out.push('\n');
        is_first = false;
        after_bullet = block.is_bullet;
    }
    for child in &section.children {
        print_section(child, out);
    }
}

fn blank_line(out: &mut String) {
    if !out.is_empty() && !out.ends_with("\n\n") {
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{parse, print};

    #[test]
    fn a_file_comes_out_as_it_went_in() {
        for text in [
            "v1\n\n## A\n\n- one\n  - nested\n- two\n\n### B\n\n- three\n\n## C\n\nwords\nmore words\n",
            "# Task Group: x\n\nscope: y\napplies_to: z\n\n## Task 1: t, success\n\n### keywords\n\n- a, b\n",
            "- one\n\n  still one\n\n- two\n\n```text\n# no heading\n- no bullet\n```\n",
            "",
        ] {
            assert_eq!(print(&parse(text)), text);
        }
    }

    #[test]
    fn a_fenced_heading_is_no_heading() {
        let file = parse("## A\n\n- run\n  ```\n  # comment\n\n  ## more\n  ```\n- next\n");
        assert_eq!(file.children.len(), 1);
        assert_eq!(file.children[0].blocks.len(), 2);
    }

    proptest! {
        #[test]
        fn printing_is_stable_and_loses_no_line(text in "([#\\-`~ a文\n]|- |## |\n\n){0,60}") {
            let once = print(&parse(&text));
            prop_assert_eq!(print(&parse(&once)), once.clone());
            let words = |text: &str| {
                text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect::<Vec<_>>()
            };
            prop_assert_eq!(words(&once), words(&text));
        }
    }
}
