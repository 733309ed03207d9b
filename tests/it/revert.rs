//! Taking baselines back, by `memrev revert` and by plain `git`, and letting
//! in again what is withheld.

use std::collections::BTreeSet;

use crate::support::{Run, Sandbox, Transcript, beside_each_other, thread_id};

const TABS: &str = "Always use tabs in the ledger.";
const UV: &str = "Always use uv instead of pip.";
const CHINESE: &str = "以后提交信息都用中文写。";

/// One baseline per statement, oldest first; session 1 says the first.
fn baselines(statements: &[&str]) -> Sandbox {
    let mut sandbox = Sandbox::new();
    for (index, statement) in statements.iter().enumerate() {
        let number = u32::try_from(index + 1).unwrap();
        let story = format!(
            "human: {statement}\nrun: make part{number} -> ok: done\nagent: Done with part {number}."
        );
        let started = format!("2026-03-0{number}T10:00:00Z");
        sandbox.session(&Transcript::codex(number, &started, &story));
        sandbox.at(&format!("2026-03-10T1{index}:30:00Z"));
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

fn withheld(sandbox: &Sandbox) -> Vec<serde_json::Value> {
    let list = sandbox.run(&["release", "--json"]).success().json();
    list["withheld"].as_array().unwrap().clone()
}

fn baseline(sandbox: &Sandbox, nth_last: usize) -> String {
    let log = sandbox.git(&[
        "log",
        "--format=%H",
        "--grep=^Memrev-Kind: baseline",
        "main",
    ]);
    log.lines().nth(nth_last).unwrap().to_owned()
}

#[track_caller]
fn assert_stays_out(sandbox: &mut Sandbox, words: &str) {
    let before = memory(sandbox);
    assert!(!before.contains(words), "{before}");
    sandbox.at("2026-03-12T12:00:00Z");
    sandbox.run(&["run", "--all"]).success();
    assert!(!memory(sandbox).contains(words), "it came back");
    sandbox.assert_sound();
}

#[test]
fn the_newest_baseline_is_taken_back_and_stays_back() {
    let mut sandbox = baselines(&[TABS, UV]);
    let target = baseline(&sandbox, 0);
    let dry = sandbox.run(&["revert", &target, "--dry-run"]).success();
    dry.prints("would take back").says("nothing was written");
    assert!(memory(&sandbox).contains(UV));
    let run = sandbox.run(&["revert", &target]).success();
    run.prints("took back").says("memrev release --all-of");
    sandbox.assert_sound();
    let shown = sandbox.git(&["log", "-1", "--format=%B"]);
    assert!(
        shown.contains(&format!("This reverts commit {target}.")),
        "{shown}"
    );
    assert!(shown.contains("Memrev-Kind: revert"), "{shown}");
    assert!(memory(&sandbox).contains(TABS));
    sandbox
        .run(&["status"])
        .success()
        .prints("withheld (`memrev release`");
    assert_stays_out(&mut sandbox, UV);
    let again = sandbox.run(&["revert", &target]).exit(1);
    again.says("was taken back by");
}

#[test]
fn a_baseline_below_others_is_taken_back_and_theirs_stays() {
    for nth in [1, 2] {
        let mut sandbox = baselines(&[TABS, UV, CHINESE]);
        let all = [CHINESE, UV, TABS];
        let target = baseline(&sandbox, nth);
        let run = sandbox.run(&["revert", &target]);
        if run.code != Some(0) {
            // The first one made the files: what others changed in them since is said.
            assert_eq!((nth, run.code), (2, Some(1)), "{}", run.stderr);
            run.says("what stands now").says("nothing was written");
            continue;
        }
        sandbox.assert_sound();
        for (index, words) in all.iter().enumerate() {
            assert_eq!(
                memory(&sandbox).contains(words),
                index != nth,
                "{nth} {words}"
            );
        }
        assert_stays_out(&mut sandbox, all[nth]);
        for (index, words) in all.iter().enumerate() {
            assert_eq!(
                memory(&sandbox).contains(words),
                index != nth,
                "{nth} {words}"
            );
        }
        sandbox.run(&["check"]).success();
    }
}

#[test]
fn a_run_names_its_baseline_and_the_output_follows_its_schema() {
    let sandbox = baselines(&[TABS, UV]);
    let run = sandbox.git(&["log", "-1", "--format=%(trailers:key=Memrev-Run,valueonly)"]);
    let json = sandbox
        .run(&["revert", run.trim(), "--json"])
        .success()
        .json();
    assert_eq!(json["written"], true);
    assert_eq!(json["withheld"]["sessions"], 1);
    assert_eq!(json["withheld"]["inputs"], 1);
    assert!(json["withheld"]["entries"].as_u64().unwrap() > 0, "{json}");
}

#[test]
fn with_retry_nothing_is_withheld_and_the_next_pass_tries_again() {
    let mut sandbox = baselines(&[TABS, UV]);
    sandbox
        .run(&["revert", "HEAD", "--retry"])
        .success()
        .says("tries them again");
    assert!(!memory(&sandbox).contains(UV));
    assert_eq!(withheld(&sandbox), Vec::<serde_json::Value>::new());
    sandbox.at("2026-03-12T12:00:00Z");
    sandbox.run(&["run"]).success();
    assert!(memory(&sandbox).contains(UV));
    sandbox.assert_sound();
}

#[test]
fn reverting_the_revert_brings_the_baseline_and_its_inputs_back() {
    let mut sandbox = baselines(&[TABS, UV]);
    let before = memory(&sandbox);
    sandbox.run(&["revert", "HEAD"]).success();
    sandbox.at("2026-03-11T13:00:00Z");
    sandbox
        .run(&["revert", "HEAD"])
        .success()
        .prints("brought back");
    sandbox.assert_sound();
    assert_eq!(memory(&sandbox), before);
    assert_eq!(withheld(&sandbox), Vec::<serde_json::Value>::new());
    assert_eq!(
        sandbox.names("memories/extensions/withheld/entries"),
        Vec::<String>::new()
    );
    sandbox.at("2026-03-12T12:00:00Z");
    sandbox
        .run(&["run", "--all"])
        .success()
        .says("nothing to do");
    // And once more.
    sandbox.run(&["revert", "HEAD"]).success();
    assert_stays_out(&mut sandbox, UV);
}

#[test]
fn a_place_that_was_changed_since_is_shown_and_nothing_is_written() {
    let mut sandbox = baselines(&[TABS, UV]);
    let target = baseline(&sandbox, 0);
    let summary = sandbox.read("memory_summary.md");
    let edited = summary.replace(UV, "Always use uv, but pip in the old tree.");
    assert_ne!(edited, summary);
    sandbox.write("memory_summary.md", &edited);
    let (head, files) = (sandbox.head(), sandbox.names("withheld"));
    let run = sandbox.run(&["revert", &target]).exit(1);
    run.says("memory_summary.md:")
        .says("the baseline said")
        .says(UV)
        .says("pip in the old tree")
        .says("nothing was written");
    assert_eq!((sandbox.head(), sandbox.names("withheld")), (head, files));
    assert_eq!(sandbox.read("memory_summary.md"), edited);
    let json = sandbox.run(&["revert", &target, "--json"]).exit(1).json();
    assert_eq!(json["conflicts"][0]["path"], "memory_summary.md");
    assert!(
        json["conflicts"][0]["parts"][0]["now"]
            .as_str()
            .unwrap()
            .contains("old tree")
    );

    // Committed, it is the same; made as it was, it goes.
    sandbox.at("2026-03-11T13:00:00Z");
    sandbox.git(&["commit", "-qam", "mine"]);
    sandbox.run(&["revert", &target]).exit(1);
    sandbox.write("memory_summary.md", &summary);
    sandbox.run(&["revert", &target]).success();
    assert_stays_out(&mut sandbox, UV);
}

#[test]
fn edits_that_are_not_committed_are_committed_first_and_stay() {
    let mut sandbox = baselines(&[TABS, UV]);
    let summary = sandbox.read("memory_summary.md");
    let own = "- Ask Grace about the ledger.\n";
    let heading = "## User preferences\n\n";
    sandbox.write(
        "memory_summary.md",
        &summary.replace(heading, &format!("{heading}{own}")),
    );
    let note = "extensions/ad_hoc/notes/2026-03-11T09-00-00-x.md";
    sandbox.write(note, "Remember that the port is 8080.\n");
    sandbox
        .run(&["revert", "HEAD"])
        .success()
        .says("committed before");
    let subjects = sandbox.subjects();
    assert!(subjects[0].starts_with("revert: baseline"), "{subjects:?}");
    assert!(subjects[1].starts_with("edit:"), "{subjects:?}");
    assert_eq!(sandbox.read(note), "Remember that the port is 8080.\n");
    assert!(sandbox.read("memory_summary.md").contains(own));
    assert_stays_out(&mut sandbox, UV);
    assert!(memory(&sandbox).contains("the port is 8080"));
    assert!(memory(&sandbox).contains(own));
}

#[test]
fn what_is_no_baseline_is_refused_with_the_way_back() {
    let sandbox = baselines(&[TABS]);
    let note = "extensions/ad_hoc/notes/2026-03-11T09-00-00-x.md";
    sandbox.write(note, "Remember the port.\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "by hand"]);
    sandbox
        .run(&["revert", "HEAD"])
        .exit(1)
        .says("a commit made by hand")
        .says("revert");
    let init = sandbox.git(&["rev-list", "--max-parents=0", "HEAD"]);
    sandbox
        .run(&["revert", init.trim()])
        .exit(1)
        .says("kind `init`");
    sandbox
        .run(&["revert", "nobody"])
        .exit(1)
        .says("no commit is called");
    let away = baseline(&sandbox, 0);
    sandbox.git(&["reset", "-q", "--hard", init.trim()]);
    sandbox
        .run(&["revert", &away])
        .exit(1)
        .says("no part of main");
}

#[test]
fn killed_at_any_point_a_revert_is_done_or_not_begun() {
    let standing = baselines(&[TABS, UV]);
    let mut taken_back = standing.copy();
    taken_back.run(&["revert", "HEAD"]).success();
    taken_back.at("2026-03-11T12:05:00Z");
    let names = trace(&standing);
    for name in [
        "revert.edits_taken_in",
        "revert.published",
        "publish.main_moved",
    ] {
        assert!(names.contains(name), "{names:?}");
    }
    let state = |from: &Sandbox| (memory(from), withheld(from).len());
    let states = [state(&standing), state(&taken_back)];
    for (is_back, start) in [(false, &standing), (true, &taken_back)] {
        let names: Vec<String> = trace(start).into_iter().collect();
        beside_each_other(&names, |name| {
            let mut sandbox = start.copy();
            let head = sandbox.head();
            assert!(sandbox.kill_at(name, &["revert", "HEAD"]), "{name}");
            sandbox.at("2026-03-12T12:00:00Z");
            sandbox.run(&["run", "--all"]).success();
            sandbox.assert_sound();
            let is_done = sandbox.head() != head;
            let expected = &states[usize::from(is_done != is_back)];
            assert_eq!(&state(&sandbox), expected, "{name}, done: {is_done}");
            sandbox.run(&["run"]).success().says("nothing to do");
        });
    }
}

/// The points that a revert of the newest commit goes through.
fn trace(sandbox: &Sandbox) -> BTreeSet<String> {
    let sandbox = sandbox.copy();
    let file = sandbox.path("trace");
    let stop = format!("trace:{}", file.display());
    let child = sandbox.start_stopping(&stop, &["revert", "HEAD"]);
    assert!(child.wait_with_output().unwrap().status.success());
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_revert_waits_for_nobody_who_consolidates() {
    let sandbox = baselines(&[TABS, UV]);
    sandbox.session(&Transcript::codex(
        7,
        "2026-03-09T10:00:00Z",
        "human: Always lint.\nagent: ok",
    ));
    let frozen = sandbox.freeze_at("consolidate.staged", &["run"]);
    sandbox
        .run(&["revert", "HEAD"])
        .exit(3)
        .says("a consolidation is under way");
    frozen.resume().success();
    assert!(memory(&sandbox).contains(UV));
}

#[test]
fn release_lets_in_again_what_a_revert_holds_back() {
    for by in ["--all-of", "baseline", "session"] {
        let mut sandbox = baselines(&[TABS, UV]);
        let target = baseline(&sandbox, 0);
        sandbox.run(&["revert", "HEAD"]).success();
        let held = withheld(&sandbox);
        let found = held
            .iter()
            .filter(|it| it["text"].as_str().is_some_and(|text| text.contains(UV)));
        assert!(found.count() > 0, "{held:?}");
        sandbox.at("2026-03-11T13:00:00Z");
        let session = thread_id(2);
        let arguments: Vec<&str> = match by {
            "session" => vec!["release", &session],
            "baseline" => vec!["release", "--all-of", &target],
            _ => vec!["release", "--all-of", "HEAD"],
        };
        let dry = sandbox
            .run(&[&arguments[..], &["--dry-run"]].concat())
            .success();
        dry.says("nothing was written");
        assert_eq!(withheld(&sandbox).len(), held.len());
        sandbox.run(&arguments).success();
        sandbox.assert_sound();
        let left = withheld(&sandbox);
        if by == "session" {
            assert!(left.iter().all(|it| it["what"] == "entry"), "{left:?}");
            let ids: Vec<String> = left
                .iter()
                .map(|it| it["id"].as_str().unwrap().to_owned())
                .collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            sandbox.run(&[&["release"][..], &ids].concat()).success();
        }
        assert_eq!(withheld(&sandbox), Vec::<serde_json::Value>::new());
        assert_eq!(
            sandbox.names("memories/extensions/withheld/entries"),
            Vec::<String>::new()
        );
        sandbox.at("2026-03-12T12:00:00Z");
        sandbox.run(&["run", "--all"]).success();
        assert!(memory(&sandbox).contains(UV), "{by}");
        sandbox.assert_sound();
    }
    let sandbox = baselines(&[TABS]);
    sandbox
        .run(&["release", "nothing-of-it"])
        .exit(1)
        .says("nothing that is withheld");
    sandbox
        .run(&["release", "--all-of", "HEAD"])
        .exit(1)
        .says("nothing is withheld because of");
}

#[test]
fn a_release_after_a_plain_git_revert_holds() {
    let mut sandbox = baselines(&[TABS, UV]);
    sandbox.git(&["revert", "--no-edit", "HEAD"]);
    sandbox.at("2026-03-11T13:00:00Z");
    sandbox.run(&["run"]).success();
    assert!(withheld(&sandbox).len() > 2);
    sandbox.run(&["release", "--all-of", "HEAD"]).success();
    sandbox.at("2026-03-12T12:00:00Z");
    sandbox.run(&["run", "--all"]).success();
    assert_eq!(withheld(&sandbox), Vec::<serde_json::Value>::new());
    assert!(memory(&sandbox).contains(UV));
    sandbox.assert_sound();
}

/// Everything by which something withheld could come back.
#[test]
fn what_is_withheld_survives_resets_rebuilds_and_deleted_ledgers() {
    type Way = fn(&Sandbox) -> Option<Run>;
    let ways: [(&str, Way); 6] = [
        ("a deleted ledger", |sandbox| {
            std::fs::remove_file(sandbox.home().join("ledger.sqlite")).unwrap();
            None
        }),
        ("a rebuild from transcripts", |sandbox| {
            std::fs::remove_file(sandbox.home().join("ledger.sqlite")).unwrap();
            std::fs::remove_dir_all(sandbox.home().join("extractions")).unwrap();
            None
        }),
        ("a reset", |sandbox| {
            let target = baseline(sandbox, 0);
            sandbox.git(&["reset", "-q", "--hard", &target]);
            None
        }),
        ("a reset before everything", |sandbox| {
            let init = sandbox.git(&["rev-list", "--max-parents=0", "HEAD"]);
            sandbox.git(&["reset", "-q", "--hard", init.trim()]);
            None
        }),
        ("an old recap that is put back", |sandbox| {
            let target = baseline(sandbox, 0);
            sandbox.git(&["checkout", "-q", &target, "--", "rollout_summaries"]);
            None
        }),
        ("a home without its withheld folder", |sandbox| {
            std::fs::remove_dir_all(sandbox.home().join("withheld")).unwrap();
            None
        }),
    ];
    for (name, way) in ways {
        let mut sandbox = baselines(&[TABS, UV]);
        sandbox.run(&["revert", "HEAD"]).success();
        way(&sandbox);
        for day in [12, 13] {
            sandbox.at(&format!("2026-03-{day}T12:00:00Z"));
            let run = sandbox.run(&["run", "--all"]);
            assert_eq!(run.code, Some(0), "{name}: {}", run.stderr);
            assert!(!memory(&sandbox).contains(UV), "{name}: it came back");
        }
        assert!(memory(&sandbox).contains(TABS), "{name}");
    }
}

#[test]
fn a_reset_makes_inputs_pending_again_and_loses_nothing() {
    let mut sandbox = baselines(&[TABS, UV, CHINESE]);
    sandbox.git(&["reset", "-q", "--hard", "HEAD~2"]);
    assert!(!memory(&sandbox).contains(UV));
    assert_eq!(withheld(&sandbox), Vec::<serde_json::Value>::new());
    sandbox.at("2026-03-12T12:00:00Z");
    sandbox.run(&["run"]).success();
    for words in [TABS, UV, CHINESE] {
        assert!(memory(&sandbox).contains(words), "{words}");
    }
    sandbox.assert_sound();
}

#[test]
fn a_plain_git_revert_below_others_is_understood() {
    let mut sandbox = baselines(&[TABS, UV, CHINESE]);
    let target = baseline(&sandbox, 1);
    let ours = sandbox.copy();
    ours.run(&["revert", &target]).success();
    // Git does not take neighbouring lines apart; a person resolves it.
    let mut command = sandbox.git_command(&sandbox.memories(), &["revert", "--no-edit", &target]);
    assert!(!command.output().unwrap().status.success());
    for file in ["memory_summary.md", "MEMORY.md", "raw_memories.md"] {
        sandbox.write(file, &ours.read(file));
    }
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["-c", "core.editor=true", "revert", "--continue"]);
    sandbox.run(&["run"]).success();
    sandbox.run(&["run"]).success().says("nothing to do");
    assert_eq!(withheld(&sandbox).len(), withheld(&ours).len());
    assert_stays_out(&mut sandbox, UV);
    assert!(memory(&sandbox).contains(CHINESE));
}
