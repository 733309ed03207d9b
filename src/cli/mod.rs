//! The command line: arguments, one file per command, reports, exit codes.
//!
//! The only module that prints, and the only one that knows all others.

mod args;
mod commands;
mod context;
mod named;
mod pass_json;
mod pass_report;
mod pass_verdict;
mod programs;
mod report;
mod services;
mod survival;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::args::{Cli, Command};
use crate::cli::context::Context;
use crate::cli::report::{Class, Failure, Printer};
use crate::sys::env::Environment;
use crate::sys::program::{CONFINE, SUPERVISE};
use crate::sys::supervise;

/// Parses the arguments, runs the command, says what went wrong.
pub(crate) fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(name) if name == SUPERVISE => return supervise::supervise(),
        Some(name) if name == CONFINE => return supervise::confine(arguments),
        _ => {}
    }
    let printer = Printer;
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let outcome = Environment::read()
        .map_err(|error| Failure::refused(&error).hint("set HOME or MEMREV_HOME"))
        .and_then(|environment| run(&cli, environment));
    printer.end(outcome)
}

fn run(cli: &Cli, environment: Environment) -> Result<(), Failure> {
    start_log(environment.log.as_deref());
    let context = Context::new(environment);
    match &cli.command {
        Command::Init(args) => commands::init::run(&context, args),
        Command::Run(args) => commands::run::run(&context, args),
        Command::Extract(args) => commands::extract::run(&context, args),
        Command::Consolidate(args) => commands::consolidate::run(&context, args),
        Command::Status(args) => commands::status::run(&context, args),
        Command::Sessions(args) => commands::sessions::run(&context, args),
        Command::Note(args) => commands::note::run(&context, args),
        Command::Forget(args) => commands::forget::run(&context, args),
        Command::Purge(args) => commands::purge::run(&context, args),
        Command::Log(args) => commands::log::run(&context, args),
        Command::Show(args) => commands::show::run(&context, args),
        Command::Diff(args) => commands::diff::run(&context, args),
        Command::Why(args) => commands::why::run(&context, args),
        Command::Revert(args) => commands::revert::run(&context, args),
        Command::Release(args) => commands::release::run(&context, args),
        Command::Attempts(args) => commands::attempts::run(&context, args),
        Command::Accept(args) => commands::decide::accept(&context, args),
        Command::Reject(args) => commands::decide::reject(&context, args),
        Command::Check(args) => commands::check::run(&context, args),
        Command::Inject(args) => commands::inject::run(&context, args),
        Command::Config(args) => commands::config::run(&context, args),
        Command::Mode(args) => commands::mode::run(&context, args),
        Command::Reset(args) => commands::reset::run(&context, args),
        Command::Demo(args) => commands::demo::run(&context, args),
    }
}

/// Events for developers, to stderr, when `MEMREV_LOG` names a level.
fn start_log(level: Option<&str>) {
    let Some(level) = level.and_then(|level| level.parse::<tracing::Level>().ok()) else {
        return;
    };
    // A second start in one process (tests) keeps the first one's settings.
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init()
        .ok();
}

/// Help and version are data and no mistake; everything else is usage.
fn usage(error: &clap::Error) -> ExitCode {
    error.print().ok();
    if error.use_stderr() {
        ExitCode::from(Class::Usage.exit_code())
    } else {
        ExitCode::SUCCESS
    }
}
