//! `memrev status`: what is pending, what state everything is in, what next.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::args::StatusArgs;
use crate::cli::commands::attempts::reasons;
use crate::cli::context::{Context, versions};
use crate::cli::programs;
use crate::cli::report::{Failure, Printer, counted};
use crate::cli::survival::{self, SurvivalJson};
use crate::config::Config;
use crate::consolidate::attempts::{SeenAttempt, Standing};
use crate::consolidate::lost::LostInput;
use crate::consolidate::select::LeftOut;
use crate::consolidate::{Complaint, Pending};
use crate::ledger::{Job, JobError, JobKind, JobState};
use crate::service::status::{self, Status, VersionStatus};
use crate::store::message::ChangeKind;

#[derive(Serialize)]
struct StatusJson {
    is_on: bool,
    home: String,
    sessions: BTreeMap<&'static str, usize>,
    unreadable: Vec<String>,
    versions: Vec<VersionJson>,
    spend_today: Vec<SpendJson>,
    /// Limits of a day that are used up.
    used_up: Vec<UsedUpJson>,
    /// Services that asked for patience.
    holds: Vec<HoldJson>,
    /// That the walls around a model's program are not kept, if so.
    sandbox_notice: Option<&'static str>,
    next: Vec<String>,
}

#[derive(Serialize)]
struct VersionJson {
    version: &'static str,
    folder: String,
    /// Why the folder cannot be read, if so.
    problem: Option<String>,
    head: Option<String>,
    last_baseline_at: Option<String>,
    /// `null` before the second baseline.
    survival: Option<SurvivalJson>,
    recaps: usize,
    pending_inputs: Vec<ChangeJson>,
    /// Those among them that were consumed before a reset.
    pending_again: Vec<String>,
    pending_edits: Vec<String>,
    left_alone: Vec<LeftJson>,
    complaints: Vec<String>,
    /// What is wrong with lines that the person wrote.
    yours: Vec<String>,
    to_mend: Vec<String>,
    lost_inputs: Vec<LostJson>,
    set_aside: Vec<String>,
    /// Recaps that the next consolidation leaves out, by reason.
    recaps_left_out: BTreeMap<&'static str, usize>,
    recaps_taken_max: u64,
    needs_recovery: bool,
    jobs: Vec<JobJson>,
    attempts: Vec<AttemptJson>,
    withheld: usize,
}

#[derive(Serialize)]
struct AttemptJson {
    run: String,
    at: String,
    state: &'static str,
    reasons: Vec<String>,
    /// Why it cannot be accepted, if so.
    obstacle: Option<String>,
    superseded_by: Option<String>,
}

#[derive(Serialize)]
struct ChangeJson {
    change: &'static str,
    path: String,
}

#[derive(Serialize)]
struct LeftJson {
    path: String,
    reason: String,
}

#[derive(Serialize)]
struct LostJson {
    path: String,
    commit: String,
    command: String,
}

#[derive(Serialize)]
struct JobJson {
    kind: &'static str,
    key: String,
    state: &'static str,
    until: Option<String>,
    retries_left: u32,
    last_error: Option<&'static str>,
}

#[derive(Serialize)]
struct SpendJson {
    model: String,
    calls: u64,
    tokens_in: u64,
    tokens_out: u64,
}

#[derive(Serialize)]
struct UsedUpJson {
    setting: &'static str,
    used: u64,
    most: u64,
}

#[derive(Serialize)]
struct HoldJson {
    service: String,
    until: String,
}

pub(crate) fn run(context: &Context, args: &StatusArgs) -> Result<(), Failure> {
    let config = context.config()?;
    let parts = context.survey_parts(&config);
    let status = status::gather(&parts, &versions(&config)).map_err(|error| {
        Failure::refused(&error)
            .hint("the message above names what cannot be read; nothing was changed")
    })?;
    if args.json {
        return context.printer.json(&as_json(context, &config, &status));
    }
    print(context, &status);
    if let Some(notice) = programs::notice(context, &config) {
        context.printer.line(format!("note: {notice}"));
    }
    Ok(())
}

