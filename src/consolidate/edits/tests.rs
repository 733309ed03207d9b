//! Files as a person may leave them, and what becomes of each.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, EditFacts, Found, LeftAlone, Revision, Side, classify, consequences, kind_in};
use crate::domain::id::{ObjectId, ThreadId};
use crate::domain::path::{FileKind, TreePath};
use crate::domain::session::MemoryMode;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::{Withheld, WithheldReason, WithheldWhat};

const NOW: Timestamp = Timestamp::from_seconds(1_764_576_000);
const RECAP: &str = "thread_id: a1\nupdated_at: 2025-12-01T05:33:44+00:00\nrollout_path: /r.jsonl\ncwd: /w\n\n# what happened\n";

#[test]
fn what_a_person_wrote_is_committed() {
    for (path, text) in [
        ("MEMORY.md", "# anything\n"),
        ("memory_summary.md", "not even `v1`\n"),
        ("skills/deploy/SKILL.md", "how to\n"),
        ("raw_memories.md", "edited\n"),
        ("extensions/ad_hoc/notes/n.md", "Use tabs.\n"),
        ("extensions/x/resources/a/b.txt", "data\n"),
        ("extensions/x/instructions.md", "read me\n"),
        ("rollout_summaries/r.md", RECAP),
    ] {
        check(path, text, "taken");
    }
}

#[test]
fn what_is_no_edit_is_left_alone() {
    let secret = format!("the key is {}{}", "ghp_", "a1B2".repeat(9));
    let merge = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> theirs\n";
    for (path, text, expected) in [
        ("README.md", "mine", "Foreign"),
        ("MEMORY.md", secret.as_str(), "Secret"),
        ("MEMORY.md", merge, "ConflictMarkers"),
        ("extensions/ad_hoc/notes/.n.md.swp", "x", "EditorLeftover"),
        ("extensions/ad_hoc/notes/.#n.md", "x", "EditorLeftover"),
        ("extensions/ad_hoc/notes/n.md~", "x", "EditorLeftover"),
        (
            "extensions/ad_hoc/notes/n (conflicted copy).md",
            "x",
            "ConflictedCopy",
        ),
        ("rollout_summaries/r.md", "no header", "DoesNotParse"),
        (
            "extensions/withheld/entries/e.yaml",
            "what: ?",
            "DoesNotParse",
        ),
    ] {
        check(path, text, expected);
    }
    // One marker alone is just text about merging.
    check("MEMORY.md", "=======\n", "taken");
}

#[test]
fn what_is_not_a_file_of_text_is_left_alone() {
    for (found, expected) in [
        (Found::Symlink, "Symlink"),
        (Found::TooLarge, "TooLarge"),
        (Found::Unfit, "Unfit"),
        (file(b"\xff\xfe", long_ago()), "NotUtf8"),
    ] {
        assert_eq!(outcome("MEMORY.md", true, found), expected);
    }
}

/// What was rewritten in its place between two handbooks' lists.
#[track_caller]
fn check_rewritten(old: &str, new: &str, expected: &[(&str, &str)]) {
    let side = |list: &str| {
        let lines: Vec<&str> = list.split(" / ").collect();
        let lines = format!("- {}\n", lines.join("\n- "));
        Some(Side {
            blob: ObjectId::from_bytes([0; 20]),
            text: format!(
                "# Task Group: a\n\n## User preferences\n\n{lines}\n## Reusable knowledge\n\n- the end\n"
            ),
        })
    };
    let revision = Revision {
        path: TreePath::parse("MEMORY.md").unwrap(),
        old: side(old),
        new: side(new),
    };
    let told = consequences(MemoryVersion::V1, &[revision]);
    let pairs = told.rewritten.iter();
    let pairs: Vec<_> = pairs.map(|it| (it.old.as_str(), it.new.as_str())).collect();
    assert_eq!(pairs, expected, "{old} -> {new}");
}

#[test]
fn a_line_rewritten_in_its_place_is_known_as_such() {
    let moved = [("deploy on fridays", "提交信息要简短")];
    check_rewritten(
        "first line / deploy on fridays / last line",
        "first line / 提交信息要简短 / last line",
        &moved,
    );
    check_rewritten("deploy on fridays", "提交信息要简短", &moved);
    // One more, one less, or elsewhere: nobody's successor.
    check_rewritten("first line / deploy on fridays", "first line", &[]);
    check_rewritten(
        "first line / deploy on fridays / last line",
        "first line / last line / 提交信息要简短",
        &[],
    );
    check_rewritten(
        "first line / deploy on fridays",
        "first line / one new thing / another new thing",
        &[],
    );
}

