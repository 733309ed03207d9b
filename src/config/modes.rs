//! `modes.yaml`: sessions that were set disabled, polluted or enabled again,
//! by whom and when.
//!
//! ```yaml
//! 0194f5a6-89ab-7cde-8123-456789abcdef:
//!   mode: disabled
//!   by: person
//!   at: "2026-12-01T05:33:44+00:00"
//! 0194f5a6-89ab-7cde-8123-456789abcd00: disabled
//! ```
//!
//! The second form is for people; who wrote it is then the person. Comments
//! do not survive a change by us.
//!
//! # Locking
//!
//! [`update`] reads, changes and writes under `modes.lock`, so that a person's
//! choice and a pass's do not overwrite each other.
//!
//! # Limits
//!
//! A person's file may be anything: its size is bounded, and what YAML can do
//! beyond plain maps (anchors, aliases, tags, merges) is refused before it is
//! parsed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_yaml::{Mapping, Value};

use crate::domain::id::ThreadId;
use crate::domain::session::MemoryMode;
use crate::domain::time::Timestamp;
use crate::sys::fs::{self, FsError};
use crate::sys::lock::{FileLock, LockError};
use crate::sys::stop;

/// The file's name in the home.
const FILE_NAME: &str = "modes.yaml";

/// Largest file that is read: some 40,000 sessions.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How long a change waits for another process's.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The choices of a home, by session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Modes {
    entries: BTreeMap<ThreadId, ModeEntry>,
}

/// One session's mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModeEntry {
    pub(crate) mode: MemoryMode,
    pub(crate) by: SetBy,
    /// `None` when a person wrote the line by hand.
    pub(crate) at: Option<Timestamp>,
}

/// Who set a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SetBy {
    Person,
    /// The session began while `generate_memories` was false.
    GenerateMemories,
    /// External content reached it under `disable_on_external_context`.
    ExternalContext,
}

impl SetBy {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::GenerateMemories => "generate_memories",
            Self::ExternalContext => "disable_on_external_context",
        }
    }

    /// Whoever else is named, it was not this program.
    fn parse(label: &str) -> Self {
        [Self::GenerateMemories, Self::ExternalContext]
            .into_iter()
            .find(|by| by.label() == label)
            .unwrap_or(Self::Person)
    }
}

