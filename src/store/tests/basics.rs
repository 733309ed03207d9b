//! Init, open, snapshots, changes and plain commits.

use std::time::Duration;

use super::{Folder, NOW, git_in, path, paths, redacted, run, tree_changes};
use crate::domain::limits::SNAPSHOT_FILE_BYTES_MAX;
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::message::{CommitKind, CommitMessage};
use crate::store::{KeptKind, Store, UnfitReason};

#[test]
fn init_makes_a_repository_that_git_likes_and_leaves_files_alone() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("memories");
    crate::sys::fs::make_folders(&folder.join("sub")).unwrap();
    crate::sys::fs::create_new(&folder.join("sub/a.md"), b"a\n").unwrap();
    let store = Store::init(paths(home.path()), NOW).unwrap();
    assert_eq!(git_in(&folder, &["status", "--porcelain"]), "?? sub/");
    assert_eq!(git_in(&folder, &["branch", "--show-current"]), "main");
    let log = git_in(
        &folder,
        &[
            "log",
            "--format=%an <%ae> %cI %s %(trailers:key=Memrev-Kind,valueonly)",
        ],
    );
    assert_eq!(
        log,
        "memrev <memrev@localhost> 2025-12-01T08:00:00Z init: an empty memory init"
    );
    assert_eq!(git_in(&folder, &["fsck", "--strict"]), "");
    assert!(git_in(&folder, &["reflog"]).contains("memrev: init: an empty memory"));
    let head = store.head().unwrap();
    let changes = store.changes(&store.snapshot(head).unwrap()).unwrap();
    assert_eq!(changes.files.len(), 1);
    assert_eq!(changes.files[0].path, path("sub/a.md"));
    assert!(changes.files[0].modified_at.is_some());

    let again = Store::init(paths(home.path()), NOW).unwrap();
    assert_eq!(again.head().unwrap(), head);
    let names: Vec<String> = (crate::sys::fs::list(&folder).unwrap().iter())
        .map(|entry| {
            entry
                .path
                .file_name()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert_eq!(names, [".git", "sub"]);
}

#[cfg(unix)]
#[test]
fn what_we_make_is_closed_to_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::with(&[("a.md", "a\n")]);
    folder
        .publish(&[("a.md", Some("b\n")), ("x/y.md", Some("y\n"))])
        .unwrap();
    let mode = |path: &str| folder.at(path).metadata().unwrap().permissions().mode() & 0o777;
    for path in ["", ".git", "x"] {
        assert_eq!(mode(path), 0o700, "{path}");
    }
    for path in [
        "a.md",
        "x/y.md",
        ".git/index",
        ".git/logs/HEAD",
        ".git/memrev-format",
    ] {
        assert_eq!(mode(path), 0o600, "{path}");
    }
}

#[test]
fn only_the_folders_own_repository_is_opened() {
    let outer = tempfile::tempdir().unwrap();
    git_in(outer.path(), &["init", "-q"]);
    let open = || Store::open(paths(outer.path())).err().unwrap();
    assert!(matches!(open(), StoreError::NotThere { .. }));
    crate::sys::fs::make_folders(&outer.path().join("memories/skills")).unwrap();
    assert!(matches!(open(), StoreError::NotThere { .. }));
    crate::sys::fs::create_new(&outer.path().join("memories/a.md"), b"a").unwrap();
    assert!(matches!(open(), StoreError::NoRepository { .. }));
    crate::sys::fs::create_new(&outer.path().join("memories/.git"), b"gitdir: ../.git").unwrap();
    assert!(matches!(open(), StoreError::Unusable { .. }));
    let init = Store::init(paths(outer.path()), NOW);
    assert!(matches!(init, Err(StoreError::Unusable { .. })));
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_a_link_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let target = home.path().join("elsewhere");
    crate::sys::fs::make_folders(&target).unwrap();
    std::os::unix::fs::symlink(&target, home.path().join("memories")).unwrap();
    let init = Store::init(paths(home.path()), NOW);
    assert!(matches!(init, Err(StoreError::FolderIsLink { .. })));
    assert!(crate::sys::fs::list(&target).unwrap().is_empty());
}

