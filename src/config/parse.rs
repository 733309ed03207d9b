//! `config.toml` as text into a [`Config`], or into all that is wrong with it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::keys::{ALIASES, Field, KEYS, Key, SECTIONS};
use crate::config::project;
use crate::config::{Config, ConfigProblem, Origin};
use crate::domain::endpoint::Header;
use crate::text::redact;

/// Reads the text of the file at `path`.
///
/// # Errors
///
/// Every problem, in the order of lines.
pub(super) fn parse(
    path: &Path,
    text: &str,
    user_home: &Path,
) -> Result<Config, Vec<ConfigProblem>> {
    let mut reader = Reader {
        path,
        text,
        user_home,
        config: Config::default(),
        problems: Vec::new(),
    };
    match DeTable::parse(text) {
        Ok(table) => reader.file(table.get_ref()),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            reader.problem(at, one_line(error.message()), None);
        }
    }
    reader.problems.sort_by_key(|problem| problem.line_number);
    if reader.problems.is_empty() {
        Ok(reader.config)
    } else {
        Err(reader.problems)
    }
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    user_home: &'a Path,
    config: Config,
    problems: Vec<ConfigProblem>,
}

type Name<'i> = Spanned<Cow<'i, str>>;
type Value<'i> = Spanned<DeValue<'i>>;

