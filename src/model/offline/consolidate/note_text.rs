//! A note's words: its lines, whether they state a preference, and what they
//! are about.

use std::sync::LazyLock;

use crate::domain::note::NOTE_MARK;
use crate::model::offline::consolidate::line;
use crate::model::offline::consolidate::tokens::Features;
use crate::text::cues::{self, Cue};

/// Most bytes of one line that is copied from a note.
const LINE_BYTES_MAX: usize = 1_000;

/// A note's lines as they can stand in a bullet: its bullets each on their
/// own, paragraphs joined, headings only when there is nothing else.
pub(super) fn lines_of(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut headings = Vec::new();
    let mut paragraph = String::new();
    for raw in text.lines().chain([""]) {
        let trimmed = raw.trim();
        let starts_item = is_item(trimmed);
        if trimmed.is_empty() || starts_item || trimmed.starts_with('#') {
            lines.push(std::mem::take(&mut paragraph));
        }
        if trimmed.starts_with('#') {
            headings.push(trimmed.to_owned());
        } else if !trimmed.is_empty() {
            paragraph.push(' ');
            paragraph.push_str(trimmed);
        }
    }
    lines.push(paragraph);
    let tidy = |lines: Vec<String>| -> Vec<String> {
        let lines = lines.iter().map(|line| tidy_line(line));
        lines.filter(|line| !line.is_empty()).collect()
    };
    let lines = tidy(lines);
    if lines.is_empty() {
        tidy(headings)
    } else {
        lines
    }
}

fn is_item(trimmed: &str) -> bool {
    let digits = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered =
        digits.len() < trimmed.len() && (digits.starts_with(". ") || digits.starts_with(") "));
    is_numbered
        || ["- ", "* ", "+ "]
            .iter()
            .any(|marker| trimmed.starts_with(marker))
}

fn tidy_line(line: &str) -> String {
    let cleaned = line::clean(line);
    let mut text = cleaned.trim();
    while let Some(rest) = text.strip_suffix(NOTE_MARK) {
        text = rest.trim_end();
    }
    line::without_pointers(&line::shorten(
        &line::clean(without_label(text)),
        LINE_BYTES_MAX,
    ))
}

/// Takes off a label that only says what kind of note this is (`Add: …`).
fn without_label(text: &str) -> &str {
    let Some((label, rest)) = text.split_once([':', '：']) else {
        return text;
    };
    let label = label.trim().to_lowercase();
    let rest = rest.trim();
    let is_label = LABELS.contains(&label.as_str()) || says_kind(&label);
    if is_label && !rest.is_empty() {
        rest
    } else {
        text
    }
}

/// Whether a note begins with a label that says what it asks for.
pub(super) fn has_kind_label(text: &str) -> bool {
    let first = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    first
        .split_once([':', '：'])
        .is_some_and(|(label, _)| says_kind(&label.trim().to_lowercase()))
}

fn says_kind(label: &str) -> bool {
    let is_short = label.chars().count() <= 20 && label.split_whitespace().count() <= 2;
    let cues = cues::find(label);
    is_short && (cues.has(Cue::Remember) || cues.has(Cue::Correct) || cues.has(Cue::Forget))
}

const LABELS: &[&str] = &[
    "add",
    "note",
    "memo",
    "remember",
    "correct",
    "correction",
    "forget",
    "hinzufügen",
    "merken",
    "notiz",
    "korrektur",
    "añadir",
    "ajouter",
    "adicionar",
    "添加",
    "备注",
    "記住",
    "记住",
    "更正",
    "メモ",
    "追加",
    "訂正",
    "추가",
    "메모",
];

pub(super) fn is_preference(text: &str) -> bool {
    let cues = cues::find(text);
    let folded = text.to_lowercase();
    cues.has(Cue::Default)
        || cues.has(Cue::Prohibition)
        || PREFERENCE_WORDS.iter().any(|word| folded.contains(word))
}

/// Words by which a note speaks of what somebody wants.
const PREFERENCE_WORDS: &[&str] = &[
    "prefer",
    "user wants",
    "user likes",
    "i want",
    "i like",
    "every project",
    "bevorzug",
    "möchte",
    "prefiere",
    "prefiero",
    "préfère",
    "prefere",
    "prefiro",
    "preferisc",
    "предпочита",
    "偏好",
    "喜欢",
    "喜歡",
    "希望",
    "想要",
    "好む",
    "好み",
    "たい",
    "선호",
];

