//! `memrev accept` and `memrev reject`: a person's word about an attempt.

use serde::Serialize;

use crate::cli::args::DecideArgs;
use crate::cli::commands::attempts::{
    InputJson, OutputJson, in_words, inputs_json, outputs_json, unknown,
};
use crate::cli::context::{Context, store_failure, versions};
use crate::cli::report::{Class, Failure, Printer, counted};
use crate::config::Config;
use crate::consolidate::ConsolidateError;
use crate::consolidate::accept::{self, DecideParts, Decided, Decision};
use crate::consolidate::attempts::SeenAttempt;
use crate::domain::version::MemoryVersion;
use crate::ledger::Ledger;
use crate::service::survey;
use crate::store::error::StoreError;

#[derive(Serialize)]
struct DecisionJson {
    version: &'static str,
    run: String,
    outcome: &'static str,
    written: bool,
    baseline: Option<String>,
    edit: Option<String>,
    inputs: Vec<InputJson>,
    outputs: Vec<OutputJson>,
    /// Limits of the loss guard that gave way.
    over: Vec<String>,
    /// Why not.
    reasons: Vec<String>,
    conflicts: Vec<ConflictJson>,
    left_alone: Vec<String>,
}

#[derive(Serialize)]
struct ConflictJson {
    path: String,
    yours: String,
    theirs: String,
}

/// What the person wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Accept,
    Reject,
}

pub(crate) fn accept(context: &Context, args: &DecideArgs) -> Result<(), Failure> {
    decide(context, args, Wish::Accept)
}

pub(crate) fn reject(context: &Context, args: &DecideArgs) -> Result<(), Failure> {
    decide(context, args, Wish::Reject)
}

fn decide(context: &Context, args: &DecideArgs, wish: Wish) -> Result<(), Failure> {
    let config = context.config_when_on()?;
    let (version, attempt) = find(context, &config, &args.run)?;
    let decision = ask(context, &config, version, &attempt, wish, args.dry_run)?;
    if args.json {
        context.printer.json(&json(version, &decision))?;
    } else {
        print(&context.printer, version, &decision, wish);
    }
    verdict(&decision)
}

fn find(
    context: &Context,
    config: &Config,
    run: &str,
) -> Result<(MemoryVersion, SeenAttempt), Failure> {
    for version in versions(config) {
        match accept::find(&context.home, version, run) {
            Ok(Some(attempt)) => return Ok((version, attempt)),
            Ok(None) | Err(ConsolidateError::Store(StoreError::NotThere { .. })) => {}
            Err(error) => return Err(failure(&error)),
        }
    }
    Err(unknown(run))
}

fn ask(
    context: &Context,
    config: &Config,
    version: MemoryVersion,
    attempt: &SeenAttempt,
    wish: Wish,
    is_dry_run: bool,
) -> Result<Decision, Failure> {
    let survey_parts = context.survey_parts(config);
    let modes = survey::look(&survey_parts)
        .and_then(|survey| Ok(survey.modes(&survey_parts, version)?))
        .map_err(|error| Failure::refused(&error))?;
    let parts = DecideParts {
        home: &context.home,
        clock: context.clock.as_ref(),
        ids: &context.ids,
        modes: &modes,
        person: &context.person(),
        policy: &survey::consolidate_policy(config, true),
    };
    let decided = match wish {
        Wish::Reject => accept::reject(&parts, version, attempt, is_dry_run),
        Wish::Accept if is_dry_run => accept::would_accept(&parts, version, attempt),
        Wish::Accept => {
            let opened = Ledger::open(&context.home.ledger_file(), context.now());
            let mut ledger = opened.map_err(|error| Failure::refused(&error))?.ledger;
            accept::accept(&parts, &mut ledger, version, attempt)
        }
    };
    decided.map_err(|error| failure(&error))
}

fn failure(error: &ConsolidateError) -> Failure {
    match error {
        ConsolidateError::Store(error) => store_failure(error),
        ConsolidateError::Ledger(ledger) if ledger.is_busy() => {
            Failure::of(Class::Busy, error).hint("try again when the other process is done")
        }
        _ => Failure::refused(error).hint("memory is as it was; mend what the message names"),
    }
}

