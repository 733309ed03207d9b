//! Each case is a little history: one commit per row, with its kind, the lines
//! of the summary, and what its message tells of losses.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Survival, read};
use crate::domain::path::TreePath;
use crate::domain::time::Timestamp;
use crate::store::author::Author;
use crate::store::message::{CommitKind, CommitMessage};
use crate::store::{NewFile, Store, StorePaths, TreeChange};
use crate::text::redact::redact_str;

const NOW: Timestamp = Timestamp::from_seconds(1_764_576_000);

type Row<'a> = (CommitKind, &'a [&'a str], &'a str);

const TABS: &str = "indent this project with tabs";
const PORT: &str = "the dev server listens on port 8080";
const NEWER_PORT: &str = "the dev server listens on port 9090 now";
const WIKI: &str = "the old wiki has the deploy steps";
const MAKE: &str = "`make` needs GNU make";

#[test]
fn before_the_second_baseline_there_is_nothing_to_tell() {
    assert_eq!(told(&[]), "nothing");
    assert_eq!(told(&[(CommitKind::Baseline, &[TABS], "")]), "nothing");
    let edit = (CommitKind::Edit, &[TABS][..], "");
    assert_eq!(
        told(&[(CommitKind::Baseline, &[TABS, PORT], ""), edit]),
        "nothing"
    );
}

#[test]
fn each_way_of_leaving_is_counted_by_what_the_message_says() {
    check(
        &[
            (CommitKind::Baseline, &[TABS, PORT, WIKI, MAKE], ""),
            (
                CommitKind::Baseline,
                &[TABS, PORT],
                "- memory_summary.md:7: retired: it was shut down\n- memory_summary.md:8: no reason given\n",
            ),
        ],
        "1 baseline, 4 entries: 2 stand, 0 reworded, 1 retired, 1 unexplained",
    );
    // A message that tells nothing, and one that a worker wrote into.
    let report = "\nWorker report:\nGone:\n- memory_summary.md:6: merged into MEMORY.md\n";
    for told in ["", report] {
        check(
            &[
                (CommitKind::Baseline, &[TABS, PORT], ""),
                (CommitKind::Baseline, &[TABS], told),
            ],
            "1 baseline, 2 entries: 1 stand, 0 reworded, 1 untold",
        );
    }
}

#[test]
fn an_entry_is_followed_from_words_to_words() {
    check(
        &[
            (CommitKind::Baseline, &[PORT, TABS], ""),
            (CommitKind::Baseline, &[TABS, NEWER_PORT], ""),
            (
                CommitKind::Baseline,
                &["port 9090 now is what the dev server listens on", TABS],
                "",
            ),
        ],
        "2 baselines, 2 entries: 1 stand, 1 reworded",
    );
}

#[test]
fn what_left_between_baselines_was_taken_by_the_person() {
    for kind in [CommitKind::Edit, CommitKind::Forget, CommitKind::Revert] {
        check(
            &[
                (CommitKind::Baseline, &[TABS, PORT, WIKI], ""),
                (kind, &[TABS, WIKI], ""),
                (CommitKind::Baseline, &[TABS, WIKI, MAKE], ""),
                (kind, &[TABS, MAKE], ""),
            ],
            "1 baseline, 3 entries: 1 stand, 0 reworded, 2 taken_away",
        );
    }
}

#[test]
fn what_a_revert_brought_back_stands() {
    check(
        &[
            (CommitKind::Baseline, &[TABS, PORT], ""),
            (
                CommitKind::Baseline,
                &[TABS],
                "- memory_summary.md:6: no reason given\n",
            ),
            (CommitKind::Revert, &[TABS, PORT], ""),
        ],
        "1 baseline, 2 entries: 2 stand, 0 reworded",
    );
}

#[test]
fn only_the_last_baselines_count() {
    let gone = "- memory_summary.md:5: its sources are gone\n";
    let mut rows: Vec<Row<'_>> = vec![(CommitKind::Baseline, &[WIKI, TABS], "")];
    rows.push((CommitKind::Baseline, &[TABS, MAKE], gone));
    let lines: [&[&str]; 2] = [&[TABS, MAKE], &[TABS, MAKE, PORT]];
    for index in 0..3 {
        rows.push((CommitKind::Baseline, lines[index % 2], ""));
    }
    check(&rows, "3 baselines, 2 entries: 2 stand, 0 reworded");
}

#[track_caller]
fn check(rows: &[Row<'_>], expected: &str) {
    assert_eq!(told(rows), expected);
}

fn told(rows: &[Row<'_>]) -> String {
    let home = tempfile::tempdir().unwrap();
    let store = Store::init(StorePaths::in_home(home.path(), "memories"), NOW).unwrap();
    for (kind, lines, gone) in rows {
        commit(&store, *kind, lines, gone);
    }
    let head = store.head().unwrap();
    match read(&store, head, 3).unwrap() {
        Some(survival) => in_words(&survival),
        None => "nothing".to_owned(),
    }
}

fn commit(store: &Store, kind: CommitKind, lines: &[&str], gone: &str) {
    let bullets: Vec<String> = lines.iter().map(|line| format!("- {line}")).collect();
    let text = format!("v1\n\n## General Tips\n\n{}\n", bullets.join("\n"));
    let changes = [TreeChange {
        path: TreePath::parse("memory_summary.md").unwrap(),
        file: Some(NewFile {
            content: redact_str(&text),
            executable: false,
        }),
    }];
    let body = if gone.starts_with('-') {
        format!("Gone:\n{gone}")
    } else {
        gone.to_owned()
    };
    let message = CommitMessage::new(kind, redact_str(kind.label())).body(redact_str(&body));
    let lock = store.lock(Duration::from_secs(5)).unwrap();
    let head = store.head().unwrap();
    let author = Author::memrev();
    store
        .commit_paths(&lock, head, &changes, &message, &author, NOW)
        .unwrap();
}

fn in_words(survival: &Survival) -> String {
    let end = if survival.baselines == 1 { "" } else { "s" };
    let mut words = format!(
        "{} baseline{end}, {} entries: {} stand, {} reworded",
        survival.baselines, survival.entries, survival.word_for_word, survival.reworded
    );
    for (way, count) in &survival.gone {
        let _ = write!(words, ", {count} {}", way.label());
    }
    words
}
