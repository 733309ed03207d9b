//! Processes killed or stopped between any two steps, and what the next finds.
//!
//! The victim is this test program itself, started again for one test with
//! `MEMREV_STORE_VICTIM` naming its home.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use super::{Folder, paths, tree_changes};
use crate::store::author::Author;
use crate::store::message::{CommitKind, CommitMessage};
use crate::store::{Publication, Store};

pub(super) const VICTIM: &str = "MEMREV_STORE_VICTIM";
const TEST: &str = "store::tests::crash::a_kill_between_any_two_steps_leaves_the_old_or_the_new";

pub(super) const OLD: [(&str, &str); 4] = [
    ("MEMORY.md", "1\n2\n3\n4\n5\n"),
    ("memory_summary.md", "v1\nold\n"),
    ("skills/a/SKILL.md", "a\n"),
    ("keep.md", "keep\n"),
];
pub(super) const NEW: [(&str, Option<&str>); 4] = [
    ("MEMORY.md", Some("one\n2\n3\n4\n5\n")),
    ("memory_summary.md", Some("v1\nnew\n")),
    ("skills/a/SKILL.md", None),
    ("skills/b/SKILL.md", Some("b\n")),
];

/// What the victim does: recover, then publish.
pub(super) fn be_the_victim(home: &Path) {
    let store = Store::open(paths(home)).unwrap();
    let lock = store.lock(Duration::from_secs(20)).unwrap();
    store.recover(&lock).unwrap();
    let publication = Publication {
        run: &super::run("r1"),
        expected_head: store.head().unwrap(),
        changes: tree_changes(&NEW),
        message: CommitMessage::new(CommitKind::Baseline, super::redacted("baseline: test"))
            .run(super::run("r1")),
        author: Author::memrev(),
    };
    store.publish(&lock, &publication, super::NOW).unwrap();
}