impl Reader<'_> {
    fn file(&mut self, file: &DeTable<'_>) {
        for (name, value) in file {
            let section = name.get_ref().as_ref();
            if !SECTIONS.iter().any(|(known, _)| *known == section) {
                let names = SECTIONS.iter().map(|(known, _)| *known);
                let hint = closest(section, names).map(|near| format!("did you mean `[{near}]`?"));
                let hint = hint.or_else(|| home_of(section));
                let message = format!("unknown section or key `{}`", shown(section));
                self.problem(name.span().start, message, hint);
            } else if let Some(keys) = value.get_ref().as_table() {
                self.section(section, keys);
            } else {
                let message = format!("`{section}` must be a section, `[{section}]`");
                self.problem(name.span().start, message, None);
            }
        }
    }

    fn section(&mut self, section: &str, keys: &DeTable<'_>) {
        for (name, value) in keys {
            let written = format!("{section}.{}", name.get_ref());
            let meant = ALIASES.iter().find(|(alias, _)| *alias == written);
            let meant = meant.map_or(written.as_str(), |(_, meant)| meant);
            let Some(key) = Key::find(meant) else {
                self.unknown_key(&written, name);
                continue;
            };
            if self.config.origins.contains_key(key.name) {
                let message = format!("`{}` is set twice: `{written}` is another name", key.name);
                self.problem(name.span().start, message, None);
                continue;
            }
            if let Some(from) = self.value(key, value) {
                let line_number = self.line_number(value.span().start);
                let origin = match from {
                    Taken::AsWritten => Origin::File { line_number },
                    Taken::Clamped(from) => Origin::Clamped { from, line_number },
                };
                self.config.origins.insert(key.name, origin);
            }
        }
    }

    fn unknown_key(&mut self, written: &str, name: &Name<'_>) {
        let (section, last) = written.split_once('.').unwrap_or(("", written));
        let elsewhere = || home_of(last);
        let here = KEYS.iter().filter(|key| key.section() == section);
        let near = closest(written, here.map(|key| key.name));
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        let message = format!("unknown key `{}`", shown(written));
        self.problem(name.span().start, message, hint.or_else(elsewhere));
    }

    /// Puts a value where it belongs; a wrong one becomes a problem.
    fn value(&mut self, key: &Key, value: &Value<'_>) -> Option<Taken> {
        if key.section() == "model" && holds_secret(value.get_ref()) {
            let message = format!("`{}` holds something that looks like a key", key.name);
            let hint = "keys never stand in this file: name a variable in `model.key_env`, or a \
                 file in `model.key_file`";
            self.problem(value.span().start, message, Some(hint.to_owned()));
            return None;
        }
        let wanted = match (&key.field, value.get_ref()) {
            (Field::Switch(field), DeValue::Boolean(switch)) => {
                *field(&mut self.config) = *switch;
                return Some(Taken::AsWritten);
            }
            (Field::Number { .. }, DeValue::Integer(_)) => return self.number(key, value),
            (Field::Choice { .. }, DeValue::String(_)) => return self.choice(key, value),
            (Field::Text(field), DeValue::String(text)) if !text.trim().is_empty() => {
                *field(&mut self.config) = Some(text.trim().to_owned());
                return Some(Taken::AsWritten);
            }
            (Field::Checked { .. } | Field::File(_), DeValue::String(text))
                if !text.trim().is_empty() =>
            {
                return self.checked(key, value, text.trim());
            }
            (Field::Headers(_), DeValue::Array(_)) => return self.headers(key, value),
            (Field::Folders(field), DeValue::Array(_)) => {
                let user_home = self.user_home;
                let folder = |text: &str| project::absolute(text, user_home);
                let problem = "must be an absolute path or begin with `~/`";
                let folders: Vec<PathBuf> = self.list(key, value, folder, problem)?;
                *field(&mut self.config) = Some(folders);
                return Some(Taken::AsWritten);
            }
            (Field::Words(field), DeValue::Array(_)) => {
                let word = |text: &str| (!text.is_empty()).then(|| text.to_owned());
                let problem = "must be a text that is not empty";
                *field(&mut self.config) = self.list(key, value, word, problem)?;
                return Some(Taken::AsWritten);
            }
            (Field::Projects(field), DeValue::Array(_)) => {
                let user_home = self.user_home;
                let names = |text: &str| project::names(text, user_home);
                let problem = "must be a folder (absolute, or in `~/`) or a project such as \
                     `example.org/team/project`";
                *field(&mut self.config) = self.list(key, value, names, problem)?.concat();
                return Some(Taken::AsWritten);
            }
            (Field::Switch(_), _) => "`true` or `false`".to_owned(),
            (Field::Number { .. }, _) => "a whole number".to_owned(),
            (Field::Choice { words, .. }, _) => one_of(words),
            (Field::Text(_) | Field::Checked { .. } | Field::File(_), _) => {
                "a text that is not empty".to_owned()
            }
            (Field::Words(_) | Field::Headers(_) | Field::Folders(_) | Field::Projects(_), _) => {
                "a list of texts".to_owned()
            }
        };
        let found = found(value.get_ref());
        let message = format!("`{}` must be {wanted}, not {found}", key.name);
        self.problem(value.span().start, message, None);
        None
    }

    /// A text that has to be more than a text.
    fn checked(&mut self, key: &Key, value: &Value<'_>, text: &str) -> Option<Taken> {
        let problem = match &key.field {
            Field::Checked { field, check, .. } => match check(text) {
                Ok(()) => {
                    *field(&mut self.config) = Some(text.to_owned());
                    return Some(Taken::AsWritten);
                }
                Err(problem) => format!("cannot be used: {problem}"),
            },
            Field::File(field) => match project::absolute(text, self.user_home) {
                Some(path) => {
                    *field(&mut self.config) = Some(path);
                    return Some(Taken::AsWritten);
                }
                None => "must be an absolute path or begin with `~/`".to_owned(),
            },
            _ => return None,
        };
        let message = format!("`{}` {problem}", key.name);
        self.problem(value.span().start, message, None);
        None
    }

    fn headers(&mut self, key: &Key, value: &Value<'_>) -> Option<Taken> {
        let Field::Headers(field) = &key.field else {
            return None;
        };
        let line = |text: &str| Some(text.trim().to_owned());
        let lines: Vec<String> = self.list(key, value, line, "")?;
        let mut problems = lines.iter().map(|line| Header::parse(line));
        if let Some(problem) = problems.find_map(Result::err) {
            let message = format!("`{}` cannot be used: {problem}", key.name);
            self.problem(value.span().start, message, None);
            return None;
        }
        *field(&mut self.config) = lines;
        Some(Taken::AsWritten)
    }

    fn number(&mut self, key: &Key, value: &Value<'_>) -> Option<Taken> {
        let Field::Number {
            set, least, most, ..
        } = &key.field
        else {
            return None;
        };
        let integer = value.get_ref().as_integer()?;
        let Ok(number) = i64::from_str_radix(integer.as_str(), integer.radix()) else {
            let message = format!("`{}` has too many digits", key.name);
            let hint = format!("it may be {least} to {most}");
            self.problem(value.span().start, message, Some(hint));
            return None;
        };
        let clamped = number.clamp(*least, *most);
        if clamped != number && !key.is_clamped() {
            let message = format!("`{}` must be {least} to {most}, not {number}", key.name);
            self.problem(value.span().start, message, None);
            return None;
        }
        set(&mut self.config, clamped);
        Some(if clamped == number {
            Taken::AsWritten
        } else {
            Taken::Clamped(number)
        })
    }

    fn choice(&mut self, key: &Key, value: &Value<'_>) -> Option<Taken> {
        let Field::Choice {
            words,
            hidden,
            set,
            otherwise,
            ..
        } = &key.field
        else {
            return None;
        };
        let word = value.get_ref().as_str()?;
        if words.contains(&word) || hidden.contains(&word) {
            set(&mut self.config, word);
            return Some(Taken::AsWritten);
        }
        let wanted = one_of(words);
        let message = format!("`{}` must be {wanted}, not `{}`", key.name, shown(word));
        let near = closest(word, words.iter().copied());
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        let hint = hint.or_else(|| otherwise.map(str::to_owned));
        self.problem(value.span().start, message, hint);
        None
    }

    fn list<T>(
        &mut self,
        key: &Key,
        value: &Value<'_>,
        read: impl Fn(&str) -> Option<T>,
        otherwise: &str,
    ) -> Option<Vec<T>> {
        let mut listed = Vec::new();
        let mut is_sound = true;
        for item in value.get_ref().as_array()? {
            let text = item.get_ref().as_str();
            if let Some(item) = text.and_then(&read) {
                listed.push(item);
                continue;
            }
            let found = text.map_or_else(
                || found(item.get_ref()),
                |text| format!("`{}`", shown(text)),
            );
            let message = format!("`{}`: {found} {otherwise}", key.name);
            self.problem(item.span().start, message, None);
            is_sound = false;
        }
        is_sound.then_some(listed)
    }

    fn problem(&mut self, at: usize, message: String, hint: Option<String>) {
        self.problems.push(ConfigProblem {
            path: self.path.to_owned(),
            line_number: Some(self.line_number(at)),
            message,
            hint,
        });
    }

    fn line_number(&self, at: usize) -> usize {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        1 + memchr::memchr_iter(b'\n', before).count()
    }
}

