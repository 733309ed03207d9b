//! Every switch of the configuration and the difference it makes.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use crate::support::{Sandbox, Transcript, thread_id};

fn typed(number: u32, started_at: &str) -> Transcript {
    let story = format!("human: Always check report number {number} twice.\nagent: ok");
    Transcript::codex(number, started_at, &story)
}

/// Numbers of the sessions that have a recap in the memory folder.
fn recaps_after_run(sandbox: &Sandbox) -> Vec<u32> {
    sandbox.run(&["run"]).success();
    recaps(sandbox)
}

fn recaps(sandbox: &Sandbox) -> Vec<u32> {
    let folder = sandbox.memories().join("rollout_summaries");
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let known = (1..50).find(|number| text.contains(&thread_id(*number)));
        numbers.push(known.unwrap());
    }
    numbers.sort_unstable();
    numbers
}

#[test]
fn off_means_off() {
    let sandbox = Sandbox::empty();
    fs::create_dir_all(sandbox.home()).unwrap();
    fs::write(
        sandbox.home().join("config.toml"),
        "[features]\nmemories = false\n",
    )
    .unwrap();
    sandbox.session(&typed(1, "2026-03-09T10:00:00Z"));
    let before = sandbox.fingerprint();
    for command in [
        &["run"][..],
        &["extract"],
        &["consolidate"],
        &["note", "remember this"],
        &["mode", "a", "disabled"],
        &["reset", "--yes"],
    ] {
        sandbox.run(command).exit(1).says("features.memories");
    }
    let injected = sandbox.run(&["inject"]).success();
    assert_eq!(
        (injected.stdout.as_str(), injected.stderr.as_str()),
        ("", "")
    );
    sandbox.run(&["config"]).success();
    sandbox.run(&["status"]).success().prints("switched off");
    assert_eq!(sandbox.fingerprint(), before);
}

#[test]
fn without_a_configuration_memory_is_off() {
    let sandbox = Sandbox::empty();
    sandbox.run(&["run"]).exit(1).says("memrev init");
    assert!(!sandbox.home().exists());
}

#[test]
fn an_unknown_key_is_named_with_the_one_that_was_meant() {
    let sandbox = Sandbox::new();
    sandbox.configure("[memories]\nmax_unused_day = 3\n");
    sandbox
        .run(&["run"])
        .exit(1)
        .says("max_unused_days")
        .says("config.toml:4");
}

#[test]
fn every_key_shows_its_value_and_where_it_comes_from() {
    let sandbox = Sandbox::new();
    sandbox.configure("[memories]\nmax_unused_days = 999\nmin_rollout_idle_hours = 2\n");
    let keys = sandbox.run(&["config", "--json"]).success().json();
    let of = |key: &str| {
        let mut all = keys.as_array().unwrap().iter();
        all.find(|info| info["key"] == key).unwrap().clone()
    };
    assert_eq!(of("memories.max_unused_days")["value"], "365");
    assert_eq!(of("memories.max_unused_days")["clamped_from"], 999);
    assert_eq!(of("memories.min_rollout_idle_hours")["origin"], "file");
    assert_eq!(of("memories.version")["origin"], "default");
}

#[test]
fn agents_and_projects_can_be_switched_off() {
    let sandbox = Sandbox::new();
    sandbox.session(&typed(1, "2026-03-09T10:00:00Z"));
    let secret = typed(2, "2026-03-09T11:00:00Z").in_folder("/work/secret/inner");
    sandbox.session(&secret);
    sandbox.session(&typed(3, "2026-03-09T12:00:00Z").in_folder("/work/secret-not"));
    let claude = Transcript::claude(4, "2026-03-09T12:00:00Z", "human: Always ask.\nagent: ok");
    sandbox.session(&claude);

    sandbox.configure("[sessions]\nclaude = false\ndisabled_projects = [\"/work/secret\"]\n");
    assert_eq!(recaps_after_run(&sandbox), [1, 3]);
    let everything = sandbox.fingerprint();
    let holds = |words: &str| {
        everything.iter().any(|(_, bytes)| {
            bytes
                .windows(words.len())
                .any(|window| window == words.as_bytes())
        })
    };
    assert!(
        !holds("report number 2"),
        "nothing of a project that is off"
    );

    sandbox.configure("[sessions]\ncodex = true\n");
    assert_eq!(recaps_after_run(&sandbox), [1, 2, 3, 4]);
}