pub(super) fn victim(folder: &Folder, test: &str, stop: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1", "-q"])
        .env(VICTIM, folder.temporary.path())
        .env("MEMREV_STOP", stop)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

pub(super) fn is_new(folder: &Folder) -> bool {
    let summary = folder.read("memory_summary.md").unwrap();
    let is_new = summary == "v1\nnew\n";
    assert_eq!(folder.read("MEMORY.md").unwrap().starts_with("one"), is_new);
    assert_eq!(folder.at("skills/a/SKILL.md").exists(), !is_new);
    assert_eq!(folder.at("skills/b/SKILL.md").exists(), is_new);
    assert_eq!(folder.read("keep.md").unwrap(), "keep\n");
    is_new
}

#[test]
fn a_kill_between_any_two_steps_leaves_the_old_or_the_new() {
    if let Some(home) = std::env::var_os(VICTIM) {
        return be_the_victim(Path::new(&home));
    }
    let mut seen = (0, 0);
    for n in 1..200 {
        let folder = Folder::with(&OLD);
        let old_head = folder.head();
        let ended = victim(&folder, TEST, &format!("kill:{n}")).wait().unwrap();
        if ended.success() {
            assert!(is_new(&folder));
            assert!(20 < n, "there are {n} points");
            assert!(5 < seen.0 && 5 < seen.1, "{seen:?}");
            return;
        }
        let recovery = folder.store.recover(&folder.lock()).unwrap();
        assert!(recovery.late_edits.is_empty(), "stop {n}: stale is no edit");
        assert_eq!(is_new(&folder), folder.head() != old_head, "stop {n}");
        folder.assert_in_order();
        if is_new(&folder) {
            seen.1 += 1;
        } else {
            seen.0 += 1;
            be_the_victim(folder.temporary.path());
        }
        assert!(is_new(&folder));
        folder.assert_in_order();
        let left = |name: &str| crate::sys::fs::list(&folder.at(name)).unwrap();
        folder.store.recover(&folder.lock()).unwrap();
        assert!(left(".git/memrev/incoming").is_empty());
        assert!(left(".git/memrev/locks").is_empty());
        assert_eq!(
            folder.store.recover(&folder.lock()).unwrap(),
            crate::store::Recovery::default()
        );
    }
    panic!("it never ends");
}

#[test]
fn recovery_itself_may_be_killed_anywhere() {
    if let Some(home) = std::env::var_os(VICTIM) {
        let store = Store::open(paths(Path::new(&home))).unwrap();
        let lock = store.lock(Duration::from_secs(20)).unwrap();
        store.recover(&lock).unwrap();
        return;
    }
    let test = "store::tests::crash::recovery_itself_may_be_killed_anywhere";
    for n in 1..200 {
        let folder = Folder::with(&OLD);
        victim(&folder, TEST, "kill:publish.main_moved")
            .wait()
            .unwrap();
        // An edit of a stale file, made before anybody recovered.
        folder.write("MEMORY.md", "1\n2\n3\n4\nfive\n");
        let ended = victim(&folder, test, &format!("kill:{n}")).wait().unwrap();
        folder.store.recover(&folder.lock()).unwrap();
        assert_eq!(
            folder.read("MEMORY.md").unwrap(),
            "one\n2\n3\n4\nfive\n",
            "stop {n}"
        );
        assert_eq!(folder.changes(), ["M MEMORY.md"], "stop {n}");
        assert_eq!(folder.git(&["fsck", "--strict", "--no-dangling"]), "");
        if ended.success() {
            assert!(10 < n, "there are {n} points");
            return;
        }
    }
    panic!("it never ends");
}

/// Stops the victim at a point, lets a person edit, lets it go on.
#[cfg(unix)]
#[track_caller]
fn edit_at(point: &str, edit: impl Fn(&Folder)) -> Folder {
    let folder = Folder::with(&OLD);
    let mut child = victim(&folder, TEST, &format!("freeze:{point}"));
    let pid = rustix::process::Pid::from_child(&child);
    wait_until_stopped(child.id());
    edit(&folder);
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    assert!(child.wait().unwrap().success());
    folder
}

#[cfg(unix)]
pub(super) fn wait_until_stopped(pid: u32) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while Instant::now() < deadline {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let state = &stat[stat.rfind(')').unwrap()..];
        if state.starts_with(") T") {
            return;
        }
        std::thread::yield_now();
    }
    panic!("the victim did not stop");
}

