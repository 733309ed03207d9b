//! YAML headers: taking them off a file, reading them, printing them.
//!
//! A header stands between two `---` lines at the very start of a file. It is
//! a flat mapping; every value that matters is text, also where YAML would see
//! a number, a date or a truth value.
//!
//! # Limits
//!
//! [`YamlLimits::HEADER`]; anchors, aliases, tags and merge keys are refused
//! before the parser sees them.
//!
//! # Compatibility
//!
//! [`print_field`] quotes whatever a YAML 1.1 reader could take for something
//! other than text (`no`, `on`, `2026-10-09`, `1_000`).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_yaml::{Mapping, Value};

use crate::domain::yaml_guard::{self, YamlLimits, YamlRefusal};

/// A file taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Split<'a> {
    /// Between the fences, without them.
    pub(crate) header: Option<&'a str>,
    pub(crate) body: &'a str,
    /// Where `body` starts in the file, in bytes.
    pub(crate) body_start: usize,
}

/// Why a header could not be read. Line numbers are 1-based and count from the
/// file's first line, the fence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeaderError {
    #[error("the header that begins in line 1 has no closing `---` line")]
    Unclosed,
    #[error(transparent)]
    Refused(#[from] YamlRefusal),
    #[error("the header is not YAML: {}", without_place(source))]
    Malformed { source: serde_yaml::Error },
    #[error("the header is not a list of `key: value` lines")]
    NotAMapping,
}

impl HeaderError {
    /// Line and column in the file where known.
    pub(crate) fn place(&self) -> Option<(usize, usize)> {
        let (line, column) = match self {
            Self::Refused(YamlRefusal::Construct {
                line_number,
                column_number,
                ..
            }) => (*line_number, *column_number),
            Self::Malformed { source } => {
                let place = source.location()?;
                (place.line(), place.column())
            }
            _ => return None,
        };
        Some((line + 1, column))
    }
}

fn without_place(error: &serde_yaml::Error) -> String {
    let text = error.to_string();
    let end = text.find(" at line ").unwrap_or(text.len());
    text[..end].to_owned()
}

/// Takes the header off.
///
/// No fence in the first line: no header, and the body is the whole text.
///
/// # Errors
///
/// [`HeaderError::Unclosed`] when a first fence has no second one.
pub(crate) fn split(text: &str) -> Result<Split<'_>, HeaderError> {
    let begin = text.strip_prefix('\u{feff}').unwrap_or(text);
    let no_header = Split {
        header: None,
        body: text,
        body_start: 0,
    };
    let Some(first_line) = begin.split_inclusive('\n').next() else {
        return Ok(no_header);
    };
    if first_line.trim_end() != "---" {
        return Ok(no_header);
    }
    let header_start = text.len() - begin.len() + first_line.len();
    let mut at = header_start;
    for line in text[header_start..].split_inclusive('\n') {
        if line.trim_end() == "---" && !line.starts_with(' ') {
            let body_start = at + line.len();
            return Ok(Split {
                header: Some(&text[header_start..at]),
                body: &text[body_start..],
                body_start,
            });
        }
        at += line.len();
    }
    Err(HeaderError::Unclosed)
}

/// The values of a header by key.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Fields {
    /// Scalars as written; keys without a value are absent.
    pub(crate) texts: BTreeMap<String, String>,
    /// Keys whose value is a list or mapping.
    pub(crate) others: BTreeMap<String, Value>,
}

impl Fields {
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.texts
            .keys()
            .chain(self.others.keys())
            .map(String::as_str)
    }
}

/// Reads a header (without fences) or a small YAML file.
///
/// # Errors
///
/// Everything but [`HeaderError::Unclosed`]; duplicate keys are malformed.
pub(crate) fn parse(yaml: &str) -> Result<Fields, HeaderError> {
    yaml_guard::check(yaml, YamlLimits::HEADER)?;
    if yaml
        .lines()
        .all(|line| line.trim().is_empty() || line.starts_with('#'))
    {
        return Ok(Fields::default());
    }
    let malformed = |source| HeaderError::Malformed { source };
    // The untyped pass finds duplicate keys and says where they are.
    let value: Value = serde_yaml::from_str(yaml).map_err(malformed)?;
    let Value::Mapping(mapping) = value else {
        return Err(HeaderError::NotAMapping);
    };
    let is_flat = mapping
        .values()
        .all(|value| !value.is_sequence() && !value.is_mapping());
    // The typed pass keeps scalars as written: `1e3` stays `1e3`.
    let written: BTreeMap<String, String> = if is_flat {
        serde_yaml::from_str(yaml).map_err(malformed)?
    } else {
        BTreeMap::new()
    };
    fields(mapping, &written)
}

fn fields(mapping: Mapping, written: &BTreeMap<String, String>) -> Result<Fields, HeaderError> {
    let mut fields = Fields::default();
    for (key, value) in mapping {
        let key = scalar_text(&key).ok_or(HeaderError::NotAMapping)?;
        match (&value, written.get(&key)) {
            (Value::Null, _) => {}
            (Value::Sequence(_) | Value::Mapping(_) | Value::Tagged(_), _) => {
                fields.others.insert(key, value);
            }
            (Value::String(text), _) | (_, Some(text)) => {
                fields.texts.insert(key, text.clone());
            }
            (_, None) => {
                let text = scalar_text(&value).unwrap_or_default();
                fields.texts.insert(key, text);
            }
        }
    }
    Ok(fields)
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Sequence(_) | Value::Mapping(_) | Value::Tagged(_) => None,
    }
}

/// Appends `key: value` to a header; `key` is one of our own field names.
pub(crate) fn print_field(header: &mut String, key: &str, value: &str) {
    let value = if is_plain(value) {
        value.to_owned()
    } else {
        quoted(value)
    };
    // Writing to a string cannot fail.
    let _ = writeln!(header, "{key}: {value}");
}

