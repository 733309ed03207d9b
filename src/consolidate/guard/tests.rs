//! Two handbooks or summaries, and what the guard says about the difference.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::{prop_assert, proptest};

use super::{GuardFacts, GuardLimits, LossCount, losses, verdict};
use crate::consolidate::judge::FreshNote;
use crate::domain::entry::Entry;
use crate::domain::id::ThreadId;
use crate::domain::path::TreePath;
use crate::domain::time::Timestamp;
use crate::domain::withheld::{Withheld, WithheldReason, WithheldWhat};
use crate::text::entries;
use crate::text::note;
use crate::text::shingles;

const TIPS: &str = "## General Tips\n\n";

#[test]
fn moved_recounted_and_reworded_entries_are_no_loss() {
    check(
        "## User Profile\n\n- Sessions in memory: 12, since 2025-11-30.\n\n## General Tips\n\n\
         - run the formatter before every commit\n- `make` needs GNU make\n",
        "## User Profile\n\n- Sessions in memory: 13, since 2025-11-30.\n\n## General Tips\n\n\
         - `make` needs GNU make\n- run the formatter before each commit\n",
        "",
    );
}

#[test]
fn a_topic_that_gets_older_is_the_same_topic() {
    check(
        "## What's in Memory\n\n### demo\n\n#### 2025-12-01\n\n- refunds: sign, tests, thread_id=a1\n  - desc: fixed\n",
        "## What's in Memory\n\n### Older Memory Topics\n\n#### demo\n\n- refund work; thread_id=a1\n",
        "",
    );
}

#[test]
fn merged_entries_are_explained() {
    check(
        "## General Tips\n\n- always run cargo fmt before a commit\n\n## Other\n\n- always run cargo fmt before a commit\n",
        "## General Tips\n\n- always run cargo fmt before a commit\n",
        "always run cargo fmt before a commit: merged into memory_summary.md",
    );
}

#[test]
fn what_the_person_took_away_is_never_retired() {
    let mut story = Story::new(
        "## General Tips\n\n- indent this project with tabs [ad-hoc note]\n- branches are named after tickets\n",
        "## General Tips\n\n",
    );
    story.withhold("Indent this project with tabs");
    for text in [
        "indent this project with tabs",
        "branches are named after tickets",
    ] {
        let reason = "a person took it away".to_owned();
        story.retired.push((text.to_owned(), reason));
    }
    story.check(
        "indent this project with tabs [ad-hoc note]: the person took it away; \
         branches are named after tickets: retired: a person took it away",
    );
}

#[test]
fn what_the_person_took_away_is_in_no_limit() {
    let told = |withheld: &[&str], old: &str, new: &str| {
        let mut story = Story::new(&format!("{TIPS}{old}"), &format!("{TIPS}{new}"));
        for text in withheld {
            story.withhold(text);
        }
        let (losses, limits) = (story.losses(), GuardLimits::default());
        let (old, new) = (story.old.len(), story.new.len());
        verdict(&losses, old, new, true, &[], &limits).len()
    };
    let all =
        "- indent with tabs here\n- branches bear ticket numbers\n- deploys need two reviews\n";
    let texts = [
        "indent with tabs here",
        "branches bear ticket numbers",
        "deploys need two reviews",
    ];
    assert_eq!(
        told(&texts, all, ""),
        0,
        "an empty memory may be the person's wish"
    );
    assert_eq!(told(&texts[..2], all, "- deploys need two reviews\n"), 0);
    assert_ne!(told(&texts[..2], all, "- something else altogether\n"), 0);
    assert_ne!(told(&[], all, "- deploys need two reviews\n"), 0);
}

#[test]
fn an_entry_without_sources_left_is_explained() {
    let mut story = Story::new(
        "## What's in Memory\n\n- refunds: sign, thread_id=gone1\n- login: flow, thread_id=a1\n",
        "## What's in Memory\n\n",
    );
    story.threads.insert(thread("a1"));
    story.check(
        "refunds: sign, thread_id=gone1: its sources are gone; login: flow, thread_id=a1: no reason given",
    );
}

