//! Characters across read boundaries, lines of any length, sessions of any
//! size.

use std::io::Read;

use proptest::prelude::{ProptestConfig, any, prop, proptest};
use proptest::prop_assert_eq;

use super::{META, message};
use crate::domain::session::{Agent, ReadReport};
use crate::sessions::codex::{ParentKeys, Reader};
use crate::sessions::elide::Elider;
use crate::sessions::lines::{LINE_KEPT_BYTES_MAX, LINE_WHOLE_BYTES_MAX, LineReader};
use crate::sessions::{budget, records};

/// Gives out its bytes in pieces of odd sizes.
struct Pieces<'a> {
    bytes: &'a [u8],
    piece: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        let count = self.piece.min(room.len()).min(self.bytes.len());
        room[..count].copy_from_slice(&self.bytes[..count]);
        self.bytes = &self.bytes[count..];
        Ok(count)
    }
}

/// The texts that a rollout of `bytes` gives, and the report.
fn read_pieces(source: impl Read) -> (Vec<String>, ReadReport) {
    let parent = ParentKeys::default();
    let mut reader = Reader::new(std::path::Path::new("rollout-x.jsonl"), &parent, false);
    let mut report = ReadReport::default();
    records::walk(source, &mut reader, &mut report).unwrap();
    let items = reader.finish().items.into_iter();
    let texts = items.map(|item| item.text.unredacted().to_owned());
    (texts.collect(), report)
}

#[test]
fn characters_survive_every_read_boundary() {
    for power in 10..=20 {
        for wide in ["漢", "😀"] {
            // Large powers: in the middle of the character is enough.
            let shifts = if power <= 16 { 0..wide.len() } else { 2..3 };
            for shift in shifts {
                let head = format!("{META}\n").len() + message(1, "").find("\"}]").unwrap();
                let padding = (1_usize << power).saturating_sub(head + shift);
                let text = format!("{}{wide}{wide}", "x".repeat(padding));
                let rollout = format!("{META}\n{}\n", message(1, &text));
                let source = Pieces {
                    bytes: rollout.as_bytes(),
                    piece: 1 << power,
                };
                let (texts, report) = read_pieces(source);
                let expected = budget::cut_middle(text, budget::ITEM_TEXT_BYTES_MAX);
                assert!(texts == [expected], "2^{power} {wide} {shift}");
                assert!(report.warnings.is_empty());
            }
        }
    }
}

#[test]
fn a_line_of_43_mb_is_kept_to_its_ends() {
    let image = "A".repeat(43 * 1024 * 1024);
    let line = format!(
        r#"{{"timestamp":"2026-05-04T23:50:01.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_image","image_url":"data:image/png;base64,{image}"}},{{"type":"input_text","text":"what is this?"}}]}}}}"#
    );
    let rollout = format!("{META}\n{line}\n{}\n", message(2, "and this?"));
    let (texts, report) = read_pieces(rollout.as_bytes());
    assert_eq!(texts, ["what is this?", "and this?"]);
    assert_eq!(
        (report.records, report.damaged, report.warnings.len()),
        (3, 0, 1)
    );
    let what = format!("a line of {} bytes was shortened", line.len());
    assert_eq!(report.warnings[0].what, what);
    assert_eq!(report.warnings[0].line_number, 2);
}

#[test]
fn long_words_keep_beginning_and_end() {
    let text = format!("BEGIN {} END", "漢字 ".repeat(2_000_000));
    let rollout = format!("{META}\n{}\n", message(1, &text));
    let (texts, _) = read_pieces(rollout.as_bytes());
    assert!(texts[0].starts_with("BEGIN 漢字") && texts[0].ends_with("漢字  END"));
    assert!(texts[0].len() < budget::ITEM_TEXT_BYTES_MAX + 100);
    assert!(!texts[0].contains('\u{FFFD}'));
}

#[test]
fn a_line_without_strings_to_shorten_is_given_up() {
    let numbers = "1,".repeat(LINE_KEPT_BYTES_MAX);
    let rollout = format!("{META}\n[{numbers}1]\n{}\n", message(1, "one"));
    let (texts, report) = read_pieces(rollout.as_bytes());
    assert_eq!(texts, ["one"]);
    assert_eq!((report.records, report.damaged), (3, 1));
}

