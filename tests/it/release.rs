//! Letting in again what was withheld, stopped at any moment; and what stays
//! withheld whatever a person does with `git`.

use std::collections::BTreeSet;

use crate::support::{Run, Sandbox, Transcript, beside_each_other, thread_id};

const TABS: &str = "Always use tabs in the ledger.";
const UV: &str = "Always use uv instead of pip.";

/// One baseline for each of two sessions.
fn two_baselines(config: &str) -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.configure(config);
    for (number, words) in [(1, TABS), (2, UV)] {
        let story = format!("human: {words}\nrun: make part{number} -> ok: done\nagent: Done.");
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

fn memory(sandbox: &Sandbox) -> String {
    ["memory_summary.md", "MEMORY.md"]
        .map(|file| sandbox.read(file))
        .concat()
}

fn withheld(sandbox: &Sandbox) -> BTreeSet<String> {
    let list = sandbox.run(&["release", "--json"]).success().json();
    let all = list["withheld"].as_array().unwrap();
    all.iter()
        .map(|it| it["id"].as_str().unwrap().to_owned())
        .collect()
}

fn copies(sandbox: &Sandbox) -> Vec<String> {
    ["memories", "memories_v2"]
        .map(|folder| sandbox.names(&format!("{folder}/extensions/withheld/entries")))
        .concat()
}

/// The recap of the second session, which brought [`UV`].
fn recap_of_uv(sandbox: &Sandbox) -> String {
    let names = sandbox.names("memories/rollout_summaries");
    let mut all = names.iter().map(|name| format!("rollout_summaries/{name}"));
    all.rfind(|path| sandbox.read(path).contains(UV)).unwrap()
}

#[test]
fn killed_at_any_point_a_release_is_done_or_not_begun_and_the_same_command_ends_it() {
    let mut standing = two_baselines("[memories]\ndual_write = true\n");
    standing.run(&["revert", "HEAD"]).success();
    standing.at("2026-03-11T12:05:00Z");
    // The other folder takes its copies with the next pass.
    standing.run(&["run"]).success();
    standing.at("2026-03-11T13:00:00Z");
    let held = withheld(&standing);
    assert!(2 < held.len() && !copies(&standing).is_empty(), "{held:?}");
    let command: Vec<&str> = [
        &["release"][..],
        &held.iter().map(String::as_str).collect::<Vec<_>>(),
    ]
    .concat();
    // Something uncommitted of the person's is taken in on the way.
    let note = "extensions/ad_hoc/notes/2026-03-11T09-00-00-x.md";
    standing.write(note, "Remember that the port is 8080.\n");

    let traced = standing.copy();
    let points: BTreeSet<String> = traced.trace(&command).into_iter().collect();
    for point in ["release.chosen", "release.marked", "release.committed"] {
        assert!(points.contains(point), "{points:?}");
    }
    assert_eq!(withheld(&traced), BTreeSet::new());
    let points: Vec<String> = points.into_iter().collect();
    beside_each_other(&points, |point| {
        let mut sandbox = standing.copy();
        assert!(sandbox.kill_at(point, &command), "{point}");
        let left = withheld(&sandbox);
        assert!(left.is_subset(&held), "{point}: {left:?}");
        sandbox.at("2026-03-12T12:00:00Z");
        if !left.is_empty() {
            sandbox.run(&command).success();
        }
        sandbox.at("2026-03-13T12:00:00Z");
        sandbox.run(&["run", "--all"]).success();
        assert_eq!(withheld(&sandbox), BTreeSet::new(), "{point}");
        assert_eq!(
            copies(&sandbox),
            Vec::<String>::new(),
            "{point}: they say nothing any more"
        );
        assert!(memory(&sandbox).contains(UV), "{point}: not let in");
        assert!(memory(&sandbox).contains("8080"), "{point}");
        assert_eq!(
            sandbox.read(note),
            "Remember that the port is 8080.\n",
            "{point}"
        );
        sandbox.assert_sound();
        sandbox.git_in(
            &sandbox.home().join("memories_v2"),
            &["fsck", "--strict", "--no-dangling"],
        );
        sandbox.run(&["run"]).success().says("nothing to do");
    });
}

#[test]
fn with_two_memories_a_revert_says_what_becomes_of_the_other() {
    let mut sandbox = two_baselines("[memories]\ndual_write = true\n");
    let other = sandbox.home().join("memories_v2/memory_summary.md");
    let of_other = || std::fs::read_to_string(&other).unwrap();
    assert!(of_other().contains(UV));
    for more in [&["--dry-run"][..], &[]] {
        let run = sandbox
            .run(&[&["revert", "HEAD"][..], more].concat())
            .success();
        run.says("the other memory, v2,")
            .says("taken out of it by the next pass");
    }
    assert!(of_other().contains(UV), "it has baselines of its own");
    sandbox.at("2026-03-12T12:00:00Z");
    sandbox.run(&["run", "--all"]).success();
    assert!(
        !of_other().contains(UV) && of_other().contains(TABS),
        "{}",
        of_other()
    );
    assert!(!memory(&sandbox).contains(UV));
}

/// `git stash pop` brings an old recap back in each way in which it can.
#[test]
fn a_stash_that_brings_a_withheld_recap_back_leaves_it_withheld() {
    type Way = fn(&Sandbox, &str);
    let ways: [(&str, Way); 3] = [
        ("the recap as it was", |sandbox, recap| {
            sandbox.run(&["revert", "HEAD"]).success();
            sandbox.git(&["checkout", "-q", "HEAD~1", "--", recap]);
            sandbox.git(&["stash", "-q"]);
            sandbox.git(&["stash", "pop", "-q"]);
        }),
        ("an untracked copy", |sandbox, recap| {
            let text = sandbox.read(recap);
            sandbox.run(&["revert", "HEAD"]).success();
            sandbox.write(recap, &text);
            sandbox.git(&["stash", "-q", "-u"]);
            sandbox.git(&["stash", "pop", "-q"]);
        }),
        ("one that the person had edited", |sandbox, recap| {
            let text = sandbox.read(recap);
            sandbox.write(recap, &format!("{text}\nMore of it.\n"));
            sandbox.git(&["stash", "-q"]);
            sandbox.run(&["revert", "HEAD"]).success();
            let pop = ["stash", "pop", "-q"];
            let output = sandbox.git_command(&sandbox.memories(), &pop).output();
            assert!(!Run::of(output.unwrap()).stderr.contains("fatal"));
            // It is in conflict with the file that is gone; nothing is done
            // before the person has said what they want.
            sandbox.run(&["run"]).exit(1);
            sandbox.git(&["add", recap]);
            assert!(sandbox.read(recap).contains(UV), "their stash's version");
        }),
    ];
    beside_each_other(&ways, |(name, way)| {
        let mut sandbox = two_baselines("");
        let recap = recap_of_uv(&sandbox);
        way(&sandbox, &recap);
        for day in [12, 13] {
            sandbox.at(&format!("2026-03-{day}T12:00:00Z"));
            let run = sandbox.run(&["run", "--all"]);
            assert_eq!(run.code, Some(0), "{name}: {}", run.stderr);
            assert!(!memory(&sandbox).contains(UV), "{name}: it came back");
            assert!(!sandbox.read("raw_memories.md").contains(UV), "{name}");
        }
        assert!(memory(&sandbox).contains(TABS), "{name}");
        // What a person put there is theirs; it is only said.
        assert!(
            sandbox.read(&recap).contains(UV),
            "{name}: it was taken away"
        );
        let status = sandbox.run(&["status"]).success();
        assert!(status.stdout.contains(&recap), "{name}: {}", status.stdout);
        sandbox.git(&["fsck", "--strict", "--no-dangling"]);
    });
}

#[test]
fn taking_back_a_newer_version_of_a_recap_leaves_the_older_in_memory() {
    const LATER: &str = "Always sign the ledger with both keys.";
    let mut sandbox = two_baselines("");
    let story = format!(
        "human: {UV}\nrun: make part2 -> ok: done\nagent: Done.\nhuman: {LATER}\nagent: Yes."
    );
    sandbox.session(&Transcript::codex(2, "2026-03-02T10:00:00Z", &story));
    sandbox.run(&["run", "--session", &thread_id(2)]).success();
    assert!(memory(&sandbox).contains(LATER) && memory(&sandbox).contains(UV));
    sandbox.at("2026-03-11T13:00:00Z");
    sandbox.run(&["revert", "HEAD"]).success();
    for day in [11, 12, 13] {
        let text = memory(&sandbox);
        assert!(!text.contains(LATER), "{day}: it came back\n{text}");
        assert!(
            text.contains(UV) && text.contains(TABS),
            "{day}: the older went too\n{text}"
        );
        sandbox.at(&format!("2026-03-{day}T14:00:00Z"));
        sandbox.run(&["run", "--all"]).success();
        sandbox.assert_sound();
    }
    assert!(sandbox.read(&recap_of_uv(&sandbox)).contains(UV));
}
