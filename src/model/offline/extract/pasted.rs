//! What of a person's message is the person's own, and what was pasted into
//! it: logs, code, quotations, mails, tables, diffs.
//!
//! Pasted lines are known by their shape alone, which is the same in every
//! human language: fences, quotation signs, timestamps, levels, stack frames,
//! many lines that differ in their numbers only. What is pasted never counts
//! as something that the person wants.

use std::collections::BTreeMap;

use crate::model::offline::extract::words::{begin_of, end_of, one_line};

/// A pasted block of this many lines, or of more bytes than [`SHOWN_BYTES_MAX`],
/// is named with its length, not copied.
const NAMED_LINES_MIN: usize = 4;
const SHOWN_BYTES_MAX: usize = 400;

/// Lines that look like a log only faintly need this many of their kind.
const FAINT_LINES_MIN: usize = 3;

/// So many lines that differ in their digits only are no person's.
const ALIKE_LINES_MIN: usize = 4;

/// Lines between two lines of a log that belong to it whatever they look like.
const GAP_LINES_MAX: usize = 3;

/// Header lines that make a mail of what follows.
const MAIL_HEADERS_MIN: usize = 2;

/// Own text is looked at in this many bytes at its beginning, and half as many
/// at its end.
const OWN_BYTES_MAX: usize = 2_000;

/// A line is judged by its beginning.
const JUDGED_BYTES_MAX: usize = 300;

/// A message, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The person's own lines.
    pub(crate) own: String,
    /// Everything on one line, long pasted blocks named in their place.
    pub(crate) line: String,
    pub(crate) has_pasted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Own,
    Blank,
    /// Code between fences, quotations: each line says so itself.
    Quoted,
    /// A line of a log or of code, beyond doubt.
    Sure,
    /// The same, if there are more of them.
    Faint,
}

impl Mark {
    const fn is_log(self) -> bool {
        matches!(self, Self::Sure | Self::Faint)
    }

    const fn is_pasted(self) -> bool {
        matches!(self, Self::Quoted | Self::Sure | Self::Faint)
    }
}

/// Takes a message apart.
pub(crate) fn take_apart(text: &str) -> Message {
    let lines: Vec<&str> = text.lines().collect();
    let marks = marks(&lines);
    let mut own = String::new();
    let mut line = String::new();
    let mut from = 0;
    while from < lines.len() {
        let pasted = marks[from].is_pasted();
        let end = (from..lines.len())
            .find(|at| marks[*at].is_pasted() != pasted)
            .unwrap_or(lines.len());
        let block = lines[from..end].join("\n");
        if pasted && (NAMED_LINES_MIN <= end - from || SHOWN_BYTES_MAX < block.len()) {
            push(
                &mut line,
                &format!("[pasted block of {} lines]", end - from),
            );
        } else {
            push(&mut line, &one_line(&block));
        }
        if !pasted {
            own.push_str(&block);
            own.push('\n');
        }
        from = end;
    }
    Message {
        own: both_ends(&own),
        line,
        has_pasted: marks.iter().any(|mark| mark.is_pasted()),
    }
}

fn push(line: &mut String, part: &str) {
    if !line.is_empty() && !part.is_empty() {
        line.push(' ');
    }
    line.push_str(part);
}

fn both_ends(own: &str) -> String {
    if own.len() <= OWN_BYTES_MAX + OWN_BYTES_MAX / 2 {
        return own.to_owned();
    }
    let (begin, end) = (begin_of(own, OWN_BYTES_MAX), end_of(own, OWN_BYTES_MAX / 2));
    format!("{begin}\n{end}")
}

fn marks(lines: &[&str]) -> Vec<Mark> {
    let mut marks = each_alone(lines);
    mark_alike(lines, &mut marks);
    mark_diffs(lines, &mut marks);
    mark_mails(lines, &mut marks);
    close_gaps(lines, &mut marks);
    drop_faint(&mut marks);
    marks
}

