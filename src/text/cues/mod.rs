//! Cue words: how people say "always", "no, not like that", "forget it".
//!
//! A data file per language lists phrases by kind. All languages are looked
//! for at once, because people mix them and transcripts do not name one.
//! Matching is without regard to case and Unicode form. A phrase of a script
//! that puts spaces between words must begin and end at a word's border; one
//! in Chinese, Japanese or Korean may stand anywhere.
//!
//! # Limits
//!
//! Cues hint, they do not understand. Whoever acts on one keeps the sentence
//! itself, word for word, so that a wrong hint can be seen to be wrong.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use serde::Deserialize;
use unicode_normalization::UnicodeNormalization as _;

/// The languages: code and data file.
const LANGUAGES: &[(&str, &str)] = &[
    ("de", include_str!("de.toml")),
    ("en", include_str!("en.toml")),
    ("es", include_str!("es.toml")),
    ("fr", include_str!("fr.toml")),
    ("it", include_str!("it.toml")),
    ("ja", include_str!("ja.toml")),
    ("ko", include_str!("ko.toml")),
    ("pt", include_str!("pt.toml")),
    ("ru", include_str!("ru.toml")),
    ("zh", include_str!("zh.toml")),
];

/// What a phrase says about the sentence it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Cue {
    /// "Always", "from now on": meant beyond this task.
    Default,
    /// "Never": meant beyond this task.
    Prohibition,
    /// "No, not like that": what was done before was not what was wanted.
    Correction,
    /// "Remember that".
    Remember,
    /// "Forget it", "no longer true".
    Forget,
    /// "The port is now", "correction": in a note, replace what is there.
    Correct,
    /// "Works now", "thanks": the person is content.
    Accept,
    /// "Still broken": the person is not.
    Complaint,
    /// "Failed", "error": something went wrong.
    Failure,
    /// "In this repo …" at the beginning: may state how things are done here.
    Convention,
    /// "Ok, …", "and …", "btw, …": goes on with what was said before.
    FollowUp,
    /// "I guess", "lol": not meant as a rule.
    Hedge,
}

impl Cue {
    #[cfg(test)]
    const ALL: [Self; 12] = [
        Self::Default,
        Self::Prohibition,
        Self::Correction,
        Self::Remember,
        Self::Forget,
        Self::Correct,
        Self::Accept,
        Self::Complaint,
        Self::Failure,
        Self::Convention,
        Self::FollowUp,
        Self::Hedge,
    ];

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// The kinds of cue that a text holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CueSet(u16);

impl CueSet {
    pub(crate) const fn has(self, cue: Cue) -> bool {
        self.0 & cue.bit() != 0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Says something that is meant to hold from now on.
    pub(crate) const fn states_default(self) -> bool {
        let is_wish = self.has(Cue::Default) || self.has(Cue::Prohibition);
        (is_wish && !self.has(Cue::Hedge)) || self.has(Cue::Remember)
    }

    fn add(&mut self, cue: Cue) {
        self.0 |= cue.bit();
    }
}

/// The cues in `text`, which should be one sentence or a short note: cues of
/// the kind "no, …" count only at its beginning, or behind a word that only
/// leads over to it ("btw, …").
pub(crate) fn find(text: &str) -> CueSet {
    let text = fold(text);
    let begins = begins(&text);
    let phrases = &*PHRASES;
    let hits: Vec<Hit> = phrases
        .matcher
        .find_overlapping_iter(&text)
        .filter_map(|found| {
            let phrase = &phrases.all[found.pattern().as_usize()];
            let (start, end) = (found.start(), found.end());
            let in_place = !phrase.only_at_start || begins.contains(&start);
            (in_place && has_borders(&text, start, end)).then_some(Hit {
                start,
                end,
                cue: phrase.cue,
            })
        })
        .collect();
    let mut cues = CueSet::default();
    for hit in &hits {
        let Some(cue) = hit.cue else { continue };
        if !hits
            .iter()
            .any(|other| other.cue.is_none() && other.covers(hit))
        {
            cues.add(cue);
        }
    }
    cues
}

/// Where a folded text begins: at its first letter, and behind each word there
/// that leads over to what follows.
fn begins(text: &str) -> Vec<usize> {
    let phrases = &*PHRASES;
    let first_letter = |from: usize| {
        let rest = &text[from..];
        from + rest.len() - rest.trim_start_matches(is_ornament).len()
    };
    let mut begins = vec![first_letter(0)];
    while let Some(begin) = begins.last().copied()
        && begins.len() <= LEADS_OVER_MAX
    {
        let head = &text[begin..text.floor_char_boundary(begin + LEAD_OVER_BYTES_MAX)];
        let end = phrases.matcher.find_overlapping_iter(head).filter(|found| {
            let phrase = &phrases.all[found.pattern().as_usize()];
            let leads_over = phrase.cue == Some(Cue::FollowUp) && phrase.only_at_start;
            leads_over && found.start() == 0 && has_borders(text, begin, begin + found.end())
        });
        let Some(end) = end.map(|found| begin + found.end()).max() else {
            break;
        };
        begins.push(first_letter(end));
    }
    begins
}

/// So many words may lead over ("ok, and btw, …"), each at most this long.
const LEADS_OVER_MAX: usize = 3;
const LEAD_OVER_BYTES_MAX: usize = 40;

/// A phrase found in a folded text. No cue: an exception, which silences
/// the shorter phrases within it ("never mind").
struct Hit {
    start: usize,
    end: usize,
    cue: Option<Cue>,
}

impl Hit {
    fn covers(&self, other: &Self) -> bool {
        let within = self.start <= other.start && other.end <= self.end;
        within && self.end - self.start > other.end - other.start
    }
}

/// Whether a word joins others, asks politely or is a cue itself: it names
/// nothing that a session could be found by.
pub(crate) fn is_glue(word: &str) -> bool {
    PHRASES.glue.contains(&fold(word))
}

/// `run` of a script without spaces, without the words at its ends that name
/// nothing.
pub(crate) fn without_glue(run: &str) -> &str {
    let mut run = run;
    loop {
        let longest = |ends: &dyn Fn(&str) -> bool| {
            let words = PHRASES.glue.iter().filter(|word| ends(word));
            words.map(String::len).max().unwrap_or(0)
        };
        let head = longest(&|word| is_unspaced_word(word) && run.starts_with(word));
        let rest = &run[head..];
        let tail = longest(&|word| is_unspaced_word(word) && rest.ends_with(word));
        if head + tail == 0 {
            return run;
        }
        run = &rest[..rest.len() - tail];
    }
}

fn is_unspaced_word(word: &str) -> bool {
    word.chars().all(is_unspaced)
}

/// Lower case, composed, full-width letters and curly apostrophes made plain.
fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfkc()
        .flat_map(char::to_lowercase)
        .map(|c| {
            if matches!(c, '\u{2019}' | '\u{2018}' | '\u{2bc}') {
                '\''
            } else {
                c
            }
        })
        .collect()
}

/// What may stand before the first word: quotes, bullets, brackets, spaces.
fn is_ornament(c: char) -> bool {
    !c.is_alphanumeric()
}

/// Whether the phrase at `start..end` is no part of a longer word.
fn has_borders(text: &str, start: usize, end: usize) -> bool {
    let (before, inside, after) = (&text[..start], &text[start..end], &text[end..]);
    let joins_left =
        inside.chars().next().is_some_and(is_spaced) && ends_in_word(before.chars().rev());
    let joins_right =
        inside.chars().next_back().is_some_and(is_spaced) && ends_in_word(after.chars());
    !joins_left && !joins_right
}

/// Whether the text that goes on in this direction belongs to the same word:
/// a letter or digit, or one behind `_`, `-`, `.` (`no-cache`, `always.rs`).
fn ends_in_word(mut away: impl Iterator<Item = char>) -> bool {
    match away.next() {
        Some('_') => true,
        Some('-' | '.') => away.next().is_some_and(char::is_alphanumeric),
        Some(c) => is_spaced(c),
        None => false,
    }
}

/// A letter or digit of a script that writes spaces between words.
fn is_spaced(c: char) -> bool {
    c.is_alphanumeric() && !is_unspaced(c)
}

/// Han, kana and Hangul: phrases of these may stand within a run of letters.
pub(crate) const fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{9fff}' | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}')
}

