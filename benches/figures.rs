//! The figures of the README, each as a ratio against something anyone can run.
//!
//! `cargo bench --features internals` measures all of them, `cargo bench
//! --features internals -- inject` those whose name contains a word. Machines
//! are noisy: what is compared runs in turns, and the median of the ratios of
//! each round is printed with the smallest and largest.
//!
//! # Not in here
//!
//! No pass or fail: a bound that a shared machine may miss is no test. The
//! README says what the bounds are.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench may panic, run programs, write files and print"
)]

mod corpus;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use memrev::internals;

const MIB: f64 = 1024.0 * 1024.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, agent, file] = arguments.as_slice()
        && first == "--read"
    {
        // A process of its own, so that its peak memory is that of one read.
        read_and_report(agent, Path::new(file));
        return;
    }
    let word = arguments.iter().find(|argument| !argument.starts_with('-'));
    let figures: [(&str, fn()); 8] = [
        ("parse", parse),
        ("large-rollout", large_rollout),
        ("idle-pass", idle_pass),
        ("offline-pass", offline_pass),
        ("model-pass", model_pass),
        ("inject", inject),
        ("baseline-commit", baseline_commit),
        ("history", history),
    ];
    for (name, measure) in figures {
        if word.is_none_or(|word| name.contains(word.as_str())) {
            measure();
        }
    }
}

/// Parsing ordinary rollouts on one core, against `wc -l` of the same bytes.
fn parse() {
    let folder = tempfile::tempdir().unwrap();
    let files = corpus::ordinary_sessions(folder.path(), 40, 5 * 1024 * 1024);
    let bytes: u64 = files
        .iter()
        .map(|file| file.metadata().unwrap().len())
        .sum();
    let read = || {
        for file in &files {
            internals::read_transcript("codex", file).unwrap();
        }
    };
    let count = || {
        run(Command::new("wc").arg("-l").args(&files));
    };
    let rounds = in_turns(7, read, count);
    let seconds = median(rounds.iter().map(|(ours, _)| ours.as_secs_f64()));
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
    let speed = bytes as f64 / 1e6 / seconds;
    report(
        "parse",
        "wc -l",
        &rounds,
        &format!("{speed:.0} MB/s on one core"),
    );
}

/// Peak memory of reading one rollout of 2 GB with lines of 40 MB.
fn large_rollout() {
    let folder = tempfile::tempdir().unwrap();
    let file = corpus::large_rollout(folder.path(), 2_000_000_000);
    let start = Instant::now();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--read", "codex"])
        .arg(&file)
        .output()
        .unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let words = String::from_utf8(output.stdout).unwrap();
    println!("large-rollout: {} in {seconds:.1} s", words.trim());
}

