//! `memrev extract`: recaps of eligible sessions, without folding them in.

use crate::cli::args::ExtractArgs;
use crate::cli::commands::run::choice;
use crate::cli::context::Context;
use crate::cli::pass_report;
use crate::cli::report::Failure;
use crate::config::Config;
use crate::extract::run::preview;
use crate::service::choice::PassRequest;
use crate::service::pass::Stages;
use crate::service::survey;

pub(crate) fn run(context: &Context, args: &ExtractArgs) -> Result<(), Failure> {
    let config = context.config_when_on()?;
    let request = PassRequest {
        is_by_hand: true,
        review: false,
        choice: choice(context, &config, &args.choice)?,
        calls_max: args.max_calls.map(u64::from),
        current: None,
    };
    if args.dry_run {
        return print_prompts(context, &config, request);
    }
    pass_report::run_and_report(context, &config, Stages::ExtractOnly, &request, args.json)
}

/// Prints what a model would be asked about each session.
fn print_prompts(context: &Context, config: &Config, request: PassRequest) -> Result<(), Failure> {
    let version = config.memories.version;
    let mut parts = context.survey_parts(config);
    parts.request = request;
    let survey = survey::look(&parts).map_err(|error| Failure::refused(&error))?;
    let template =
        survey::template(&context.home, version).map_err(|error| Failure::refused(&error))?;
    let model = context.extract_model(config)?;
    let mut shown = 0;
    for found in survey.eligible() {
        let messages = match preview(found, version, &template, model.as_ref()) {
            Ok(messages) => messages,
            Err(error) => {
                context.printer.warn(error.to_string());
                continue;
            }
        };
        context
            .printer
            .say(format!("prompt for {}:", found.path.display()));
        for message in messages {
            context.printer.line(message.as_str());
        }
        shown += 1;
    }
    context.printer.say(format!(
        "dry run: {shown} prompts, nothing was asked or written"
    ));
    Ok(())
}