/// What the next consolidation takes in, and what a model would be asked.
pub(crate) fn print_pending_of(
    context: &Context,
    config: &Config,
    as_json: bool,
) -> Result<(), Failure> {
    let parts = context.survey_parts(config);
    let status =
        status::gather(&parts, &versions(config)).map_err(|error| Failure::refused(&error))?;
    if as_json {
        let pending: Vec<VersionJson> = status.versions.iter().map(version_json).collect();
        return context.printer.json(&pending);
    }
    let reads_prompts = !context.consolidation_model(config)?.is_free();
    for version in &status.versions {
        print_version(&context.printer, version);
        if let Some(Standing::Waits { run }) = &version.pending.standing {
            context.printer.line(format!(
                "  no worker would be asked: {run} waits for your word over the same inputs"
            ));
        }
        if let Some(prompt) = version.pending.prompt.as_ref().filter(|_| reads_prompts) {
            context.printer.line("  the model would be asked:");
            context.printer.line(prompt.as_str());
        }
    }
    Ok(())
}

fn print(context: &Context, status: &Status) {
    let printer = &context.printer;
    if !status.is_on {
        printer.line("memory is switched off (`features.memories`)");
    }
    printer.line(format!("home: {}", context.home.root().display()));
    print_sessions(printer, status);
    for version in &status.versions {
        print_version(printer, version);
    }
    for spend in &status.spend_today {
        printer.line(format!(
            "spent today: {}: {} calls, {} tokens in, {} out",
            spend.model, spend.calls, spend.tokens_in, spend.tokens_out
        ));
    }
    for limit in &status.used_up {
        printer.line(match limit.most {
            0 => format!("no call is made: `{}` is 0", limit.setting),
            most => format!(
                "used up: `{}`, {} of {most} today (UTC): no more calls before tomorrow",
                limit.setting, limit.used
            ),
        });
    }
    for (service, until) in &status.holds {
        printer.line(format!(
            "`{service}` asked for patience: it is not asked in the background before {until}"
        ));
    }
    printer.line("next:");
    for next in &status.next {
        printer.line(format!("  {next}"));
    }
}

fn print_sessions(printer: &Printer, status: &Status) {
    let total: usize = status.sessions.values().map(|(count, _)| count).sum();
    printer.line(format!("sessions: {total}"));
    for (count, words) in status.sessions.values() {
        printer.line(format!("  {count} {words}"));
    }
    for words in &status.unreadable {
        printer.line(format!("  unreadable: {words}"));
    }
}

fn print_version(printer: &Printer, version: &VersionStatus) {
    printer.line(format!(
        "memory {}: {}",
        version.version,
        version.folder.display()
    ));
    if let Some(problem) = &version.problem {
        printer.line(format!("  cannot be used: {problem}"));
    }
    if let Some(baseline) = &version.last_baseline {
        printer.line(format!(
            "  last baseline: {} {}",
            baseline.at,
            baseline.id.short()
        ));
    } else {
        printer.line("  no baseline yet");
    }
    printer.line(format!(
        "  {}, {}",
        counted(version.recaps, "recap"),
        withheld(version)
    ));
    if let Some(survival) = &version.survival {
        printer.line(format!("  {}", survival::words(survival)));
    }
    print_pending(printer, &version.pending);
    for lost in &version.pending.lost {
        let command = get_back(version, lost);
        printer.line(format!(
            "  a reset took away {}: `{command}` brings it back",
            lost.path
        ));
    }
    for file in &version.set_aside {
        printer.line(format!(
            "  was damaged, kept for you to look at and delete: {}",
            file.display()
        ));
    }
    for job in version.jobs.iter().filter(|job| is_worth_a_line(job)) {
        printer.line(format!("  {}", job_words(job)));
    }
    for attempt in &version.attempts {
        printer.line(format!("  {}", attempt_words(attempt)));
    }
}

fn attempt_words(attempt: &SeenAttempt) -> String {
    let (run, state) = (&attempt.run, attempt.state.label());
    if attempt.waits() {
        return format!("attempt {run} waits for your word: `memrev attempts {run}` shows it");
    }
    let why = reasons(attempt).into_iter().next();
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    let superseded = match &attempt.superseded_by {
        Some(by) => format!(", superseded by {by}"),
        None => String::new(),
    };
    format!("{state} attempt {run}{superseded}{why} (`memrev attempts {run}`)")
}

fn withheld(version: &VersionStatus) -> String {
    match version.withheld {
        0 => "nothing withheld".to_owned(),
        1 => "1 entry or input withheld (`memrev release` shows it)".to_owned(),
        count => format!("{count} entries and inputs withheld (`memrev release` lists them)"),
    }
}

