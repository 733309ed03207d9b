//! What `log`, `show` and `diff` answer, plain `git` answers too.

use crate::support::{Sandbox, Transcript, thread_id};

const TABS: &str = "Always use tabs in the ledger.";

/// Two baselines: a session's, then a note's that takes the first's line back.
fn two_baselines() -> Sandbox {
    let mut sandbox = Sandbox::new();
    let story = format!("human: {TABS}\nagent: ok");
    sandbox.session(&Transcript::codex(1, "2026-03-08T10:00:00Z", &story));
    sandbox.run(&["run"]).success();
    sandbox.at("2026-03-11T12:00:00Z");
    let note = format!("Forget this: {TABS}");
    sandbox.run(&["note", "--forget", &note]).success();
    sandbox.at("2026-03-11T12:30:00Z");
    sandbox.run(&["run"]).success();
    sandbox
}

#[track_caller]
fn subjects(sandbox: &Sandbox, filter: &[&str]) -> Vec<String> {
    let arguments = [&["log", "--json"], filter].concat();
    let commits = sandbox.run(&arguments).success().json();
    let subject = |commit: &serde_json::Value| commit["subject"].as_str().unwrap().to_owned();
    commits.as_array().unwrap().iter().map(subject).collect()
}

#[test]
fn each_filter_of_the_log_leaves_what_it_names() {
    let sandbox = two_baselines();
    let kind = |commits: &[String]| -> Vec<String> {
        let word = |subject: &String| subject.split(':').next().unwrap().to_owned();
        commits.iter().map(word).collect()
    };
    for (filter, expected) in [
        (&["--kind", "baseline"][..], &["baseline", "baseline"][..]),
        (&["--thread", &thread_id(1)], &["baseline"]),
        (&["--thread", &thread_id(2)], &[]),
        (
            &["--note", "forget-this", "--kind", "baseline"],
            &["baseline"],
        ),
        (&["--file", "MEMORY.md"], &["baseline", "baseline"]),
        (&["--file", "EMORY.md"], &[]),
        (&["--worker", "offline", "-n", "1"], &["baseline"]),
        (&["--worker", "nobody"], &[]),
        (&["--since", "2026-03-11"], &["baseline", "edit"]),
        (&["--since", "1d"], &["baseline", "edit"]),
    ] {
        assert_eq!(kind(&subjects(&sandbox, filter)), expected, "{filter:?}");
    }
    let wrong = sandbox.run(&["log", "--since", "yesterday"]).exit(2);
    wrong.says("no date and no age");
}

#[test]
fn the_log_tells_which_entries_a_baseline_took_out() {
    let sandbox = two_baselines();
    let log = sandbox.run(&["log", "--lost"]).success();
    let lost: Vec<&str> = log
        .stdout
        .lines()
        .filter(|line| line.contains(TABS))
        .collect();
    assert!(!lost.is_empty(), "{}", log.stdout);
    assert!(lost.iter().all(|line| line.starts_with("    ")), "{lost:?}");
    // What came in is not lost: the first baseline is not named.
    assert_eq!(log.stdout.matches("baseline:").count(), 1, "{}", log.stdout);
}

#[test]
fn show_and_diff_say_what_git_says() {
    let sandbox = two_baselines();
    let shown = sandbox.run(&["show"]).success().stdout;
    let diffed = sandbox.run(&["diff", "HEAD~1..HEAD"]).success().stdout;
    let git = sandbox.git(&["diff", "--histogram", "--no-color", "HEAD~1", "HEAD"]);
    // Ours has no `index` lines and no function names after `@@`.
    let plain = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with("index "));
        let cut = |line: &str| match line.strip_prefix("@@") {
            Some(rest) => format!("@@{}@@", rest.split("@@").next().unwrap()),
            None => line.to_owned(),
        };
        lines.map(cut).collect()
    };
    assert_eq!(plain(&diffed), plain(&git));
    assert!(shown.ends_with(&diffed), "{shown}");
    assert!(
        shown.contains(&format!("commit {}", sandbox.head())),
        "{shown}"
    );
    assert!(
        shown.contains("input: A extensions/ad_hoc/notes/"),
        "{shown}"
    );

    let run = sandbox.git(&["log", "-1", "--format=%(trailers:key=Memrev-Run,valueonly)"]);
    let by_run = sandbox.run(&["show", run.trim()]).success().stdout;
    assert_eq!(by_run, shown);
    let nothing = sandbox.run(&["show", "no-such-run"]).exit(1);
    nothing.says("no commit is called `no-such-run`");
}

/// What is withheld stays out, and a pass that takes it out again says so.
#[test]
fn lines_that_a_reset_brought_back_and_a_pass_took_out_again_are_told() {
    let mut sandbox = two_baselines();
    let story = "human: Never rename a column by yourself.\nagent: ok";
    sandbox.session(&Transcript::codex(2, "2026-03-09T10:00:00Z", story));
    sandbox.run(&["run"]).success();
    sandbox.git(&["reset", "-q", "--hard", "HEAD~3"]);
    assert!(sandbox.read("MEMORY.md").contains(TABS));
    sandbox.at("2026-03-11T13:00:00Z");
    let run = sandbox.run(&["run"]).success();
    run.prints("taken out again: `MEMORY.md` line ");
    assert!(!sandbox.read("MEMORY.md").contains(TABS));
}
