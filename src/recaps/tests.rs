//! Recaps on a real disk.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::retention::PRUNE_BATCH_MAX;
use super::{Extractions, PruneRules, Stored, counts_from, overdue};
use crate::domain::id::ThreadId;
use crate::domain::recap::{Recap, RecapHeader};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::sys::fs;
use crate::sys::lock::FileLock;
use crate::text::redact::redact_str;

const DAY: i64 = 86_400;

struct Home {
    folder: tempfile::TempDir,
    lock: FileLock,
    extractions: Extractions,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let lock = FileLock::acquire(&folder.path().join("x.lock"), Duration::ZERO).unwrap();
        let extractions = Extractions::open(folder.path(), MemoryVersion::V2);
        Self {
            folder,
            lock,
            extractions,
        }
    }

    fn store(&self, recap: &Recap) -> Stored {
        self.extractions.store(&self.lock, recap).unwrap()
    }

    fn adopt(&self, recap: &Recap) -> Stored {
        self.extractions.adopt(&self.lock, recap).unwrap()
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        fs::make_folders(&self.extractions.folder).unwrap();
        fs::replace(&self.extractions.folder.join(name), bytes).unwrap();
    }

    /// File names in the folder, sorted.
    fn names(&self) -> Vec<String> {
        let listed = fs::list(&self.extractions.folder).unwrap();
        let name = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        listed.iter().map(|entry| name(&entry.path)).collect()
    }

    /// Bodies by thread.
    fn bodies(&self) -> Vec<String> {
        let loaded = self.extractions.load_all().unwrap();
        let body = |recap: &Recap| format!("{}: {}", recap.header.thread_id, recap.body);
        loaded
            .recaps
            .values()
            .map(|stored| body(&stored.recap))
            .collect()
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

fn thread(id: &str) -> ThreadId {
    ThreadId::parse(id).unwrap()
}

fn recap(id: &str, updated_at: i64, items_read: u64, body: &str) -> Recap {
    Recap {
        header: RecapHeader {
            thread_id: thread(id),
            agent: None,
            updated_at: at(updated_at),
            extracted_at: Some(at(updated_at)),
            rollout_path: redact_str("/logs/a.jsonl"),
            cwd: None,
            project: None,
            git_branch: None,
            model: None,
            prompt: None,
            trust: None,
            items_read: Some(items_read),
            adopted_at: None,
            asked_at: None,
            slug: None,
            raw_memory: None,
        },
        body: redact_str(body),
    }
}

#[test]
fn a_recap_comes_back_as_it_was_stored() {
    let home = Home::new();
    let mut stored = recap(
        "0194f5a6-89ab-7cde-8123-456789abcdef",
        100,
        7,
        "# Done\n\n- it works",
    );
    stored.header.slug = Some("fix_the_build".to_owned());
    home.store(&stored);
    assert_eq!(home.names(), ["2025-02-11T15-35-19-jqmb-fix_the_build.md"]);
    let loaded = home.extractions.load_all().unwrap();
    assert_eq!(loaded.recaps[&stored.header.thread_id].recap, stored);
    let other = Extractions::open(home.folder.path(), MemoryVersion::V1);
    assert_eq!(
        other.load_all().unwrap().recaps.len(),
        0,
        "versions have folders of their own"
    );
}

#[test]
fn only_a_newer_result_replaces_the_threads_file() {
    let home = Home::new();
    for (updated_at, items_read, is_written) in [
        (100, 5, true),
        (100, 5, false),
        (100, 4, false),
        (99, 9, false),
        (100, 6, true),
        (101, 1, true),
    ] {
        let stored = home.store(&recap("a", updated_at, items_read, "text"));
        let was_written = matches!(stored, Stored::Written { .. });
        assert_eq!(was_written, is_written, "{updated_at} {items_read}");
        assert_eq!(home.names().len(), 1);
    }
}

#[test]
fn a_session_asked_for_again_gives_a_new_recap_of_the_same_items() {
    let home = Home::new();
    home.store(&recap("a", 100, 5, "first"));
    let mut again = recap("a", 100, 5, "second");
    again.header.asked_at = Some(at(500));
    assert!(matches!(home.store(&again), Stored::Written { .. }));
    assert_eq!(home.store(&again), Stored::NotNewer);
    assert_eq!(home.bodies(), ["a: second"]);
}

#[test]
fn a_no_op_takes_the_older_recap_away_and_is_news_only_then() {
    let home = Home::new();
    let replaced = |stored| match stored {
        Stored::Written { replaced, .. } => replaced,
        Stored::NotNewer => panic!("it is newer"),
    };
    assert!(
        !replaced(home.store(&recap("a", 100, 5, ""))),
        "nothing was there"
    );
    assert!(
        !replaced(home.store(&recap("a", 101, 5, "text"))),
        "a no-op was there"
    );
    assert!(replaced(home.store(&recap("a", 102, 5, ""))));
    let loaded = home.extractions.load_all().unwrap();
    assert!(
        loaded.recaps[&thread("a")].recap.is_no_op(),
        "the answer stays"
    );
}

#[test]
fn a_persons_recap_counts_over_ours_until_the_session_is_newer() {
    let home = Home::new();
    let mut ours = recap("a", 100, 5, "ours");
    ours.header.raw_memory = Some(redact_str("raw"));
    home.store(&ours);
    let mut theirs = recap("a", 100, 5, "theirs");
    theirs.header.adopted_at = Some(at(900));
    theirs.header.extracted_at = None;
    assert!(matches!(
        home.adopt(&theirs),
        Stored::Written { replaced: true, .. }
    ));
    let loaded = home.extractions.load_all().unwrap();
    let adopted = &loaded.recaps[&thread("a")].recap;
    assert_eq!(adopted.body, redact_str("theirs"));
    assert_eq!(adopted.header.raw_memory, Some(redact_str("raw")));
    assert_eq!(adopted.header.extracted_at, Some(at(100)));

    assert_eq!(
        home.store(&recap("a", 100, 99, "ours again")),
        Stored::NotNewer
    );
    assert!(matches!(
        home.store(&recap("a", 101, 5, "ours, newer")),
        Stored::Written { .. }
    ));
    assert_eq!(home.adopt(&theirs), Stored::NotNewer, "ours is newer");
}

#[test]
fn a_crash_before_the_old_file_went_loses_nothing() {
    let home = Home::new();
    home.store(&recap("a", 100, 5, "old"));
    let old = home.names();
    let bytes = fs::read(&home.extractions.folder.join(&old[0]), 9_999).unwrap();
    home.store(&recap("a", 200, 5, "new"));
    home.put(&old[0], &bytes);
    let loaded = home.extractions.load_all().unwrap();
    assert_eq!(loaded.superseded, [home.extractions.folder.join(&old[0])]);
    assert_eq!(home.bodies(), ["a: new"]);
    assert_eq!(home.store(&recap("a", 150, 5, "late")), Stored::NotNewer);
    home.store(&recap("a", 300, 5, "newest"));
    assert_eq!(home.names().len(), 1);
}

#[test]
fn damaged_files_are_listed_and_left_alone() {
    let home = Home::new();
    home.store(&recap("a", 100, 5, "text"));
    home.put("broken.md", b"no header");
    home.put("binary.md", b"\xff\xfe\x00");
    home.put("empty.md", b"");
    home.put("notes.txt", b"not ours");
    home.put(".a.md.memrev-7.tmp", b"a side file");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc/hostname", home.extractions.folder.join("link.md")).unwrap();
    let loaded = home.extractions.load_all().unwrap();
    let damaged: Vec<_> = (loaded.damaged.iter())
        .map(|damaged| damaged.path.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(damaged, ["binary.md", "broken.md", "empty.md", "link.md"]);
    assert!(
        loaded
            .damaged
            .iter()
            .all(|damaged| !damaged.problem.is_empty())
    );
    assert_eq!(loaded.recaps.len(), 1);
}

#[test]
fn a_name_that_another_session_has_is_not_taken_from_it() {
    let home = Home::new();
    let name = match home.store(&recap("a", 100, 5, "of a")) {
        Stored::Written { path, .. } => path.file_name().unwrap().to_str().unwrap().to_owned(),
        Stored::NotNewer => panic!("it is the first"),
    };
    let text = fs::read_text_if_any(&home.extractions.folder.join(&name), 9_999).unwrap();
    // As if two ids had one hash and one time.
    let text = text
        .unwrap()
        .replace("thread_id: a", "thread_id: twin")
        .replace("of a", "of twin");
    home.put(&name, text.as_bytes());
    home.store(&recap("a", 100, 5, "of a"));
    assert_eq!(home.bodies(), ["a: of a", "twin: of twin"]);
    home.store(&recap("a", 101, 5, "of a, newer"));
    assert_eq!(home.bodies(), ["a: of a, newer", "twin: of twin"]);
}

#[test]
fn a_recap_under_a_name_a_person_gave_is_found() {
    let home = Home::new();
    home.store(&recap("a", 100, 5, "text"));
    let bytes = fs::read(&home.extractions.folder.join(&home.names()[0]), 9_999).unwrap();
    assert_eq!(
        home.extractions
            .remove_thread(&home.lock, &thread("a"))
            .unwrap(),
        1
    );
    home.put("what Ada called it.md", &bytes);
    assert_eq!(home.store(&recap("a", 100, 5, "text")), Stored::NotNewer);
    home.store(&recap("a", 101, 5, "newer"));
    assert_eq!(home.names().len(), 1);
    assert_eq!(
        home.extractions
            .remove_thread(&home.lock, &thread("b"))
            .unwrap(),
        0
    );
    assert_eq!(
        home.extractions
            .remove_thread(&home.lock, &thread("a"))
            .unwrap(),
        1
    );
    assert_eq!(home.names().len(), 0);
}

#[test]
fn the_signature_changes_with_the_folder_and_only_then() {
    let home = Home::new();
    let signature = || home.extractions.signature().unwrap();
    let empty = signature();
    home.store(&recap("a", 100, 5, "text"));
    let one = signature();
    assert_ne!(empty, one);
    assert_eq!(home.store(&recap("a", 100, 5, "text")), Stored::NotNewer);
    assert_eq!(signature(), one);
    home.store(&recap("a", 100, 6, "text, longer"));
    assert_ne!(signature(), one);
}

/// Which of the threads are pruned at day 100 with 30 days of retention.
fn pruned(recaps: &[Recap], head: &[&str], used: &[(&str, i64)], settled: bool) -> Vec<String> {
    let head_threads = head.iter().map(|id| thread(id)).collect();
    let last_used = used
        .iter()
        .map(|(id, day)| (thread(id), at(day * DAY)))
        .collect();
    let rules = PruneRules {
        max_unused_days: 30,
        head_threads: &head_threads,
        last_used: &last_used,
        ledger_is_settled: settled,
    };
    let headers = recaps.iter().map(|recap| &recap.header);
    let ids = overdue(headers, &rules, at(100 * DAY));
    ids.into_iter().map(|id| id.to_string()).collect()
}

#[test]
fn retention_counts_from_the_latest_of_five_times() {
    let aged = |change: fn(&mut RecapHeader)| {
        let mut recap = recap("a", 10 * DAY, 1, "text");
        change(&mut recap.header);
        [recap]
    };
    let told = |recaps: &[Recap]| pruned(recaps, &[], &[], true).len();
    assert_eq!(told(&aged(|_| {})), 1);
    assert_eq!(
        told(&aged(|header| header.extracted_at = Some(at(80 * DAY)))),
        0
    );
    assert_eq!(
        told(&aged(|header| header.asked_at = Some(at(80 * DAY)))),
        0
    );
    assert_eq!(
        told(&aged(|header| header.updated_at = at(70 * DAY))),
        0,
        "inclusive"
    );
    assert_eq!(
        told(&aged(|header| header.updated_at = at(70 * DAY - 1))),
        1
    );
    assert_eq!(
        told(&aged(|header| header.adopted_at = Some(at(1)))),
        0,
        "never the adopted"
    );
    let old = aged(|_| {});
    assert_eq!(pruned(&old, &[], &[("a", 75)], true).len(), 0);
    assert_eq!(pruned(&old, &[], &[("a", 60)], true).len(), 1);
    assert_eq!(counts_from(&old[0].header, Some(at(5))), at(10 * DAY));
}

#[test]
fn pruning_spares_the_head_tree_and_everything_while_the_ledger_is_new() {
    let old = [recap("a", DAY, 1, "x"), recap("b", DAY, 1, "x")];
    assert_eq!(pruned(&old, &["a"], &[], true), ["b"]);
    assert_eq!(pruned(&old, &[], &[], false), [""; 0]);
}

#[test]
fn pruning_takes_the_oldest_two_hundred() {
    let many: Vec<Recap> = (0..PRUNE_BATCH_MAX + 50)
        .map(|n| {
            recap(
                &format!("t{n:04}"),
                DAY * 60 - i64::try_from(n).unwrap(),
                1,
                "x",
            )
        })
        .collect();
    let pruned = pruned(&many, &[], &[], true);
    assert_eq!(pruned.len(), 200);
    assert_eq!(
        (pruned[0].as_str(), pruned[199].as_str()),
        ("t0249", "t0050")
    );
}

#[test]
fn prune_removes_the_files_and_what_a_crash_left() {
    let home = Home::new();
    home.store(&recap("old", DAY, 1, "x"));
    home.store(&recap("new", 99 * DAY, 1, "x"));
    let new = home
        .names()
        .into_iter()
        .find(|name| name.starts_with("1970-04-10"))
        .unwrap();
    let bytes = fs::read(&home.extractions.folder.join(new), 9_999).unwrap();
    home.put("copy.md", &bytes);
    let (head_threads, last_used) = (BTreeSet::new(), BTreeMap::new());
    let rules = PruneRules {
        max_unused_days: 30,
        head_threads: &head_threads,
        last_used: &last_used,
        ledger_is_settled: true,
    };
    let went = home
        .extractions
        .prune(&home.lock, &rules, at(100 * DAY))
        .unwrap();
    assert_eq!(went, [thread("old")]);
    assert_eq!(home.bodies(), ["new: x"]);
    assert_eq!(home.names().len(), 1);
}