fn print_pending(printer: &Printer, pending: &Pending) {
    if pending.needs_recovery {
        printer.line("  a publication was interrupted; the next pass finishes or undoes it");
    }
    for input in &pending.inputs {
        let again = pending.again.iter().find(|it| it.path == input.path);
        let again = again.map_or_else(String::new, |it| {
            let baseline = it.baseline.short();
            format!(" (again: a reset took back baseline {baseline}, which had it)")
        });
        printer.line(format!(
            "  pending: {} {}{again}",
            letter(input.change),
            input.path
        ));
    }
    for (count, words) in count_left_out(pending).values() {
        printer.line(format!("  {} left out: {words}", counted(*count, "recap")));
    }
    for path in &pending.held_back {
        printer.line(format!("  held back: {path}"));
    }
    for path in &pending.edits {
        printer.line(format!("  edited by hand, not committed yet: {path}"));
    }
    for left in pending
        .left_files
        .iter()
        .filter(|left| !left.reason.is_quiet())
    {
        printer.line(format!("  left alone: {}: {}", left.path, left.reason));
    }
    for unfit in &pending.unfit {
        printer.line(format!("  left alone: {}: {}", unfit.path, unfit.why));
    }
    for complaint in &pending.to_mend {
        printer.line(format!("  [{}] {}", complaint.code, complaint.words));
    }
    for complaint in &pending.yours {
        printer.line(format!(
            "  in your own lines, left as they are: [{}] {}",
            complaint.code, complaint.words
        ));
    }
    for complaint in &pending.complaints {
        printer.line(format!(
            "  to be mended: [{}] {}",
            complaint.code, complaint.words
        ));
    }
}

/// How many recaps the next consolidation leaves out: by a code of the reason,
/// with words and what would change it.
fn count_left_out(pending: &Pending) -> BTreeMap<&'static str, (usize, &'static str)> {
    let mut counts = BTreeMap::new();
    for reason in pending.left_out.values() {
        let (code, words) = match reason {
            // Nothing was found in them; they never take part.
            LeftOut::NoOp => continue,
            LeftOut::Mode(_) => ("mode", "the mode of their sessions (`memrev mode`)"),
            LeftOut::Withheld(_) => ("withheld", "withheld"),
            LeftOut::Unused { .. } => ("unused", "not used for `memories.max_unused_days`"),
            LeftOut::BeyondLimit { .. } => (
                "beyond_limit",
                "beyond `memories.max_raw_memories_for_consolidation`",
            ),
            LeftOut::NotNamed => ("not_named", "not named"),
        };
        counts.entry(code).or_insert((0, words)).0 += 1;
    }
    counts
}

fn letter(change: ChangeKind) -> &'static str {
    match change {
        ChangeKind::Added => "A",
        ChangeKind::Modified => "M",
        ChangeKind::Deleted => "D",
    }
}

fn is_worth_a_line(job: &Job) -> bool {
    !matches!(job.state, JobState::Done { .. })
}

fn job_words(job: &Job) -> String {
    let what = match job.kind {
        JobKind::Extract => format!("extraction of {}", job.key),
        JobKind::Consolidate => "consolidation".to_owned(),
    };
    let error = job
        .last_error
        .map_or_else(String::new, |error| format!(": {}", error.words()));
    match &job.state {
        JobState::Pending => format!("{what} is pending"),
        JobState::Running { until, holder } => {
            format!("{what} is running in {holder}, lease until {until}")
        }
        JobState::Abandoned { holder } => {
            format!("{what} was left by {holder}; the next pass takes it over")
        }
        JobState::Done { .. } => format!("{what} is done"),
        JobState::Waiting { retry_at } => {
            format!(
                "{what} failed{error}; tried again from {retry_at}, {} left",
                counted(
                    usize::try_from(job.retries_left).unwrap_or(usize::MAX),
                    "try",
                )
                .replace("trys", "tries")
            )
        }
        JobState::Exhausted => {
            format!("{what} failed too often{error}; waits for a change of the session")
        }
        JobState::Parked { retry_at } => {
            format!("{what} is parked{error}; looked at again from {retry_at}, or by `memrev run`")
        }
    }
}

fn until(job: &Job) -> Option<String> {
    match &job.state {
        JobState::Running { until, .. } => Some(until.to_string()),
        JobState::Waiting { retry_at } | JobState::Parked { retry_at } => {
            Some(retry_at.to_string())
        }
        JobState::Done { cooldown_until } => cooldown_until.map(|until| until.to_string()),
        JobState::Pending | JobState::Abandoned { .. } | JobState::Exhausted => None,
    }
}

