//! Which statements say the same, which ones disagree, and which one a note means.
//!
//! Texts are compared as sets of tokens: words where a script puts spaces
//! between them, pairs of neighbouring characters where it does not. Case,
//! Unicode form and punctuation do not count. *Values* (numbers, paths, flags,
//! code) are looked at apart: two statements with different values are never
//! the same, and may be a contradiction.
//!
//! # Limits
//!
//! [`NearIndex`] finds all texts above its threshold without comparing each
//! pair: two sets that are that alike share at least one of the few rarest
//! tokens of either (prefix filtering), so only those are posted and looked up.

use std::collections::{BTreeSet, HashMap};

use unicode_normalization::UnicodeNormalization as _;

use crate::model::offline::consolidate::series;
use crate::text::cues::{self, Cue, is_unspaced};
use crate::text::shingles;

/// Least share of common tokens with which two statements are one.
pub(super) const SAME_STATEMENT: f64 = 0.8;

/// Least share of common tokens with which two task titles name one task.
pub(super) const SAME_TASK: f64 = 0.75;

/// Statements with fewer tokens are one only when they are equal.
const TOKENS_MIN: usize = 4;

/// A value that stands before this share of a statement names its subject
/// ("chapter 2 is …"), not what is said of it ("… is on port 8080").
const VALUE_PLACE_MIN: f64 = 0.35;

/// A text as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Features {
    /// Folded words, one space between them: equal texts are equal here.
    pub(super) folded: String,
    /// Hashes of the tokens, sorted, without repeats.
    pub(super) tokens: Vec<u64>,
    /// Numbers, paths, flags, code: in order of appearance.
    values: Vec<Value>,
    chars: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Value {
    text: String,
    has_digit: bool,
    /// It tells one of a series from the others, as in "chapter 2".
    is_of_series: bool,
    /// Characters before it.
    at: usize,
}

impl Features {
    pub(super) fn of(text: &str) -> Self {
        let folded_text = fold(text);
        let words = words(&folded_text);
        let mut tokens = Vec::with_capacity(words.len());
        for word in &words {
            add_tokens(word, &mut tokens);
        }
        tokens.sort_unstable();
        tokens.dedup();
        Self {
            folded: words.join(" "),
            tokens,
            values: values(&folded_text),
            chars: folded_text.chars().count(),
        }
    }

    /// Says the same, perhaps in slightly other words.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        if self.folded == other.folded {
            return true;
        }
        self.tokens.len().min(other.tokens.len()) >= TOKENS_MIN
            && !differ_in_size(&self.tokens, &other.tokens)
            && share(&self.tokens, &other.tokens) >= SAME_STATEMENT
            && self.value_set() == other.value_set()
            && shingles::is_negated(&self.folded) == shingles::is_negated(&other.folded)
    }

    /// Gives the same subject another value: `port is 8080`, `port is 9090`.
    pub(super) fn contradicts(&self, other: &Self) -> bool {
        if self.values.len() != other.values.len() {
            return false;
        }
        let mut differing = self
            .values
            .iter()
            .zip(&other.values)
            .filter(|(left, right)| left.text != right.text);
        let (Some((left, right)), None) = (differing.next(), differing.next()) else {
            return false;
        };
        left.has_digit
            && right.has_digit
            // Chapter 2 says nothing about chapter 1.
            && !(left.is_of_series && right.is_of_series)
            && is_said_late(left, self.chars)
            && is_said_late(right, other.chars)
            && self.is_same_but_for(left, other, right)
    }

    fn is_same_but_for(&self, value: &Value, other: &Self, other_value: &Value) -> bool {
        let left = self.tokens_without(value);
        let right = other.tokens_without(other_value);
        !left.is_empty() && share(&left, &right) >= SAME_STATEMENT
    }

    fn tokens_without(&self, value: &Value) -> Vec<u64> {
        let mut gone = Vec::new();
        for word in words(&value.text) {
            add_tokens(word, &mut gone);
        }
        let mut left = self.tokens.clone();
        left.retain(|token| !gone.contains(token));
        left
    }

    /// Where contradicting statements meet: its text without numbers.
    pub(super) fn subject(&self) -> Self {
        let mut text = String::new();
        let mut run = String::new();
        for c in self.folded.chars().chain([' ']) {
            if c.is_ascii_alphanumeric() {
                run.push(c);
                continue;
            }
            if !run.contains(|c: char| c.is_ascii_digit()) {
                text.push_str(&run);
            }
            run.clear();
            text.push(c);
        }
        Self::of(&text)
    }

    /// Tokens of words that hold a digit, sorted.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let with_digit = |word: &&str| word.contains(|c: char| c.is_ascii_digit());
        let runs = self.folded.split(' ').flat_map(runs).filter(with_digit);
        let mut numbers: Vec<u64> = runs.map(hash).collect();
        numbers.sort_unstable();
        numbers
    }

    fn value_set(&self) -> BTreeSet<&str> {
        self.values
            .iter()
            .map(|value| value.text.as_str())
            .collect()
    }
}

