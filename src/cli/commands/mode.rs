//! `memrev mode`: whether a session may feed memory.

use serde::Serialize;

use crate::cli::args::ModeArgs;
use crate::cli::context::Context;
use crate::cli::report::{Class, Failure};
use crate::config::Config;
use crate::config::modes::{self, ModeEntry, SetBy};
use crate::domain::id::ThreadId;
use crate::domain::session::MemoryMode;
use crate::domain::version::MemoryVersion;
use crate::recaps::Extractions;
use crate::service::survey;

#[derive(Serialize)]
struct ModeJson<'a> {
    thread_id: &'a str,
    mode: &'static str,
    was: Option<&'static str>,
    written: bool,
}

pub(crate) fn run(context: &Context, args: &ModeArgs) -> Result<(), Failure> {
    let config = context.config_when_on()?;
    let thread_id = ThreadId::parse(&args.thread_id).ok_or_else(|| {
        let message = format!("`{}` cannot be the id of a session", args.thread_id);
        Failure::new(Class::Usage, message).hint("`memrev sessions` lists them")
    })?;
    let home = context.home.root();
    let present = modes::load(home).map_err(|error| Failure::refused(&error))?;
    let was = present.get(&thread_id).map(|entry| entry.mode);
    let wanted = args.mode.as_deref().map(parse_mode).transpose()?;
    if was.is_none() && wanted.is_some() {
        known(context, &config, &thread_id)?;
    }
    let written = wanted.is_some() && !args.dry_run;
    if let Some(mode) = wanted.filter(|_| written) {
        let entry = ModeEntry {
            mode,
            by: SetBy::Person,
            at: Some(context.now()),
        };
        modes::update(home, |modes| modes.set(thread_id.clone(), entry))
            .map_err(|error| Failure::refused(&error))?;
    }
    let mode = wanted.or(was).unwrap_or_default();
    if args.json {
        return context.printer.json(&ModeJson {
            thread_id: thread_id.as_str(),
            mode: mode.label(),
            was: was.map(MemoryMode::label),
            written,
        });
    }
    context
        .printer
        .line(format!("{thread_id} {}", mode.label()));
    if wanted.is_some() && args.dry_run {
        context.printer.say("dry run: nothing was written");
    } else if written {
        context.printer.say("takes effect with the next pass");
    }
    Ok(())
}

/// A mode for a session that nobody has seen would hide a typing mistake.
fn known(context: &Context, config: &Config, thread_id: &ThreadId) -> Result<(), Failure> {
    let survey =
        survey::look(&context.survey_parts(config)).map_err(|error| Failure::refused(&error))?;
    let is_found = survey
        .sessions()
        .any(|(head, _)| head.thread_id == *thread_id);
    let has_recap = MemoryVersion::ALL.into_iter().any(|version| {
        let loaded = Extractions::open(context.home.root(), version).load_all();
        loaded.is_ok_and(|loaded| loaded.recaps.contains_key(thread_id))
    });
    if is_found || has_recap {
        return Ok(());
    }
    Err(
        Failure::new(Class::Refused, format!("there is no session `{thread_id}`"))
            .hint("`memrev sessions` lists them; give the whole id. Nothing was written"),
    )
}

fn parse_mode(label: &str) -> Result<MemoryMode, Failure> {
    MemoryMode::parse(label).ok_or_else(|| {
        Failure::new(Class::Usage, format!("there is no mode `{label}`"))
            .hint("the modes are `enabled`, `disabled` and `polluted`")
    })
}
