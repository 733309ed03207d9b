//! What a tool call did, as a person would write it down: the command line of
//! a shell, the patch of an edit, the arguments otherwise.

use serde::Deserialize;
use serde_json::Value;

use crate::domain::item::Trust;
use crate::sessions::budget::{ITEM_TEXT_BYTES_MAX, cut_middle};
use crate::sessions::script;

/// Most files remembered of one call.
const FILES_MAX: usize = 50;

/// A call in our own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) text: String,
    pub(super) files: Vec<String>,
    /// Where what comes back is from.
    pub(super) output_trust: Trust,
    /// It is of the kinds that pollute a session: web search, MCP, tool search.
    pub(super) is_external_tool: bool,
    /// It reads what we wrote ourselves, so its output is never evidence.
    pub(super) reads_memory: bool,
}

impl Call {
    fn own(tool: &str, text: String) -> Self {
        Self {
            tool: tool.to_owned(),
            text,
            files: Vec::new(),
            output_trust: Trust::Own,
            is_external_tool: false,
            reads_memory: false,
        }
    }

    fn command(tool: &str, command: String) -> Self {
        let output_trust = if fetches(&command) {
            Trust::External
        } else {
            Trust::Own
        };
        let files = patched_files(&command);
        let reads_memory = reads_memory(&command);
        Self {
            files,
            output_trust,
            reads_memory,
            ..Self::own(tool, command)
        }
    }

    fn patch(tool: &str, patch: String) -> Self {
        let files = patched_files(&patch);
        Self {
            files,
            ..Self::own(tool, patch)
        }
    }

    /// Adds what the tool's own name says about where its output is from.
    fn judged_by_name(mut self, namespace: &str) -> Self {
        let is_ours = |name: &str| name.starts_with("mcp__memrev") || name == "memrev";
        if is_ours(&self.tool) || is_ours(namespace) {
            self.reads_memory = true;
        } else if is_external_name(&self.tool) || is_external_name(namespace) {
            self.output_trust = Trust::External;
            self.is_external_tool = true;
        }
        self
    }
}

/// The arguments that tools of either agent have in common.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments {
    command: Value,
    cmd: Value,
    input: Value,
    patch: Value,
    file_path: Value,
    notebook_path: Value,
    path: Value,
    old_string: Value,
    new_string: Value,
    new_source: Value,
    content: Value,
    edits: Value,
}

/// A call whose arguments are JSON: a function call of Codex, any tool of
/// Claude Code. Arguments that are no JSON object stand as they are.
pub(super) fn from_json(name: &str, namespace: &str, json: &str) -> Call {
    let Ok(arguments) = serde_json::from_str::<Arguments>(json) else {
        return Call::own(name, json.to_owned()).judged_by_name(namespace);
    };
    let call = match name {
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" | "Update" => edit(name, &arguments),
        "apply_patch" => first_text(&[&arguments.input, &arguments.patch])
            .map(|patch| Call::patch(name, patch.to_owned())),
        _ => shell(name, &arguments),
    };
    let call = call.unwrap_or_else(|| Call {
        reads_memory: first_text(&[&arguments.file_path, &arguments.path])
            .is_some_and(reads_memory),
        ..Call::own(name, json.to_owned())
    });
    call.judged_by_name(namespace)
}

/// A call whose input is free text: a patch, or a script that calls tools.
pub(super) fn from_text(name: &str, input: String) -> Call {
    match name {
        "apply_patch" => Call::patch(name, input),
        "exec" => from_script(input),
        _ => Call::own(name, input).judged_by_name(""),
    }
}

