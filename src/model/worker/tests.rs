//! A scripted model at the desk. Each line of a story is one tool call, as
//! `name {arguments}`; a line of words is an answer without calls; an empty
//! line begins the next answer.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{WorkerLimits, run, tools};
use crate::domain::text::{Raw, Redacted};
use crate::domain::version::MemoryVersion;
use crate::model::protocol::{Answer, Ask, End, Protocol, ToolCall, Turn};
use crate::model::{ConsolidationRequest, ModelError, Tokens, Unmetered, WorkerReport};
use crate::sys::fs;

struct Scripted {
    answers: Mutex<Vec<String>>,
    /// Results of all turns that were seen last.
    seen: Mutex<Vec<(String, bool)>>,
    first: Mutex<String>,
    /// What it had said before, as it was told.
    own: Mutex<Vec<String>>,
    too_long_once_at: u32,
    asked: AtomicU32,
}

impl Scripted {
    fn new(story: &str) -> Self {
        let mut answers: Vec<String> = story.split("\n\n").map(str::to_owned).collect();
        answers.reverse();
        Self {
            answers: Mutex::new(answers),
            seen: Mutex::default(),
            first: Mutex::default(),
            own: Mutex::default(),
            too_long_once_at: 0,
            asked: AtomicU32::new(0),
        }
    }

    fn results(&self) -> Vec<(String, bool)> {
        self.seen.lock().unwrap().clone()
    }
}

impl Protocol for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn ask(&self, ask: &Ask<'_>) -> Result<Answer, ModelError> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        if number == self.too_long_once_at {
            return Err(ModelError::TooLong);
        }
        let results = ask.turns.iter().flat_map(|turn| match turn {
            Turn::Results(results) => results.as_slice(),
            _ => &[],
        });
        *self.seen.lock().unwrap() = results
            .map(|it| (it.content.as_str().to_owned(), it.is_error))
            .collect();
        let own = ask.turns.iter().filter_map(|turn| match turn {
            Turn::Assistant { text, .. } => Some(text.as_str().to_owned()),
            _ => None,
        });
        *self.own.lock().unwrap() = own.collect();
        if let Some(Turn::User(texts)) = ask.turns.first() {
            *self.first.lock().unwrap() = texts.iter().map(Redacted::as_str).collect();
        }
        let mut answers = self.answers.lock().unwrap();
        let answer = answers.pop().unwrap_or_else(|| "list {}".to_owned());
        let is_call = |line: &&str| tools_and_others(line);
        let calls = answer.lines().map(str::trim).filter(is_call).enumerate();
        let calls: Vec<ToolCall> = calls
            .map(|(index, line)| {
                let (name, arguments) = line.split_once(' ').unwrap();
                ToolCall {
                    id: format!("{number}-{index}"),
                    name: name.to_owned(),
                    arguments: Raw::new(arguments),
                }
            })
            .collect();
        Ok(Answer {
            text: Raw::new(if calls.is_empty() {
                answer.as_str()
            } else {
                ""
            }),
            end: match calls.is_empty() {
                true if answer == "CUT" => End::CutAtLimit,
                true => End::Finished,
                false => End::WantsTools,
            },
            calls,
            tokens: Tokens {
                calls: 1,
                input: 10,
                output: 1,
            },
            rate_limits: None,
            opaque: None,
        })
    }
}

fn tools_and_others(line: &str) -> bool {
    line.contains(" {")
}

struct Staging(tempfile::TempDir);

impl Staging {
    fn new() -> Self {
        let staging = Self(tempfile::tempdir().unwrap());
        staging.put("MEMORY.md", "# Task Group: box\n\n- one\n- two\n- one\n");
        staging.put("memory_summary.md", "v1\n");
        staging.put(
            "rollout_summaries/a.md",
            "---\nthread_id: t\n---\nÜber Ports\n",
        );
        staging.put("skills/old/SKILL.md", "old");
        staging
    }

    fn put(&self, path: &str, text: &str) {
        let file = self.0.path().join(path);
        fs::make_folders(file.parent().unwrap()).unwrap();
        fs::replace(&file, text.as_bytes()).unwrap();
    }

    fn read(&self, path: &str) -> String {
        let file = self.0.path().join(path);
        fs::read_text_if_any(&file, 1 << 20)
            .unwrap()
            .unwrap_or_default()
    }

    fn run(&self, model: &Scripted, version: MemoryVersion) -> Result<WorkerReport, ModelError> {
        let request = ConsolidationRequest {
            version,
            staging: self.0.path(),
            prompt: Redacted::literal("the prompt"),
            changes: &[],
            withheld: &[],
            person_entries: &[],
            rewritings: &[],
            summary_bytes_max: 8_000,
            diagnostics: None,
            meter: &Unmetered { is_wanted: true },
        };
        let limits = WorkerLimits {
            steps_max: 12,
            output_tokens_max: 1_000,
            context_tokens: None,
        };
        run(model, &request, limits)
    }
}

