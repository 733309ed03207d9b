//! What a worker left in staging, and what is said about it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Beside, Fault, FreshNote, JudgeFacts, OutputFile, Outputs, Seen, judge, touched};
use crate::consolidate::guard::GuardLimits;
use crate::consolidate::plan::{Plan, Planned};
use crate::consolidate::theirs::Theirs;
use crate::domain::entry::Entry;
use crate::domain::note::NoteKind;
use crate::domain::path::TreePath;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::{Withheld, WithheldReason, WithheldWhat};
use crate::model::offline::consolidate::orders::Carried;
use crate::store::{Blob, Store};
use crate::text::entries;
use crate::text::note;
use crate::text::shingles;

const NOTE: &str = "extensions/ad_hoc/notes/n.md";

#[test]
fn only_the_memory_files_may_change() {
    for (what, expected) in [
        ("write MEMORY.md", ""),
        ("write memory_summary.md", ""),
        ("write skills/a/SKILL.md", ""),
        ("remove MEMORY.md", ""),
        ("write phase2_workspace_diff.md", ""),
        ("remove phase2_workspace_diff.md", ""),
        ("write raw_memories.md", "not-allowed"),
        ("write rollout_summaries/r.md", "not-allowed"),
        ("write rollout_summaries/new.md", "not-allowed"),
        ("remove rollout_summaries/r.md", "not-allowed"),
        ("write extensions/ad_hoc/notes/n.md", "not-allowed"),
        ("remove extensions/ad_hoc/notes/n.md", "not-allowed"),
        ("write notes.txt", "not-allowed"),
        ("write .git/config", "not-allowed"),
        ("link MEMORY.md", "symlink"),
        ("link skills/a/SKILL.md", "symlink"),
        ("link x", "symlink"),
        ("pipe x", "unfit"),
        ("pipe skills/a/x", "unfit"),
        ("huge MEMORY.md", "too-large"),
        ("bytes MEMORY.md", "not-utf8"),
    ] {
        assert_eq!(codes_of(MemoryVersion::V1, what), expected, "{what}");
    }
    // Version 2 has one output.
    assert_eq!(
        codes_of(MemoryVersion::V2, "write skills/a/SKILL.md"),
        "not-allowed"
    );
    assert_eq!(codes_of(MemoryVersion::V2, "write memory_summary.md"), "");
}

#[test]
fn what_must_not_be_kept_is_not_kept() {
    let path = || TreePath::parse("MEMORY.md").unwrap();
    for (fault, bars) in [
        (
            Fault::Symlink {
                path: String::new(),
            },
            true,
        ),
        (
            Fault::TooLarge {
                path: String::new(),
                bytes: 1,
            },
            true,
        ),
        (
            Fault::Secret {
                path: path(),
                line_number: 1,
            },
            true,
        ),
        (
            Fault::Withheld {
                path: path(),
                line_number: 1,
            },
            true,
        ),
        (Fault::NotFinished, false),
        (
            Fault::PersonOverruled {
                path: path(),
                text: String::new(),
            },
            false,
        ),
    ] {
        assert_eq!(fault.bars_keeping(), bars, "{fault:?}");
    }
}

#[test]
fn a_valid_result_is_accepted() {
    check(&summary("- short changelogs\n"), "");
}

#[test]
fn errors_of_the_validator_refuse() {
    let wrong = codes(&summary("").replace("v1\n", "v2\n"), &Case::default());
    assert!(wrong.starts_with('S'), "{wrong}");
    assert!(
        faults("", &Case::default()).len() == 1,
        "there is no summary"
    );
}

#[test]
fn a_secret_refuses_and_is_not_repeated() {
    let secret = format!("{}{}", "ghp_", "a1B2".repeat(9));
    let faults = faults(&summary(&format!("- token {secret}\n")), &Case::default());
    let fault = &faults[0];
    assert_eq!(fault.code(), "secret");
    assert_eq!(
        fault.words(),
        "`memory_summary.md` line 7 holds what looks like a secret"
    );
}

#[test]
fn what_is_withheld_refuses_in_other_words_too() {
    let mut case = Case::default();
    case.withhold("always squash the commits before a merge");
    for (line, expected) in [
        ("- always squash the commits before a merge\n", "withheld"),
        ("- Always squash commits before a merge!\n", "withheld"),
        ("- never rebase a published branch\n", ""),
    ] {
        assert_eq!(codes(&summary(line), &case), expected, "{line}");
    }
    // Written by the person after it was withheld, it is theirs.
    case.person("always squash the commits before a merge");
    case.old = summary("- always squash the commits before a merge\n");
    assert_eq!(codes(&case.old.clone(), &case), "");
}

#[test]
fn the_persons_entries_stay_unless_a_note_asks() {
    let mut case = Case {
        old: summary("- the dev server listens on port 8080\n- b c d e f g\n- h i j k l m\n"),
        ..Case::default()
    };
    case.person("the dev server listens on port 8080");
    let new = summary("- the dev server listens on port 9090\n- b c d e f g\n- h i j k l m\n");
    assert_eq!(codes(&new, &case), "person");
    case.note(NoteKind::Remember, "The dev server listens on port 9090.");
    assert_eq!(codes(&new, &case), "person");
    case.note(
        NoteKind::Correct,
        "Correction: the dev server listens on port 9090.",
    );
    assert_eq!(codes(&new, &case), "");
}

#[test]
fn a_loss_without_a_reason_refuses() {
    let lines = |range: std::ops::Range<u8>| -> String {
        range.fold(String::new(), |text, n| {
            text + "- " + &format!("word{n} ").repeat(4) + "\n"
        })
    };
    let case = Case {
        old: summary(&lines(0..20)),
        ..Case::default()
    };
    assert_eq!(codes(&summary(&lines(3..20)), &case), "");
    assert_eq!(codes(&summary(&lines(4..20)), &case), "loss");
}

