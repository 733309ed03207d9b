//! Memory files that another worker wrote, and notes on them.

use super::{Carried, OrderInputs, carry_out};
use crate::domain::path::TreePath;
use crate::domain::version::MemoryVersion;
use crate::model::offline::consolidate::{Before, NoteInput, RemovedNote};
use crate::text::{entries, note};

const HANDBOOK: &str = "\
# Task Group: shop

scope: the till
applies_to: cwd=/w/shop; reuse_rule=only there

## Task 1: mend the refund sign, success

### rollout_summary_files

- rollout_summaries/2026-12-01T10-00-00-000a.md (thread_id=t-1)

### keywords

- refund, till

## Task 2: ask Grace for the ledger, partial

### rollout_summary_files

- rollout_summaries/2026-12-01T10-00-00-000b.md (thread_id=t-2)

### keywords

- ledger

## User preferences

- Write short commit messages [Task 1]

## Reusable knowledge

- The till listens on port 8080 [Task 1]
- Receipts are printed twice [Task 1][Task 2]
- The ledger is closed on Sundays [Task 2]
";

const SUMMARY: &str = "\
v1

## User Profile

Works on a shop.

## User preferences

- Write short commit messages

## General Tips

- The till listens on port 8080

## What's in Memory

### shop

#### 2026-12-01

- refund sign: till, thread_id=t-1
- Grace's ledger: sundays, thread_id=t-2
";

const SKILL: &str = "---\nname: close-till\ndescription: How to close the till in the evening\n---\n\n# Steps\n\n1. Count the cash\n2. Call Grace about the ledger\n";

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

fn name(number: usize) -> TreePath {
    path(&format!(
        "extensions/ad_hoc/notes/2026-12-0{number}T10-00-00-n.md"
    ))
}

/// What notes make of the files: new ones, and what others said before.
fn carry(version: MemoryVersion, notes: &[(&str, Option<&str>)], own: &[&str]) -> Carried {
    let parse = |number: usize, text: &str| note::parse(&name(number), text).unwrap();
    let (mut staged, mut removed) = (Vec::new(), Vec::new());
    for (index, (text, old)) in notes.iter().enumerate() {
        let old = old.map(|old| parse(index + 1, old));
        if text.is_empty() {
            removed.push(RemovedNote { note: old });
            continue;
        }
        let before = old.map_or(Before::Absent, |old| Before::Other(Some(old)));
        let note = parse(index + 1, text);
        staged.push(NoteInput { note, before });
    }
    let mut files = [
        (path("MEMORY.md"), HANDBOOK.to_owned()),
        (path("memory_summary.md"), SUMMARY.to_owned()),
        (path("skills/close-till/SKILL.md"), SKILL.to_owned()),
    ]
    .into_iter()
    .collect::<std::collections::BTreeMap<_, _>>();
    if version == MemoryVersion::V2 {
        files.retain(|path, _| path.as_str() == "memory_summary.md");
    }
    let all = files
        .iter()
        .flat_map(|(path, text)| entries::parse(path, text));
    let person_entries: Vec<_> = all
        .filter(|entry| own.contains(&entry.text.as_str()))
        .collect();
    carry_out(&OrderInputs {
        version,
        files,
        notes: &staged,
        removed: &removed,
        person_entries: &person_entries,
        withheld: &[],
        summary_bytes_max: 8_000,
        only_skills: false,
    })
}

/// Lines that came and went, by file.
fn changes(carried: &Carried) -> String {
    let mut told = Vec::new();
    for (file, old) in [
        ("MEMORY.md", HANDBOOK),
        ("memory_summary.md", SUMMARY),
        ("skills/close-till/SKILL.md", SKILL),
    ] {
        let new = carried.files.get(&path(file)).map_or("", String::as_str);
        let lost = old
            .lines()
            .filter(|line| !new.lines().any(|it| it == *line));
        told.extend(lost.map(|line| format!("{file} -{line}")));
        let come = new
            .lines()
            .filter(|line| !old.lines().any(|it| it == *line));
        told.extend(come.map(|line| format!("{file} +{line}")));
    }
    told.join("\n")
}

#[track_caller]
fn check(notes: &[(&str, Option<&str>)], expected: &str) {
    let carried = carry(MemoryVersion::V1, notes, &[]);
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(changes(&carried), expected.join("\n"), "{notes:?}");
    assert_eq!(carried.unmatched, []);
}

#[test]
fn a_remembered_line_comes_to_the_notes_and_the_summary() {
    check(
        &[("Always check the till twice", None)],
        "MEMORY.md +# Task Group: notes
         MEMORY.md +scope: what notes ask to remember
         MEMORY.md +applies_to: cwd=any; reuse_rule=holds until a note changes it
         MEMORY.md +- Always check the till twice (extensions/ad_hoc/notes/2026-12-01T10-00-00-n.md) [ad-hoc note]
         memory_summary.md +- Always check the till twice [ad-hoc note]",
    );
}

#[test]
fn a_line_that_stands_there_already_gets_the_mark() {
    check(
        &[("write short commit messages", None)],
        "MEMORY.md -- Write short commit messages [Task 1]
         MEMORY.md +- Write short commit messages [Task 1] [ad-hoc note]
         memory_summary.md -- Write short commit messages
         memory_summary.md +- Write short commit messages [ad-hoc note]",
    );
}

