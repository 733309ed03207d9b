//! `memrev log`: the commits of a memory, newest first.

use serde::Serialize;

use crate::cli::args::LogArgs;
use crate::cli::context::{Context, store_failure};
use crate::cli::report::{Failure, columns};
use crate::store::history::Commit;
use crate::store::message::{ChangeKind, CommitKind};
use crate::text::redact;
use crate::text::terminal;

#[derive(Serialize)]
struct CommitJson {
    commit: String,
    at: String,
    author: String,
    kind: Option<&'static str>,
    run: Option<String>,
    worker: Option<String>,
    subject: String,
    reverts: Option<String>,
    inputs: Vec<InputJson>,
    tokens: Option<u64>,
}

#[derive(Serialize)]
struct InputJson {
    change: &'static str,
    path: String,
    blob: String,
    thread_id: Option<String>,
}

pub(crate) fn run(context: &Context, args: &LogArgs) -> Result<(), Failure> {
    let config = context.config()?;
    let store = context.store(config.memories.version)?;
    let head = store.head().map_err(|error| store_failure(&error))?;
    let history = store.history(head);
    let wanted = |commit: &Commit| {
        (args.kind.as_deref()).is_none_or(|kind| {
            let label = commit.trailers.kind.map(CommitKind::label);
            label == Some(kind)
        })
    };
    let mut commits = Vec::new();
    for commit in history {
        let commit = commit.map_err(|error| store_failure(&error))?;
        if args.max_count.is_some_and(|max| max <= commits.len()) {
            break;
        }
        if wanted(&commit) {
            commits.push(commit);
        }
    }
    if args.json {
        return context
            .printer
            .json(&commits.iter().map(as_json).collect::<Vec<_>>());
    }
    let rows: Vec<Vec<String>> = commits.iter().map(as_row).collect();
    context.printer.raw(&columns(&rows));
    Ok(())
}

fn as_row(commit: &Commit) -> Vec<String> {
    let by = match commit.trailers.kind {
        Some(_) if commit.author.name != "memrev" => commit.author.name.clone(),
        Some(_) => String::new(),
        None => format!("by hand: {}", commit.author.name),
    };
    vec![
        commit.id.short(),
        commit.at.to_string()[..16].replace('T', " "),
        terminal::safe_line(redact::redact(&commit.subject).as_str()),
        terminal::safe_line(&by),
    ]
}

fn as_json(commit: &Commit) -> CommitJson {
    let trailers = &commit.trailers;
    let inputs = trailers.inputs.iter().map(|input| InputJson {
        change: match input.change {
            ChangeKind::Added => "A",
            ChangeKind::Modified => "M",
            ChangeKind::Deleted => "D",
        },
        path: input.path.to_string(),
        blob: input.blob.to_string(),
        thread_id: input.thread_id.as_ref().map(ToString::to_string),
    });
    CommitJson {
        commit: commit.id.to_string(),
        at: commit.at.to_string(),
        author: commit.author.name.clone(),
        kind: trailers.kind.map(CommitKind::label),
        run: trailers.run.as_ref().map(ToString::to_string),
        worker: trailers.worker.clone(),
        subject: redact::redact(&commit.subject).into_string(),
        reverts: commit.reverts.map(|id| id.to_string()),
        inputs: inputs.collect(),
        tokens: trailers.tokens,
    }
}