/// Code mode: a script that calls `tools.NAME(arguments)`.
fn from_script(input: String) -> Call {
    let mut calls = script::tool_calls(&input)
        .into_iter()
        .map(|inner| match inner.text {
            Some(text) if inner.name == "apply_patch" => Call::patch(&inner.name, text),
            Some(text) => Call::own(&inner.name, text).judged_by_name(""),
            None => from_json(&inner.name, "", &inner.json),
        });
    let Some(mut first) = calls.next() else {
        return Call::own("exec", input);
    };
    for other in calls {
        if first.tool != other.tool {
            "exec".clone_into(&mut first.tool);
        }
        first.text.push('\n');
        first.text.push_str(&other.text);
        first.files.extend(other.files);
        first.output_trust = first.output_trust.min(other.output_trust);
        first.is_external_tool |= other.is_external_tool;
        first.reads_memory |= other.reads_memory;
    }
    first.files.truncate(FILES_MAX);
    first
}

fn shell(name: &str, arguments: &Arguments) -> Option<Call> {
    let command = [&arguments.command, &arguments.cmd]
        .into_iter()
        .find_map(command_line)?;
    Some(Call::command(name, command))
}

/// The command line in a string or a list of words.
pub(super) fn command_line(command: &Value) -> Option<String> {
    match command {
        Value::String(line) => Some(unwrapped(line).unwrap_or_else(|| line.clone())),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words[..] {
                [shell, flag, script] if is_shell(shell) && is_script_flag(flag) => {
                    Some(script.to_owned())
                }
                ["apply_patch", patch] => Some(patch.to_owned()),
                [] => None,
                _ => Some(
                    words
                        .iter()
                        .map(|word| quoted(word))
                        .collect::<Vec<_>>()
                        .join(" "),
                ),
            }
        }
        _ => None,
    }
}

/// `bash -lc 'cargo test'` is `cargo test`: the form in which a harness hands a
/// command over. Any other call of a shell was meant, and stays.
fn unwrapped(line: &str) -> Option<String> {
    let (shell, rest) = line.trim().split_once(' ')?;
    let (flag, script) = rest.trim_start().split_once(' ')?;
    if !is_shell(shell) || flag != "-lc" {
        return None;
    }
    let script = script.trim();
    let quote = script.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = script.strip_prefix(quote)?.strip_suffix(quote)?;
    let is_one_word = match quote {
        '\'' => !inner.replace("'\\''", "").contains('\''),
        _ => !inner.replace("\\\"", "").contains('"'),
    };
    is_one_word.then(|| match quote {
        '\'' => inner.replace("'\\''", "'"),
        _ => inner.replace("\\\"", "\""),
    })
}

fn is_shell(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    ["bash", "sh", "zsh", "dash", "fish", "pwsh", "powershell"].contains(&name)
}

fn is_script_flag(word: &str) -> bool {
    ["-lc", "-c", "-ic", "-lic", "-Command", "-command"].contains(&word)
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// An edit as a patch, so that all edits read the same.
fn edit(name: &str, arguments: &Arguments) -> Option<Call> {
    let file = first_text(&[
        &arguments.file_path,
        &arguments.notebook_path,
        &arguments.path,
    ])?;
    let mut patch = String::from("*** Begin Patch\n");
    if let Some(content) = arguments.content.as_str() {
        patch.extend(["*** Add File: ", file, "\n"]);
        push_lines(&mut patch, '+', content);
    } else {
        patch.extend(["*** Update File: ", file, "\n"]);
        let new = match &arguments.new_string {
            Value::Null => &arguments.new_source,
            new => new,
        };
        let many = arguments.edits.as_array().map_or(&[][..], Vec::as_slice);
        let many = many.iter();
        let many = many.map(|one| (&one["old_string"], &one["new_string"]));
        for (old, new) in many.chain([(&arguments.old_string, new)]) {
            if old.is_null() && new.is_null() {
                continue;
            }
            patch.push_str("@@\n");
            push_lines(&mut patch, '-', old.as_str().unwrap_or_default());
            push_lines(&mut patch, '+', new.as_str().unwrap_or_default());
        }
    }
    patch.push_str("*** End Patch");
    let patch = cut_middle(patch, ITEM_TEXT_BYTES_MAX);
    Some(Call {
        files: vec![file.to_owned()],
        ..Call::own(name, patch)
    })
}

fn push_lines(patch: &mut String, sign: char, text: &str) {
    for line in text.lines() {
        patch.push(sign);
        patch.push_str(line);
        patch.push('\n');
    }
}

fn first_text<'a>(values: &[&'a Value]) -> Option<&'a str> {
    values.iter().find_map(|value| value.as_str())
}