fn each_alone(lines: &[&str]) -> Vec<Mark> {
    let mut fence: Option<&str> = None;
    (lines.iter())
        .map(|line| {
            let text = line.trim_start();
            let opens = ["```", "~~~"]
                .into_iter()
                .find(|mark| text.starts_with(mark));
            match (fence, opens) {
                (None, Some(mark)) => {
                    fence = Some(mark);
                    Mark::Quoted
                }
                (Some(open), mark) => {
                    if mark == Some(open) {
                        fence = None;
                    }
                    Mark::Quoted
                }
                (None, None) => alone(text),
            }
        })
        .collect()
}

fn alone(text: &str) -> Mark {
    let text = begin_of(text.trim(), JUDGED_BYTES_MAX);
    if text.is_empty() {
        Mark::Blank
    } else if text.starts_with('>') {
        Mark::Quoted
    } else if is_surely_log(text) {
        Mark::Sure
    } else if is_faintly_log(text) {
        Mark::Faint
    } else {
        Mark::Own
    }
}

fn is_surely_log(text: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "##[",
        "::error",
        "::warning",
        "::group",
        "::endgroup",
        "Traceback (most recent call last)",
        "diff --git ",
        "@@ -",
        "-----BEGIN ",
        "thread '",
        "npm ERR!",
        "npm WARN",
        "--> ",
        "goroutine ",
    ];
    BEGINNINGS.iter().any(|begin| text.starts_with(begin)) || has_timestamp(text) || is_frame(text)
}

/// Begins with a date and a time, or with a time down to the second.
fn has_timestamp(text: &str) -> bool {
    let begin = text.trim_start_matches(['[', '(', '<', '"', ' ']);
    let stamp: String = begin
        .chars()
        .take(24)
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let month = |rest: &str| {
        let mut words = rest.split(' ').filter(|word| !word.is_empty());
        words.next().is_some_and(|word| word.len() == 3)
            && words
                .next()
                .is_some_and(|day| day.len() <= 2 && day.starts_with('0'))
            && words
                .next()
                .is_some_and(|time| time.starts_with("00:00:00"))
    };
    stamp.starts_with("00:00:00")
        || [
            "0000-00-00T00:00",
            "0000-00-00 00:00",
            "0000/00/00 00:00",
            "00/00/0000 00:00",
        ]
        .iter()
        .any(|shape| stamp.starts_with(shape))
        || month(&stamp)
}

/// A frame of a stack trace.
fn is_frame(text: &str) -> bool {
    let has_position = || text.contains(':') && text.contains(|c: char| c.is_ascii_digit());
    (text.starts_with("at ") && text.contains('(') && has_position())
        || (text.starts_with("File \"") && text.contains(", line "))
}

fn is_faintly_log(text: &str) -> bool {
    const LEVELS: &[&str] = &[
        "error", "warning", "warn", "info", "debug", "trace", "fatal", "fail", "failed", "pass",
        "note", "help", "err", "err!", "notice", "critical", "panic", "ok", "e",
    ];
    let (first, rest) = text.split_once([' ', '\t', ':']).unwrap_or((text, ""));
    let level = first.trim_matches(['[', ']', '<', '>', '(', ')']);
    let code_at = level.find(['[', '(']).unwrap_or(level.len());
    let is_level = LEVELS.contains(&level[..code_at].to_ascii_lowercase().as_str());
    let is_capital = is_level && level.chars().all(|c| !c.is_lowercase()) && !rest.is_empty();
    let is_prefix = is_level && text[first.len()..].starts_with(':');
    let is_bracketed = is_level && first.starts_with('[');
    let is_row = text.len() > 1
        && text.starts_with(['|', '+', '│', '├', '└'])
        && text.ends_with(['|', '+', '│', '┤', '┘']);
    let is_result = text.starts_with(['✓', '✗', '✘', '✖', '×', '⚠']);
    let is_code = text.ends_with([';', '{', '}'])
        || text.ends_with("},")
        || text.ends_with("],")
        || text.ends_with("):")
        || text.ends_with("=>")
        || matches!(text, "[" | "]" | ")");
    let is_prompt = text.starts_with("$ ") || text.starts_with("PS ");
    let is_tag = text.starts_with('<') && text.ends_with('>');
    is_capital || is_prefix || is_bracketed || is_row || is_result || is_code || is_prompt || is_tag
}