#[test]
fn an_entry_that_its_newer_recap_does_not_have_is_explained() {
    let handbook = |facts: &str| {
        format!(
            "# Task Group: demo\n\n## Task 1: serve\n\n### rollout_summary_files\n\n- r.md (thread_id=a1)\n\n\
             ## Reusable knowledge\n\n{facts}"
        )
    };
    let mut story = Story::of(
        "MEMORY.md",
        &handbook("- the dev server listens on port 8080 [Task 1]\n"),
        &handbook(""),
    );
    story.threads.insert(thread("a1"));
    story.recap("r.md", "thread_id: a1\n\n- nothing of that kind\n");
    story.check("the dev server listens on port 8080 [Task 1]: no reason given");
    let old = "thread_id: a1\n\n- the dev server listens on port 8080 (line 4)\n";
    story.old_recaps.insert(thread("a1"), old.to_owned());
    story.check("the dev server listens on port 8080 [Task 1]: its sources are gone");
    story.recap("r.md", &format!("{old}- and more\n"));
    story.check("the dev server listens on port 8080 [Task 1]: no reason given");
}

#[test]
fn lines_that_cite_nothing_go_with_the_sessions_that_said_them() {
    let mut story = Story::new(
        &format!(
            "{TIPS}- count tabs as one column (in demo)\n\n## What's in Memory\n\n### demo\n\n- mend the parser of tabs…: tabs, parser\n"
        ),
        TIPS,
    );
    let unexplained = "count tabs as one column (in demo): no reason given; \
                       mend the parser of tabs…: tabs, parser: no reason given";
    story.check(unexplained);
    let old = "## Task 1: mend the parser of tabs and blanks\n\n- always: \"count tabs as one column\" (line 4)\n";
    story.old_recaps.insert(thread("a1"), old.to_owned());
    story.check(
        "count tabs as one column (in demo): its sources are gone; \
         mend the parser of tabs…: tabs, parser: its sources are gone",
    );
    story.recap("r.md", &format!("thread_id: b2\n\n{old}"));
    story.check(unexplained);
}

#[test]
fn a_note_that_is_gone_takes_its_lines_along() {
    let mut story = Story::new(
        &format!("{TIPS}- indent with tabs everywhere [ad-hoc note]\n"),
        TIPS,
    );
    story.check("indent with tabs everywhere [ad-hoc note]: no reason given");
    story
        .gone_notes
        .push("Indent with tabs everywhere.".to_owned());
    story.check("indent with tabs everywhere [ad-hoc note]: its sources are gone");
}

#[test]
fn a_note_or_a_newer_session_may_contradict() {
    let old = format!("{TIPS}- the dev server listens on port 8080\n");
    let mut story = Story::new(&old, TIPS);
    let file = path("extensions/ad_hoc/notes/n.md");
    let text = "Correction: the dev server listens on port 9090 now.";
    let note = note::parse(&file, text).unwrap();
    story.notes.push(FreshNote::of(&note));
    story
        .check("the dev server listens on port 8080: contradicted by extensions/ad_hoc/notes/n.md");

    let new = "## Ports\n\n- the dev server moved to port 9090, thread_id=b2\n";
    let mut story = Story::new(&old, new);
    story.threads.insert(thread("b2"));
    story.check("the dev server listens on port 8080: no reason given");
    story.fresh_threads.insert(thread("b2"));
    story.check("the dev server listens on port 8080: contradicted by b2");
}

#[test]
fn both_sides_of_a_contradiction_gone_is_a_loss() {
    check(
        "## Tips\n\n- port is 8080\n- port is 9090\n",
        "## Tips\n\n- something else entirely\n",
        "port is 8080: no reason given; port is 9090: no reason given",
    );
}

