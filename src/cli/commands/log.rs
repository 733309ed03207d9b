//! `memrev log`: the commits of a memory, newest first.

use serde::Serialize;

use crate::cli::args::LogArgs;
use crate::cli::commands::run::moment;
use crate::cli::context::{Context, store_failure};
use crate::cli::report::{Failure, columns, counted};
use crate::history::log::{self, Filter};
use crate::history::lost::{self, Lost};
use crate::store::Store;
use crate::store::history::Commit;
use crate::store::message::CommitKind;
use crate::text::redact;
use crate::text::terminal;

/// One commit, without what it changed.
#[derive(Serialize)]
pub(crate) struct CommitJson {
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
    /// Only with `--lost`.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<Vec<LostJson>>,
}

#[derive(Serialize)]
struct LostJson {
    path: String,
    line_number: u32,
    text: String,
}

#[derive(Serialize)]
struct InputJson {
    change: char,
    path: String,
    blob: String,
    thread_id: Option<String>,
}

pub(crate) fn run(context: &Context, args: &LogArgs) -> Result<(), Failure> {
    let config = context.config()?;
    let store = context.store(config.memories.version)?;
    let head = store.head().map_err(|error| store_failure(&error))?;
    let filter = Filter {
        kind: args.kind.as_deref().and_then(CommitKind::parse),
        since: (args.since.as_deref())
            .map(|since| moment(since, context.now()))
            .transpose()?,
        thread: args.thread.clone(),
        note: args.note.clone(),
        file: args.file.clone(),
        worker: args.worker.clone(),
        count_max: args.max_count,
    };
    let commits = log::commits(&store, head, &filter).map_err(|error| store_failure(&error))?;
    if args.json || args.lost {
        return print_each(context, &store, &commits, args);
    }
    let rows: Vec<Vec<String>> = commits.iter().map(as_row).collect();
    context.printer.raw(&columns(&rows));
    if commits.is_empty() {
        context.printer.say("no commit is like that");
    }
    Ok(())
}

/// One commit after the other, each with what it took out.
fn print_each(
    context: &Context,
    store: &Store,
    commits: &[Commit],
    args: &LogArgs,
) -> Result<(), Failure> {
    let mut all = Vec::new();
    let mut has_lost = false;
    for commit in commits {
        let lost = (args.lost)
            .then(|| lost::by(store, commit))
            .transpose()
            .map_err(|error| store_failure(&error))?;
        if args.json {
            all.push(as_json(commit, lost.as_deref()));
            continue;
        }
        let lost = lost.unwrap_or_default();
        if lost.is_empty() {
            continue;
        }
        has_lost = true;
        context.printer.raw(&columns(&[as_row(commit)]));
        for lost in &lost {
            let text = terminal::safe_line(redact::redact(&lost.text).as_str());
            let place = format!("{}:{}", lost.path, lost.line_number);
            context.printer.line(format!("    {place}: {text}"));
        }
    }
    if args.json {
        return context.printer.json(&all);
    }
    if !has_lost {
        let commits = counted(commits.len(), "commit");
        (context.printer).say(format!(
            "nothing was lost: no entry left memory in {commits}"
        ));
    }
    Ok(())
}

fn lost_json(lost: &Lost) -> LostJson {
    LostJson {
        path: lost.path.to_string(),
        line_number: lost.line_number,
        text: redact::redact(&lost.text).into_string(),
    }
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

pub(crate) fn as_json(commit: &Commit, lost: Option<&[Lost]>) -> CommitJson {
    let trailers = &commit.trailers;
    let inputs = trailers.inputs.iter().map(|input| InputJson {
        change: input.change.letter(),
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
        lost: lost.map(|lost| lost.iter().map(lost_json).collect()),
    }
}