fn is_said_late(value: &Value, chars: usize) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "lengths of short texts")]
    let place = value.at as f64 / chars.max(1) as f64;
    place >= VALUE_PLACE_MIN
}

/// Common tokens among all tokens of both, 0 to 1 (Jaccard).
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of tokens in short texts"
)]
pub(super) fn share(left: &[u64], right: &[u64]) -> f64 {
    let common = common(left, right);
    let all = left.len() + right.len() - common;
    if all == 0 {
        return 0.0;
    }
    common as f64 / all as f64
}

/// Whether two sets are so unequal in size that their share must be below
/// [`SAME_STATEMENT`]: five to four is the limit.
fn differ_in_size(left: &[u64], right: &[u64]) -> bool {
    let (short, long) = (left.len().min(right.len()), left.len().max(right.len()));
    short * 5 < long * 4
}

/// Tokens that two sorted sets have in common.
pub(super) fn common(left: &[u64], right: &[u64]) -> usize {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < left.len() && j < right.len() {
        match left[i].cmp(&right[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                common += 1;
                i += 1;
                j += 1;
            }
        }
    }
    common
}

/// The folded words of a rule without what only asks for it: a correction
/// before it ("No, not like that."), "please", "from now on". `None` where too
/// little is left to be known by.
pub(super) fn essence(text: &str) -> Option<String> {
    let mut rest = text.trim_matches(['"', '“', '”', '„', '«', '»', '「', '」', ' ']);
    while let Some((first, after)) = split_sentence(rest) {
        let says_only_no = values(&fold(first)).is_empty()
            && first.split_whitespace().count() <= ASIDE_WORDS_MAX
            && cues::find(first).has(Cue::Correction);
        if !says_only_no {
            break;
        }
        rest = after;
    }
    let folded = folded(rest);
    let mut left = folded.as_str();
    while let Some(after) = ASKING.iter().find_map(|asking| left.strip_prefix(asking)) {
        left = after.trim_start();
    }
    (Features::of(left).tokens.len() >= TOKENS_MIN).then(|| left.to_owned())
}

fn split_sentence(text: &str) -> Option<(&str, &str)> {
    let spaced = [". ", "! ", "? ", "; "];
    let unspaced = ["。", "！", "？"];
    let ends = spaced.iter().chain(&unspaced);
    let end = ends
        .filter_map(|end| Some(text.find(end)? + end.len()))
        .min()?;
    let (first, after) = text.split_at(end);
    (!after.trim().is_empty()).then_some((first, after))
}

/// Most words of a sentence that only says no to what was done.
const ASIDE_WORDS_MAX: usize = 6;

/// How a rule begins when it is asked for, folded; spaces part words.
const ASKING: &[&str] = &[
    "please ",
    "from now on ",
    "going forward ",
    "in future ",
    "in the future ",
    "always ",
    "bitte ",
    "ab jetzt ",
    "von jetzt an ",
    "ab sofort ",
    "immer ",
    "por favor ",
    "a partir de ahora ",
    "siempre ",
    "désormais ",
    "à partir de maintenant ",
    "toujours ",
    "a partir de agora ",
    "sempre ",
    "d ora in poi ",
    "per favore ",
    "пожалуйста ",
    "отныне ",
    "всегда ",
    "从现在开始",
    "從現在開始",
    "以后",
    "请",
    "請",
    "これからは",
    "今後は",
];

/// Only the folded words of a text: enough to see that two are equal.
pub(super) fn folded(text: &str) -> String {
    words(&fold(text)).join(" ")
}

/// Lower case, composed, full-width forms made plain.
fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfkc().flat_map(char::to_lowercase).collect()
}

fn words(folded: &str) -> Vec<&str> {
    folded
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect()
}

/// A word is one token; a run of a script without spaces is its pairs.
fn add_tokens(word: &str, tokens: &mut Vec<u64>) {
    if word.is_ascii() || !word.contains(is_unspaced) {
        tokens.push(hash(word));
        return;
    }
    for run in runs(word) {
        let mut chars = run.char_indices();
        let is_spaced = chars.next().is_none_or(|(_, first)| !is_unspaced(first));
        let mut start = 0;
        let Some((mut middle, _)) = chars.next().filter(|_| !is_spaced) else {
            tokens.push(hash(run));
            continue;
        };
        for (end, _) in chars.chain([(run.len(), ' ')]) {
            tokens.push(hash(&run[start..end]));
            (start, middle) = (middle, end);
        }
    }
}

/// Splits a word where its script changes between spaced and unspaced.
fn runs(word: &str) -> Vec<&str> {
    let mut runs = Vec::new();
    let mut start = 0;
    let mut last: Option<bool> = None;
    for (at, c) in word.char_indices() {
        let unspaced = is_unspaced(c);
        if last.is_some_and(|last| last != unspaced) {
            runs.push(&word[start..at]);
            start = at;
        }
        last = Some(unspaced);
    }
    runs.push(&word[start..]);
    runs
}