#[test]
fn a_newer_format_is_read_but_not_written() {
    let folder = Folder::with(&[("a.md", "a\n")]);
    crate::sys::fs::replace(&folder.at(".git/memrev-format"), b"2\n").unwrap();
    let store = Store::open(paths(folder.temporary.path())).unwrap();
    assert_eq!(
        store.snapshot(store.head().unwrap()).unwrap().files.len(),
        1
    );
    let refused = store.lock(Duration::ZERO).unwrap_err();
    assert!(
        refused
            .to_string()
            .ends_with("has format 2, this program writes format 1")
    );
    Store::init(paths(folder.temporary.path()), NOW).unwrap();
    assert_eq!(folder.read(".git/memrev-format").unwrap(), "2\n");
}

#[test]
fn a_repository_of_a_person_or_another_tool_is_taken_over_with_its_history() {
    for has_history in [true, false] {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("memories");
        crate::sys::fs::make_folders(&folder).unwrap();
        git_in(&folder, &["init", "-q", "-b", "main"]);
        crate::sys::fs::create_new(&folder.join("a.md"), b"a\n").unwrap();
        if has_history {
            git_in(&folder, &["add", "-A"]);
            git_in(&folder, &["commit", "-qm", "theirs"]);
        }
        let store = Store::init(paths(home.path()), NOW).unwrap();
        let subject = git_in(&folder, &["log", "--format=%s"]);
        assert_eq!(
            subject,
            if has_history {
                "theirs"
            } else {
                "init: an empty memory"
            }
        );
        assert_eq!(store.readiness().unwrap(), store.head().unwrap());
        assert_eq!(git_in(&folder, &["config", "core.autocrlf"]), "false");
    }
}

#[test]
fn every_file_counts_and_what_does_not_fit_is_named() {
    let folder = Folder::with(&[("a.md", "a\n"), ("gone.md", "x\n"), ("was/link.md", "x\n")]);
    folder.write(".gitignore", "*\n");
    folder.write(".hidden/b.md", "b\n");
    folder.write("phase2_workspace_diff.md", "of another tool\n");
    folder.write(".a.md.memrev-7.tmp", "side file\n");
    folder.write("bad\nname.md", "x\n");
    std::fs::remove_file(folder.at("gone.md")).unwrap();
    let large = std::fs::File::create(folder.at("large.bin")).unwrap();
    large.set_len(SNAPSHOT_FILE_BYTES_MAX + 1).unwrap();
    let fits = std::fs::File::create(folder.at("fits.bin")).unwrap();
    fits.set_len(SNAPSHOT_FILE_BYTES_MAX).unwrap();
    git_in(folder.store.folder(), &["init", "-q", "nested"]);
    let mut unfit = vec![
        ("bad\\nname.md", UnfitReason::Name),
        (
            "large.bin",
            UnfitReason::TooLarge {
                bytes: SNAPSHOT_FILE_BYTES_MAX + 1,
            },
        ),
        ("nested", UnfitReason::Repository),
    ];
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        std::fs::remove_dir_all(folder.at("was")).unwrap();
        std::os::unix::fs::symlink("/etc", folder.at("was")).unwrap();
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9.md");
        std::fs::File::create(folder.store.folder().join(name)).unwrap();
        unfit.extend([
            ("caf\\xe9.md", UnfitReason::Name),
            ("was", UnfitReason::Symlink),
        ]);
        unfit.sort();
    }
    let head = folder.store.snapshot(folder.head()).unwrap();
    let changes = folder.store.changes(&head).unwrap();
    let shown: Vec<String> = changes.files.iter().map(super::shown).collect();
    assert_eq!(
        shown,
        ["A .gitignore", "A .hidden/b.md", "A fits.bin", "D gone.md"]
    );
    let found: Vec<_> = (changes.unfit.iter())
        .map(|unfit| (unfit.path.as_str(), unfit.why))
        .collect();
    assert_eq!(found, unfit);
}

#[test]
fn a_change_within_the_same_tick_and_size_is_seen() {
    let folder = Folder::with(&[("a.md", "0\n")]);
    for round in 1..30 {
        // The index was written a moment ago; so is the file, with equal size.
        folder.write("a.md", &format!("{}\n", round % 10));
        assert_eq!(folder.changes(), ["M a.md"], "round {round}");
        folder.commit_all("edit: again");
        // An older edit must not look proven by a newer index.
        folder.write("b.md", &round.to_string());
        folder.commit_all("edit: other");
        assert_eq!(folder.git(&["status", "--porcelain"]), "");
    }
    folder.assert_in_order();
}