/// Why `modes.yaml` cannot be used or changed. It is left as it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModesError {
    #[error("`{path}`: {problem}")]
    Malformed { path: PathBuf, problem: String },
    #[error(transparent)]
    Fs(#[from] FsError),
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl Modes {
    /// The mode that counts: the entry here, else what the transcript says.
    pub(crate) fn effective(&self, thread_id: &ThreadId, own: MemoryMode) -> MemoryMode {
        self.entries.get(thread_id).map_or(own, |entry| entry.mode)
    }

    pub(crate) fn get(&self, thread_id: &ThreadId) -> Option<&ModeEntry> {
        self.entries.get(thread_id)
    }

    /// Sets a mode, over an earlier one.
    pub(crate) fn set(&mut self, thread_id: ThreadId, entry: ModeEntry) {
        self.entries.insert(thread_id, entry);
    }

    /// Sets a mode that a pass came to, unless somebody has set one before:
    /// a person's word stays, and a session is polluted once (reference 10).
    pub(crate) fn set_if_unset(&mut self, thread_id: ThreadId, entry: ModeEntry) {
        self.entries.entry(thread_id).or_insert(entry);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ThreadId, &ModeEntry)> {
        self.entries.iter()
    }
}

/// Reads `modes.yaml` of a home; a missing one is empty.
///
/// # Errors
///
/// When it cannot be read or is not of the form above. Nothing may be
/// extracted then: whom a person left out is not known.
pub(crate) fn load(home: &Path) -> Result<Modes, ModesError> {
    let path = home.join(FILE_NAME);
    let Some(text) = fs::read_text_if_any(&path, FILE_BYTES_MAX)? else {
        return Ok(Modes::default());
    };
    parse(&text).map_err(|problem| ModesError::Malformed { path, problem })
}

/// Reads, changes and writes `modes.yaml`; nothing is written when nothing
/// changed.
///
/// # Errors
///
/// As [`load`], and when the lock is busy or the file cannot be written. The
/// old file is there then.
pub(crate) fn update(home: &Path, change: impl FnOnce(&mut Modes)) -> Result<Modes, ModesError> {
    fs::make_folders(home)?;
    let _lock = FileLock::acquire(&home.join("modes.lock"), LOCK_WAIT)?;
    let before = load(home)?;
    let mut modes = before.clone();
    change(&mut modes);
    if modes != before {
        stop::point("modes.before_write");
        fs::replace(&home.join(FILE_NAME), print(&modes).as_bytes())?;
        stop::point("modes.written");
    }
    Ok(modes)
}

fn print(modes: &Modes) -> String {
    let mut text =
        "# memrev: sessions that do or do not feed memory, whatever else is configured.\n"
            .to_owned();
    for (thread_id, entry) in &modes.entries {
        // Quoted, because an id of digits alone would be a number to others.
        let _ = writeln!(text, "\"{thread_id}\":");
        let _ = writeln!(text, "  mode: {}", entry.mode.label());
        let _ = writeln!(text, "  by: {}", entry.by.label());
        if let Some(at) = entry.at {
            let _ = writeln!(text, "  at: \"{at}\"");
        }
    }
    text
}

fn parse(text: &str) -> Result<Modes, String> {
    refuse_beyond_plain(text)?;
    let value: Value = serde_yaml::from_str(text).map_err(|error| one_line(&error))?;
    let sessions = match value {
        Value::Null => Mapping::new(),
        Value::Mapping(sessions) => sessions,
        _ => return Err("it must list sessions as `<thread id>: <mode>`".to_owned()),
    };
    let mut modes = Modes::default();
    for (key, value) in &sessions {
        let key = scalar(key).unwrap_or_default();
        let thread_id =
            ThreadId::parse(&key).ok_or_else(|| format!("`{}` is not a thread id", shown(&key)))?;
        let entry = parse_entry(value).map_err(|problem| format!("`{thread_id}`: {problem}"))?;
        modes.set(thread_id, entry);
    }
    Ok(modes)
}

fn parse_entry(value: &Value) -> Result<ModeEntry, String> {
    let Value::Mapping(fields) = value else {
        return Ok(ModeEntry {
            mode: parse_mode(value)?,
            by: SetBy::Person,
            at: None,
        });
    };
    let (mut mode, mut by, mut at) = (None, SetBy::Person, None);
    for (key, value) in fields {
        match key.as_str() {
            Some("mode") => mode = Some(parse_mode(value)?),
            Some("by") => by = scalar(value).map_or(SetBy::Person, |by| SetBy::parse(&by)),
            Some("at") => at = scalar(value).and_then(|at| Timestamp::parse_rfc3339(&at)),
            _ => {
                let key = scalar(key).unwrap_or_default();
                return Err(format!("unknown field `{}`", shown(&key)));
            }
        }
    }
    let mode = mode.ok_or("the field `mode` is missing")?;
    Ok(ModeEntry { mode, by, at })
}

fn parse_mode(value: &Value) -> Result<MemoryMode, String> {
    let word = scalar(value).unwrap_or_default();
    MemoryMode::parse(&word).ok_or_else(|| {
        format!(
            "the mode must be `enabled`, `disabled` or `polluted`, not `{}`",
            shown(&word)
        )
    })
}

/// The text of a plain value, also of one that YAML takes for a number.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        _ => None,
    }
}

/// Nothing of a mode needs these characters outside of comments, and without
/// them YAML is a plain map: no anchors, aliases, tags, merges, references
/// that swell, or texts over many lines.
fn refuse_beyond_plain(text: &str) -> Result<(), String> {
    for (index, line) in text.lines().enumerate() {
        let code = match line.find('#') {
            Some(0) => "",
            Some(at) if line[..at].ends_with([' ', '\t']) => &line[..at],
            _ => line,
        };
        let beyond = |c: &char| "&*!<>|{}[]%@`?\t".contains(*c) || (c.is_control());
        if let Some(found) = code.chars().find(beyond) {
            let number = index + 1;
            return Err(format!(
                "line {number}: `{}` is not allowed here",
                found.escape_debug()
            ));
        }
    }
    Ok(())
}

fn one_line(error: &serde_yaml::Error) -> String {
    shown(&error.to_string())
}

