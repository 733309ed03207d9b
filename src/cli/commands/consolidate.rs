//! `memrev consolidate`: fold what is pending into the memory files.

use crate::cli::args::ConsolidateArgs;
use crate::cli::commands::status;
use crate::cli::context::Context;
use crate::cli::pass_report;
use crate::cli::report::Failure;
use crate::service::choice::PassRequest;
use crate::service::pass::Stages;

pub(crate) fn run(context: &Context, args: &ConsolidateArgs) -> Result<(), Failure> {
    let config = context.config_when_on()?;
    if args.dry_run {
        status::print_pending_of(context, &config, args.json)?;
        context.printer.say("dry run: nothing was written");
        return Ok(());
    }
    let request = PassRequest {
        is_by_hand: true,
        review: args.review,
        ..PassRequest::default()
    };
    pass_report::run_and_report(
        context,
        &config,
        Stages::ConsolidateOnly,
        &request,
        args.json,
    )
}
