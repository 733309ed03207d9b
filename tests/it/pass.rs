//! One pass, as a person sees it.

use crate::support::{Sandbox, Transcript, thread_id};

/// A session that was idle for a day when the sandbox's clock starts.
fn preference() -> Transcript {
    Transcript::codex(
        1,
        "2026-03-09T10:00:00Z",
        "human: The nightly export writes an empty file. Please find out why.
         run: cargo test -q -> fail: assertion failed: rows == 12
         agent: The file was opened before the query ran.
         run: cargo test -q -> ok: 12 passed
         human: From now on always run the whole test suite before you say something is fixed.
         agent: Understood.",
    )
}

#[test]
fn a_session_becomes_a_recap_a_handbook_and_a_summary() {
    let sandbox = Sandbox::new();
    sandbox.session(&preference());
    sandbox.run(&["run"]).success();

    assert_eq!(sandbox.names("memories/rollout_summaries").len(), 1);
    let words = "From now on always run the whole test suite before you say something is fixed.";
    for file in ["memory_summary.md", "MEMORY.md"] {
        let text = sandbox.read(file);
        assert!(text.contains(words), "{file}:\n{text}");
    }
    assert!(sandbox.read("memory_summary.md").starts_with("v1\n"));
    assert!(
        sandbox.subjects()[0].starts_with("baseline: 1 recap"),
        "{:?}",
        sandbox.subjects()
    );
    sandbox.assert_sound();
}

#[test]
fn a_second_pass_does_nothing_and_says_so() {
    let sandbox = Sandbox::new();
    sandbox.session(&preference());
    sandbox.run(&["run"]).success();
    let (head, files) = (sandbox.head(), sandbox.names("memories"));
    let again = sandbox.run(&["run"]).success();
    assert!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    assert_eq!((sandbox.head(), sandbox.names("memories")), (head, files));
}

#[test]
fn a_session_that_goes_on_is_read_again_once_it_is_idle() {
    let mut sandbox = Sandbox::new();
    sandbox.session(&preference());
    sandbox.run(&["run"]).success();
    let more = preference().and(
        "human: Also, never touch the vendored files.
         agent: I will leave them alone.",
    );
    sandbox.session(&more);
    sandbox.at("2026-03-10T18:00:00Z").run(&["run"]).success();
    assert!(
        sandbox
            .read("memory_summary.md")
            .contains("never touch the vendored files")
    );
    assert_eq!(sandbox.names("memories/rollout_summaries").len(), 1);
    sandbox.assert_sound();
}

#[test]
fn a_greeting_is_not_worth_a_recap_and_is_not_read_twice() {
    let sandbox = Sandbox::new();
    sandbox.session(&Transcript::codex(
        1,
        "2026-03-09T10:00:00Z",
        "human: hi\nagent: Hello!",
    ));
    sandbox.run(&["run"]).success();
    assert!(sandbox.names("memories/rollout_summaries").is_empty());
    assert_eq!(
        sandbox.names("extractions/v1").len(),
        1,
        "the answer is remembered"
    );
    sandbox.run(&["run"]).success().says("nothing to do");
}

#[test]
fn sessions_of_both_agents_are_read() {
    let sandbox = Sandbox::new();
    sandbox.session(&preference());
    let claude = Transcript::claude(
        2,
        "2026-03-09T11:00:00Z",
        "human: 以后提交信息都用中文写，不要用英文。
         agent: 好的。",
    );
    sandbox.session(&claude);
    sandbox.run(&["run"]).success();
    assert!(
        sandbox
            .read("memory_summary.md")
            .contains("以后提交信息都用中文写")
    );
    assert_eq!(sandbox.names("memories/rollout_summaries").len(), 2);
}

#[test]
fn every_session_has_a_state_and_a_reason() {
    let sandbox = Sandbox::new();
    sandbox.session(&preference());
    let busy = Transcript::codex(
        2,
        "2026-03-10T11:00:00Z",
        "human: Rename the column.\nagent: ok",
    );
    let old = Transcript::codex(
        3,
        "2026-02-01T10:00:00Z",
        "human: Rename the table.\nagent: ok",
    );
    let typed_by_nobody = Transcript::codex(4, "2026-03-09T10:00:00Z", "human: run\nagent: ok");
    sandbox.session(&busy);
    sandbox.session(&old);
    sandbox.session(&typed_by_nobody.started_by("exec"));
    let listed = sandbox.run(&["sessions", "--json"]).success().json();
    let reason = |number: u32| {
        let sessions = listed.as_array().unwrap().iter();
        let id = thread_id(number);
        let mut of_thread = sessions.filter(|session| session["thread_id"] == id.as_str());
        of_thread.next().unwrap()["reason"].clone()
    };
    assert!(reason(1).is_null(), "eligible");
    assert_eq!(reason(2), "not_idle");
    assert_eq!(reason(3), "too_old");
    assert_eq!(reason(4), "not_interactive");
}

