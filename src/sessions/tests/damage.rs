//! Each row of the damage table, with bytes made on the spot.

use super::{META, message, put, read_codex, texts};
use crate::domain::session::ReadReport;

/// Six records: the meta and five messages.
fn six() -> Vec<String> {
    let words = ["one", "two", "three", "four", "five"];
    let messages = (1..).zip(words).map(|(second, word)| message(second, word));
    std::iter::once(META.to_owned()).chain(messages).collect()
}

/// Reads `bytes`; the texts must be `expected`, joined by spaces.
#[track_caller]
fn check(bytes: &[u8], expected: &str) -> ReadReport {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout-x.jsonl");
    put(&path, bytes);
    let session = read_codex(&path);
    assert_eq!(texts(&session).join(" "), expected);
    let report = session.report;
    let ignored: u64 = report.ignored.values().sum();
    assert_eq!(report.records, report.read + ignored + report.damaged);
    assert_eq!(
        std::fs::read(&path).unwrap(),
        bytes,
        "the source is never changed"
    );
    report
}

#[test]
fn a_line_of_nuls_loses_nothing_around_it() {
    let lines = six();
    let nuls = "\0".repeat(300);
    let text = format!(
        "{}\n{nuls}\n{}\n",
        lines[..3].join("\n"),
        lines[3..].join("\n")
    );
    let report = check(text.as_bytes(), "one two three four five");
    assert_eq!(report.warnings.len(), 1);
    assert_eq!(report.warnings[0].line_number, 4);
    assert_eq!((report.records, report.damaged), (6, 0));
}

#[test]
fn a_tail_of_nuls_is_no_damage() {
    let text = format!("{}\n{}", six().join("\n"), "\0".repeat(284));
    let report = check(text.as_bytes(), "one two three four five");
    assert_eq!(
        (report.records, report.damaged, report.warnings.len()),
        (6, 0, 1)
    );
    assert!(!report.unfinished_line);
}

#[test]
fn glued_records_are_both_read_even_with_braces_inside() {
    let lines = six();
    let glued = format!("{}{}", message(8, "a } b { c"), message(9, "}{"));
    let text = format!("{}\n{glued}\n{}", lines[0], lines[1]);
    let report = check(text.as_bytes(), "a } b { c }{ one");
    assert_eq!(
        (report.records, report.glued_lines, report.warnings.len()),
        (4, 1, 1)
    );
}

#[test]
fn a_growing_file_never_loses_nor_repeats_a_record() {
    let whole = format!("{}\n", six().join("\n"));
    let words = ["one", "two", "three", "four", "five"];
    let second_start = whole.find('\n').unwrap() + 1;
    // Cut at every byte behind the meta.
    for cut in second_start..=whole.len() {
        let lines = whole[..cut].matches('\n').count();
        let is_at_record_end = whole[..cut].ends_with('}') && whole[cut..].starts_with('\n');
        let complete = lines - 1 + usize::from(is_at_record_end);
        let report = check(&whole.as_bytes()[..cut], &words[..complete].join(" "));
        let is_between = whole[..cut].ends_with('\n') || is_at_record_end;
        assert_eq!(report.unfinished_line, !is_between, "{cut}");
        assert_eq!(report.damaged, 0, "{cut}");
    }
}

#[test]
fn marks_and_line_ends_of_other_systems_are_read_as_if_absent() {
    let lines = six();
    let expected = "one two three four five";
    check(format!("\u{FEFF}{}", lines.join("\n")).as_bytes(), expected);
    check(lines.join("\r\n").as_bytes(), expected);
    let report = check(lines.join("\n\n \n").as_bytes(), expected);
    assert_eq!((report.blank_lines, report.warnings.len()), (10, 0));
}

#[test]
fn unicode_separators_do_not_end_a_line() {
    let text = "a\u{2028}b\u{2029}c\u{85}d";
    let report = check(format!("{META}\n{}", message(1, text)).as_bytes(), text);
    assert_eq!(report.records, 2);
}

#[test]
fn bytes_that_are_not_text_cost_one_character_each() {
    let mut bytes = format!("{META}\n{}", message(1, "caf#")).into_bytes();
    let at = bytes.iter().rposition(|byte| *byte == b'#').unwrap();
    bytes[at] = 0xE9;
    let report = check(&bytes, "caf\u{FFFD}");
    assert_eq!(report.warnings.len(), 1);
}

#[test]
fn lone_halves_of_pairs_are_replaced_and_whole_pairs_kept() {
    for (written, read) in [
        (r"\ud83d", "\u{FFFD}"),
        (r"\ude00", "\u{FFFD}"),
        (r"\ud83d\ud83d\ude00", "\u{FFFD}😀"),
        (r"\ud83dx \\ud83d", r"�x \ud83d"),
        (r"\u00e9", "é"),
    ] {
        check(format!("{META}\n{}", message(1, written)).as_bytes(), read);
    }
}

#[test]
fn other_values_than_objects_are_ignored_and_counted() {
    let text = format!("{META}\n42\n[1,2]\n\"x\"\nnull\n{}", message(1, "one"));
    let report = check(text.as_bytes(), "one");
    assert_eq!(report.ignored["not an object"], 4);
}

#[test]
fn damage_is_listed_up_to_a_limit_and_counted_beyond() {
    let text = format!("{META}\n{}", "{broken\n".repeat(1_000));
    let report = check(text.as_bytes(), "");
    assert_eq!((report.damaged, report.damage.len()), (1_000, 20));
    assert_eq!(report.damage[0].line_number, 2);
}

#[test]
fn each_item_keeps_its_own_instant_across_midnight() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout-2026-05-04T16-50-00-x.jsonl");
    let late = message(1, "before");
    let early = late.replace("2026-05-04T23:50:01.000Z", "2026-05-05T02:10:00.000+02:00");
    put(&path, format!("{META}\n{late}\n{early}\n").as_bytes());
    let session = read_codex(&path);
    let times: Vec<String> = session
        .items
        .iter()
        .map(|item| item.at.unwrap().to_string())
        .collect();
    assert_eq!(
        times,
        ["2026-05-04T23:50:01+00:00", "2026-05-05T00:10:00+00:00"]
    );
    assert_eq!(session.head.updated_at.to_string(), times[1]);
}