/// What a person wrote, fit for a terminal and short.
fn shown(text: &str) -> String {
    const LETTERS_MAX: usize = 120;
    let line = text.lines().next().unwrap_or("");
    line.chars()
        .filter(|c| !c.is_control())
        .take(LETTERS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{FILE_NAME, ModeEntry, Modes, SetBy, load, parse, print, update};
    use crate::domain::id::ThreadId;
    use crate::domain::session::MemoryMode;
    use crate::domain::time::Timestamp;
    use crate::sys::fs;

    fn thread(id: &str) -> ThreadId {
        ThreadId::parse(id).unwrap()
    }

    fn set(mode: MemoryMode, by: SetBy) -> ModeEntry {
        let at = Some(Timestamp::from_seconds(1_796_000_000));
        ModeEntry { mode, by, at }
    }

    #[test]
    fn modes_survive_the_file_in_sorted_order() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(load(home.path()).unwrap(), Modes::default());
        update(home.path(), |modes| {
            modes.set(
                thread("b"),
                set(MemoryMode::Polluted, SetBy::ExternalContext),
            );
            modes.set(thread("1234"), set(MemoryMode::Disabled, SetBy::Person));
            modes.set(
                thread("a:b.c_d"),
                set(MemoryMode::Enabled, SetBy::GenerateMemories),
            );
        })
        .unwrap();
        let modes = load(home.path()).unwrap();
        let order: Vec<&str> = modes.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(order, ["1234", "a:b.c_d", "b"]);
        assert_eq!(parse(&print(&modes)).unwrap(), modes);
        let disabled = modes.effective(&thread("1234"), MemoryMode::Enabled);
        assert_eq!(disabled, MemoryMode::Disabled);
        let enabled = modes.effective(&thread("a:b.c_d"), MemoryMode::Disabled);
        assert_eq!(
            enabled,
            MemoryMode::Enabled,
            "a person's word counts over the transcript's"
        );
        let own = modes.effective(&thread("zzz"), MemoryMode::Disabled);
        assert_eq!(own, MemoryMode::Disabled);
    }

    #[test]
    fn an_update_without_a_change_does_not_touch_the_file() {
        let home = tempfile::tempdir().unwrap();
        fs::replace(&home.path().join(FILE_NAME), b"# mine\na: disabled # why\n").unwrap();
        update(home.path(), |modes| {
            modes.set_if_unset(
                thread("a"),
                set(MemoryMode::Polluted, SetBy::ExternalContext),
            );
        })
        .unwrap();
        let text = fs::read_text_if_any(&home.path().join(FILE_NAME), 999).unwrap();
        assert_eq!(text.unwrap(), "# mine\na: disabled # why\n");
    }

    #[test]
    fn a_persons_short_form_is_taken() {
        for (text, mode, by) in [
            ("a: disabled", MemoryMode::Disabled, SetBy::Person),
            (
                "\u{feff}a: disabled\r\n",
                MemoryMode::Disabled,
                SetBy::Person,
            ),
            ("'a': \"polluted\"", MemoryMode::Polluted, SetBy::Person),
            (
                "a:\n  mode: enabled\n  by: Ada\n",
                MemoryMode::Enabled,
                SetBy::Person,
            ),
            (
                "a:\n  by: disable_on_external_context\n  mode: polluted\n  at: never",
                MemoryMode::Polluted,
                SetBy::ExternalContext,
            ),
        ] {
            let modes = parse(text).unwrap();
            let entry = modes.get(&thread("a")).unwrap();
            assert_eq!((entry.mode, entry.by), (mode, by), "{text:?}");
        }
        assert_eq!(parse("").unwrap(), Modes::default());
        assert_eq!(parse("# nothing yet\n").unwrap(), Modes::default());
    }

    #[test]
    fn hostile_or_mistaken_files_are_refused_with_the_place() {
        for (text, problem) in [
            ("a: &x disabled\nb: *x", "line 1: `&` is not allowed here"),
            (
                "b: disabled\na: !foo disabled",
                "line 2: `!` is not allowed here",
            ),
            ("<<: a", "line 1: `<` is not allowed here"),
            ("{a: disabled}", "line 1: `{` is not allowed here"),
            ("a:\tdisabled", "line 1: `\\t` is not allowed here"),
            (
                "a: off",
                "`a`: the mode must be `enabled`, `disabled` or `polluted`, not `off`",
            ),
            ("../x: disabled", "`../x` is not a thread id"),
            ("a:\n  made: disabled", "`a`: unknown field `made`"),
            ("a:\n  by: person", "`a`: the field `mode` is missing"),
            ("- a", "it must list sessions as `<thread id>: <mode>`"),
            (
                "just words",
                "it must list sessions as `<thread id>: <mode>`",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), problem, "{text:?}");
        }
        let twice = parse("a: disabled\na: enabled").unwrap_err();
        assert!(twice.contains("duplicate"), "{twice}");
        let deep = format!("{}a", "a:\n ".repeat(20_000));
        parse(&deep).unwrap_err();
    }

    #[test]
    fn a_malformed_file_is_named_and_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(FILE_NAME);
        fs::replace(&path, b"a: off\n").unwrap();
        let error = update(home.path(), |_| {}).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("`{}`: ", path.display()))
        );
        assert_eq!(fs::read(&path, 99).unwrap(), b"a: off\n");
    }
}