/// Runs the story, then `finish`; the results of its calls begin so.
#[track_caller]
fn check(version: MemoryVersion, story: &str, results: &[(&str, bool)]) -> Staging {
    let staging = Staging::new();
    let model = Scripted::new(&format!("{story}\n\nfinish {{\"report\": \"\"}}"));
    let report = staging.run(&model, version).unwrap();
    assert!(report.finished);
    let seen = model.results();
    assert_eq!(seen.len(), results.len(), "{seen:?}");
    for ((seen, is_error), (begin, expected)) in seen.iter().zip(results) {
        assert!(
            seen.starts_with(begin),
            "{seen}\n  should begin with {begin}"
        );
        assert_eq!(is_error, expected, "{seen}");
    }
    staging
}

#[test]
fn the_tools_look_around_and_change_memory_files() {
    let staging = check(
        MemoryVersion::V1,
        r#"list {"folder": ""}
list {"folder": "rollout_summaries/"}
read {"path": "rollout_summaries/a.md", "from_line": 4}
search {"text": "ÜBER", "folder": ""}
write {"path": "memory_summary.md", "text": "v1\n\nnew\n"}
edit {"path": "MEMORY.md", "old": "- two", "new": "- 2"}
write {"path": "skills/new/SKILL.md", "text": "x"}
delete {"path": "skills/old/SKILL.md"}"#,
        &[
            ("MEMORY.md 37\nmemory_summary.md 3\n", false),
            ("rollout_summaries/a.md 33", false),
            (
                "rollout_summaries/a.md, lines 4 to 4 of 4\nÜber Ports",
                false,
            ),
            ("rollout_summaries/a.md:4: Über Ports", false),
            ("memory_summary.md has 8 bytes now", false),
            ("MEMORY.md has 35 bytes now", false),
            ("skills/new/SKILL.md has 1 bytes now", false),
            ("skills/old/SKILL.md is deleted", false),
        ],
    );
    assert_eq!(staging.read("memory_summary.md"), "v1\n\nnew\n");
    assert_eq!(
        staging.read("MEMORY.md"),
        "# Task Group: box\n\n- one\n- 2\n- one\n"
    );
    assert_eq!(staging.read("skills/old/SKILL.md"), "");
}

