//! What the agent did: commands with their results, files it wrote, errors.
//!
//! Only tool items of this machine are looked at. What came from outside (web,
//! MCP, fetched files) is never copied, and a command that stands in some
//! output is text, not something that was done.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::domain::item::{Item, ItemKind, Place, Provenance, Trust};
use crate::domain::text::Redacted;
use crate::model::offline::extract::words::{begin_of, end_of, one_line};

/// A command is shown up to this many bytes.
const COMMAND_BYTES_MAX: usize = 160;

/// An error line is shown up to this many bytes.
const ERROR_BYTES_MAX: usize = 240;

/// Output is searched for an error line in this many bytes at either end.
const OUTPUT_BYTES_AT_ENDS: usize = 16_000;

/// A command and what came of it.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    pub(crate) item_index: usize,
    pub(crate) place: Place,
    /// On one line, shortened.
    pub(crate) line: String,
    /// Program and subcommand: what makes two commands the same attempt.
    pub(crate) key: String,
    /// Builds, tests or checks something.
    pub(crate) is_check: bool,
    /// Only looks: listing, printing, searching.
    pub(crate) only_looks: bool,
    pub(crate) succeeded: Option<bool>,
    /// Where the result stands, when there is one.
    pub(crate) result_place: Place,
    /// The line of its output that says what went wrong.
    pub(crate) error: Option<String>,
}

/// Files that were written, with the places of the first and last write.
pub(crate) type Files = BTreeMap<String, (Place, Place)>;

/// Everything that was done in a session.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// In source order.
    pub(crate) commands: Vec<Command>,
    /// By item index.
    writes: BTreeMap<usize, Vec<(String, Place)>>,
}

impl Work {
    pub(crate) fn commands_in(&self, items: &Range<usize>) -> &[Command] {
        let begin = self
            .commands
            .partition_point(|command| command.item_index < items.start);
        let end = self
            .commands
            .partition_point(|command| command.item_index < items.end);
        &self.commands[begin..end]
    }

    pub(crate) fn files_in(&self, items: &Range<usize>) -> Files {
        let mut files = Files::new();
        for (path, place) in self
            .writes
            .range(items.clone())
            .flat_map(|(_, paths)| paths)
        {
            let places = files.entry(path.clone()).or_insert((*place, *place));
            places.1 = *place;
        }
        files
    }

    pub(crate) fn has_files(&self) -> bool {
        !self.writes.is_empty()
    }
}

/// Gathers what was done. One pass over the items.
pub(crate) fn gather(items: &[Item<Redacted>], cwd: Option<&str>) -> Work {
    let mut work = Work::default();
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    for (item_index, item) in items.iter().enumerate() {
        if item.provenance != Provenance::Tool || item.trust == Trust::External {
            continue;
        }
        match &item.kind {
            ItemKind::Message => {}
            ItemKind::ToolCall {
                call_id,
                tool,
                files,
            } => {
                let paths = files.iter().map(|path| relative(path.as_str(), cwd));
                let paths: Vec<_> = paths.map(|path| (path, item.place)).collect();
                if !paths.is_empty() {
                    work.writes.insert(item_index, paths);
                }
                if let Some(command) = command(item_index, item, tool) {
                    open.insert(call_id, work.commands.len());
                    work.commands.push(command);
                }
            }
            ItemKind::ToolOutput { call_id, succeeded } => {
                let command =
                    (open.remove(call_id.as_str())).and_then(|index| work.commands.get_mut(index));
                if let Some(command) = command {
                    end(command, item, *succeeded);
                }
            }
        }
    }
    work
}

fn command(item_index: usize, item: &Item<Redacted>, tool: &str) -> Option<Command> {
    let text = item.text.as_str().trim();
    let is_script = tool == "exec" && (text.contains("tools.") || text.contains("await "));
    let is_data = text.starts_with("*** Begin Patch") || text.starts_with(['{', '[']);
    if !SHELLS.contains(&tool) || is_script || is_data || text.is_empty() {
        return None;
    }
    let first_lines = begin_of(text, 4 * COMMAND_BYTES_MAX);
    let shape = Shape::of(first_lines);
    Some(Command {
        item_index,
        place: item.place,
        line: shown(text, COMMAND_BYTES_MAX),
        key: shape.key,
        is_check: shape.is_check,
        only_looks: shape.only_looks,
        succeeded: None,
        result_place: item.place,
        error: None,
    })
}

