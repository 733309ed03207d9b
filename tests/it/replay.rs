//! A whole pass with recorded answers: what a real model would see and do,
//! how it is counted, and what becomes of hostile or failing ones.

use std::fs;

use crate::support::{Sandbox, Transcript};

fn rate_limits(used_percent: u32) -> String {
    format!(
        r#"{{"timestamp":"2026-03-09T10:00:09Z","type":"event_msg","payload":{{"type":"token_count","rate_limits":{{"limit_id":"codex","primary":{{"used_percent":{used_percent}.0,"window_minutes":300}}}}}}}}"#
    )
}

/// A box whose back end answers as the offline rules do, but counts.
fn with_replay(more: &str) -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.configure(&format!("[model]\nbackend = \"replay\"\n{more}"));
    let answers = sandbox.path("answers");
    let put = |name: &str, text: &str| {
        let path = answers.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("model.json", r#"{"name": "replay", "draws_on": "codex"}"#);
    put(
        "extract/any.json",
        r#"{"offline": true, "tokens": [1000, 50]}"#,
    );
    put(
        "consolidate/any.json",
        r#"{"offline": true, "tokens": [2000, 100]}"#,
    );
    let folder = answers.to_str().unwrap().to_owned();
    sandbox.variable("MEMREV_REPLAY", &folder);
    sandbox.run(&["init"]).success();
    sandbox
}

fn session(number: u32) -> Transcript {
    let story = format!("human: Always check report number {number} twice.\nagent: ok");
    Transcript::codex(number, "2026-03-09T10:00:00Z", &story)
}

fn requests(sandbox: &Sandbox) -> Vec<String> {
    let text = fs::read_to_string(sandbox.path("answers/requests.jsonl")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_paid_pass_keeps_to_its_limits_and_says_how_many_wait() {
    let sandbox = with_replay("");
    for number in 1..=5 {
        sandbox.session(&session(number));
    }
    sandbox
        .run(&["run"])
        .success()
        .prints("3 sessions wait for the next pass");
    assert_eq!(sandbox.names("extractions/v1").len(), 2);
    let calls = requests(&sandbox).len();
    assert_eq!(calls, 3, "two extractions, one consolidation");
    let status = sandbox.run(&["status", "--json"]).success().json();
    assert_eq!(status["spend_today"][0]["model"], "replay");
}

#[test]
fn nothing_changed_means_no_call() {
    let sandbox = with_replay("");
    sandbox.session(&session(1));
    sandbox.run(&["run"]).success();
    let calls = requests(&sandbox).len();
    for _ in 0..3 {
        sandbox.run(&["run"]).success().says("nothing to do");
    }
    assert_eq!(requests(&sandbox).len(), calls);
}

#[test]
fn calls_of_a_pass_can_be_limited() {
    let sandbox = with_replay("");
    sandbox.session(&session(1));
    sandbox.session(&session(2));
    sandbox.run(&["extract", "--max-calls", "1"]);
    assert_eq!(requests(&sandbox).len(), 1);
    let strict = with_replay("calls_per_day_max = 1\n");
    strict.session(&session(1));
    strict.session(&session(2));
    strict.run(&["extract"]);
    assert_eq!(requests(&strict).len(), 1);
}

#[test]
fn the_models_have_the_names_that_a_person_chose() {
    let sandbox =
        with_replay("[memories]\nextract_model = \"small\"\nconsolidation_model = \"large\"\n");
    sandbox.session(&session(1));
    sandbox.run(&["run"]).success();
    let name = &sandbox.names("memories/rollout_summaries")[0];
    let recap = sandbox.read(&format!("rollout_summaries/{name}"));
    assert!(recap.contains("model: replay/small"), "{recap}");
    let workers = sandbox.git(&[
        "log",
        "-1",
        "--format=%(trailers:key=Memrev-Worker,valueonly)",
    ]);
    assert_eq!(workers.trim(), "replay/large");
}

#[test]
fn a_spent_quota_stops_a_pass_after_pruning() {
    let mut sandbox = with_replay("[memories]\nmin_rate_limit_remaining_percent = 25\n");
    let path = sandbox.session(&session(1));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{}\n", rate_limits(76))).unwrap();
    let stopped = sandbox.run(&["run", "--background"]).success();
    assert!(
        stopped.stderr.contains("76 % of the quota is used"),
        "{}",
        stopped.stderr
    );
    assert_eq!(requests(&sandbox).len(), 0);

    fs::write(&path, format!("{text}{}\n", rate_limits(75))).unwrap();
    sandbox
        .at("2026-03-10T13:00:00Z")
        .run(&["run", "--background"])
        .success();
    assert_eq!(requests(&sandbox).len(), 2, "equality passes");
}

#[test]
fn no_secret_reaches_a_prompt_a_file_a_commit_or_the_ledger() {
    let sandbox = with_replay("");
    let secret = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    let story = format!(
        "human: Always push with the token {secret}, please.
         run: curl -H 'Authorization: Bearer {secret}' example.invalid -> fail: {secret} refused
         agent: I used {secret}."
    );
    sandbox.session(&Transcript::codex(1, "2026-03-09T10:00:00Z", &story));
    sandbox.run(&["run"]).success();
    assert!(!requests(&sandbox).is_empty());
    let mut files = sandbox.fingerprint();
    files.push((
        sandbox.path("answers/requests.jsonl"),
        fs::read(sandbox.path("answers/requests.jsonl")).unwrap(),
    ));
    for (path, bytes) in files {
        let holds = bytes
            .windows(secret.len())
            .any(|window| window == secret.as_bytes());
        assert!(!holds, "{} holds the secret", path.display());
    }
    let history = sandbox.git(&["log", "-p", "--all"]);
    assert!(!history.contains(&secret));
    assert!(history.contains("[redacted:"));
}

#[test]
fn a_wiped_memory_is_refused_and_the_next_pass_goes_on() {
    let mut sandbox = with_replay("");
    sandbox.session(&session(1));
    sandbox.run(&["run"]).success();
    let (head, handbook) = (sandbox.head(), sandbox.read("MEMORY.md"));

    let wipe = r#"[{"offline": true}, {"edits": [{"write": "MEMORY.md", "text": "Here is the updated file."}], "finish": true}, {"edits": [], "finish": true}, {"offline": true}]"#;
    fs::write(sandbox.path("answers/consolidate/any.json"), wipe).unwrap();
    sandbox.session(&session(2));
    let refused = sandbox.run(&["run"]).exit(1);
    assert!(refused.stderr.contains("refused"), "{}", refused.stderr);
    assert_eq!(
        (sandbox.head(), sandbox.read("MEMORY.md")),
        (head, handbook)
    );
    sandbox.run(&["status"]).success().prints("refused attempt");
    sandbox.at("2026-03-10T20:00:00Z").run(&["run"]).success();
    assert!(sandbox.read("MEMORY.md").contains("report number 2"));
    sandbox.assert_sound();
}

#[test]
fn a_key_that_is_refused_for_days_gives_no_session_up() {
    let mut sandbox = with_replay("");
    sandbox.session(&session(1));
    fs::write(
        sandbox.path("answers/extract/any.json"),
        r#"{"fail": "refused"}"#,
    )
    .unwrap();
    for hour in ["12", "14", "18", "20", "22"] {
        sandbox.at(&format!("2026-03-10T{hour}:00:00Z"));
        let run = sandbox.run(&["run"]).exit(4);
        run.says("no session was extracted");
    }
    fs::write(
        sandbox.path("answers/extract/any.json"),
        r#"{"offline": true}"#,
    )
    .unwrap();
    // In the background, too, once the wait is over.
    sandbox.at("2026-03-12T12:00:00Z");
    sandbox.run(&["run", "--background"]).success();
    assert_eq!(sandbox.names("extractions/v1").len(), 1);
}

#[test]
fn a_model_that_is_away_costs_nothing_but_time() {
    let sandbox = with_replay("");
    fs::write(
        sandbox.path("answers/extract/any.json"),
        r#"[{"fail": "unreachable"}, {"text": "Sure! Next I would"}, {"offline": true}]"#,
    )
    .unwrap();
    sandbox.session(&session(1));
    sandbox.run(&["run"]).says("could not be reached");
    assert!(sandbox.names("extractions/v1").is_empty());
    sandbox.run(&["run"]).says("reply");
    assert!(
        sandbox.names("extractions/v1").is_empty(),
        "prose is never nothing to keep"
    );
    sandbox.run(&["run"]).success();
    assert_eq!(sandbox.names("extractions/v1").len(), 1);
}

#[test]
fn prompts_of_a_persons_own_are_used_and_named() {
    let built_in = with_replay("");
    built_in.session(&session(1));
    built_in.run(&["run"]).success();
    let named = |sandbox: &Sandbox| {
        let name = &sandbox.names("memories/rollout_summaries")[0];
        let recap = sandbox.read(&format!("rollout_summaries/{name}"));
        let line = recap.lines().find(|line| line.starts_with("prompt: "));
        let trailer = "--format=%(trailers:key=Memrev-Prompt,valueonly)";
        let trailer = sandbox.git(&["log", "-1", trailer]);
        [line.unwrap().to_owned(), trailer.trim().to_owned()]
    };
    let ours = named(&built_in);
    assert!(
        ours[0].contains("extract-v1@") && ours[1].starts_with("consolidate-v1@"),
        "{ours:?}"
    );

    let sandbox = with_replay("");
    let put = |name: &str, text: &str| {
        let file = sandbox.home().join("prompts").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    put("extract-v1.md", "My words about it: {{ rollout_contents }}");
    put("consolidate-v1.md", "Tidy up {{ staging }} as I like it.");
    sandbox.session(&session(1));
    sandbox.run(&["run"]).success();
    let asked = requests(&sandbox).join("\n");
    for words in ["My words about it: [", "as I like it."] {
        assert!(asked.contains(words), "{words}");
    }
    let mine = named(&sandbox);
    assert!(
        mine[0].contains("extract-v1@") && mine[1].starts_with("consolidate-v1@"),
        "{mine:?}"
    );
    assert!(mine[0] != ours[0] && mine[1] != ours[1], "{mine:?}");

    put("consolidate-v1.md", "{{ nowhere }}");
    sandbox.session(&session(2));
    let head = sandbox.head();
    sandbox.run(&["run"]).exit(1).says("consolidate-v1.md");
    assert_eq!(sandbox.head(), head);
}

#[test]
fn a_refused_consolidation_waits_longer_each_time() {
    let mut sandbox = with_replay("");
    fs::write(
        sandbox.path("answers/consolidate/any.json"),
        r#"[{"edits": [{"write": "MEMORY.md", "text": "Sorry."}], "finish": true}]"#,
    )
    .unwrap();
    sandbox.session(&session(1));
    let mut now: jiff::Timestamp = crate::support::START.parse().unwrap();
    let mut waits = Vec::new();
    for _ in 0..4 {
        sandbox.at(&now.to_string());
        sandbox.run(&["run", "--background"]);
        let status = sandbox.run(&["status", "--json"]).success().json();
        let jobs = status["versions"][0]["jobs"].as_array().unwrap();
        let job = jobs
            .iter()
            .find(|job| job["kind"] == "consolidate")
            .unwrap();
        let until: jiff::Timestamp = job["until"].as_str().unwrap().parse().unwrap();
        waits.push(until.as_second() - now.as_second());
        let calls = requests(&sandbox).len();
        sandbox.run(&["run", "--background"]);
        assert_eq!(requests(&sandbox).len(), calls, "not before its time");
        now = until;
    }
    assert!(waits.is_sorted_by(|a, b| a < b), "{waits:?}");
}
