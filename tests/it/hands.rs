//! A person's edits, in every state that Git has for them: nothing of theirs
//! is lost or overwritten, by a pass or by `accept`.

use crate::attempts::{newest, waiting};
use crate::support::Sandbox;

const HEADING: &str = "## General Tips\n";
const LINE: &str = "- by hand: mind the gap";
const OTHER: &str = "- by hand: doors close";

/// How the person left their folder, and what of it is kept beside main.
type Case = (&'static str, fn(&Sandbox), bool);

const CASES: [Case; 6] = [
    ("saved, in no index", |sandbox| save(sandbox, LINE), false),
    (
        "staged",
        |sandbox| {
            save(sandbox, LINE);
            sandbox.git(&["add", "memory_summary.md"]);
        },
        false,
    ),
    (
        "staged, then written on",
        |sandbox| {
            save(sandbox, OTHER);
            sandbox.git(&["add", "memory_summary.md"]);
            let text = sandbox.read("memory_summary.md");
            sandbox.write("memory_summary.md", &text.replace(OTHER, LINE));
        },
        true,
    ),
    (
        "committed",
        |sandbox| {
            save(sandbox, LINE);
            sandbox.git(&["commit", "-q", "-a", "--no-verify", "-m", "mine"]);
        },
        false,
    ),
    (
        "committed, with more staged and more saved",
        |sandbox| {
            save(sandbox, LINE);
            sandbox.git(&["commit", "-q", "-a", "--no-verify", "-m", "mine"]);
            sandbox.write("extensions/ad_hoc/notes/staged.md", "Prefer short names.\n");
            sandbox.git(&["add", "extensions"]);
            sandbox.write("extensions/ad_hoc/notes/saved.md", "Prefer long breaks.\n");
        },
        false,
    ),
    (
        "taken out of the index only",
        |sandbox| {
            save(sandbox, LINE);
            sandbox.git(&["rm", "-q", "--cached", "memory_summary.md"]);
        },
        false,
    ),
];

/// Writes the person's line into the summary.
fn save(sandbox: &Sandbox, line: &str) {
    let summary = sandbox.read("memory_summary.md");
    assert!(summary.contains(HEADING), "{summary}");
    let text = summary.replacen(HEADING, &format!("{HEADING}\n{line}\n"), 1);
    sandbox.write("memory_summary.md", &text);
}

#[test]
fn whatever_state_an_edit_is_in_it_is_in_memory_afterwards() {
    let start = waiting();
    for (name, doing, is_kept) in CASES {
        for command in ["accept", "run"] {
            let sandbox = start.copy();
            let run = newest(&sandbox);
            if command == "run" {
                sandbox.run(&["reject", &run]).success();
            }
            doing(&sandbox);
            match command {
                "accept" => sandbox.run(&["accept", &run]).success(),
                _ => sandbox.run(&["run"]).success(),
            };
            let case = format!("{name}, {command}");
            let summary = sandbox.git(&["show", "main:memory_summary.md"]);
            assert!(summary.contains(LINE), "{case}:\n{summary}");
            let handbook = sandbox.git(&["show", "main:MEMORY.md"]);
            assert!(handbook.contains("report number 2"), "{case}:\n{handbook}");
            let notes = sandbox.git(&[
                "ls-tree",
                "-r",
                "--name-only",
                "main",
                "extensions/ad_hoc/notes",
            ]);
            let expected = usize::from(name.contains("more staged")) * 2;
            assert_eq!(notes.lines().count(), expected, "{case}: {notes}");
            let kept = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/memrev/kept"]);
            assert_eq!(kept.is_empty(), !is_kept, "{case}: {kept}");
            if let (true, Some(kept)) = (is_kept, kept.lines().next()) {
                let staged = sandbox.git(&["show", &format!("{kept}:memory_summary.md")]);
                assert!(staged.contains(OTHER), "{case}:\n{staged}");
            }
            sandbox.assert_sound();
        }
    }
}

/// The person's branch, their unfinished merge and the like are theirs: exit 1
/// with advice, and not a byte is written.
#[test]
fn a_repository_in_the_middle_of_something_is_left_alone_with_advice() {
    type Begin = fn(&Sandbox);
    let cases: [(&str, Begin, &str); 3] = [
        (
            "another branch",
            |sandbox| {
                sandbox.git(&["checkout", "-q", "-b", "mine"]);
            },
            "check out `main`",
        ),
        (
            "no branch",
            |sandbox| {
                sandbox.git(&["checkout", "-q", "--detach"]);
            },
            "check out `main`",
        ),
        (
            "a merge under way",
            |sandbox| {
                sandbox.git(&["checkout", "-q", "-b", "mine"]);
                save(sandbox, OTHER);
                sandbox.git(&["commit", "-q", "-a", "--no-verify", "-m", "theirs"]);
                sandbox.git(&["checkout", "-q", "main"]);
                sandbox.git(&["merge", "-q", "--no-commit", "--no-ff", "mine"]);
            },
            "merge",
        ),
    ];
    let start = waiting();
    for (name, doing, advice) in cases {
        let sandbox = start.copy();
        let run = newest(&sandbox);
        doing(&sandbox);
        save(&sandbox, LINE);
        let (head, summary) = (sandbox.head(), sandbox.read("memory_summary.md"));
        for arguments in [&["accept", &run][..], &["run"]] {
            sandbox.run(arguments).exit(1).says(advice);
            assert_eq!(sandbox.head(), head, "{name}");
            assert_eq!(sandbox.read("memory_summary.md"), summary, "{name}");
        }
        assert_eq!(newest(&sandbox), run, "{name}: the result still waits");
    }
}