/// Tools whose call is a command line.
const SHELLS: &[&str] = &[
    "Bash",
    "PowerShell",
    "bash",
    "container.exec",
    "exec",
    "exec_command",
    "local_shell",
    "local_shell_call",
    "shell",
    "shell_command",
    "unified_exec",
];

fn end(command: &mut Command, output: &Item<Redacted>, succeeded: Option<bool>) {
    command.result_place = output.place;
    command.succeeded = succeeded;
    if command.only_looks || (succeeded == Some(true) && !command.line.contains('|')) {
        return;
    }
    let (error, is_certain) = error_line(output.text.as_str());
    if succeeded == Some(true) && is_certain {
        // The status is that of the last part of a pipe, not of the command.
        command.succeeded = None;
    }
    if succeeded == Some(false) {
        command.error = error;
    }
}

/// The first line of a command, shortened, on one line.
fn shown(text: &str, bytes_max: usize) -> String {
    let first = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("");
    let line = one_line(first);
    let has_more = first.trim().len() < text.len();
    if line.len() <= bytes_max && !has_more {
        return line.replace('`', "'");
    }
    let kept = begin_of(&line, bytes_max - '…'.len_utf8());
    format!("{kept}…").replace('`', "'")
}

fn relative(path: &str, cwd: Option<&str>) -> String {
    let path = one_line(path).replace('`', "'");
    let below = cwd
        .map(|cwd| cwd.trim_end_matches(['/', '\\']))
        .filter(|cwd| !cwd.is_empty());
    let inside = below
        .and_then(|cwd| path.strip_prefix(cwd))
        .and_then(|rest| rest.strip_prefix(['/', '\\']));
    inside.map(str::to_owned).unwrap_or(path)
}

/// What kind of command a command line is.
struct Shape {
    key: String,
    is_check: bool,
    only_looks: bool,
}

impl Shape {
    /// Looks at each part of a chain; the first that does something counts.
    fn of(line: &str) -> Self {
        let mut looking = None;
        for part in line.split(['\n', ';', '|', '&']) {
            let words: Vec<&str> = part.split_whitespace().collect();
            let Some(words) = skip_prefixes(&words) else {
                continue;
            };
            let program = program_name(words[0]);
            let rest = &words[1..];
            let subcommand = subcommand(program, rest);
            if only_looks(program, subcommand, rest) {
                looking.get_or_insert_with(|| program.to_owned());
                continue;
            }
            let key = match subcommand {
                Some(subcommand) => format!("{program} {subcommand}"),
                None => program.to_owned(),
            };
            let named = |word: &str| is_check_word(&word.to_ascii_lowercase());
            let is_check = named(program) || rest.iter().take(4).any(|word| named(word));
            return Self {
                key,
                is_check,
                only_looks: false,
            };
        }
        Self {
            key: looking.unwrap_or_default(),
            is_check: false,
            only_looks: true,
        }
    }
}

/// Drops variables set for the command and programs that only run others.
fn skip_prefixes<'a, 'b>(words: &'b [&'a str]) -> Option<&'b [&'a str]> {
    let mut words = words;
    while let Some(first) = words.first() {
        let sets_variable = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        });
        let is_number = first
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b's');
        let is_redirect = first.starts_with(['>', '<', '2', '(', '{', ')', '}']) && first.len() < 3;
        if sets_variable || is_number || is_redirect || RUNNERS.contains(first) {
            words = &words[1..];
        } else {
            return Some(words);
        }
    }
    None
}

const RUNNERS: &[&str] = &[
    "sudo", "time", "timeout", "env", "nohup", "exec", "command", "xvfb-run", "nice", "then", "do",
    "if", "!",
];

fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let name = name.trim_matches(['"', '\'', '(', ')']);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// The first word that is no option; of Python with `-m`, the module.
fn subcommand<'a>(program: &str, rest: &[&'a str]) -> Option<&'a str> {
    if program.starts_with("python")
        && let Some(at) = rest.iter().position(|word| *word == "-m")
    {
        return rest.get(at + 1).copied();
    }
    let word = rest.iter().find(|word| !word.starts_with(['-', '+']))?;
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':');
    (word.len() <= 24 && word.chars().all(is_plain)).then_some(*word)
}

