//! `memrev run`: one pass now.

use crate::cli::args::{RunArgs, SessionChoice};
use crate::cli::commands::sessions;
use crate::cli::context::{Context, versions};
use crate::cli::named;
use crate::cli::pass_report;
use crate::cli::report::{Class, Failure, counted};
use crate::config::Config;
use crate::domain::time::Timestamp;
use crate::service::choice::{Choice, PassRequest};
use crate::service::pass::Stages;
use crate::service::status;

pub(crate) fn run(context: &Context, args: &RunArgs) -> Result<(), Failure> {
    let config = context.config_when_on()?;
    if args.background && context.environment.is_worker {
        context
            .printer
            .say("nothing to do: a worker of memrev starts no pass");
        return Ok(());
    }
    let request = PassRequest {
        is_by_hand: !args.background,
        choice: choice(context, &config, &args.choice)?,
        review: args.review,
        calls_max: args.max_calls.map(u64::from),
        current: (args.current_session.as_deref())
            .map(named::thread_id)
            .transpose()?,
    };
    if args.dry_run {
        return dry_run(context, &config, request, args.json);
    }
    pass_report::run_and_report(context, &config, Stages::Both, &request, args.json)
}

fn dry_run(
    context: &Context,
    config: &Config,
    request: PassRequest,
    as_json: bool,
) -> Result<(), Failure> {
    let mut parts = context.survey_parts(config);
    parts.request = request;
    sessions::print(context, &parts, true, as_json)?;
    let status =
        status::gather(&parts, &versions(config)).map_err(|error| Failure::refused(&error))?;
    for version in &status.versions {
        let inputs = counted(version.pending.inputs.len(), "input");
        let edits = counted(version.pending.edits.len(), "hand edit");
        context
            .printer
            .say(format!("{}: {inputs} and {edits} pending", version.version));
    }
    context.printer.say("dry run: nothing was written");
    Ok(())
}

/// The person's words about sessions.
pub(crate) fn choice(
    context: &Context,
    config: &Config,
    args: &SessionChoice,
) -> Result<Choice, Failure> {
    if args.all {
        return Ok(Choice::All);
    }
    if let Some(age) = &args.since {
        let days = age_days(age).ok_or_else(|| {
            Failure::new(Class::Usage, format!("`{age}` is no age"))
                .hint("an age is a number of days or weeks, such as `90d` or `2w`")
        })?;
        return Ok(Choice::Since { days });
    }
    if args.sessions.is_empty() {
        return Ok(Choice::Eligible);
    }
    let named = named::sessions(context, config, &args.sessions)?;
    Ok(Choice::Named(named))
}

/// A date (`2026-03-01`), a moment, or an age (`30d`) before `now`.
pub(crate) fn moment(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    const DAY_SECONDS: i64 = 86_400;
    let age = age_days(text).and_then(|days| days.checked_mul(DAY_SECONDS));
    age.map(|seconds| now.plus_seconds(-seconds))
        .or_else(|| Timestamp::parse_rfc3339(text))
        .or_else(|| Timestamp::parse_rfc3339(&format!("{text}T00:00:00Z")))
        .ok_or_else(|| {
            Failure::new(Class::Usage, format!("`{text}` is no date and no age"))
                .hint("a date is `2026-03-01`, an age a number of days or weeks, such as `90d`")
        })
}

fn age_days(age: &str) -> Option<i64> {
    let (number, days_each) = match age.strip_suffix('w') {
        Some(number) => (number, 7),
        None => (age.strip_suffix('d')?, 1),
    };
    let number: i64 = number.parse().ok()?;
    number.checked_mul(days_each).filter(|days| 0 <= *days)
}
