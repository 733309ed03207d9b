//! `memrev forget`: out of memory, and kept out.

use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _};

use serde::Serialize;

use crate::cli::args::ForgetArgs;
use crate::cli::context::{Context, store_failure};
use crate::cli::named;
use crate::cli::report::{Class, Failure, counted};
use crate::config::{Config, modes};
use crate::consolidate::{ConsolidateError, Policy};
use crate::domain::id::ThreadId;
use crate::domain::session::MemoryMode;
use crate::history::forget::Place;
use crate::history::forget::run::{self, FolderReport, ForgetError, Parts, Report, Wish};
use crate::ledger::Ledger;
use crate::service::survey;
use crate::sys::lock::LockError;
use crate::text::phrase::Phrase;
use crate::text::redact::redact_str;
use crate::text::truncate::middle_bytes;

/// Longest entry that is shown, in bytes.
const SHOWN_BYTES_MAX: usize = 200;

#[derive(Serialize)]
struct ForgetJson {
    written: bool,
    /// Ids of `withheld/`.
    withheld: Vec<String>,
    folders: Vec<FolderJson>,
}

#[derive(Serialize)]
struct FolderJson {
    version: &'static str,
    /// Entries that go.
    entries: Vec<PlaceJson>,
    /// Entries that stay without the forgotten source.
    trimmed: Vec<PlaceJson>,
    /// Lines of recaps, raw memories and skills that go.
    lines: Vec<PlaceJson>,
    changed: Vec<String>,
    removed: Vec<String>,
    extractions: Vec<String>,
    /// Notes and resources that say it and stay.
    untouched: Vec<String>,
    /// The person's own edits, committed first.
    edit: Option<String>,
    commit: Option<String>,
}

#[derive(Serialize)]
struct PlaceJson {
    path: String,
    line: u32,
    text: String,
}

pub(crate) fn run(context: &Context, args: &ForgetArgs) -> Result<(), Failure> {
    let config = context.config_when_on()?;
    let wish = wish(context, &config, args)?;
    let found = run::look(&context.home, &wish).map_err(|error| failure(&error))?;
    let is_empty = found.iter().all(FolderReport::is_empty);
    if let (Wish::Phrase { .. }, true) = (&wish, is_empty) {
        let untouched = found.iter().flat_map(|it| &it.plan.untouched).next();
        let failure = Failure::new(Class::Refused, "no entry of memory says that");
        return Err(match untouched {
            Some(path) => failure
                .cause(format!("`{path}` does, which a person made"))
                .hint(format!("`memrev forget --note {path}` forgets it")),
            None => failure.hint("`memrev purge` looks through the history; nothing was written"),
        });
    }
    if args.dry_run {
        let report = Report {
            folders: found,
            withheld: Vec::new(),
        };
        return told(context, args, &report, false);
    }
    if !args.yes {
        ask(context, args, &found)?;
    }
    let policy = survey::consolidate_policy(&config, true);
    let report = forget(context, &wish, &policy).map_err(|error| failure(&error))?;
    told(context, args, &report, true)
}

/// Forgets it now.
pub(super) fn forget(
    context: &Context,
    wish: &Wish,
    policy: &Policy,
) -> Result<Report, ForgetError> {
    let modes = session_modes(context);
    let mut ledger = Ledger::open(&context.home.ledger_file(), context.now())?.ledger;
    let parts = Parts {
        home: &context.home,
        ids: &context.ids,
        clock: context.clock.as_ref(),
        person: &context.person(),
        modes: &modes,
        policy,
    };
    run::run(&parts, &mut ledger, wish)
}

/// What a person said of sessions. A file that cannot be read says nothing;
/// the next pass names it.
pub(super) fn session_modes(context: &Context) -> BTreeMap<ThreadId, MemoryMode> {
    let modes = modes::load(context.home.root()).unwrap_or_default();
    let each = modes.iter().map(|(id, entry)| (id.clone(), entry.mode));
    each.collect()
}

fn wish(context: &Context, config: &Config, args: &ForgetArgs) -> Result<Wish, Failure> {
    if let Some(words) = &args.phrase {
        let phrase = Phrase::new(words).ok_or_else(|| {
            let message = "there is no word in what is to be forgotten";
            Failure::new(Class::Usage, message)
        })?;
        let words = words.clone();
        return Ok(Wish::Phrase { words, phrase });
    }
    if let Some(id) = &args.thread {
        let thread_id = named::session_or_recap(context, config, id)?;
        return Ok(Wish::Thread(thread_id));
    }
    Ok(Wish::Note(args.note.clone().unwrap_or_default()))
}

