//! Programs as back ends, from what the configuration says of them.

use std::path::{Path, PathBuf};

use crate::cli::context::Context;
use crate::cli::report::{Class, Failure};
use crate::config::{Config, Sandbox};
use crate::model::command::{Command, CommandSettings, Fence, Preset};
use crate::sys::fs;
use crate::sys::program;

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
        staging: context.home.staging(),
        call_seconds_max: config.model.call_seconds_max,
        worker_seconds_max: config.worker.seconds_max,
    }))
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
