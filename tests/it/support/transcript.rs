//! Small transcripts in words: who said what, which command ended how.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// The id of the n-th session of a test.
pub(crate) fn thread_id(number: u32) -> String {
    format!("019cd700-0000-7000-8000-{number:012}")
}

/// A session to be written as the newest Codex or as Claude Code would.
#[derive(Clone)]
pub(crate) struct Transcript {
    agent: &'static str,
    pub(crate) id: String,
    /// `2026-03-09T10:00:00Z`: the time of the first record.
    started_at: String,
    cwd: String,
    source: &'static str,
    story: Vec<(String, String)>,
}

impl Transcript {
    /// A Codex session of a person at a terminal.
    ///
    /// The story has a line per record: `human: …`, `agent: …`,
    /// `run: <command> -> ok|fail: <output>`, `web: <text>`. A backslash and
    /// `n` stand for a line end.
    pub(crate) fn codex(number: u32, started_at: &str, story: &str) -> Self {
        Self {
            agent: "codex",
            id: thread_id(number),
            started_at: started_at.to_owned(),
            cwd: "/work/ledger".to_owned(),
            source: "cli",
            story: parse(story),
        }
    }

    /// The same as a Claude Code session.
    pub(crate) fn claude(number: u32, started_at: &str, story: &str) -> Self {
        Self {
            agent: "claude",
            ..Self::codex(number, started_at, story)
        }
    }

    pub(crate) fn in_folder(mut self, cwd: &str) -> Self {
        cwd.clone_into(&mut self.cwd);
        self
    }

    pub(crate) fn started_by(mut self, source: &'static str) -> Self {
        self.source = source;
        self
    }

    /// Goes on in the same session.
    pub(crate) fn and(mut self, story: &str) -> Self {
        self.story.extend(parse(story));
        self
    }

    /// Below the sandbox's root.
    pub(crate) fn relative_path(&self) -> String {
        let (date, _) = self.started_at.split_once('T').unwrap();
        if self.agent == "claude" {
            let project = self.cwd.replace(['/', '.'], "-");
            return format!("claude/projects/{project}/{}.jsonl", self.id);
        }
        let stamp = self.started_at.trim_end_matches('Z').replace(':', "-");
        let folder = date.replace('-', "/");
        format!("codex/sessions/{folder}/rollout-{stamp}-{}.jsonl", self.id)
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for record in self.records() {
            writeln!(text, "{record}").unwrap();
        }
        text
    }

    fn records(&self) -> Vec<Value> {
        let mut records = Vec::new();
        let mut clock = Clock::new(&self.started_at);
        if self.agent == "codex" {
            records.push(self.codex_meta(&clock.next()));
        }
        for (index, (who, words)) in self.story.iter().enumerate() {
            let at = clock.next();
            let made = match self.agent {
                "codex" => codex_records(who, words, index),
                _ => claude_records(who, words, index),
            };
            for record in made {
                records.push(self.stamped(record, &at, index));
            }
        }
        records
    }

    fn codex_meta(&self, at: &str) -> Value {
        let git = json!({"commit_hash": "0".repeat(40), "branch": "main"});
        json!({"timestamp": at, "type": "session_meta", "payload": {
            "id": self.id, "session_id": self.id, "timestamp": at, "cwd": self.cwd,
            "originator": "codex-tui", "cli_version": "0.171.0", "source": self.source,
            "thread_source": "user", "model_provider": "openai", "history_mode": "legacy",
            "base_instructions": {"text": "You are an agent."}, "git": git,
        }})
    }

    fn stamped(&self, mut record: Value, at: &str, index: usize) -> Value {
        record["timestamp"] = json!(at);
        if self.agent == "claude" {
            let parent = index
                .checked_sub(1)
                .map(|before| format!("u-{}-{before}", self.id));
            record["parentUuid"] = json!(parent);
            record["uuid"] = json!(format!("u-{}-{index}", self.id));
            record["isSidechain"] = json!(false);
            record["userType"] = json!("external");
            record["cwd"] = json!(self.cwd);
            record["sessionId"] = json!(self.id);
            record["version"] = json!("2.1.197");
            record["gitBranch"] = json!("main");
        }
        record
    }
}

