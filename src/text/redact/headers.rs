//! Secrets known by what stands around them: URLs, HTTP headers, key blocks.

use super::Finding;
use super::around::{begins_word, is_token_byte, run_end, skip_blanks};
use super::values::{is_code_path, is_placeholder, is_random};

/// Longest private key block that is looked through for its end, in bytes.
const KEY_BLOCK_BYTES_MAX: usize = 64 * 1024;

/// Longest part of a URL before its host, in bytes.
const USER_INFO_BYTES_MAX: usize = 1024;

/// Cookie attributes, whose values are no secrets.
const COOKIE_ATTRIBUTES: [&str; 6] = [
    "path", "domain", "expires", "max-age", "samesite", "priority",
];

/// `scheme://user:password@host` with `start` after the slashes: the password,
/// or a user part that looks like a token.
pub(super) fn check_url(text: &str, start: usize) -> Option<Finding> {
    let is_authority = |byte: u8| byte.is_ascii_graphic() && !b"/?#\"'`<>\\|".contains(&byte);
    let limit = text.floor_char_boundary(start + USER_INFO_BYTES_MAX);
    let head = &text[..limit];
    let authority_end = head[start..]
        .char_indices()
        .find(|(_, c)| !u8::try_from(*c).map_or(c.is_alphanumeric(), is_authority))
        .map_or(limit, |(index, _)| start + index);
    let at = start + text[start..authority_end].rfind('@')?;
    let (kind, secret_start) = match text[start..at].find(':') {
        Some(colon) => ("url-password", start + colon + 1),
        None => ("url-token", start),
    };
    let secret = &text[secret_start..at];
    let is_secret = match kind {
        "url-password" => !secret.is_empty() && !is_placeholder(secret) && !is_stand_in(secret),
        _ => 20 <= secret.len() && is_random(secret),
    };
    is_secret.then_some(Finding {
        kind,
        bytes: secret_start..at,
    })
}

/// What documentation writes for a password in a URL.
fn is_stand_in(secret: &str) -> bool {
    const WORDS: [&str; 9] = [
        "password",
        "pass",
        "passwd",
        "pwd",
        "pw",
        "secret",
        "token",
        "user",
        "x-oauth-basic",
    ];
    let is_code = secret.contains(['(', ')', '{', '}', '[', ']', '$']);
    is_code || WORDS.iter().any(|word| secret.eq_ignore_ascii_case(word))
}

/// `Bearer <token>`, in a header or alone, with the word at `start..end`.
pub(super) fn check_bearer(text: &str, start: usize, end: usize) -> Option<Finding> {
    let blanks_end = skip_blanks(text, end);
    if blanks_end == end || !begins_word(text, start) {
        return None;
    }
    let is_part = |byte| is_token_byte(byte) || b"~+/=".contains(&byte);
    let run = run_end(text, blanks_end, is_part);
    let value = text[blanks_end..run].trim_end_matches('.');
    let follows_header = is_after_authorization(&text[..start]);
    let bytes_min = if follows_header { 8 } else { 16 };
    let is_call = text.as_bytes().get(run) == Some(&b'(');
    let is_secret = bytes_min <= value.len()
        && !is_call
        && !is_placeholder(value)
        && !is_code_path(value)
        && (value.bytes().any(|byte| byte.is_ascii_digit())
            || is_random(value)
            || (follows_header && !value.contains('-')));
    is_secret.then(|| Finding {
        kind: "bearer-token",
        bytes: blanks_end..blanks_end + value.len(),
    })
}

/// `Authorization:` or `"authorization": "` directly before, at some distance
/// of quotes and blanks.
fn is_after_authorization(before: &str) -> bool {
    let trimmed = before.trim_end_matches([' ', '\t', '"', '\'', ':', '=', '\\', '`', ',']);
    let name = b"authorization";
    let bytes = trimmed.as_bytes();
    name.len() <= bytes.len() && bytes[bytes.len() - name.len()..].eq_ignore_ascii_case(name)
}

/// `Authorization: <scheme> <token>` of any scheme, and without one.
pub(super) fn check_authorization(text: &str, end: usize) -> Option<Finding> {
    let separator_end = run_end(text, end, |byte| b"\\\"' :=".contains(&byte));
    let scheme_end = run_end(text, separator_end, |byte| byte.is_ascii_alphabetic());
    let blanks_end = skip_blanks(text, scheme_end);
    if text[separator_end..scheme_end].eq_ignore_ascii_case("bearer") {
        return None;
    }
    let start = if scheme_end < blanks_end {
        blanks_end
    } else {
        separator_end
    };
    let is_part = |byte| is_token_byte(byte) || b"~+/=".contains(&byte);
    let run = run_end(text, start, is_part);
    let value = text[start..run].trim_end_matches('.');
    let has_separator = text[end..separator_end].contains([':', '=']);
    let is_secret = has_separator
        && is_random(value)
        && !is_placeholder(value)
        && !is_code_path(value)
        && text.as_bytes().get(run) != Some(&b'(');
    is_secret.then(|| Finding {
        kind: "authorization",
        bytes: start..start + value.len(),
    })
}

/// `"auth": "<base64 of user:password>"` as container tools keep it.
pub(super) fn check_auth(text: &str, end: usize) -> Option<Finding> {
    let start = run_end(text, end, |byte| b"\\\": =".contains(&byte));
    check_basic(text, start)
}

