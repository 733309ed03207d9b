//! Programs as back ends, from what the configuration says of them.

use std::path::{Path, PathBuf};

use crate::cli::context::Context;
use crate::cli::report::{Class, Failure};
use crate::config::{Backend, Config, Sandbox};
use crate::model::command::{Command, CommandSettings, Fence, Preset};
use crate::sys::fs;
use crate::sys::program;
use crate::sys::walls::Support;

/// The back end that runs a program.
pub(crate) fn command(
    context: &Context,
    config: &Config,
    preset: Preset,
    model: Option<&str>,
) -> Result<Command, Failure> {
    let (name, arguments) = match (config.model.command.split_first(), preset) {
        (Some((name, arguments)), _) => (name.as_str(), arguments.to_vec()),
        (None, Preset::Plain) => {
            let message = "the back end `command` has no program";
            return Err(Failure::new(Class::Refused, message)
                .hint("name it: `command = [\"/path/to/program\"]` under `[model]`"));
        }
        (None, preset) => (preset.label(), Vec::new()),
    };
    let environment = &context.environment;
    let file = find(context, name).ok_or_else(|| {
        let message = format!("there is no program `{name}`");
        Failure::new(Class::Refused, message)
            .hint("install it, or set `command = [\"/path/to/it\"]` under `[model]`")
    })?;
    Ok(Command::new(CommandSettings {
        preset,
        file,
        arguments,
        variables: environment
            .variables
            .for_program(&config.model.command_variables),
        model: model.map(str::to_owned),
        fence: fence(context, config, preset),
        support: environment.walls_support(),
        staging: context.home.staging(),
        call_seconds_max: config.model.call_seconds_max,
        worker_seconds_max: config.worker.seconds_max,
    }))
}

/// What a person has to know about the walls around a program, if there is
/// anything: that they are not kept.
pub(crate) fn notice(context: &Context, config: &Config) -> Option<&'static str> {
    let worker = config.worker.kind.unwrap_or(config.model.backend);
    let is_program =
        |backend| matches!(backend, Backend::Codex | Backend::Claude | Backend::Command);
    let runs_one = is_program(worker) || is_program(config.model.backend);
    match (config.worker.sandbox, context.environment.walls_support()) {
        _ if !runs_one => None,
        (Sandbox::External, _) => Some(
            "`worker.sandbox` is `external`: nothing of memrev's keeps the model's program from writing elsewhere",
        ),
        (_, Support::Full) => None,
        (_, Support::Partial) => Some(
            "this kernel keeps the model's program from writing elsewhere only in part; its own sandbox is not used",
        ),
        (_, Support::None) => Some(
            "this system cannot keep the model's program from writing elsewhere; only its own sandbox does, if it has one",
        ),
    }
}

fn find(context: &Context, name: &str) -> Option<PathBuf> {
    let environment = &context.environment;
    match name.strip_prefix("~/") {
        Some(below) => Some(environment.user_home.join(below)).filter(|file| fs::can_execute(file)),
        None => program::find(name, environment.variables.search_path()),
    }
}

fn fence(context: &Context, config: &Config, preset: Preset) -> Fence {
    let required = match config.worker.sandbox {
        Sandbox::External => return Fence::External,
        Sandbox::Required => true,
        Sandbox::Auto => false,
    };
    let writable = config.worker.writable.clone();
    let writable = writable.unwrap_or_else(|| needed(context, preset));
    Fence::Walls { writable, required }
}

/// Where these programs keep their login, which they renew, and their state.
fn needed(context: &Context, preset: Preset) -> Vec<PathBuf> {
    let environment = &context.environment;
    let in_home = |name: &str| environment.user_home.join(name);
    match preset {
        Preset::Codex => vec![environment.codex_home.clone()],
        Preset::Claude => {
            let file = |folder: &Path| folder.join(".claude.json");
            vec![
                environment.claude_home.clone(),
                file(&environment.user_home),
                in_home(".cache/claude-cli-nodejs"),
            ]
        }
        Preset::Plain => Vec::new(),
    }
}