/// Appends `key: |` with the lines of `value` below, indented by two.
///
/// Falls back to a quoted value where a block scalar could not carry it.
pub(crate) fn print_block(header: &mut String, key: &str, value: &str) {
    if value.trim().is_empty() || value.contains(needs_escape_in_block) {
        return print_field(header, key, value);
    }
    let first_line = value.lines().next().unwrap_or_default();
    let begins_blank = first_line.is_empty() || first_line.starts_with([' ', '\t']);
    let indentation = if begins_blank { "2" } else { "" };
    let chomping = match value.len() - value.trim_end_matches('\n').len() {
        0 => "-",
        1 => "",
        _ => "+",
    };
    let _ = writeln!(header, "{key}: |{indentation}{chomping}");
    for line in value.trim_end_matches('\n').split('\n') {
        if line.is_empty() {
            header.push('\n');
        } else {
            let _ = writeln!(header, "  {line}");
        }
    }
    let newlines = value.len() - value.trim_end_matches('\n').len();
    header.extend(std::iter::repeat_n('\n', newlines.saturating_sub(1)));
}

fn needs_escape_in_block(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

/// Whether every YAML reader takes `value` without quotes for this text.
fn is_plain(value: &str) -> bool {
    const WORDS: [&str; 10] = [
        "y", "n", "yes", "no", "on", "off", "true", "false", "null", "none",
    ];
    let begins_plain = value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let is_plain_byte = |byte: u8| byte.is_ascii_alphanumeric() || b" _./@+~-:".contains(&byte);
    begins_plain
        && value.bytes().all(is_plain_byte)
        && !value.contains(": ")
        && !value.ends_with([' ', ':'])
        && !WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
}

fn quoted(value: &str) -> String {
    let mut out = String::from("\"");
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || needs_escape_in_block(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::{HeaderError, parse, print_block, print_field, split};

    #[test]
    fn headers_come_off() {
        for (text, header, body) in [
            ("---\na: b\n---\nbody\n", Some("a: b\n"), "body\n"),
            ("---\r\na: b\r\n---\r\nbody", Some("a: b\r\n"), "body"),
            ("\u{feff}---\n---\n", Some(""), ""),
            ("---\na: |\n  ---\n---\n", Some("a: |\n  ---\n"), ""),
            ("no header\n---\n", None, "no header\n---\n"),
            ("", None, ""),
        ] {
            let parts = split(text).unwrap();
            assert_eq!((parts.header, parts.body), (header, body), "{text:?}");
            assert_eq!(&text[parts.body_start..], body);
        }
        assert!(matches!(split("---\na: b\n"), Err(HeaderError::Unclosed)));
    }

    #[test]
    fn values_stay_as_written() {
        let fields = parse("a: 2026-12-01\nb: 1e3\nc: no\nd: 012\ne:\nf: true\n").unwrap();
        let texts: Vec<_> = fields
            .texts
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        assert_eq!(texts, ["a=2026-12-01", "b=1e3", "c=no", "d=012", "f=true"]);
        let mixed = parse("tools: [a, b]\nname: x\nn: 5\n").unwrap();
        assert_eq!(mixed.text("name"), Some("x"));
        assert_eq!(mixed.text("n"), Some("5"));
        assert!(mixed.others.contains_key("tools"));
    }

    #[test]
    fn damage_is_named_with_its_place() {
        let duplicate = parse("a: b\nc: d\na: e\n").unwrap_err();
        assert!(duplicate.to_string().contains("duplicate"), "{duplicate}");
        assert!(matches!(parse("- a\n"), Err(HeaderError::NotAMapping)));
        assert!(matches!(
            parse("just words\n"),
            Err(HeaderError::NotAMapping)
        ));
        let alias = parse("a: b\nc: *x\n").unwrap_err();
        assert_eq!(alias.place(), Some((3, 4)));
        let broken = parse("a: b\nc: \"open\n").unwrap_err();
        assert!(broken.place().is_some(), "{broken}");
        assert!(!broken.to_string().contains("line"), "{broken}");
    }

    #[test]
    fn whatever_could_be_misread_is_quoted() {
        for (value, printed) in [
            ("main", "main"),
            ("/home/ada/a b", "/home/ada/a b"),
            ("no", "\"no\""),
            ("Off", "\"Off\""),
            ("2026-10-09", "\"2026-10-09\""),
            ("1_000", "\"1_000\""),
            ("a: b", "\"a: b\""),
            ("a #b", "\"a #b\""),
            ("ä", "\"ä\""),
            ("", "\"\""),
            ("a\u{85}b", "\"a\\u0085b\""),
            ("C:\\x", "\"C:\\\\x\""),
        ] {
            let mut header = String::new();
            print_field(&mut header, "k", value);
            assert_eq!(header, format!("k: {printed}\n"));
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(
            field in "[\\PC\\n\\t\\r\u{85}\u{2028} :#'\"]{0,40}",
            block in "[a-z \\n\\t:#-]{0,60}",
            wild in "[\\PC\\n\\r\u{85}\u{feff}]{0,40}",
        ) {
            let mut header = String::new();
            print_field(&mut header, "field", &field);
            print_block(&mut header, "block", &block);
            print_block(&mut header, "wild", &wild);
            print_field(&mut header, "last", "x");
            let fields = parse(&header).unwrap();
            prop_assert_eq!(fields.text("field"), Some(field.as_str()));
            prop_assert_eq!(fields.text("block"), Some(block.as_str()));
            prop_assert_eq!(fields.text("wild"), Some(wild.as_str()));
            prop_assert_eq!(fields.text("last"), Some("x"));
        }
    }
}
