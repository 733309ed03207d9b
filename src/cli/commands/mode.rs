//! `memrev mode`: whether a session may feed memory.

use serde::Serialize;

use crate::cli::args::ModeArgs;
use crate::cli::context::Context;
use crate::cli::named;
use crate::cli::report::{Class, Failure};
use crate::config::modes::{self, ModeEntry, SetBy};
use crate::domain::session::MemoryMode;

#[derive(Serialize)]
struct ModeJson<'a> {
    thread_id: &'a str,
    mode: &'static str,
    was: Option<&'static str>,
    written: bool,
}

pub(crate) fn run(context: &Context, args: &ModeArgs) -> Result<(), Failure> {
    let config = context.config_when_on()?;
    let wanted = args.mode.as_deref().map(parse_mode).transpose()?;
    let home = context.home.root();
    let present = modes::load(home).map_err(|error| Failure::refused(&error))?;
    // One that was given a mode may be gone since. A mode for a session that
    // nobody has seen would hide a typing mistake.
    let whole = named::thread_id(&args.thread_id)?;
    let thread_id = match present.get(&whole) {
        Some(_) => whole,
        None => named::session_or_recap(context, &config, &args.thread_id)?,
    };
    let was = present.get(&thread_id).map(|entry| entry.mode);
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

fn parse_mode(label: &str) -> Result<MemoryMode, Failure> {
    MemoryMode::parse(label).ok_or_else(|| {
        Failure::new(Class::Usage, format!("there is no mode `{label}`"))
            .hint("the modes are `enabled`, `disabled` and `polluted`")
    })
}