#[test]
fn a_correction_takes_the_place_of_the_line_that_fits() {
    check(
        &[("---\nkind: correct\n---\nThe till listens on port 9090", None)],
        "MEMORY.md -- The till listens on port 8080 [Task 1]
         MEMORY.md +- The till listens on port 9090 (extensions/ad_hoc/notes/2026-12-01T10-00-00-n.md) [Task 1] [ad-hoc note]
         memory_summary.md -- The till listens on port 8080
         memory_summary.md +- The till listens on port 9090 [ad-hoc note]",
    );
}

#[test]
fn what_is_forgotten_goes_everywhere_with_what_rests_on_it() {
    check(
        &[("---\nkind: forget\n---\nGrace", None)],
        "MEMORY.md -## Task 2: ask Grace for the ledger, partial
         MEMORY.md -- rollout_summaries/2026-12-01T10-00-00-000b.md (thread_id=t-2)
         MEMORY.md -- ledger
         MEMORY.md -- Receipts are printed twice [Task 1][Task 2]
         MEMORY.md -- The ledger is closed on Sundays [Task 2]
         MEMORY.md +- Receipts are printed twice [Task 1]
         memory_summary.md -- Grace's ledger: sundays, thread_id=t-2
         skills/close-till/SKILL.md -2. Call Grace about the ledger",
    );
    let carried = carry(MemoryVersion::V1, &[("forget Grace", None)], &[]);
    assert_eq!(carried.forgotten.len(), 3, "{:?}", carried.forgotten);
    assert!(!carried.told.join("\n").contains("Sundays"));
}

#[test]
fn a_skill_that_is_all_about_it_goes_as_a_whole() {
    let carried = carry(
        MemoryVersion::V1,
        &[("forget how to close the till in the evening", None)],
        &[],
    );
    assert!(
        !carried
            .files
            .contains_key(&path("skills/close-till/SKILL.md"))
    );
}

#[test]
fn a_deleted_note_takes_its_line_back_and_an_edited_one_is_applied_again() {
    let mark = "Receipts are blue";
    let first = carry(MemoryVersion::V2, &[(mark, None)], &[]);
    let with = &first.files[&path("memory_summary.md")];
    assert!(with.contains("- Receipts are blue [ad-hoc note]"), "{with}");
    for (now, expected) in [
        ("", ""),
        ("Receipts are red", "- Receipts are red [ad-hoc note]"),
    ] {
        let note = |text: &str| note::parse(&name(1), text).unwrap();
        let edited = [NoteInput {
            note: note(if now.is_empty() { "x" } else { now }),
            before: Before::Other(Some(note(mark))),
        }];
        let gone = [RemovedNote {
            note: Some(note(mark)),
        }];
        let carried = carry_out(&OrderInputs {
            version: MemoryVersion::V2,
            files: first.files.clone(),
            notes: if now.is_empty() { &[] } else { &edited },
            removed: if now.is_empty() { &gone } else { &[] },
            person_entries: &[],
            withheld: &[],
            summary_bytes_max: 8_000,
            only_skills: false,
        });
        let text = &carried.files[&path("memory_summary.md")];
        assert!(!text.contains("blue"), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_persons_line_changes_only_when_the_note_is_about_it() {
    let own = "The till listens on port 8080";
    let notes = [("---\nkind: forget\n---\nthe port of the printer", None)];
    let carried = carry(MemoryVersion::V2, &notes, &[own]);
    assert_eq!(carried.unmatched.len(), 1);
    let notes = [("forget that the till listens on port 8080", None)];
    let carried = carry(MemoryVersion::V2, &notes, &[own]);
    assert!(!carried.files[&path("memory_summary.md")].contains("8080"));
}

#[test]
fn later_notes_have_the_last_word() {
    let notes = [
        ("The safe is green", None),
        ("---\nkind: forget\n---\nThe safe is green", None),
    ];
    let carried = carry(MemoryVersion::V1, &notes, &[]);
    assert_eq!(carried.demands, []);
    assert!(!carried.files[&path("MEMORY.md")].contains("safe"));
}

#[test]
fn a_polished_line_still_says_it_and_another_value_does_not() {
    let demand = super::Demand::of(&name(1), "The till listens on port 9090 in every shop");
    for (entry, expected) in [
        (
            "- In every shop the till listens on port 9090. [Task 1] [ad-hoc note]",
            true,
        ),
        ("- `till`: port 9090, every shop [ad-hoc note]", true),
        (
            "- The till listens on port 8080 in every shop [ad-hoc note]",
            false,
        ),
        (
            "- The till never listens on port 9090 in every shop [ad-hoc note]",
            false,
        ),
        ("- Tabs are wide [ad-hoc note]", false),
    ] {
        assert_eq!(demand.is_said_by(entry), expected, "{entry}");
    }
    let demand = super::Demand::of(&name(1), "提交信息要简短");
    assert!(demand.is_said_by("- 提交信息要简短。 [ad-hoc note]"));
    assert!(!demand.is_said_by("- 端口是 8080 [ad-hoc note]"));
}
