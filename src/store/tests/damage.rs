//! Files of `.git` that are empty or rubbish.

use super::crash::{OLD, VICTIM, be_the_victim, is_new, victim};
use super::{Folder, paths};
use crate::store::error::StoreError;
use crate::store::{Recovery, Store};

const TEST: &str = "store::tests::damage::without_its_record_a_publication_is_judged_from_main";

#[test]
fn a_damaged_index_is_made_anew() {
    for rubbish in [
        "",
        "rubbish",
        "DIRC\0\0\0\u{2}\0\0\0\u{1}rubbish that is long enough",
    ] {
        let folder = Folder::with(&OLD);
        let index = folder.at(".git/index");
        std::fs::write(&index, rubbish).unwrap();
        assert_eq!(folder.changes(), Vec::<String>::new());
        folder.store.readiness().unwrap();

        let recovery = folder.store.recover(&folder.lock()).unwrap();
        let kept = folder.at(".git/index.memrev-damaged");
        assert_eq!(recovery.set_aside, std::slice::from_ref(&kept));
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), rubbish);
        folder.assert_in_order();
        let again = folder.store.recover(&folder.lock()).unwrap();
        assert_eq!(again, Recovery::default());

        // A writer that meets it by itself does the same.
        std::fs::write(&index, "more").unwrap();
        folder.write("keep.md", "edited\n");
        folder.commit_all("edit: beside");
        folder.assert_in_order();
        assert_eq!(
            std::fs::read_to_string(&kept).unwrap(),
            rubbish,
            "the first"
        );
    }
}

#[test]
fn a_damaged_index_of_a_sparse_checkout_deletes_nothing() {
    let folder = Folder::with(&[("recaps/a.md", "a\n"), ("skills/a/SKILL.md", "a\n")]);
    folder.git(&["sparse-checkout", "set", "skills"]);
    std::fs::write(folder.at(".git/index"), "").unwrap();
    assert_eq!(folder.changes(), Vec::<String>::new());
    folder.store.recover(&folder.lock()).unwrap();
    folder.assert_in_order();
    assert!(!folder.at("recaps/a.md").exists());
}

#[test]
fn without_its_record_a_publication_is_judged_from_main() {
    if let Some(home) = std::env::var_os(VICTIM) {
        return be_the_victim(std::path::Path::new(&home));
    }
    let stale: &[&str] = &[
        "M MEMORY.md",
        "M memory_summary.md",
        "A skills/a/SKILL.md",
        "D skills/b/SKILL.md",
    ];
    for (point, moved, expected) in [
        ("publish.record_written", false, &[] as &[&str]),
        ("publish.main_moved", true, stale),
        ("publish.files_moved", true, &[]),
        ("publish.index_written", true, &[]),
    ] {
        for rubbish in [b"" as &[u8], b"memrev publication 1\nrun", b"\xff\xfe"] {
            let folder = Folder::with(&OLD);
            let head = folder.head();
            (victim(&folder, TEST, &format!("kill:{point}")).wait()).unwrap();
            std::fs::write(folder.at(".git/memrev/publication"), rubbish).unwrap();
            let recovery = folder.store.recover(&folder.lock()).unwrap();
            assert_eq!(folder.head() != head, moved, "{point}");
            assert_eq!(folder.changes(), expected, "{point}");
            let kept = folder.at(".git/memrev/publication.damaged");
            assert_eq!(std::fs::read(&kept).unwrap(), rubbish);
            assert!(recovery.set_aside.contains(&kept), "{point}");
            for kept in &recovery.set_aside {
                assert!(kept.exists(), "{}", kept.display());
            }
            if expected.is_empty() {
                assert_eq!(is_new(&folder), moved, "{point}");
                folder.assert_in_order();
            }
            let again = folder.store.recover(&folder.lock()).unwrap();
            assert_eq!(again, Recovery::default());
        }
    }
}

#[test]
fn a_damaged_record_of_a_settled_publication_stops_nobody() {
    let folder = Folder::with(&OLD);
    folder.publish(&[("keep.md", Some("new\n"))]).unwrap();
    for run in crate::sys::fs::list(&folder.at(".git/memrev/displaced")).unwrap() {
        std::fs::write(run.path.join("record"), "rubbish").unwrap();
    }
    let recovery = folder.store.recover(&folder.lock()).unwrap();
    assert_eq!(recovery.set_aside.len(), 1);
    let again = folder.store.recover(&folder.lock()).unwrap();
    assert_eq!(again, Recovery::default());
    folder.assert_in_order();
}

#[test]
fn a_head_that_leads_nowhere_is_named_with_a_way_out() {
    let missing = format!("{}\n", "12".repeat(20));
    for (file, content, expected) in [
        (".git/HEAD", "", "HEAD is empty or unreadable"),
        (".git/HEAD", "rubbish", "HEAD is empty or unreadable"),
        (".git/refs/heads/main", "", "main is empty or unreadable"),
        (".git/refs/heads/main", "rub", "main is empty or unreadable"),
        (".git/refs/heads/main", &missing, "which is not there"),
    ] {
        let folder = Folder::with(&OLD);
        std::fs::write(folder.at(file), content).unwrap();
        let of_open = folder.store.readiness().map(drop);
        let anew = Store::open(paths(folder.temporary.path()));
        let anew = anew.and_then(|store| store.readiness().map(drop));
        for found in [of_open, anew] {
            let error = found.unwrap_err();
            assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
            let words = error.to_string();
            assert!(words.contains(expected), "{words}");
            assert!(
                words.contains("git fsck") && words.contains("reflog"),
                "{words}"
            );
        }
        // Nothing was changed: a person mends it.
        assert_eq!(std::fs::read_to_string(folder.at(file)).unwrap(), content);
    }
}