fn read_and_report(agent: &str, file: &Path) {
    let records = internals::read_transcript(agent, file).unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = peak
        .and_then(|text| text.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(f64::NAN);
    let mib = kib * 1024.0 / MIB;
    let mb = file.metadata().unwrap().len() / 1_000_000;
    println!("{mb} MB, {records} records, peak memory {mib:.0} MiB");
}

/// A pass with nothing to do over 5,000 sessions, against `find -printf`.
///
/// A hundred of them have recaps; the others were too old when memrev came, as
/// most of a person's 5,000 sessions are.
fn idle_pass() {
    let home = corpus::Home::new();
    corpus::ordinary_sessions(&home.codex_sessions(), 100, 30 * 1024);
    run(&mut home.memrev(&["init"]));
    run(&mut home.memrev(&["run"]));
    corpus::small_sessions(&home.codex_sessions(), 100..5_000);
    let later = || home.memrev_at(corpus::LATER, &["run"]);
    run(&mut later());
    run(&mut later());
    let pass = || run(&mut later());
    let find = || {
        run(Command::new("find")
            .arg(home.codex_sessions())
            .args(["-printf", "%p %s %T@\n"]));
    };
    let rounds = in_turns(21, pass, find);
    report("idle-pass", "find -printf", &rounds, "5,000 sessions");
}

/// An offline pass over 500 sessions of 300 MB from nothing.
fn offline_pass() {
    let home = corpus::Home::new();
    corpus::ordinary_sessions(&home.codex_sessions(), 500, 600 * 1024);
    let copy = |(): ()| {
        std::fs::remove_dir_all(home.memrev_home()).ok();
        run(&mut home.memrev(&["init"]));
    };
    let mut rounds = Vec::new();
    for _ in 0..3 {
        copy(());
        let start = Instant::now();
        run(&mut home.memrev(&["run"]));
        let ours = start.elapsed();
        let start = Instant::now();
        let tree = home.codex_sessions();
        run(Command::new("sh")
            .arg("-c")
            .arg(format!("cat $(find {} -type f) | sha1sum", tree.display())));
        rounds.push((ours, start.elapsed()));
    }
    let seconds = median(rounds.iter().map(|(ours, _)| ours.as_secs_f64()));
    report(
        "offline-pass",
        "sha1sum",
        &rounds,
        &format!("500 sessions, 300 MB: {seconds:.2} s"),
    );
}

/// Our own time in a pass over three new sessions with a model that answers at
/// once: recorded answers, so that nothing waits. Against a commit of one file
/// in a new repository.
fn model_pass() {
    let home = corpus::Home::new();
    corpus::ordinary_sessions(&home.codex_sessions(), 3, 200 * 1024);
    let answers = tempfile::tempdir().unwrap();
    for stage in ["extract", "consolidate"] {
        let folder = answers.path().join(stage);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("any.json"), r#"{"offline": true}"#).unwrap();
    }
    let mut rounds = Vec::new();
    for _ in 0..9 {
        std::fs::remove_dir_all(home.memrev_home()).ok();
        std::fs::remove_file(answers.path().join("requests.jsonl")).ok();
        run(&mut home.memrev(&["init"]));
        let config = home.memrev_home().join("config.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        let text = text.replace("\n[model]\n", "\n[model]\nbackend = \"replay\"\n");
        let text = text.replace(
            "\n[memories]\n",
            "\n[memories]\nmax_rollouts_per_startup = 3\n",
        );
        std::fs::write(&config, text).unwrap();
        let start = Instant::now();
        run(home.memrev(&["run"]).env("MEMREV_REPLAY", answers.path()));
        let ours = start.elapsed();
        let asked = std::fs::read_to_string(answers.path().join("requests.jsonl")).unwrap();
        assert_eq!(
            asked.lines().count(),
            4,
            "three extractions, one consolidation"
        );
        let repository = tempfile::tempdir().unwrap();
        let git = "git init -q && echo a >a && git add a && \
                   git -c user.name=a -c user.email=a@b commit -q -m a";
        let start = Instant::now();
        run(Command::new("sh")
            .arg("-c")
            .arg(git)
            .current_dir(&repository));
        rounds.push((ours, start.elapsed()));
    }
    report(
        "model-pass",
        "git init && git commit",
        &rounds,
        "3 sessions, 4 calls",
    );
}

/// `memrev inject` from a cold start, against `git --version`.
fn inject() {
    let home = corpus::Home::new();
    corpus::ordinary_sessions(&home.codex_sessions(), 20, 50 * 1024);
    run(&mut home.memrev(&["init"]));
    run(&mut home.memrev(&["run"]));
    let inject = || run(&mut home.memrev(&["inject"]));
    let git = || run(Command::new("git").arg("--version"));
    let rounds = in_turns(101, inject, git);
    report("inject", "git --version", &rounds, "cold start");
}

/// A baseline of 5 changed files among 10,000, against `git add -A && git commit`.
fn baseline_commit() {
    let ours = tempfile::tempdir().unwrap();
    let theirs = tempfile::tempdir().unwrap();
    for folder in [ours.path(), theirs.path()] {
        corpus::memory_folder(folder, 10_000);
    }
    let mut bench = internals::BaselineBench::new(ours.path()).unwrap();
    let git = |arguments: &[&str]| {
        run(Command::new("git")
            .args(["-c", "user.name=x", "-c", "user.email=x@example.invalid"])
            .args([
                "-c",
                "commit.gpgsign=false",
                "-c",
                "core.hooksPath=/dev/null",
            ])
            .args(arguments)
            .current_dir(theirs.path()));
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "begin"]);
    let mut rounds = Vec::new();
    for round in 0..11 {
        let changes = corpus::changed_files(round);
        let start = Instant::now();
        bench.publish(&changes).unwrap();
        let time_ours = start.elapsed();
        for (path, text) in &changes {
            std::fs::write(theirs.path().join(path), text).unwrap();
        }
        let start = Instant::now();
        git(&["add", "-A"]);
        git(&["commit", "-qm", "change"]);
        rounds.push((time_ours, start.elapsed()));
    }
    report(
        "baseline-commit",
        "git add -A && git commit",
        &rounds,
        "5 of 10,000 files",
    );
}

/// `log` and `why` over 1,000 baselines, against `git log` and `git blame` of
/// the same repository.
fn history() {
    let home = corpus::Home::new();
    run(&mut home.memrev(&["init"]));
    let memories = home.memrev_home().join("memories");
    corpus::baselines(&memories, 1_000);
    let git = |arguments: &[&str]| {
        run(Command::new("git").args(arguments).current_dir(&memories));
    };
    let log = || run(&mut home.memrev(&["log"]));
    let rounds = in_turns(11, log, || git(&["log"]));
    report("history-log", "git log", &rounds, "1,000 baselines");
    let why = || run(&mut home.memrev(&["why", "MEMORY.md:400"]));
    let rounds = in_turns(11, why, || git(&["blame", "MEMORY.md"]));
    report("history-why", "git blame", &rounds, "1,000 baselines");
}

/// Runs both in turns; each has one round to warm up.
fn in_turns(rounds: usize, ours: impl Fn(), theirs: impl Fn()) -> Vec<(Duration, Duration)> {
    let time = |work: &dyn Fn()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    ours();
    theirs();
    (0..rounds).map(|_| (time(&ours), time(&theirs))).collect()
}

fn report(name: &str, against: &str, rounds: &[(Duration, Duration)], more: &str) {
    let ratios = || {
        rounds
            .iter()
            .map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64())
    };
    let low = ratios().fold(f64::INFINITY, f64::min);
    let high = ratios().fold(0.0, f64::max);
    let ours = median(rounds.iter().map(|(ours, _)| ours.as_secs_f64() * 1e3));
    println!(
        "{name}: {:.2} [{low:.2}..{high:.2}] times `{against}` ({ours:.1} ms; {more})",
        median(ratios())
    );
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
