//! Values that a telling name gives away: `MY_API_KEY=…`, `"password": "…"`.
//!
//! Code is full of such names without secrets behind them (`token:
//! Option<String>`, `password = prompt()`), so the value decides: see
//! `values`. What is not quoted must look random, unless a shell or `.env`
//! line assigns it to a name in capitals.

use super::Finding;
use super::around::{run_end, skip_blanks};
use super::values::{
    is_code_path, is_label, is_location, is_name_like, is_placeholder, is_random, is_sentence,
    is_version_or_number,
};

pub(super) const KIND: &str = "assigned-secret";

/// Words inside telling names, in lower case, for the scan.
pub(super) const NAME_WORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "passwort",
    "contraseña",
    "senha",
    "пароль",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
    "secret",
    "token",
    "api_key",
    "api-key",
    "apikey",
    "access_key",
    "access-key",
    "accesskey",
    "private_key",
    "privatekey",
    "account_key",
    "accountkey",
    "auth_key",
    "authkey",
    "encryption_key",
    "signing_key",
    "signingkey",
    "master_key",
    "credential",
    "amz-signature",
    "goog-signature",
];

/// Ends of telling names, joiners taken out, in lower case.
const NAME_ENDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "passwort",
    "contraseña",
    "senha",
    "пароль",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "accountkey",
    "authkey",
    "encryptionkey",
    "signingkey",
    "masterkey",
    "credential",
    "credentials",
    "amzsignature",
    "googsignature",
];

/// As the first names of [`NAME_ENDS`]: what people think of and type.
const PASSWORD_ENDS: usize = 12;

/// What may follow the telling end of a name.
const NAME_TAILS: [&str; 9] = [
    "base",
    "prod",
    "production",
    "dev",
    "test",
    "staging",
    "live",
    "value",
    "old",
];

/// Names that look telling and are not: the shell's working folder.
const HARMLESS_NAMES: [&str; 2] = ["PWD", "OLDPWD"];

/// Longest name that is looked at, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Longest quoted value, in bytes.
const VALUE_BYTES_MAX: usize = 4096;

/// Shortest value, as in the reference; a quoted password with a digit may
/// have six.
const VALUE_BYTES_MIN: usize = 8;
const PASSWORD_BYTES_MIN: usize = 6;

/// How a value is written, which says how much proof it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Quoted,
    Bare,
    /// `NAME=value` in a shell or `.env` file.
    Environment,
    /// A bare value that fills the rest of a configuration line.
    Line,
    /// Nothing but nearness ties value and name, as in `setPassword("…")`.
    Near,
    /// A sentence says so: `the password is …`.
    Prose,
}

#[derive(Debug, Clone, Copy)]
struct Name<'a> {
    text: &'a str,
    start: usize,
    is_password: bool,
    is_capitals: bool,
}

impl Name<'_> {
    /// A secret or a key, not a token: parsers have tokens too.
    fn is_secret(&self) -> bool {
        let lower = self.text.to_ascii_lowercase();
        !lower.ends_with("token")
    }
}

/// Looks at the name around the word at `start..end`. The first result is how
/// far names were read, so that the same one is not read twice.
pub(super) fn check(text: &str, start: usize, end: usize) -> (usize, Option<Finding>) {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let name_end = run_end(text, end, is_name_byte).min(end + NAME_BYTES_MAX);
    let before = (text.as_bytes()[..start].iter().rev())
        .take(NAME_BYTES_MAX)
        .take_while(|byte| is_name_byte(**byte) || **byte == b'.')
        .count();
    let name_start = start - before;
    let finding = telling(&text[name_start..name_end], name_start)
        .and_then(|name| value(text, name, name_end))
        .map(|bytes| Finding { kind: KIND, bytes });
    (name_end, finding)
}

fn telling(text: &str, start: usize) -> Option<Name<'_>> {
    if HARMLESS_NAMES.contains(&text) {
        return None;
    }
    let joined: String = text.to_lowercase().replace(['_', '-', '.'], "");
    let joined = joined.trim_end_matches(|c: char| c.is_ascii_digit());
    let find = |name: &str| NAME_ENDS.iter().position(|end| name.ends_with(end));
    let index = find(joined).or_else(|| {
        (NAME_TAILS.iter())
            .filter_map(|tail| joined.strip_suffix(tail))
            .find_map(find)
    })?;
    Some(Name {
        text,
        start,
        is_password: index < PASSWORD_ENDS,
        is_capitals: text.bytes().any(|byte| byte.is_ascii_uppercase())
            && !text.bytes().any(|byte| byte.is_ascii_lowercase()),
    })
}

