//! Purging: no byte of it is left in the home, and nothing else is lost.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use crate::support::{Run, Sandbox, Transcript, beside_each_other, thread_id};

const MARK: &str = "Wednesday lighthouse";
const NOTE: &str = "extensions/ad_hoc/notes/2026-03-10T09-00-00-light.md";

fn session(number: u32, words: &str) -> Transcript {
    let story = format!(
        "human: {words}
         run: cargo test -q -> ok: 12 passed
         agent: Done."
    );
    Transcript::codex(number, "2026-03-09T10:00:00Z", &story)
}

/// Two baselines: one with the mark in recap, handbook and summary, one without.
fn with_memory() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.session(&session(
        1,
        "From now on always deploy by the Wednesday lighthouse rule.",
    ));
    sandbox.run(&["run"]).success();
    sandbox.session(&session(
        2,
        "Never add a dependency without asking me first.",
    ));
    sandbox.run(&["run"]).success();
    sandbox
}

/// The mark everywhere that a repository has a place for it.
fn with_mark_everywhere() -> Sandbox {
    let mut sandbox = with_memory();
    sandbox.write(
        NOTE,
        "Always light the Wednesday lighthouse first.\nAnd ring the bell.\n",
    );
    sandbox.at("2026-03-10T12:05:00Z").run(&["run"]).success();
    // A side ref and a tag, by hand; in a file, its name and the messages.
    sandbox.git(&["switch", "-q", "-c", "side"]);
    sandbox.write(
        "skills/x/Wednesday lighthouse.md",
        "a Wednesday lighthouse\nb\n",
    );
    sandbox.git(&["add", "-A"]);
    sandbox.git(&[
        "commit",
        "-q",
        "-m",
        "side: the Wednesday lighthouse\n\nbody",
    ]);
    sandbox.git(&["tag", "-a", "v1", "-m", "a tag of the Wednesday lighthouse"]);
    sandbox.git(&["notes", "add", "-m", "a note on the Wednesday lighthouse"]);
    sandbox.git(&["switch", "-q", "main"]);
    // Two stashes.
    for number in [1, 2] {
        let text = format!(
            "{}\n- Wednesday lighthouse {number}\n",
            sandbox.read("MEMORY.md")
        );
        sandbox.write("MEMORY.md", &text);
        sandbox.git(&[
            "stash",
            "-q",
            "-m",
            &format!("on Wednesday lighthouse {number}"),
        ]);
    }
    // A commit that only the reflog has, then everything so far in a pack.
    sandbox.write("skills/y/SKILL.md", "Wednesday lighthouse in the reflog\n");
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-q", "-m", "gone"]);
    sandbox.git(&["reset", "-q", "--hard", "HEAD~1"]);
    sandbox.git(&["repack", "-q", "-a", "-d"]);
    // Loose again on top, with the mark in a message of main.
    let summary = sandbox.read("memory_summary.md");
    sandbox.write(
        "memory_summary.md",
        &summary.replace("## General Tips\n", "## General Tips\n\n- ask Grace\n"),
    );
    sandbox.git(&[
        "commit",
        "-q",
        "-a",
        "-m",
        "mine\n\nWednesday lighthouse said so",
    ]);
    // Uncommitted: a file of the person's, a staged one.
    sandbox.write("scratch.txt", "first\nWednesday lighthouse\nlast\n");
    sandbox.write("skills/z/SKILL.md", "staged Wednesday lighthouse\n");
    sandbox.git(&["add", "skills/z/SKILL.md"]);
    // The rest of the home.
    let home = sandbox.home();
    for file in ["log/inject.log", "cache/x", "staging/run/MEMORY.md"] {
        sandbox.write_at(&home.join(file), "x Wednesday lighthouse\n");
    }
    let ledger = rusqlite::Connection::open(home.join("ledger.sqlite")).unwrap();
    let sql = "INSERT INTO spend VALUES ('2026-03-10', 'Wednesday lighthouse', 1, 1, 1)";
    ledger.execute(sql, []).unwrap();
    sandbox
}