#[test]
fn a_file_is_quiet_after_its_seconds() {
    for (seconds_ago, expected) in [
        (0, "TooFresh"),
        (1, "TooFresh"),
        (2, "taken"),
        (3, "taken"),
        // The file system's clock runs a little ahead of ours.
        (-1, "TooFresh"),
        // A date in the far future says nothing.
        (-3_600, "taken"),
    ] {
        let at = NOW.minus_seconds(seconds_ago);
        assert_eq!(
            outcome("MEMORY.md", true, file(b"x", at)),
            expected,
            "{seconds_ago}"
        );
        let gone = Found::Gone {
            folder_changed_at: Some(at),
        };
        assert_eq!(
            outcome("MEMORY.md", true, gone),
            expected,
            "gone {seconds_ago}"
        );
    }
}

#[test]
fn a_recap_that_would_bring_something_back_is_left_alone() {
    let new =
        |facts: &EditFacts<'_>| told(&change("rollout_summaries/r.md", false, recap()), facts);
    let old = |facts: &EditFacts<'_>| told(&change("rollout_summaries/r.md", true, recap()), facts);
    let known = Known::default();
    assert_eq!(new(&known.facts()), "taken");

    let known = Known::with(WithheldWhat::Thread {
        thread_id: thread("a1"),
        until: Timestamp::parse_rfc3339("2025-12-01T05:33:44Z").unwrap(),
    });
    assert_eq!(new(&known.facts()), "Withheld");
    let known = Known::with(WithheldWhat::Thread {
        thread_id: thread("a1"),
        until: Timestamp::parse_rfc3339("2025-12-01T05:33:43Z").unwrap(),
    });
    assert_eq!(new(&known.facts()), "taken");
    let known = Known::with(WithheldWhat::Input {
        path: path("rollout_summaries/r.md"),
        blob: blob(1),
    });
    assert_eq!(new(&known.facts()), "Withheld");

    let mut known = Known::default();
    known.modes.insert(thread("a1"), MemoryMode::Disabled);
    assert_eq!(new(&known.facts()), "Mode");

    let mut known = Known::default();
    known.recaps.insert(blob(1));
    assert_eq!(new(&known.facts()), "KnownBefore");
    assert_eq!(old(&known.facts()), "taken");

    let mut known = Known::default();
    known.ours.insert(thread("a1"), NOW);
    assert_eq!(new(&known.facts()), "OursIsNewer");
    assert_eq!(old(&known.facts()), "taken");
}

#[test]
fn version_two_has_fewer_files() {
    for name in ["MEMORY.md", "raw_memories.md", "skills/a/SKILL.md"] {
        assert_eq!(kind_in(MemoryVersion::V2, &path(name)), FileKind::Foreign);
        assert_ne!(kind_in(MemoryVersion::V1, &path(name)), FileKind::Foreign);
    }
}

#[test]
fn removed_entries_are_named_and_moved_ones_are_not() {
    check_entries(
        "## Tips\n\n- always run the formatter\n- releases go out on Tuesdays\n",
        "## Other\n\n- releases go out on Tuesdays\n",
        "gone: always run the formatter",
    );
}

#[test]
fn a_reworded_entry_is_the_persons_and_its_old_words_are_not_withheld() {
    check_entries(
        "## Tips\n\n- the dev server listens on port 8080\n",
        "## Tips\n\n- the dev server listens on port 9090\n",
        "theirs: the dev server listens on port 9090",
    );
}

#[test]
fn a_whole_file_gone_or_new_says_nothing_about_its_entries() {
    check_entries("## Tips\n\n- always run the formatter\n", "", "");
    check_entries(
        "",
        "## Tips\n\n- always run the formatter\n",
        "theirs: always run the formatter",
    );
    let new = Revision {
        path: path("MEMORY.md"),
        old: None,
        new: side("## Tips\n\n- always run the formatter\n"),
    };
    assert!(consequences(MemoryVersion::V1, &[new]).added.is_empty());
}

