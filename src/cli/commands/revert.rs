//! `memrev revert`: take a baseline back.

use serde::Serialize;

use crate::cli::args::RevertArgs;
use crate::cli::context::{Context, consolidate_failure, desk_failure, revision_failure};
use crate::cli::report::{Class, Failure, counted};
use crate::consolidate::absorb::Place;
use crate::domain::id::ObjectId;
use crate::domain::text::Raw;
use crate::history::revert::{
    self, Counts, FileChange, RevertError, RevertParts, RevertRequest, Reverted,
};
use crate::service::desk::Desk;
use crate::service::survey;
use crate::store::undo::{Conflict, ConflictPart};
use crate::text::redact;
use crate::text::terminal;

/// Most lines that are shown of each side of a conflict.
const LINES_SHOWN_MAX: usize = 8;

#[derive(Serialize)]
struct RevertJson {
    version: &'static str,
    written: bool,
    commit: Option<String>,
    edit: Option<String>,
    /// What was asked for, and the baseline in question.
    target: String,
    baseline: String,
    stands_again: bool,
    files: Vec<FileJson>,
    withheld: CountsJson,
    released: CountsJson,
    /// Only where nothing could be taken back.
    conflicts: Vec<ConflictJson>,
}

#[derive(Serialize)]
struct FileJson {
    change: char,
    path: String,
    lines_added: usize,
    lines_removed: usize,
}

#[derive(Serialize, Default)]
struct CountsJson {
    inputs: usize,
    sessions: usize,
    entries: usize,
}

#[derive(Serialize)]
struct ConflictJson {
    path: String,
    is_gone: bool,
    parts: Vec<PartJson>,
}

#[derive(Serialize)]
struct PartJson {
    /// 1-based, in today's file.
    line_start: usize,
    line_count: usize,
    before: String,
    baseline: String,
    now: String,
}

pub(crate) fn run(context: &Context, args: &RevertArgs) -> Result<(), Failure> {
    let config = context.config_when_on()?;
    let version = config.memories.version;
    let survey_parts = context.survey_parts(&config);
    let survey = survey::look(&survey_parts).map_err(|error| Failure::refused(&error))?;
    let desk = Desk::open(&survey_parts, &survey, version).map_err(|it| desk_failure(&it))?;
    let place = desk.place(&context.home, context.now());
    let person = context.person();
    let parts = RevertParts {
        place: &place,
        clock: &*context.clock,
        ids: &context.ids,
        person: &person,
    };
    let request = RevertRequest {
        name: &args.baseline,
        retry: args.retry,
    };
    let reverted = if args.dry_run {
        revert::look(&parts, request)
    } else {
        let mut ledger = context.ledger()?;
        revert::run(&parts, &mut ledger, request)
    };
    let reverted = match reverted {
        Ok(reverted) => reverted,
        Err(error) => return Err(told(context, args, &place, &error)?),
    };
    if args.json {
        return context.printer.json(&as_json(&place, &reverted));
    }
    print(context, args, &reverted);
    if config.memories.dual_write {
        let other = version.other();
        context.printer.say(format!(
            "the other memory, {other}, has baselines of its own, which stand; what is withheld now is \
             taken out of it by the next pass"
        ));
    }
    Ok(())
}

fn print(context: &Context, args: &RevertArgs, reverted: &Reverted) {
    let printer = &context.printer;
    let verb = match (reverted.commit.is_some(), reverted.stands_again) {
        (true, false) => "took back",
        (true, true) => "brought back",
        (false, false) => "would take back",
        (false, true) => "would bring back",
    };
    let subject = redact::redact(&reverted.target.subject);
    let target = reverted.target.id.short();
    printer.line(format!(
        "{verb} {target} {}",
        terminal::safe_line(subject.as_str())
    ));
    for file in &reverted.files {
        let FileChange {
            path,
            lines_added,
            lines_removed,
            ..
        } = file;
        printer.line(format!("  {path} +{lines_added} -{lines_removed}"));
    }
    if reverted.withheld.total() > 0 {
        printer.line(format!(
            "  withheld from now on: {}",
            in_words(reverted.withheld)
        ));
    }
    if reverted.released.total() > 0 {
        printer.line(format!(
            "  may come in again: {}",
            in_words(reverted.released)
        ));
    }
    let Some(commit) = reverted.commit else {
        printer.say("dry run: nothing was written");
        return;
    };
    printer.line(format!("  commit {commit}"));
    if let Some(edit) = reverted.edit {
        printer.say(format!(
            "your own changes were committed before, as {}",
            edit.short()
        ));
    }
    if args.retry && !reverted.stands_again {
        printer.hint("its inputs are pending: `memrev run` tries them again");
    } else if !reverted.stands_again {
        let short = commit.short();
        printer.hint(format!(
            "`memrev release --all-of {short}` lets in again what is withheld; `memrev revert {short}` \
             brings the baseline back"
        ));
    }
}

pub(crate) fn in_words(counts: Counts) -> String {
    let Counts {
        inputs,
        sessions,
        entries,
    } = counts;
    let mut parts = Vec::new();
    for (count, noun) in [(inputs, "input"), (sessions, "session")] {
        if count > 0 {
            parts.push(counted(count, noun));
        }
    }
    match entries {
        0 => {}
        1 => parts.push("1 entry".to_owned()),
        entries => parts.push(format!("{entries} entries")),
    }
    parts.join(", ")
}