#[test]
fn a_summary_entry_may_live_on_in_handbook_or_recap() {
    let mut story = Story::new(&format!("{TIPS}- `make` needs GNU make\n"), TIPS);
    story.more_new(
        "MEMORY.md",
        "## Reusable knowledge\n\n- `make` needs GNU make\n",
    );
    story.check("`make` needs GNU make: demoted to MEMORY.md");

    let mut story = Story::new(&format!("{TIPS}- `make` needs GNU make\n"), TIPS);
    story.recap(
        "r.md",
        "thread_id: a1\n\n- `make` needs GNU make (line 3)\n",
    );
    story.check("`make` needs GNU make: no reason given");
    story.more_new("MEMORY.md", "## Notes\n\n- see rollout_summaries/r.md\n");
    story.check("`make` needs GNU make: demoted to rollout_summaries/r.md");
}

#[test]
fn a_topic_makes_room_when_the_summary_is_full() {
    let mut story = Story::new(
        "## What's in Memory\n\n- rollout_summaries/r.md — refunds; thread_id=a1\n",
        "## What's in Memory\n",
    );
    story.threads.insert(thread("a1"));
    story.recap("r.md", "thread_id: a1\n\nwhat happened\n");
    story.check("rollout_summaries/r.md — refunds; thread_id=a1: no reason given");
    story.is_full = true;
    story
        .check("rollout_summaries/r.md — refunds; thread_id=a1: demoted to rollout_summaries/r.md");
    // In a half-empty summary the handbook has to lead there.
    story.is_full = false;
    story.more_new("MEMORY.md", "## Notes\n\n- see thread_id=a1\n");
    story
        .check("rollout_summaries/r.md — refunds; thread_id=a1: demoted to rollout_summaries/r.md");
}

#[test]
fn a_full_summary_with_a_handbook_lets_go_only_what_the_handbook_leads_to() {
    let topic = "rollout_summaries/r.md — refunds; thread_id=a1";
    let mut story = Story::new(
        &format!("## What's in Memory\n\n- {topic}\n\n{TIPS}- `make` needs GNU make\n"),
        "## What's in Memory\n",
    );
    story.is_full = true;
    story.threads.insert(thread("a1"));
    story.recap("r.md", "thread_id: a1\n\n- `make` needs GNU make\n");
    story.check(&format!(
        "{topic}: demoted to rollout_summaries/r.md; \
         `make` needs GNU make: demoted to rollout_summaries/r.md"
    ));
    let mut with_handbook = story;
    with_handbook.more_new("MEMORY.md", "## Notes\n\n- something else altogether\n");
    with_handbook.check(&format!(
        "{topic}: no reason given; `make` needs GNU make: no reason given"
    ));
    with_handbook.more_new("MEMORY.md", "## Notes\n\n- see thread_id=a1\n");
    with_handbook.check(&format!(
        "{topic}: demoted to rollout_summaries/r.md; \
         `make` needs GNU make: demoted to rollout_summaries/r.md"
    ));
}

/// Pairs of old and new, and whether they are one entry: file, kind, heading
/// path, cited sources; likeness within equal citations, else over the file.
#[test]
fn an_entry_is_known_by_file_kind_headings_sources_and_words() {
    let handbook =
        |line: &str| format!("# Task Group: demo\n\n## Reusable knowledge\n\n- {line}\n");
    let port = "the dev server listens on port 8080";
    for (what, old, new, is_same) in [
        (
            "the same words elsewhere in the file",
            handbook(port),
            format!("# Task Group: other\n\n- {port}\n"),
            true,
        ),
        (
            "near-equal words below other headings",
            format!("## A\n\n- {port} always\n"),
            format!("## B\n\n- {port} now\n"),
            true,
        ),
        (
            "half the words below other headings",
            format!("## A\n\n- {port}\n"),
            "## B\n\n- the dev server is written in Rust\n".to_owned(),
            false,
        ),
        (
            "half the words on the same source",
            format!("## A\n\n- {port}, thread_id=a1\n"),
            "## B\n\n- the dev server listens elsewhere, thread_id=a1\n".to_owned(),
            true,
        ),
        (
            "half the words on another source",
            format!("## A\n\n- {port}, thread_id=a1\n"),
            "## A\n\n- the dev server listens elsewhere, thread_id=b2\n".to_owned(),
            false,
        ),
        (
            "other words on the same source",
            format!("## A\n\n- {port}, thread_id=a1\n"),
            "## A\n\n- releases go out on Tuesdays, thread_id=a1\n".to_owned(),
            false,
        ),
        (
            "a task is no statement",
            "# Task Group: demo\n\n## Task 1: mend the ports\n".to_owned(),
            "# Task Group: demo\n\n- Task 1: mend the ports\n".to_owned(),
            false,
        ),
    ] {
        let (old, new) = (
            entries::parse(&path("MEMORY.md"), &old),
            entries::parse(&path("MEMORY.md"), &new),
        );
        let last = |entries: &[Entry]| entries.len() - 1;
        let pairs = super::pairs(&old, &new);
        let found = pairs[last(&old)];
        assert_eq!(found, is_same.then_some(last(&new)), "{what}");
    }
    let summary = entries::parse(&path("memory_summary.md"), &format!("- {port}\n"));
    let handbook = entries::parse(&path("MEMORY.md"), &format!("- {port}\n"));
    assert_eq!(super::pairs(&summary, &handbook), [None]);
}

