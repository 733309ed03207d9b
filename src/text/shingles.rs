//! Whether two statements say the same in almost the same words.
//!
//! Text is normalised, cut into units (words; single characters in scripts
//! that put no space between words) and compared by pairs of neighbours.
//!
//! A withheld entry is kept as salted hashes of these pairs, so that it is
//! recognised when it comes back slightly reworded, and cannot be read.
//!
//! # Compatibility
//!
//! The hashes lie in files that outlive this program's version: a change of
//! [`normalise`] or of how pairs are made lets forgotten entries come back.
//! A test holds their values.
//!
//! One file because what is hashed and what is compared must stay one notion of
//! a statement.
//!
//! # Not in here
//!
//! No meaning: a synonym is another word. The salt keeps equal entries apart
//! and tables useless; it does not stop a determined guesser who has the file.
//! Secrets are purged, not withheld.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

use crate::domain::note::NOTE_MARK;
use crate::domain::withheld::EntryHashes;
use crate::text::pointers;

/// Share of common pairs from which a statement counts as the withheld one.
/// One word of four, or two of nine, may differ.
const MATCH_MIN: f64 = 0.42;

/// Share of one statement's pairs that the other must hold to count as the
/// same with something added or cut off.
const CONTAINED_MIN: f64 = 0.8;

/// Fewest pairs for which containment says anything.
const CONTAINED_PAIRS_MIN: usize = 5;

/// What stands for the border of a statement in its first and last pair.
const BORDER: &str = "\u{2}";

/// First characters of the extra shingles that must agree exactly.
const NEGATION_MARK: &str = "\u{3}not";
const POINTER_MARK: &str = "\u{4}";

/// Words that turn a statement round. Adding one is no small rewording.
const NEGATION_WORDS: &[&str] = &[
    "not",
    "no",
    "never",
    "don't",
    "dont",
    "doesn't",
    "isn't",
    "aren't",
    "can't",
    "cannot",
    "won't",
    "shouldn't",
    "mustn't",
    "without",
    "avoid",
    "nicht",
    "kein",
    "keine",
    "keinen",
    "keinem",
    "keiner",
    "nie",
    "niemals",
    "ohne",
    "ne",
    "pas",
    "jamais",
    "sans",
    "aucun",
    "aucune",
    "nunca",
    "sin",
    "jamás",
    "non",
    "mai",
    "senza",
    "não",
    "nem",
    "sem",
    "не",
    "нет",
    "никогда",
    "без",
    "нельзя",
];

/// The same in scripts without spaces between words, and Korean stems.
const NEGATION_PARTS: &[&str] = &[
    "不",
    "没",
    "沒",
    "别",
    "別に",
    "勿",
    "禁",
    "无",
    "無",
    "未",
    "ない",
    "ません",
    "ずに",
    "않",
    "지마",
    "지 마",
    "말아",
];

/// Statement in lower case, without marks: list marker, note mark, citations
/// and punctuation gone, Unicode compatibility forms unified, single blanks.
pub(crate) fn normalise(text: &str) -> String {
    let bare = without_citations(text.trim());
    let folded = if bare.is_ascii() {
        bare.to_ascii_lowercase()
    } else {
        bare.nfkc().collect::<String>().to_lowercase()
    };
    let mut out = String::with_capacity(folded.len());
    let mut previous = ' ';
    let mut chars = folded.chars().peekable();
    while let Some(c) = chars.next() {
        let c = if c == '’' { '\'' } else { c };
        let next_is_word = chars.peek().is_some_and(|next| next.is_alphanumeric());
        let previous_is_word = previous.is_alphanumeric();
        let keeps = match c {
            c if c.is_alphanumeric() || is_mark(c) => true,
            // Inside of words, versions and addresses: don't, 1.2, a_b.
            '\'' | '.' | '_' => previous_is_word && next_is_word,
            // C++ and C# are not C.
            '+' | '#' => previous_is_word || previous == '+',
            _ => false,
        };
        if keeps {
            out.push(c);
        } else if !out.ends_with(' ') && !out.is_empty() {
            out.push(' ');
        }
        // What is dropped holds nothing that follows.
        previous = if keeps { c } else { ' ' };
    }
    out.truncate(out.trim_end().len());
    out
}

/// Two texts this alike, by [`similarity`], say the same thing.
pub(crate) const SAME_SIMILARITY_MIN: f64 = 0.6;

/// How alike two statements are, as [`Wording::similarity`].
pub(crate) fn similarity(a: &str, b: &str) -> f64 {
    Wording::of(a).similarity(&Wording::of(b))
}

/// A statement as statements are compared; made once where it is compared with
/// many.
pub(crate) struct Wording {
    normal: String,
    /// Hashes of words and neighbouring pairs, sorted, without repeats.
    shingles: Vec<u64>,
}

