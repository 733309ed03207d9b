//! Files that a person does not want in their work tree.

use super::Folder;

const FILES: [(&str, &str); 5] = [
    ("MEMORY.md", "1\n"),
    ("recaps/a.md", "a\n"),
    ("recaps/b.md", "b\n"),
    ("recaps/c.md", "c\n"),
    ("skills/a/SKILL.md", "a\n"),
];

#[track_caller]
fn check(prepare: &[&str]) {
    let folder = Folder::with(&FILES);
    folder.git(prepare);
    assert!(!folder.at("recaps/a.md").exists());
    folder.assert_in_order();

    folder.write("skills/a/SKILL.md", "A\n");
    assert_eq!(folder.changes(), ["M skills/a/SKILL.md"]);
    folder.commit_all("edit: beside");
    folder.assert_in_order();

    let changes = [
        ("MEMORY.md", Some("2\n")),
        ("recaps/a.md", Some("A\n")),
        ("recaps/b.md", None),
        ("recaps/new/d.md", Some("d\n")),
    ];
    let published = folder.publish(&changes).unwrap();
    assert_eq!(published.late_edits, []);
    folder.assert_in_order();
    assert!(!folder.at("recaps/a.md").exists(), "it stays out");
    assert_eq!(folder.git(&["show", "HEAD:recaps/a.md"]), "A");
    assert_eq!(folder.git(&["show", "HEAD:recaps/c.md"]), "c");
    let listed = folder.git(&["ls-tree", "-r", "--name-only", "HEAD", "recaps/"]);
    assert_eq!(listed, "recaps/a.md\nrecaps/c.md\nrecaps/new/d.md");

    folder.git(&["sparse-checkout", "disable"]);
    assert_eq!(folder.read("recaps/a.md").unwrap(), "A\n");
    folder.assert_in_order();
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_not_deleted() {
    check(&["sparse-checkout", "set", "skills"]);
    check(&["sparse-checkout", "set", "--sparse-index", "skills"]);
}

#[test]
fn a_missing_file_that_git_was_told_to_overlook_is_not_deleted() {
    let folder = Folder::with(&FILES);
    folder.git(&["update-index", "--assume-unchanged", "recaps/a.md"]);
    std::fs::remove_file(folder.at("recaps/a.md")).unwrap();
    std::fs::remove_file(folder.at("recaps/b.md")).unwrap();
    assert_eq!(folder.changes(), ["D recaps/b.md"]);
    // What is there is compared like any other file.
    folder.write("recaps/a.md", "edited\n");
    assert_eq!(folder.changes(), ["M recaps/a.md", "D recaps/b.md"]);
}
