//! Publishing beside a person who edits.

use super::Folder;
use crate::store::error::StoreError;

#[test]
fn a_publication_is_one_commit_and_the_files() {
    let folder = Folder::with(&[
        ("MEMORY.md", "old\n"),
        ("skills/a/SKILL.md", "a\n"),
        ("keep.md", "k\n"),
    ]);
    let before = folder.head();
    let published = folder
        .publish(&[
            ("MEMORY.md", Some("new\n")),
            ("skills/a/SKILL.md", None),
            ("skills/b/SKILL.md", Some("b\n")),
            ("keep.md", Some("k\n")),
        ])
        .unwrap();
    assert!(published.late_edits.is_empty());
    assert_eq!(folder.head(), published.commit);
    assert_eq!(folder.read("MEMORY.md").unwrap(), "new\n");
    assert_eq!(folder.read("skills/b/SKILL.md").unwrap(), "b\n");
    assert!(!folder.at("skills/a").exists());
    let changed = folder.git(&[
        "diff",
        "--name-status",
        "--no-renames",
        &before.to_string(),
        "HEAD",
    ]);
    assert_eq!(
        changed,
        "M\tMEMORY.md\nD\tskills/a/SKILL.md\nA\tskills/b/SKILL.md"
    );
    folder.assert_in_order();
    // What was displaced stays for an hour, for programs that have it open.
    let displaced = || crate::sys::fs::list(&folder.at(".git/memrev/displaced")).unwrap();
    folder.store.recover(&folder.lock()).unwrap();
    assert_eq!(displaced().len(), 1);
    let record = std::fs::File::open(displaced()[0].path.join("record")).unwrap();
    let hours_ago = std::time::SystemTime::UNIX_EPOCH;
    record.set_modified(hours_ago).unwrap();
    folder.store.recover(&folder.lock()).unwrap();
    assert!(displaced().is_empty());
    folder.assert_in_order();
}

#[test]
fn a_file_and_a_folder_change_places() {
    let folder = Folder::with(&[("x", "x\n"), ("y/z", "z\n")]);
    folder
        .publish(&[
            ("x", None),
            ("x/in", Some("1\n")),
            ("y/z", None),
            ("y", Some("2\n")),
        ])
        .unwrap();
    assert_eq!(folder.read("x/in").unwrap(), "1\n");
    assert_eq!(folder.read("y").unwrap(), "2\n");
    folder.assert_in_order();
}

#[test]
fn an_edit_made_before_stops_the_publication() {
    let folder = Folder::with(&[("a.md", "1\n"), ("b.md", "1\n")]);
    let head = folder.head();
    folder.write("a.md", "edited\n");
    folder.write("new.md", "theirs\n");
    std::fs::remove_file(folder.at("b.md")).unwrap();
    for changes in [
        ("a.md", Some("2\n")),
        ("new.md", Some("ours\n")),
        ("b.md", Some("2\n")),
    ] {
        let refused = folder.publish(&[changes]).unwrap_err();
        assert!(matches!(refused, StoreError::WorkTreeChanged { ref paths } if paths.len() == 1));
    }
    assert_eq!(folder.head(), head);
    assert_eq!(folder.changes(), ["M a.md", "D b.md", "A new.md"]);
    // What lies there already, as it is to be, is no obstacle.
    folder
        .publish(&[
            ("a.md", Some("edited\n")),
            ("new.md", Some("theirs\n")),
            ("b.md", None),
        ])
        .unwrap();
    folder.assert_in_order();
}

#[test]
fn an_old_head_publishes_nothing() {
    let folder = Folder::with(&[("a.md", "1\n")]);
    let old = folder.head();
    folder.git(&["commit", "-q", "--allow-empty", "-m", "by hand"]);
    let refused = folder.publish_on(old, &[("a.md", Some("2\n"))]);
    assert!(matches!(refused, Err(StoreError::Moved { .. })));
    assert_eq!(folder.read("a.md").unwrap(), "1\n");
    assert!(!folder.at(".git/memrev/publication").exists());
}

#[test]
fn what_a_person_has_staged_elsewhere_stays_staged() {
    let folder = Folder::with(&[("a.md", "1\n"), ("b.md", "1\n")]);
    folder.write("b.md", "staged\n");
    folder.git(&["add", "b.md"]);
    folder.publish(&[("a.md", Some("2\n"))]).unwrap();
    assert_eq!(folder.git(&["status", "--porcelain"]), "M  b.md");
}

#[test]
fn an_edit_saved_into_a_displaced_file_is_merged_by_the_next_call() {
    use std::io::Write as _;
    let folder = Folder::with(&[("a.md", "1\n2\n3\n")]);
    // A program that has the file open and appends, such as `cat >> a.md`.
    let mut open = std::fs::OpenOptions::new()
        .append(true)
        .open(folder.at("a.md"))
        .unwrap();
    folder.publish(&[("a.md", Some("one\n2\n3\n"))]).unwrap();
    open.write_all(b"4\n").unwrap();
    drop(open);
    let recovery = folder.store.recover(&folder.lock()).unwrap();
    assert_eq!(recovery.late_edits.len(), 1);
    assert!(!recovery.late_edits[0].had_conflict);
    assert_eq!(folder.read("a.md").unwrap(), "one\n2\n3\n4\n");
    assert_eq!(folder.changes(), ["M a.md"]);
    assert!(
        folder
            .store
            .recover(&folder.lock())
            .unwrap()
            .late_edits
            .is_empty()
    );
}

#[test]
fn a_save_made_on_the_old_version_does_not_undo_the_baseline() {
    let folder = Folder::with(&[("a.md", "1\n2\n3\n4\n5\n"), ("b.md", "1\n2\n")]);
    folder
        .publish(&[
            ("a.md", Some("one\n2\n3\n4\n5\nnew\n")),
            ("b.md", Some("1\n")),
        ])
        .unwrap();
    // An editor had the old text and saves it with a change.
    folder.write("a.md", "1\n2\nthree\n4\n5\n");
    // This one puts the old version back, on purpose.
    folder.write("b.md", "1\n2\n");
    let recovery = folder.store.recover(&folder.lock()).unwrap();
    assert_eq!(recovery.late_edits.len(), 1);
    assert_eq!(folder.read("a.md").unwrap(), "one\n2\nthree\n4\n5\nnew\n");
    assert_eq!(folder.read("b.md").unwrap(), "1\n2\n");
    // An edit of the new version is what it is, deletions included.
    folder.write("a.md", "one\n2\nthree\n");
    assert!(
        folder
            .store
            .recover(&folder.lock())
            .unwrap()
            .late_edits
            .is_empty()
    );
    assert_eq!(folder.read("a.md").unwrap(), "one\n2\nthree\n");
    // What a person commits is what they want.
    folder.write("a.md", "1\n2\nthree\n4\n5\n");
    folder.git(&["commit", "-qam", "by hand"]);
    assert!(
        folder
            .store
            .recover(&folder.lock())
            .unwrap()
            .late_edits
            .is_empty()
    );
    folder.assert_in_order();
}
