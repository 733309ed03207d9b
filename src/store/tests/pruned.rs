//! `git gc --prune=now` of a person beside a writer of ours that stands still.

use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use super::crash::{OLD, VICTIM, be_the_victim, is_new, victim, wait_until_stopped};
use super::{Folder, path, paths};
use crate::store::Store;

const PUBLISHES: &str =
    "store::tests::pruned::garbage_collection_beside_a_publication_harms_nothing";
const COMMITS: &str = "store::tests::pruned::garbage_collection_beside_a_commit_harms_nothing";

/// What the victim of the second kind does: commits the person's edits.
fn commit_as_victim(home: &Path) {
    let temporary = tempfile::tempdir().unwrap();
    let store = Store::open(paths(home)).unwrap();
    Folder { temporary, store }.commit_all("edit: by the victim");
}

/// Stops the victim at a point, meddles, lets it go on.
fn meddle(folder: &Folder, test: &str, point: &str, meddling: impl Fn(&Folder)) -> ExitStatus {
    let mut child = victim(folder, test, &format!("freeze:{point}"));
    let pid = rustix::process::Pid::from_child(&child);
    wait_until_stopped(child.id());
    meddling(folder);
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    child.wait().unwrap()
}

fn collect_garbage(folder: &Folder) {
    folder.git(&["gc", "-q", "--prune=now"]);
}

#[track_caller]
fn assert_no_marks(folder: &Folder) {
    for entry in crate::sys::fs::list(&folder.at(".git/objects/pack")).unwrap() {
        let is_mark = entry.path.extension().is_some_and(|end| end == "keep");
        assert!(!is_mark, "{}", entry.path.display());
    }
}

#[test]
fn garbage_collection_beside_a_publication_harms_nothing() {
    if let Some(home) = std::env::var_os(VICTIM) {
        return be_the_victim(Path::new(&home));
    }
    for point in [
        "objects.keep_written",
        "objects.file_placed",
        "publish.objects_written",
        "publish.incoming_flushed",
        "publish.record_written",
        "publish.main_moved",
        "index.locked",
        "index.prepared",
        "index.written",
        "publish.settled",
    ] {
        let folder = Folder::with(&OLD);
        let ended = meddle(&folder, PUBLISHES, point, collect_garbage);
        assert!(ended.success(), "{point}");
        assert!(is_new(&folder), "{point}");
        folder.assert_in_order();
        assert_no_marks(&folder);
    }
}

#[test]
fn garbage_collection_beside_a_commit_harms_nothing() {
    if let Some(home) = std::env::var_os(VICTIM) {
        return commit_as_victim(Path::new(&home));
    }
    for point in [
        "commit.objects_flushed",
        "index.locked",
        "index.prepared",
        "index.written",
        "commit.index_written",
    ] {
        let folder = Folder::with(&OLD);
        let head = folder.head();
        folder.write("skills/c/SKILL.md", "c\n");
        let ended = meddle(&folder, COMMITS, point, collect_garbage);
        assert!(ended.success(), "{point}");
        assert_ne!(folder.head(), head, "{point}");
        folder.assert_in_order();
        assert_no_marks(&folder);
    }
}

#[test]
fn a_collected_publication_that_is_made_again_is_whole() {
    let folder = Folder::with(&OLD);
    victim(&folder, PUBLISHES, "kill:publish.record_written")
        .wait()
        .unwrap();
    // Now there is garbage that is equal to what the next one writes.
    folder.store.recover(&folder.lock()).unwrap();
    assert_no_marks(&folder);
    let ended = meddle(
        &folder,
        PUBLISHES,
        "publish.record_written",
        collect_garbage,
    );
    assert!(ended.success() && is_new(&folder));
    folder.assert_in_order();
}

#[test]
fn objects_that_were_removed_all_the_same_change_nothing() {
    for (test, point) in [
        (PUBLISHES, "publish.objects_written"),
        (PUBLISHES, "publish.record_written"),
        (COMMITS, "commit.objects_flushed"),
    ] {
        let folder = Folder::with(&OLD);
        folder.git(&["gc", "-q"]);
        let head = folder.head();
        if test == COMMITS {
            folder.write("keep.md", "edited\n");
        }
        let ended = meddle(&folder, test, point, |folder| {
            for entry in crate::sys::fs::list(&folder.at(".git/objects/pack")).unwrap() {
                let keep = entry.path.with_extension("keep");
                if keep.exists() && keep != entry.path {
                    std::fs::remove_file(&entry.path).unwrap();
                }
            }
        });
        assert!(!ended.success(), "{point}");
        assert_eq!(folder.head(), head, "{point}");
        if test == COMMITS {
            assert_eq!(folder.changes(), ["M keep.md"]);
            folder.git(&["checkout", "-q", "--", path("keep.md").as_str()]);
        } else {
            assert!(!is_new(&folder), "{point}");
        }
        folder.store.recover(&folder.lock()).unwrap();
        folder.assert_in_order();
        assert_no_marks(&folder);
        assert!(folder.store.lock(Duration::ZERO).is_ok());
    }
}
