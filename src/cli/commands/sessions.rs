//! `memrev sessions`: what was found, and why each is or is not read.

use serde::Serialize;

use crate::cli::args::SessionsArgs;
use crate::cli::context::Context;
use crate::cli::report::{Failure, columns, counted};
use crate::domain::session::SessionHead;
use crate::domain::time::Timestamp;
use crate::extract::select::Reason;
use crate::ledger::{Job, JobError, JobState};
use crate::service::survey::{self, Survey, SurveyParts};
use crate::text::redact;
use crate::text::terminal;

#[derive(Serialize)]
struct SessionJson {
    thread_id: String,
    agent: &'static str,
    updated_at: String,
    project: Option<String>,
    cwd: Option<String>,
    git_branch: Option<String>,
    source: String,
    rollout_path: String,
    /// `eligible`, or `left_out` with a reason.
    state: &'static str,
    reason: Option<&'static str>,
    reason_text: Option<String>,
    /// The failure for which passes in the background leave it alone now.
    failed: Option<FailedJson>,
}

#[derive(Serialize)]
struct FailedJson {
    error: Option<&'static str>,
    /// `None`: not before the session changes.
    retry_at: Option<String>,
}

pub(crate) fn run(context: &Context, args: &SessionsArgs) -> Result<(), Failure> {
    let config = context.config()?;
    print(
        context,
        &context.survey_parts(&config),
        args.eligible,
        args.json,
    )
}

/// Lists the sessions that `parts` reach.
pub(crate) fn print(
    context: &Context,
    parts: &SurveyParts<'_>,
    only_eligible: bool,
    as_json: bool,
) -> Result<(), Failure> {
    let survey = survey::look(parts).map_err(|error| Failure::refused(&error))?;
    let listed: Vec<(&SessionHead, Option<&Reason>)> = survey
        .sessions()
        .filter(|(_, reason)| !only_eligible || reason.is_none())
        .collect();
    if as_json {
        let sessions: Vec<SessionJson> = (listed.iter())
            .map(|(head, reason)| session_json(head, *reason, survey.waiting(head, parts.now)))
            .collect();
        return context.printer.json(&sessions);
    }
    let rows: Vec<Vec<String>> = (listed.iter())
        .map(|(head, reason)| as_row(head, *reason, survey.waiting(head, parts.now)))
        .collect();
    context.printer.raw(&columns(&rows));
    say_rest(context, &survey, listed.len());
    Ok(())
}

fn say_rest(context: &Context, survey: &Survey, listed: usize) {
    let printer = &context.printer;
    for (path, error) in &survey.unreadable {
        printer.warn(format!("{}: {error}", path.display()));
    }
    for skipped in &survey.skipped {
        printer.say(format!(
            "not a transcript: {}: {}",
            skipped.path, skipped.reason
        ));
    }
    let total = survey.sessions().count();
    let eligible = survey
        .sessions()
        .filter(|(_, reason)| reason.is_none())
        .count();
    if total == 0 {
        printer.say("no sessions");
        for root in &survey.roots {
            printer.say(format!("looked in {}", root.display()));
        }
    } else if listed == 0 {
        printer.say(format!(
            "{}, none eligible; `memrev sessions` says why",
            counted(total, "session")
        ));
    } else {
        printer.say(format!(
            "{}, {eligible} eligible",
            counted(total, "session")
        ));
    }
}

fn as_row(head: &SessionHead, reason: Option<&Reason>, waiting: Option<&Job>) -> Vec<String> {
    let project = head.project.as_ref().map_or("-", |project| project.name());
    let state = match (reason, waiting) {
        (Some(reason), _) => reason.to_string(),
        (None, None) => "eligible".to_owned(),
        (None, Some(job)) => waiting_words(job),
    };
    vec![
        head.thread_id.to_string(),
        head.agent.to_string(),
        head.updated_at.date(),
        cell(project),
        redact::redact_str(&state).into_string(),
    ]
}

/// Who asks by hand gets it tried at once.
fn waiting_words(job: &Job) -> String {
    let error = job.last_error.map_or("it failed", JobError::words);
    match retry_at(job) {
        Some(at) => {
            format!("eligible by hand; in the background it is tried again from {at}: {error}")
        }
        None => format!(
            "eligible by hand; in the background it waits for a change, it failed too often: {error}"
        ),
    }
}

fn retry_at(job: &Job) -> Option<Timestamp> {
    match &job.state {
        JobState::Waiting { retry_at } => Some(*retry_at),
        _ => None,
    }
}

/// One line of a table: nothing foreign may break or fake a row.
fn cell(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 40;
    let line = terminal::safe_line(redact::redact_str(text).as_str());
    match line.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn session_json(head: &SessionHead, reason: Option<&Reason>, waiting: Option<&Job>) -> SessionJson {
    let redacted = |text: &str| redact::redact_str(text).into_string();
    SessionJson {
        thread_id: head.thread_id.to_string(),
        agent: head.agent.label(),
        updated_at: head.updated_at.to_string(),
        project: (head.project.as_ref()).map(|project| redacted(project.as_str())),
        cwd: (head.cwd.as_ref()).map(|cwd| redact::redact(cwd).into_string()),
        git_branch: (head.git_branch.as_ref()).map(|branch| redact::redact(branch).into_string()),
        source: redacted(head.source.label()),
        rollout_path: redacted(&head.rollout_path.to_string_lossy()),
        state: if reason.is_none() {
            "eligible"
        } else {
            "left_out"
        },
        reason: reason.map(Reason::code),
        reason_text: reason.map(|reason| redacted(&reason.to_string())),
        failed: waiting.map(|job| FailedJson {
            error: job.last_error.map(JobError::label),
            retry_at: retry_at(job).map(|at| at.to_string()),
        }),
    }
}
