//! States of HEAD and index that we must not touch.

use super::{Folder, NOW, run};
use crate::store::KeptKind;
use crate::store::error::{NotOurs, StoreError};

#[track_caller]
fn check(prepare: &[&[&str]], expected: &str) {
    let folder = Folder::with(&[("a.md", "1\n"), ("b.md", "1\n")]);
    folder.git(&["branch", "side"]);
    folder.write("a.md", "2\n");
    folder.commit_all("edit: main");
    for arguments in prepare {
        run_anyhow(&folder, arguments);
    }
    let state = match folder.store.readiness() {
        Ok(head) => {
            assert_eq!(head, folder.head());
            "ready".to_owned()
        }
        Err(StoreError::NotOurs { state, .. }) => state.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(state, expected);
}

/// A conflict makes `git merge` fail, which is what these tests are after.
fn run_anyhow(folder: &Folder, arguments: &[&str]) {
    let name = std::process::Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=a@b.c"])
        .args(arguments)
        .env("HOME", folder.temporary.path())
        .current_dir(folder.store.folder())
        .output();
    name.unwrap();
}

#[test]
fn only_a_quiet_main_is_ours_to_write() {
    check(&[], "ready");
    check(
        &[&["checkout", "-q", "side"]],
        "branch `side` is checked out, not `main`",
    );
    check(
        &[&["checkout", "-q", "--orphan", "new"]],
        "branch `new` is checked out, not `main`",
    );
    check(&[&["bisect", "start"]], "a bisect is under way");
    check(
        &[&["revert", "--no-commit", "HEAD"]],
        "a revert is under way",
    );
    let diverge: &[&str] = &["checkout", "-q", "side"];
    let edit: &[&str] = &["-c", "alias.x=!echo 3 > a.md", "x"];
    let commit: &[&str] = &["commit", "-qam", "side"];
    let back: &[&str] = &["checkout", "-q", "main"];
    let merge: &[&str] = &["merge", "side"];
    check(
        &[diverge, edit, commit, back, merge],
        "a merge is under way",
    );
    check(
        &[diverge, edit, commit, &["rebase", "main"]],
        "a rebase is under way",
    );
    check(
        &[diverge, edit, commit, back, &["cherry-pick", "side"]],
        "a cherry-pick is under way",
    );
    let quit: &[&str] = &["merge", "--quit"];
    check(
        &[diverge, edit, commit, back, merge, quit],
        "the index has unmerged files: `a.md`",
    );
}

#[test]
fn a_detached_head_is_named() {
    let folder = Folder::with(&[("a.md", "1\n")]);
    let head = folder.head();
    folder.git(&["checkout", "-q", "--detach"]);
    let state = folder.store.readiness();
    assert!(matches!(
        state,
        Err(StoreError::NotOurs { state: NotOurs::Detached { commit }, .. }) if commit == head
    ));
    let refused = folder.publish(&[("a.md", Some("2\n"))]);
    assert!(matches!(refused, Err(StoreError::NotOurs { .. })));
    assert_eq!(folder.read("a.md").unwrap(), "1\n");
}

#[test]
fn content_that_is_only_in_the_index_is_kept_once() {
    let folder = Folder::with(&[("a.md", "1\n"), ("b.md", "1\n")]);
    folder.write("a.md", "staged\n");
    folder.write("new.md", "staged, too\n");
    folder.git(&["add", "a.md", "new.md"]);
    folder.write("a.md", "work tree\n");
    std::fs::remove_file(folder.at("new.md")).unwrap();
    folder.write("b.md", "staged and there\n");
    folder.git(&["add", "b.md"]);
    let lock = folder.lock();
    let kept = folder
        .store
        .keep_staged(&lock, &run("r1"), NOW)
        .unwrap()
        .unwrap();
    assert_eq!(folder.git(&["show", "refs/memrev/kept/r1:a.md"]), "staged");
    assert_eq!(
        folder.git(&["show", "refs/memrev/kept/r1:new.md"]),
        "staged, too"
    );
    assert_eq!(folder.git(&["show", "refs/memrev/kept/r1:b.md"]), "1");
    let again = folder.store.keep_staged(&lock, &run("r2"), NOW).unwrap();
    assert_eq!(again, Some(kept));
    drop(lock);
    folder.commit_all("edit: all");
    assert_eq!(folder.git(&["show", "HEAD:a.md"]), "work tree");
    assert_eq!(folder.store.kept_refs(KeptKind::Kept).unwrap().len(), 1);
}

#[test]
fn a_lock_of_git_is_waited_for_and_never_broken() {
    let folder = Folder::with(&[("a.md", "1\n")]);
    let lock_file = folder.at(".git/index.lock");
    crate::sys::fs::create_new(&lock_file, b"").unwrap();
    let head = folder.head();
    let refused = folder.publish(&[("a.md", Some("2\n"))]).unwrap_err();
    assert!(matches!(refused, StoreError::GitLocked { .. }), "{refused}");
    assert!(lock_file.exists());
    // The commit is on main and waits for recovery: nothing is half done.
    assert_ne!(folder.head(), head);
    std::fs::remove_file(&lock_file).unwrap();
    let recovery = folder.store.recover(&folder.lock()).unwrap();
    assert_eq!(recovery.finished, Some(folder.head()));
    assert_eq!(folder.read("a.md").unwrap(), "2\n");
    folder.assert_in_order();
}