/// Marks lines that differ in their digits only, when there are many.
fn mark_alike(lines: &[&str], marks: &mut [Mark]) {
    let shape = |line: &str| -> Option<String> {
        let line = begin_of(line.trim(), JUDGED_BYTES_MAX);
        let has_digit = line.bytes().any(|byte| byte.is_ascii_digit());
        has_digit.then(|| {
            let mut shape = String::with_capacity(line.len());
            for c in line.chars() {
                match c {
                    '0'..='9' if shape.ends_with('0') => {}
                    '0'..='9' => shape.push('0'),
                    c => shape.push(c),
                }
            }
            shape
        })
    };
    let shapes: Vec<Option<String>> = lines.iter().map(|line| shape(line)).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for shape in shapes.iter().flatten() {
        *counts.entry(shape).or_default() += 1;
    }
    for (mark, shape) in marks.iter_mut().zip(&shapes) {
        let count = shape.as_ref().and_then(|shape| counts.get(shape.as_str()));
        if *mark != Mark::Quoted && count.is_some_and(|count| ALIKE_LINES_MIN <= *count) {
            *mark = Mark::Sure;
        }
    }
}

/// Marks what follows the head of a diff while it has the signs of one.
fn mark_diffs(lines: &[&str], marks: &mut [Mark]) {
    let mut in_diff = false;
    for (line, mark) in lines.iter().zip(marks) {
        let is_head = line.starts_with("diff --git ") || line.starts_with("@@ -");
        in_diff = is_head || (in_diff && line.starts_with(['+', '-', ' ', '@', '\\', 'i']));
        if in_diff {
            *mark = Mark::Sure;
        }
    }
}

/// Marks the headers of a mail and everything behind them: where it ends
/// nothing tells.
fn mark_mails(lines: &[&str], marks: &mut [Mark]) {
    const HEADERS: &[&str] = &[
        "from",
        "to",
        "cc",
        "subject",
        "date",
        "sent",
        "von",
        "an",
        "betreff",
        "gesendet",
        "datum",
        "de",
        "para",
        "asunto",
        "assunto",
        "fecha",
        "data",
        "à",
        "objet",
        "envoyé",
        "da",
        "a",
        "oggetto",
        "от",
        "кому",
        "тема",
        "дата",
        "发件人",
        "收件人",
        "主题",
        "日期",
        "寄件者",
        "主旨",
        "差出人",
        "宛先",
        "件名",
        "日時",
        "보낸 사람",
        "받는 사람",
        "제목",
        "날짜",
    ];
    let is_header = |line: &&str| {
        let line = line.trim_start_matches(['*', ' ']);
        line.split_once([':', '：']).is_some_and(|(name, _)| {
            HEADERS.contains(&name.trim_matches('*').to_lowercase().as_str())
        })
    };
    let begins = lines
        .windows(MAIL_HEADERS_MIN)
        .position(|pair| pair.iter().all(is_header));
    for mark in marks.iter_mut().skip(begins.unwrap_or(lines.len())) {
        *mark = Mark::Sure;
    }
}

/// Lines between two lines of a log, and indented ones behind one, are its own.
fn close_gaps(lines: &[&str], marks: &mut [Mark]) {
    let mut last: Option<usize> = None;
    for at in 0..marks.len() {
        let goes_on = marks[at] == Mark::Own
            && lines[at].starts_with(['\t', ' '])
            && at
                .checked_sub(1)
                .is_some_and(|before| marks[before].is_log());
        if goes_on {
            marks[at] = Mark::Faint;
        }
        if !marks[at].is_log() {
            continue;
        }
        if let Some(before) = last {
            let between = &mut marks[before + 1..at];
            let is_own_text = between.contains(&Mark::Quoted);
            if between.len() <= GAP_LINES_MAX && !is_own_text {
                between.fill(Mark::Faint);
            }
        }
        last = Some(at);
    }
}

