//! Flags and answers of the programs we know.
//!
//! Pure. Seen with Codex 0.171 and Claude Code 2.1.197.

use serde::Deserialize;
use serde_json::Value;

use crate::domain::text::Raw;
use crate::model::command::{CommandSettings, complaint};
use crate::model::{ModelError, Tokens};

/// Stands for the file with the schema in the arguments of a call.
pub(super) const SCHEMA_FILE: &str = "{schema_file}";
/// Stands for the working folder.
pub(super) const FOLDER: &str = "{folder}";

/// A program whose flags and answers we know, or any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preset {
    Codex,
    Claude,
    /// The person's own: prompt in, JSON out, nothing around it.
    Plain,
}

/// What a consolidation has to ask of the program's own sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freedom {
    /// Somebody else keeps it in: the kernel by our order, or a container.
    Walled,
    /// Nobody does: it has to do so itself.
    OwnSandbox,
}

impl Preset {
    /// The name under which it is looked for.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Plain => "command",
        }
    }

    /// Set for every call.
    pub(super) const fn variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Codex | Self::Plain => &[],
            Self::Claude => &[
                // Its own memory is none of ours, and must not grow from this.
                ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
                // No update, no telemetry: it runs for one answer.
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                ("DISABLE_AUTOUPDATER", "1"),
            ],
        }
    }

    pub(super) fn extraction(self, settings: &CommandSettings, schema: &str) -> Vec<String> {
        match self {
            Self::Plain => settings.arguments.clone(),
            Self::Codex => codex(settings, "read-only"),
            Self::Claude => claude(settings, schema, &["--tools", ""]),
        }
    }

    pub(super) fn consolidation(
        self,
        settings: &CommandSettings,
        freedom: Freedom,
        schema: &str,
    ) -> Vec<String> {
        match self {
            Self::Plain => settings.arguments.clone(),
            Self::Codex => codex(
                settings,
                match freedom {
                    // Its own sandbox cannot be built inside of ours.
                    Freedom::Walled => "danger-full-access",
                    Freedom::OwnSandbox => "workspace-write",
                },
            ),
            // No shell, no network: these tools keep to the working folder
            // unless somebody is there to allow more.
            Self::Claude => claude(
                settings,
                schema,
                &[
                    "--tools",
                    "Read,Write,Edit,Glob,Grep",
                    "--permission-mode",
                    "acceptEdits",
                ],
            ),
        }
    }

    /// What the program answered, or its complaint, and what it used up.
    pub(super) fn answer(self, stdout: &str) -> (Result<Raw, String>, Tokens) {
        match self {
            Self::Plain => (Ok(Raw::new(stdout)), Tokens::default()),
            Self::Codex => codex_answer(stdout),
            Self::Claude => claude_answer(stdout),
        }
    }
}

fn codex(settings: &CommandSettings, sandbox: &str) -> Vec<String> {
    let mut arguments = vec!["exec".to_owned()];
    arguments.extend(settings.arguments.iter().cloned());
    let mut add = |more: &[&str]| arguments.extend(more.iter().map(|it| (*it).to_owned()));
    // Events, so that tokens can be counted.
    add(&["--json", "--color", "never"]);
    // No session file, and none of the person's rules, hooks and plugins: the
    // prompt says all there is to do. The login is read all the same.
    add(&["--ephemeral", "--ignore-user-config", "--ignore-rules"]);
    add(&["-c", "features.hooks=false", "-c", "features.plugins=false"]);
    add(&[
        "-c",
        "features.memories=false",
        "-c",
        "web_search=\"disabled\"",
    ]);
    // Otherwise every call waits some seconds at its end for an upload.
    add(&["-c", "analytics.enabled=false"]);
    add(&[
        "--skip-git-repo-check",
        "--sandbox",
        sandbox,
        "--cd",
        FOLDER,
    ]);
    if let Some(model) = &settings.model {
        add(&["--model", model]);
    }
    add(&["--output-schema", SCHEMA_FILE, "-"]);
    arguments
}

