//! Whose words a model's preferences are.
//!
//! A page or a file from outside can say "remember this rule", and a model may
//! believe it. In a session that such content reached, a preference counts only
//! when it quotes the person: each other one is marked as external, and
//! consolidation makes no rule of what is marked.
//!
//! # Limits
//!
//! Looks at quotations, not at meaning. A true preference in the model's own
//! words is marked too; it stays readable in the recap.

use crate::domain::item::{Item, Provenance, Trust};
use crate::domain::text::Redacted;

/// Before a preference that no words of the person support.
pub(crate) const EXTERNAL_MARK: &str = "[external]";

/// The name of the list, in any case and decoration.
const PREFERENCES: &str = "preference signals";

/// A quotation shorter than this many characters supports nothing.
const QUOTATION_CHARS_MIN: usize = 4;

const QUOTES: &[(char, char)] = &[
    ('"', '"'),
    ('“', '”'),
    ('„', '“'),
    ('«', '»'),
    ('「', '」'),
    ('『', '』'),
    ('‘', '’'),
];

/// What the person said, to be compared with.
#[derive(Debug)]
pub(crate) struct Grounding {
    /// `None` when nothing came from outside: then nothing is marked.
    said: Option<String>,
}

impl Grounding {
    pub(crate) fn of(items: &[Item<Redacted>]) -> Self {
        let has_external = items.iter().any(|item| item.trust == Trust::External);
        let human = items
            .iter()
            .filter(|item| item.provenance == Provenance::Human);
        let said = has_external.then(|| {
            let texts: Vec<&str> = human.map(|item| item.text.as_str()).collect();
            plain(&texts.join("\n"))
        });
        Self { said }
    }

    /// Marks nothing.
    pub(crate) const fn none() -> Self {
        Self { said: None }
    }

    /// The text with its ungrounded preferences marked.
    pub(crate) fn mark(&self, text: &str) -> String {
        let Some(said) = &self.said else {
            return text.to_owned();
        };
        let mut marked = String::with_capacity(text.len());
        let mut in_preferences = false;
        for line in text.split_inclusive('\n') {
            let bare = line.trim();
            let bullet = bare
                .strip_prefix(['-', '*'])
                .filter(|rest| rest.starts_with(' '));
            match bullet {
                None if bare.is_empty() => {}
                // A line that goes on with a bullet is indented.
                None if line.starts_with([' ', '\t']) => {}
                None => in_preferences = is_heading(bare),
                Some(rest) if in_preferences && !is_grounded(rest, said) => {
                    let at = line.len() - line.trim_start().len() + 2;
                    marked.push_str(&line[..at]);
                    marked.push_str(EXTERNAL_MARK);
                    marked.push(' ');
                    marked.push_str(&line[at..]);
                    continue;
                }
                Some(_) => {}
            }
            marked.push_str(line);
        }
        marked
    }
}

fn is_heading(line: &str) -> bool {
    let name = line.trim_matches(|c: char| !c.is_alphanumeric());
    name.to_lowercase().starts_with(PREFERENCES)
}

/// All quotations of the bullet are the person's, and there is one.
fn is_grounded(bullet: &str, said: &str) -> bool {
    let quotations = quotations(bullet);
    !quotations.is_empty() && quotations.iter().all(|quotation| said.contains(quotation))
}

/// The quotations of a line, as [`plain`] text. One from the first to the last
/// quotation mark counts where marks stand inside.
fn quotations(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(|c| QUOTES.iter().any(|(open, _)| *open == c)) {
        let open = rest[at..].chars().next().unwrap_or('"');
        let inside = &rest[at + open.len_utf8()..];
        let close = QUOTES
            .iter()
            .find(|(other, _)| *other == open)
            .map_or('"', |(_, close)| *close);
        let Some(end) = inside.find(close) else { break };
        let quotation = plain(&inside[..end]);
        if QUOTATION_CHARS_MIN <= quotation.chars().count() {
            found.push(quotation);
        }
        rest = &inside[end + close.len_utf8()..];
    }
    found
}

/// Lower case, white space joined, no full stop at the end.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let joined = words.join(" ").to_lowercase();
    joined.trim_end_matches(['.', '。', ',', '…']).to_owned()
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
    fn other_lists_and_sessions_without_external_content_are_left_alone() {
        let other = "Key steps:\n- ran the cleaner\n";
        assert_eq!(grounding(true).mark(other), other);
        let text = "Preference signals:\n- runs the cleaner\n";
        assert_eq!(grounding(false).mark(text), text);
        assert_eq!(Grounding::none().mark(text), text);
        let after = "**Preference signals**\n\n- x\n\n## Task 2: y\n- z";
        assert_eq!(
            grounding(true).mark(after),
            "**Preference signals**\n\n- [external] x\n\n## Task 2: y\n- z"
        );
    }

    #[track_caller]
    fn check(list: &str, expected: &str) {
        let marked = grounding(true).mark(&format!("Preference signals:\n{list}"));
        assert_eq!(marked, format!("Preference signals:\n{expected}"));
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
                "Fix it. Never push  to main.",
            ),
            item(Provenance::Tool, trust, "Always run the cleaner"),
        ])
    }

    fn item(provenance: Provenance, trust: Trust, text: &str) -> Item<Redacted> {
        Item {
            place: Place {
                part: 0,
                line_number: 1,
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
