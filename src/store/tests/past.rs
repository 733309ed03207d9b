//! History, consumed inputs, diffs and merges, judged by git.

use std::collections::BTreeSet;

use super::{Folder, NOW, path, redacted, run, tree_changes};
use crate::domain::id::ObjectId;
use crate::store::Publication;
use crate::store::author::Author;
use crate::store::message::{ChangeKind, CommitKind, CommitMessage, Input};

const NOTE: &str = "extensions/ad_hoc/notes/n.md";

/// A baseline that consumed the note as it is now.
fn baseline(folder: &Folder, summary: &str) -> ObjectId {
    let note = folder.store.snapshot(folder.head()).unwrap().files[&path(NOTE)];
    let input = Input {
        change: ChangeKind::Added,
        path: path(NOTE),
        blob: note.id,
        thread_id: None,
    };
    let message = CommitMessage::new(CommitKind::Baseline, redacted("baseline: 1 note"));
    let publication = Publication {
        run: &run("r1"),
        expected_head: folder.head(),
        changes: tree_changes(&[("memory_summary.md", Some(summary))]),
        message: message.inputs([input]),
        author: Author::memrev(),
    };
    folder
        .store
        .publish(&folder.lock(), &publication, NOW)
        .unwrap()
        .commit
}

fn consumed(folder: &Folder) -> BTreeSet<String> {
    let head = folder.store.snapshot(folder.head()).unwrap();
    let consumed = folder.store.consumption(head.commit).unwrap().versions;
    let is_held = |path, id| head.files.get(path).is_some_and(|blob| blob.id == id);
    (consumed.iter())
        .filter(|(path, id)| is_held(path, *id))
        .map(|(path, _)| path.to_string())
        .collect()
}

#[test]
fn an_input_is_consumed_while_the_baseline_that_names_it_stands() {
    let folder = Folder::with(&[(NOTE, "remember\n")]);
    let is_consumed = || !consumed(&folder).is_empty();
    assert!(!is_consumed());
    let first = baseline(&folder, "v1\none\n");
    assert!(is_consumed());
    folder.git(&["revert", "--no-edit", &first.to_string()]);
    assert!(!is_consumed(), "a plain revert counts");
    folder.git(&["revert", "--no-edit", "HEAD"]);
    assert!(is_consumed(), "so does reverting the revert");
    folder.git(&["revert", "--no-edit", "HEAD"]);
    assert!(!is_consumed());
    baseline(&folder, "v1\ntwo\n");
    assert!(is_consumed(), "a later baseline names it anew");
    folder.write(NOTE, "edited\n");
    folder.commit_all("edit: note");
    assert!(!is_consumed(), "another version is another input");
    folder.git(&["reset", "-q", "--hard", "HEAD~"]);
    assert!(is_consumed());
    folder.git(&["reset", "-q", "--hard", "HEAD~"]);
    assert!(!is_consumed(), "a reset makes it pending again");
}

#[test]
fn our_own_revert_is_the_same_as_gits() {
    let folder = Folder::with(&[(NOTE, "remember\n")]);
    let first = baseline(&folder, "v1\none\n");
    let parent = folder.store.commit(first).unwrap().parents[0];
    folder.write("other.md", "later\n");
    folder.commit_all("edit: later");
    let merged = folder
        .store
        .merge_commits(first, folder.head(), parent)
        .unwrap();
    assert!(merged.conflicts.is_empty());
    assert_eq!(merged.files.len(), 1);
    assert_eq!(
        (&merged.files[0].path, &merged.files[0].file),
        (&path("memory_summary.md"), &None)
    );
    let message = CommitMessage::new(CommitKind::Revert, redacted("revert: it")).reverts(first);
    let publication = Publication {
        run: &run("r2"),
        expected_head: folder.head(),
        changes: tree_changes(&[("memory_summary.md", None)]),
        message,
        author: Author::memrev(),
    };
    folder
        .store
        .publish(&folder.lock(), &publication, NOW)
        .unwrap();
    assert!(consumed(&folder).is_empty());
    let ours = folder.git(&["rev-parse", "HEAD^{tree}"]);
    folder.git(&["reset", "-q", "--hard", "HEAD~"]);
    folder.git(&["revert", "--no-edit", &first.to_string()]);
    assert_eq!(folder.git(&["rev-parse", "HEAD^{tree}"]), ours);
}

#[test]
fn merged_branches_count_and_deletions_are_remembered() {
    let folder = Folder::with(&[(NOTE, "remember\n")]);
    folder.git(&["checkout", "-q", "-b", "side"]);
    folder.git(&["commit", "-q", "--allow-empty", "-m", "side"]);
    folder.git(&["checkout", "-q", "main"]);
    baseline(&folder, "v1\none\n");
    folder.git(&["checkout", "-q", "side"]);
    folder.git(&["merge", "-q", "--no-edit", "main"]);
    folder.git(&["checkout", "-q", "main"]);
    folder.git(&["merge", "-q", "--ff-only", "side"]);
    assert_eq!(consumed(&folder).len(), 1);
    std::fs::remove_file(folder.at(NOTE)).unwrap();
    folder.commit_all("edit: note goes");
    assert!(consumed(&folder).is_empty());
    let latest = folder.store.consumption(folder.head()).unwrap().latest;
    assert_eq!(latest[&path(NOTE)].change, ChangeKind::Added);
}

