//! Runs a pass and says what came of it, for `run`, `extract` and
//! `consolidate`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cli::commands::attempts::in_words;
use crate::cli::context::{Context, store_failure, versions};
use crate::cli::pass_json::pass_json;
use crate::cli::pass_verdict::verdict;
use crate::cli::programs;
use crate::cli::report::{Class, Failure, Printer, counted};
use crate::cli::services;
use crate::config::Config;
use crate::consolidate::{ConsolidateError, ConsolidateReport, Outcome, RevertSeen};
use crate::domain::id::ObjectId;
use crate::domain::version::MemoryVersion;
use crate::extract::run::{self as extract_run, Report as SessionReport};
use crate::extract::select::Reason;
use crate::ledger::{Denial, ExtractionClaim};
use crate::service::choice::PassRequest;
use crate::service::folder::FolderError;
use crate::service::pass::{
    self, PassError, PassParts, PassReport, Progress, Stages, VersionReport,
};
use crate::service::quota::Refusal;
use crate::service::with_sources;
use crate::sys::interrupt::Interrupt;
use crate::sys::lock::LockError;

/// Runs one pass over the configured versions and reports it.
pub(crate) fn run_and_report(
    context: &Context,
    config: &Config,
    stages: Stages,
    request: &PassRequest,
    as_json: bool,
) -> Result<(), Failure> {
    let model = context.extract_model(config)?;
    let consolidation_model = context.consolidation_model(config)?;
    if let Some(notice) = programs::notice(context, config) {
        context.printer.warn(notice);
    }
    if let Some(notice) = services::notice(config) {
        context.printer.warn(notice);
    }
    let interrupt = Interrupt::listen().unwrap_or_default();
    let ended = Ended::default();
    let progress = |progress: Progress<'_>| show(&context.printer, &ended, progress);
    let parts = PassParts {
        home: &context.home,
        config,
        roots: context.roots(config),
        model: model.as_ref(),
        consolidation_model: consolidation_model.as_ref(),
        clock: context.clock.as_ref(),
        ids: &context.ids,
        person: &context.person(),
        stages,
        is_cancelled: &|| interrupt.is_asked(),
        progress: &progress,
    };
    let report = pass::run(&parts, &versions(config), request).map_err(|error| failure(&error))?;
    context.printer.progress_end();
    if as_json {
        context.printer.json(&pass_json(&report))?;
    } else {
        print(context, &report, stages);
    }
    verdict(&report)
}

/// Class and next step for what stopped a pass.
fn failure(error: &PassError) -> Failure {
    match error {
        PassError::Store(error)
        | PassError::Folder(FolderError::Store(error))
        | PassError::Consolidate(ConsolidateError::Store(error)) => store_failure(error),
        PassError::Ledger(ledger) | PassError::Consolidate(ConsolidateError::Ledger(ledger))
            if ledger.is_busy() =>
        {
            Failure::of(Class::Busy, error).hint("try again when the other process is done")
        }
        PassError::Lock(LockError::Busy { .. }) => {
            Failure::of(Class::Busy, error).hint("try again when it is done")
        }
        _ => Failure::refused(error)
            .hint("mend what the message names; what was done before stays done"),
    }
}

/// How many of how many sessions have ended.
#[derive(Default)]
struct Ended {
    count: AtomicUsize,
    total: AtomicUsize,
}

fn show(printer: &Printer, ended: &Ended, progress: Progress<'_>) {
    match progress {
        Progress::Extracting { total: 0 } => {}
        Progress::Consolidating { version } => {
            printer.progress(format!("{version}: consolidating"));
        }
        Progress::Extracting { total } => {
            ended.count.store(0, Ordering::Relaxed);
            ended.total.store(total, Ordering::Relaxed);
            printer.say(format!("extracting {}", counted(total, "session")));
        }
        Progress::Extracted { report } => {
            for damage in report.reading.damage.iter().chain(&report.reading.warnings) {
                printer.warn(format!(
                    "{}:{}: {}",
                    report.rollout_path.display(),
                    damage.line_number,
                    damage.what
                ));
            }
            if let Some(detail) = trouble(report) {
                printer.warn(format!("session {}: {detail}", report.thread_id));
            }
            let count = ended.count.fetch_add(1, Ordering::Relaxed) + 1;
            let total = ended.total.load(Ordering::Relaxed);
            printer.progress(format!(
                "{count} of {} extracted",
                counted(total, "session")
            ));
        }
    }
}

