//! Whose words a model's quotations are.
//!
//! A recap may give words out as the person's that they never said: made up, or
//! a page's or a file's. So each quotation with a line of the transcript, and
//! each preference, is looked for in the session. What the person did not say
//! loses its standing: quotation marks go and [`PARAPHRASE_MARK`] comes before
//! the words; where content from outside reached the session, a preference is
//! marked as external. Consolidation makes no rule of what is marked. Nothing
//! else of the reply is lost.
//!
//! # Limits
//!
//! Looks at words, not at meaning. A true preference in the model's own words
//! is marked too; it stays readable in the recap.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;

use crate::domain::item::{Item, Provenance, Trust};
use crate::domain::recap::PARAPHRASE_MARK;
use crate::domain::text::Redacted;
use crate::text::cues::is_unspaced;

/// Before a preference that no words of the person support.
pub(crate) const EXTERNAL_MARK: &str = "[external]";

/// How the list of preferences is called, in any case and decoration.
const PREFERENCES: &[&str] = &[
    "preference",
    "user preference",
    "correction",
    "vorlieben",
    "préférences",
    "preferencias",
    "preferências",
    "preferenze",
    "предпочтения",
    "偏好",
    "好み",
    "선호",
];

/// How the list of what the person asked for is called.
const REQUESTS: &[&str] = &["request", "user request", "asked", "要求", "依頼", "요청"];

/// What names a line of the transcript.
const LINE_WORDS: &[&str] = &[
    "line",
    "zeile",
    "ligne",
    "línea",
    "linha",
    "riga",
    "строк",
    "行",
    "줄",
];

/// A quotation of fewer bytes supports nothing and claims nothing.
const QUOTATION_BYTES_MIN: usize = 4;

const QUOTES: &[(char, char)] = &[
    ('"', '"'),
    ('“', '”'),
    ('„', '“'),
    ('«', '»'),
    ('「', '」'),
    ('『', '』'),
    ('‘', '’'),
];

/// Stands for words that a quotation leaves out.
const ELISIONS: &[&str] = &["[...]", "[…]", "...", "…"];

/// What was said in a session, to be compared with.
#[derive(Debug)]
pub(crate) struct Grounding {
    /// `None` for a back end that copies: then nothing is looked at.
    said: Option<Said>,
}

#[derive(Debug)]
struct Said {
    /// By the person, as [`plain`] text.
    by_person: String,
    /// By anybody.
    by_all: String,
    /// Lines of the transcript where only the person speaks.
    persons_lines: BTreeSet<u64>,
    has_external: bool,
}

/// A text with its marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) text: String,
    /// Lines that were marked.
    pub(crate) count: usize,
}

/// Under which list a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Preferences,
    Requests,
    Other,
}

impl Grounding {
    pub(crate) fn of(items: &[Item<Redacted>]) -> Self {
        let is_persons = |item: &&Item<Redacted>| item.provenance == Provenance::Human;
        let gather = |items: &mut dyn Iterator<Item = &Item<Redacted>>| {
            let texts: Vec<&str> = items.map(|item| item.text.as_str()).collect();
            plain(&texts.join("\n"))
        };
        let line = |item: &Item<Redacted>| u64::from(item.place.line_number);
        let others: BTreeSet<u64> = (items.iter().filter(|it| !is_persons(it)))
            .map(line)
            .collect();
        let persons = items.iter().filter(is_persons).map(line);
        Self {
            said: Some(Said {
                by_person: gather(&mut items.iter().filter(is_persons)),
                by_all: gather(&mut items.iter()),
                persons_lines: persons.filter(|line| !others.contains(line)).collect(),
                has_external: items.iter().any(|item| item.trust == Trust::External),
            }),
        }
    }

    /// Marks nothing.
    pub(crate) const fn none() -> Self {
        Self { said: None }
    }