/// Places in the home that have the mark, objects of Git inflated.
fn places(sandbox: &Sandbox, mark: &str) -> Vec<String> {
    let has = |bytes: &[u8]| memchr::memmem::find(bytes, mark.as_bytes()).is_some();
    let mut places = Vec::new();
    for (path, bytes) in sandbox.fingerprint() {
        let path = path.strip_prefix(sandbox.home()).unwrap();
        if has(&bytes) || has(path.as_os_str().as_encoded_bytes()) {
            places.push(path.display().to_string());
        }
    }
    for name in sandbox.names("") {
        let folder = sandbox.home().join(&name);
        if folder.join(".git").is_dir() && has(&objects(sandbox, &folder)) {
            places.push(format!("{name}: an object"));
        }
        if Path::new(&name)
            .extension()
            .is_some_and(|end| end == "purge")
        {
            places.push(name);
        }
    }
    places
}

/// Every object, loose and packed, reachable or not.
fn objects(sandbox: &Sandbox, folder: &Path) -> Vec<u8> {
    let arguments = ["cat-file", "--batch-all-objects", "--batch", "--unordered"];
    sandbox
        .git_command(folder, &arguments)
        .output()
        .unwrap()
        .stdout
}

#[track_caller]
fn assert_clean(sandbox: &Sandbox, at: &str) {
    let places = places(sandbox, MARK);
    assert!(places.is_empty(), "{at}: {places:?}");
    sandbox.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn the_mark_is_found_everywhere_before_and_nowhere_after() {
    let sandbox = with_mark_everywhere();
    let before = sandbox.fingerprint();
    let look = sandbox
        .run(&["purge", MARK, "--dry-run", "--json"])
        .success()
        .json();
    assert_eq!(look["found"], true);
    let history = &look["folders"][0]["history"];
    for (kind, least) in [("files", 5), ("trees", 1), ("messages", 5)] {
        assert!(least <= history[kind].as_u64().unwrap(), "{kind}: {look:#}");
    }
    assert_eq!(look["ledger_rows"], 1);
    sandbox.run(&["purge", MARK]).exit(1).says("--yes");
    assert_eq!(sandbox.fingerprint(), before, "looking writes nothing");

    let commits = sandbox.git(&["rev-list", "--count", "main"]);
    let run = sandbox.run(&["purge", MARK, "--yes"]).success();
    assert!(!run.stdout.contains(MARK) && !run.stderr.contains(MARK));
    assert_clean(&sandbox, "after a purge");
    // Nothing else went.
    let count = |text: &str| text.trim().parse::<u32>().unwrap();
    let now = count(&sandbox.git(&["rev-list", "--count", "main"]));
    assert!(count(&commits) < now, "{commits} {now}");
    assert_eq!(sandbox.git(&["stash", "list"]).lines().count(), 2);
    assert!(sandbox.git(&["stash", "list"]).contains("on [purged] 2"));
    assert!(
        sandbox
            .git(&["show", "v1"])
            .contains("a tag of the [purged]")
    );
    let about = sandbox.git(&["log", "-1", "--notes", "side"]);
    assert!(about.contains("a note on the [purged]"), "{about}");
    let side = sandbox.git(&["ls-tree", "-r", "--name-only", "side"]);
    assert!(side.contains("skills/x/purged.md"), "{side}");
    assert_eq!(
        std::fs::read_to_string(sandbox.memories().join("scratch.txt")).unwrap(),
        "first\nlast\n"
    );
    let note = sandbox.read(NOTE);
    assert_eq!(
        note,
        "Always light the [purged] first.\nAnd ring the bell.\n"
    );
    assert!(sandbox.read("memory_summary.md").contains("- ask Grace"));
    sandbox.git(&["stash", "pop", "-q", "stash@{1}"]);
    assert!(sandbox.read("MEMORY.md").contains("- [purged] 1"));
    sandbox.git(&["checkout", "-q", "--", "MEMORY.md"]);
    let status = sandbox.git(&["status", "--porcelain"]);
    assert_eq!(status, "?? scratch.txt\n");
    sandbox.run(&["check"]).success();
    let message = sandbox.git(&["log", "--format=%B", "--grep", "purged from memory"]);
    assert!(message.contains("Memrev-Kind: forget"), "{message}");
    assert!(message.contains("Hash of the text"), "{message}");
    // Every input is consumed as before: ids in the trailers are the new ones.
    sandbox
        .run(&["purge", MARK, "--yes"])
        .exit(1)
        .says("nowhere");
}

#[test]
fn what_is_purged_does_not_come_back_and_history_still_adds_up() {
    let mut sandbox = with_memory();
    sandbox.run(&["purge", MARK, "--yes"]).success();
    assert_clean(&sandbox, "after a purge");
    // Trailers name the blobs that the trees have.
    let log = sandbox.git(&[
        "log",
        "--format=%(trailers:key=Memrev-Input,valueonly)",
        "main",
    ]);
    let ids = log.lines().filter_map(|line| line.split(' ').rev().nth(1));
    let mut count = 0;
    for id in ids {
        count += 1;
        sandbox.git(&["cat-file", "-e", id]);
    }
    assert!(1 < count, "{log}");
    sandbox.at("2026-03-10T13:00:00Z").run(&["run"]).success();
    for folder in ["extractions", "ledger.sqlite"] {
        let path = sandbox.home().join(folder);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
    sandbox
        .at("2026-03-10T14:00:00Z")
        .run(&["run", "--all"])
        .success();
    assert_eq!(
        sandbox.names("extractions/v1").len(),
        2,
        "both sessions were read again"
    );
    assert_clean(&sandbox, "after a rebuild from the transcripts");
    sandbox.assert_sound();
    assert!(
        sandbox
            .read("memory_summary.md")
            .contains("Never add a dependency")
    );
}

#[test]
fn what_is_withheld_names_versions_by_their_new_ids() {
    let sandbox = with_memory();
    sandbox.run(&["forget", MARK, "--yes"]).success();
    sandbox.run(&["purge", MARK, "--yes"]).success();
    assert_clean(&sandbox, "after forgetting and purging");
    sandbox.assert_sound();
    let mut count = 0;
    for name in sandbox.names("memories/extensions/withheld/entries") {
        let copy = sandbox.read(&format!("extensions/withheld/entries/{name}"));
        let own = std::fs::read_to_string(sandbox.home().join("withheld").join(&name)).unwrap();
        assert_eq!(copy, own, "{name}");
        let id = copy.lines().find_map(|line| line.strip_prefix("blob: "));
        if let Some(id) = id {
            count += 1;
            sandbox.git(&["cat-file", "-e", id.trim_matches('"')]);
        }
    }
    assert!(0 < count, "a version of the recap is withheld");
}

#[test]
fn a_work_tree_of_git_is_in_the_way_until_it_is_removed() {
    let sandbox = with_memory();
    let tree = sandbox.path("linked");
    let tree = tree.to_str().unwrap();
    sandbox.git(&["worktree", "add", "-q", tree, "-b", "linked"]);
    let before = sandbox.fingerprint();
    sandbox
        .run(&["purge", MARK, "--yes"])
        .exit(1)
        .says(tree)
        .says("worktree remove");
    assert_eq!(sandbox.fingerprint(), before);
    sandbox.git(&["worktree", "remove", "--force", tree]);
    sandbox.run(&["purge", MARK, "--yes"]).success();
    assert_clean(&sandbox, "after the work tree went");
    // Borrowed objects are no better.
    let info = sandbox.memories().join(".git/objects/info/alternates");
    std::fs::write(info, sandbox.path("elsewhere").to_str().unwrap()).unwrap();
    sandbox
        .run(&["purge", "Never add", "--yes"])
        .exit(1)
        .says("borrowed");
}

#[test]
fn sessions_notes_and_files_go_out_of_history_too() {
    let mut sandbox = with_memory();
    sandbox.write(NOTE, "Ring the bronze bell at noon.\n");
    sandbox.at("2026-03-10T12:05:00Z").run(&["run"]).success();
    let id = thread_id(1);
    let recap = sandbox.names("extractions/v1");
    sandbox.run(&["purge", "--thread", &id, "--yes"]).success();
    assert_clean(&sandbox, "a session");
    let all = objects(&sandbox, &sandbox.memories());
    let gone = recap
        .iter()
        .filter(|name| memchr::memmem::find(&all, name.as_bytes()).is_none());
    assert_eq!(gone.count(), 1, "{recap:?}");
    sandbox.run(&["purge", "--note", NOTE, "--yes"]).success();
    assert!(
        places(&sandbox, "bronze bell").is_empty(),
        "{:?}",
        places(&sandbox, "bronze bell")
    );
    sandbox.git(&["fsck", "--strict", "--no-dangling"]);
    sandbox.write(
        "skills/q/SKILL.md",
        "---\nname: q\ndescription: d\n---\n\nbrass kettle\n",
    );
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-q", "-m", "a skill"]);
    sandbox
        .run(&["purge", "--file", "skills/q/SKILL.md", "--yes"])
        .success();
    assert!(places(&sandbox, "brass kettle").is_empty());
    sandbox.at("2026-03-10T13:05:00Z").run(&["run"]).success();
    sandbox.run(&["check"]).success();
    sandbox.assert_sound();
    assert_clean(&sandbox, "a pass after it");
    assert!(
        sandbox
            .read("memory_summary.md")
            .contains("Never add a dependency")
    );
}

/// A result beside main, of which only the message speaks of an entry.
fn keep_attempt(sandbox: &Sandbox, run: &str, entry: &str) -> String {
    let record = serde_json::json!({
        "is_whole": true,
        "faults": [["loss", "too much went"]],
        "retired": [[entry, "old"], ["a bell of bronze", "old too"]],
        "forgotten": [entry],
    });
    let message = format!(
        "attempt: MEMORY.md\n\nMemrev-Kind: baseline\nMemrev-Run: {run}\nMemrev-Attempt: refused\nMemrev-Record: {record}\n"
    );
    let commit = sandbox.git(&["commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", &message]);
    let name = format!("refs/memrev/attempts/{run}");
    sandbox.git(&["update-ref", &name, commit.trim()]);
    name
}

#[test]
fn what_only_the_record_of_an_attempt_holds_is_found_and_goes() {
    let sandbox = with_memory();
    // As JSON writes it, no byte of it stands as it is.
    let entry = "the \"blue\\door\"\tfirst";
    let name = keep_attempt(&sandbox, "run-1", entry);
    let look = sandbox.run(&["purge", entry, "--dry-run", "--json"]);
    let look = look.success().json();
    assert_eq!(look["folders"][0]["history"]["messages"], 1, "{look:#}");
    assert_eq!(look["folders"][0]["history"]["files"], 0, "{look:#}");
    sandbox.run(&["purge", entry, "--yes"]).success();
    let all = objects(&sandbox, &sandbox.memories());
    for word in ["blue", "door"] {
        assert!(
            memchr::memmem::find(&all, word.as_bytes()).is_none(),
            "{word}"
        );
    }
    let key = "--format=%(trailers:key=Memrev-Record,valueonly)";
    let record = sandbox.git(&["log", "-1", key, &name]);
    let record: serde_json::Value = serde_json::from_str(record.trim()).unwrap();
    assert_eq!(
        record["retired"][1][0], "a bell of bronze",
        "the rest stays"
    );
    sandbox.run(&["attempts"]).success();
}

#[test]
fn a_purged_session_leaves_the_records_of_attempts_too() {
    let sandbox = with_memory();
    let summary = sandbox.read("memory_summary.md");
    let line = summary.lines().find(|line| line.contains(MARK)).unwrap();
    let entry = line.trim_start_matches("- ").replace(' ', "\n");
    let name = keep_attempt(&sandbox, "run-1", &entry);
    sandbox
        .run(&["purge", "--thread", &thread_id(1), "--yes"])
        .success();
    let message = sandbox.git(&["log", "-1", "--format=%B", &name]);
    assert!(!message.contains("lighthouse"), "{message}");
    assert!(message.contains("Memrev-Run: run-1"), "{message}");
    sandbox.run(&["attempts"]).success();
    sandbox.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn notes_of_git_that_lie_in_folders_stay_with_their_commits() {
    let sandbox = with_memory();
    let put = |arguments: &[&str], text: String| {
        let mut command = sandbox.git_command(&sandbox.memories(), arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        Run::of(child.wait_with_output().unwrap())
            .success()
            .stdout
            .trim()
            .to_owned()
    };
    let head = sandbox.head();
    let first = sandbox.git(&["rev-list", "--max-parents=0", "HEAD"]);
    let note = |words: &str| put(&["hash-object", "-w", "--stdin"], words.to_owned());
    let (one, other) = (
        note("of the head, a Wednesday lighthouse\n"),
        note("of the first\n"),
    );
    let first = first.trim();
    // Two levels for one, one level for the other.
    let deep = put(&["mktree"], format!("100644 blob {one}\t{}\n", &head[4..]));
    let middle = put(
        &["mktree"],
        format!("040000 tree {deep}\t{}\n", &head[2..4]),
    );
    let flat = put(
        &["mktree"],
        format!("100644 blob {other}\t{}\n", &first[2..]),
    );
    let top = format!(
        "040000 tree {middle}\t{}\n040000 tree {flat}\t{}\n",
        &head[..2],
        &first[..2]
    );
    let top = put(&["mktree"], top);
    let commit = sandbox.git(&["commit-tree", &top, "-m", "notes"]);
    sandbox.git(&["update-ref", "refs/notes/commits", commit.trim()]);
    let shown = |commit: &str| sandbox.git(&["log", "-1", "--format=%N", commit]);
    assert!(shown("HEAD").contains("of the head"));
    sandbox.run(&["purge", MARK, "--yes"]).success();
    assert_clean(&sandbox, "after a purge");
    // The receipt is the head now.
    let noted = sandbox.git(&["notes", "list"]);
    assert_eq!(noted.lines().count(), 2, "{noted}");
    for line in noted.lines() {
        let (note, about) = line.split_once(' ').unwrap();
        sandbox.git(&["cat-file", "-e", about]);
        let words = sandbox.git(&["cat-file", "blob", note]);
        assert!(shown(about).contains(words.trim()), "{words}");
    }
    assert!(noted.contains(first) && !noted.contains(&head), "{noted}");
    sandbox.git(&["notes", "add", "-m", "one more", "HEAD"]);
    assert_eq!(sandbox.git(&["notes", "list"]).lines().count(), 3);
}

#[test]
fn the_text_may_come_from_standard_input_and_both_folders_are_cleaned() {
    let sandbox = Sandbox::empty();
    sandbox.configure("[memories]\ndual_write = true\n");
    sandbox.run(&["init"]).success();
    sandbox.session(&session(
        1,
        "From now on always deploy by the Wednesday lighthouse rule.",
    ));
    sandbox.run(&["run"]).success();
    let mut command = sandbox.command(&["purge", "--pattern-from", "-", "--yes"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"Wednesday lighthouse\n")
        .unwrap();
    Run::of(child.wait_with_output().unwrap()).success();
    assert_clean(&sandbox, "both folders");
    let folder = sandbox.home().join("memories_v2");
    sandbox.git_in(&folder, &["fsck", "--strict", "--no-dangling"]);
    sandbox
        .run(&["purge", "abc", "--yes"])
        .exit(2)
        .says("too many places");
    sandbox.run(&["purge", "--yes"]).exit(2);
}

#[test]
fn killed_at_any_point_a_purge_says_so_and_can_be_repeated() {
    let prepared = with_mark_everywhere();
    let wish = ["purge", MARK, "--yes"];
    let points = prepared.copy().trace(&wish);
    assert!(40 < points.len(), "{points:?}");
    let numbers: Vec<usize> = (1..=points.len()).collect();
    beside_each_other(&numbers, |number| {
        let sandbox = prepared.copy();
        let at = &points[number - 1];
        assert!(sandbox.kill_at(&number.to_string(), &wish), "{at}");
        // The old or the new repository, sound either way.
        sandbox.git(&["fsck", "--strict", "--no-dangling"]);
        let is_begun = sandbox.home().join("memories.purge/pending").exists();
        let status = sandbox.run(&["status"]).success();
        let is_said = status.stdout.contains("purge was begun");
        assert_eq!(is_said, is_begun, "{at}: {}", status.stdout);
        let again = sandbox.run(&wish);
        let is_fine = matches!(again.code, Some(0 | 1));
        assert!(is_fine, "{at}: {}", again.stderr);
        assert_clean(&sandbox, at);
        assert_eq!(sandbox.git(&["stash", "list"]).lines().count(), 2, "{at}");
        assert!(
            sandbox.read("memory_summary.md").contains("- ask Grace"),
            "{at}"
        );
        sandbox.run(&["check"]).success();
    });
}
