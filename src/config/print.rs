//! The effective configuration, and the file a new home gets.

use std::fmt::Write as _;

use crate::config::keys::{Field, KEYS, Key, SECTIONS};
use crate::config::{Config, Origin};

/// One key, for `memrev config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyInfo {
    pub(crate) key: &'static str,
    /// As TOML writes it; empty for an optional key that is not set.
    pub(crate) value: String,
    pub(crate) origin: Origin,
    /// One sentence without a full stop.
    pub(crate) about: &'static str,
}

/// Every key with its effective value and where that came from, in the order
/// in which the file has them.
pub(crate) fn describe(config: &Config) -> Vec<KeyInfo> {
    // Fields are reached through one accessor, which wants to be able to write.
    let mut config = config.clone();
    let origins = config.origins.clone();
    let mut describe = |key: &Key| KeyInfo {
        key: key.name,
        value: value(&key.field, &mut config),
        origin: origins.get(key.name).copied().unwrap_or(Origin::Default),
        about: key.about,
    };
    KEYS.iter().map(&mut describe).collect()
}

/// The commented file that `memrev init` writes, memory switched on.
pub(crate) fn initial_text() -> String {
    let mut text = "# memrev: what you chose. Lines that begin with `#` show the defaults.\n\
         # `memrev config` prints what counts, and where each value comes from.\n"
        .to_owned();
    let keys = describe(&Config::default());
    for (section, about) in SECTIONS {
        write_section(&mut text, section, about, &keys);
    }
    text
}

fn write_section(text: &mut String, section: &str, about: &str, keys: &[KeyInfo]) {
    let mut line = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    line(&format!("\n# {about}.\n[{section}]"));
    for info in keys {
        let Some((_, name)) = info.key.split_once('.').filter(|(of, _)| *of == section) else {
            continue;
        };
        line(&format!("# {}.", info.about));
        match info.key {
            "features.memories" => line("memories = true"),
            _ if info.value.is_empty() => line(&format!("#{name} = {}", example(info.key))),
            _ => line(&format!("#{name} = {}", info.value)),
        }
    }
}

/// What a key that has no default may look like.
fn example(key: &str) -> String {
    let text = match key {
        "sessions.codex_roots" => "[\"~/.codex/sessions\"]",
        "sessions.claude_roots" => "[\"~/.claude/projects\"]",
        "worker.writable" => "[\"~/.codex\"]",
        _ => match Key::find(key).map(|key| &key.field) {
            Some(Field::Checked { example, .. }) => return quoted(example),
            Some(Field::File(_)) => "\"~/path/to/it\"",
            _ => "\"name\"",
        },
    };
    text.to_owned()
}

fn value(field: &Field, config: &mut Config) -> String {
    match field {
        Field::Switch(field) => field(config).to_string(),
        Field::Number { get, .. } => get(config).to_string(),
        Field::Choice { get, .. } => quoted(get(config)),
        Field::Text(field) => field(config).as_deref().map(quoted).unwrap_or_default(),
        Field::Folders(field) => match field(config) {
            Some(folders) => list(folders.iter().map(|folder| folder.to_string_lossy())),
            None => String::new(),
        },
        Field::Checked { field, .. } => field(config).as_deref().map(quoted).unwrap_or_default(),
        Field::File(field) => match field(config) {
            Some(file) => quoted(&file.to_string_lossy()),
            None => String::new(),
        },
        Field::Words(field) | Field::Headers(field) | Field::Projects(field) => {
            list(field(config).iter())
        }
    }
}

fn list(texts: impl Iterator<Item = impl AsRef<str>>) -> String {
    let quoted: Vec<String> = texts.map(|text| quoted(text.as_ref())).collect();
    format!("[{}]", quoted.join(", "))
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
