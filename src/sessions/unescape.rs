//! Long strings of a line, decoded in one go.
//!
//! `serde_json` grows a buffer while it decodes a string with escapes and then
//! has it copied. Tool outputs are most of a transcript and full of line feeds,
//! so here the string is skipped first and decoded into memory of its size.

use std::borrow::Cow;

use serde::Deserializer;
use serde::de::{Deserialize, Error};
use serde_json::value::RawValue;

use crate::sessions::wire::{Content, Text};

/// For `deserialize_with`: a [`Text`] that may be long.
pub(super) fn long_text<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Text<'a>, D::Error> {
    let json = <&'a RawValue>::deserialize(from)?.get();
    if !json.starts_with('"') {
        return Ok(Text(None));
    }
    let text = decoded(json).ok_or_else(|| D::Error::custom(HALF_PAIR))?;
    Ok(Text(Some(text)))
}

/// For `deserialize_with`: a [`Content`] that mostly is a long text. Not for a
/// content inside of contents: the limit on depth counts from here again.
pub(super) fn long_content<'de: 'a, 'a, D: Deserializer<'de>>(
    from: D,
) -> Result<Content<'a>, D::Error> {
    let json = <&'a RawValue>::deserialize(from)?.get();
    if !json.starts_with('"') {
        return serde_json::from_str(json).map_err(D::Error::custom);
    }
    let text = decoded(json).ok_or_else(|| D::Error::custom(HALF_PAIR))?;
    Ok(Content::Text(text))
}

const HALF_PAIR: &str = "half of a surrogate pair";

/// The text of a JSON string with its quotes, which has been found to end;
/// `None` where it holds half of a surrogate pair.
fn decoded(json: &str) -> Option<Cow<'_, str>> {
    let mut rest = json.strip_prefix('"')?.strip_suffix('"')?;
    let Some(mut at) = memchr::memchr(b'\\', rest.as_bytes()) else {
        return Some(Cow::Borrowed(rest));
    };
    let mut text = String::with_capacity(rest.len());
    loop {
        text.push_str(&rest[..at]);
        let (decoded, behind) = escape(&rest[at + 1..])?;
        text.push(decoded);
        rest = behind;
        match memchr::memchr(b'\\', rest.as_bytes()) {
            Some(next) => at = next,
            None => break,
        }
    }
    text.push_str(rest);
    Some(Cow::Owned(text))
}

/// The character behind a backslash, and what follows it.
fn escape(rest: &str) -> Option<(char, &str)> {
    let decoded = match rest.as_bytes().first()? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => return unicode(rest),
        plain @ (b'"' | b'\\' | b'/') => char::from(*plain),
        _ => return None,
    };
    Some((decoded, &rest[1..]))
}

fn unicode(rest: &str) -> Option<(char, &str)> {
    let (first, behind) = unit(rest)?;
    if !(0xD800..0xDC00).contains(&first) {
        return Some((char::from_u32(first)?, behind));
    }
    let (second, behind) = unit(behind.strip_prefix('\\')?)?;
    let low = second.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
    let pair = 0x1_0000 + ((first - 0xD800) << 10) + low;
    Some((char::from_u32(pair)?, behind))
}

/// The number in `u00e9`.
fn unit(rest: &str) -> Option<(u32, &str)> {
    let (digits, behind) = rest.strip_prefix('u')?.split_at_checked(4)?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let unit = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    Some((unit, behind))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::decoded;

    #[test]
    fn strings_without_escapes_are_borrowed() {
        for json in [r#""""#, r#""plain""#, r#""漢字 é""#] {
            let text = decoded(json).unwrap();
            assert!(matches!(text, std::borrow::Cow::Borrowed(_)), "{json}");
        }
    }

    #[test]
    fn half_a_pair_is_no_text() {
        for json in [
            r#""\ud83d""#,
            r#""\ud83d\n""#,
            r#""\ud83d\u0041""#,
            r#""\ude00""#,
        ] {
            assert_eq!(decoded(json), None, "{json}");
            assert!(serde_json::from_str::<String>(json).is_err());
        }
    }

    proptest! {
        #[test]
        fn every_string_reads_as_with_serde_json(
            parts in prop::collection::vec(
                prop_oneof![
                    "[ -~é漢😀]{0,6}".prop_map(|text| text.replace(['"', '\\'], "")),
                    prop::sample::select(vec![
                        r"\n", r"\t", r"\r", r"\b", r"\f", r"\/", r"\\", "\\\"",
                        r"\u00e9", r"\u0000", r"\uD83D\uDE00", r"\ud83d", r"\ude00", r"\uFFFF",
                    ])
                    .prop_map(str::to_owned),
                ],
                0..12,
            ),
        ) {
            let json = format!("\"{}\"", parts.concat());
            let expected = serde_json::from_str::<String>(&json).ok();
            prop_assert_eq!(decoded(&json).map(std::borrow::Cow::into_owned), expected);
        }
    }
}