enum Taken {
    AsWritten,
    Clamped(i64),
}

/// `` `a`, `b` or `c` ``.
fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// Whether some text in it looks like a key.
fn holds_secret(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::String(text) => redact::contains_secret(text),
        DeValue::Array(values) => values.iter().any(|value| holds_secret(value.get_ref())),
        _ => false,
    }
}

fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.trim().is_empty() => "an empty text".to_owned(),
        DeValue::String(text) => format!("the text `{}`", shown(text)),
        DeValue::Integer(number) => format!("the number {}", number.as_str()),
        DeValue::Float(number) => format!("the number {}", number.as_str()),
        DeValue::Boolean(switch) => format!("`{switch}`"),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a section".to_owned(),
    }
}

/// Which section has a key of this name, for one that stands elsewhere.
fn home_of(last: &str) -> Option<String> {
    let ends = |key: &&Key| key.name.split_once('.').is_some_and(|(_, end)| end == last);
    let key = KEYS.iter().find(ends)?;
    Some(format!("`{last}` belongs in `[{}]`", key.section()))
}

/// The nearest name, if it is near enough for a slip.
fn closest<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (written.chars().count() / 4).max(2);
    names
        .map(|name| (distance(written, name), name))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, name)| name)
}

/// Letters to add, drop, change or swap (optimal string alignment). Names are
/// compared up to a length no key has.
fn distance(a: &str, b: &str) -> usize {
    const LETTERS_MAX: usize = 80;
    let a: Vec<char> = a.chars().take(LETTERS_MAX).collect();
    let b: Vec<char> = b.chars().take(LETTERS_MAX).collect();
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if 1 < i && 1 < j && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

/// What a person wrote, fit for a terminal and short.
fn shown(text: &str) -> String {
    const LETTERS_MAX: usize = 60;
    let visible = text.chars().filter(|c| !c.is_control());
    let mut shown: String = visible.take(LETTERS_MAX).collect();
    if LETTERS_MAX < text.chars().count() {
        shown.push('…');
    }
    shown
}

fn one_line(message: &str) -> String {
    message.lines().collect::<Vec<_>>().join(", ")
}