fn print(printer: &Printer, version: MemoryVersion, decision: &Decision, wish: Wish) {
    let run = &decision.run;
    if let Some(edit) = &decision.edit {
        let edit = edit.short();
        printer.line(format!("{version}: your notes and edits are commit {edit}"));
    }
    for left in &decision.left_files {
        printer.warn(format!("left alone: {}: {}", left.path, left.reason));
    }
    for unfit in &decision.unfit {
        printer.warn(format!("left alone: {}: {}", unfit.path, unfit.why));
    }
    match &decision.outcome {
        Decided::Published { baseline } => {
            let inputs = counted(decision.inputs.len(), "input");
            let outputs = changed(decision);
            let baseline = baseline.short();
            printer.line(format!(
                "{version}: {run} accepted as baseline {baseline}: {inputs}; {outputs}"
            ));
            print_over(printer, decision);
        }
        Decided::Would if wish == Wish::Accept => {
            printer.line(format!("{version}: {run} would be accepted: {}", changed(decision)));
            print_over(printer, decision);
            printer.say("dry run: nothing was written; edits that no commit holds are taken in first");
        }
        Decided::Would => {
            printer.line(format!("{version}: {run} would be rejected"));
            printer.say("dry run: nothing was written");
        }
        Decided::Rejected => printer.line(format!(
            "{version}: {run} rejected; its inputs stay pending, and are tried again when something changes or you run `memrev run`"
        )),
        Decided::Already { baseline } => {
            let baseline = baseline.short();
            printer.line(format!("{version}: {run} is baseline {baseline} already"));
        }
        Decided::Conflicts { sides } => {
            for side in sides {
                printer.line(format!("{}: your side", side.path));
                print_diff(printer, side.yours.as_str());
                printer.line(format!("{}: the attempt's side", side.path));
                print_diff(printer, side.theirs.as_str());
            }
        }
        Decided::Refused { complaints } => {
            for complaint in complaints {
                printer.warn(format!("[{}] {}", complaint.code, complaint.words));
            }
        }
        Decided::Blocked { .. } | Decided::Gone | Decided::Busy { .. } => {}
    }
}

fn changed(decision: &Decision) -> String {
    if decision.outputs.is_empty() {
        "no file changed".to_owned()
    } else {
        in_words(&decision.outputs)
    }
}

fn print_over(printer: &Printer, decision: &Decision) {
    for words in &decision.over {
        printer.line(format!("  on your word: {words}"));
    }
}

fn print_diff(printer: &Printer, text: &str) {
    for line in text.lines() {
        printer.diff_line(line);
    }
}

fn verdict(decision: &Decision) -> Result<(), Failure> {
    let run = &decision.run;
    let refused = |why: String| {
        Failure::new(Class::Refused, format!("{run} cannot be accepted: {why}"))
            .cause("memory is as it was; the inputs stay pending")
    };
    match &decision.outcome {
        Decided::Published { .. }
        | Decided::Would
        | Decided::Rejected
        | Decided::Already { .. } => Ok(()),
        Decided::Blocked { obstacle } => Err(refused(obstacle.to_string()).hint(format!(
            "`memrev run` tries the inputs again, `memrev attempts {run}` shows it"
        ))),
        Decided::Conflicts { .. } => Err(refused("you changed the same lines since".to_owned())
            .hint(format!(
                "change your side so that both fit and accept it again, or `memrev reject {run}`"
            ))),
        Decided::Refused { .. } => {
            let why = "it does not pass what nobody can overrule".to_owned();
            Err(refused(why).hint(format!(
                "`memrev reject {run}`, then `memrev run` tries again"
            )))
        }
        Decided::Gone => Err(Failure::new(
            Class::Busy,
            format!("somebody else decided about {run} meanwhile"),
        )
        .hint("`memrev log` and `memrev attempts` say how; nothing was written by this command")),
        Decided::Busy { holder } => {
            let holder = holder.as_ref();
            let holder = holder.map_or("another process".to_owned(), ToString::to_string);
            Err(Failure::new(
                Class::Busy,
                format!("{holder} is consolidating, so {run} was not published"),
            )
            .hint("try again when it is done; `memrev status` names it"))
        }
    }
}

fn json(version: MemoryVersion, decision: &Decision) -> DecisionJson {
    let (mut reasons, mut conflicts, mut baseline) = (Vec::new(), Vec::new(), None);
    let outcome = match &decision.outcome {
        Decided::Published { baseline: id } => {
            baseline = Some(id.to_string());
            "accepted"
        }
        Decided::Already { baseline: id } => {
            baseline = Some(id.to_string());
            "already_accepted"
        }
        Decided::Would => "dry_run",
        Decided::Rejected => "rejected",
        Decided::Blocked { obstacle } => {
            reasons.push(obstacle.to_string());
            "blocked"
        }
        Decided::Conflicts { sides } => {
            conflicts.extend(sides.iter().map(|side| ConflictJson {
                path: side.path.to_string(),
                yours: side.yours.to_string(),
                theirs: side.theirs.to_string(),
            }));
            "conflicts"
        }
        Decided::Refused { complaints } => {
            let words = complaints.iter();
            reasons.extend(words.map(|it| format!("[{}] {}", it.code, it.words)));
            "refused"
        }
        Decided::Gone => "gone",
        Decided::Busy { .. } => "busy",
    };
    let left = decision.left_files.iter();
    let left = left.map(|left| format!("{}: {}", left.path, left.reason));
    let unfit = decision.unfit.iter();
    let unfit = unfit.map(|unfit| format!("{}: {}", unfit.path, unfit.why));
    DecisionJson {
        version: version.label(),
        run: decision.run.to_string(),
        outcome,
        written: matches!(
            decision.outcome,
            Decided::Published { .. } | Decided::Rejected
        ),
        baseline,
        edit: decision.edit.map(|edit| edit.to_string()),
        inputs: inputs_json(&decision.inputs),
        outputs: outputs_json(&decision.outputs),
        over: decision.over.clone(),
        reasons,
        conflicts,
        left_alone: left.chain(unfit).collect(),
    }
}