fn print(context: &Context, report: &PassReport, stages: Stages) {
    let printer = &context.printer;
    if let Some(path) = &report.ledger_set_aside {
        printer.warn(format!(
            "the ledger was damaged and is now `{}`; only figures on use and spending are lost",
            path.display()
        ));
    }
    for words in &report.unreadable {
        printer.warn(words);
    }
    if let Some(refusal) = &report.refusal {
        printer.say(format!(
            "stopped before anything was spent: {}",
            refusal_words(refusal)
        ));
    }
    for version in &report.versions {
        print_version(printer, version);
    }
    if is_nothing(report) {
        printer.say("nothing to do");
        if stages != Stages::ConsolidateOnly {
            print_why_nothing(context, report);
        }
    } else {
        for version in &report.versions {
            print_failed_before(printer, version);
        }
    }
}

pub(crate) fn is_nothing(report: &PassReport) -> bool {
    let did_nothing = |version: &VersionReport| {
        let consolidated = version.consolidated.as_ref();
        version.extracted.is_empty()
            && version.pruned.is_empty()
            && consolidated.is_none_or(|report| {
                report.outcome == Outcome::NothingToDo && report.edit.is_none()
            })
    };
    report.refusal.is_none() && report.versions.iter().all(did_nothing)
}

/// When nothing is eligible: why, and which option would change that.
fn print_why_nothing(context: &Context, report: &PassReport) {
    let printer = &context.printer;
    if report.was_idle {
        printer.say(format!(
            "{}, nothing changed since the last pass; `memrev status` says what waits for what",
            counted(report.sessions, "session")
        ));
        return;
    }
    if report.sessions == 0 {
        printer.say("no sessions were found; `memrev sessions` says where memrev looked");
        return;
    }
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for (_, reason) in report
        .versions
        .iter()
        .take(1)
        .flat_map(|version| &version.left_out)
    {
        *counts.entry(why(reason)).or_default() += 1;
    }
    for (words, count) in counts {
        printer.say(format!("  {count} {words}"));
    }
}

fn why(reason: &Reason) -> &'static str {
    match reason {
        Reason::TooOld { .. } => "too old (`--since 90d` or `--all` takes them)",
        Reason::NotIdle { .. } => "not idle long enough (`--all` takes them)",
        Reason::Unchanged => "unchanged since extracted",
        Reason::NotInteractive { is_exec: true, .. } => {
            "not typed by a person (`sessions.include_exec` takes them)"
        }
        Reason::NotInteractive { .. } => "not interactive",
        Reason::AgentOff | Reason::ProjectOff => "switched off in the configuration",
        Reason::Disabled | Reason::Polluted => "kept out by their mode (`memrev mode`)",
        Reason::RetryLater { .. } => "failed before and wait (`memrev status` says until when)",
        Reason::RetryExhausted => "failed too often (`memrev run` tries them again)",
        Reason::BeyondLimit { .. } | Reason::BeyondScan => "left for the next pass",
        Reason::Withheld => "withheld",
        Reason::RunningElsewhere { .. } => "being read by another process",
        Reason::SubAgent => "of sub-agents, read with their parents",
        Reason::Ours => "written by workers of memrev",
        Reason::Current => "in use: the session this runs in",
        Reason::NotNamed => "not named",
    }
}

fn print_version(printer: &Printer, version: &VersionReport) {
    let name = version.version;
    if let Some(lost) = &version.lost_history {
        printer.warn(format!("{name}: {}", lost.words()));
    }
    if !version.pruned.is_empty() {
        printer.line(format!(
            "{name}: {} past retention removed",
            counted(version.pruned.len(), "recap")
        ));
    }
    let (kept, none, trouble) = tally(&version.extracted);
    if !version.extracted.is_empty() {
        let mut words = format!("{name}: {} written", counted(kept, "recap"));
        if 0 < none {
            let sessions = counted(none, "session");
            write!(words, ", {sessions} with nothing worth keeping").ok();
        }
        if 0 < trouble {
            write!(words, ", {trouble} to be tried again").ok();
        }
        let marked: usize = version.extracted.iter().map(|it| it.ungrounded).sum();
        if 0 < marked {
            let lines = counted(marked, "line");
            write!(words, ", {lines} marked that the person never said so").ok();
        }
        printer.line(words);
    }
    let waiting = version.left_out.iter();
    let waiting = waiting.filter(|(_, reason)| matches!(reason, Reason::BeyondLimit { .. }));
    let waiting = waiting.count();
    if 0 < waiting {
        let sessions = counted(waiting, "session");
        printer.line(format!(
            "{name}: {sessions} wait for the next pass (`memories.max_rollouts_per_startup`)"
        ));
    }
    if let Some(report) = &version.consolidated {
        print_consolidation(printer, version, report);
    }
}