#[test]
fn a_session_over_its_budget_gives_up_tool_texts_first() {
    let call = |number: u32| {
        let output = "o".repeat(60_000);
        format!(
            r#"{{"timestamp":"2026-05-04T23:50:02.000Z","type":"response_item","payload":{{"type":"function_call_output","call_id":"c{number}","output":"{output}"}}}}"#
        )
    };
    let mut rollout = format!("{META}\n{}\n", message(1, "keep this"));
    for number in 0..1_000 {
        rollout.push_str(&call(number));
        rollout.push('\n');
    }
    let (texts, _) = read_pieces(rollout.as_bytes());
    assert_eq!(texts[0], "keep this");
    let total: usize = texts.iter().map(String::len).sum();
    assert!(total <= budget::SESSION_TEXT_BYTES_MAX, "{total}");
    assert_eq!(texts.len(), 1_001, "shortening was enough");
}

#[test]
fn very_many_items_are_thinned_out_from_the_oldest_tools() {
    let mut rollout = format!("{META}\n{}\n", message(1, "keep this"));
    for _ in 0..budget::SESSION_ITEMS_MAX + 10 {
        rollout.push_str(r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"x"}}"#);
        rollout.push('\n');
    }
    let (texts, _) = read_pieces(rollout.as_bytes());
    assert_eq!(texts[0], "keep this");
    assert!(texts.len() <= budget::SESSION_ITEMS_MAX);
}

/// JSON strings with every kind of unit in them.
fn json_text() -> impl prop::strategy::Strategy<Value = String> {
    let units = prop::sample::select(vec![
        "a",
        "é",
        "漢",
        "😀",
        "\\n",
        "\\\"",
        "\\\\",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\\ud83d",
    ]);
    prop::strategy::Strategy::prop_map(prop::collection::vec(units, 0..600), |units| units.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn shortened_json_is_still_json(
        texts in prop::collection::vec(json_text(), 1..6),
        piece in 1_usize..97,
        room in 0_usize..4_000,
    ) {
        let line = format!("{{\"a\":[\"{}\"]}}", texts.join("\",\""));
        let mut elider = Elider::new(64 * 1024 + 200 + room);
        elider.begin();
        for piece in line.as_bytes().chunks(piece) {
            elider.push(piece);
        }
        let kept = elider.finish();
        prop_assert_eq!(kept.bytes_seen, line.len() as u64);
        prop_assert_eq!(kept.is_lost, false);
        let kept = std::str::from_utf8(kept.bytes).unwrap();
        let value: serde_json::Value = serde_json::from_str(&records::mended(kept)).unwrap();
        prop_assert_eq!(value["a"].as_array().unwrap().len(), texts.len());
        let whole: serde_json::Value = serde_json::from_str(&records::mended(&line)).unwrap();
        for (kept, whole) in value["a"].as_array().unwrap().iter().zip(whole["a"].as_array().unwrap()) {
            let (kept, whole) = (kept.as_str().unwrap(), whole.as_str().unwrap());
            if let Some((head, tail)) = kept.split_once("[... ") {
                prop_assert_eq!(whole.starts_with(head), true);
                let tail = tail.split_once("left out ...]").unwrap().1;
                prop_assert_eq!(whole.ends_with(tail), true);
            } else {
                prop_assert_eq!(kept, whole);
            }
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        cut in 0_usize..400,
        piece in 1_usize..50,
    ) {
        let rollout = format!("{META}\n{}\n", message(1, "one"));
        let cut = cut.min(rollout.len());
        let mixed = [&rollout.as_bytes()[..cut], &bytes, &rollout.as_bytes()[cut..]].concat();
        let (_, report) = read_pieces(Pieces { bytes: &mixed, piece });
        let ignored: u64 = report.ignored.values().sum();
        prop_assert_eq!(report.records, report.read + ignored + report.damaged);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        super::put(&path, &mixed);
        let found = crate::sessions::Found::at(Agent::Claude, &path, None).unwrap();
        crate::sessions::read(&found).ok();
    }

    #[test]
    fn lines_come_out_as_they_went_in(
        lines in prop::collection::vec("[a-z漢 ]{0,30}", 0..20),
        piece in 1_usize..20,
        is_ended in any::<bool>(),
    ) {
        let mut text = lines.join("\n");
        if is_ended {
            text.push('\n');
        }
        let mut reader = LineReader::new(Pieces { bytes: text.as_bytes(), piece });
        let mut read = Vec::new();
        while let Some(line) = reader.next().unwrap() {
            prop_assert_eq!(line.number, read.len() as u64 + 1);
            read.push(String::from_utf8(line.bytes.to_vec()).unwrap());
        }
        let expected: Vec<&str> = text.split_terminator('\n').collect();
        prop_assert_eq!(read, expected);
        prop_assert_eq!(LINE_WHOLE_BYTES_MAX > 0, true);
    }
}
