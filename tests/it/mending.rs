//! What only a person can mend: it is found before a worker is asked, said
//! plainly, shown by `status`, and nothing is lost meanwhile.

use crate::support::{Sandbox, Transcript};

/// A memory with a baseline, and a session that waits for the next.
fn with_news() -> Sandbox {
    let mut sandbox = Sandbox::new();
    let story = "human: Always use tabs in the ledger.\nagent: ok";
    sandbox.session(&Transcript::codex(1, "2026-03-08T10:00:00Z", story));
    sandbox.run(&["run"]).success();
    let story = "human: Never rename a column by yourself.\nagent: ok";
    sandbox.session(&Transcript::codex(2, "2026-03-09T10:00:00Z", story));
    sandbox.at("2026-03-10T12:05:00Z");
    sandbox
}

#[track_caller]
fn assert_news_come_in(sandbox: &mut Sandbox) {
    sandbox.at("2026-03-10T12:30:00Z").run(&["run"]).success();
    for file in ["MEMORY.md", "memory_summary.md"] {
        let text = sandbox.read(file);
        assert!(text.contains("Never rename a column"), "{file}:\n{text}");
    }
    sandbox.assert_sound();
}

#[test]
fn a_secret_that_a_person_committed_is_named_until_it_is_gone() {
    let mut sandbox = with_news();
    let secret = format!("{}{}", "ghp_", "a1B2".repeat(9));
    let clean = sandbox.read("memory_summary.md");
    let tips = "## General Tips\n";
    let edited = clean.replace(tips, &format!("{tips}\n- the token is {secret}\n"));
    let number = edited
        .lines()
        .position(|line| line.contains(&secret))
        .unwrap()
        + 1;
    sandbox.write("memory_summary.md", &edited);
    sandbox.git(&["commit", "-q", "-a", "-m", "mine"]);
    let head = sandbox.head();
    for _ in 0..2 {
        let run = sandbox.run(&["run"]).exit(1);
        let place = format!("mend `memory_summary.md` first: line {number} holds");
        let run = run
            .says(&place)
            .says("mended")
            .says("the inputs stay pending");
        assert!(!run.stderr.contains(&secret) && !run.stdout.contains(&secret));
        assert_eq!(sandbox.head(), head);
        let status = sandbox.run(&["status"]).success().prints(&place);
        assert!(status.stdout.contains("pending: A rollout_summaries/"));
        let json = sandbox.run(&["status", "--json"]).success().json();
        assert_eq!(json["versions"][0]["to_mend"].as_array().unwrap().len(), 1);
    }
    // Also when nothing else is new, nobody is left to believe all is well.
    sandbox.write("memory_summary.md", &clean);
    assert_news_come_in(&mut sandbox);
    assert!(sandbox.names("withheld").len() <= 1);
}

#[test]
fn a_memory_file_that_cannot_be_committed_stops_the_pass_before_the_worker() {
    type Spoil = fn(&Sandbox, &str);
    let cases: [(&str, Spoil); 4] = [
        ("symbolic link", |sandbox, text| {
            let elsewhere = sandbox.path("elsewhere.md");
            std::fs::write(&elsewhere, text).unwrap();
            let file = sandbox.memories().join("memory_summary.md");
            std::fs::remove_file(&file).unwrap();
            std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
        }),
        ("UTF-8", |sandbox, text| {
            let file = sandbox.write("memory_summary.md", text);
            let bytes = [text.as_bytes(), &[0xff, 0xfe]].concat();
            std::fs::write(&file, bytes).unwrap();
        }),
        ("bytes", |sandbox, text| {
            let file = sandbox.write("memory_summary.md", text);
            let filler = "- filler\n".repeat(1_300_000);
            std::fs::write(&file, format!("{text}{filler}")).unwrap();
        }),
        ("conflict markers", |sandbox, text| {
            let text = format!("{text}\n<<<<<<< mine\na\n=======\nb\n>>>>>>> theirs\n");
            sandbox.write("memory_summary.md", &text);
        }),
    ];
    for (why, spoil) in cases {
        let mut sandbox = with_news();
        let clean = sandbox.read("memory_summary.md");
        let head = sandbox.head();
        spoil(&sandbox, &clean);
        let trace = sandbox.path("trace");
        let stop = format!("trace:{}", trace.display());
        let run = sandbox.start_stopping(&stop, &["run"]);
        let run = crate::support::Run::of(run.wait_with_output().unwrap());
        run.exit(1).says("mend `memory_summary.md` first").says(why);
        let trace = std::fs::read_to_string(&trace).unwrap();
        assert!(!trace.contains("consolidate.staged"), "{why}: no worker");
        assert_eq!(sandbox.head(), head);
        let status = sandbox.run(&["status"]).success();
        status.prints("mend `memory_summary.md` first").prints(why);
        std::fs::remove_file(sandbox.memories().join("memory_summary.md")).unwrap();
        sandbox.write("memory_summary.md", &clean);
        assert_news_come_in(&mut sandbox);
    }
}