impl Wording {
    pub(crate) fn of(text: &str) -> Self {
        let normal = normalise(text);
        let units = units(&normal);
        let hash = |shingle: &str| {
            let mut hasher = DefaultHasher::new();
            shingle.hash(&mut hasher);
            hasher.finish()
        };
        let pairs = pairs(&units);
        let all = pairs.iter().map(String::as_str).chain(units);
        let mut shingles: Vec<u64> = all.map(hash).collect();
        shingles.sort_unstable();
        shingles.dedup();
        Self { normal, shingles }
    }

    /// As [`normalise`] has it.
    pub(crate) fn words(&self) -> &str {
        &self.normal
    }

    /// From 0 to 1: common words and neighbouring pairs by all of them
    /// (Jaccard). Statements that normalise to the same text have 1, also when
    /// nothing is left of them.
    pub(crate) fn similarity(&self, other: &Self) -> f64 {
        if self.normal == other.normal {
            return 1.0;
        }
        let (ours, theirs) = (&self.shingles, &other.shingles);
        let mut common = 0;
        let (mut left, mut right) = (ours.iter().peekable(), theirs.iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let order = a.cmp(b);
            common += usize::from(order.is_eq());
            if order.is_le() {
                left.next();
            }
            if order.is_ge() {
                right.next();
            }
        }
        share(common, ours.len() + theirs.len() - common)
    }
}

/// The hashes under which `text` is withheld. `salt` is random and new.
pub(crate) fn hash_entry(salt: [u8; 16], text: &str) -> EntryHashes {
    let statement = Statement::of(text);
    let hasher = SaltedHasher::new(salt);
    let all = statement.pairs.iter().chain(&statement.marks);
    let shingles: BTreeSet<u64> = all.map(|shingle| hasher.hash(shingle)).collect();
    EntryHashes {
        salt,
        shingles: shingles.into_iter().collect(),
    }
}

/// Whether `text` is the withheld statement, give or take a small rewording.
///
/// Case, punctuation, list marker, citations, note mark and one or two words
/// may differ, and words may have been added. Numbers must agree, and so must
/// whether it says "not" and the recap that it points at.
pub(crate) fn matches(withheld: &EntryHashes, text: &str) -> bool {
    Statement::of(text).is_withheld_as(withheld)
}

fn is_match(withheld: &EntryHashes, statement: &Statement) -> bool {
    let hasher = SaltedHasher::new(withheld.salt);
    let holds = |shingle: &str| {
        let hash = hasher.hash(shingle);
        withheld.shingles.binary_search(&hash).is_ok()
    };
    let says_not = statement.marks.iter().any(|mark| mark == NEGATION_MARK);
    let marks_agree = statement.marks.iter().all(|mark| holds(mark));
    if !marks_agree || says_not != holds(NEGATION_MARK) || statement.pairs.is_empty() {
        return false;
    }
    let common = statement.pairs.iter().filter(|pair| holds(pair)).count();
    let withheld_pairs = withheld.shingles.len() - statement.marks.len();
    let all = statement.pairs.len() + withheld_pairs - common.min(withheld_pairs);
    let is_contained =
        |pairs: usize| CONTAINED_PAIRS_MIN <= pairs && CONTAINED_MIN <= share(common, pairs);
    if is_contained(withheld_pairs) {
        return true;
    }
    let numbers_agree = statement
        .numbers
        .iter()
        .all(|number| (statement.pairs.iter()).any(|pair| pair_has(pair, number) && holds(pair)));
    numbers_agree && (MATCH_MIN <= share(common, all) || is_contained(statement.pairs.len()))
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of words are small")]
    let share = part as f64 / whole as f64;
    share
}

/// What of a statement is hashed and compared; made once where a statement is
/// held against many withheld entries.
pub(crate) struct Statement {
    pairs: BTreeSet<String>,
    /// Extra shingles that must agree exactly.
    marks: Vec<String>,
    /// Units with a digit.
    numbers: Vec<String>,
}

impl Statement {
    pub(crate) fn of(text: &str) -> Self {
        let normal = normalise(text);
        let units = units(&normal);
        let mut marks = Vec::new();
        if says_not(&normal, &units) {
            marks.push(NEGATION_MARK.to_owned());
        }
        if let Some(recap) = leading_recap(text) {
            marks.push(format!("{POINTER_MARK}{recap}"));
        }
        let is_number = |unit: &&&str| unit.chars().any(char::is_numeric);
        let numbers = units
            .iter()
            .filter(is_number)
            .map(|unit| (*unit).to_owned())
            .collect();
        Self {
            pairs: pairs(&units),
            marks,
            numbers,
        }
    }

    /// As [`matches()`].
    pub(crate) fn is_withheld_as(&self, withheld: &EntryHashes) -> bool {
        is_match(withheld, self)
    }
}