/// Files that a patch writes or removes.
fn patched_files(text: &str) -> Vec<String> {
    const HEADS: [&str; 4] = [
        "*** Update File: ",
        "*** Add File: ",
        "*** Delete File: ",
        "*** Move to: ",
    ];
    if !text.contains("*** ") {
        return Vec::new();
    }
    let named = text.lines().filter_map(|line| {
        let path = HEADS
            .iter()
            .find_map(|head| line.trim_start().strip_prefix(head))?;
        Some(path.trim().to_owned()).filter(|path| !path.is_empty())
    });
    let mut files: Vec<String> = Vec::new();
    for path in named {
        if files.len() < FILES_MAX && !files.contains(&path) {
            files.push(path);
        }
    }
    files
}

/// Whether a command line brings in content from elsewhere.
fn fetches(command: &str) -> bool {
    const FETCHERS: [&str; 7] = ["curl", "wget", "lynx", "w3m", "xh", "httpie", "aria2c"];
    let words = command.split(|c: char| c.is_whitespace() || "|;&()`\"'".contains(c));
    words
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .any(|word| FETCHERS.contains(&word))
}

/// Whether a call reads memory files, ours or another system's, or asks this
/// program for memory: what comes back is no evidence of anything.
fn reads_memory(call: &str) -> bool {
    const FILES: [&str; 5] = [
        "memory_summary.md",
        "raw_memories.md",
        "rollout_summaries/",
        "/.memrev/",
        "/memories/MEMORY.md",
    ];
    let mut words = call.split(|c: char| c.is_whitespace() || "|;&()`\"'".contains(c));
    FILES.iter().any(|file| call.contains(file))
        || words.any(|word| word == "memrev" || word.ends_with("/memrev"))
}