/// The value that `name`, which ends at `at`, is given, if it is a secret.
fn value(text: &str, name: Name<'_>, at: usize) -> Option<std::ops::Range<usize>> {
    let (separator_end, style) = separator(text, name, at)?;
    let start = value_start(text, separator_end);
    let bytes = match opening_quote(text, start) {
        Some((value_start, quote, slashes)) => {
            let end = closing_quote(text, value_start, quote, slashes);
            let style = if style == Style::Near {
                Style::Near
            } else {
                Style::Quoted
            };
            return is_secret(name, &text[value_start..end], style, None)
                .then_some(value_start..end);
        }
        None if style == Style::Near => return None,
        None => start..bare_end(text, start, style),
    };
    if text[separator_end..start].contains('\n') && !is_random(&text[bytes.clone()]) {
        return None;
    }
    let closes_element = text[bytes.end..].starts_with("</");
    let next = (text[bytes.end..].chars().next()).filter(|_| !closes_element);
    let ends_line = next.is_none_or(|next| "\r\n&\\".contains(next));
    let style = if style == Style::Bare && ends_line && is_line(text, name, separator_end, start) {
        Style::Line
    } else {
        style
    };
    if !is_secret(name, &text[bytes.clone()], style, next) {
        return None;
    }
    let end = if name.is_password {
        password_end(text, bytes.end)
    } else {
        bytes.end
    };
    Some(bytes.start..end)
}

/// A bare password goes on over `&`, `|`, brackets and the like to the next
/// blank or quote, unless the next parameter of a URL or an element's end
/// follows.
fn password_end(text: &str, end: usize) -> usize {
    let stops = |c: char| c.is_whitespace() || "\"'`\\,;，。；、）".contains(c);
    let rest = &text[end..];
    let rest = &rest[..rest.find(stops).unwrap_or(rest.len())];
    let rest = rest.trim_end_matches(['.', ':', ')', ']', '}', '>', '|']);
    if rest.contains('=') || rest.contains("</") {
        return end;
    }
    end + rest.len()
}

/// Whether a bare value stands as configuration files and command lines have
/// it: after `name=`, or after `name:` at the start of a line.
fn is_line(text: &str, name: Name<'_>, separator_end: usize, start: usize) -> bool {
    let is_adjacent = text[..separator_end].ends_with('=') && separator_end == start;
    let line = last_line(&text[..name.start]).trim_start_matches([' ', '\t', '-']);
    let is_colon = text[..separator_end].ends_with(':');
    is_adjacent || (is_colon && name.is_password && line.is_empty())
}

/// What ties value and name together, and where the value may begin.
fn separator(text: &str, name: Name<'_>, at: usize) -> Option<(usize, Style)> {
    let slashes_end = run_end(text, at, |byte| byte == b'\\');
    let closes_quote = matches!(text.as_bytes().get(slashes_end), Some(b'"' | b'\'' | b'`'));
    let mut end = if closes_quote { slashes_end + 1 } else { at };
    for closing in ["]", ")", "**", "__"] {
        end += text[end..]
            .strip_prefix(closing)
            .map_or(0, |_| closing.len());
    }
    let blanks_end = skip_blanks(text, end);
    let rest = &text[blanks_end..];
    let before = &text[..name.start];
    if rest.starts_with("::") || rest.starts_with("://") {
        return None;
    }
    for sign in [
        "===", "!==", "==", "!=", ":=", "=>", "：", "＝", "%3D", "%3d", ":", "=", "?=",
    ] {
        if !rest.starts_with(sign) {
            continue;
        }
        let after = blanks_end + sign.len();
        let is_comparison = sign.ends_with("==") || sign == "!=";
        let is_adjacent = sign == "=" && blanks_end == at && name.is_capitals;
        let begins_line = begins_assignment(before);
        return Some(match sign {
            _ if is_comparison => (after, Style::Near),
            "=" if is_adjacent && begins_line => (after, Style::Environment),
            ":" => (skip_type(text, after), Style::Bare),
            _ => (after, Style::Bare),
        });
    }
    let opens_quote = rest.starts_with(['"', '\'']) || rest.starts_with("\\\"");
    if (closes_quote && rest.starts_with(',')) || (!closes_quote && rest.starts_with('(')) {
        return Some((blanks_end + 1, Style::Near));
    }
    if before.ends_with('<') && rest.starts_with('>') {
        return Some((blanks_end + 1, Style::Bare));
    }
    if blanks_end == end {
        return None;
    }
    let is_flag = name.text.starts_with("--");
    let is_netrc = name.text == "password" && last_line(before).contains("login ");
    if is_flag || is_netrc {
        return Some((blanks_end, Style::Bare));
    }
    let says_is = ["is ", "ist ", "est ", "es ", "to "]
        .iter()
        .find(|verb| rest.starts_with(**verb));
    if let (Some(verb), true) = (says_is, name.is_password) {
        return Some((blanks_end + verb.len(), Style::Prose));
    }
    opens_quote.then_some((blanks_end, Style::Near))
}