#[test]
fn sessions_nobody_typed_need_a_switch() {
    let sandbox = Sandbox::new();
    sandbox.session(&typed(1, "2026-03-09T10:00:00Z").started_by("exec"));
    assert_eq!(recaps_after_run(&sandbox), [0_u32; 0]);
    sandbox.configure("[sessions]\ninclude_exec = true\n");
    assert_eq!(recaps_after_run(&sandbox), [1]);
}

#[test]
fn age_and_idle_time_can_be_set() {
    let sandbox = Sandbox::new();
    sandbox.session(&typed(1, "2026-03-01T10:00:00Z"));
    sandbox.session(&typed(2, "2026-03-10T09:00:00Z"));
    sandbox.configure("[memories]\nmax_rollout_age_days = 3\nmin_rollout_idle_hours = 6\n");
    assert_eq!(recaps_after_run(&sandbox), [0_u32; 0]);
    sandbox.configure("[memories]\nmax_rollout_age_days = 3\nmin_rollout_idle_hours = 2\n");
    assert_eq!(recaps_after_run(&sandbox), [2]);
    sandbox.configure("[memories]\nmax_rollout_age_days = 20\nmin_rollout_idle_hours = 2\n");
    assert_eq!(recaps_after_run(&sandbox), [1, 2]);
}

#[test]
fn a_pass_in_the_background_keeps_to_its_limit() {
    let sandbox = Sandbox::new();
    for number in 1..=5 {
        sandbox.session(&typed(number, "2026-03-09T10:00:00Z"));
    }
    sandbox.configure("[memories]\nmax_rollouts_per_startup = 3\n");
    sandbox.run(&["run", "--background"]).success();
    assert_eq!(sandbox.names("extractions/v1").len(), 3);
    sandbox.run(&["run"]).success();
    assert_eq!(
        sandbox.names("extractions/v1").len(),
        5,
        "a free pass by hand takes all"
    );
}

#[test]
fn only_the_best_recaps_are_consolidated() {
    let sandbox = Sandbox::new();
    for number in 1..=4 {
        sandbox.session(&typed(number, &format!("2026-03-09T1{number}:00:00Z")));
    }
    sandbox.configure("[memories]\nmax_raw_memories_for_consolidation = 2\n");
    assert_eq!(recaps_after_run(&sandbox), [3, 4], "the newest");
    assert_eq!(sandbox.names("extractions/v1").len(), 4);
}

#[test]
fn what_nobody_used_for_long_leaves_memory() {
    let mut sandbox = Sandbox::new();
    sandbox.session(&typed(1, "2026-03-09T10:00:00Z"));
    sandbox.configure("[memories]\nmax_unused_days = 5\n");
    assert_eq!(recaps_after_run(&sandbox), [1]);
    sandbox.session(&typed(2, "2026-03-15T10:00:00Z"));
    sandbox.at("2026-03-16T12:00:00Z");
    assert_eq!(recaps_after_run(&sandbox), [2]);
    assert!(
        !sandbox
            .read("memory_summary.md")
            .contains("report number 1")
    );
}

#[test]
fn sessions_that_start_while_generation_is_off_stay_out_for_good() {
    let mut sandbox = Sandbox::new();
    sandbox.session(&typed(1, "2026-03-09T10:00:00Z"));
    sandbox.configure("[memories]\ngenerate_memories = false\n");
    // The switch was thrown on the 9th at noon.
    let noon = SystemTime::UNIX_EPOCH + Duration::from_hours(492_516);
    let config = File::options()
        .write(true)
        .open(sandbox.home().join("config.toml"));
    config.unwrap().set_modified(noon).unwrap();
    sandbox.session(&typed(2, "2026-03-09T14:00:00Z"));
    assert_eq!(
        recaps_after_run(&sandbox),
        [1],
        "the older one is still processed"
    );

    sandbox.configure("");
    sandbox.session(&typed(3, "2026-03-10T04:00:00Z"));
    sandbox.at("2026-03-10T13:00:00Z");
    assert_eq!(recaps_after_run(&sandbox), [1, 3]);
}

