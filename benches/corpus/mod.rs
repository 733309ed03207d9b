//! Transcripts and memory folders of a wanted size, the same at every run.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

const WORDS: &[&str] = &[
    "export", "ledger", "parser", "nightly", "invoice", "harbour", "window", "cache", "retry",
    "column", "filter", "branch", "deploy", "schema", "token", "render", "socket", "metric",
];

/// When the benched passes run.
const NOW: &str = "2026-03-10T12:00:00Z";

/// When all sessions are too old to be extracted and recaps are still kept.
pub(crate) const LATER: &str = "2026-03-22T12:00:00Z";

/// A home for memrev and one for each agent, in a temporary folder.
pub(crate) struct Home {
    root: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("codex/sessions")).unwrap();
        fs::create_dir_all(root.path().join("work")).unwrap();
        Self { root }
    }

    pub(crate) fn codex_sessions(&self) -> PathBuf {
        self.root.path().join("codex/sessions")
    }

    pub(crate) fn memrev_home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn memrev(&self, arguments: &[&str]) -> Command {
        self.memrev_at(NOW, arguments)
    }

    pub(crate) fn memrev_at(&self, now: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memrev"));
        command
            .args(arguments)
            .current_dir(self.root.path().join("work"))
            .env("HOME", self.root.path())
            .env("MEMREV_HOME", self.memrev_home())
            .env("CODEX_HOME", self.root.path().join("codex"))
            .env("CLAUDE_CONFIG_DIR", self.root.path().join("claude"))
            .env("MEMREV_NOW", now);
        command
    }
}

/// `count` sessions of about `bytes` each, with the mix of records that real
/// ones have: many tool outputs, token counts, few human words.
pub(crate) fn ordinary_sessions(sessions: &Path, count: usize, bytes: usize) -> Vec<PathBuf> {
    (0..count)
        .map(|number| {
            let mut text = meta(number);
            let mut turn = 0;
            while text.len() < bytes {
                push_turn(&mut text, number, turn);
                turn += 1;
            }
            write_session(sessions, number, &text)
        })
        .collect()
}

/// Sessions of one turn, with these numbers.
pub(crate) fn small_sessions(sessions: &Path, numbers: Range<usize>) {
    for number in numbers {
        let mut text = meta(number);
        push_turn(&mut text, number, 0);
        write_session(sessions, number, &text);
    }
}

/// One rollout of `bytes` with repeated compaction records, inline images
/// and lines of 40 MB.
pub(crate) fn large_rollout(folder: &Path, bytes: u64) -> PathBuf {
    let path =
        folder.join("rollout-2026-03-09T10-00-00-019cd700-0000-7000-8000-000000000001.jsonl");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let mut written = 0;
    let mut turn = 0;
    file.write_all(meta(1).as_bytes()).unwrap();
    while written < bytes {
        let mut text = String::new();
        push_turn(&mut text, 1, turn);
        let image = "iVBORw0KGgo".repeat(3_800_000 / 11);
        let at = stamp(turn);
        writeln!(text, r#"{{"timestamp":"{at}","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"look at this"}},{{"type":"input_image","image_url":"data:image/png;base64,{image}"}}]}}}}"#).unwrap();
        if turn % 12 == 0 {
            let long = "0123456789abcdef".repeat(40_000_000 / 16);
            writeln!(text, r#"{{"timestamp":"{at}","type":"response_item","payload":{{"type":"function_call_output","call_id":"call_{turn}","output":"{long}"}}}}"#).unwrap();
        }
        let history =
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"again"}]},"#
                .repeat(2_000);
        writeln!(text, r#"{{"timestamp":"{at}","type":"compacted","payload":{{"message":"","replacement_history":[{}],"window_number":{turn}}}}}"#, history.trim_end_matches(',')).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        written += text.len() as u64;
        turn += 1;
    }
    file.flush().unwrap();
    path
}

/// A memory folder of `count` recaps of about 3 KB.
pub(crate) fn memory_folder(folder: &Path, count: usize) {
    let recaps = folder.join("rollout_summaries");
    fs::create_dir_all(&recaps).unwrap();
    for number in 0..count {
        fs::write(recaps.join(format!("{number:05}.md")), prose(number, 3_000)).unwrap();
    }
}

/// Five files of [`memory_folder`] with new text.
pub(crate) fn changed_files(round: usize) -> Vec<(String, String)> {
    (0..5)
        .map(|index| {
            let number = round * 700 + index * 131;
            let path = format!("rollout_summaries/{number:05}.md");
            (path, prose(number + round + 1, 3_000))
        })
        .collect()
}