#[cfg(unix)]
#[test]
fn the_exec_bit_is_a_change() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::with(&[("run.sh", "x\n")]);
    std::fs::set_permissions(folder.at("run.sh"), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(folder.changes(), ["M run.sh"]);
    folder.commit_all("edit: mode");
    assert!(folder.git(&["ls-tree", "HEAD"]).starts_with("100755"));
    folder.assert_in_order();
}

#[test]
fn commits_of_known_paths_equal_those_of_git() {
    let folder = Folder::with(&[("a.md", "a\n"), ("d/b.md", "b\n"), ("d/c.md", "c\n")]);
    folder.write("a.md", "A\n");
    folder.write("d/e f.md", "e\n");
    std::fs::remove_file(folder.at("d/b.md")).unwrap();
    // A file makes way for a folder of its name, and the other way round.
    folder.write("x", "x\n");
    folder.write("y/z", "z\n");
    folder.commit_all("edit: one");
    std::fs::remove_file(folder.at("x")).unwrap();
    std::fs::remove_dir_all(folder.at("y")).unwrap();
    folder.write("x/inner", "x\n");
    folder.write("y", "y\n");
    folder.commit_all("edit: two");
    let ours = folder.git(&["rev-parse", "HEAD^{tree}"]);
    std::fs::remove_file(folder.at(".git/index")).unwrap();
    folder.git(&["add", "-A"]);
    assert_eq!(folder.git(&["write-tree"]), ours);
    folder.assert_in_order();
    // Without an index we make one that vouches for what lies there.
    std::fs::remove_file(folder.at(".git/index")).unwrap();
    folder.write("y", "yy\n");
    folder.commit_all("edit: three");
    folder.assert_in_order();
}

#[test]
fn a_commit_on_an_old_head_is_refused() {
    let folder = Folder::with(&[("a.md", "a\n")]);
    let old = folder.head();
    folder.write("a.md", "b\n");
    folder.git(&["commit", "-qam", "by hand"]);
    let message = CommitMessage::new(CommitKind::Edit, redacted("edit: late"));
    let changes = tree_changes(&[("a.md", Some("c\n"))]);
    let author = Author::memrev();
    let refused =
        (folder.store).commit_paths(&folder.lock(), old, &changes, &message, &author, NOW);
    assert!(matches!(refused, Err(StoreError::Moved { expected, .. }) if expected == old));
    folder.assert_in_order();
}