fn claude(settings: &CommandSettings, schema: &str, tools: &[&str]) -> Vec<String> {
    let mut arguments = settings.arguments.clone();
    let mut add = |more: &[&str]| arguments.extend(more.iter().map(|it| (*it).to_owned()));
    add(&["--print", "--output-format", "json"]);
    // No transcript, none of the person's settings, hooks, servers, skills.
    add(&["--no-session-persistence", "--setting-sources", ""]);
    add(&["--strict-mcp-config", "--disable-slash-commands"]);
    add(&[
        "--system-prompt",
        "You carry out one task, which the message describes in full.",
    ]);
    add(tools);
    if let Some(model) = &settings.model {
        add(&["--model", model]);
    }
    add(&["--json-schema", &plain_schema(schema)]);
    arguments
}

/// The schema without the name of its dialect: Claude Code leaves out the tool
/// for answers when it meets one it does not know.
pub(super) fn plain_schema(schema: &str) -> String {
    let Ok(Value::Object(mut schema)) = serde_json::from_str(schema) else {
        return schema.to_owned();
    };
    schema.remove("$schema");
    Value::Object(schema).to_string()
}

/// A line of `codex exec --json`; unknown ones and fields are passed over.
#[derive(Deserialize)]
struct CodexEvent {
    r#type: String,
    item: Option<CodexItem>,
    usage: Option<CodexUsage>,
    message: Option<String>,
    error: Option<CodexError>,
}