/// `count` baselines on main of a memory folder: each brings a task group to
/// the handbook, changes a line of an older one and the summary.
pub(crate) fn baselines(folder: &Path, count: usize) {
    let mut stream = String::new();
    let mut groups: Vec<String> = Vec::new();
    for number in 0..count {
        groups.push(group(number, number));
        // Memory is bounded: old groups leave.
        if groups.len() > 100 {
            groups.remove(0);
        }
        let older = number * 7 % groups.len();
        groups[older] = group(number - (groups.len() - 1 - older), number);
        let summary = format!(
            "v1\n\n## User Profile\n\n- Sessions: {number}\n\n## User preferences\n\n{}",
            prose(number / 9, 3_000)
        );
        let message = format!(
            "baseline: 1 recap; MEMORY.md +9 -1\n\nMemrev-Kind: baseline\nMemrev-Run: run-{number}\nMemrev-Version: v1\nMemrev-Worker: offline\n"
        );
        let at = 1_770_000_000 + number * 3_600;
        let parent = if number == 0 {
            "from refs/heads/main^0\n"
        } else {
            ""
        };
        write!(
            stream,
            "commit refs/heads/main\ncommitter memrev <memrev@localhost> {at} +0000\ndata {}\n{message}\n{parent}",
            message.len()
        )
        .unwrap();
        for (path, text) in [
            ("MEMORY.md", groups.concat()),
            ("memory_summary.md", summary),
        ] {
            writeln!(
                stream,
                "M 100644 inline {path}\ndata {}\n{text}",
                text.len()
            )
            .unwrap();
        }
    }
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(folder);
        command
    };
    let mut import = git(&["fast-import", "--quiet", "--force"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = import.stdin.take().unwrap();
    input.write_all(stream.as_bytes()).unwrap();
    drop(input);
    assert!(import.wait().unwrap().success());
    assert!(git(&["reset", "-q", "--hard"]).status().unwrap().success());
}

/// A task group of the handbook, its first line by `edition`.
fn group(number: usize, edition: usize) -> String {
    let body = prose(number, 600).replace('\n', "\n- ");
    format!(
        "# Task Group: work {number}\n\nscope: edition {edition}\n\n## Task 1: do {number}\n\n- {body}\n\n"
    )
}

fn write_session(sessions: &Path, number: usize, text: &str) -> PathBuf {
    let day = number % 8 + 1;
    let folder = sessions.join(format!("2026/03/{day:02}"));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!(
        "rollout-2026-03-{day:02}T10-00-00-{}.jsonl",
        id(number)
    ));
    fs::write(&path, text).unwrap();
    path
}

fn id(number: usize) -> String {
    format!("019cd700-0000-7000-8000-{number:012}")
}

fn stamp(turn: usize) -> String {
    format!("2026-03-08T10:{:02}:{:02}.000Z", turn / 60 % 60, turn % 60)
}

fn meta(number: usize) -> String {
    let instructions = prose(number, 12_000).replace('\n', " ");
    let id = id(number);
    let project = number % 7;
    format!(
        "{}\n",
        format_args!(
            r#"{{"timestamp":"2026-03-08T10:00:00.000Z","type":"session_meta","payload":{{"id":"{id}","timestamp":"2026-03-08T10:00:00.000Z","cwd":"/work/project-{project}","originator":"codex-tui","cli_version":"0.171.0","source":"cli","base_instructions":{{"text":"{instructions}"}},"git":{{"branch":"main","repository_url":"https://example.invalid/project-{project}.git"}}}}}}"#
        )
    )
}

fn push_turn(text: &mut String, number: usize, turn: usize) {
    let at = stamp(turn);
    let seed = number * 31 + turn;
    let human = match turn % 9 {
        4 => format!(
            "From now on always run the {} tests before you answer.",
            WORDS[seed % WORDS.len()]
        ),
        _ => format!(
            "Please look at the {} and {}.",
            WORDS[seed % WORDS.len()],
            prose(seed, 90).trim().replace('\n', " ")
        ),
    };
    let mut push = |kind: &str, payload: &str| {
        writeln!(
            text,
            r#"{{"timestamp":"{at}","type":"{kind}","payload":{payload}}}"#
        )
        .unwrap();
    };
    push(
        "response_item",
        &format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{human}"}}]}}"#
        ),
    );
    push(
        "event_msg",
        &format!(r#"{{"type":"user_message","message":"{human}","images":[]}}"#),
    );
    for call in 0..6 {
        let id = format!("call_{turn}_{call}");
        let output = prose(seed + call, 2_500).replace('\n', "\\\\n");
        let code = i32::from(call == 1);
        push(
            "response_item",
            &format!(
                r#"{{"type":"reasoning","summary":[],"content":null,"encrypted_content":"{}"}}"#,
                "gAAAA".repeat(160)
            ),
        );
        push(
            "response_item",
            &format!(
                r#"{{"type":"function_call","name":"shell","arguments":"{{\"command\":[\"bash\",\"-lc\",\"cargo test -q {}\"]}}","call_id":"{id}"}}"#,
                WORDS[(seed + call) % WORDS.len()]
            ),
        );
        push(
            "response_item",
            &format!(
                r#"{{"type":"function_call_output","call_id":"{id}","output":"{{\"output\":\"{output}\",\"metadata\":{{\"exit_code\":{code}}}}}"}}"#
            ),
        );
        push(
            "event_msg",
            r#"{"type":"token_count","info":{"total_token_usage":{"input_tokens":1200,"cached_input_tokens":900,"output_tokens":300,"total_tokens":1500},"model_context_window":272000},"rate_limits":{"primary":{"used_percent":12.0,"window_minutes":300,"resets_in_seconds":900}}}"#,
        );
    }
    let answer = prose(seed + 7, 400).replace('\n', " ");
    push(
        "response_item",
        &format!(
            r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{answer}"}}]}}"#
        ),
    );
    push(
        "event_msg",
        &format!(r#"{{"type":"agent_message","message":"{answer}"}}"#),
    );
}

/// About `bytes` of words that depend on `seed` only.
fn prose(seed: usize, bytes: usize) -> String {
    let mut text = String::new();
    let mut state = seed.wrapping_mul(0x9E37_79B9).wrapping_add(1);
    while text.len() < bytes {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        text.push_str(WORDS[(state >> 33) % WORDS.len()]);
        text.push(if (state >> 50).is_multiple_of(12) {
            '\n'
        } else {
            ' '
        });
    }
    text
}