/// Whether a statement says "not" in some way: then it is not the same as one
/// that does not, however alike the rest is.
pub(crate) fn is_negated(text: &str) -> bool {
    let normal = normalise(text);
    says_not(&normal, &units(&normal))
}

fn says_not(normal: &str, units: &[&str]) -> bool {
    let has_word = units
        .iter()
        .any(|unit| NEGATION_WORDS.contains(unit) || unit.ends_with("n't"));
    has_word || NEGATION_PARTS.iter().any(|part| normal.contains(part))
}

/// The recap that a topic line begins with: two topics may say the same words
/// about different sessions.
fn leading_recap(text: &str) -> Option<String> {
    let bare = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let first = pointers::find(bare).into_iter().next()?;
    match first.target {
        pointers::Target::Recap(name) if first.bytes.start == 0 => Some(name),
        pointers::Target::Recap(_) | pointers::Target::Thread(_) => None,
    }
}

/// Takes references, the note mark and `[Task n]` marks out.
fn without_citations(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for pointer in pointers::find(text) {
        out.push_str(&text[copied..pointer.bytes.start]);
        out.push(' ');
        copied = pointer.bytes.end;
    }
    out.push_str(&text[copied..]);
    let out = out.replace(NOTE_MARK, " ");
    without_task_marks(&out)
}