#[derive(Deserialize)]
struct CodexItem {
    r#type: Option<String>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct CodexUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

#[derive(Deserialize)]
struct CodexError {
    message: Option<String>,
}

fn codex_answer(stdout: &str) -> (Result<Raw, String>, Tokens) {
    let (mut last, mut complaint, mut tokens) = (None, None, Tokens::default());
    for line in stdout.lines() {
        let Ok(event) = serde_json::from_str::<CodexEvent>(line) else {
            continue;
        };
        match event.r#type.as_str() {
            "item.completed" => {
                let item = event
                    .item
                    .filter(|item| item.r#type.as_deref() == Some("agent_message"));
                last = item.and_then(|item| item.text).or(last);
            }
            "turn.completed" => {
                if let Some(usage) = event.usage {
                    tokens.input = tokens.input.saturating_add(usage.input_tokens);
                    tokens.output = tokens.output.saturating_add(usage.output_tokens);
                }
                complaint = None;
            }
            "error" => complaint = event.message.or(complaint),
            "turn.failed" => {
                complaint = event.error.and_then(|error| error.message).or(complaint);
            }
            _ => {}
        }
    }
    let answer = match (complaint, last) {
        (Some(complaint), _) => Err(complaint),
        (None, Some(text)) => Ok(Raw::new(text)),
        (None, None) => Err("there is no answer in its output".to_owned()),
    };
    (answer, tokens)
}

/// What `claude -p --output-format json` prints.
#[derive(Deserialize)]
struct ClaudeResult {
    #[serde(default)]
    is_error: bool,
    result: Option<String>,
    structured_output: Option<Value>,
    subtype: Option<String>,
    #[serde(default)]
    usage: ClaudeUsage,
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
struct ClaudeUsage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

fn claude_answer(stdout: &str) -> (Result<Raw, String>, Tokens) {
    let Ok(result) = serde_json::from_str::<ClaudeResult>(stdout.trim()) else {
        let none = "there is no answer in its output".to_owned();
        return (Err(none), Tokens::default());
    };
    let usage = &result.usage;
    let cached = (usage.cache_creation_input_tokens).saturating_add(usage.cache_read_input_tokens);
    let tokens = Tokens {
        calls: 0,
        input: usage.input_tokens.saturating_add(cached),
        output: usage.output_tokens,
    };
    let answer = match (result.structured_output, result.result) {
        (Some(value), _) if !result.is_error => Ok(Raw::new(value.to_string())),
        (_, Some(text)) if result.is_error => Err(text),
        (_, Some(text)) => Ok(Raw::new(text)),
        (_, None) => Err(result.subtype.unwrap_or_default()),
    };
    (answer, tokens)
}

/// What a complaint means. Programs say it in words only.
pub(super) fn error(said: &str) -> ModelError {
    let lower = said.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let reason = || complaint(said);
    if says(&[
        "context window",
        "prompt is too long",
        "context length",
        "maximum context",
    ]) {
        ModelError::TooLong
    } else if says(&[
        "rate limit",
        "usage limit",
        "429",
        "too many requests",
        "limit reached",
    ]) {
        ModelError::RateLimited {
            retry_after_seconds: None,
        }
    } else if says(&[
        "log in",
        "login",
        "not logged in",
        "api key",
        "unauthorized",
        "401",
        "403",
    ]) {
        ModelError::Refused { reason: reason() }
    } else {
        ModelError::Unreachable { reason: reason() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Preset, error, plain_schema};
    use crate::domain::text::Raw;
    use crate::model::{ModelError, Tokens};

    #[track_caller]
    fn check(preset: Preset, stdout: &str, answer: Result<&str, &str>, tokens: [u64; 2]) {
        let (said, used) = preset.answer(stdout);
        let said = said.as_ref().map(Raw::unredacted);
        assert_eq!(said.map_err(String::as_str), answer);
        let [input, output] = tokens;
        let calls = 0;
        assert_eq!(
            used,
            Tokens {
                calls,
                input,
                output
            }
        );
    }

    #[test]
    fn the_last_message_of_codex_is_its_answer() {
        check(
            Preset::Codex,
            r#"{"type":"thread.started","thread_id":"t"}
not json
{"type":"item.completed","item":{"id":"0","type":"agent_message","text":"first I look"}}
{"type":"error","message":"stream disconnected, retrying"}
{"type":"item.completed","item":{"id":"1","type":"reasoning","text":"hm"}}
{"type":"item.completed","item":{"id":"2","type":"agent_message","text":"{}"}}
{"type":"turn.completed","usage":{"input_tokens":70,"cached_input_tokens":3,"output_tokens":6}}"#,
            Ok("{}"),
            [70, 6],
        );
        check(
            Preset::Codex,
            r#"{"type":"turn.failed","error":{"message":"unexpected status 401"}}"#,
            Err("unexpected status 401"),
            [0, 0],
        );
        check(
            Preset::Codex,
            "",
            Err("there is no answer in its output"),
            [0, 0],
        );
    }

    #[test]
    fn claude_answers_with_an_object_or_with_words() {
        check(
            Preset::Claude,
            r#"{"type":"result","is_error":false,"result":"done","structured_output":{"a":1},"usage":{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":2}}"#,
            Ok("{\"a\":1}"),
            [12, 2],
        );
        check(Preset::Claude, r#"{"result":"Sure!"}"#, Ok("Sure!"), [0, 0]);
        check(
            Preset::Claude,
            r#"{"is_error":true,"result":"Not logged in","structured_output":null}"#,
            Err("Not logged in"),
            [0, 0],
        );
        check(
            Preset::Claude,
            "oops",
            Err("there is no answer in its output"),
            [0, 0],
        );
    }

    #[test]
    fn complaints_are_sorted_by_their_words() {
        for (said, kind) in [
            (
                "Your input exceeds the context window of this model",
                "too long",
            ),
            (
                "You've hit your usage limit. Try again at 3 pm.",
                "patience",
            ),
            ("Not logged in · Please run /login", "refused"),
            ("connection refused", "reached"),
        ] {
            let error = error(said);
            assert!(error.to_string().contains(kind), "{said}: {error}");
        }
        let secret = format!("{}{}", "ghp_", "a1B2".repeat(9));
        let error = error(&format!("bad token {secret}\nat line 2"));
        assert!(matches!(&error, ModelError::Unreachable { reason }
            if !reason.as_str().contains(&secret) && !reason.as_str().contains('\n')));
    }

    #[test]
    fn the_dialect_of_a_schema_is_left_out() {
        assert_eq!(
            plain_schema(r#"{"$schema":"x","type":"object"}"#),
            r#"{"type":"object"}"#
        );
    }
}