fn parse(story: &str) -> Vec<(String, String)> {
    let lines = story.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (who, words) = line.split_once(": ").unwrap();
            (who.to_owned(), words.replace("\\n", "\n"))
        })
        .collect()
}

/// `<command> -> ok: <output>` in its three parts.
fn parse_run(words: &str) -> (&str, bool, &str) {
    let (command, outcome) = words.split_once(" -> ").unwrap();
    let (verdict, output) = outcome.split_once(": ").unwrap_or((outcome, ""));
    (command, verdict == "ok", output)
}

fn codex_records(who: &str, words: &str, index: usize) -> Vec<Value> {
    let call_id = format!("call_{index}");
    let message = |role: &str, kind: &str| {
        json!({"type": "response_item", "payload": {"type": "message", "role": role,
            "content": [{"type": kind, "text": words}]}})
    };
    match who {
        "human" => vec![
            message("user", "input_text"),
            json!({"type": "event_msg", "payload": {"type": "user_message", "message": words,
                "images": []}}),
        ],
        "context" => vec![message("user", "input_text")],
        "agent" => vec![
            message("assistant", "output_text"),
            json!({"type": "event_msg", "payload": {"type": "agent_message", "message": words}}),
        ],
        "run" => {
            let (command, succeeded, output) = parse_run(words);
            let code = i32::from(!succeeded);
            let arguments = json!({"command": ["bash", "-lc", command]}).to_string();
            let result = json!({"output": output, "metadata": {"exit_code": code}}).to_string();
            vec![
                json!({"type": "response_item", "payload": {"type": "function_call",
                    "name": "shell", "arguments": arguments, "call_id": call_id}}),
                json!({"type": "response_item", "payload": {"type": "function_call_output",
                    "call_id": call_id, "output": result}}),
            ]
        }
        "web" => vec![
            json!({"type": "response_item", "payload": {"type": "web_search_call",
                "status": "completed", "action": {"type": "search", "query": words}}}),
        ],
        _ => panic!("nobody is called `{who}`"),
    }
}

fn claude_records(who: &str, words: &str, index: usize) -> Vec<Value> {
    let id = format!("toolu_{index}");
    match who {
        "human" => vec![json!({"type": "user", "promptSource": "typed",
            "message": {"role": "user", "content": words}})],
        "context" => vec![json!({"type": "user", "isMeta": true,
            "message": {"role": "user", "content": words}})],
        "agent" => vec![json!({"type": "assistant", "message": {"role": "assistant",
            "id": format!("msg_{index}"), "content": [{"type": "text", "text": words}]}})],
        "run" => {
            let (command, succeeded, output) = parse_run(words);
            vec![
                json!({"type": "assistant", "message": {"role": "assistant",
                    "id": format!("msg_{index}"), "content": [{"type": "tool_use", "id": id,
                    "name": "Bash", "input": {"command": command}}]}}),
                json!({"type": "user", "message": {"role": "user", "content": [{
                    "type": "tool_result", "tool_use_id": id, "content": output,
                    "is_error": !succeeded}]}}),
            ]
        }
        "web" => vec![
            json!({"type": "assistant", "message": {"role": "assistant",
                "id": format!("msg_{index}"), "content": [{"type": "tool_use", "id": id,
                "name": "WebFetch", "input": {"url": "https://example.invalid"}}]}}),
            json!({"type": "user", "message": {"role": "user", "content": [{
                "type": "tool_result", "tool_use_id": id, "content": words}]}}),
        ],
        _ => panic!("nobody is called `{who}`"),
    }
}

/// Gives each record the next second.
struct Clock {
    date: String,
    seconds: u32,
}

impl Clock {
    fn new(started_at: &str) -> Self {
        let (date, time) = started_at.trim_end_matches('Z').split_once('T').unwrap();
        let parts: Vec<u32> = time.split(':').map(|part| part.parse().unwrap()).collect();
        Self {
            date: date.to_owned(),
            seconds: parts[0] * 3600 + parts[1] * 60 + parts[2],
        }
    }

    fn next(&mut self) -> String {
        let (hours, rest) = (self.seconds / 3600, self.seconds % 3600);
        self.seconds += 1;
        let (minutes, seconds) = (rest / 60, rest % 60);
        format!("{}T{hours:02}:{minutes:02}:{seconds:02}.000Z", self.date)
    }
}