#[test]
fn what_cannot_be_done_is_answered_and_the_work_goes_on() {
    check(
        MemoryVersion::V1,
        r#"write {"path": "../outside.md", "text": "x"}
write {"path": "/etc/motd", "text": "x"}
read {"path": "/etc/passwd"}
write {"path": "rollout_summaries/a.md", "text": "x"}
write {"path": "extensions/ad_hoc/notes/n.md", "text": "x"}
write {"path": ".git/config", "text": "x"}
write {"path": "skills", "text": "x"}
edit {"path": "MEMORY.md", "old": "- one", "new": "x"}
edit {"path": "MEMORY.md", "old": "- three", "new": "x"}
delete {"path": "MEMORY.md"}
read {"path": "none.md"}
shell {"command": "rm -rf /"}
write {"path": "MEMORY.md"}
write {"path": "MEMORY.md", "text": "cut
retire {"entry": "- one", "reason": " "}"#,
        &[
            ("paths are relative", true),
            ("paths are relative", true),
            ("paths are relative", true),
            ("rollout_summaries/a.md is not yours to change", true),
            ("extensions/ad_hoc/notes/n.md is not yours", true),
            ("paths are relative", true),
            ("skills is not yours", true),
            ("`old` occurs 2 times", true),
            ("`old` does not occur", true),
            ("MEMORY.md has to be there", true),
            ("there is no file none.md", true),
            ("there is no such tool", true),
            ("the arguments cannot be used", true),
            ("the arguments cannot be used", true),
            ("an entry and a reason are needed", true),
        ],
    );
}

#[test]
fn in_version_2_the_summary_alone_may_change() {
    let staging = check(
        MemoryVersion::V2,
        r#"write {"path": "MEMORY.md", "text": "x"}
write {"path": "skills/a/SKILL.md", "text": "x"}
write {"path": "memory_summary.md", "text": "v1\n"}"#,
        &[
            ("MEMORY.md is not yours", true),
            ("skills/a/SKILL.md is not yours", true),
            ("memory_summary.md has 3 bytes now", false),
        ],
    );
    assert!(staging.read("MEMORY.md").contains("Task Group"));
}

#[test]
fn retired_and_forgotten_entries_are_in_the_report() {
    let staging = Staging::new();
    let model = Scripted::new(
        r#"retire {"entry": "- two", "reason": "never used"}
finish {"report": "done", "forgotten": ["- one"], "unmatched_notes": ["extensions/ad_hoc/notes/n.md"]}
write {"path": "MEMORY.md", "text": "too late"}"#,
    );
    let report = staging.run(&model, MemoryVersion::V1).unwrap();
    assert!(report.finished);
    assert_eq!(report.words.as_str(), "done");
    assert_eq!(report.retired[0].entry, "- two");
    assert_eq!(report.forgotten, ["- one"]);
    assert_eq!(report.unmatched_notes.len(), 1);
    assert_eq!(
        report.tokens,
        Tokens {
            calls: 1,
            input: 10,
            output: 1
        }
    );
    assert!(!staging.read("MEMORY.md").contains("too late"));
    let first = model.first.lock().unwrap();
    assert!(first.contains("the prompt") && first.contains("`finish` ends the work"));
}

#[test]
fn a_model_that_only_talks_is_reminded_and_then_counts_as_not_finished() {
    let staging = Staging::new();
    let model =
        Scripted::new("I need permission.\n\nMay I?\n\nHere is the updated file.\n\nlist {}");
    let report = staging.run(&model, MemoryVersion::V1).unwrap();
    assert!(!report.finished);
    assert_eq!(report.tokens.calls, 3);

    let model = Scripted::new("Sure.\n\nCUT\n\nfinish {}");
    assert!(staging.run(&model, MemoryVersion::V1).unwrap().finished);
}

#[test]
fn thoughts_aloud_do_not_go_back_to_the_model() {
    let staging = Staging::new();
    let model = Scripted::new("<think>what now?</think>May I?\n\nfinish {}");
    assert!(staging.run(&model, MemoryVersion::V1).unwrap().finished);
    assert_eq!(*model.own.lock().unwrap(), ["May I?"]);
}

#[test]
fn endless_steps_come_to_an_end() {
    let staging = Staging::new();
    let error = staging
        .run(&Scripted::new("list {}"), MemoryVersion::V1)
        .unwrap_err();
    assert!(matches!(error, ModelError::LimitReached { limit } if limit.contains("steps_max")));
}

#[test]
fn a_conversation_that_is_too_long_goes_on_without_old_results() {
    let staging = Staging::new();
    staging.put("rollout_summaries/b.md", &"long lines\n".repeat(500));
    let read = r#"read {"path": "rollout_summaries/b.md"}"#;
    let story = format!("{read}\n\n{read}\n\n{read}\n\n{read}\n\nfinish {{}}");
    let mut model = Scripted::new(&story);
    model.too_long_once_at = 5;
    assert!(staging.run(&model, MemoryVersion::V1).unwrap().finished);
    let seen = model.results();
    let is_out: Vec<bool> = seen
        .iter()
        .map(|(text, _)| text == super::TAKEN_OUT)
        .collect();
    assert_eq!(is_out, [true, true, false, false]);

    let mut model = Scripted::new("finish {}");
    model.too_long_once_at = 1;
    let error = staging.run(&model, MemoryVersion::V1).unwrap_err();
    assert!(
        matches!(error, ModelError::TooLong),
        "nothing could be left out"
    );
}

#[test]
fn secrets_reach_neither_a_file_nor_the_model() {
    let secret = format!("{}{}", "ghp_", "a1B2".repeat(9));
    let staging = Staging::new();
    staging.put("rollout_summaries/a.md", &format!("token {secret}\n"));
    let model = Scripted::new(&format!(
        "read {{\"path\": \"rollout_summaries/a.md\"}}\nwrite {{\"path\": \"MEMORY.md\", \"text\": \"{secret}\"}}\n\nfinish {{}}"
    ));
    staging.run(&model, MemoryVersion::V1).unwrap();
    assert!(!staging.read("MEMORY.md").contains(&secret));
    assert!(
        model
            .results()
            .iter()
            .all(|(text, _)| !text.contains(&secret))
    );
}

#[test]
fn parameters_are_schemas_of_objects_with_all_properties_required() {
    for tool in tools::ALL {
        let schema: serde_json::Value = serde_json::from_str(tool.parameters).unwrap();
        jsonschema::validator_for(&schema).unwrap();
        let properties = schema["properties"].as_object().unwrap().keys();
        let required = schema["required"].as_array().unwrap().iter();
        let mut required: Vec<_> = required.filter_map(|it| it.as_str()).collect();
        required.sort_unstable();
        assert!(properties.eq(required), "{}", tool.name);
        assert_eq!(schema["additionalProperties"], false);
    }
}
