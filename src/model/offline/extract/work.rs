//! What the agent did: commands with their results, files it wrote, errors.
//!
//! Only tool items of this machine are looked at. What came from outside (web,
//! MCP, fetched files) is never copied, and a command that stands in some
//! output is text, not something that was done.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::domain::item::{Item, ItemKind, Place, Provenance, Trust};
use crate::domain::text::Redacted;
use crate::model::offline::extract::command_line::Shape;
use crate::model::offline::extract::errors::error_line;
use crate::model::offline::extract::related;
use crate::model::offline::extract::words::{begin_of, code_line, one_line};

/// A command is shown up to this many bytes.
const COMMAND_BYTES_MAX: usize = 160;

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
        line: code_line(text, COMMAND_BYTES_MAX),
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

fn relative(path: &str, cwd: Option<&str>) -> String {
    let path = one_line(path);
    let below = cwd
        .map(|cwd| cwd.trim_end_matches(['/', '\\']))
        .filter(|cwd| !cwd.is_empty());
    let inside = below
        .and_then(|cwd| path.strip_prefix(cwd))
        .and_then(|rest| rest.strip_prefix(['/', '\\']));
    inside.map(str::to_owned).unwrap_or(path)
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
    /// Nothing that can be told to belong to it worked in this session.
    None,
    /// The same command line worked later, after what was done in between.
    Again {
        then: &'a Command,
        between: Vec<&'a Command>,
    },
    /// Another command line of the same kind, or about the same thing, worked
    /// later.
    Instead(&'a Command),
}

/// Failures of a task's commands, in order, repeated ones counted once.
/// `later` are the session's commands from the task's first on.
pub(crate) fn failures<'a>(task: &'a [Command], later: &'a [Command]) -> Vec<Failure<'a>> {
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut failures: Vec<Failure<'a>> = Vec::new();
    let worked = Worked::of(later);
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
        failures.push(Failure {
            command,
            times: 1,
            remedy: worked.remedy(command),
        });
    }
    failures
}

/// Commands that did something and worked, in order.
struct Worked<'a> {
    acts: Vec<&'a Command>,
    /// Positions in `acts`, by key and by command line.
    by_key: BTreeMap<&'a str, Vec<usize>>,
    by_line: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Worked<'a> {
    fn of(commands: &'a [Command]) -> Self {
        let is_act = |command: &&Command| command.succeeded == Some(true) && !command.only_looks;
        let acts: Vec<&Command> = commands.iter().filter(is_act).collect();
        let mut by_key: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut by_line: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, act) in acts.iter().enumerate() {
            by_key.entry(&act.key).or_default().push(at);
            by_line.entry(&act.line).or_default().push(at);
        }
        Self {
            acts,
            by_key,
            by_line,
        }
    }

    /// The nearest command behind a failed one that is the same attempt, else
    /// the nearest about the same thing.
    fn remedy(&self, failed: &Command) -> Remedy<'a> {
        let from = (self.acts).partition_point(|act| act.item_index <= failed.item_index);
        let next = |positions: Option<&Vec<usize>>| {
            let positions = positions?;
            let at = positions.partition_point(|at| *at < from);
            positions.get(at).copied()
        };
        let same = next(self.by_line.get(failed.line.as_str()));
        let alike = next(self.by_key.get(failed.key.as_str()));
        let about = || {
            let end = self.acts.len().min(from + ABOUT_THE_SAME_WITHIN);
            let words = related::Words::of(&failed.line);
            (from..end).find(|at| words.are_about(&related::Words::of(&self.acts[*at].line)))
        };
        match same.into_iter().chain(alike).min().or_else(about) {
            None => Remedy::None,
            Some(at) if Some(at) == same => Remedy::Again {
                then: self.acts[at],
                between: self.between(from, at),
            },
            Some(at) => Remedy::Instead(self.acts[at]),
        }
    }

    /// What was done between a failure and the run that worked, when it is so
    /// little that it may be the reason.
    fn between(&self, from: usize, to: usize) -> Vec<&'a Command> {
        let acts = &self.acts[from..to];
        let helps = acts.len() <= BETWEEN_MAX && acts.iter().all(|act| !act.is_check);
        if helps { acts.to_vec() } else { Vec::new() }
    }
}

/// A command about the same thing is looked for among so many behind a failure.
const ABOUT_THE_SAME_WITHIN: usize = 12;

/// More commands than this between two runs do not explain anything.
const BETWEEN_MAX: usize = 2;

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