fn as_json(context: &Context, config: &Config, status: &Status) -> StatusJson {
    StatusJson {
        is_on: status.is_on,
        home: context.home.root().display().to_string(),
        sessions: (status.sessions.iter())
            .map(|(code, (count, _))| (*code, *count))
            .collect(),
        unreadable: status.unreadable.clone(),
        versions: status.versions.iter().map(version_json).collect(),
        spend_today: (status.spend_today.iter())
            .map(|spend| SpendJson {
                model: spend.model.clone(),
                calls: spend.calls,
                tokens_in: spend.tokens_in,
                tokens_out: spend.tokens_out,
            })
            .collect(),
        used_up: (status.used_up.iter())
            .map(|limit| UsedUpJson {
                setting: limit.setting,
                used: limit.used,
                most: limit.most,
            })
            .collect(),
        holds: (status.holds.iter())
            .map(|(service, until)| HoldJson {
                service: service.clone(),
                until: until.to_string(),
            })
            .collect(),
        sandbox_notice: programs::notice(context, config),
        next: status.next.clone(),
    }
}

fn version_json(version: &VersionStatus) -> VersionJson {
    let pending = &version.pending;
    let left = pending.left_files.iter().map(|left| LeftJson {
        path: left.path.to_string(),
        reason: left.reason.to_string(),
    });
    let unfit = pending.unfit.iter().map(|unfit| LeftJson {
        path: unfit.path.clone(),
        reason: unfit.why.to_string(),
    });
    VersionJson {
        version: version.version.label(),
        folder: version.folder.display().to_string(),
        problem: version.problem.clone(),
        head: version.head.map(|head| head.to_string()),
        last_baseline_at: (version.last_baseline.as_ref()).map(|baseline| baseline.at.to_string()),
        survival: version.survival.as_ref().map(survival::as_json),
        recaps: version.recaps,
        pending_inputs: (pending.inputs.iter())
            .map(|input| ChangeJson {
                change: letter(input.change),
                path: input.path.to_string(),
            })
            .collect(),
        pending_again: (pending.again.iter())
            .map(|it| it.path.to_string())
            .collect(),
        pending_edits: pending.edits.iter().map(ToString::to_string).collect(),
        left_alone: left.chain(unfit).collect(),
        complaints: words_of(&pending.complaints),
        yours: words_of(&pending.yours),
        to_mend: words_of(&pending.to_mend),
        lost_inputs: (pending.lost.iter())
            .map(|lost| LostJson {
                path: lost.path.to_string(),
                commit: lost.commit.to_string(),
                command: get_back(version, lost),
            })
            .collect(),
        set_aside: (version.set_aside.iter())
            .map(|file| file.display().to_string())
            .collect(),
        recaps_left_out: (count_left_out(pending).into_iter())
            .map(|(code, (count, _))| (code, count))
            .collect(),
        recaps_taken_max: version.recaps_taken_max,
        needs_recovery: pending.needs_recovery,
        jobs: version.jobs.iter().map(job_json).collect(),
        attempts: version.attempts.iter().map(attempt_json).collect(),
        withheld: version.withheld,
    }
}

fn attempt_json(attempt: &SeenAttempt) -> AttemptJson {
    AttemptJson {
        run: attempt.run.to_string(),
        at: attempt.at.to_string(),
        state: attempt.state.label(),
        reasons: reasons(attempt),
        obstacle: attempt.obstacle.as_ref().map(ToString::to_string),
        superseded_by: attempt.superseded_by.as_ref().map(ToString::to_string),
    }
}

/// The command that brings a lost file back, for a shell.
fn get_back(version: &VersionStatus, lost: &LostInput) -> String {
    let folder = quoted(&version.folder.display().to_string());
    let path = quoted(lost.path.as_str());
    format!("git -C {folder} checkout {} -- {path}", lost.commit)
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@".contains(c);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn words_of(complaints: &[Complaint]) -> Vec<String> {
    let words = |it: &Complaint| format!("[{}] {}", it.code, it.words);
    complaints.iter().map(words).collect()
}

fn job_json(job: &Job) -> JobJson {
    JobJson {
        kind: match job.kind {
            JobKind::Extract => "extract",
            JobKind::Consolidate => "consolidate",
        },
        key: job.key.clone(),
        state: job.state.label(),
        until: until(job),
        retries_left: job.retries_left,
        last_error: job.last_error.map(JobError::label),
    }
}