fn without_task_marks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[Task ") {
        out.push_str(before);
        let inner = after.find(']');
        let is_mark = inner.is_some_and(|end| {
            after[..end]
                .chars()
                .all(|c| c.is_numeric() || c == ',' || c == ' ')
        });
        match inner {
            Some(end) if is_mark => rest = &after[end + 1..],
            _ => {
                out.push_str("[Task ");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Words, and single characters of scripts that do not part words.
fn units(normal: &str) -> Vec<&str> {
    let mut units = Vec::new();
    for word in normal
        .split(' ')
        .flat_map(UnicodeSegmentation::split_word_bounds)
    {
        if word.chars().any(is_unspaced) {
            units.extend(word.graphemes(true));
        } else if !word.is_empty() {
            units.push(word);
        }
    }
    units
}

/// Neighbours, with the borders; single units when there is only one.
fn pairs(units: &[&str]) -> BTreeSet<String> {
    let (Some(first), Some(last)) = (units.first(), units.last()) else {
        return BTreeSet::new();
    };
    let inner = units
        .windows(2)
        .map(|pair| format!("{} {}", pair[0], pair[1]));
    let borders = [format!("{BORDER} {first}"), format!("{last} {BORDER}")];
    inner.chain(borders).collect()
}

fn pair_has(pair: &str, unit: &str) -> bool {
    pair.split(' ').any(|half| half == unit)
}

/// Chinese, Japanese, Thai, Lao, Khmer, Burmese and Tibetan letters.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF | 0x0F00..=0x0FFF | 0x1000..=0x109F | 0x1780..=0x17FF
        | 0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3040..=0x30FF | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

/// Vowel signs and accents that are no letters by themselves.
fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}

struct SaltedHasher {
    key: [u8; 32],
}

impl SaltedHasher {
    fn new(salt: [u8; 16]) -> Self {
        let key = blake3::derive_key("memrev withheld entry shingles v1", &salt);
        Self { key }
    }

    fn hash(&self, shingle: &str) -> u64 {
        let hash = blake3::keyed_hash(&self.key, shingle.as_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&hash.as_bytes()[..8]);
        u64::from_be_bytes(first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{hash_entry, matches, normalise, similarity};

    const SALT: [u8; 16] = [7; 16];

    #[track_caller]
    fn check(withheld: &str, candidate: &str, expected: bool) {
        let hashes = hash_entry(SALT, withheld);
        assert_eq!(
            matches(&hashes, candidate),
            expected,
            "{withheld:?} / {candidate:?}"
        );
    }

    #[test]
    fn the_same_statement_is_recognised_in_other_dress() {
        let withheld = "- Always run the linter before you commit. [ad-hoc note]";
        for candidate in [
            "always run the linter before you commit",
            "* **Always** run the `linter` before you commit!",
            "Always run the linter before you commit; thread_id=0194f5a6-89ab",
            "Always run the linter before you commit (rollout_summaries/2026-12-01T05-33-44-ILrR-x.md) [Task 2]",
            "Always run the linter before a commit",
            "Always run our linter before you commit",
            "Always run the linter before you commit, because CI is slow and nobody likes to wait for it",
        ] {
            check(withheld, candidate, true);
        }
        check(
            "使用 uv 而不是 pip 安装依赖。",
            "- 使用uv而不是pip安装依赖 [ad-hoc note]",
            true,
        );
        check(
            "提交信息必须用中文写，一行即可",
            "提交信息要用中文写，一行即可",
            true,
        );
        check(
            "Änderungen immer auf Deutsch beschreiben",
            "- änderungen IMMER auf deutsch beschreiben!",
            true,
        );
        check(
            "Änderungen immer auf Deutsch beschreiben",
            "Änderungen stets auf Deutsch beschreiben",
            true,
        );
        check(
            "ビルドには必ず cargo を使う",
            "ビルドには必ずcargoを使う。",
            true,
        );
    }

    #[test]
    fn another_statement_is_not() {
        let withheld = "Always run the linter before you commit.";
        for candidate in [
            "Never run the linter before you commit.",
            "Always run the tests with pytest after you push.",
            "The linter is slow.",
            "Commit messages are one line.",
            "",
        ] {
            check(withheld, candidate, false);
        }
        check(
            "The port of the service is 8080",
            "The port of the service is 9090",
            false,
        );
        check(
            "The service listens on port 8080",
            "The port of the service is 8080 and its host is db1",
            false,
        );
        check("使用制表符缩进代码", "不要使用制表符缩进代码", false);
        check("提交信息必须用中文写", "代码注释必须用英文写", false);
        check(
            "Änderungen auf Deutsch beschreiben",
            "Änderungen nicht auf Deutsch beschreiben",
            false,
        );
        check(
            "Tests laufen nur in der CI",
            "Die Datenbank läuft nur lokal",
            false,
        );
        check("use C++ here", "use C# here", false);
        check(
            "- rollout_summaries/2026-12-01T05-33-44-ILrR-a.md — work on the engine; thread_id=a1",
            "- rollout_summaries/2026-12-01T05-33-44-kbEw-b.md — work on the engine; thread_id=b2",
            false,
        );
    }

    #[test]
    fn a_topic_is_known_by_its_recap() {
        check(
            "- rollout_summaries/2026-12-01T05-33-44-ILrR-a.md — work on the engine; thread_id=a1",
            "rollout_summaries/2026-12-01T05-33-44-ILrR-a.md: work on the engine",
            true,
        );
    }

    #[test]
    fn short_statements_must_be_equal() {
        check("uv", "UV!", true);
        check("uv", "pip", false);
        check("use uv", "use pip", false);
    }

    #[test]
    fn normalising_keeps_what_tells_words_apart() {
        for (text, normal) in [
            ("  - **Don’t** use `a_b` 1.2!", "don't use a_b 1.2"),
            ("ＡＢＣ　ﬁne", "abc fine"),
            ("C++ and C#, not #1", "c++ and c# not 1"),
            ("x — y…z", "x y z"),
            ("हिन्दी में", "हिन्दी में"),
            ("---", ""),
            ("++ x ++", "x"),
        ] {
            assert_eq!(normalise(text), normal);
        }
    }

    #[test]
    fn similarity_orders_statements() {
        let statement = "Changelog entries are one line, present tense";
        let near = similarity(statement, "changelog entries are one line in present tense");
        let far = similarity(statement, "changelog entries name no files");
        assert!(
            (similarity(
                statement,
                "- changelog ENTRIES are one line; present tense."
            ) - 1.0)
                .abs()
                < 1e-9
        );
        assert!(far < near && near < 1.0, "{far} {near}");
        assert!(similarity(statement, "提交信息") < 1e-9);
    }

    #[test]
    fn hashes_are_stable_across_versions_and_differ_by_salt() {
        let hashes = hash_entry(SALT, "Use uv");
        assert_eq!(
            hashes
                .shingles
                .iter()
                .map(|hash| format!("{hash:016x}"))
                .collect::<Vec<_>>(),
            ["2a5b224983383c0f", "85985260cb3acfd1", "a24a5fd7431e088a"]
        );
        assert_ne!(hash_entry([8; 16], "Use uv").shingles, hashes.shingles);
    }

    proptest! {
        #[test]
        fn a_statement_matches_itself(text in "\\PC{0,80}", salt in proptest::array::uniform16(0_u8..)) {
            let hashes = hash_entry(salt, &text);
            let has_words = normalise(&text).chars().any(char::is_alphanumeric);
            prop_assert!(!has_words || matches(&hashes, &text));
            prop_assert!(hashes.shingles.is_sorted());
        }

        #[test]
        fn normalising_twice_changes_nothing(text in "\\PC{0,80}") {
            let once = normalise(&text);
            prop_assert_eq!(normalise(&once), once);
        }

        #[test]
        fn similarity_is_symmetric_and_bounded(a in "[a-c ]{0,20}", b in "[a-c ]{0,20}") {
            let share = similarity(&a, &b);
            prop_assert!((0.0..=1.0).contains(&share));
            prop_assert!((share - similarity(&b, &a)).abs() < 1e-9);
        }
    }
}