    /// The text with what the person did not say marked.
    pub(crate) fn mark(&self, text: &str) -> Marked {
        let mut marked = Marked {
            text: String::with_capacity(text.len()),
            count: 0,
        };
        let Some(said) = &self.said else {
            marked.text.push_str(text);
            return marked;
        };
        let (mut list, mut in_code) = (List::Other, false);
        for line in text.split_inclusive('\n') {
            let bare = line.trim();
            let is_border = bare.starts_with("```") || bare.starts_with("~~~");
            in_code ^= is_border;
            let is_bullet = bullet(bare).is_some();
            // A line that goes on with a bullet is indented.
            if !in_code && !bare.is_empty() && !is_bullet && !line.starts_with([' ', '\t']) {
                list = list_of(bare);
            }
            let new = (!in_code && !is_border)
                .then(|| said.mark_line(line, list))
                .flatten();
            marked.count += usize::from(new.is_some());
            marked.text.push_str(new.as_deref().unwrap_or(line));
        }
        marked
    }
}

impl Said {
    /// `None` for a line that may stay as it is.
    fn mark_line(&self, line: &str, list: List) -> Option<String> {
        let found = quotations(line);
        let lines = cited_lines(line);
        let is_preference = list == List::Preferences && bullet(line.trim()).is_some();
        let is_persons = |it: &Quotation<'_>| it.is_in(&self.by_person);
        let is_foreign = |it: &Quotation<'_>| {
            let must_be_persons = is_preference || list == List::Requests;
            let is_claimed =
                must_be_persons || lines.iter().any(|it| self.persons_lines.contains(it));
            let is_said = it.is_in(&self.by_all) && !is_claimed;
            !is_persons(it) && !is_said
        };
        let claims = is_preference || list == List::Requests || !lines.is_empty();
        let foreign: Vec<&Quotation<'_>> = (found.iter())
            .filter(|it| claims && is_foreign(it))
            .collect();
        let is_supported = found.iter().any(is_persons) || self.is_persons_bullet(line);
        if foreign.is_empty() && (!is_preference || is_supported) {
            return None;
        }
        if is_preference {
            let mark = if self.has_external {
                EXTERNAL_MARK
            } else {
                PARAPHRASE_MARK
            };
            // A page's own words stay a quotation of the page.
            let invented = foreign.iter().filter(|it| !it.is_in(&self.by_all));
            let line = without_quotes(line, invented.copied(), "");
            let at = text_start(&line);
            return Some(format!("{}{mark} {}", &line[..at], &line[at..]));
        }
        let mark = format!("{PARAPHRASE_MARK} ");
        Some(without_quotes(line, foreign.into_iter(), &mark))
    }

    /// The whole bullet is the person's words, without quotation marks.
    fn is_persons_bullet(&self, line: &str) -> bool {
        let text = bullet(line.trim()).unwrap_or_default();
        let text = text.split(" (line").next().unwrap_or_default();
        let text = plain(text);
        QUOTATION_BYTES_MIN <= text.len() && holds(&self.by_person, &text)
    }
}

fn bullet(bare: &str) -> Option<&str> {
    let rest = bare.strip_prefix(['-', '*', '•'])?;
    rest.starts_with(' ').then(|| rest.trim_start())
}

/// Where the words of a bullet begin.
fn text_start(line: &str) -> usize {
    let bare = line.trim_start();
    bullet(bare).map_or(0, |text| line.len() - text.len())
}

fn list_of(line: &str) -> List {
    let name = line.trim_matches(|c: char| !c.is_alphanumeric());
    let name = name.to_lowercase();
    let is_called = |names: &[&str]| names.iter().any(|it| name.starts_with(it));
    match () {
        () if is_called(PREFERENCES) => List::Preferences,
        () if is_called(REQUESTS) => List::Requests,
        () => List::Other,
    }
}

/// Words in quotation marks, and where they stand.
struct Quotation<'a> {
    /// With the marks.
    bytes: std::ops::Range<usize>,
    inside: &'a str,
}

impl Quotation<'_> {
    fn is_in(&self, said: &str) -> bool {
        let mut parts = vec![self.inside];
        for elision in ELISIONS {
            parts = parts.iter().flat_map(|part| part.split(elision)).collect();
        }
        let parts: Vec<String> = parts.into_iter().map(plain).collect();
        let mut parts = parts.iter().filter(|part| !part.is_empty());
        parts.all(|part| holds(said, part))
    }
}