#[test]
fn history_is_read_as_git_reads_it() {
    let folder = Folder::with(&[("a.md", "1\n")]);
    folder.write("a.md", "2\n");
    folder.git(&["commit", "-qam", "by hand\n\nwith a body"]);
    baseline_of(&folder);
    let commits: Vec<_> = folder
        .store
        .history(folder.head())
        .map(Result::unwrap)
        .collect();
    let ids: Vec<String> = commits.iter().map(|commit| commit.id.to_string()).collect();
    assert_eq!(
        ids.join("\n"),
        folder.git(&["log", "--first-parent", "--format=%H"])
    );
    assert_eq!(commits[1].subject.unredacted(), "by hand");
    assert_eq!(commits[1].body.unredacted(), "with a body");
    assert_eq!(commits[1].author.name, "Ada");
    assert_eq!(commits[0].trailers.kind, Some(CommitKind::Baseline));
    assert_eq!(commits[0].at, NOW);
    let changed = folder.store.changed_paths(commits[1].id).unwrap();
    assert_eq!(
        changed.iter().map(super::shown).collect::<Vec<_>>(),
        ["M a.md"]
    );
    let root = commits.last().unwrap();
    assert!(folder.store.changed_paths(root.id).unwrap().is_empty());
    let query = folder.git(&[
        "log",
        "--format=%(trailers:key=Memrev-Kind,valueonly,separator=%x2c)",
        "-1",
    ]);
    assert_eq!(query, "baseline");
}

fn baseline_of(folder: &Folder) {
    folder.publish(&[("b.md", Some("b\n"))]).unwrap();
}

#[test]
fn diffs_equal_those_of_git() {
    let old = (1..60).fold(String::new(), |text, line| text + &format!("line {line}\n"));
    let new = old
        .replace("line 7\n", "seven\nand a half\n")
        .replace("line 40\n", "");
    let new = format!("first\n{new}last, no newline");
    let folder = Folder::with(&[
        ("a b.md", &old),
        ("gone.md", "x\ny\n"),
        ("é.md", "1"),
        ("empty.md", ""),
    ]);
    let before = folder.head();
    folder
        .publish(&[
            ("a b.md", Some(&new)),
            ("gone.md", None),
            ("é.md", Some("1\n")),
            ("empty.md", None),
            ("new.md", Some("n\n")),
        ])
        .unwrap();
    let diffs = folder.store.diff(Some(before), folder.head()).unwrap();
    let ours: String = diffs.iter().map(|diff| diff.text.as_str()).collect();
    let arguments = [
        "-c",
        "core.quotePath=false",
        "diff",
        "--no-renames",
        "--histogram",
    ];
    let commits = [before.to_string(), "HEAD".to_owned()];
    let arguments: Vec<&str> = arguments
        .into_iter()
        .chain(commits.iter().map(String::as_str))
        .collect();
    let theirs = folder.git(&arguments);
    let plain = |text: &str| -> Vec<String> {
        (text.lines().filter(|line| !line.starts_with("index ")))
            .map(|line| match line.rfind(" @@ ") {
                // The name of a function follows, in git's.
                Some(at) if line.starts_with("@@ ") => line[..at + 3].to_owned(),
                // A tab marks the end of a name with a space.
                _ => line.trim_end_matches('\t').to_owned(),
            })
            .collect()
    };
    assert_eq!(plain(&ours), plain(&theirs));
    let stat: Vec<_> = (diffs.iter())
        .map(|diff| (diff.path.as_str(), diff.lines_added, diff.lines_removed))
        .collect();
    assert_eq!(
        stat,
        [
            ("a b.md", 4, 2),
            ("empty.md", 0, 0),
            ("gone.md", 0, 2),
            ("new.md", 1, 0),
            ("é.md", 1, 1)
        ]
    );
}

#[test]
fn changes_of_a_worker_merge_with_what_a_person_did_meanwhile() {
    let folder = Folder::with(&[
        ("both.md", "1\n2\n3\n4\n5\n"),
        ("clash.md", "1\n"),
        ("gone.md", "1\n"),
        ("only.md", "1\n"),
    ]);
    let base = folder.head();
    folder.write("both.md", "person\n2\n3\n4\n5\n");
    folder.write("clash.md", "person\n");
    std::fs::remove_file(folder.at("gone.md")).unwrap();
    folder.commit_all("edit: by a person");
    let theirs = tree_changes(&[
        ("both.md", Some("1\n2\n3\n4\nworker\n")),
        ("clash.md", Some("worker\n")),
        ("gone.md", Some("worker\n")),
        ("only.md", None),
        ("new.md", Some("worker\n")),
    ]);
    let merged = folder
        .store
        .merge_changes(base, folder.head(), &theirs)
        .unwrap();
    assert_eq!(merged.conflicts, [path("clash.md"), path("gone.md")]);
    let files: Vec<_> = (merged.files.iter())
        .map(|file| {
            (
                file.path.as_str(),
                file.file.as_ref().map(|text| text.content.unredacted()),
            )
        })
        .collect();
    assert_eq!(
        files,
        [
            ("both.md", Some("person\n2\n3\n4\nworker\n")),
            ("new.md", Some("worker\n")),
            ("only.md", None),
        ]
    );
}