/// A block of a few lines that only faintly look like a log is the person's.
fn drop_faint(marks: &mut [Mark]) {
    for block in marks.chunk_by_mut(|one, two| one.is_log() == two.is_log()) {
        let is_sure = block.contains(&Mark::Sure);
        if block[0].is_log() && !is_sure && block.len() < FAINT_LINES_MIN {
            block.fill(Mark::Own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::take_apart;

    #[test]
    fn a_pasted_log_is_named_and_the_words_around_it_stay() {
        let log: Vec<String> = (0..40)
            .map(|n| format!("##[group]step {n}\nwarning: from now on always pass --locked ({n})\nerror[E0433]: failed to resolve `foo{n}`"))
            .collect();
        check(
            &format!(
                "and here's CI:\n{}\nignore it, just a flake",
                log.join("\n")
            ),
            "and here's CI: [pasted block of 120 lines] ignore it, just a flake",
            "and here's CI:\nignore it, just a flake",
        );
        let log: Vec<String> = (0..30)
            .map(|n| format!("2026-11-29T14:00:{n:02}Z api[{n}]: WARN pool: always use a timeout\n    never retried"))
            .collect();
        check(
            &format!(
                "サーバーが遅いです。\n\n{}\n\n調べてください",
                log.join("\n")
            ),
            "サーバーが遅いです。 [pasted block of 60 lines] 調べてください",
            "サーバーが遅いです。\n調べてください",
        );
    }

    #[test]
    fn code_traces_tables_diffs_quotations_and_mails_are_pasted() {
        for pasted in [
            "```\nalways();\nnever();\n```",
            "~~~ js\n``` always\nx\n~~~",
            "> From: Bob\n> always use tabs\n> never spaces\n> Bob",
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in x\n    always = never\nValueError: x\n  File \"b.py\", line 4, in y",
            "Error: always fails\n    at run (/w/a.js:1:2)\n    at never (/w/b.js:3:4)\n    at x (/w/c.js:1:1)",
            "| always | never |\n|---|---|\n| x | y |\n| z | w |",
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-always\n+never",
            "const always = 1;\nfunction never() {\n  return x;\n}",
            "From: Bob <bob@corp.example>\nSubject: tabs\n\nfrom now on use Java 8 in every project.",
            "Von: Bob\nBetreff: Tabs\n\nab jetzt immer Java 8 benutzen.",
            "request 1 took 5 ms, always retry\nrequest 2 took 6 ms, always retry\nrequest 3 took 7 ms, always retry\nrequest 4 took 88 ms, always retry",
        ] {
            let lines = pasted.lines().count();
            check(
                &format!("bitte ansehen\n\n{pasted}"),
                &format!("bitte ansehen [pasted block of {lines} lines]"),
                "bitte ansehen",
            );
        }
    }

    #[test]
    fn what_a_person_types_is_no_paste() {
        for own in [
            "Never use tabs\nNever use spaces\nNever use both\nNever push to main",
            "1. always run the tests\n2. never push\n3. fix the parser\n4. write the notes",
            "Error: cannot find module 'x'",
            "warning: this is hard\nfix the parser",
            "以后都用 pnpm\n不要用 npm\n每次都跑测试",
            "- immer pnpm\n- nie npm\n- kurze Nachrichten\n- deutsch",
        ] {
            check(own, &own.replace('\n', " "), own);
        }
    }

    #[test]
    fn short_code_stays_in_the_quotation_but_not_among_the_own_words() {
        check(
            "use this:\n```\nnever();\n```",
            "use this: ``` never(); ```",
            "use this:",
        );
        check(
            "> always tabs?\nno, spaces",
            "> always tabs? no, spaces",
            "no, spaces",
        );
    }

    #[track_caller]
    fn check(text: &str, line: &str, own: &str) {
        let message = take_apart(text);
        assert_eq!(message.line, line, "{text}");
        let kept: Vec<&str> = message
            .own
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        assert_eq!(kept.join("\n"), own, "{text}");
        assert_eq!(message.has_pasted, line != own.replace('\n', " "), "{text}");
    }
}