#[cfg(target_os = "linux")]
#[test]
fn an_edit_in_the_last_moment_is_merged_with_the_version_it_was_made_on() {
    for point in [
        "publish.objects_written",
        "publish.record_written",
        "publish.main_moved",
    ] {
        let folder = edit_at(point, |folder| {
            folder.write("MEMORY.md", "1\n2\n3\n4\nfive\n");
        });
        assert_eq!(
            folder.read("MEMORY.md").unwrap(),
            "one\n2\n3\n4\nfive\n",
            "{point}"
        );
        assert_eq!(folder.changes(), ["M MEMORY.md"]);
        assert_eq!(folder.git(&["status", "--porcelain"]), " M MEMORY.md");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_person_wins_what_both_changed_and_what_they_made_or_removed() {
    let folder = edit_at("publish.main_moved", |folder| {
        folder.write("memory_summary.md", "v1\nperson\n");
        folder.write("skills/b/SKILL.md", "person\n");
        folder.write("skills/a/SKILL.md", "person\n");
        std::fs::remove_file(folder.at("MEMORY.md")).unwrap();
    });
    assert_eq!(folder.read("memory_summary.md").unwrap(), "v1\nperson\n");
    assert_eq!(folder.read("skills/b/SKILL.md").unwrap(), "person\n");
    assert_eq!(folder.read("skills/a/SKILL.md").unwrap(), "person\n");
    assert_eq!(folder.read("MEMORY.md"), None);
    let expected = [
        "D MEMORY.md",
        "M memory_summary.md",
        "A skills/a/SKILL.md",
        "M skills/b/SKILL.md",
    ];
    assert_eq!(folder.changes(), expected);
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_became_a_link_is_not_followed() {
    let folder = edit_at("publish.main_moved", |folder| {
        let elsewhere = folder.temporary.path().join("elsewhere");
        std::fs::rename(folder.at("skills"), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.at("skills")).unwrap();
    });
    let elsewhere = folder.temporary.path().join("elsewhere");
    assert_eq!(std::fs::read(elsewhere.join("a/SKILL.md")).unwrap(), b"a\n");
    assert!(!elsewhere.join("b").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_person_committed_on_top_before_recovery_stands() {
    let folder = Folder::with(&OLD);
    victim(&folder, TEST, "kill:publish.main_moved")
        .wait()
        .unwrap();
    folder.write("memory_summary.md", "v1\nmine\n");
    folder.git(&["commit", "-qm", "by hand", "--", "memory_summary.md"]);
    folder.store.recover(&folder.lock()).unwrap();
    assert_eq!(folder.read("MEMORY.md").unwrap(), "one\n2\n3\n4\n5\n");
    assert_eq!(folder.read("memory_summary.md").unwrap(), "v1\nmine\n");
    folder.assert_in_order();
    assert_eq!(folder.git(&["log", "-1", "--format=%s"]), "by hand");
}

/// What a person's `git` in the middle of a publication says, in words for
/// `git`, each a command.
#[cfg(target_os = "linux")]
const IN_THE_WINDOW: [&[&[&str]]; 5] = [
    &[&["commit", "-q", "-a", "-m", "by hand"]],
    &[&["add", "-A"], &["commit", "-q", "-m", "by hand"]],
    &[&["commit", "-q", "-a", "--amend", "--no-edit"]],
    &[
        &["commit", "-q", "-a", "-m", "by hand"],
        &["commit", "-q", "--allow-empty", "-m", "again"],
    ],
    &[&["stash", "-q"]],
];

#[cfg(target_os = "linux")]
#[test]
fn what_git_took_up_of_a_half_old_folder_is_put_back() {
    for commands in IN_THE_WINDOW {
        for point in [
            "publish.main_moved",
            "publish.file_moved",
            "publish.files_moved",
        ] {
            for is_killed in [false, true] {
                let meddle = |folder: &Folder| {
                    for command in commands.iter().copied() {
                        // There may be nothing to commit or to stash.
                        super::run_git(folder.store.folder(), command, &[]).ok();
                    }
                };
                let folder = if is_killed {
                    let folder = Folder::with(&OLD);
                    let stop = format!("kill:{point}");
                    victim(&folder, TEST, &stop).wait().unwrap();
                    meddle(&folder);
                    folder
                } else {
                    edit_at(point, meddle)
                };
                folder.store.recover(&folder.lock()).unwrap();
                let case = format!("{commands:?} {point} {is_killed}");
                assert!(is_new(&folder), "{case}");
                if commands[0][0] == "stash" {
                    // Nothing to stash when all files were in place.
                    let list = folder.git(&["stash", "list"]);
                    if !list.is_empty() {
                        folder.git(&["stash", "pop", "-q"]);
                        folder.store.recover(&folder.lock()).unwrap();
                        assert!(is_new(&folder), "{case}: popped");
                    }
                    folder.git(&["reset", "-q"]);
                }
                assert_eq!(folder.changes(), <[&str; 0]>::default(), "{case}");
                folder.assert_in_order();
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_person_changed_in_a_stale_commit_is_kept() {
    let folder = edit_at("publish.main_moved", |folder| {
        folder.write("MEMORY.md", "1\n2\n3\n4\nfive\n");
        folder.write("keep.md", "kept\n");
        folder.git(&["commit", "-q", "-a", "-m", "by hand"]);
    });
    assert_eq!(folder.read("MEMORY.md").unwrap(), "one\n2\n3\n4\nfive\n");
    assert_eq!(folder.read("keep.md").unwrap(), "kept\n");
    assert_eq!(folder.read("memory_summary.md").unwrap(), "v1\nnew\n");
    folder.assert_in_order();
}