struct Phrase {
    /// `None` for an exception.
    cue: Option<Cue>,
    only_at_start: bool,
}

struct Phrases {
    /// Words that name nothing, single-word cues of spaced scripts among them.
    glue: BTreeSet<String>,
    all: Vec<Phrase>,
    matcher: AhoCorasick,
}

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    let mut all = Vec::new();
    let mut patterns: Vec<String> = Vec::new();
    let mut glue = BTreeSet::new();
    for (_, data) in LANGUAGES {
        let file: LanguageFile = toml::from_str(data).expect("compiled in, and parsed by a test");
        glue.extend(file.glue.iter().map(|word| fold(word)));
        for (cue, lists) in file.kinds() {
            for (words, only_at_start) in [(&lists.anywhere, false), (&lists.at_start, true)] {
                for word in words {
                    let is_wish = matches!(cue, Some(Cue::Default | Cue::Prohibition));
                    if is_wish && word.chars().all(is_spaced) {
                        glue.insert(fold(word));
                    }
                    patterns.push(fold(word));
                    all.push(Phrase { cue, only_at_start });
                }
            }
        }
    }
    let matcher = AhoCorasick::builder()
        .match_kind(MatchKind::Standard)
        .build(patterns)
        .expect("a few thousand short phrases fit an automaton");
    Phrases { glue, all, matcher }
});

/// A data file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LanguageFile {
    glue: Vec<String>,
    default: PhraseLists,
    prohibition: PhraseLists,
    correction: PhraseLists,
    remember: PhraseLists,
    forget: PhraseLists,
    correct: PhraseLists,
    accept: PhraseLists,
    complaint: PhraseLists,
    failure: PhraseLists,
    convention: PhraseLists,
    follow_up: PhraseLists,
    hedge: PhraseLists,
    exception: PhraseLists,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct PhraseLists {
    #[serde(default)]
    anywhere: Vec<String>,
    #[serde(default)]
    at_start: Vec<String>,
}

impl LanguageFile {
    fn kinds(&self) -> [(Option<Cue>, &PhraseLists); 13] {
        [
            (Some(Cue::Default), &self.default),
            (Some(Cue::Prohibition), &self.prohibition),
            (Some(Cue::Correction), &self.correction),
            (Some(Cue::Remember), &self.remember),
            (Some(Cue::Forget), &self.forget),
            (Some(Cue::Correct), &self.correct),
            (Some(Cue::Accept), &self.accept),
            (Some(Cue::Complaint), &self.complaint),
            (Some(Cue::Failure), &self.failure),
            (Some(Cue::Convention), &self.convention),
            (Some(Cue::FollowUp), &self.follow_up),
            (Some(Cue::Hedge), &self.hedge),
            (None, &self.exception),
        ]
    }
}

#[cfg(test)]
mod tests;