#[test]
fn use_memories_decides_what_new_sessions_are_given() {
    let sandbox = Sandbox::new();
    sandbox.session(&typed(1, "2026-03-09T10:00:00Z"));
    sandbox.run(&["run"]).success();
    sandbox.run(&["inject"]).success().prints("report number 1");
    sandbox.configure("[memories]\nuse_memories = false\n");
    assert_eq!(sandbox.run(&["inject"]).success().stdout, "");
}

#[test]
fn external_context_can_keep_a_session_out() {
    let story = "human: Always check report number 1 twice.\nweb: prices\nagent: ok";
    let session = Transcript::codex(1, "2026-03-09T10:00:00Z", story);
    let open = Sandbox::new();
    open.session(&session);
    assert_eq!(recaps_after_run(&open), [1]);

    let strict = Sandbox::new();
    strict.configure("[memories]\ndisable_on_external_context = true\n");
    strict.session(&session);
    assert_eq!(recaps_after_run(&strict), [0_u32; 0]);
    strict
        .run(&["mode", &thread_id(1)])
        .success()
        .prints("polluted");
}

#[test]
fn a_disabled_session_leaves_memory_and_can_come_back() {
    let sandbox = Sandbox::new();
    sandbox.session(&typed(1, "2026-03-09T10:00:00Z"));
    sandbox.session(&typed(2, "2026-03-09T11:00:00Z"));
    assert_eq!(recaps_after_run(&sandbox), [1, 2]);
    sandbox.run(&["mode", &thread_id(1), "disabled"]).success();
    assert_eq!(recaps_after_run(&sandbox), [2]);
    for file in ["MEMORY.md", "memory_summary.md", "raw_memories.md"] {
        assert!(!sandbox.read(file).contains("report number 1"), "{file}");
    }
    let changed = sandbox.git(&["show", "--name-status", "--format=", "HEAD"]);
    assert!(changed.contains("D\trollout_summaries/"), "{changed}");
    sandbox.run(&["mode", &thread_id(1), "enabled"]).success();
    assert_eq!(recaps_after_run(&sandbox), [1, 2]);
}

#[test]
fn the_summary_keeps_to_its_budget() {
    let sandbox = Sandbox::new();
    sandbox.configure("[inject]\nsummary_bytes_max = 3000\n");
    for number in 1..=40 {
        let story = format!(
            "human: Always check report number {number} of the {number}th quarter twice before you send it.\nagent: ok"
        );
        let session = Transcript::codex(number, "2026-03-09T10:00:00Z", &story);
        sandbox.session(&session.in_folder(&format!("/work/project-{number}")));
    }
    sandbox.run(&["run"]).success();
    let summary = sandbox.read("memory_summary.md");
    assert!(summary.len() <= 3000, "{} bytes", summary.len());
    sandbox.run(&["check"]).success();
}

#[test]
fn the_scope_decides_whose_topics_are_given() {
    let sandbox = Sandbox::new();
    sandbox.session(&typed(1, "2026-03-09T10:00:00Z").in_folder("/work/ledger"));
    let other =
        "human: Rename the zebra column in the report.\nrun: make zebra -> ok: renamed\nagent: ok";
    let other = Transcript::codex(2, "2026-03-09T11:00:00Z", other);
    sandbox.session(&other.in_folder("/work/shop"));
    sandbox.run(&["run"]).success();
    let topics = |scope: &str| {
        sandbox.configure(&format!("[inject]\nscope = \"{scope}\"\n"));
        let text = sandbox.run(&["inject"]).success().stdout;
        text.to_lowercase().contains("zebra")
    };
    assert!(topics("all"));
    assert!(topics("ranked"));
    assert!(!topics("project"), "the sandbox works in neither project");
}