#[test]
fn any_language_counts() {
    check_entries(
        "## Tips\n\n- 从现在开始请用中文写提交信息\n- リリースは火曜日に出します\n",
        "## Tips\n\n- リリースは火曜日に出します\n",
        "gone: 从现在开始请用中文写提交信息",
    );
}

#[test]
fn a_deleted_recap_forgets_its_version_and_a_renamed_one_does_not() {
    let gone = Revision {
        path: path("rollout_summaries/r.md"),
        old: side(RECAP),
        new: None,
    };
    let told = consequences(MemoryVersion::V1, std::slice::from_ref(&gone));
    let until = Timestamp::parse_rfc3339("2025-12-01T05:33:44Z").unwrap();
    assert_eq!(told.forgotten, [(thread("a1"), until)]);

    let come = Revision {
        path: path("rollout_summaries/other.md"),
        old: None,
        new: side(RECAP),
    };
    let told = consequences(MemoryVersion::V1, &[gone, come]);
    assert_eq!(told.forgotten, []);
    assert_eq!(told.adopted.len(), 1);
}

#[track_caller]
fn check(path: &str, text: &str, expected: &str) {
    let found = file(text.as_bytes(), long_ago());
    assert_eq!(outcome(path, false, found), expected, "{path}");
}

#[track_caller]
fn check_entries(old: &str, new: &str, expected: &str) {
    let revision = Revision {
        path: path("MEMORY.md"),
        old: side(old),
        new: side(new),
    };
    let told = consequences(MemoryVersion::V1, &[revision]);
    let gone = told.removed.iter().map(|it| format!("gone: {}", it.text));
    let theirs = told.added.iter().map(|it| format!("theirs: {}", it.text));
    assert_eq!(gone.chain(theirs).collect::<Vec<_>>().join("; "), expected);
}

fn outcome(path: &str, is_in_head: bool, found: Found) -> String {
    told(&change(path, is_in_head, found), &Known::default().facts())
}

/// `taken`, or the name of the reason.
fn told(change: &Change, facts: &EditFacts<'_>) -> String {
    match classify(change, facts) {
        Ok(()) => "taken".to_owned(),
        Err(reason) => name(&reason),
    }
}

fn name(reason: &LeftAlone) -> String {
    let debug = format!("{reason:?}");
    let end = debug.find([' ', '(']).unwrap_or(debug.len());
    debug[..end].to_owned()
}

fn change(name: &str, is_in_head: bool, found: Found) -> Change {
    Change {
        path: path(name),
        is_in_head,
        found,
    }
}

fn recap() -> Found {
    file(RECAP.as_bytes(), long_ago())
}

fn file(bytes: &[u8], changed_at: Timestamp) -> Found {
    Found::File {
        bytes: bytes.to_vec(),
        blob: blob(1),
        changed_at,
    }
}

#[derive(Default)]
struct Known {
    withheld: Vec<Withheld>,
    modes: BTreeMap<ThreadId, MemoryMode>,
    ours: BTreeMap<ThreadId, Timestamp>,
    recaps: BTreeSet<ObjectId>,
}

impl Known {
    fn with(what: WithheldWhat) -> Self {
        let withheld = Withheld {
            id: "w".to_owned(),
            reason: WithheldReason::Forgotten,
            since: NOW,
            what,
        };
        Self {
            withheld: vec![withheld],
            ..Self::default()
        }
    }

    fn facts(&self) -> EditFacts<'_> {
        EditFacts {
            version: MemoryVersion::V1,
            now: NOW,
            quiet_seconds: 2,
            withheld: &self.withheld,
            modes: &self.modes,
            ours: &self.ours,
            known_recaps: &self.recaps,
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what a revision holds")]
fn side(text: &str) -> Option<Side> {
    Some(Side {
        blob: blob(1),
        text: text.to_owned(),
    })
}

fn path(name: &str) -> TreePath {
    TreePath::parse(name).unwrap()
}

fn thread(name: &str) -> ThreadId {
    ThreadId::parse(name).unwrap()
}

fn blob(byte: u8) -> ObjectId {
    ObjectId::from_bytes([byte; 20])
}

fn long_ago() -> Timestamp {
    NOW.minus_days(1)
}
