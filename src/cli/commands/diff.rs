//! `memrev diff`: how memory differs between two commits.

use serde::Serialize;

use crate::cli::args::DiffArgs;
use crate::cli::context::{Context, revision_failure, store_failure};
use crate::cli::report::{Failure, Printer};
use crate::history;
use crate::history::log::is_end_of;
use crate::store::diff::FileDiff;
use crate::text::redact;

/// One file of a diff.
#[derive(Serialize)]
pub(crate) struct FileJson {
    change: char,
    path: String,
    lines_added: usize,
    lines_removed: usize,
    /// As a unified diff.
    text: String,
}

pub(crate) fn run(context: &Context, args: &DiffArgs) -> Result<(), Failure> {
    let config = context.config()?;
    let store = context.store(config.memories.version)?;
    let (old, new) = args
        .commits
        .split_once("..")
        .unwrap_or((&args.commits, "HEAD"));
    let resolve = |name: &str| {
        let name = if name.is_empty() { "HEAD" } else { name };
        history::resolve(&store, name).map_err(|error| revision_failure(&error))
    };
    let (old, new) = (resolve(old)?, resolve(new)?);
    let mut files = (store.diff(Some(old), new)).map_err(|error| store_failure(&error))?;
    if !args.files.is_empty() {
        let is_wanted = |file: &FileDiff| {
            (args.files.iter()).any(|wanted| is_end_of(file.path.as_str(), wanted))
        };
        files.retain(is_wanted);
    }
    if args.json {
        let files: Vec<FileJson> = files.iter().map(file_json).collect();
        return context.printer.json(&files);
    }
    print_files(&context.printer, &files);
    Ok(())
}

pub(crate) fn file_json(file: &FileDiff) -> FileJson {
    FileJson {
        change: file.kind.letter(),
        path: file.path.to_string(),
        lines_added: file.lines_added,
        lines_removed: file.lines_removed,
        text: redact::redact_str(&file.text).into_string(),
    }
}

/// The diffs, in colour where the output is a terminal.
pub(crate) fn print_files(printer: &Printer, files: &[FileDiff]) {
    for file in files {
        let text = redact::redact_str(&file.text);
        for line in text.as_str().lines() {
            printer.diff_line(line);
        }
    }
}
