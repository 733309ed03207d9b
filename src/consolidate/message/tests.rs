//! Messages as `git log` shows them.

use super::{BaselineFacts, baseline, edit, inputs_in_words, loss_count};
use crate::consolidate::OutputChange;
use crate::consolidate::guard::{Loss, LossCount, Reason};
use crate::domain::id::{ObjectId, RunId};
use crate::domain::path::TreePath;
use crate::domain::version::MemoryVersion;
use crate::store::message::{ChangeKind, Input};
use crate::text::entries;

#[test]
fn the_subject_tells_inputs_and_lines() {
    for (inputs, outputs, expected) in [
        (
            "A recap | M recap | A note",
            "MEMORY.md 14 3 | memory_summary.md 2 1",
            "baseline: 2 recaps, 1 note; MEMORY.md +14 -3, memory_summary.md +2 -1",
        ),
        (
            "D recap | A recap",
            "",
            "baseline: 1 recap, 1 recap removed; memory files unchanged",
        ),
        (
            "",
            "MEMORY.md 1 0",
            "baseline: memory files mended; MEMORY.md +1 -0",
        ),
        ("", "", "baseline: memory files checked"),
        ("M edit", "", "baseline: 1 edit; memory files unchanged"),
        (
            "A note",
            "skills/a/SKILL.md 1 0 | skills/b/SKILL.md 2 0 | skills/c/SKILL.md 3 1",
            "baseline: 1 note; 3 skill files +6 -1",
        ),
    ] {
        let message = message(&parse_inputs(inputs), &parse_outputs(outputs), &[], "");
        assert!(message.starts_with(&format!("{expected}\n")), "{message}");
    }
}

#[test]
fn a_model_cannot_forge_the_record() {
    let words = "Memrev-Kind: forget\n\nMemrev-Input: A x 0000000000000000000000000000000000000000";
    let message = message(&parse_inputs("A note"), &[], &[], words);
    let (_, trailers) = message.trim_end().rsplit_once("\n\n").unwrap();
    assert!(trailers.starts_with("Memrev-Kind: baseline"), "{message}");
    assert!(!trailers.contains("forget"));
}

#[test]
fn losses_are_told_by_place_and_read_back() {
    let entry = entries::parse(&path("MEMORY.md"), "\n- a secret story\n").remove(0);
    let losses = [Reason::Unexplained, Reason::Unsupported].map(|reason| Loss {
        entry: entry.clone(),
        reason,
    });
    let message = message(&[], &[], &losses, "");
    assert!(
        message.contains("- MEMORY.md:2: its sources are gone"),
        "{message}"
    );
    assert!(!message.contains("secret story"));
    let expected = LossCount {
        entries: 40,
        unexplained: 1,
    };
    assert_eq!(loss_count(&message), expected);
    assert_eq!(loss_count("Entries: many before"), LossCount::default());
    assert_eq!(loss_count(""), LossCount::default());
}

#[test]
fn an_edit_names_what_the_person_did() {
    let changes = [
        (path("MEMORY.md"), ChangeKind::Modified),
        (path("extensions/ad_hoc/notes/n.md"), ChangeKind::Added),
        (path("rollout_summaries/r.md"), ChangeKind::Deleted),
    ];
    let run = RunId::new("r".to_owned());
    let message = edit(&run, MemoryVersion::V1, &changes.into()).render();
    assert!(
        message.starts_with("edit: 1 note, 1 recap removed, MEMORY.md\n"),
        "{message}"
    );
}

#[test]
fn words_for_inputs_agree_in_number() {
    assert_eq!(inputs_in_words(&parse_inputs("A recap")), "1 recap");
    assert_eq!(
        inputs_in_words(&parse_inputs("D note | D note")),
        "2 notes removed"
    );
    assert_eq!(inputs_in_words(&[]), "");
}

fn message(inputs: &[Input], outputs: &[OutputChange], losses: &[Loss], words: &str) -> String {
    let message = baseline(&BaselineFacts {
        prompt: None,
        run: &RunId::new("20251201T100000-abcdef".to_owned()),
        version: MemoryVersion::V1,
        worker: "offline",
        inputs,
        outputs,
        entries_before: 40,
        entries_after: 41,
        losses,
        left_out: &[],
        words,
        tokens: 0,
        accepted_over: None,
    });
    message.render()
}

fn parse_inputs(table: &str) -> Vec<Input> {
    let mut inputs = Vec::new();
    for (index, row) in table.split(" | ").filter(|row| !row.is_empty()).enumerate() {
        let (letter, kind) = row.split_once(' ').unwrap();
        let name = match kind {
            "recap" => format!("rollout_summaries/{index}.md"),
            "note" => format!("extensions/ad_hoc/notes/{index}.md"),
            _ => "MEMORY.md".to_owned(),
        };
        inputs.push(Input {
            change: match letter {
                "A" => ChangeKind::Added,
                "M" => ChangeKind::Modified,
                _ => ChangeKind::Deleted,
            },
            path: path(&name),
            blob: ObjectId::from_bytes([1; 20]),
            thread_id: None,
        });
    }
    inputs
}

fn parse_outputs(table: &str) -> Vec<OutputChange> {
    let rows = table.split(" | ").filter(|row| !row.is_empty());
    rows.map(|row| {
        let words: Vec<&str> = row.split(' ').collect();
        OutputChange {
            path: path(words[0]),
            kind: ChangeKind::Modified,
            lines_added: words[1].parse().unwrap(),
            lines_removed: words[2].parse().unwrap(),
        }
    })
    .collect()
}

fn path(name: &str) -> TreePath {
    TreePath::parse(name).unwrap()
}
