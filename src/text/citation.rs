//! The hidden block in which an answer names the recaps it used (reference 9).
//!
//! ```text
//! <oai-mem-citation>
//! <citation_entries>
//! MEMORY.md:10-12|note=[build order]
//! </citation_entries>
//! <rollout_ids>
//! 0194f5a6-89ab-7cde-8123-456789abcdef
//! </rollout_ids>
//! </oai-mem-citation>
//! ```
//!
//! The tag is literal, case counts, blocks do not nest, and one that is not
//! closed ends with the text.

const OPEN: &str = "<oai-mem-citation>";
const CLOSE: &str = "</oai-mem-citation>";

/// Everything that the blocks of one answer say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cited {
    pub(crate) entries: Vec<CitedEntry>,
    /// In order, without repeats; not all are well-formed thread ids.
    pub(crate) thread_ids: Vec<String>,
}

/// A place in a memory file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CitedEntry {
    pub(crate) path: String,
    /// 1-based lines, both included.
    pub(crate) line_start: u32,
    pub(crate) line_end: u32,
    pub(crate) note: String,
}

/// The thread ids that an answer cites; `None` when it cites nothing.
pub(crate) fn parse(answer: &str) -> Option<Vec<String>> {
    parse_all(answer).map(|cited| cited.thread_ids)
}

/// Everything that an answer cites; lines that cannot be read are dropped.
pub(crate) fn parse_all(answer: &str) -> Option<Cited> {
    let mut cited = Cited::default();
    let blocks = Blocks { rest: answer };
    for (_, block) in blocks {
        if let Some(inner) = inside(block, "citation_entries") {
            cited.entries.extend(inner.lines().filter_map(entry));
        }
        let ids = inside(block, "rollout_ids").or_else(|| inside(block, "thread_ids"));
        for id in ids.unwrap_or_default().lines().map(str::trim) {
            if !id.is_empty() && !cited.thread_ids.iter().any(|known| known == id) {
                cited.thread_ids.push(id.to_owned());
            }
        }
    }
    (cited != Cited::default()).then_some(cited)
}

/// What the person sees of an answer: the text without its blocks. A piece of
/// an opening tag at the very end stays.
pub(crate) fn strip(answer: &str) -> String {
    let mut visible = String::with_capacity(answer.len());
    let mut blocks = Blocks { rest: answer };
    for (before, _) in blocks.by_ref() {
        visible.push_str(before);
    }
    visible.push_str(blocks.rest);
    visible
}

/// Blocks with the text before each.
struct Blocks<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Blocks<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let (before, after) = self.rest.split_once(OPEN)?;
        let (block, rest) = after.split_once(CLOSE).unwrap_or((after, ""));
        self.rest = rest;
        Some((before, block))
    }
}

fn inside<'a>(block: &'a str, tag: &str) -> Option<&'a str> {
    let (_, after) = block.split_once(&format!("<{tag}>"))?;
    let (inner, _) = after.split_once(&format!("</{tag}>"))?;
    Some(inner)
}

fn entry(line: &str) -> Option<CitedEntry> {
    let (place, note) = line.trim().rsplit_once("|note=[")?;
    let note = note.strip_suffix(']')?;
    let (path, lines) = place.rsplit_once(':')?;
    let (start, end) = lines.split_once('-')?;
    Some(CitedEntry {
        path: path.trim().to_owned(),
        line_start: start.trim().parse().ok()?,
        line_end: end.trim().parse().ok()?,
        note: note.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::{CitedEntry, parse, parse_all, strip};

    #[test]
    fn entries_and_ids_are_read() {
        let answer = "Done.\n<oai-mem-citation>\n<citation_entries>\n\
            MEMORY.md:3-7|note=[a |note=[b]]\nbad line\nC:x.md:1-x|note=[c]\n</citation_entries>\n\
            <rollout_ids>\n id-1 \n\nid-2\nid-1\n</rollout_ids>\n</oai-mem-citation>";
        let cited = parse_all(answer).unwrap();
        assert_eq!(cited.thread_ids, ["id-1", "id-2"]);
        assert_eq!(cited.entries, [], "all three lines are damaged");
        let plain = "<oai-mem-citation><citation_entries>a:b.md:3-7|note=[x]</citation_entries>";
        assert_eq!(
            parse_all(plain).unwrap().entries,
            [CitedEntry {
                path: "a:b.md".into(),
                line_start: 3,
                line_end: 7,
                note: "x".into(),
            }]
        );
    }

    #[test]
    fn ids_of_all_blocks_count_once() {
        let block = |tag: &str, id: &str| {
            format!("<oai-mem-citation><{tag}>{id}</{tag}></oai-mem-citation>")
        };
        let answer = format!(
            "a{}b{}c{}",
            block("thread_ids", "1"),
            block("rollout_ids", "2"),
            block("rollout_ids", "1")
        );
        assert_eq!(parse(&answer).unwrap(), ["1", "2"]);
        assert_eq!(strip(&answer), "abc");
    }

    #[test]
    fn what_is_not_closed_ends_with_the_text() {
        let open = "x<oai-mem-citation><rollout_ids>1</rollout_ids> tail";
        assert_eq!(parse(open).unwrap(), ["1"]);
        assert_eq!(strip(open), "x");
        assert_eq!(strip("x<oai-mem-cit"), "x<oai-mem-cit");
        assert_eq!(parse("x<oai-mem-cit"), None);
        assert_eq!(
            parse("<OAI-MEM-CITATION><rollout_ids>1</rollout_ids>"),
            None
        );
        assert_eq!(parse("<oai-mem-citation></oai-mem-citation>"), None);
    }
}