fn last_line(before: &str) -> &str {
    before.rsplit('\n').next().unwrap_or(before)
}

/// Whether a shell or `.env` line begins before the name.
fn begins_assignment(before: &str) -> bool {
    let line = last_line(before).trim_start_matches([' ', '\t', '+', '-', '>', '|', '$', '#']);
    let words = line.trim_end();
    [
        "",
        "export",
        "set",
        "env",
        "ENV",
        "ARG",
        "declare -x",
        "-e",
        "--env",
    ]
    .iter()
    .any(|start| words == *start || words.ends_with(&format!(" {start}")))
        || before.ends_with("\\n")
}

/// Skips a type between `name:` and `=` when a quoted value follows it.
fn skip_type(text: &str, start: usize) -> usize {
    let is_type = |byte: u8| byte.is_ascii_alphanumeric() || b" &<>'[]:._|?*".contains(&byte);
    let end = run_end(text, start, is_type);
    let is_typed = end - start <= 48 && text[end..].starts_with('=');
    let after = skip_blanks(text, (end + 1).min(text.len()));
    if is_typed && opening_quote(text, after).is_some() {
        after
    } else {
        start
    }
}

/// Skips blanks and at most one line end.
fn value_start(text: &str, start: usize) -> usize {
    let blanks_end = skip_blanks(text, start);
    let rest = &text[blanks_end..];
    let line_end = rest
        .strip_prefix("\r\n")
        .or_else(|| rest.strip_prefix('\n'));
    line_end.map_or(blanks_end, |next| {
        skip_blanks(text, text.len() - next.len())
    })
}

/// Where a quoted value begins, its quote, and how many backslashes stand
/// before that (JSON in JSON).
fn opening_quote(text: &str, start: usize) -> Option<(usize, u8, usize)> {
    let bytes = text.as_bytes();
    let is_prefix = bytes.get(start).is_some_and(|byte| b"rbfu@".contains(byte));
    let quoted_at = |at: usize| {
        let slashes_end = run_end(text, at, |byte| byte == b'\\');
        let quote = *bytes.get(slashes_end)?;
        let is_quote = b"\"'`".contains(&quote);
        is_quote.then_some((slashes_end + 1, quote, slashes_end - at))
    };
    quoted_at(start).or_else(|| {
        if is_prefix {
            quoted_at(start + 1)
        } else {
            None
        }
    })
}