/// Sessions that a pass in the background leaves alone because they failed.
fn print_failed_before(printer: &Printer, version: &VersionReport) {
    let name = version.version;
    let failed = |wanted: fn(&Reason) -> bool| {
        let reasons = version.left_out.iter();
        reasons.filter(|(_, reason)| wanted(reason)).count()
    };
    for (count, words) in [
        (
            failed(|it| matches!(it, Reason::RetryLater { .. })),
            "failed before, tried again after a wait",
        ),
        (
            failed(|it| *it == Reason::RetryExhausted),
            "failed too often, tried again when changed or by `memrev run`",
        ),
    ] {
        if 0 < count {
            printer.line(format!("{name}: {}: {words}", counted(count, "session")));
        }
    }
}

/// What a person should hear about a session that did not end well.
pub(crate) fn trouble(report: &SessionReport) -> Option<String> {
    use extract_run::Outcome as End;
    if let Some(problem) = &report.ledger_problem {
        return Some(with_sources(problem));
    }
    match &report.outcome {
        End::Failed(failure) => Some(with_sources(failure)),
        End::NotClaimed(claim) => claim_words(claim),
        End::LeaseLost => Some("its lease ran out and another process took it".to_owned()),
        // Said once, for the whole pass.
        End::NotTried(extract_run::Halt::Cancelled) => None,
        End::NotTried(halt) => Some(halt_words(*halt)),
        _ => None,
    }
}

/// Why a session that looked eligible was left alone, where it matters.
fn claim_words(claim: &ExtractionClaim) -> Option<String> {
    match claim {
        ExtractionClaim::Claimed(_) | ExtractionClaim::UpToDate => None,
        ExtractionClaim::Running { holder, .. } => Some(format!("{holder} reads it now")),
        ExtractionClaim::RetryLater { at } => Some(format!("not tried: waits until {at}")),
        ExtractionClaim::RetryExhausted => Some("not tried: it failed too often".to_owned()),
        ExtractionClaim::AtCapacity { running } => Some(format!(
            "not tried: {running} extractions run already, over all processes"
        )),
    }
}

fn halt_words(halt: extract_run::Halt) -> String {
    use extract_run::Halt;
    match halt {
        Halt::Cancelled => "not tried: the pass was stopped".to_owned(),
        Halt::Denied(denial) => format!("not tried: {}", denial_words(denial)),
        Halt::Quota => "not tried: little is left of the service's quota".to_owned(),
        Halt::Model => "not tried: the model cannot be reached".to_owned(),
    }
}

fn denial_words(denial: Denial) -> String {
    match denial {
        Denial::Patience { until } => {
            format!("the service asked for patience until {until}; `memrev run` asks all the same")
        }
        denial => {
            let limit = denial.limit();
            match denial.until() {
                Some(until) => format!("the limit {limit} is reached, until {until}"),
                None => format!("the limit {limit} is reached"),
            }
        }
    }
}

fn tally(extracted: &[SessionReport]) -> (usize, usize, usize) {
    let count = |wanted: fn(&SessionReport) -> bool| {
        extracted.iter().filter(|report| wanted(report)).count()
    };
    (
        count(|report| matches!(report.outcome, extract_run::Outcome::Stored { .. })),
        count(|report| matches!(report.outcome, extract_run::Outcome::NothingToKeep { .. })),
        count(|report| trouble(report).is_some()),
    )
}

