//! Lines that a person wrote and that break a rule: they are theirs, stay as
//! they are, are named by `check` and `status`, and nothing freezes over them.

use crate::support::{Run, Sandbox, Transcript, beside_each_other, thread_id};

const GONE: &str = "rollout_summaries/2026-01-01T00-00-00-aaaa-gone.md";

/// A rule, the file, and what a person does to it.
struct Case {
    code: &'static str,
    file: &'static str,
    /// Stands in the file and is replaced.
    from: &'static str,
    to: String,
    /// What has to stand there ever after.
    line: String,
}

fn case(code: &'static str, file: &'static str, from: &'static str, line: &str) -> Case {
    Case {
        code,
        file,
        from,
        to: format!("{from}\n{line}\n"),
        line: line.to_owned(),
    }
}

fn cases() -> Vec<Case> {
    let (summary, handbook, tips) = ("memory_summary.md", "MEMORY.md", "## General Tips\n");
    let plan = format!("- the plan of the great ledger is in {GONE}");
    let foreign = thread_id(99);
    let thread = format!("- the great plan comes from thread_id={foreign}");
    let rules = "# Rules\n\n";
    let mut cases = vec![
        case("P001", summary, tips, &plan),
        case("P002", summary, tips, &thread),
        case("P001", summary, tips, &format!("- see {GONE}")),
        case("P001", summary, tips, &format!("- 见 {GONE}")),
        case("S007", summary, tips, "Please let me know before you push."),
        case(
            "F005",
            summary,
            tips,
            "- write \u{202e}abc\u{202c} backwards",
        ),
        case(
            "F003",
            summary,
            tips,
            "<<<<<<< mine\n- one two\n=======\n- one three\n>>>>>>> yours",
        ),
    ];
    for (code, line) in [
        ("P001", plan.as_str()),
        ("P002", thread.as_str()),
        ("M003", "Please let me know before you push."),
    ] {
        cases.push(Case {
            code,
            file: handbook,
            from: "# Task Group: ",
            to: format!("{rules}{line}\n\n# Task Group: "),
            line: line.to_owned(),
        });
    }
    cases
}

/// A memory with a baseline.
fn begun() -> Sandbox {
    let sandbox = Sandbox::new();
    let story = "human: Always use tabs in the ledger.\nagent: ok";
    sandbox.session(&Transcript::codex(1, "2026-03-08T10:00:00Z", story));
    sandbox.run(&["run"]).success();
    sandbox
}

fn calls_worker(sandbox: &Sandbox) -> bool {
    let file = sandbox.path("trace");
    std::fs::remove_file(&file).ok();
    let stop = format!("trace:{}", file.display());
    let child = sandbox.start_stopping(&stop, &["run"]);
    Run::of(child.wait_with_output().unwrap()).success();
    let points = std::fs::read_to_string(file).unwrap_or_default();
    points.lines().any(|point| point == "consolidate.staged")
}

#[test]
fn an_error_in_a_persons_line_freezes_nothing() {
    beside_each_other(&cases(), |case| {
        let told = format!("{} {}", case.code, case.file);
        let mut sandbox = begun();
        let text = sandbox.read(case.file);
        assert!(text.contains(case.from), "{told}: {text}");
        sandbox.write(case.file, &text.replacen(case.from, &case.to, 1));
        sandbox.git(&["commit", "-q", "-a", "-m", "mine"]);
        sandbox.at("2026-03-10T12:05:00Z").run(&["run"]).success();
        // Nothing is new: nobody is asked again.
        assert!(!calls_worker(&sandbox), "{told}");

        let story = "human: Never rename a column by yourself.\nagent: ok";
        sandbox.session(&Transcript::codex(2, "2026-03-09T10:00:00Z", story));
        sandbox.at("2026-03-10T12:10:00Z");
        assert!(calls_worker(&sandbox), "{told}");
        let summary = sandbox.read("memory_summary.md");
        assert!(
            summary.contains("Never rename a column"),
            "{told}: {summary}"
        );
        let text = sandbox.read(case.file);
        for line in case.line.lines() {
            assert!(text.contains(line), "{told}: {line} is gone:\n{text}");
        }
        assert!(!calls_worker(&sandbox), "{told}");

        let status = sandbox.run(&["status"]).success();
        let status = status.prints("in your own lines").prints(case.code);
        assert!(!status.stdout.contains("to be mended"), "{}", status.stdout);
        let json = sandbox.run(&["status", "--json"]).success().json();
        assert_eq!(json["versions"][0]["yours"].as_array().unwrap().len(), 1);
        sandbox.run(&["check"]).exit(1).prints(case.code);
        sandbox.assert_sound();
    });
}

#[test]
fn a_file_without_its_frame_is_mended_around_the_persons_words() {
    type Spoil = fn(&str) -> Option<String>;
    let cases: [(&str, &str, Spoil); 6] = [
        ("S001", "memory_summary.md", |_| None),
        ("M001", "MEMORY.md", |_| None),
        ("S002", "memory_summary.md", |text| {
            Some(text.replacen("v1\n", "V1 of the great memory\n", 1))
        }),
        ("S005", "memory_summary.md", |text| {
            Some(text.replace("## General Tips", "## Tips"))
        }),
        ("S006", "memory_summary.md", |text| {
            let frame = text.lines().filter(|line| line.starts_with(['v', '#']));
            Some(frame.collect::<Vec<_>>().join("\n\n") + "\n")
        }),
        ("M002", "MEMORY.md", |text| {
            Some(text.replace("# Task Group", "# Group"))
        }),
    ];
    beside_each_other(&cases, |(code, file, spoil)| {
        let mut sandbox = begun();
        let text = sandbox.read(file);
        match spoil(&text) {
            Some(spoilt) => {
                assert_ne!(spoilt, text, "{code}");
                sandbox.write(file, &spoilt);
            }
            None => std::fs::remove_file(sandbox.memories().join(file)).unwrap(),
        }
        sandbox.git(&["commit", "-q", "-a", "-m", "mine"]);
        for now in ["2026-03-10T12:05:00Z", "2026-03-10T12:10:00Z"] {
            sandbox.at(now).run(&["run"]).success();
        }
        assert!(!calls_worker(&sandbox), "{code}");
        let story = "human: Never rename a column by yourself.\nagent: ok";
        sandbox.session(&Transcript::codex(2, "2026-03-09T10:00:00Z", story));
        sandbox.at("2026-03-10T12:15:00Z");
        assert!(calls_worker(&sandbox), "{code}");
        let text = sandbox.read("memory_summary.md");
        assert!(text.contains("Never rename a column"), "{code}: {text}");
        sandbox.run(&["check"]).success();
        sandbox.assert_sound();
    });
}