#[test]
fn a_memory_whose_every_statement_is_withheld_is_validly_empty() {
    const SAID: &str = "- Ada owns the ledger\n";
    let case = |old: &str, is_withheld: bool| {
        let mut case = Case {
            old: summary(old),
            has_inputs: true,
            ..Case::default()
        };
        if is_withheld {
            case.withhold("Ada owns the ledger");
        }
        case
    };
    let empty = summary("");
    assert_eq!(codes(&empty, &case(SAID, true)), "");
    assert_eq!(codes(&empty, &case("", true)), "");
    assert_eq!(codes(&empty, &case(SAID, false)), "S006 loss loss");
    assert_eq!(codes(&empty, &case("", false)), "S006 loss");
    let more = format!("{SAID}- Grace owns the compiler\n");
    assert_eq!(codes(&empty, &case(&more, true)), "S006 loss loss");
    // The frame stays all the same.
    assert_eq!(codes("\n", &case(SAID, true)), "S006");
    assert_eq!(codes("v1\n", &case(SAID, true)), "S005 S005 S005 S005");
}

#[track_caller]
fn check(new: &str, expected: &str) {
    assert_eq!(codes(new, &Case::default()), expected);
}

fn codes(new: &str, case: &Case) -> String {
    let codes: Vec<&str> = faults(new, case).iter().map(Fault::code).collect();
    codes.join(" ")
}

fn faults(new: &str, case: &Case) -> Vec<Fault> {
    let note = case.has_inputs.then(|| TreePath::parse(NOTE).unwrap());
    let others: BTreeSet<TreePath> = note.into_iter().collect();
    let verdict = judge(&JudgeFacts {
        version: MemoryVersion::V2,
        old: &outputs(&case.old),
        new: &outputs(new),
        beside: Beside {
            recaps: &BTreeMap::new(),
            others: &others,
            summary_bytes_max: 8_000,
        },
        old_recaps: &BTreeMap::new(),
        threads: &BTreeSet::new(),
        fresh_threads: &BTreeSet::new(),
        fresh_notes: &case.notes,
        fresh_recaps: &[],
        skipped: &[],
        carried: &Carried::default(),
        is_by_code: false,
        gone_notes: &[],
        retired: &[],
        withheld: &case.withheld,
        person_entries: &case.person,
        theirs: &Theirs::default(),
        earlier: &[],
        limits: &GuardLimits::default(),
        has_inputs: case.has_inputs,
    });
    assert_eq!(verdict.is_accepted(), verdict.faults.is_empty());
    verdict.faults
}

#[derive(Default)]
struct Case {
    old: String,
    withheld: Vec<Withheld>,
    person: Vec<Entry>,
    notes: Vec<FreshNote>,
    has_inputs: bool,
}

impl Case {
    fn withhold(&mut self, text: &str) {
        self.withheld.push(Withheld {
            id: "w".to_owned(),
            reason: WithheldReason::Edited,
            since: Timestamp::from_seconds(0),
            what: WithheldWhat::Entry(shingles::hash_entry([7; 16], text)),
        });
    }

    fn person(&mut self, text: &str) {
        let path = TreePath::parse("memory_summary.md").unwrap();
        let text = format!("v1\n\n## User preferences\n\n- {text}\n");
        self.person.extend(entries::parse(&path, &text));
    }

    fn note(&mut self, kind: NoteKind, text: &str) {
        let text = format!("---\nkind: {}\n---\n{text}\n", kind.label());
        let note = note::parse(&TreePath::parse(NOTE).unwrap(), &text).unwrap();
        self.notes.push(FreshNote::of(&note));
    }
}

fn summary(preferences: &str) -> String {
    format!(
        "v1\n\n## User Profile\n\n## User preferences\n\n{preferences}\n## General Tips\n\n## What's in Memory\n"
    )
}

fn outputs(text: &str) -> Outputs {
    if text.is_empty() {
        return Outputs::new();
    }
    let file = OutputFile {
        text: text.to_owned(),
        executable: false,
    };
    BTreeMap::from([(TreePath::parse("memory_summary.md").unwrap(), file)])
}

/// What one act of the worker is called, after `<verb> <path>`.
fn codes_of(version: MemoryVersion, what: &str) -> String {
    let mut plan = Plan::default();
    let mut seen = BTreeMap::new();
    for name in [
        "MEMORY.md",
        "memory_summary.md",
        "raw_memories.md",
        "rollout_summaries/r.md",
        NOTE,
    ] {
        let path = TreePath::parse(name).unwrap();
        let id = Store::blob_id(name.as_bytes());
        let executable = false;
        plan.files
            .insert(path, Planned::Head(Blob { id, executable }));
        seen.insert(name.to_owned(), file(name.as_bytes()));
    }
    seen.insert("phase2_workspace_diff.md".to_owned(), file(b"diff"));
    let (verb, name) = what.split_once(' ').unwrap();
    let act = match verb {
        "write" => Some(file(b"changed")),
        "bytes" => Some(file(b"\xff")),
        "link" => Some(Seen::Symlink),
        "pipe" => Some(Seen::Unfit { why: "is odd" }),
        "huge" => Some(Seen::TooLarge { bytes: 1 << 30 }),
        _ => None,
    };
    match act {
        Some(act) => seen.insert(name.to_owned(), act),
        None => seen.remove(name),
    };
    let (_, faults) = touched(version, &plan, &seen);
    let codes: Vec<&str> = faults.iter().map(Fault::code).collect();
    codes.join(" ")
}

fn file(bytes: &[u8]) -> Seen {
    Seen::File {
        bytes: bytes.to_vec(),
        executable: false,
    }
}