#[test]
fn a_person_can_ask_for_sessions_past_age_and_idle_time() {
    let sandbox = Sandbox::new();
    let old = Transcript::codex(
        3,
        "2026-01-15T10:00:00Z",
        "human: Always use tabs in this project.\nagent: ok",
    );
    sandbox.session(&old);
    sandbox.run(&["run"]).success();
    assert!(sandbox.names("memories/rollout_summaries").is_empty());
    sandbox.run(&["run", "--since", "90d"]).success();
    assert_eq!(sandbox.names("memories/rollout_summaries").len(), 1);

    let busy = Transcript::codex(
        4,
        "2026-03-10T11:59:00Z",
        "human: Always write the tests first.\nagent: ok",
    );
    sandbox.session(&busy);
    sandbox.run(&["run", "--session", &thread_id(4)]).success();
    assert_eq!(sandbox.names("memories/rollout_summaries").len(), 2);
}

#[test]
fn a_dry_run_writes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.session(&preference());
    let before = sandbox.fingerprint();
    sandbox
        .run(&["run", "--dry-run"])
        .success()
        .prints(&thread_id(1));
    sandbox
        .run(&["extract", "--dry-run"])
        .success()
        .prints("nightly export");
    sandbox.run(&["consolidate", "--dry-run"]).success();
    sandbox.run(&["reset", "--dry-run"]).success();
    sandbox.run(&["status"]).success();
    sandbox.run(&["sessions"]).success();
    assert_eq!(sandbox.fingerprint(), before);
}

#[test]
fn a_deleted_ledger_costs_no_memory() {
    let sandbox = Sandbox::new();
    sandbox.session(&preference());
    sandbox.run(&["run"]).success();
    let head = sandbox.head();
    for name in sandbox.names("") {
        if name.starts_with("ledger.sqlite") {
            std::fs::remove_file(sandbox.home().join(name)).unwrap();
        }
    }
    sandbox.run(&["run"]).success();
    assert_eq!(
        sandbox.head(),
        head,
        "nothing is extracted or consolidated again"
    );
    sandbox.assert_sound();
}

#[test]
fn version_2_and_dual_write_keep_folders_of_their_own() {
    let sandbox = Sandbox::empty();
    sandbox.configure("[memories]\nversion = \"v2\"\n");
    sandbox.run(&["init"]).success();
    sandbox.session(&preference());
    sandbox.run(&["run"]).success();
    assert!(
        !sandbox.home().join("memories").exists(),
        "only the selected version"
    );
    let v2 = sandbox.names("memories_v2");
    assert!(v2.contains(&"memory_summary.md".to_owned()), "{v2:?}");
    assert!(!v2.contains(&"MEMORY.md".to_owned()) && !v2.contains(&"raw_memories.md".to_owned()));

    sandbox.configure("[memories]\nversion = \"v1\"\ndual_write = true\n");
    sandbox.run(&["init"]).success();
    sandbox.run(&["run"]).success();
    assert!(sandbox.names("memories").contains(&"MEMORY.md".to_owned()));
    sandbox.assert_sound();
    let v2 = sandbox.home().join("memories_v2");
    sandbox.git_in(&v2, &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(sandbox.git_in(&v2, &["status", "--porcelain"]), "");
}

#[test]
fn a_summary_that_a_person_let_grow_neither_freezes_memory_nor_is_cut() {
    let mut sandbox = Sandbox::new();
    sandbox.session(&preference());
    sandbox.run(&["run"]).success();
    let lines: Vec<String> = (0..120)
        .map(|number| {
            let words = "is what I want to have remembered about this machine, word for word";
            format!("- my own line number {number} {words}\n")
        })
        .collect();
    let mine: String = lines.concat();
    let summary = sandbox.read("memory_summary.md");
    let edited = summary.replace("## General Tips\n", &format!("## General Tips\n\n{mine}"));
    sandbox.write("memory_summary.md", &edited);
    sandbox.session(&Transcript::codex(
        2,
        "2026-03-09T12:00:00Z",
        "human: Never touch the vendored files.\nagent: ok",
    ));
    sandbox.at("2026-03-10T13:00:00Z").run(&["run"]).success();
    let summary = sandbox.read("memory_summary.md");
    assert!(lines.iter().all(|line| summary.contains(line.as_str())));
    assert!(
        sandbox
            .read("MEMORY.md")
            .contains("Never touch the vendored files")
    );
    sandbox.run(&["run"]).success().says("nothing to do");
}

#[test]
fn damage_in_a_transcript_is_named_with_its_line_and_every_record_is_accounted_for() {
    let sandbox = Sandbox::new();
    let path = sandbox.session(&preference());
    let text = std::fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let nuls = "\0".repeat(300);
    std::fs::write(&path, format!("{first}\n{nuls}\n\n{rest}{{\"half\": ")).unwrap();
    let run = sandbox.run(&["run", "--json"]).success();
    assert!(run.stderr.contains(":2: "), "{}", run.stderr);
    let reading = &run.json()["versions"][0]["extracted"][0]["reading"];
    let of = |key: &str| reading[key].as_u64().unwrap();
    let ignored: u64 = reading["ignored"]
        .as_object()
        .unwrap()
        .values()
        .map(|n| n.as_u64().unwrap())
        .sum();
    assert_eq!(
        of("read") + ignored + of("damaged"),
        of("records"),
        "{reading}"
    );
    assert_eq!(of("blank_lines"), 2, "an empty line and one of NULs");
    assert_eq!(reading["unfinished_line"], true);
    assert!(
        sandbox
            .read("memory_summary.md")
            .contains("From now on always run")
    );
    assert!(
        std::fs::read_to_string(&path).unwrap().contains(&nuls),
        "the source is never altered"
    );
}
