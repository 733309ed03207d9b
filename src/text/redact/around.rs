//! Looking at the characters around a place without leaving the text.

/// Whether a token may begin at `start`: no letter, digit or listed joiner
/// stands before it, or only the end of an escape such as `\n`, `%3D`,
/// `\u003d` or the `m` that ends a colour.
pub(super) fn begins_word(text: &str, start: usize) -> bool {
    let bytes = &text.as_bytes()[..start];
    let Some(&before) = bytes.last() else {
        return true;
    };
    let is_joined = before.is_ascii_alphanumeric() || 0x80 <= before;
    !is_joined || ends_in_escape(bytes) || (0x80 <= before && !ends_in_letter(&text[..start]))
}

fn ends_in_letter(text: &str) -> bool {
    // Scripts without spaces put words directly before a token; only the
    // alphabets in which a token could be the tail of a word count.
    let last = text.chars().next_back();
    last.is_some_and(|c| c.is_alphabetic() && (c as u32) < 0x2E80)
}

fn ends_in_escape(bytes: &[u8]) -> bool {
    let tail = |length: usize| {
        let start = bytes.len().checked_sub(length)?;
        Some(&bytes[start..])
    };
    let all_hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    let is_control = tail(2).is_some_and(|t| t[0] == b'\\' && b"nrt".contains(&t[1]));
    let is_percent = tail(3).is_some_and(|t| t[0] == b'%' && all_hex(&t[1..]));
    let is_unicode = tail(6).is_some_and(|t| t.starts_with(b"\\u") && all_hex(&t[2..]));
    let is_hex = tail(4).is_some_and(|t| t.starts_with(b"\\x") && all_hex(&t[2..]));
    let is_colour = bytes.last() == Some(&b'm') && {
        let digits = bytes[..bytes.len() - 1]
            .iter()
            .rev()
            .take(12)
            .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
            .count();
        bytes[..bytes.len() - 1 - digits].last() == Some(&b'[')
    };
    is_control || is_percent || is_unicode || is_hex || is_colour
}

/// End of the run of bytes from `start` on for which `is_part` holds.
/// `is_part` may only accept ASCII, so the end is a character border.
pub(super) fn run_end(text: &str, start: usize, is_part: impl Fn(u8) -> bool) -> usize {
    let rest = &text.as_bytes()[start..];
    let length = rest.iter().position(|byte| !is_part(*byte));
    start + length.unwrap_or(rest.len())
}

/// Letters, digits, `-`, `_`, `.`: what tokens of any maker are made of.
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

/// Skips spaces and tabs.
pub(super) fn skip_blanks(text: &str, start: usize) -> usize {
    run_end(text, start, |byte| byte == b' ' || byte == b'\t')
}
