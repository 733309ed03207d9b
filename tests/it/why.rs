//! From a line of memory to the line of the transcript, and what is missing on
//! the way.

use crate::support::{Sandbox, Transcript, beside_each_other, thread_id};
use crate::undoing::{self, Dice};

const TABS: &str = "Always use tabs in the ledger, never spaces.";
const UV: &str = "Always use uv instead of pip for Python.";

fn two_sessions() -> Sandbox {
    let mut sandbox = Sandbox::new();
    for (number, words) in [(1, TABS), (2, UV)] {
        let story = format!(
            "human: Good morning.\nagent: Hello.\nhuman: {words}\nrun: make part{number} -> ok: done\nagent: Noted."
        );
        let started = format!("2026-03-0{number}T10:00:00Z");
        sandbox.session(&Transcript::codex(number, &started, &story));
        sandbox.at(&format!("2026-03-10T1{number}:30:00Z"));
        sandbox
            .run(&["run", "--session", &thread_id(number)])
            .success();
    }
    sandbox.at("2026-03-11T12:00:00Z");
    sandbox
}

/// `FILE:LINE` of the first line that holds `words`.
fn place_of(sandbox: &Sandbox, file: &str, words: &str) -> String {
    let text = sandbox.read(file);
    let line = text.lines().position(|line| line.contains(words)).unwrap();
    format!("{file}:{}", line + 1)
}

#[test]
fn a_line_leads_to_its_commit_its_recap_and_the_words_in_the_transcript() {
    let sandbox = two_sessions();
    let baselines = sandbox.git(&["log", "--format=%h", "--abbrev=10", "--grep=Kind: baseline"]);
    let commits: Vec<&str> = baselines.lines().collect();
    for (words, number, commit) in [(TABS, 1, commits[1]), (UV, 2, commits[0])] {
        for question in [
            place_of(&sandbox, "memory_summary.md", words),
            place_of(&sandbox, "MEMORY.md", words),
            words.to_uppercase(),
        ] {
            let why = sandbox.run(&["why", &question]).success();
            assert!(
                why.stdout.contains(&format!("came with {commit}")),
                "{question}: {}",
                why.stdout
            );
            assert!(
                why.stdout.contains(&thread_id(number)),
                "{question}: {}",
                why.stdout
            );
            let meant = why
                .stdout
                .lines()
                .find(|line| line.trim_start().starts_with('>'));
            let meant = meant.unwrap_or_else(|| panic!("{question}: {}", why.stdout));
            assert!(
                meant.contains("human user") && meant.contains(words),
                "{meant}"
            );
            assert!(
                why.stdout.contains("Noted."),
                "with its surroundings: {}",
                why.stdout
            );
        }
    }
}

#[test]
fn a_line_is_followed_through_rewording_and_moves() {
    let mut sandbox = two_sessions();
    let first = sandbox.git(&["log", "--format=%h", "--abbrev=10", "--grep=Kind: baseline"]);
    let first = first.lines().last().unwrap().to_owned();
    let summary = sandbox.read("memory_summary.md");
    let line = summary.lines().find(|line| line.contains(TABS)).unwrap();
    let reworded = line.replace("in the ledger", "in this ledger");
    let without = summary.replace(&format!("{line}\n"), "");
    sandbox.write("memory_summary.md", &format!("{without}\n{reworded}\n"));
    sandbox.git(&["commit", "-qam", "moved and reworded"]);
    sandbox.at("2026-03-11T13:00:00Z");
    let why = sandbox.run(&["why", "tabs in this ledger"]).success();
    why.prints("reworded by")
        .prints(&format!("came with {first}"));
}

#[test]
fn what_a_person_wrote_is_said_to_be_theirs() {
    let sandbox = two_sessions();
    let summary = sandbox.read("memory_summary.md");
    let own = "- Ask Grace before you touch the quarterly numbers.\n";
    let heading = "## User preferences\n\n";
    sandbox.write(
        "memory_summary.md",
        &summary.replace(heading, &format!("{heading}{own}")),
    );
    let place = place_of(&sandbox, "memory_summary.md", "Ask Grace");
    sandbox
        .run(&["why", &place])
        .success()
        .prints("not committed yet");
    // The others are found although they have moved down.
    let moved = place_of(&sandbox, "memory_summary.md", UV);
    sandbox.run(&["why", &moved]).success().prints("came with");
    sandbox.git(&["commit", "-qam", "mine"]);
    let why = sandbox.run(&["why", &place]).success();
    why.prints("was written by a person").prints("by Ada");
}

