//! `memrev inject`: the memory that a new session is given.
//!
//! Whatever goes wrong, the caller is an agent that has to go on: nothing is
//! printed, the exit code is 0, and the reason goes to `log/inject.log`.

use serde::Serialize;

use crate::cli::args::InjectArgs;
use crate::cli::context::Context;
use crate::cli::report::Failure;
use crate::config::{Config, Scope as ConfigScope};
use crate::domain::path::SUMMARY;
use crate::recall::inject::{self, Injection, Request};
use crate::recall::scope::Scope;
use crate::sys::fs;
use crate::sys::project;
use crate::text::redact;

/// Largest summary file that is read at all, in bytes.
const SUMMARY_FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The log starts anew beyond this many bytes.
const LOG_BYTES_MAX: u64 = 64 * 1024;

#[derive(Serialize)]
struct InjectionJson<'a> {
    version: &'static str,
    text: &'a str,
    fragments: Vec<&'a str>,
    left_out: &'a [String],
}

/// Never fails: see the module's header.
pub(crate) fn run(context: &Context, args: &InjectArgs) -> Result<(), Failure> {
    let config = match context.config() {
        Ok(config) => config,
        Err(failure) => {
            log(context, &failure.to_string());
            return Ok(());
        }
    };
    // A worker of ours gets no memory: it would read its own output.
    if context.environment.is_worker || !config.features.memories || !config.memories.use_memories {
        return Ok(());
    }
    match injection(context, &config) {
        Ok(Some(injection)) if args.json => context.printer.json(&InjectionJson {
            version: config.memories.version.label(),
            text: injection.text.as_str(),
            fragments: injection.fragments(),
            left_out: &injection.left_out,
        }),
        Ok(Some(injection)) => {
            context.printer.raw(injection.text.as_str());
            Ok(())
        }
        Ok(None) => Ok(()),
        Err(reason) => {
            log(context, &reason);
            Ok(())
        }
    }
}

fn injection(context: &Context, config: &Config) -> Result<Option<Injection>, String> {
    let current = project::identify(&context.environment.current_dir, None);
    let cwd = context.environment.current_dir.to_string_lossy();
    if (config.sessions).is_project_disabled(Some(&cwd), Some(current.as_str())) {
        return Ok(None);
    }
    let version = config.memories.version;
    let folder = context.home.memory_folder(version);
    let summary = fs::read_text_if_any(&folder.join(SUMMARY), SUMMARY_FILE_BYTES_MAX)
        .map_err(|error| format!("{error}: {}", error.source))?;
    let Some(summary) = summary else {
        return Ok(None);
    };
    inject::render(&Request {
        version,
        folder: &folder.to_string_lossy(),
        summary: &summary,
        scope: match config.inject.scope {
            ConfigScope::All => Scope::All,
            ConfigScope::Ranked => Scope::Ranked,
            ConfigScope::Project => Scope::Project,
        },
        project: Some(&current),
    })
    .map_err(|error| format!("could not render the lookup prompt: {error}"))
}

/// Keeps the reason. That this may fail too is the one thing nobody is told:
/// there is nowhere left to say it.
fn log(context: &Context, reason: &str) {
    let folder = context.home.log();
    let file = folder.join("inject.log");
    let before = fs::read_text_if_any(&file, LOG_BYTES_MAX).ok().flatten();
    let line = format!("{} {}\n", context.now(), reason.trim().replace('\n', " | "));
    let text = redact::redact_str(&format!("{}{line}", before.unwrap_or_default()));
    if context.home.root().is_dir() && fs::make_folders(&folder).is_ok() {
        fs::replace(&file, text.as_str().as_bytes()).ok();
    }
}