/// The end of a value whose opening quote had `slashes` backslashes: the same
/// quote with no more of them, or the end of the line.
fn closing_quote(text: &str, start: usize, quote: u8, slashes: usize) -> usize {
    let limit = text.floor_char_boundary(start + VALUE_BYTES_MAX);
    let mut backslashes = 0;
    for (index, byte) in text.as_bytes()[start..limit].iter().enumerate() {
        match *byte {
            b'\n' | b'\r' => return start + index - backslashes,
            b'\\' => backslashes += 1,
            byte if byte == quote => {
                let is_even = slashes == 0 && backslashes % 2 == 0;
                if is_even || (0 < slashes && backslashes <= slashes) {
                    return start + index - if slashes == 0 { 0 } else { backslashes };
                }
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
    }
    limit
}

fn bare_end(text: &str, start: usize, style: Style) -> usize {
    let stops = |c: char| {
        c.is_whitespace()
            || matches!(c, '"' | '\'' | '`')
            || (style != Style::Environment && ",;)}]>|\\&(<{[，。；、）".contains(c))
    };
    let length = text[start..].find(stops).unwrap_or(text.len() - start);
    let value = &text[start..start + length];
    start + value.trim_end_matches(['.', ',', ';', ':']).len()
}

fn is_secret(name: Name<'_>, value: &str, style: Style, next: Option<char>) -> bool {
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let is_short_password = style == Style::Quoted && name.is_password && has_digit;
    let bytes_min = if is_short_password {
        PASSWORD_BYTES_MIN
    } else {
        VALUE_BYTES_MIN
    };
    // What follows a closing quote: `print("token=" + token)`.
    let follows_quote = style != Style::Environment && value.starts_with([' ', ')', ',', ';']);
    let is_short = value.len() < bytes_min;
    if is_short || follows_quote || is_placeholder(value) || is_location(value) {
        return false;
    }
    match style {
        Style::Environment => !is_code(value, next) && !is_constant(value),
        Style::Quoted if value.contains(' ') => is_spaced_secret(name, value),
        Style::Quoted => is_quoted_secret(name, value, has_digit),
        Style::Near => !value.contains(' ') && has_digit && is_near_secret(value),
        Style::Prose => has_digit && is_prose_secret(value),
        Style::Line if is_plain_word(value) => name.is_password || name.is_secret(),
        Style::Bare | Style::Line => {
            !is_code(value, next) && is_bare_secret(name, value, has_digit)
        }
    }
}

fn is_code(value: &str, next: Option<char>) -> bool {
    let is_called = next.is_some_and(|next| "([{<".contains(next));
    is_called || value.contains(['(', '|', '{']) || value.contains("::") || is_code_path(value)
}

/// `OTHER_CONSTANT`: another name, not a value.
fn is_constant(value: &str) -> bool {
    value.contains('_')
        && value
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

fn is_spaced_secret(name: Name<'_>, value: &str) -> bool {
    name.is_capitals || !is_sentence(value)
}

fn is_quoted_secret(name: Name<'_>, value: &str, has_digit: bool) -> bool {
    if is_code_path(value) || is_constant(value) || is_version_or_number(value) {
        return name.is_password && has_digit && !is_code_path(value) && value.contains(['!', '#']);
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    if name.is_password {
        return has_digit || !(is_label(value) || is_about_passwords(value));
    }
    if has_digit {
        3 <= digits || !is_name_like(value)
    } else {
        let is_long_word = 12 <= value.len() && is_plain_word(value) && name.is_secret();
        name.is_capitals || is_long_word || is_random(value)
    }
}

/// Field and type names such as `current-password` and `passwordField`.
fn is_about_passwords(value: &str) -> bool {
    let lower = value.to_lowercase();
    NAME_ENDS[..PASSWORD_ENDS]
        .iter()
        .any(|word| lower.contains(word))
}

/// One word in small letters: a variable in code, a password in a file.
fn is_plain_word(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Names of algorithms and encodings follow "the password is" too.
fn is_prose_secret(value: &str) -> bool {
    const ALGORITHMS: [&str; 8] = [
        "argon2", "pbkdf2", "sha", "md5", "base64", "bcrypt", "utf", "pkcs",
    ];
    let lower = value.to_ascii_lowercase();
    let is_algorithm = ALGORITHMS.iter().any(|name| lower.starts_with(name));
    let has_letter = value.chars().any(char::is_alphabetic);
    has_letter && !is_algorithm && !is_version_or_number(value) && !is_code_path(value)
}

fn is_near_secret(value: &str) -> bool {
    let has_letter = value.chars().any(char::is_alphabetic);
    has_letter && !is_name_like(value) && !is_code_path(value) && !is_version_or_number(value)
}

fn is_bare_secret(name: Name<'_>, value: &str, has_digit: bool) -> bool {
    if !has_digit || is_version_or_number(value) {
        return name.is_password && has_digit && !value.contains(['.', ':', '-', '_']);
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let is_one_word = !value.contains(['_', '-']);
    if name.is_password {
        !is_name_like(value) || (is_one_word && value.len() - digits < 16)
    } else {
        is_random(value) || (2 <= digits && 10 <= value.len() && !is_name_like(value))
    }
}
