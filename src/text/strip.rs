//! Lines out of a recap, by what they say.

use std::ops::Range;

use crate::domain::recap::Recap;
use crate::domain::withheld::{EntryHashes, Withheld, WithheldReason, WithheldWhat};
use crate::text::phrase::Phrase;
use crate::text::redact::redact_str;
use crate::text::shingles::Statement;

/// What stands in the place of a heading that said it, so that what is below
/// keeps its place.
const HEADING: &str = "(forgotten)";

/// Lines of `raw_memories.md` that code writes and reads.
const CODE_LINES: [&str; 5] = [
    "## Thread `",
    "updated_at: ",
    "cwd: ",
    "rollout_path: ",
    "rollout_summary_file: ",
];

/// A text without some of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stripped {
    pub(crate) text: String,
    /// The bytes of each line that went, without its line end.
    pub(crate) gone: Vec<Range<usize>>,
}

impl Stripped {
    /// The lines that went, out of the text that was stripped.
    pub(crate) fn lines<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let lines = self.gone.iter().map(|range| text[range.clone()].trim());
        lines.filter(|line| !line.is_empty()).collect()
    }
}

/// Takes the lines out that say a phrase, also where it is spread over two.
/// Headings stay without their words.
pub(crate) fn phrase(text: &str, phrase: &Phrase) -> Stripped {
    let lines = lines_of(text);
    let is_code = |line: &str| CODE_LINES.iter().any(|start| line.starts_with(start));
    let mut says: Vec<bool> = (lines.iter())
        .map(|(_, line)| !is_code(line) && phrase.is_in(line))
        .collect();
    let is_prose = |line: &str| !line.trim().is_empty() && !is_code(line) && !line.starts_with('#');
    for index in 1..lines.len() {
        let (before, line) = (lines[index - 1].1, lines[index].1);
        let is_open = !says[index - 1] && !says[index] && is_prose(before) && is_prose(line);
        if is_open && phrase.is_in(&format!("{before}{line}")) {
            says[index - 1] = true;
            says[index] = true;
        }
    }
    without(text, &lines, &says)
}

/// A recap without the lines that were forgotten before, if it has any: a
/// session that is read again says the same again.
pub(crate) fn forgotten(recap: &Recap, withheld: &[Withheld]) -> Option<Recap> {
    let hashes: Vec<&EntryHashes> = (withheld.iter())
        .filter(|it| it.reason == WithheldReason::Forgotten)
        .filter_map(|it| match &it.what {
            WithheldWhat::Entry(hashes) => Some(hashes),
            _ => None,
        })
        .collect();
    if hashes.is_empty() {
        return None;
    }
    let strip = |text: &str| {
        let lines = lines_of(text);
        let says: Vec<bool> = (lines.iter())
            .map(|(_, line)| {
                let statement = Statement::of(line);
                hashes.iter().any(|it| statement.is_withheld_as(it))
            })
            .collect();
        let has_any = says.contains(&true);
        has_any.then(|| redact_str(&without(text, &lines, &says).text))
    };
    let body = strip(recap.body.as_str());
    let raw_memory = (recap.header.raw_memory.as_ref()).and_then(|raw| strip(raw.as_str()));
    if body.is_none() && raw_memory.is_none() {
        return None;
    }
    let mut stripped = recap.clone();
    stripped.body = body.unwrap_or(stripped.body);
    stripped.header.raw_memory = raw_memory.or(stripped.header.raw_memory);
    Some(stripped)
}

fn lines_of(text: &str) -> Vec<(usize, &str)> {
    let mut start = 0;
    let place = |line| {
        let at = start;
        start += str::len(line);
        (at, line)
    };
    text.split_inclusive('\n').map(place).collect()
}

fn without(text: &str, lines: &[(usize, &str)], says: &[bool]) -> Stripped {
    let mut stripped = Stripped {
        text: String::with_capacity(text.len()),
        gone: Vec::new(),
    };
    for ((start, line), says) in lines.iter().zip(says) {
        if !says {
            stripped.text.push_str(line);
            continue;
        }
        let words = line.trim_end();
        stripped.gone.push(*start..start + words.len());
        let marks = line.len() - line.trim_start_matches('#').len();
        if 0 < marks {
            stripped.text.push_str(&line[..marks]);
            stripped.text.push(' ');
            stripped.text.push_str(HEADING);
            stripped.text.push_str(&line[words.len()..]);
        }
    }
    stripped
}

#[cfg(test)]
mod tests {
    use super::phrase;
    use crate::text::phrase::Phrase;

    #[test]
    fn lines_that_say_it_go_and_headings_keep_their_place() {
        let text = "# Moving to Postgres 16\n\n## Thread `a`\ncwd: /postgres 16\n\n\
                    - use postgres\n  16 here\n- other\n";
        let stripped = phrase(text, &Phrase::new("Postgres 16").unwrap());
        assert_eq!(
            stripped.text,
            "# (forgotten)\n\n## Thread `a`\ncwd: /postgres 16\n\n- other\n"
        );
        assert_eq!(
            stripped.lines(text),
            ["# Moving to Postgres 16", "- use postgres", "16 here"]
        );
    }
}