/// The quotations of a line. Those in code are code's.
fn quotations(line: &str) -> Vec<Quotation<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut in_code = false;
    while let Some(open) = line[at..].chars().next() {
        let start = at;
        at += open.len_utf8();
        in_code ^= open == '`';
        let in_word = line[..start].ends_with(char::is_alphanumeric) && open == '‘';
        let close = QUOTES
            .iter()
            .find(|(mark, _)| *mark == open && !in_code && !in_word);
        let Some((_, close)) = close else { continue };
        let Some(length) = line[at..].find(*close) else {
            continue;
        };
        let inside = &line[at..at + length];
        at += length + close.len_utf8();
        if QUOTATION_BYTES_MIN <= plain(inside).len() {
            found.push(Quotation {
                bytes: start..at,
                inside,
            });
        }
    }
    found
}

/// The numbers behind, or before, a word for `line`.
fn cited_lines(line: &str) -> Vec<u64> {
    let lower = line.to_lowercase();
    let mut cited = Vec::new();
    for word in LINE_WORDS {
        for (at, _) in lower.match_indices(word) {
            let after = lower[at + word.len()..].trim_start_matches(|c: char| c.is_alphabetic());
            let after = after.trim_start_matches([' ', '\u{a0}']);
            let before = lower[..at].trim_end();
            cited.extend(leading_number(after));
            cited.extend(trailing_number(before).filter(|_| !word.is_ascii()));
        }
    }
    cited
}

fn leading_number(text: &str) -> Option<u64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

fn trailing_number(text: &str) -> Option<u64> {
    let bare = text.trim_end_matches(|c: char| c.is_ascii_digit());
    text[bare.len()..].parse().ok()
}

/// The line with `mark` in place of the quotation marks.
fn without_quotes<'q>(
    line: &str,
    quotations: impl Iterator<Item = &'q Quotation<'q>>,
    mark: &str,
) -> String {
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    for quotation in quotations {
        out.push_str(&line[at..quotation.bytes.start]);
        out.push_str(mark);
        out.push_str(quotation.inside);
        at = quotation.bytes.end;
    }
    out.push_str(&line[at..]);
    out
}

/// Letters and digits in lower case and one form, one space between words.
fn plain(text: &str) -> String {
    let folded: String = text.nfkc().collect::<String>().to_lowercase();
    let words = folded.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Whether `words` stand in `text`, whole where a script parts words.
fn holds(text: &str, words: &str) -> bool {
    let is_border = |next: Option<char>, own: Option<char>| {
        let joins = |c: char| c.is_alphanumeric() && !is_unspaced(c);
        !next.is_some_and(joins) || !own.is_some_and(joins)
    };
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + words.len()..]);
        is_border(before.chars().next_back(), words.chars().next())
            && is_border(after.chars().next(), words.chars().next_back())
    })
}

#[cfg(test)]
mod tests {
    use super::Grounding;
    use crate::domain::item::{Item, ItemKind, Place, Provenance, Trust};
    use crate::domain::text::Redacted;
    use crate::text::redact::redact_str;

    #[test]
    fn a_rule_that_only_a_page_said_is_marked() {
        check(
            "- \"always run the cleaner\" (line 2): run it\n- uses the cleaner\n",
            "- [external] \"always run the cleaner\" (line 2): run it\n- [external] uses the cleaner\n",
        );
    }

    #[test]
    fn the_same_rule_typed_by_the_person_passes() {
        check(
            "- \"Never  push to main\" (line 1)\n",
            "- \"Never  push to main\" (line 1)\n",
        );
        check(
            "* “never push to main.”: holds\n",
            "* “never push to main.”: holds\n",
        );
    }

    #[test]
    fn one_foreign_quotation_is_enough_to_be_marked() {
        check(
            "  - \"never push to main\" and \"always run the cleaner\"\n",
            "  - [external] \"never push to main\" and \"always run the cleaner\"\n",
        );
    }

