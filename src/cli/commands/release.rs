//! `memrev release`: what is withheld, and letting it in again.

use serde::Serialize;

use crate::cli::args::ReleaseArgs;
use crate::cli::context::{Context, consolidate_failure, desk_failure, revision_failure};
use crate::cli::report::{Class, Failure};
use crate::domain::withheld::{Withheld, WithheldWhat};
use crate::history::release::{self, Held, ReleaseError, ReleaseParts, ReleaseRequest, Released};
use crate::service::desk::Desk;
use crate::service::survey;
use crate::text::redact;
use crate::text::terminal;

#[derive(Serialize)]
struct ReleaseJson {
    written: bool,
    /// What is withheld, when nothing was named.
    withheld: Vec<HeldJson>,
    released: Vec<HeldJson>,
    commits: Vec<String>,
}

#[derive(Serialize)]
struct HeldJson {
    id: String,
    reason: &'static str,
    since: String,
    what: &'static str,
    thread_id: Option<String>,
    until: Option<String>,
    path: Option<String>,
    blob: Option<String>,
    /// Of an entry, as far as the history still has it.
    text: Option<String>,
    found_in: Option<String>,
}

pub(crate) fn run(context: &Context, args: &ReleaseArgs) -> Result<(), Failure> {
    let config = if args.names.is_empty() && args.all_of.is_none() {
        context.config()?
    } else {
        context.config_when_on()?
    };
    let survey_parts = context.survey_parts(&config);
    let survey = survey::look(&survey_parts).map_err(|error| Failure::refused(&error))?;
    let desks = Desk::open_all(&survey_parts, &survey).map_err(|error| desk_failure(&error))?;
    let places: Vec<_> = (desks.iter())
        .map(|desk| desk.place(&context.home, context.now()))
        .collect();
    let selected = (places.iter()).find(|place| place.version == config.memories.version);
    let Some(selected) = selected else {
        return Err(
            Failure::new(Class::Refused, "there is no memory folder yet").hint("run `memrev init`"),
        );
    };
    let request = ReleaseRequest {
        names: args.names.clone(),
        all_of: args.all_of.clone(),
    };
    if request.names.is_empty() && request.all_of.is_none() {
        let held = release::list(&places).map_err(|error| failure(&error))?;
        return print_list(context, args, &held);
    }
    let person = context.person();
    let parts = ReleaseParts {
        places: &places,
        selected,
        ids: &context.ids,
        person: &person,
    };
    let released = if args.dry_run {
        release::look(&places, selected, &request)
    } else {
        release::run(&parts, &request)
    };
    let released = released.map_err(|error| failure(&error))?;
    print_released(context, args, &released)
}

fn print_list(context: &Context, args: &ReleaseArgs, held: &[Held]) -> Result<(), Failure> {
    let printer = &context.printer;
    if args.json {
        return printer.json(&ReleaseJson {
            written: false,
            withheld: held.iter().map(held_json).collect(),
            released: Vec::new(),
            commits: Vec::new(),
        });
    }
    for it in held {
        let Withheld {
            id, reason, since, ..
        } = &it.withheld;
        printer.line(format!("{id}  {}  {since}", reason.label()));
        printer.line(format!("    {}", what_in_words(&it.withheld.what)));
        if let Some(words) = &it.words {
            let text = redact::redact(&words.text);
            let text = terminal::safe_line(text.as_str());
            printer.line(format!("    {}: {text}", words.path));
        }
    }
    if held.is_empty() {
        printer.say("nothing is withheld");
    } else {
        printer.hint(
            "`memrev release ID` lets one in again, `--all-of COMMIT` all that a revert holds back",
        );
    }
    Ok(())
}

fn what_in_words(what: &WithheldWhat) -> String {
    match what {
        WithheldWhat::Input { path, blob } => {
            format!("input {path}, version {}", blob.short())
        }
        WithheldWhat::Thread { thread_id, until } => {
            format!("session {thread_id}, up to {until}")
        }
        WithheldWhat::Entry(_) => "an entry; its words are not kept".to_owned(),
    }
}

fn print_released(
    context: &Context,
    args: &ReleaseArgs,
    released: &Released,
) -> Result<(), Failure> {
    let printer = &context.printer;
    let written = !args.dry_run;
    if args.json {
        let held = |withheld: &Withheld| {
            held_json(&Held {
                withheld: withheld.clone(),
                words: None,
            })
        };
        return printer.json(&ReleaseJson {
            written,
            withheld: Vec::new(),
            released: released.all.iter().map(held).collect(),
            commits: released.commits.iter().map(ToString::to_string).collect(),
        });
    }
    let verb = if written { "released" } else { "would release" };
    for it in &released.all {
        printer.line(format!("{verb} {}: {}", it.id, what_in_words(&it.what)));
    }
    if written {
        printer.hint("`memrev run` takes in what is pending now");
    } else {
        printer.say("dry run: nothing was written");
    }
    Ok(())
}

fn held_json(held: &Held) -> HeldJson {
    let Withheld {
        id,
        reason,
        since,
        what,
    } = &held.withheld;
    let (mut thread, mut until, mut input, mut version) = (None, None, None, None);
    let what = match what {
        WithheldWhat::Input { path, blob } => {
            input = Some(path.to_string());
            version = Some(blob.to_string());
            "input"
        }
        WithheldWhat::Thread {
            thread_id,
            until: end,
        } => {
            thread = Some(thread_id.to_string());
            until = Some(end.to_string());
            "session"
        }
        WithheldWhat::Entry(_) => {
            input = held.words.as_ref().map(|words| words.path.to_string());
            "entry"
        }
    };
    let words = held.words.as_ref();
    HeldJson {
        id: id.clone(),
        reason: reason.label(),
        since: since.to_string(),
        what,
        thread_id: thread,
        until,
        path: input,
        blob: version,
        text: words.map(|words| redact::redact(&words.text).into_string()),
        found_in: words.map(|words| words.commit.to_string()),
    }
}

fn failure(error: &ReleaseError) -> Failure {
    match error {
        ReleaseError::Revision(error) => revision_failure(error),
        ReleaseError::Consolidate(error) => consolidate_failure(error),
        ReleaseError::Unknown { .. } | ReleaseError::Ambiguous { .. } => Failure::refused(error)
            .hint("`memrev release` lists what is withheld, with ids; nothing was written"),
        ReleaseError::NothingOf { .. } => Failure::refused(error)
            .hint("name a revert, or the baseline that was taken back; nothing was written"),
        ReleaseError::Withheld(_) | ReleaseError::Copy(_) => {
            Failure::refused(error).hint("run it again; what was released stays released")
        }
    }
}