/// The quoted words that a note says are replaced, folded: behind "instead
/// of", before an arrow.
pub(super) fn old_value(text: &str) -> Option<String> {
    let mut spans = quoted(text).into_iter();
    let found = spans.find(|(before, _, after)| {
        let before = before.trim_end().to_lowercase();
        let after = after.trim_start().to_lowercase();
        BEFORE_OLD.iter().any(|cue| before.ends_with(cue))
            || BEHIND_OLD.iter().any(|cue| after.starts_with(cue))
    });
    let (_, value, _) = found?;
    Some(Features::of(value).folded).filter(|folded| !folded.is_empty())
}

/// Quoted spans, each with the text before and behind it.
fn quoted(text: &str) -> Vec<(&str, &str, &str)> {
    const MARKS: [(char, char); 7] = [
        ('`', '`'),
        ('"', '"'),
        ('“', '”'),
        ('„', '“'),
        ('«', '»'),
        ('「', '」'),
        ('\'', '\''),
    ];
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].chars().next() {
        let start = at + open.len_utf8();
        let before = &text[..at];
        let in_word = before.ends_with(char::is_alphanumeric) && open == '\'';
        let close = MARKS.iter().find(|(mark, _)| *mark == open && !in_word);
        let end = close.and_then(|(_, close)| Some((text[start..].find(*close)?, *close)));
        at = start;
        if let Some((length, close)) = end {
            let end = start + length;
            at = end + close.len_utf8();
            spans.push((before, &text[start..end], &text[at..]));
        }
    }
    spans
}

/// What stands before the old value.
const BEFORE_OLD: &[&str] = &[
    "instead of",
    "rather than",
    "in place of",
    "not",
    "no longer",
    "statt",
    "anstatt",
    "anstelle von",
    "nicht",
    "nicht mehr",
    "en lugar de",
    "en vez de",
    "au lieu de",
    "pas",
    "em vez de",
    "ao invés de",
    "invece di",
    "al posto di",
    "вместо",
    "а не",
    "而不是",
    "不是",
];

/// What stands behind it.
const BEHIND_OLD: &[&str] = &[
    "→",
    "->",
    "=>",
    "ではなく",
    "じゃなくて",
    "の代わりに",
    "대신",
    "이 아니라",
    "가 아니라",
];

/// The tokens of an entry or note that say what it is about.
pub(super) fn content(features: &Features) -> Vec<u64> {
    let mut tokens = features.tokens.clone();
    tokens.retain(|token| FILLER_TOKENS.binary_search(token).is_err());
    if tokens.is_empty() {
        return features.tokens.clone();
    }
    tokens
}

/// `text` without the phrases of scripts that write no spaces by which a
/// note asks for something.
pub(super) fn without_asking(text: &str) -> String {
    let mut text = text.to_owned();
    for phrase in FILLER_PHRASES {
        if text.contains(phrase) {
            text = text.replace(phrase, " ");
        }
    }
    text
}

static FILLER_TOKENS: LazyLock<Vec<u64>> = LazyLock::new(|| Features::of(FILLER_WORDS).tokens);

/// Words that ask, or join, and name nothing.
const FILLER_WORDS: &str = "\
    forget remember correct correction please about that this these those everything anything all what we i you the a an and or \
    is are was were be been to of for in on at it its not no longer any more know knew said say memory note user now from with by as do does don t s \
    vergiss vergessen merke korrektur bitte alles über dass das der die den dem des ein eine einen und oder ist sind war waren nicht mehr \
    zu von für im in auf am mit wir ich du was jetzt \
    olvida olvidar recuerda corrección por favor todo sobre que el la los las un una y o es son era no más de para en con ahora \
    oublie oublier rappelle correction s il te plaît vous tout sur que le la les un une et ou est sont était ne pas plus de du des pour dans avec maintenant \
    esqueça esquecer lembre correção tudo sobre que o a os as um uma e ou é são era não mais de do da para em com agora \
    dimentica ricorda correzione tutto su che il lo la gli le un una e o è sono era non più di del della per con ora \
    забудь запомни исправление пожалуйста всё все про о об что это и или не больше на в с для теперь";

const FILLER_PHRASES: &[&str] = &[
    "请忘记",
    "請忘記",
    "请忘掉",
    "忘掉",
    "忘记",
    "忘記",
    "忘了",
    "请记住",
    "記住",
    "记住",
    "更正",
    "纠正",
    "糾正",
    "关于",
    "關於",
    "的一切",
    "一切",
    "所有",
    "的事情",
    "的事",
    "不再适用",
    "不再適用",
    "不再有效",
    "について",
    "のことは",
    "のこと",
    "忘れてください",
    "忘れて",
    "覚えておいて",
    "覚えて",
    "ください",
    "訂正",
    "すべて",
    "全て",
    "してください",
    "잊어 주세요",
    "잊어줘",
    "기억해",
    "에 대한",
    "모든 것",
];