#[test]
fn the_worker_may_retire_an_entry_with_a_reason() {
    let mut story = Story::new(
        &format!("{TIPS}- the old wiki has the deploy steps\n"),
        TIPS,
    );
    let entry = "- The old wiki has the deploy steps";
    story.retired.push((entry.to_owned(), String::new()));
    story.check("the old wiki has the deploy steps: no reason given");
    story
        .retired
        .push((entry.to_owned(), "the wiki was shut down".to_owned()));
    story.check("the old wiki has the deploy steps: retired: the wiki was shut down");
}

#[test]
fn limits_refuse_by_number_and_share() {
    for (old, unexplained, expected) in [
        (100, 3, ""),
        (100, 10, ""),
        (100, 11, "unexplained"),
        (10, 3, ""),
        (20, 4, "unexplained"),
        (40, 4, ""),
        // More than half at any size.
        (1, 1, "unexplained"),
        (2, 1, ""),
        (3, 2, "unexplained"),
        (0, 0, ""),
    ] {
        let told = told_limits(old, unexplained, 0, 5, &[]);
        assert_eq!(told, expected, "{unexplained} of {old}");
    }
}

#[test]
fn retiring_is_limited_too() {
    for (old, retired, expected) in [
        (10, 3, ""),
        (10, 4, "retired"),
        (50, 5, ""),
        (50, 6, "retired"),
    ] {
        assert_eq!(
            told_limits(old, 0, retired, 5, &[]),
            expected,
            "{retired} of {old}"
        );
    }
}

#[test]
fn nothing_left_is_refused_while_there_are_inputs() {
    assert_eq!(told_limits(0, 0, 0, 0, &[]), "nothing left");
}