/// One entry may be forgotten on a word at the terminal.
fn ask(context: &Context, args: &ForgetArgs, found: &[FolderReport]) -> Result<(), Failure> {
    let entries: usize = found.iter().map(|it| it.plan.entries.len()).sum();
    let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !args.json {
        for folder in found {
            tell(context, folder, false);
        }
    }
    let what = format!("{} would go", counted_entries(entries));
    if entries > 1 || !is_terminal || args.json {
        return Err(Failure::new(Class::Refused, what)
            .hint("`--yes` does it, `--dry-run` only looks; nothing was written"));
    }
    context
        .printer
        .say(format!("{what}. Forget it? [y/N] (nothing is written yet)"));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).ok();
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new(Class::Refused, "not forgotten").hint("nothing was written")),
    }
}

fn counted_entries(count: usize) -> String {
    format!("{count} {}", if count == 1 { "entry" } else { "entries" })
}

fn told(
    context: &Context,
    args: &ForgetArgs,
    report: &Report,
    written: bool,
) -> Result<(), Failure> {
    if args.json {
        return context.printer.json(&ForgetJson {
            written,
            withheld: report.withheld.clone(),
            folders: report.folders.iter().map(as_json).collect(),
        });
    }
    for folder in &report.folders {
        tell(context, folder, written);
    }
    let printer = &context.printer;
    if written {
        let count = counted(report.withheld.len(), "thing");
        printer.say(format!(
            "{count} withheld from now on; `memrev log --kind forget` shows it"
        ));
        printer.hint("the history still has it: `memrev purge` takes it out of there, too");
    } else {
        printer.say("dry run: nothing was written");
    }
    Ok(())
}

fn tell(context: &Context, folder: &FolderReport, written: bool) {
    let printer = &context.printer;
    let plan = &folder.plan;
    let version = folder.version;
    let (goes, loses, changes) = if written {
        ("forgot", "took the source from", "changed")
    } else {
        ("would forget", "would take the source from", "would change")
    };
    for (verb, places) in [
        (goes, &plan.entries),
        (loses, &plan.trimmed),
        (goes, &plan.lines),
    ] {
        for place in places {
            let Place {
                path, line_number, ..
            } = place;
            printer.line(format!(
                "{version} {verb} {path}:{line_number}: {}",
                shown(place)
            ));
        }
    }
    for (path, new) in &plan.files {
        let verb = match (new, written) {
            (Some(_), _) => changes,
            (None, true) => "removed",
            (None, false) => "would remove",
        };
        printer.line(format!("{version} {verb} {path}"));
    }
    for name in &folder.recaps {
        printer.line(format!("{version} {changes} extractions/{version}/{name}"));
    }
    for path in &plan.untouched {
        printer.hint(format!(
            "`{path}` says it and stays: `memrev forget --note {path}` forgets it"
        ));
    }
    if let Some(edit) = folder.edit {
        printer.line(format!(
            "{version} committed your edits first: {}",
            edit.short()
        ));
    }
    if let Some(commit) = folder.commit {
        printer.line(format!("{version} commit {}", commit.short()));
    }
}

fn shown(place: &Place) -> String {
    let line = place.text.split_whitespace().collect::<Vec<_>>().join(" ");
    middle_bytes(redact_str(&line).as_str(), SHOWN_BYTES_MAX)
}

fn as_json(folder: &FolderReport) -> FolderJson {
    let plan = &folder.plan;
    let places = |places: &[Place]| {
        let each = places.iter().map(|place| PlaceJson {
            path: place.path.to_string(),
            line: place.line_number,
            text: redact_str(&place.text).into_string(),
        });
        each.collect()
    };
    let files = |is_gone: bool| {
        let files = plan
            .files
            .iter()
            .filter(|(_, new)| new.is_none() == is_gone);
        files.map(|(path, _)| path.to_string()).collect()
    };
    FolderJson {
        version: folder.version.label(),
        entries: places(&plan.entries),
        trimmed: places(&plan.trimmed),
        lines: places(&plan.lines),
        changed: files(false),
        removed: files(true),
        extractions: folder.recaps.clone(),
        untouched: plan.untouched.iter().map(ToString::to_string).collect(),
        edit: folder.edit.map(|commit| commit.to_string()),
        commit: folder.commit.map(|commit| commit.to_string()),
    }
}

/// Class and next step for what forgetting says.
pub(super) fn failure(error: &ForgetError) -> Failure {
    match error {
        ForgetError::Store(error) | ForgetError::Consolidate(ConsolidateError::Store(error)) => {
            store_failure(error)
        }
        ForgetError::Busy { .. }
        | ForgetError::LeaseLost { .. }
        | ForgetError::Lock(LockError::Busy { .. }) => {
            Failure::of(Class::Busy, error).hint("try again when it is done")
        }
        ForgetError::NoNote { .. } | ForgetError::ManyNotes { .. } => {
            Failure::refused(error).hint("give its whole path below the memory folder")
        }
        ForgetError::InTheWay { .. } => {
            Failure::refused(error).hint("mend the file, then say it again")
        }
        _ => Failure::refused(error).hint("say it again to finish what was begun"),
    }
}
