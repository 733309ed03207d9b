//! `memrev show`: one commit, whole.

use serde::Serialize;

use crate::cli::args::ShowArgs;
use crate::cli::commands::diff::{FileJson, file_json, print_files};
use crate::cli::commands::log::{CommitJson, as_json};
use crate::cli::context::{Context, revision_failure, store_failure};
use crate::cli::report::Failure;
use crate::history;
use crate::store::history::Commit;
use crate::text::redact;

#[derive(Serialize)]
struct ShownJson {
    #[serde(flatten)]
    commit: CommitJson,
    body: String,
    files: Vec<FileJson>,
}

pub(crate) fn run(context: &Context, args: &ShowArgs) -> Result<(), Failure> {
    let config = context.config()?;
    let store = context.store(config.memories.version)?;
    let id = history::resolve(&store, &args.commit).map_err(|error| revision_failure(&error))?;
    let commit = store.commit(id).map_err(|error| store_failure(&error))?;
    let files = store
        .diff(commit.parents.first().copied(), id)
        .map_err(|error| store_failure(&error))?;
    if args.json {
        return context.printer.json(&ShownJson {
            body: redact::redact(&commit.body).into_string(),
            commit: as_json(&commit, None),
            files: files.iter().map(file_json).collect(),
        });
    }
    print_commit(context, &commit);
    print_files(&context.printer, &files);
    Ok(())
}

fn print_commit(context: &Context, commit: &Commit) {
    let printer = &context.printer;
    printer.line(format!("commit {}", commit.id));
    printer.line(format!(
        "Author: {} <{}>",
        commit.author.name, commit.author.email
    ));
    printer.line(format!("Date:   {}", commit.at));
    let trailers = &commit.trailers;
    if let Some(worker) = &trailers.worker {
        printer.line(format!("Worker: {worker}"));
    }
    printer.line("");
    printer.line(format!("    {}", redact::redact(&commit.subject)));
    let body = redact::redact(&commit.body);
    if !body.as_str().is_empty() {
        printer.line("");
    }
    for line in body.as_str().lines() {
        printer.line(format!("    {line}").trim_end());
    }
    printer.line("");
    for input in &trailers.inputs {
        let thread = input.thread_id.as_ref();
        let thread = thread.map_or_else(String::new, |id| format!("  session {id}"));
        printer.line(format!(
            "input: {} {}{thread}",
            input.change.letter(),
            input.path
        ));
    }
}