#[test]
fn small_losses_add_up_over_ten_baselines() {
    let past = |counts: &[usize]| -> Vec<LossCount> {
        let count = |unexplained: &usize| LossCount {
            entries: 40,
            unexplained: *unexplained,
        };
        counts.iter().map(count).collect()
    };
    assert_eq!(told_limits(40, 1, 0, 9, &past(&[1, 0, 1, 1])), "");
    assert_eq!(told_limits(40, 1, 0, 9, &past(&[1, 1, 1, 1])), "over time");
    // Ten baselines back is forgiven, and so is a pass that loses nothing.
    let old = past(&[4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(told_limits(40, 1, 0, 9, &old), "");
    assert_eq!(told_limits(40, 0, 0, 9, &past(&[4, 4, 4])), "");
}

proptest! {
    #[test]
    fn nothing_is_lost_by_reordering(seed in 0_usize..24) {
        let lines = ["- alpha beta gamma", "- delta epsilon zeta", "- 一二三四五六", "- eta theta iota"];
        let mut order: Vec<usize> = (0..4).collect();
        order.rotate_left(seed % 4);
        order.swap(seed % 3, seed % 4);
        let text = |order: &[usize]| -> String {
            order.iter().fold(TIPS.to_owned(), |text, index| text + lines[*index] + "\n")
        };
        let story = Story::new(&text(&[0, 1, 2, 3]), &text(&order));
        prop_assert!(story.losses().is_empty());
    }
}

fn told_limits(
    old: usize,
    unexplained: usize,
    retired: usize,
    new: usize,
    earlier: &[LossCount],
) -> String {
    use super::{GuardFault, Loss, Reason};
    let entry = entries::parse(&path("memory_summary.md"), "- x\n").remove(0);
    let loss = |reason: Reason| Loss {
        entry: entry.clone(),
        reason,
    };
    let mut all = vec![loss(Reason::Unexplained); unexplained];
    let reason = "old".to_owned();
    all.extend(vec![loss(Reason::Retired { reason }); retired]);
    let faults = verdict(&all, old, new, true, earlier, &GuardLimits::default());
    let words = faults.iter().map(|fault| match fault {
        GuardFault::NothingLeft => "nothing left",
        GuardFault::TooManyUnexplained { .. } => "unexplained",
        GuardFault::TooManyRetired { .. } => "retired",
        GuardFault::TooManyOverTime { .. } => "over time",
    });
    words.collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn check(old: &str, new: &str, expected: &str) {
    Story::new(old, new).check(expected);
}

struct Story {
    old: Vec<Entry>,
    new: Vec<Entry>,
    recaps: BTreeMap<TreePath, String>,
    is_full: bool,
    old_recaps: BTreeMap<ThreadId, String>,
    threads: BTreeSet<ThreadId>,
    fresh_threads: BTreeSet<ThreadId>,
    notes: Vec<FreshNote>,
    gone_notes: Vec<String>,
    retired: Vec<(String, String)>,
    withheld: Vec<Withheld>,
}

impl Story {
    fn new(old: &str, new: &str) -> Self {
        Self::of("memory_summary.md", old, new)
    }

    fn of(name: &str, old: &str, new: &str) -> Self {
        Self {
            old: entries::parse(&path(name), old),
            new: entries::parse(&path(name), new),
            recaps: BTreeMap::new(),
            is_full: false,
            old_recaps: BTreeMap::new(),
            threads: BTreeSet::new(),
            fresh_threads: BTreeSet::new(),
            notes: Vec::new(),
            gone_notes: Vec::new(),
            retired: Vec::new(),
            withheld: Vec::new(),
        }
    }

    fn more_new(&mut self, name: &str, text: &str) {
        self.new.extend(entries::parse(&path(name), text));
    }

    fn recap(&mut self, name: &str, text: &str) {
        let path = path(&format!("rollout_summaries/{name}"));
        self.recaps.insert(path, text.to_owned());
    }

    fn withhold(&mut self, text: &str) {
        self.withheld.push(Withheld {
            id: self.withheld.len().to_string(),
            reason: WithheldReason::Edited,
            since: Timestamp::from_seconds(1_770_000_000),
            what: WithheldWhat::Entry(shingles::hash_entry([7; 16], text)),
        });
    }

    fn losses(&self) -> Vec<super::Loss> {
        losses(&GuardFacts {
            old: &self.old,
            new: &self.new,
            recaps: &self.recaps,
            is_full: self.is_full,
            taken_out: &BTreeMap::new(),
            old_recaps: &self.old_recaps,
            threads: &self.threads,
            fresh_threads: &self.fresh_threads,
            fresh_notes: &self.notes,
            gone_notes: &self.gone_notes,
            retired: &self.retired,
            withheld: &self.withheld,
        })
    }

    #[track_caller]
    fn check(&self, expected: &str) {
        let told = self.losses();
        let told = told
            .iter()
            .map(|loss| format!("{}: {}", loss.entry.text, loss.reason.words()));
        assert_eq!(told.collect::<Vec<_>>().join("; "), expected);
    }
}

fn path(name: &str) -> TreePath {
    TreePath::parse(name).unwrap()
}

fn thread(name: &str) -> ThreadId {
    ThreadId::parse(name).unwrap()
}
