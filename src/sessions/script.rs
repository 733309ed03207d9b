//! Finds the tool calls in a script of code mode.
//!
//! Newer Codex models write JavaScript that calls `tools.NAME(...)`. This is
//! no JavaScript parser: it reads the literal that a call begins with, a
//! string or an object, and gives up on anything computed.

/// Most calls taken from one script.
const CALLS_MAX: usize = 50;

/// One `tools.NAME(...)`.
pub(super) struct InnerCall {
    pub(super) name: String,
    /// The argument, when it is a string literal.
    pub(super) text: Option<String>,
    /// The argument otherwise: as JSON where it is a plain object literal,
    /// as it stands where not.
    pub(super) json: String,
}

/// The calls in `script`, in order.
pub(super) fn tool_calls(script: &str) -> Vec<InnerCall> {
    const MARK: &str = "tools.";
    let mut calls = Vec::new();
    let mut rest = script;
    while let Some(at) = rest.find(MARK) {
        let is_member = rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
        rest = &rest[at + MARK.len()..];
        if is_member || calls.len() == CALLS_MAX {
            continue;
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let name_end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(name_end);
        let Some(arguments) = behind.trim_start().strip_prefix('(') else {
            continue;
        };
        if name.is_empty() {
            continue;
        }
        let (call, behind) = argument(name, arguments.trim_start());
        calls.push(call);
        rest = behind;
    }
    calls
}

fn argument<'a>(name: &str, arguments: &'a str) -> (InnerCall, &'a str) {
    let name = name.to_owned();
    if let Some((text, behind)) = string_literal(arguments) {
        let call = InnerCall {
            name,
            text: Some(text),
            json: String::new(),
        };
        return (call, behind);
    }
    let end = balanced_end(arguments);
    let (literal, behind) = arguments.split_at(end);
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(literal).is_ok();
    let json = if is_json {
        literal.to_owned()
    } else {
        relaxed_json(literal).unwrap_or_else(|| literal.to_owned())
    };
    let call = InnerCall {
        name,
        text: None,
        json,
    };
    (call, behind)
}

/// A string literal at the start: its value, and what is behind it.
fn string_literal(source: &str) -> Option<(String, &str)> {
    let quote = source.chars().next()?;
    if !matches!(quote, '"' | '\'' | '`') {
        return None;
    }
    let mut value = String::new();
    let mut characters = source.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            _ if c == quote => return Some((value, &source[at + 1..])),
            '\\' => {
                let (at, escaped) = characters.next()?;
                match escaped {
                    'n' => value.push('\n'),
                    't' => value.push('\t'),
                    'r' => value.push('\r'),
                    'u' => {
                        let unit = source.get(at + 1..at + 5);
                        let unit = unit.and_then(|hex| u32::from_str_radix(hex, 16).ok());
                        value.push(unit.and_then(char::from_u32).unwrap_or('\u{FFFD}'));
                        if unit.is_some() {
                            characters.nth(3);
                        }
                    }
                    '\n' => {}
                    other => value.push(other),
                }
            }
            other => value.push(other),
        }
    }
    None
}

/// Where the argument list ends: the closing bracket, or the end.
fn balanced_end(source: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        match c {
            '"' | '\'' | '`' => {
                let Some((_, behind)) = string_literal(&source[at..]) else {
                    return source.len();
                };
                at = source.len() - behind.len();
                continue;
            }
            '(' | '{' | '[' => depth += 1,
            ')' if depth == 0 => return at,
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += c.len_utf8();
    }
    source.len()
}

/// Turns `{cmd: 'ls', n: 1}` into JSON; `None` when it is more than that.
fn relaxed_json(literal: &str) -> Option<String> {
    let mut json = String::new();
    let mut at = 0;
    while let Some(c) = literal[at..].chars().next() {
        if matches!(c, '"' | '\'' | '`') {
            let (value, behind) = string_literal(&literal[at..])?;
            json.push_str(&serde_json::to_string(&value).ok()?);
            at = literal.len() - behind.len();
        } else if c.is_ascii_alphabetic() || c == '_' {
            let rest = &literal[at..];
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            if behind.trim_start().starts_with(':') {
                json.push_str(&serde_json::to_string(word).ok()?);
            } else {
                json.push_str(word);
            }
            at += end;
        } else {
            json.push(c);
            at += c.len_utf8();
        }
    }
    let json = without_trailing_commas(&json);
    serde_json::from_str::<serde::de::IgnoredAny>(&json)
        .is_ok()
        .then_some(json)
}

/// Drops commas in front of closing brackets; strings are already JSON.
fn without_trailing_commas(json: &str) -> String {
    let mut cleaned = String::with_capacity(json.len());
    let mut is_inside = false;
    let mut is_escaped = false;
    for (at, c) in json.char_indices() {
        if is_inside {
            is_inside = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
        } else if c == '"' {
            is_inside = true;
        } else if c == ',' && json[at + 1..].trim_start().starts_with(['}', ']']) {
            continue;
        }
        cleaned.push(c);
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::tool_calls;

    #[test]
    fn literals_of_any_quoting_are_read() {
        for (script, name, text, json) in [
            (r#"tools.a({"cmd":"x"})"#, "a", None, r#"{"cmd":"x"}"#),
            (
                "tools.a({ cmd: 'it\\'s', })",
                "a",
                None,
                r#"{ "cmd": "it's" }"#,
            ),
            ("tools.a(`two\nlines`)", "a", Some("two\nlines"), ""),
            (r#"tools.a("caf\u00e9")"#, "a", Some("café"), ""),
            ("tools.a({cmd: x + 1})", "a", None, "{cmd: x + 1}"),
            ("tools.a('open", "a", None, "'open"),
        ] {
            let calls = tool_calls(script);
            assert_eq!(calls.len(), 1, "{script}");
            assert_eq!(calls[0].name, name);
            assert_eq!(calls[0].text.as_deref(), text, "{script}");
            assert_eq!(calls[0].json, json, "{script}");
        }
        assert!(tool_calls("mytools.a(1); tools.b; tools.(1)").is_empty());
    }
}
