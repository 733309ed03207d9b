//! What can be said about a person's words in any language: sentences, terms,
//! weight, shortening. Nothing here knows a vocabulary; cue words do.

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation as _;

use crate::text::cues::is_unspaced;

/// A term is a word of at least this many letters; shorter ones join
/// sentences in every language and tell nothing.
const TERM_LETTERS_MIN: usize = 4;

/// Text that terms are taken from, in bytes per message.
const TERMS_FROM_BYTES: usize = 4_000;

/// A letter of a script without spaces says about as much as three others.
const UNSPACED_WEIGHT: usize = 3;

/// `text` on one line: every run of white space is one space. Control
/// characters go, words stay as they are.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// At most `bytes_max` bytes of `line`: its beginning and its end, with a
/// marker in between that says how many characters are gone.
pub(crate) fn shorten(line: &str, bytes_max: usize) -> String {
    if line.len() <= bytes_max {
        return line.to_owned();
    }
    // The marker's own length changes with the number in it by a few bytes.
    let room = bytes_max.saturating_sub(MARKER_BYTES);
    let head = begin_of(line, room - room / 3);
    let tail = end_of(line, room / 3);
    let missing = line.len() - head.len() - tail.len();
    let middle = &line[head.len()..head.len() + missing];
    format!(
        "{}[… {} characters …]{}",
        head,
        middle.chars().count(),
        tail
    )
}

/// Bytes of the marker in [`shorten`], for up to seven digits.
pub(crate) const MARKER_BYTES: usize = 28;

/// The longest beginning of at most `bytes_max` bytes.
pub(crate) fn begin_of(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max.min(text.len()))]
}

/// The longest end of at most `bytes_max` bytes.
pub(crate) fn end_of(text: &str, bytes_max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes_max))..]
}

/// `text` as Markdown code: between more backticks than stand in it.
pub(crate) fn code(text: &str) -> String {
    let longest = (text.split(|c| c != '`').map(str::len).max()).unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let pad = if longest == 0 { "" } else { " " };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// The first line of a command or output, word for word but for white space.
pub(crate) fn code_line(text: &str, bytes_max: usize) -> String {
    let first = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("");
    let line = one_line(first);
    let has_more = first.trim().len() < text.len();
    if line.len() <= bytes_max && !has_more {
        return line;
    }
    let kept = begin_of(&line, bytes_max - '…'.len_utf8());
    format!("{kept}…")
}

/// The beginning of `line` as a title: whole words where the script has them,
/// an ellipsis when something is missing.
pub(crate) fn title(line: &str, bytes_max: usize) -> String {
    let first = sentences(line).first().copied().unwrap_or(line);
    let first = first
        .trim_start_matches(['#', '>', '-', '*', ' '])
        .trim_end();
    if first.len() <= bytes_max {
        return first.trim_end_matches(['.', '。', ':', '：']).to_owned();
    }
    let cut = begin_of(first, bytes_max - '…'.len_utf8());
    let at_space = cut.rfind(' ').filter(|at| bytes_max / 2 < *at);
    format!("{}…", cut[..at_space.unwrap_or(cut.len())].trim_end())
}

/// The sentences of a text, trimmed, by the Unicode rules and at line ends.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    text.lines()
        .flat_map(|line| line.split_sentence_bounds())
        .map(str::trim)
        .filter(|sentence| !sentence.is_empty())
        .collect()
}

/// Whether a sentence asks something.
pub(crate) fn is_question(sentence: &str) -> bool {
    let end = sentence.trim_end_matches(['"', '\'', '”', '’', '）', ')', '」', ' ']);
    end.ends_with(['?', '？', '؟', '⁇']) || sentence.starts_with('¿')
}

/// How much a text says: letters and digits, those without spaces count more.
pub(crate) fn weight(text: &str) -> usize {
    (text.chars().filter(|c| c.is_alphanumeric()))
        .map(|c| if is_unspaced(c) { UNSPACED_WEIGHT } else { 1 })
        .sum()
}

/// The terms of a text, for comparing texts: longer words in lower case, and
/// pairs of neighbours where words are not spaced.
pub(crate) fn terms(text: &str) -> BTreeSet<String> {
    let text = begin_of(text, TERMS_FROM_BYTES).to_lowercase();
    let mut terms = BTreeSet::new();
    for run in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let unspaced = is_unspaced(first);
            let end = rest
                .find(|c| is_unspaced(c) != unspaced)
                .unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            rest = after;
            if unspaced {
                let letters: Vec<char> = part.chars().collect();
                terms.extend(letters.windows(2).map(String::from_iter));
            } else if TERM_LETTERS_MIN <= part.chars().count() {
                terms.insert(part.to_owned());
            }
        }
    }
    terms
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, proptest};

    use super::{code, is_question, one_line, sentences, shorten, terms, title, weight};

    #[test]
    fn sentences_end_where_their_script_says() {
        for (text, expected) in [
            (
                "Fix it. Then run main.rs again!",
                vec!["Fix it.", "Then run main.rs again!"],
            ),
            ("修好它。然后再跑一次！", vec!["修好它。", "然后再跑一次！"]),
            ("直して。テストも。", vec!["直して。", "テストも。"]),
            ("one\n\n two ", vec!["one", "two"]),
            ("", vec![]),
        ] {
            assert_eq!(sentences(text), expected);
        }
    }

    #[test]
    fn titles_are_short_and_whole() {
        assert_eq!(title("Fix the parser. Then test it.", 80), "Fix the parser");
        assert_eq!(title("one two three four", 12), "one two…");
        assert_eq!(title("修复解析器的缩进问题", 20), "修复解析器…");
    }

    #[test]
    fn code_is_word_for_word_between_enough_backticks() {
        for (text, expected) in [
            ("cargo test", "`cargo test`"),
            ("echo `date`", "`` echo `date` ``"),
            ("a `` b", "``` a `` b ```"),
            ("运行 `x`", "`` 运行 `x` ``"),
        ] {
            assert_eq!(code(text), expected);
        }
    }

    #[test]
    fn terms_need_no_spaces() {
        let names = |text| terms(text).into_iter().collect::<Vec<_>>();
        assert_eq!(
            names("Fix the tab_width in parser"),
            ["parser", "tab_width"]
        );
        assert_eq!(names("解析器bug"), ["析器", "解析"]);
        assert_eq!(weight("ok"), 2);
        assert_eq!(weight("修复，它"), 9);
    }

    #[test]
    fn questions_are_known_by_their_mark() {
        for (text, expected) in [
            ("why?", true),
            ("为什么？", true),
            ("¿por qué?", true),
            ("do it.", false),
        ] {
            assert_eq!(is_question(text), expected, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn shortening_keeps_its_budget_and_never_splits_a_character(text in "\\PC{0,300}", bytes_max in 40_usize..200) {
            let line = one_line(&text);
            let short = shorten(&line, bytes_max);
            assert!(short.len() <= bytes_max, "{} > {bytes_max}", short.len());
            assert_eq!(line.len() <= bytes_max, short == line);
            assert_eq!(one_line(&line), line);
        }
    }
}
