//! Trees as one word per file, `path=blob`; blobs are single digits.

use std::collections::BTreeMap;

use super::{Before, Plan, PlanFacts, Planned, changes, has_work, inputs, plan};
use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::{Withheld, WithheldReason, WithheldWhat};
use crate::store::Blob;
use crate::store::history::Consumption;
use crate::store::message::{ChangeKind, Input};

const NOW: Timestamp = Timestamp::from_seconds(1_764_576_000);
const NOTE: &str = "extensions/ad_hoc/notes/n.md";

#[test]
fn unselected_recaps_leave_and_notes_never_do() {
    let plan = plan_of(
        "rollout_summaries/r.md=1 extensions/ad_hoc/notes/n.md=2 README.md=3",
        &[],
    );
    assert_eq!(
        shown(&plan),
        "README.md extensions/ad_hoc/notes/n.md raw_memories.md"
    );
}

#[test]
fn withheld_inputs_stay_in_the_tree_unseen() {
    let held = withheld(NOTE, 2);
    let plan = plan_of(&format!("{NOTE}=2"), std::slice::from_ref(&held));
    assert!(plan.files.contains_key(&path(NOTE)));
    assert!(plan.hidden.contains(&path(NOTE)));
    assert!(
        plan.files
            .contains_key(&path("extensions/withheld/entries/w.yaml"))
    );
    // Another version of the same note is not held.
    assert!(plan_of(&format!("{NOTE}=3"), &[held]).hidden.is_empty());
}

#[test]
fn resources_expire_after_seven_days_to_the_second() {
    let tree = |age_seconds: i64, name: &str| {
        let stamp = NOW.minus_seconds(age_seconds).file_stamp();
        format!(
            "extensions/x/instructions.md=1 extensions/x/resources/{}=2",
            name.replace('@', &stamp)
        )
    };
    let week = 7 * 86_400;
    for (age, name, stays) in [
        (week, "@-a.md", false),
        (week + 1, "@-a.md", false),
        (week - 1, "@-a.md", true),
        (week, "@-a.txt", true),
        (week, "a-@.md", true),
        (week, "deep/@-a.md", true),
        (week, "@é.md", false),
    ] {
        let count = plan_of(&tree(age, name), &[]).files.len();
        assert_eq!(count == 3, stays, "{age} {name}");
    }
    let bare = tree(week, "@-a.md").replace("extensions/x/instructions.md=1 ", "");
    assert_eq!(plan_of(&bare, &[]).files.len(), 2);
    let plan = plan_of(&tree(week - 60, "@-a.md"), &[]);
    assert_eq!(plan.holds_until, Some(NOW.plus_seconds(60)));
}

#[test]
fn inputs_are_what_no_baseline_has_consumed() {
    check_inputs("n=1", "", "", "A n");
    check_inputs("n=1", "n=1", "A n=1", "");
    check_inputs("n=2", "n=1", "A n=1", "M n");
    check_inputs("", "n=1", "A n=1", "D n");
    // Let go by a later baseline, and here again.
    check_inputs("n=1", "", "A n=1 | D n=1", "A n");
    check_inputs("", "", "A n=1 | D n=1", "");
}

#[test]
fn a_memory_file_that_a_person_changed_is_news_once() {
    check_inputs("MEMORY.md=2", "MEMORY.md=1", "", "M MEMORY.md");
    check_inputs("MEMORY.md=2", "MEMORY.md=1", "M MEMORY.md=2", "");
    check_inputs("MEMORY.md=1", "MEMORY.md=1", "", "");
    // Before the first baseline there is nothing to compare with.
    check_inputs("MEMORY.md=1", "", "", "");
}

#[test]
fn changes_are_what_the_head_does_not_have() {
    let head = tree("rollout_summaries/r.md=1 MEMORY.md=2");
    let plan = plan_of("rollout_summaries/r.md=1 MEMORY.md=2", &[]);
    let told: Vec<String> = changes(&plan, &head)
        .iter()
        .map(|it| format!("{} {}", it.path, it.file.is_some()))
        .collect();
    assert_eq!(
        told,
        ["raw_memories.md true", "rollout_summaries/r.md false"]
    );
    assert!(
        !has_work(&plan, &[], &head),
        "a first placeholder is no work"
    );
}

#[track_caller]
fn check_inputs(now: &str, base: &str, consumed: &str, expected: &str) {
    let mut plan = Plan::default();
    for (path, blob) in tree(now) {
        plan.files.insert(path, Planned::Head(blob));
    }
    let mut consumption = Consumption::default();
    for row in consumed.split(" | ").filter(|row| !row.is_empty()) {
        let (letter, file) = row.split_once(' ').unwrap();
        let (path, blob) = tree(file).pop_first().unwrap();
        let change = match letter {
            "A" => ChangeKind::Added,
            "M" => ChangeKind::Modified,
            _ => ChangeKind::Deleted,
        };
        if change != ChangeKind::Deleted {
            consumption.versions.insert((path.clone(), blob.id));
        }
        let input = Input {
            change,
            path: path.clone(),
            blob: blob.id,
            thread_id: None,
        };
        consumption.latest.insert(path, input);
    }
    let found = inputs(
        &plan,
        &Before {
            version: MemoryVersion::V1,
            base: &tree(base),
            consumption: &consumption,
        },
    );
    let told: Vec<String> = found
        .iter()
        .map(|input| {
            let letter = crate::consolidate::message::letter(input.change);
            let name = input.path.as_str();
            let name = if name == NOTE { "n" } else { name };
            format!("{letter} {name}")
        })
        .collect();
    assert_eq!(told.join(", "), expected);
}

fn plan_of(head: &str, withheld: &[Withheld]) -> Plan {
    plan(&PlanFacts {
        version: MemoryVersion::V1,
        head: &tree(head),
        chosen: &[],
        withheld,
        now: NOW,
    })
}

fn shown(plan: &Plan) -> String {
    let paths: Vec<&str> = plan.files.keys().map(TreePath::as_str).collect();
    paths.join(" ")
}

/// `n` stands for a note.
fn tree(words: &str) -> BTreeMap<TreePath, Blob> {
    let file = |word: &str| {
        let (name, blob) = word.split_once('=').unwrap();
        let name = if name == "n" { NOTE } else { name };
        let id = ObjectId::from_bytes([blob.parse().unwrap(); 20]);
        let executable = false;
        (path(name), Blob { id, executable })
    };
    words.split_whitespace().map(file).collect()
}

fn withheld(name: &str, blob: u8) -> Withheld {
    Withheld {
        id: "w".to_owned(),
        reason: WithheldReason::Reverted,
        since: NOW,
        what: WithheldWhat::Input {
            path: path(name),
            blob: ObjectId::from_bytes([blob; 20]),
        },
    }
}

fn path(name: &str) -> TreePath {
    TreePath::parse(name).unwrap()
}
