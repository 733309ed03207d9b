//! Words by which a session can be found again: names of files, identifiers,
//! what the person said more than once. In any language.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::model::offline::extract::words::{begin_of, weight};
use crate::text::cues::{is_glue, is_unspaced, without_glue};

/// Most keywords of a session.
const KEYWORDS_MAX: usize = 12;

/// A keyword says at least this much, and is at most this long.
const WEIGHT_MIN: usize = 4;
const BYTES_MAX: usize = 40;

/// A word said once, in the first request, needs this weight.
const RARE_WEIGHT_MIN: usize = 5;

/// Text of one message that is looked at, in bytes.
const FROM_BYTES: usize = 4_000;

/// The keywords, best first; ties in order of the alphabet.
///
/// `files` are paths that were written, `requests` what the person said.
pub(crate) fn keywords<'a>(
    files: impl Iterator<Item = &'a str>,
    requests: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let mut scores: BTreeMap<String, usize> = BTreeMap::new();
    for path in files {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        add(&mut scores, name, 3);
    }
    for (index, request) in requests.enumerate() {
        // The first request says what the session is about.
        let first = usize::from(index == 0);
        for word in words(begin_of(request, FROM_BYTES)) {
            add(
                &mut scores,
                word,
                1 + first + 2 * usize::from(is_identifier(word)),
            );
        }
    }
    let least = |word: &str| if weight(word) < RARE_WEIGHT_MIN { 3 } else { 2 };
    let mut ranked: Vec<(String, usize)> = scores
        .into_iter()
        .filter(|(word, score)| least(word) <= *score)
        .collect();
    // Longer words say more; the short ones of a language are its glue.
    ranked.sort_by_cached_key(|(word, score)| (Reverse((*score, weight(word))), word.clone()));
    ranked
        .into_iter()
        .take(KEYWORDS_MAX)
        .map(|(word, _)| word)
        .collect()
}

fn add(scores: &mut BTreeMap<String, usize>, word: &str, score: usize) {
    // Hiragana joins words and ends them; alone it names nothing.
    let names_nothing = is_glue(word) || word.chars().all(|c| script(c) == 1);
    if names_nothing || weight(word) < WEIGHT_MIN || BYTES_MAX < word.len() {
        return;
    }
    let word = if is_identifier(word) {
        word.to_owned()
    } else {
        word.to_lowercase()
    };
    *scores.entry(word).or_default() += score;
}

/// Runs of letters, digits and what joins identifiers and paths; a run of an
/// unspaced script ends where another script begins.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')))
        .flat_map(by_script)
        .map(|word| word.trim_matches(['.', '-', '/', '_']))
        .map(|word| match word.chars().next().map(script) {
            Some(3) => without_glue(word),
            _ => word,
        })
        .filter(|word| !word.is_empty() && word.chars().any(char::is_alphabetic))
}

fn by_script(run: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = run;
    while let Some(first) = rest.chars().next() {
        let script = script(first);
        let end = rest
            .find(|c| self::script(c) != script)
            .unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts
}

/// Kana, other unspaced letters, everything else: a change of these is where
/// Japanese has its content words, and where Latin names stand in Chinese.
fn script(c: char) -> u8 {
    match c {
        '\u{3040}'..='\u{309f}' => 1,
        '\u{30a0}'..='\u{30ff}' => 2,
        _ if is_unspaced(c) => 3,
        _ => 0,
    }
}

/// Has an inner sign or an inner capital: a name out of code.
fn is_identifier(word: &str) -> bool {
    let inner = word.chars().skip(1);
    inner.clone().any(|c| matches!(c, '_' | '.' | '/'))
        || (word.chars().any(char::is_lowercase) && inner.clone().any(char::is_uppercase))
}

#[cfg(test)]
mod tests {
    use super::keywords;

    #[test]
    fn names_and_repeated_words_come_first() {
        check(
            &["src/parser.rs"],
            &["fix tab_width in the parser", "the parser is slow"],
            "tab_width, parser.rs, parser",
        );
    }

    #[test]
    fn scripts_without_spaces_give_keywords_too() {
        check(
            &[],
            &["修复parser的缩进问题", "パーサーを直して"],
            "缩进问题, parser, 修复",
        );
        check(
            &[],
            &["設定ファイルのパーサーを直して", "パーサー"],
            "パーサー, ファイル, 設定",
        );
    }

    #[test]
    fn words_that_join_others_are_no_keywords() {
        for (request, junk) in [
            (
                "请把 sales.csv 按地区汇总,并输出到 out/summary.parquet",
                "请把 并输出到 按地区汇总",
            ),
            (
                "Bitte verwende immer pnpm, bitte keine Preise",
                "bitte immer",
            ),
            (
                "Please always return the total, please + return",
                "please always return +",
            ),
            (
                "Por favor siempre usa pnpm para todo",
                "favor siempre para todo",
            ),
            ("Пожалуйста всегда запускай тесты", "пожалуйста всегда"),
        ] {
            let found = keywords([].into_iter(), [request, request].into_iter());
            assert!(!found.is_empty(), "{request}");
            for word in junk.split(' ') {
                assert!(
                    !found.iter().any(|known| known == word),
                    "{word}: {found:?}"
                );
            }
        }
    }

    #[track_caller]
    fn check(files: &[&str], requests: &[&str], expected: &str) {
        let found = keywords(files.iter().copied(), requests.iter().copied());
        let expected: Vec<_> = expected.split(", ").collect();
        assert_eq!(
            found[..expected.len().min(found.len())],
            expected,
            "{found:?}"
        );
    }
}
