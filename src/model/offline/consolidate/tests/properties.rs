//! What holds for all inputs.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::story::{Folder, both};
use crate::domain::limits::SUMMARY_V2_BYTES_LIMIT;
use crate::domain::version::MemoryVersion;
use crate::model::offline::consolidate::{Before, OfflineInputs, OfflineOutput, consolidate};

const PROJECTS: [&str; 4] = ["team/api", "team/web", "other/api", "日本/帳簿"];

const SENTENCES: [&str; 14] = [
    "the dev server listens on port 8080",
    "the dev server listens on port 9090",
    "always run cargo fmt before you commit",
    "never push to main without a review",
    "keep changelog lines short and in the present tense",
    "Keep changelog lines short and in the present tense!",
    "从现在开始请用中文写提交信息",
    "开发服务器的端口是 8080",
    "开发服务器的端口是 9090",
    "コミットの前に必ずテストを実行してください",
    "Der Testserver steht in Berlin und nicht in Köln",
    "`cargo test` failed: no such test; then `cargo test --lib` worked",
    "# Task Group: not one; thread_id=nobody1",
    "- [ ] a box <b>bold</b> [Task 7] [ad-hoc note]",
];

const TITLES: [&str; 6] = [
    "fix the refund sign",
    "Fix the refund sign!",
    "release",
    "修复登录",
    "変更履歴を書く",
    "write, then rest, success",
];

const NOTES: [&str; 6] = [
    "use uv in every project",
    "Correction: the dev server listens on port 7000",
    "Forget everything about the Testserver in Berlin",
    "忘掉端口",
    "- one\n- two lines\n  long",
    "# Only a heading",
];

#[derive(Debug, Clone)]
struct Case {
    blocks: Vec<String>,
    withheld: Vec<usize>,
}

impl Case {
    fn story(&self) -> String {
        let mut story = self.blocks.concat();
        if !self.withheld.is_empty() {
            story.push_str("@@ withheld\n");
            self.withheld.iter().for_each(|index| {
                story.push_str(SENTENCES[*index]);
                story.push('\n');
            });
        }
        story
    }
}

fn recap_block() -> impl Strategy<Value = String> {
    let task = (
        0..TITLES.len(),
        prop::collection::vec(0..SENTENCES.len(), 0..4),
        0..3_usize,
    );
    (
        0..PROJECTS.len(),
        1..9_u32,
        prop::collection::vec(task, 0..3),
    )
        .prop_map(|(project, day, tasks)| {
            let mut block = format!(
                "{} 2026-12-0{day}\n# session of day {day}\n",
                PROJECTS[project]
            );
            for (title, sentences, list) in tasks {
                let label = [
                    "Preference signals",
                    "Reusable knowledge",
                    "Failures and how to do differently",
                ][list];
                let title = TITLES[title];
                writeln!(block, "## Task 1: {title}\nOutcome: success\n{label}:").unwrap();
                for index in sentences {
                    writeln!(block, "- {} (line {day})", SENTENCES[index]).unwrap();
                }
            }
            block
        })
}

prop_compose! {
    fn cases()(
        recaps in prop::collection::vec(recap_block(), 0..7),
        notes in prop::collection::btree_set(0..NOTES.len(), 0..3),
        withheld in prop::collection::vec(0..12_usize, 0..2),
    ) -> Case {
        let mut blocks: Vec<String> = recaps
            .iter()
            .enumerate()
            .map(|(index, block)| format!("@@ recap {index} {block}"))
            .collect();
        blocks.extend(notes.iter().map(|index| format!("@@ note 2026-12-0{} n{index}\n{}\n", index + 1, NOTES[*index])));
        Case { blocks, withheld }
    }
}

fn version() -> impl Strategy<Value = MemoryVersion> {
    prop::sample::select(MemoryVersion::ALL.to_vec())
}

/// As a caller that knows nothing of the last baseline would hand them in.
fn with_everything_new(mut inputs: OfflineInputs) -> OfflineInputs {
    inputs
        .recaps
        .iter_mut()
        .for_each(|one| one.before = Before::Absent);
    inputs
        .notes
        .iter_mut()
        .for_each(|one| one.before = Before::Absent);
    inputs
}

