//! `memrev attempts`: results that stand beside memory, why, and what can be
//! done about them.

use serde::Serialize;

use crate::cli::args::AttemptsArgs;
use crate::cli::commands::diff::{FileJson, file_json, print_files};
use crate::cli::context::{Context, store_failure, versions};
use crate::cli::report::{Class, Failure, Printer, counted};
use crate::config::Config;
use crate::consolidate::OutputChange;
use crate::consolidate::attempts::{self, ATTEMPT_DAYS_MAX, ATTEMPTS_MAX, SeenAttempt};
use crate::domain::version::MemoryVersion;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::message::{AttemptState, ChangeKind, Input};
use crate::text::redact::redact_str;

#[derive(Serialize)]
pub(crate) struct AttemptJson {
    version: &'static str,
    run: String,
    at: String,
    state: &'static str,
    worker: String,
    tokens: u64,
    reasons: Vec<String>,
    inputs: Vec<InputJson>,
    outputs: Vec<OutputJson>,
    acceptable: bool,
    /// Why it cannot be accepted.
    obstacle: Option<String>,
    superseded_by: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct InputJson {
    change: char,
    path: String,
}

#[derive(Serialize)]
pub(crate) struct OutputJson {
    path: String,
    lines_added: usize,
    lines_removed: usize,
}

#[derive(Serialize)]
struct ShownJson {
    #[serde(flatten)]
    attempt: AttemptJson,
    /// The worker's own words.
    report: String,
    /// Files that cannot be merged with main.
    conflicts: Vec<String>,
    files: Vec<FileJson>,
}

#[derive(Serialize)]
struct ExpiredJson {
    expired: Vec<String>,
    written: bool,
}

/// An attempt, and what it would change.
struct Listed {
    version: MemoryVersion,
    attempt: SeenAttempt,
    outputs: Vec<OutputChange>,
}

pub(crate) fn run(context: &Context, args: &AttemptsArgs) -> Result<(), Failure> {
    if args.expire {
        return expire(context, args);
    }
    let config = context.config()?;
    match &args.run {
        Some(run) => show(context, &config, run, args.json),
        None => list(context, &config, args.json),
    }
}

fn list(context: &Context, config: &Config, as_json: bool) -> Result<(), Failure> {
    let mut all = Vec::new();
    for version in versions(config) {
        all.extend(listed(context, version)?);
    }
    all.sort_by(|a, b| (b.attempt.at, &b.attempt.run).cmp(&(a.attempt.at, &a.attempt.run)));
    if as_json {
        let all: Vec<AttemptJson> = all.iter().map(json).collect();
        return context.printer.json(&all);
    }
    if all.is_empty() {
        context.printer.say("no attempt is kept beside memory");
    }
    for one in &all {
        print(&context.printer, one);
    }
    Ok(())
}

/// The attempts of one version; none when there is no memory.
fn listed(context: &Context, version: MemoryVersion) -> Result<Vec<Listed>, Failure> {
    let Some(store) = open(context, version)? else {
        return Ok(Vec::new());
    };
    let look = || -> Result<Vec<Listed>, StoreError> {
        let mut listed = Vec::new();
        for attempt in attempts::list(&store, store.head()?)? {
            listed.push(Listed {
                version,
                outputs: attempts::outputs(&store, version, &attempt)?,
                attempt,
            });
        }
        Ok(listed)
    };
    look().map_err(|error| store_failure(&error))
}

fn open(context: &Context, version: MemoryVersion) -> Result<Option<Store>, Failure> {
    Store::open_if_there(context.store_paths(version)).map_err(|error| store_failure(&error))
}

fn show(context: &Context, config: &Config, run: &str, as_json: bool) -> Result<(), Failure> {
    for version in versions(config) {
        let all = listed(context, version)?;
        let attempts: Vec<SeenAttempt> = all.iter().map(|it| it.attempt.clone()).collect();
        let Some(found) = attempts::find(&attempts, run) else {
            continue;
        };
        let one = all.iter().find(|it| it.attempt.run == found.run);
        if let (Some(one), Some(store)) = (one, open(context, version)?) {
            return show_one(context, &store, one, as_json);
        }
    }
    Err(unknown(run))
}

/// No attempt is called so.
pub(crate) fn unknown(run: &str) -> Failure {
    Failure::new(Class::Refused, format!("no attempt is called `{run}`"))
        .hint("`memrev attempts` lists them; nothing was written")
}

fn show_one(context: &Context, store: &Store, one: &Listed, as_json: bool) -> Result<(), Failure> {
    let head = store.head().map_err(|error| store_failure(&error))?;
    let against = attempts::against_main(store, &one.attempt, head);
    let against = against.map_err(|error| store_failure(&error))?;
    if as_json {
        return context.printer.json(&ShownJson {
            attempt: json(one),
            report: one.attempt.words.to_string(),
            conflicts: against.conflicts.iter().map(ToString::to_string).collect(),
            files: against.files.iter().map(file_json).collect(),
        });
    }
    let printer = &context.printer;
    print(printer, one);
    for input in &one.attempt.inputs {
        printer.line(format!("  input: {} {}", input.change.letter(), input.path));
    }
    if !one.attempt.words.is_empty() {
        printer.line("  the worker's own words:");
        for line in one.attempt.words.as_str().lines() {
            printer.line(format!("    {line}"));
        }
    }
    for path in &against.conflicts {
        printer.warn(format!(
            "you changed the same lines of {path} since; the diff is from where it began"
        ));
    }
    printer.line("");
    print_files(printer, &against.files);
    Ok(())
}

fn print(printer: &Printer, one: &Listed) {
    let attempt = &one.attempt;
    let inputs = counted(attempt.inputs.len(), "input");
    printer.line(format!(
        "{}  {}  {}  {}  {}, {inputs}",
        attempt.run,
        attempt.at,
        one.version,
        attempt.state.label(),
        redact_str(&attempt.worker),
    ));
    for reason in reasons(attempt) {
        printer.line(format!("  {reason}"));
    }
    if !one.outputs.is_empty() {
        printer.line(format!("  would change: {}", in_words(&one.outputs)));
    }
    if let Some(run) = &attempt.superseded_by {
        printer.line(format!("  superseded by {run}, which folds in the same"));
    }
    printer.line(format!("  {}", next_step(attempt)));
}

/// `MEMORY.md +14 -3, memory_summary.md +2 -1`.
pub(crate) fn in_words(outputs: &[OutputChange]) -> String {
    let words = outputs.iter().map(|output| {
        let (added, removed) = (output.lines_added, output.lines_removed);
        format!("{} +{added} -{removed}", output.path)
    });
    words.collect::<Vec<_>>().join(", ")
}

/// What spoke against it, a line each.
pub(crate) fn reasons(attempt: &SeenAttempt) -> Vec<String> {
    let faults = attempt.record.iter().flat_map(|record| &record.faults);
    let words = faults.map(|(code, words)| format!("[{code}] {words}"));
    words
        .map(|words| redact_str(&words).into_string())
        .collect()
}

/// What a person can do about it.
pub(crate) fn next_step(attempt: &SeenAttempt) -> String {
    let run = &attempt.run;
    match (&attempt.obstacle, attempt.state) {
        (Some(obstacle), AttemptState::Rejected) => {
            format!("{obstacle}; passes in the background do not try the same inputs again")
        }
        (Some(obstacle), _) => format!("cannot be accepted: {obstacle}"),
        (None, AttemptState::Waiting) => {
            format!("waits for your word: `memrev accept {run}` or `memrev reject {run}`")
        }
        (None, _) => format!("`memrev accept {run}` looks at it again and takes it if it may"),
    }
}

fn json(one: &Listed) -> AttemptJson {
    let attempt = &one.attempt;
    AttemptJson {
        version: one.version.label(),
        run: attempt.run.to_string(),
        at: attempt.at.to_string(),
        state: attempt.state.label(),
        worker: redact_str(&attempt.worker).into_string(),
        tokens: attempt.tokens,
        reasons: reasons(attempt),
        inputs: inputs_json(&attempt.inputs),
        outputs: outputs_json(&one.outputs),
        acceptable: attempt.obstacle.is_none(),
        obstacle: attempt.obstacle.as_ref().map(ToString::to_string),
        superseded_by: attempt.superseded_by.as_ref().map(ToString::to_string),
    }
}

pub(crate) fn inputs_json(inputs: &[Input]) -> Vec<InputJson> {
    let each = inputs.iter().map(|input| InputJson {
        change: input.change.letter(),
        path: input.path.to_string(),
    });
    each.collect()
}

pub(crate) fn outputs_json(outputs: &[OutputChange]) -> Vec<OutputJson> {
    (outputs.iter())
        .filter(|output| output.kind != ChangeKind::Deleted || 0 < output.lines_removed)
        .map(|output| OutputJson {
            path: output.path.to_string(),
            lines_added: output.lines_added,
            lines_removed: output.lines_removed,
        })
        .collect()
}

fn expire(context: &Context, args: &AttemptsArgs) -> Result<(), Failure> {
    let config = context.config_when_on()?;
    let mut runs = Vec::new();
    for version in versions(&config) {
        let Some(store) = open(context, version)? else {
            continue;
        };
        runs.extend(expire_in(context, &store, args.dry_run)?);
    }
    if args.json {
        return context.printer.json(&ExpiredJson {
            expired: runs,
            written: !args.dry_run,
        });
    }
    let verb = if args.dry_run {
        "would let go"
    } else {
        "let go"
    };
    for run in &runs {
        context.printer.line(format!("{verb} {run}"));
    }
    if runs.is_empty() {
        context.printer.say(format!(
            "nothing to let go: attempts are kept for {ATTEMPT_DAYS_MAX} days, at most {ATTEMPTS_MAX} of them"
        ));
    }
    Ok(())
}

fn expire_in(context: &Context, store: &Store, is_dry_run: bool) -> Result<Vec<String>, Failure> {
    let now = context.now();
    let runs = if is_dry_run {
        let look = || -> Result<Vec<String>, StoreError> {
            let all = attempts::list(store, store.head()?)?;
            let gone = attempts::expired(&all, now).into_iter();
            Ok(gone.map(|it| it.run.to_string()).collect())
        };
        look()
    } else {
        let act = || -> Result<Vec<String>, StoreError> {
            let lock = store.lock(LOCK_WAIT)?;
            store.recover(&lock)?;
            let gone = attempts::expire(store, &lock, store.head()?, now)?;
            Ok(gone.iter().map(ToString::to_string).collect())
        };
        act()
    };
    runs.map_err(|error| store_failure(&error))
}

/// Longest wait for the lock of a memory folder, which is held for moments.
const LOCK_WAIT: std::time::Duration = std::time::Duration::from_secs(10);