/// The signature of a link that opens without a login: `&sig=…`.
pub(super) fn check_signature(text: &str, start: usize, end: usize) -> Option<Finding> {
    let is_parameter = text[..start].ends_with(['?', '&', ';']);
    let value_end = run_end(text, end, |byte| {
        is_token_byte(byte) || b"%+/=".contains(&byte)
    });
    (is_parameter && 16 <= value_end - end && is_random(&text[end..value_end])).then_some(Finding {
        kind: "url-signature",
        bytes: end..value_end,
    })
}

/// `Basic <base64 of user:password>`; the words after "basic" in prose are no
/// base64 of that form.
pub(super) fn check_basic(text: &str, end: usize) -> Option<Finding> {
    let start = skip_blanks(text, end);
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte);
    let value_end = run_end(text, start, is_part);
    let value = &text[start..value_end];
    let is_credentials = 8 <= value.len()
        && decode_base64(value).is_some_and(|decoded| {
            decoded.contains(&b':') && decoded.iter().all(|byte| 0x20 <= *byte && *byte != 0x7f)
        });
    is_credentials.then_some(Finding {
        kind: "basic-credentials",
        bytes: start..value_end,
    })
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if 8 <= count {
            count -= 8;
            decoded.push(((bits >> count) & 0xff) as u8);
        }
    }
    Some(decoded)
}

/// `Cookie: a=b; c=d` and `Set-Cookie: a=b; Path=/`, with `start` after the
/// colon: the values, not the names.
pub(super) fn check_cookie(text: &str, start: usize, found: &mut Vec<Finding>) {
    let mut at = skip_blanks(text, start);
    loop {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.$".contains(&byte);
        let name_end = run_end(text, at, is_name);
        let has_value = name_end != at && text.as_bytes().get(name_end) == Some(&b'=');
        let is_value = |byte: u8| byte.is_ascii_graphic() && !b"\"',;\\`<>(){}".contains(&byte);
        let value_end = if has_value {
            run_end(text, name_end + 1, is_value)
        } else {
            name_end
        };
        if has_value {
            let value = &text[name_end + 1..value_end];
            let name = text[at..name_end].to_ascii_lowercase();
            let is_attribute = COOKIE_ATTRIBUTES.contains(&name.as_str());
            if 8 <= value.len() && !is_attribute && !is_placeholder(value) {
                found.push(Finding {
                    kind: "cookie",
                    bytes: name_end + 1..value_end,
                });
            }
        }
        if text.as_bytes().get(value_end) != Some(&b';') {
            return;
        }
        at = skip_blanks(text, value_end + 1);
    }
}

/// A private key in armour: all lines of it, on one line with `\n` too, and
/// also when its end is missing. `start..end` is `-----BEGIN `.
pub(super) fn check_private_key(text: &str, start: usize, end: usize) -> Option<Finding> {
    let label_end = run_end(text, end, |byte| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
    });
    let label = &text[end..label_end];
    if !label.contains("PRIVATE KEY") || !text[label_end..].starts_with("-----") {
        return None;
    }
    let body_start = label_end + 5;
    let limit = text.floor_char_boundary(body_start.saturating_add(KEY_BLOCK_BYTES_MAX));
    let footer = format!("-----END {label}-----");
    let block_end = match text[body_start..limit].find(&footer) {
        Some(length) => {
            let has_key = has_key_line(&text[body_start..body_start + length]);
            has_key.then_some(body_start + length + footer.len())
        }
        None => unterminated_end(text, body_start, limit),
    };
    block_end.map(|block_end| Finding {
        kind: "private-key",
        bytes: start..block_end,
    })
}

/// Shortest run of base64 that makes a block a key and not an example.
const KEY_LINE_BYTES_MIN: usize = 16;

fn is_base64_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}

fn has_key_line(body: &str) -> bool {
    body.split(|c: char| !u8::try_from(c).is_ok_and(is_base64_byte))
        .any(|run| KEY_LINE_BYTES_MIN <= run.len())
}

/// End of the last base64 line when the footer is missing: lines of key text
/// and of its headers, whatever indents or quotes them.
fn unterminated_end(text: &str, start: usize, limit: usize) -> Option<usize> {
    let mut end = None;
    let mut at = start;
    loop {
        at = skip_line_noise(text, at, limit);
        let run = run_end(text, at, is_base64_byte).min(limit);
        let is_header = text.as_bytes().get(run).is_some_and(|b| b":-,".contains(b));
        let is_line = KEY_LINE_BYTES_MIN <= run - at;
        let is_last = end.is_some() && 0 < run - at && !is_header && ends_line(text, run);
        if is_header && !is_line && end.is_none() {
            at = run_end(text, run, |byte| {
                byte != b'\n' && byte != b'\\' && byte < 0x80
            });
            if at <= run || limit <= at {
                return None;
            }
        } else if is_line || is_last {
            end = Some(run);
            at = run;
        } else {
            return end;
        }
    }
}

fn ends_line(text: &str, at: usize) -> bool {
    let next = text.as_bytes().get(at);
    next.is_none_or(|byte| b"\r\n\\\"'`".contains(byte))
}

/// Line ends, also escaped ones, with what a diff, quotation or listing puts
/// before the next line.
fn skip_line_noise(text: &str, start: usize, limit: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while at < limit {
        match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' | b'>' | b'|' | b'"' | b',' => at += 1,
            b'\\' => {
                let escapes = run_end(text, at, |byte| byte == b'\\');
                match bytes.get(escapes) {
                    Some(b'n' | b'r' | b't') => at = escapes + 1,
                    _ => return at,
                }
            }
            b'+' if bytes[at - 1] == b'\n' => at += 1,
            _ => return at,
        }
    }
    at
}