/// FNV-1a: the same on every machine and with every compiler.
fn hash(token: &str) -> u64 {
    token.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn values(folded: &str) -> Vec<Value> {
    let mut values = Vec::new();
    // Byte and character place where the run of visible ASCII began.
    let mut run: Option<(usize, usize)> = None;
    // One more character than there are ends the last run.
    let ends = [(folded.len(), ' ')];
    for (at, (byte, c)) in folded.char_indices().chain(ends).enumerate() {
        if c.is_ascii_graphic() {
            run.get_or_insert((byte, at));
        } else if let Some((start, started_at)) = run.take() {
            let found = value(&folded[start..byte], started_at);
            values.extend(found.map(|value| Value {
                is_of_series: series::is_number_of(&folded[..start], &value.text, &folded[byte..]),
                ..value
            }));
        }
    }
    values
}

fn value(run: &str, at: usize) -> Option<Value> {
    let text = run.trim_matches(|c: char| !c.is_ascii_alphanumeric() && !"/-~$@#".contains(c));
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    let is_code = text.bytes().any(|byte| b"/_=@\\$#".contains(&byte))
        || text.contains("::")
        || text.starts_with('-')
        || has_inner_dot(text);
    (has_digit || is_code).then(|| Value {
        text: text.to_owned(),
        has_digit,
        is_of_series: false,
        at,
    })
}

/// `a.rs` or `example.org`, not the end of a sentence.
fn has_inner_dot(text: &str) -> bool {
    text.split_once('.')
        .is_some_and(|(before, after)| !before.is_empty() && !after.is_empty())
}

/// Texts that can be asked for their near-equals.
pub(super) struct NearIndex {
    threshold: f64,
    /// In how many texts each token stands.
    frequency: HashMap<u64, u32>,
    posted: HashMap<u64, Vec<usize>>,
    sets: Vec<Vec<u64>>,
}

impl NearIndex {
    /// `all` are the texts that will come, or a sample of them: only speed
    /// depends on it.
    pub(super) fn new<'a>(threshold: f64, all: impl Iterator<Item = &'a Features>) -> Self {
        let mut frequency = HashMap::new();
        for features in all {
            for token in &features.tokens {
                *frequency.entry(*token).or_default() += 1;
            }
        }
        Self {
            threshold,
            frequency,
            posted: HashMap::new(),
            sets: Vec::new(),
        }
    }

    /// Adds a text and gives it the next index, from 0.
    pub(super) fn insert(&mut self, features: &Features) -> usize {
        let index = self.sets.len();
        for token in self.prefix(&features.tokens) {
            self.posted.entry(token).or_default().push(index);
        }
        self.sets.push(features.tokens.clone());
        index
    }

    /// Indexes of texts above the threshold, with their shares: the most
    /// alike first, the earlier first among equals.
    pub(super) fn near(&self, features: &Features) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        for token in self.prefix(&features.tokens) {
            found.extend(self.posted.get(&token).into_iter().flatten());
        }
        found.sort_unstable();
        found.dedup();
        let mut near: Vec<(usize, f64)> = found
            .into_iter()
            .map(|index| (index, share(&features.tokens, &self.sets[index])))
            .filter(|(_, share)| *share >= self.threshold)
            .collect();
        near.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
        near.into_iter().map(|(index, _)| index).collect()
    }

    /// The rarest tokens, as many as a near-equal cannot all do without.
    fn prefix(&self, tokens: &[u64]) -> Vec<u64> {
        let mut ordered = tokens.to_vec();
        ordered.sort_by_key(|token| (self.frequency.get(token).copied().unwrap_or(0), *token));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a small count"
        )]
        let needed = (self.threshold * tokens.len() as f64 - 1e-9).ceil() as usize;
        ordered.truncate(tokens.len() + 1 - needed.min(tokens.len()).max(1));
        ordered
    }
}

/// How well a note's words and an entry fit, judged among many entries: a
/// word that few entries have says more than one that stands everywhere.
pub(super) struct Matcher {
    frequency: HashMap<u64, u32>,
    entries: usize,
}

impl Matcher {
    pub(super) fn new<'a>(entries: impl Iterator<Item = &'a Features>) -> Self {
        let mut frequency = HashMap::new();
        let mut count = 0;
        for features in entries {
            count += 1;
            for token in &features.tokens {
                *frequency.entry(*token).or_default() += 1;
            }
        }
        Self {
            frequency,
            entries: count,
        }
    }

    /// The part of the weight of `inner` that `outer` has too, 0 to 1. A word
    /// that no entry has counts as rare times `unknown`.
    pub(super) fn part_of(&self, inner: &[u64], outer: &[u64], unknown: f64) -> f64 {
        let mut whole = 0.0;
        let mut common = 0.0;
        for token in inner {
            let weight = match self.frequency.get(token) {
                Some(frequency) => self.weight(*frequency),
                None => self.weight(1) * unknown,
            };
            whole += weight;
            if outer.binary_search(token).is_ok() {
                common += weight;
            }
        }
        if whole <= 0.0 {
            return 0.0;
        }
        common / whole
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of entries")]
    fn weight(&self, frequency: u32) -> f64 {
        (1.0 + self.entries as f64 / f64::from(frequency)).ln()
    }
}

#[cfg(test)]
mod tests;
