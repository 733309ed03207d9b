//! `memrev config`: every setting, its value and where it comes from.

use serde::Serialize;

use crate::cli::args::ConfigArgs;
use crate::cli::context::Context;
use crate::cli::report::{Class, Failure, columns};
use crate::config::{self, KeyInfo, Origin};

#[derive(Serialize)]
struct KeyJson<'a> {
    key: &'a str,
    value: &'a str,
    origin: &'static str,
    line: Option<usize>,
    clamped_from: Option<i64>,
    about: &'a str,
}

pub(crate) fn run(context: &Context, args: &ConfigArgs) -> Result<(), Failure> {
    let config = context.config()?;
    let mut keys = config::describe(&config);
    if let Some(wanted) = &args.key {
        keys.retain(|info| info.key == wanted);
        if keys.is_empty() {
            let message = format!("there is no setting `{wanted}`");
            return Err(
                Failure::new(Class::Refused, message).hint("`memrev config` lists all of them")
            );
        }
    }
    if args.json {
        return context
            .printer
            .json(&keys.iter().map(as_json).collect::<Vec<_>>());
    }
    let rows: Vec<Vec<String>> = keys.iter().map(as_row).collect();
    context.printer.raw(&columns(&rows));
    Ok(())
}

fn as_json(info: &KeyInfo) -> KeyJson<'_> {
    let (origin, line, clamped_from) = match info.origin {
        Origin::Default => ("default", None, None),
        Origin::File { line_number } => ("file", Some(line_number), None),
        Origin::Clamped { from, line_number } => ("clamped", Some(line_number), Some(from)),
    };
    KeyJson {
        key: info.key,
        value: &info.value,
        origin,
        line,
        clamped_from,
        about: info.about,
    }
}

fn as_row(info: &KeyInfo) -> Vec<String> {
    let value = match info.value.as_str() {
        "" => "(not set)",
        value => value,
    };
    let origin = match info.origin {
        Origin::Default => "default".to_owned(),
        Origin::File { line_number } => format!("config.toml:{line_number}"),
        Origin::Clamped { from, line_number } => {
            format!("config.toml:{line_number} says {from}, out of bounds")
        }
    };
    vec![info.key.to_owned(), value.to_owned(), origin]
}