fn only_looks(program: &str, subcommand: Option<&str>, rest: &[&str]) -> bool {
    let edits_in_place = program == "sed" && rest.iter().any(|word| word.starts_with("-i"));
    let asks_only = rest
        .iter()
        .any(|word| matches!(*word, "--version" | "--help" | "-V"));
    let git_looks =
        program == "git" && subcommand.is_some_and(|subcommand| GIT_LOOKS.contains(&subcommand));
    (LOOKS.contains(&program) && !edits_in_place) || asks_only || git_looks
}

const LOOKS: &[&str] = &[
    "[",
    "[[",
    "ag",
    "awk",
    "basename",
    "bat",
    "cat",
    "cd",
    "column",
    "cut",
    "date",
    "df",
    "diff",
    "dir",
    "dirname",
    "du",
    "echo",
    "env",
    "export",
    "fd",
    "file",
    "find",
    "fgrep",
    "egrep",
    "for",
    "grep",
    "head",
    "hostname",
    "id",
    "jq",
    "less",
    "ls",
    "man",
    "more",
    "nl",
    "popd",
    "printenv",
    "printf",
    "ps",
    "pushd",
    "pwd",
    "readlink",
    "realpath",
    "rg",
    "sed",
    "set",
    "sleep",
    "sort",
    "source",
    "stat",
    "tail",
    "test",
    "tr",
    "tree",
    "true",
    "type",
    "uname",
    "uniq",
    "wait",
    "wc",
    "whereis",
    "which",
    "while",
    "whoami",
    "xargs",
    "xxd",
    "Get-ChildItem",
    "Get-Content",
    "Get-Location",
    "Select-String",
    "done",
    "fi",
    "else",
];

const GIT_LOOKS: &[&str] = &[
    "blame",
    "branch",
    "cat-file",
    "config",
    "describe",
    "diff",
    "fetch",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "reflog",
    "remote",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "stash",
    "status",
    "tag",
];

/// Words in the names of programs and targets that build, test or check. They
/// are vocabulary of tools, not of a human language.
fn is_check_word(word: &str) -> bool {
    word.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|part| {
            CHECK_WORDS.contains(&part) || part.ends_with("test") || part.ends_with("tests")
        })
}

const CHECK_WORDS: &[&str] = &[
    "bazel",
    "bench",
    "build",
    "check",
    "ci",
    "clippy",
    "cmake",
    "compile",
    "eslint",
    "flake8",
    "fmt",
    "gradle",
    "gradlew",
    "jest",
    "lint",
    "make",
    "msbuild",
    "mvn",
    "mvnw",
    "mypy",
    "ninja",
    "pyright",
    "rspec",
    "ruff",
    "shellcheck",
    "spec",
    "tox",
    "tsc",
    "typecheck",
    "unittest",
    "validate",
    "verify",
    "vet",
    "vitest",
];

/// The line of an output that says what went wrong, and whether it says so
/// beyond doubt.
fn error_line(output: &str) -> (Option<String>, bool) {
    let (begin, end) = (
        begin_of(output, OUTPUT_BYTES_AT_ENDS),
        end_of(output, OUTPUT_BYTES_AT_ENDS),
    );
    let both = [begin, end];
    let parts = if output.len() <= OUTPUT_BYTES_AT_ENDS {
        &both[..1]
    } else {
        &both[..]
    };
    let mut best: Option<(u8, &str)> = None;
    let mut last = None;
    let mut in_traceback = false;
    for line in parts.iter().flat_map(|part| part.lines()) {
        let line = line.trim();
        if line.is_empty() || is_wrapping(line) {
            continue;
        }
        last = Some(line);
        in_traceback |= line.starts_with("Traceback (most recent call last)");
        let score = error_score(line);
        // Python names the error at the end of a traceback, others at once.
        let replaces = best.is_none_or(|(top, _)| top < score || (in_traceback && top == score));
        if 0 < score && replaces {
            best = Some((score, line));
        }
    }
    let chosen = best.map(|(_, line)| line).or(last);
    let is_certain = best.is_some_and(|(score, _)| 2 < score);
    (chosen.map(|line| shown(line, ERROR_BYTES_MAX)), is_certain)
}