#[test]
fn a_note_is_a_source_too() {
    let mut sandbox = two_sessions();
    sandbox
        .run(&["note", "Remember that the staging server is called heron."])
        .success();
    sandbox.at("2026-03-11T13:00:00Z");
    sandbox.run(&["run"]).success();
    let why = sandbox
        .run(&["why", "staging server is called heron"])
        .success();
    why.prints("extensions/ad_hoc/notes/").prints("came with");
}

#[test]
fn what_is_missing_on_the_way_is_said() {
    let sandbox = two_sessions();
    std::fs::remove_dir_all(sandbox.path("codex/sessions")).unwrap();
    let why = sandbox.run(&["why", UV]).success();
    why.prints("rests on").prints("its transcript is gone");
    sandbox
        .run(&["why", "MEMORY.md:9999"])
        .exit(1)
        .says("lines");
    sandbox
        .run(&["why", "NOTHING.md:1"])
        .exit(1)
        .says("no file");
    sandbox
        .run(&["why", "nobody ever said this"])
        .exit(1)
        .says("no entry of memory");

    // A shallow clone in the place of the folder.
    let memories = sandbox.memories();
    let aside = sandbox.path("aside");
    std::fs::rename(&memories, &aside).unwrap();
    let from = format!("file://{}", aside.display());
    sandbox.git_in(
        &sandbox.path("work"),
        &[
            "clone",
            "-q",
            "--depth",
            "1",
            &from,
            memories.to_str().unwrap(),
        ],
    );
    let place = place_of(&sandbox, "MEMORY.md", TABS);
    let why = sandbox.run(&["why", &place]).success();
    why.prints("the oldest commit that is here");
}

#[test]
fn lines_that_never_moved_are_blamed_on_what_git_blames() {
    let sandbox = two_sessions();
    for file in ["MEMORY.md", "memory_summary.md"] {
        let blame = sandbox.git(&["blame", "-l", "-s", "--root", file]);
        for (index, line) in blame.lines().enumerate() {
            let (commit, text) = line.split_once(' ').unwrap();
            if text.len() < 60 {
                continue;
            }
            let place = format!("{file}:{}", index + 1);
            let why = sandbox.run(&["why", &place, "--json"]).success().json();
            let origin = &why["answers"][0]["origin"];
            if origin["steps"].as_array().unwrap().is_empty() {
                assert_eq!(origin["commit"]["commit"], commit, "{place}: {text}");
            }
        }
    }
}

/// Packs keep versions as differences to older or to newer ones, or whole.
#[test]
fn however_versions_are_packed_the_commit_of_a_line_is_that_of_git_blame() {
    let packings: [&[&str]; 3] = [
        &["rev-parse", "HEAD"],
        &["gc", "-q", "--aggressive", "--prune=now"],
        &["repack", "-q", "-a", "-d", "-F", "--depth=0"],
    ];
    let origin = Sandbox::new();
    undoing::baselines(&origin, &mut Dice(11));
    origin.git(&["reset", "-q", "--hard"]);
    beside_each_other(&packings, |packing| {
        let sandbox = origin.copy();
        sandbox.git(packing);
        let blame = sandbox.git(&["blame", "-l", "-s", undoing::FILE]);
        let blame: Vec<&str> = blame.lines().map(|line| &line[..40]).collect();
        let mut dice = Dice(5);
        for _ in 0..10 {
            let index = dice.below(blame.len());
            let question = format!("{}:{}", undoing::FILE, index + 1);
            let why = sandbox.run(&["why", &question, "--json"]).success().json();
            let origin = &why["answers"][0]["origin"];
            // Git stops where a line was reworded; we go on.
            let newest = match origin["steps"].get(0) {
                Some(step) => step["commit"].as_str().unwrap(),
                None => origin["commit"]["commit"].as_str().unwrap(),
            };
            assert_eq!(newest, blame[index], "{packing:?} {question}: {origin:#}");
        }
    });
}
