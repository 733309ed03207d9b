//! `memrev note`: ask memory to remember, correct or forget something.
//!
//! Takes no lock and no lease: a note is one new file.

use std::io::Read as _;

use serde::Serialize;

use crate::cli::args::NoteArgs;
use crate::cli::context::Context;
use crate::cli::report::{Class, Failure};
use crate::domain::note::NoteKind;
use crate::domain::path::NOTES;
use crate::sys::fs;
use crate::text::note as note_text;
use crate::text::redact;

/// Largest note that is taken, in bytes.
const NOTE_BYTES_MAX: u64 = 64 * 1024;

/// Names tried when several notes are written in the same second.
const NAMES_MAX: usize = 1_000;

/// How the tags of redaction begin.
const TAG_OPEN: &str = "[redacted:";

#[derive(Serialize)]
struct NoteJson {
    path: String,
    written: bool,
}

pub(crate) fn run(context: &Context, args: &NoteArgs) -> Result<(), Failure> {
    let config = context.config_when_on()?;
    let version = config.memories.version;
    context.store(version)?;
    let words = words(&args.text)?;
    let kind = match (args.remember, args.correct, args.forget) {
        (true, _, _) => Some(NoteKind::Remember),
        (_, true, _) => Some(NoteKind::Correct),
        (_, _, true) => Some(NoteKind::Forget),
        _ => None,
    };
    // Redacted before anything is made of it, the file's name included.
    let words = redact::redact_str(&words);
    let text = redact::redact_str(&note_text::print(kind, words.as_str()));
    let folder = context.home.memory_folder(version).join(NOTES);
    let names: Vec<String> = match &args.name {
        Some(name) => vec![own_name(name)?],
        None => note_text::file_names(context.now(), &title(words.as_str()))
            .take(NAMES_MAX)
            .collect(),
    };
    let mut path = None;
    for name in names {
        let candidate = folder.join(name);
        let is_ours = args.dry_run
            || fs::make_folders(&folder)
                .and_then(|()| fs::create_new(&candidate, text.as_str().as_bytes()))
                .map_err(|error| Failure::refused(&error))?;
        if is_ours {
            path = Some(candidate);
            break;
        }
    }
    let path = path.ok_or_else(|| match &args.name {
        Some(name) => Failure::new(Class::Refused, format!("the note `{name}` already exists"))
            .hint("choose another name; nothing was written"),
        None => Failure::new(
            Class::Refused,
            "too many notes of the same name in one second",
        )
        .hint("try again in a second; nothing was written"),
    })?;
    let path = path.display().to_string();
    if args.json {
        let written = !args.dry_run;
        return context.printer.json(&NoteJson { path, written });
    }
    context.printer.line(path);
    if text.as_str().contains(TAG_OPEN) {
        context.printer.warn("a secret in the note was taken out");
    }
    if !args.dry_run {
        context.printer.say("the next pass folds it in");
    }
    Ok(())
}

/// What a file may be named after: the words without what stands for secrets.
fn title(words: &str) -> String {
    let plain = words
        .split(TAG_OPEN)
        .enumerate()
        .map(|(index, part)| match index {
            0 => part,
            _ => part.split_once(']').map_or(part, |(_, rest)| rest),
        });
    plain.collect::<Vec<_>>().join(" ")
}

fn own_name(name: &str) -> Result<String, Failure> {
    note_text::check_file_name(name).map_err(|error| {
        Failure::of(Class::Usage, &error).cause(format!("the name is `{name}`"))
    })?;
    Ok(name.to_owned())
}

fn words(text: &str) -> Result<String, Failure> {
    let mut words = text.to_owned();
    if text == "-" {
        words.clear();
        std::io::stdin()
            .take(NOTE_BYTES_MAX + 1)
            .read_to_string(&mut words)
            .map_err(|error| Failure::of(Class::Refused, &error).cause("while reading the note"))?;
    }
    if words.trim().is_empty() {
        return Err(Failure::new(Class::Usage, "the note is empty"));
    }
    if NOTE_BYTES_MAX < words.len() as u64 {
        let message = format!("the note has more than {NOTE_BYTES_MAX} bytes");
        return Err(Failure::new(Class::Refused, message));
    }
    Ok(words)
}
