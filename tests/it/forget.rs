//! Forgetting: gone now, and it stays gone whatever brings it back.

use crate::support::{Sandbox, Transcript, beside_each_other, thread_id};

const MARK: &str = "Wednesday lighthouse";
const NOTE: &str = "extensions/ad_hoc/notes/2026-03-10T09-00-00-tabs.md";

fn session(number: u32, words: &str) -> Transcript {
    let story = format!(
        "human: {words}
         run: cargo test -q -> ok: 12 passed
         agent: Done."
    );
    Transcript::codex(number, "2026-03-09T10:00:00Z", &story)
}

fn with_memory() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.session(&session(
        1,
        "From now on always deploy by the Wednesday lighthouse rule.",
    ));
    sandbox.session(&session(
        2,
        "Never add a dependency without asking me first.",
    ));
    sandbox.write(NOTE, "Always indent with tabs.\n");
    sandbox.run(&["run"]).success();
    assert!(all(&sandbox).contains(MARK));
    sandbox
}

/// Every file of memory and every recap.
fn all(sandbox: &Sandbox) -> String {
    let mut text = String::new();
    for (path, bytes) in sandbox.fingerprint() {
        let path = path
            .strip_prefix(sandbox.home())
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let counts = (path.starts_with("memories") || path.starts_with("extractions"))
            && !path.contains(".git/");
        if counts {
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    text
}

#[track_caller]
fn assert_stays_forgotten(sandbox: &mut Sandbox, words: &str, others: &[&str]) {
    for minute in [1, 2] {
        sandbox.at(&format!("2026-03-10T13:{minute:02}:00Z"));
        sandbox.run(&["run"]).success();
        assert!(
            !all(sandbox).contains(words),
            "{words:?} is back:\n{}",
            all(sandbox)
        );
        sandbox.run(&["check"]).success();
        for other in others {
            assert!(all(sandbox).contains(other), "{other:?} is gone as well");
        }
    }
    sandbox.assert_sound();
}

#[test]
fn a_phrase_is_shown_first_and_then_gone_from_every_file() {
    let mut sandbox = with_memory();
    let before = sandbox.fingerprint();
    sandbox
        .run(&["forget", "wednesday LIGHTHOUSE", "--dry-run"])
        .success()
        .prints("MEMORY.md");
    sandbox
        .run(&["forget", "wednesday lighthouse"])
        .exit(1)
        .says("--yes");
    assert_eq!(sandbox.fingerprint(), before, "looking writes nothing");
    let run = sandbox
        .run(&["forget", "wednesday lighthouse", "--yes", "--json"])
        .success();
    let json = run.json();
    assert_eq!(json["written"], true);
    assert!(json["folders"][0]["commit"].is_string(), "{json}");
    assert!(!all(&sandbox).contains(MARK), "{}", all(&sandbox));
    sandbox.run(&["check"]).success();
    sandbox.assert_sound();
    let message = sandbox.git(&["log", "-1", "--format=%B"]);
    assert!(message.contains("Memrev-Kind: forget"), "{message}");
    assert!(!message.to_lowercase().contains("lighthouse"), "{message}");
    sandbox
        .run(&["forget", "wednesday lighthouse", "--yes"])
        .exit(1)
        .says("no entry");
    assert_stays_forgotten(
        &mut sandbox,
        MARK,
        &["Never add a dependency", "indent with tabs"],
    );
}

#[test]
fn a_session_and_a_note_are_forgotten_with_what_only_they_support() {
    let mut sandbox = with_memory();
    let id = thread_id(1);
    sandbox.run(&["forget", "--thread", &id, "--yes"]).success();
    assert!(!all(&sandbox).contains(MARK), "{}", all(&sandbox));
    let recaps = |sandbox: &Sandbox| sandbox.names("extractions/v1").len();
    assert_eq!(recaps(&sandbox), 1);
    sandbox.run(&["check"]).success();
    sandbox.run(&["forget", "--note", NOTE, "--yes"]).success();
    assert!(!sandbox.memories().join(NOTE).exists());
    sandbox.run(&["check"]).success();
    assert!(
        !all(&sandbox).contains("indent with tabs"),
        "{}",
        all(&sandbox)
    );
    assert_stays_forgotten(&mut sandbox, MARK, &["Never add a dependency"]);
    assert!(!all(&sandbox).contains("indent with tabs"));
    sandbox
        .run(&["forget", "--note", "no-such.md", "--yes"])
        .exit(1)
        .says("no note");
    sandbox
        .run(&["forget", "--thread", "no-such-1", "--yes"])
        .exit(1);
}

/// Takes the memory back to before it was forgotten, in every way there is.
#[test]
fn what_is_forgotten_stays_so_whatever_brings_it_back() {
    type Undo = fn(&Sandbox);
    let wishes: [&[&str]; 2] = [&["forget", MARK], &["forget", "--thread", &thread_id(1)]];
    let undoings: [(&str, Undo); 5] = [
        ("read again", |sandbox| {
            std::fs::remove_dir_all(sandbox.home().join("extractions")).unwrap();
        }),
        ("a deleted ledger", |sandbox| {
            std::fs::remove_dir_all(sandbox.home().join("extractions")).unwrap();
            std::fs::remove_file(sandbox.home().join("ledger.sqlite")).unwrap();
        }),
        ("a reset", |sandbox| {
            sandbox.git(&["reset", "-q", "--hard", "HEAD~1"]);
        }),
        ("a stash of an old recap", |sandbox| {
            let recap = sandbox.git(&["ls-tree", "--name-only", "HEAD~1", "rollout_summaries/"]);
            let recap = recap
                .lines()
                .find(|name| name.contains("-0001-") || name.contains("deploy"));
            let recap = recap.map(str::to_owned).unwrap_or_default();
            if !recap.is_empty() {
                sandbox.git(&["restore", "--source=HEAD~1", "--", &recap]);
                sandbox.git(&["stash", "-q", "-u"]);
                sandbox.git(&["stash", "pop", "-q"]);
            }
        }),
        ("a session that goes on", |sandbox| {
            let longer = "From now on always deploy by the Wednesday lighthouse rule.
                 agent: ok
                 human: And thank you.";
            sandbox.session(&session(1, longer));
        }),
    ];
    for wish in wishes {
        for (name, undo) in undoings {
            let mut sandbox = with_memory();
            let mut arguments = wish.to_vec();
            arguments.push("--yes");
            sandbox.run(&arguments).success();
            undo(&sandbox);
            for minute in [1, 2] {
                sandbox.at(&format!("2026-03-10T13:{minute:02}:00Z"));
                sandbox.run(&["run"]).success();
            }
            for file in ["memory_summary.md", "MEMORY.md", "raw_memories.md"] {
                let text = sandbox.read(file);
                assert!(!text.contains(MARK), "{wish:?}, {name}: {file}\n{text}");
            }
            let committed = sandbox.git_command(&sandbox.memories(), &["grep", "-c", MARK, "HEAD"]);
            let mut committed = committed;
            let found = committed.output().unwrap();
            let found = String::from_utf8(found.stdout).unwrap();
            assert_eq!(found, "", "{wish:?}, {name}");
        }
    }
}

#[test]
fn a_persons_edits_are_committed_first_and_stay() {
    let sandbox = with_memory();
    let summary = sandbox.read("memory_summary.md");
    let edited = summary.replace(
        "## General Tips\n",
        "## General Tips\n\n- ask Grace about it\n",
    );
    sandbox.write("memory_summary.md", &edited);
    sandbox.run(&["forget", MARK, "--yes"]).success();
    let subjects = sandbox.subjects();
    assert!(
        subjects[0].starts_with("forget:") && subjects[1].starts_with("edit:"),
        "{subjects:?}"
    );
    assert!(
        sandbox
            .read("memory_summary.md")
            .contains("ask Grace about it")
    );
    assert!(!all(&sandbox).contains(MARK));
    sandbox.assert_sound();
}

#[test]
fn both_folders_forget() {
    let sandbox = Sandbox::empty();
    sandbox.configure("[memories]\ndual_write = true\n");
    sandbox.run(&["init"]).success();
    sandbox.session(&session(
        1,
        "From now on always deploy by the Wednesday lighthouse rule.",
    ));
    sandbox.run(&["run"]).success();
    sandbox.run(&["forget", MARK, "--yes"]).success();
    for folder in ["memories", "memories_v2"] {
        let folder = sandbox.home().join(folder);
        let log = sandbox.git_in(&folder, &["log", "-1", "--format=%s"]);
        assert!(log.starts_with("forget:"), "{log}");
    }
    let left = all(&sandbox);
    assert!(!left.contains(MARK), "{left}");
}

#[test]
fn killed_at_any_point_it_is_not_there_after_the_next_pass() {
    let id = thread_id(1);
    for wish in [
        vec!["forget", MARK, "--yes"],
        vec!["forget", "--thread", &id, "--yes"],
    ] {
        let prepared = with_memory();
        let points = prepared.copy().trace(&wish);
        assert!(20 < points.len(), "{points:?}");
        let numbers: Vec<usize> = (1..=points.len()).collect();
        beside_each_other(&numbers, |number| {
            let mut sandbox = prepared.copy();
            assert!(sandbox.kill_at(&number.to_string(), &wish), "{number}");
            let at = &points[number - 1];
            sandbox.at("2026-03-10T13:01:00Z");
            if !sandbox.names("withheld").is_empty() {
                // Whatever was begun, a pass keeps it out of the memory files.
                sandbox.run(&["run"]).success();
                for file in ["memory_summary.md", "MEMORY.md"] {
                    let text = sandbox.read(file);
                    assert!(!text.contains(MARK), "{wish:?} at {at}: {file}\n{text}");
                }
            }
            let again = sandbox.run(&wish);
            let is_fine = matches!(again.code, Some(0 | 1));
            assert!(is_fine, "{wish:?} at {at}: {}", again.stderr);
            assert!(!all(&sandbox).contains(MARK), "{wish:?} at {at}");
            sandbox.run(&["check"]).success();
            sandbox.assert_sound();
        });
    }
}