/// What went wrong; conflicts are data as well.
fn told(
    context: &Context,
    args: &RevertArgs,
    place: &Place<'_>,
    error: &RevertError,
) -> Result<Failure, Failure> {
    let folder = place.store.folder().display().to_string();
    Ok(match error {
        RevertError::Revision(error) => revision_failure(error),
        RevertError::Consolidate(error) => consolidate_failure(error),
        RevertError::Conflicts { commit, conflicts } => {
            if args.json {
                context
                    .printer
                    .json(&conflicts_json(place, *commit, conflicts))?;
            }
            let mut failure = Failure::refused(error);
            for conflict in conflicts {
                for line in conflict_lines(conflict) {
                    failure = failure.cause(line);
                }
            }
            failure.hint(format!(
                "make these lines as they should be in `{folder}` and run it again; nothing was written"
            ))
        }
        RevertError::InTheWay { files } => {
            let mut failure = Failure::refused(error);
            for (path, why) in files {
                failure = failure.cause(format!("{path}: {why}"));
            }
            failure.hint("mend these files and run it again; nothing was written")
        }
        RevertError::Busy { holder } => {
            let failure = Failure::of(Class::Busy, error);
            let failure = match holder {
                Some(holder) => failure.cause(format!("by {holder}")),
                None => failure,
            };
            failure.hint("try again when it is done; nothing was written")
        }
        RevertError::LostTurn => {
            Failure::of(Class::Busy, error).hint("try again; nothing was written")
        }
        RevertError::NotABaseline { commit, .. } => Failure::refused(error).hint(format!(
            "`git -C {folder} revert {}` takes it back; nothing was written",
            commit.short()
        )),
        RevertError::NotOnMain { .. } => {
            Failure::refused(error).hint("`memrev log` lists what is; nothing was written")
        }
        RevertError::Already { by, .. } => Failure::refused(error).hint(format!(
            "`memrev revert {}` brings it back; nothing was written",
            by.short()
        )),
        RevertError::Withheld(_) => Failure::refused(error)
            .hint("the baseline was taken back; `memrev run` writes down the rest"),
    })
}

fn conflict_lines(conflict: &Conflict) -> Vec<String> {
    let path = &conflict.path;
    if conflict.parts.is_empty() {
        let what = if conflict.is_gone {
            "was removed"
        } else {
            "was changed as a whole"
        };
        return vec![format!("{path} {what} since")];
    }
    let mut lines = Vec::new();
    for part in &conflict.parts {
        let (start, count) = (part.lines.start + 1, part.lines.len());
        let place = match count {
            0 | 1 => format!("{path}:{start}"),
            _ => format!("{path}:{start}-{}", part.lines.end),
        };
        lines.push(place);
        lines.extend(side_lines("the baseline said", &part.then));
        lines.extend(side_lines("what stands now", &part.now));
    }
    lines
}

fn side_lines(title: &str, text: &Raw) -> Vec<String> {
    let text = redact::redact(text);
    let all: Vec<&str> = text.as_str().lines().collect();
    let mut lines = vec![match all.len() {
        0 => format!("  {title}: nothing"),
        _ => format!("  {title}:"),
    }];
    lines.extend(
        all.iter()
            .take(LINES_SHOWN_MAX)
            .map(|line| format!("    {line}")),
    );
    if LINES_SHOWN_MAX < all.len() {
        lines.push(format!(
            "    and {} more",
            counted(all.len() - LINES_SHOWN_MAX, "line")
        ));
    }
    lines
}

fn as_json(place: &Place<'_>, reverted: &Reverted) -> RevertJson {
    RevertJson {
        version: place.version.label(),
        written: reverted.commit.is_some(),
        commit: reverted.commit.map(|commit| commit.to_string()),
        edit: reverted.edit.map(|commit| commit.to_string()),
        target: reverted.target.id.to_string(),
        baseline: reverted.baseline.to_string(),
        stands_again: reverted.stands_again,
        files: (reverted.files.iter())
            .map(|file| FileJson {
                change: file.kind.letter(),
                path: file.path.to_string(),
                lines_added: file.lines_added,
                lines_removed: file.lines_removed,
            })
            .collect(),
        withheld: counts_json(reverted.withheld),
        released: counts_json(reverted.released),
        conflicts: Vec::new(),
    }
}

const fn counts_json(counts: Counts) -> CountsJson {
    CountsJson {
        inputs: counts.inputs,
        sessions: counts.sessions,
        entries: counts.entries,
    }
}

fn conflicts_json(place: &Place<'_>, commit: ObjectId, conflicts: &[Conflict]) -> RevertJson {
    let part = |part: &ConflictPart| PartJson {
        line_start: part.lines.start + 1,
        line_count: part.lines.len(),
        before: redact::redact(&part.before).into_string(),
        baseline: redact::redact(&part.then).into_string(),
        now: redact::redact(&part.now).into_string(),
    };
    RevertJson {
        version: place.version.label(),
        written: false,
        commit: None,
        edit: None,
        target: commit.to_string(),
        baseline: commit.to_string(),
        stands_again: false,
        files: Vec::new(),
        withheld: CountsJson::default(),
        released: CountsJson::default(),
        conflicts: (conflicts.iter())
            .map(|conflict| ConflictJson {
                path: conflict.path.to_string(),
                is_gone: conflict.is_gone,
                parts: conflict.parts.iter().map(part).collect(),
            })
            .collect(),
    }
}