    #[test]
    fn other_lists_and_back_ends_that_copy_are_left_alone() {
        let other = "Key steps:\n- ran the cleaner\n";
        assert_eq!(grounding(true).mark(other).text, other);
        let text = "Preference signals:\n- runs the cleaner\n";
        assert_eq!(Grounding::none().mark(text).text, text);
        let after = "**Preference signals**\n\n- x\n\n## Task 2: y\n- z";
        assert_eq!(
            grounding(true).mark(after).text,
            "**Preference signals**\n\n- [external] x\n\n## Task 2: y\n- z"
        );
    }

    /// The line as it comes out of a session without external content.
    #[track_caller]
    fn check_line(list: &str, line: &str, expected: &str) {
        let marked = grounding(false).mark(&format!("{list}\n{line}"));
        assert_eq!(marked.text, format!("{list}\n{expected}"));
        assert_eq!(marked.count, usize::from(line != expected), "{line}");
    }

    #[test]
    fn words_that_the_person_never_said_are_no_quotation() {
        for (line, expected) in [
            (
                "- \"use tabs\" (line 1): tabs",
                "- [paraphrase] use tabs (line 1): tabs",
            ),
            ("- wants tabs", "- [paraphrase] wants tabs"),
            (
                "- \"Always run the cleaner\" (line 2)",
                "- [paraphrase] \"Always run the cleaner\" (line 2)",
            ),
            (
                "- \"never PUSH to main!\" (line 1): branches only",
                "- \"never PUSH to main!\" (line 1): branches only",
            ),
            ("- “Never … main” (line 1)", "- “Never … main” (line 1)"),
            (
                "- never push to main (line 1)",
                "- never push to main (line 1)",
            ),
            (
                "- \"push to mai\" (line 1)",
                "- [paraphrase] push to mai (line 1)",
            ),
            (
                "- 「提交信息要简短」（第 1 行）：简短",
                "- 「提交信息要简短」（第 1 行）：简短",
            ),
            (
                "- 「提交信息要很长」（第 1 行）",
                "- [paraphrase] 提交信息要很长（第 1 行）",
            ),
        ] {
            check_line("Preference signals:", line, expected);
        }
    }

    #[test]
    fn prose_that_cites_a_line_quotes_what_stands_there() {
        for (line, expected) in [
            (
                "The person said \"use tabs\" (line 1).",
                "The person said [paraphrase] use tabs (line 1).",
            ),
            (
                "- it said \"always run the cleaner\" (line 2)",
                "- it said \"always run the cleaner\" (line 2)",
            ),
            (
                "- asked to \"always run the cleaner\" (line 1)",
                "- asked to [paraphrase] always run the cleaner (line 1)",
            ),
            (
                "- ran `grep \"use tabs\"` (line 2)",
                "- ran `grep \"use tabs\"` (line 2)",
            ),
            ("- the \"happy path\" idea", "- the \"happy path\" idea"),
            (
                "- failed with \"no such thing\" (lines 2-3)",
                "- failed with [paraphrase] no such thing (lines 2-3)",
            ),
        ] {
            check_line("Key steps:", line, expected);
        }
        check_line(
            "User requests:",
            "- \"use tabs\"",
            "- [paraphrase] use tabs",
        );
        let fenced = "```\n\"use tabs\" (line 1)\n```";
        assert_eq!(grounding(false).mark(fenced).text, fenced);
    }

    #[track_caller]
    fn check(list: &str, expected: &str) {
        let marked = grounding(true).mark(&format!("Preference signals:\n{list}"));
        assert_eq!(marked.text, format!("Preference signals:\n{expected}"));
    }

    fn grounding(has_external: bool) -> Grounding {
        let trust = if has_external {
            Trust::External
        } else {
            Trust::Own
        };
        Grounding::of(&[
            item(
                Provenance::Human,
                Trust::Own,
                "Fix it. Never push  to main. 提交信息要简短。",
                1,
            ),
            item(Provenance::Tool, trust, "Always run the cleaner", 2),
        ])
    }

    fn item(provenance: Provenance, trust: Trust, text: &str, line_number: u32) -> Item<Redacted> {
        Item {
            place: Place {
                part: 0,
                line_number,
            },
            at: None,
            provenance,
            trust,
            kind: ItemKind::Message,
            text: redact_str(text),
            media_count: 0,
        }
    }
}