fn print_consolidation(printer: &Printer, version: &VersionReport, report: &ConsolidateReport) {
    let name = version.version;
    if report.recovered {
        printer.line(format!("{name}: an interrupted publication was cleared up"));
    }
    print_set_aside(printer, version, report);
    if let Some(edit) = &report.edit {
        printer.line(format!(
            "{name}: your notes and edits are commit {}",
            edit.short()
        ));
    }
    for seen in &report.reverts {
        printer.line(format!("{name}: {}", revert_words(seen)));
    }
    for left in report
        .left_files
        .iter()
        .filter(|left| !left.reason.is_quiet())
    {
        printer.warn(format!("left alone: {}: {}", left.path, left.reason));
    }
    for unfit in &report.unfit {
        printer.warn(format!("left alone: {}: {}", unfit.path, unfit.why));
    }
    for note in &report.unmatched_notes {
        printer.warn(format!("{note} matches nothing in memory"));
    }
    match report.skipped.as_slice() {
        [] => {}
        [one] => printer.line(format!("{name}: {} was left out: {}", one.path, one.reason)),
        many => printer.line(format!(
            "{name}: {} new recaps were left out; the commit says why",
            many.len()
        )),
    }
    for run in &report.expired {
        printer.line(format!("{name}: old attempt {run} was let go"));
    }
    print_again(printer, version, report);
    print_outcome(printer, name, report);
}

/// Inputs that a reset made pending again, by the baseline that had them.
fn print_again(printer: &Printer, version: &VersionReport, report: &ConsolidateReport) {
    let mut by_baseline: BTreeMap<ObjectId, Vec<String>> = BTreeMap::new();
    for it in &report.again {
        let paths = by_baseline.entry(it.baseline).or_default();
        paths.push(format!("`{}`", it.path));
    }
    for (baseline, paths) in by_baseline {
        printer.line(format!(
            "{}: pending again, since a reset took back baseline {}: {}",
            version.version,
            baseline.short(),
            paths.join(", ")
        ));
    }
}

fn print_outcome(printer: &Printer, name: MemoryVersion, report: &ConsolidateReport) {
    match &report.outcome {
        Outcome::Done { baseline } => {
            let inputs = counted(report.inputs.len(), "input");
            let outputs = if report.outputs.is_empty() {
                "no file changed".to_owned()
            } else {
                in_words(&report.outputs)
            };
            printer.line(format!(
                "{name}: baseline {}: {inputs}; {outputs}",
                baseline.short()
            ));
            for line in &report.taken_out_again {
                printer.line(format!("{name}: taken out again: {}", line.words));
            }
        }
        Outcome::Deferred { until } => {
            printer.line(format!("{name}: consolidation is deferred until {until}"));
        }
        Outcome::UsedUp { denial } => {
            let why = denial_words(*denial);
            printer.line(format!("{name}: not consolidated: {why}"));
        }
        Outcome::Busy { holder } => {
            let holder = holder
                .as_ref()
                .map_or("another process".to_owned(), ToString::to_string);
            printer.line(format!("{name}: {holder} is consolidating"));
        }
        Outcome::Waits { run, is_new } => {
            let since = if *is_new {
                format!("{}: {}", report.run, in_words(&report.outputs))
            } else {
                format!("{run}, over the same inputs; no model was asked again")
            };
            printer.line(format!("{name}: a result waits for your word: {since}"));
            printer.hint(format!(
                "`memrev attempts {run}` shows it, `memrev accept {run}` publishes it, `memrev reject {run}` lets it go"
            ));
        }
        Outcome::HeldBack { run } => {
            printer.line(format!(
                "{name}: not tried again: you rejected {run} over the same inputs; `memrev run` by hand tries"
            ));
        }
        // What went wrong ends the command, with its reasons: see `verdict`.
        Outcome::NothingToDo
        | Outcome::FailedBefore { .. }
        | Outcome::FailedAfter { .. }
        | Outcome::Parked { .. }
        | Outcome::Stopped => {}
    }
}

fn print_set_aside(printer: &Printer, version: &VersionReport, report: &ConsolidateReport) {
    let name = version.version;
    for file in &report.set_aside {
        let file = file.display();
        printer.warn(format!(
            "{name}: a part of `.git` was damaged and made anew; it is kept as `{file}`"
        ));
    }
}

/// What a revert by hand meant, said once.
fn revert_words(seen: &RevertSeen) -> String {
    let (inputs, lines) = (counted(seen.inputs, "input"), counted(seen.entries, "line"));
    let revert = seen.revert.short();
    if seen.stands_again {
        format!("your revert {revert} was taken in: {inputs} and {lines} may come in again")
    } else {
        format!("your revert {revert} was taken in: {inputs} and {lines} stay out from now on")
    }
}

pub(crate) fn refusal_words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Reached => "the rate limit is reached".to_owned(),
        Refusal::TooLittleLeft {
            used_percent,
            remaining_percent_min,
        } => format!(
            "{used_percent} % of the quota is used, {remaining_percent_min} % are to be left \
             (`memories.min_rate_limit_remaining_percent`)"
        ),
    }
}