/// The first lines that differ, with what stands around them.
fn difference(left: &str, right: &str) -> Option<String> {
    if left == right {
        return None;
    }
    let (left, right): (Vec<&str>, Vec<&str>) = (left.lines().collect(), right.lines().collect());
    let at = left
        .iter()
        .zip(&right)
        .take_while(|(left, right)| left == right)
        .count();
    let around = |lines: &[&str]| {
        lines[at.saturating_sub(4).min(lines.len())..(at + 4).min(lines.len())].join("\n")
    };
    Some(format!(
        "--- left\n{}\n--- right\n{}",
        around(&left),
        around(&right)
    ))
}

fn assert_valid(output: &OfflineOutput, version: MemoryVersion) {
    let summary = output.summary.as_str();
    assert_eq!(summary.lines().next(), Some("v1"));
    for heading in [
        "## User Profile",
        "## User preferences",
        "## General Tips",
        "## What's in Memory",
    ] {
        assert_eq!(
            summary.lines().filter(|line| *line == heading).count(),
            1,
            "{summary}"
        );
    }
    if version == MemoryVersion::V2 {
        assert!(summary.len() < SUMMARY_V2_BYTES_LIMIT);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_inputs_has_no_effect(case in cases(), version in version(), seed in any::<usize>()) {
        let mut shuffled = case.clone();
        for index in 0..shuffled.blocks.len() {
            let other = seed.rotate_left(7 * u32::try_from(index).unwrap()) % shuffled.blocks.len();
            shuffled.blocks.swap(index, other);
        }
        let one = Folder::new(version).pass(&case.story());
        let other = Folder::new(version).pass(&shuffled.story());
        prop_assert_eq!(difference(&both(&one), &both(&other)), None);
        prop_assert_eq!(one, other);
    }

    #[test]
    fn a_second_pass_changes_nothing(case in cases(), version in version()) {
        let mut folder = Folder::new(version);
        let first = folder.pass(&case.story());
        assert_valid(&first, version);
        let known = folder.inputs(&case.story());
        let second = consolidate(&known);
        prop_assert_eq!(difference(&both(&second), &both(&first)), None);
        prop_assert_eq!(&second.retired, &[]);
        let third = consolidate(&with_everything_new(known));
        prop_assert_eq!(difference(&both(&third), &both(&first)), None);
        prop_assert_eq!(&third.retired, &[]);
    }

    #[test]
    fn going_there_by_steps_says_what_going_at_once_says(before in cases(), after in cases(), version in version()) {
        let mut folder = Folder::new(version);
        folder.pass(&before.story());
        let by_steps = folder.pass(&after.story());
        let at_once = Folder::new(version).pass(&after.story());
        let lines = |output: &OfflineOutput| {
            let text = both(output);
            let mut lines: Vec<String> = text.lines().map(without_numbers).collect();
            lines.sort();
            lines.join("\n")
        };
        prop_assert_eq!(difference(&lines(&by_steps), &lines(&at_once)), None, "\n{}\n{}", both(&by_steps), both(&at_once));
        let again = folder.pass(&after.story());
        prop_assert_eq!(difference(&both(&again), &both(&by_steps)), None);
    }

    #[test]
    fn withheld_statements_are_in_no_output(case in cases(), version in version()) {
        let output = Folder::new(version).pass(&case.story());
        for index in &case.withheld {
            let plain = SENTENCES[*index].trim_start_matches(['#', '-', ' ']);
            prop_assert!(!both(&output).contains(plain), "{}", both(&output));
        }
    }

    #[test]
    fn a_persons_lines_stay_whatever_comes(before in cases(), after in cases(), version in version()) {
        let mut folder = Folder::new(version);
        folder.pass(&before.story());
        let mine = "kept by hand, 手で書いた";
        let add = |text: &mut Option<String>| {
            if let Some(text) = text {
                *text = text.replacen("## ", &format!("## Mine\n\n- {mine}\n  - nested\n\nand prose, {mine}\n\n## "), 1);
            }
        };
        add(&mut folder.summary);
        if folder.handbook.as_ref().is_some_and(|text| text.contains("## ")) {
            add(&mut folder.handbook);
        }
        let person = format!("@@ person MEMORY.md\n{mine}\nand prose, {mine}\n@@ person memory_summary.md\n{mine}\nand prose, {mine}\n");
        let had = [&folder.summary, &folder.handbook].map(|text| text.as_ref().map_or(0, |text| text.matches(mine).count()));
        let output = folder.pass(&format!("{}{person}", after.story()));
        let handbook = output.handbook.as_ref().map_or("", |text| text.as_str());
        prop_assert_eq!([output.summary.as_str().matches(mine).count(), handbook.matches(mine).count()], had, "{}", both(&output));
        let nested = format!("- {mine}\n  - nested\n");
        prop_assert!(output.summary.as_str().contains(&nested));
    }
}

/// Numbers of tasks follow the way that was gone, the rest does not.
fn without_numbers(line: &str) -> String {
    line.split("[Task ")
        .next()
        .unwrap_or_default()
        .trim_end()
        .trim_start_matches(['#', ' '])
        .trim_start_matches("Task ")
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .to_owned()
}

/// Many sessions, a few of them recent, in several projects and languages.
fn many(sessions: usize, projects: usize) -> String {
    let mut story = String::new();
    for index in 0..sessions {
        let day = 1 + index * 27 / sessions.max(1);
        let sentence = SENTENCES[index % SENTENCES.len()];
        writeln!(
            story,
            "@@ recap {index} team/project-{} 2026-11-{day:02}\n# session {index} 会話\n## Task 1: task number {index} in a row 作業\nOutcome: partial\n\
             Requests:\n- \"please do thing {index} quickly and well\" (line 2)\nPreference signals:\n- always: \"always do {index} before {sentence}\"\n\
             Reusable knowledge:\n- fact {index}: {sentence}\n- the value of setting {index} is {}\nKeywords: a{index}, b{index}, c{index}",
            index % projects.max(1),
            index * 7,
        )
        .unwrap();
    }
    story
}

#[test]
fn the_budget_is_met_however_many_sessions_there_are() {
    for version in MemoryVersion::ALL {
        for (sessions, projects, bytes_max) in [
            (1, 1, 8_000),
            (40, 3, 8_000),
            (300, 40, 8_000),
            (300, 300, 4_000),
            (60, 5, 1_000),
            (60, 5, 100_000),
            (5, 5, 300),
        ] {
            let mut folder = Folder::new(version);
            folder.summary_bytes_max = bytes_max;
            let output = folder.pass(&many(sessions, projects));
            let size = output.summary.as_str().len();
            assert!(
                size <= bytes_max.min(10_000),
                "{sessions} sessions: {size}\n{}",
                output.summary
            );
            assert_valid(&output, version);
            if sessions > 100 {
                assert!(
                    size > bytes_max * 8 / 10,
                    "{sessions} sessions use only {size}\n{}",
                    output.summary
                );
            }
            let again = consolidate(&with_everything_new(
                folder.inputs(&many(sessions, projects)),
            ));
            assert_eq!(difference(&both(&again), &both(&output)), None);
        }
    }
}

#[test]
fn every_project_is_named_while_there_is_room() {
    for version in MemoryVersion::ALL {
        let output = Folder::new(version).pass(&many(200, 30));
        for project in 0..30 {
            let name = format!("project-{project}");
            assert!(
                output.summary.as_str().contains(&name),
                "{name}\n{}",
                output.summary
            );
        }
    }
}

#[test]
fn a_persons_long_lines_are_the_last_to_go() {
    for version in MemoryVersion::ALL {
        let mut folder = Folder::new(version);
        folder.pass(&many(50, 5));
        let (mine, others) = (
            "mein Satz ".repeat(300),
            "another worker's line ".repeat(100),
        );
        let (mine, others) = (mine.trim().to_owned(), others.trim().to_owned());
        let summary = folder.summary.take().unwrap();
        let tips = format!("## General Tips\n\n- {others}\n- {mine}\n");
        folder.summary = Some(summary.replacen("## General Tips\n", &tips, 1));
        let person = format!("@@ person memory_summary.md\n{mine}\n");
        let more = format!(
            "{}@@ recap new team/x 2026-11-28\n## Task 1: one more\n{person}",
            many(50, 5)
        );
        folder.summary_bytes_max = 4_000;
        let output = folder.pass(&more);
        assert!(output.summary.as_str().contains(&mine));
        assert!(!output.summary.as_str().contains(&others));
        assert!(output.summary.as_str().len() <= 4_000);
        folder.summary_bytes_max = 2_000;
        let output = folder.pass(&format!(
            "{more}@@ recap newer team/x 2026-11-28\n## Task 1: yet one more\n"
        ));
        assert!(output.summary.as_str().contains(&mine));
        assert!(
            output.words.as_str().contains("2000 are allowed"),
            "{}",
            output.words
        );
    }
}