#[test]
fn a_folder_that_is_gone_is_a_loss_and_said_so() {
    let mut sandbox = with_news();
    sandbox.run(&["run"]).success();
    std::fs::remove_dir_all(sandbox.memories()).unwrap();
    sandbox.at("2026-03-10T13:00:00Z");
    let gone = "was there and is gone; a new history begins from 2 recaps";
    let status = sandbox.run(&["status"]).success();
    status.prints(gone).prints("put the folder back");
    sandbox.run(&["run"]).success().says(gone);
    let text = sandbox.read("MEMORY.md");
    assert!(text.contains("Never rename a column"), "{text}");
    let status = sandbox.run(&["status"]).success();
    assert!(!status.stdout.contains("is gone"), "{}", status.stdout);
    // Also when only the ledger remembers.
    std::fs::remove_dir_all(sandbox.memories()).unwrap();
    std::fs::remove_dir_all(sandbox.home().join("extractions")).unwrap();
    let status = sandbox.run(&["status"]).success();
    status.prints("begins from nothing: no recap is left");
}

#[test]
fn a_home_that_never_had_a_folder_lost_none() {
    let sandbox = Sandbox::empty();
    sandbox.configure("");
    let status = sandbox.run(&["status"]).success();
    assert!(!status.stdout.contains("is gone"), "{}", status.stdout);
    let run = sandbox.run(&["run"]).success();
    assert!(!run.stderr.contains("is gone"), "{}", run.stderr);
}

#[test]
fn what_a_reset_took_away_is_offered_back() {
    let mut sandbox = with_news();
    let notes = "extensions/ad_hoc/notes";
    let note = format!("{notes}/2026-03-10T11-00-00-it's mine.md");
    let meant = format!("{notes}/2026-03-10T11-00-01-meant.md");
    sandbox.write(&note, "remember that Ada owns the ledger\n");
    sandbox.write(&meant, "remember that Grace owns the compiler\n");
    sandbox.run(&["run"]).success();
    std::fs::remove_file(sandbox.memories().join(&meant)).unwrap();
    sandbox.at("2026-03-10T12:10:00Z").run(&["run"]).success();
    let before = sandbox.head();
    let status = sandbox.run(&["status", "--json"]).success().json();
    assert_eq!(
        status["versions"][0]["lost_inputs"]
            .as_array()
            .unwrap()
            .len(),
        0
    );

    sandbox.git(&["reset", "-q", "--hard", "HEAD~4"]);
    assert!(!sandbox.memories().join(&note).exists());
    sandbox.at("2026-03-10T12:20:00Z");
    let again = "pending: A rollout_summaries/";
    let status = sandbox.run(&["status"]).success().prints(again);
    let again = "(again: a reset took back baseline";
    assert_eq!(status.stdout.matches(again).count(), 1, "{}", status.stdout);
    let json = sandbox.run(&["status", "--json"]).success().json();
    let recap = json["versions"][0]["pending_again"][0].as_str().unwrap();
    let run = sandbox.run(&["run"]).success();
    let run = run.prints("pending again, since a reset took back baseline");
    run.prints(recap);
    let json = sandbox.run(&["run", "--json"]).success().json();
    let told = &json["versions"][0]["consolidation"]["pending_again"];
    assert_eq!(told.as_array().unwrap().len(), 0, "{json}");
    let status = sandbox.run(&["status"]).success();
    let status = status.prints("a reset took away").prints(&note);
    assert!(!status.stdout.contains(&meant), "{}", status.stdout);
    let json = sandbox.run(&["status", "--json"]).success().json();
    let lost = &json["versions"][0]["lost_inputs"][0];
    assert_eq!(lost["commit"], before.as_str());
    let shell = std::process::Command::new("sh")
        .args(["-c", lost["command"].as_str().unwrap()])
        .output()
        .unwrap();
    assert!(shell.status.success(), "{shell:?}");
    sandbox.at("2026-03-10T12:30:00Z").run(&["run"]).success();
    assert!(sandbox.read("MEMORY.md").contains("Ada owns the ledger"));
    let json = sandbox.run(&["status", "--json"]).success().json();
    assert_eq!(
        json["versions"][0]["lost_inputs"].as_array().unwrap().len(),
        0
    );

    // What Git has cleaned up is not offered, and no error.
    sandbox.git(&["reset", "-q", "--hard", "HEAD~2"]);
    sandbox.git(&["gc", "-q", "--prune=now"]);
    sandbox.run(&["status"]).success();
    sandbox.git(&["reflog", "expire", "--expire=now", "--all"]);
    sandbox.git(&["gc", "-q", "--prune=now"]);
    let status = sandbox.run(&["status"]).success();
    assert!(!status.stdout.contains("took away"), "{}", status.stdout);
}

#[test]
fn what_recovery_set_aside_is_told() {
    let sandbox = with_news();
    let git = sandbox.memories().join(".git");
    std::fs::create_dir_all(git.join("memrev")).unwrap();
    std::fs::write(git.join("memrev/publication"), "damaged").unwrap();
    let run = sandbox.run(&["run"]).success();
    run.says("was damaged").says("publication.damaged");
    let status = sandbox.run(&["status"]).success();
    status.prints("was damaged").prints("publication.damaged");
}