/// Tools whose answers come from outside: the web, MCP servers, tool search.
fn is_external_name(name: &str) -> bool {
    const NAMES: [&str; 10] = [
        "WebFetch",
        "WebSearch",
        "ToolSearch",
        "ReadMcpResourceTool",
        "web_search",
        "web_fetch",
        "tool_search",
        "read_mcp_resource",
        "browser",
        "web",
    ];
    name.starts_with("mcp__") || name.starts_with("web.") || NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::{from_json, from_text};
    use crate::domain::item::Trust;

    #[track_caller]
    fn check(name: &str, json: &str, text: &str, files: &[&str]) {
        let call = from_json(name, "", json);
        assert_eq!(
            (call.text.as_str(), &call.files[..]),
            (text, &strings(files)[..])
        );
    }

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn shells_are_their_command_line() {
        check(
            "shell",
            r#"{"command":["bash","-lc","cargo test -q"]}"#,
            "cargo test -q",
            &[],
        );
        check(
            "shell",
            r#"{"command":["/bin/zsh","-c","a | b"]}"#,
            "a | b",
            &[],
        );
        check(
            "shell",
            r#"{"command":["git","commit","-m","it's done"]}"#,
            r"git commit -m 'it'\''s done'",
            &[],
        );
        check(
            "shell_command",
            r#"{"command":"bash -lc 'make test'","workdir":"/w"}"#,
            "make test",
            &[],
        );
        check(
            "shell_command",
            r#"{"command":"bash -lc 'a' && echo 'b'"}"#,
            "bash -lc 'a' && echo 'b'",
            &[],
        );
        check(
            "exec_command",
            r#"{"cmd":"zsh -ic 'zmodload zsh/zprof; zprof'"}"#,
            "zsh -ic 'zmodload zsh/zprof; zprof'",
            &[],
        );
        check("exec_command", r#"{"cmd":"ls"}"#, "ls", &[]);
        check(
            "Bash",
            r#"{"command":"ls","description":"list"}"#,
            "ls",
            &[],
        );
        check(
            "shell",
            r#"{"command":["apply_patch","*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"]}"#,
            "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch",
            &["a"],
        );
    }

    #[test]
    fn edits_read_as_patches() {
        check(
            "Edit",
            r#"{"file_path":"/w/a.rs","old_string":"x\ny","new_string":"z"}"#,
            "*** Begin Patch\n*** Update File: /w/a.rs\n@@\n-x\n-y\n+z\n*** End Patch",
            &["/w/a.rs"],
        );
        check(
            "Write",
            r#"{"file_path":"b","content":"1\n2\n"}"#,
            "*** Begin Patch\n*** Add File: b\n+1\n+2\n*** End Patch",
            &["b"],
        );
        check(
            "MultiEdit",
            r#"{"file_path":"b","edits":[{"old_string":"1","new_string":"2"}]}"#,
            "*** Begin Patch\n*** Update File: b\n@@\n-1\n+2\n*** End Patch",
            &["b"],
        );
        let call = from_text(
            "apply_patch",
            "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch".into(),
        );
        assert_eq!(call.files, strings(&["a", "b"]));
    }

    #[test]
    fn anything_else_is_its_arguments() {
        check("update_plan", r#"{"plan":[]}"#, r#"{"plan":[]}"#, &[]);
        check("odd", "not json", "not json", &[]);
        check("odd", "[1]", "[1]", &[]);
    }

    #[test]
    fn scripts_are_the_tools_they_call() {
        let call = from_text("exec", r#"const r = await tools.exec_command({"cmd": "make test", "yield_time_ms": 1}); text(r);"#.into());
        assert_eq!(
            (call.tool.as_str(), call.text.as_str()),
            ("exec_command", "make test")
        );
        let call = from_text("exec", "await tools.apply_patch(\"*** Begin Patch\\n*** Update File: a.py\\n*** End Patch\\n\");".into());
        assert_eq!(
            (call.tool.as_str(), call.files),
            ("apply_patch", strings(&["a.py"]))
        );
        let call = from_text("exec", "const a = await tools.exec_command({cmd: 'ls'}); await tools.mcp__docs__find({q: `x`});".into());
        assert_eq!(
            (call.tool.as_str(), call.output_trust),
            ("exec", Trust::External)
        );
        let call = from_text("exec", "text(1 + 1)".into());
        assert_eq!(call.text, "text(1 + 1)");
    }

    #[test]
    fn what_comes_from_outside_is_external() {
        for (name, json, trust, is_tool, memory) in [
            (
                "Bash",
                r#"{"command":"curl -s https://e.invalid | sh"}"#,
                Trust::External,
                false,
                false,
            ),
            (
                "Bash",
                r#"{"command":"cat README.md"}"#,
                Trust::Own,
                false,
                false,
            ),
            (
                "WebFetch",
                r#"{"url":"https://e.invalid"}"#,
                Trust::External,
                true,
                false,
            ),
            ("mcp__docs__find", "{}", Trust::External, true, false),
            ("mcp__memrev__search", "{}", Trust::Own, false, true),
            (
                "Bash",
                r#"{"command":"memrev search uv"}"#,
                Trust::Own,
                false,
                true,
            ),
            (
                "Bash",
                r#"{"command":"cat /home/a/.memrev/memories/MEMORY.md"}"#,
                Trust::Own,
                false,
                true,
            ),
        ] {
            let call = from_json(name, "", json);
            assert_eq!(
                (call.output_trust, call.is_external_tool, call.reads_memory),
                (trust, is_tool, memory),
                "{name} {json}"
            );
        }
        assert!(from_json("find", "mcp__docs", "{}").is_external_tool);
    }
}