#[test]
fn two_threads_never_lose_a_commit() {
    let folder = Folder::with(&[("a.md", "a\n")]);
    let before = folder
        .git(&["rev-list", "--count", "HEAD"])
        .parse::<usize>()
        .unwrap();
    std::thread::scope(|scope| {
        for who in ["one", "two"] {
            let folder = &folder;
            scope.spawn(move || {
                for round in 0..8 {
                    let name = format!("{who}/{round}.md");
                    loop {
                        // The head is read without the lock, so it may be old.
                        let head = folder.head();
                        let lock = folder.lock();
                        let changes = tree_changes(&[(&name, Some("x\n"))]);
                        let message = CommitMessage::new(CommitKind::Edit, redacted(&name));
                        let author = Author::memrev();
                        match folder
                            .store
                            .commit_paths(&lock, head, &changes, &message, &author, NOW)
                        {
                            Ok(_) => break,
                            Err(StoreError::Moved { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    let after = folder
        .git(&["rev-list", "--count", "HEAD"])
        .parse::<usize>()
        .unwrap();
    assert_eq!(after, before + 16);
    assert_eq!(
        folder
            .git(&["ls-tree", "-r", "--name-only", "HEAD"])
            .lines()
            .count(),
        17
    );
    assert_eq!(folder.git(&["fsck", "--strict"]), "");
    assert_eq!(folder.git(&["reflog"]).lines().count(), after);
}

#[test]
fn hostile_surroundings_have_no_effect() {
    let home = tempfile::tempdir().unwrap();
    let outer = home.path().join("outer");
    crate::sys::fs::make_folders(&outer).unwrap();
    git_in(&outer, &["init", "-q"]);
    let store = Store::init(paths(&outer), NOW).unwrap();
    let folder = Folder {
        temporary: home,
        store,
    };
    let hooks = folder.temporary.path().join("hooks");
    crate::sys::fs::make_folders(&hooks).unwrap();
    crate::sys::fs::write_unflushed(&hooks.join("pre-commit"), b"#!/bin/sh\nexit 1\n", true)
        .unwrap();
    let config = format!(
        "[commit]\n\tgpgsign = true\n[core]\n\tautocrlf = true\n\tfsmonitor = true\n\thooksPath = {}\n\texcludesFile = /dev/null\n\tattributesFile = {}\n",
        hooks.display(),
        hooks.join("attributes").display()
    );
    crate::sys::fs::create_new(
        &hooks.join("attributes"),
        b"*.md text eol=crlf filter=lfs ident\n",
    )
    .unwrap();
    let global = folder.temporary.path().join("global");
    crate::sys::fs::create_new(&global, config.as_bytes()).unwrap();
    folder.write("a.md", "one\r\ntwo\n$Id$\n");
    folder.write(".gitattributes", "* text=auto eol=crlf\n");
    folder.commit_all("edit: crlf");
    folder.publish(&[("b.md", Some("x\r\ny\n"))]).unwrap();
    let person = |arguments: &[&str]| {
        super::git_with(
            folder.store.folder(),
            arguments,
            &[("GIT_CONFIG_GLOBAL", global.as_os_str())],
        )
    };
    assert_eq!(person(&["status", "--porcelain"]), "");
    assert_eq!(person(&["show", "HEAD:b.md"]), "x\r\ny");
    // The person's own commit here runs no foreign hook and needs no key.
    folder.write("c.md", "c\n");
    person(&["add", "-A"]);
    person(&["commit", "-qm", "by hand"]);
    folder.assert_in_order();
    let outer = folder.store.folder().parent().unwrap().to_owned();
    assert_eq!(git_in(&outer, &["rev-list", "--all", "--count"]), "0");
}

#[test]
fn attempts_are_kept_beside_main() {
    let folder = Folder::with(&[("a.md", "a\n")]);
    let message = CommitMessage::new(CommitKind::Kept, redacted("attempt: refused"));
    let changes = tree_changes(&[("a.md", Some("b\n")), ("n.md", Some("n\n"))]);
    let lock = folder.lock();
    for name in ["r2", "r1"] {
        (folder.store)
            .keep_ref(
                &lock,
                KeptKind::Attempt,
                &run(name),
                folder.head(),
                &changes,
                &message,
                NOW,
            )
            .unwrap();
    }
    let kept = folder.store.kept_refs(KeptKind::Attempt).unwrap();
    assert_eq!(
        kept.iter()
            .map(|kept| kept.run.as_str())
            .collect::<Vec<_>>(),
        ["r1", "r2"]
    );
    assert_eq!(
        folder.git(&["show", &format!("{}:a.md", kept[0].name())]),
        "b"
    );
    assert!(folder.store.kept_refs(KeptKind::Kept).unwrap().is_empty());
    folder.git(&["pack-refs", "--all"]);
    folder.store.remove_kept_ref(&lock, &kept[0]).unwrap();
    folder.store.remove_kept_ref(&lock, &kept[0]).unwrap();
    assert_eq!(
        folder.store.kept_refs(KeptKind::Attempt).unwrap(),
        [kept[1].clone()]
    );
    drop(lock);
    // Main is packed now, too, and still moves.
    folder.write("a.md", "c\n");
    folder.commit_all("edit: after packing");
    folder.assert_in_order();
}

#[test]
fn many_small_packs_become_one_and_nothing_is_lost() {
    let folder = Folder::with(&[("a.md", "a\n")]);
    let packs = || {
        let all = crate::sys::fs::list(&folder.at(".git/objects/pack")).unwrap();
        let is_pack = |path: &std::path::Path| path.extension().is_some_and(|name| name == "pack");
        all.iter().filter(|entry| is_pack(&entry.path)).count()
    };
    for round in 0..45 {
        folder.write("a.md", &format!("{round}\n"));
        folder.commit_all("edit: again");
    }
    assert!(40 < packs());
    let objects = folder.git(&["rev-list", "--objects", "--all"]);
    folder.store.recover(&folder.lock()).unwrap();
    assert_eq!(packs(), 1);
    assert_eq!(folder.git(&["rev-list", "--objects", "--all"]), objects);
    // The store that was open all the time finds everything, too.
    assert_eq!(folder.store.history(folder.head()).flatten().count(), 47);
    folder.assert_in_order();
}