/// Lines that a harness puts around an output.
fn is_wrapping(line: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "Exit code",
        "Process exited",
        "Wall time",
        "Chunk ID",
        "Total output lines",
        "Output:",
        "Original token count",
        "Script completed",
        "Script failed",
        "Command: ",
    ];
    BEGINNINGS
        .iter()
        .any(|beginning| line.starts_with(beginning))
}

fn error_score(line: &str) -> u8 {
    let lower = begin_of(line, 400).to_ascii_lowercase();
    let text = lower.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let first = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .next()
        .unwrap_or("");
    let names_error = first.ends_with("error") || first.ends_with("exception");
    // "0 errors", "no error", "0 failed" say the opposite.
    let denies = [
        "0 error",
        "no error",
        "0 fail",
        "without error",
        "error: 0",
        "errors: 0",
    ];
    if denies.iter().any(|denial| lower.contains(denial)) {
        return 0;
    }
    if names_error
        || ["fatal", "panicked", "panic", "failed", "failure", "fail"].contains(&first)
        || lower.contains("panicked at")
    {
        return 3;
    }
    let hints = [
        "error:",
        "error[",
        " error ",
        "exception",
        "failed",
        "not found",
        "denied",
        "no such file",
        "cannot ",
        "undefined",
        "unresolved",
        "timed out",
        "assert",
    ];
    if hints.iter().any(|hint| lower.contains(hint)) {
        2
    } else {
        0
    }
}

/// A command that failed, and what worked in its place.
#[derive(Debug)]
pub(crate) struct Failure<'a> {
    pub(crate) command: &'a Command,
    /// How often it failed in the same way.
    pub(crate) times: usize,
    pub(crate) remedy: Remedy<'a>,
}

#[derive(Debug)]
pub(crate) enum Remedy<'a> {
    /// Nothing of the kind worked in this session.
    None,
    /// The same command line worked later.
    Again(&'a Command),
    /// Another command line of the same kind worked later.
    Instead(&'a Command),
}

/// Failures of a task's commands, in order, repeated ones counted once.
/// `later` are the session's commands from the task's first on.
pub(crate) fn failures<'a>(task: &'a [Command], later: &'a [Command]) -> Vec<Failure<'a>> {
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut failures: Vec<Failure<'a>> = Vec::new();
    // Worked commands by key, newest first, so that each failure finds the
    // next one behind it without another walk.
    let mut worked: BTreeMap<&str, Vec<&Command>> = BTreeMap::new();
    for command in later
        .iter()
        .rev()
        .filter(|command| command.succeeded == Some(true))
    {
        worked.entry(&command.key).or_default().push(command);
    }
    for command in task {
        if command.only_looks || command.succeeded != Some(false) {
            continue;
        }
        let error = command.error.as_deref().unwrap_or("");
        if let Some(index) = seen.get(&(command.key.as_str(), error)) {
            failures[*index].times += 1;
            continue;
        }
        seen.insert((&command.key, error), failures.len());
        let candidates = worked
            .get(command.key.as_str())
            .map_or(&[][..], Vec::as_slice);
        let end = candidates.partition_point(|later| command.item_index < later.item_index);
        let remedy = match candidates[..end].last() {
            None => Remedy::None,
            Some(next) if next.line == command.line => Remedy::Again(next),
            Some(next) => Remedy::Instead(next),
        };
        failures.push(Failure {
            command,
            times: 1,
            remedy,
        });
    }
    failures
}

/// Commands that built, tested or checked something and worked, each once.
pub(crate) fn proven(task: &[Command]) -> Vec<&Command> {
    let mut seen = BTreeSet::new();
    (task.iter())
        .filter(|command| command.is_check && command.succeeded == Some(true))
        .filter(|command| seen.insert(command.line.as_str()))
        .collect()
}

/// Commands that did something else and worked, each once.
pub(crate) fn done(task: &[Command]) -> Vec<&Command> {
    let mut seen = BTreeSet::new();
    (task.iter())
        .filter(|command| !command.is_check && !command.only_looks)
        .filter(|command| command.succeeded == Some(true))
        .filter(|command| seen.insert(command.line.as_str()))
        .collect()
}

#[cfg(test)]
mod tests;
