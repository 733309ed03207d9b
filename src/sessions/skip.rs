//! Passes over JSON that nobody reads, faster than a parser can.
//!
//! A third of a transcript is encrypted reasoning, token counts and the like.
//! Whether such a record is whole has to be known, what it says does not: here
//! strings are passed over by looking for their end alone.
//!
//! Strict: what is called an object here is one for every JSON parser. What is
//! not may still be one, and a parser decides.

use memchr::memchr2;

/// Brackets inside brackets; parsers give up a little above.
const DEPTH_MAX: usize = 100;

/// Whether `json` is one object and nothing more.
pub(super) fn is_object(json: &str) -> bool {
    let mut skipper = Skipper {
        bytes: json.as_bytes(),
        at: 0,
    };
    json.starts_with('{') && skipper.value().is_some() && skipper.at == json.len()
}

struct Skipper<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Where the skipper stands inside an object or list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Object,
    List,
}

impl Skipper<'_> {
    /// Passes over one value; `None` where there is none.
    fn value(&mut self) -> Option<()> {
        let mut stack: Vec<Inside> = Vec::with_capacity(16);
        loop {
            let opened = match self.peek()? {
                b'{' => Some(Inside::Object),
                b'[' => Some(Inside::List),
                _ => None,
            };
            match opened {
                Some(_) if stack.len() == DEPTH_MAX => return None,
                Some(inside) => {
                    self.at += 1;
                    self.space();
                    if self.peek()? == closing(inside) {
                        self.at += 1;
                    } else {
                        stack.push(inside);
                        if inside == Inside::Object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                None => self.scalar()?,
            }
            // A value has ended: so do the brackets that close behind it.
            loop {
                let Some(inside) = stack.last().copied() else {
                    return Some(());
                };
                self.space();
                let next = self.peek()?;
                self.at += 1;
                if next == b',' {
                    self.space();
                    if inside == Inside::Object {
                        self.key()?;
                    }
                    break;
                }
                if next != closing(inside) {
                    return None;
                }
                stack.pop();
            }
        }
    }

    fn key(&mut self) -> Option<()> {
        self.string()?;
        self.space();
        self.byte(b':')?;
        self.space();
        Some(())
    }

    fn scalar(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn string(&mut self) -> Option<()> {
        self.byte(b'"')?;
        loop {
            let rest = &self.bytes[self.at..];
            let end = memchr2(b'"', b'\\', rest)?;
            let smallest = rest[..end].iter().fold(u8::MAX, |low, byte| low.min(*byte));
            if smallest < b' ' {
                return None;
            }
            self.at += end + 1;
            if rest[end] == b'"' {
                return Some(());
            }
            match self.peek()? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                // Halves of pairs are a parser's affair.
                b'u' => {
                    let digits = self.bytes.get(self.at + 1..self.at + 5)?;
                    let is_plain = digits.iter().all(u8::is_ascii_hexdigit)
                        && !matches!(digits[0], b'd' | b'D');
                    is_plain.then_some(())?;
                    self.at += 5;
                }
                _ => return None,
            }
        }
    }

    fn number(&mut self) -> Option<()> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        let first = self.peek()?;
        let whole = self.digits()?;
        if first == b'0' && whole > 1 {
            return None;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            // Numbers too large for a parser are its affair.
            return None;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<usize> {
        const DIGITS_MAX: usize = 30;
        let rest = &self.bytes[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (1..=DIGITS_MAX).contains(&count).then_some(count)
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes[self.at..].starts_with(word).then_some(())?;
        self.at += word.len();
        Some(())
    }

    fn byte(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then_some(())?;
        self.at += 1;
        Some(())
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

const fn closing(inside: Inside) -> u8 {
    match inside {
        Inside::Object => b'}',
        Inside::List => b']',
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::is_object;

    #[test]
    fn objects_are_told_from_what_a_parser_must_look_at() {
        for (json, expected) in [
            ("{}", true),
            (
                r#"{"a":[1,-2.5,{"b":null}],"c":"x\n\u00e9\"","d":true}"#,
                true,
            ),
            (r#"{ "a" : [ ] , "b" : { } }"#, true),
            (r#"{"a":1}{"b":2}"#, false),
            (r#"{"a":1} "#, false),
            (r#"{"a":1"#, false),
            (r#"{"a":01}"#, false),
            (r#"{"a":1e5}"#, false),
            (r#"{"a":1,}"#, false),
            (r#"{"a":[1 2]}"#, false),
            (r#"{"a":[1}]"#, false),
            (r#"{"a":tru}"#, false),
            (r#"{"a" "b"}"#, false),
            (r#"{"a":"\ud83d\ude00"}"#, false),
            (r#"{"a":"\x"}"#, false),
            ("{\"a\":\"\u{1}\"}", false),
            ("[]", false),
            ("", false),
        ] {
            assert_eq!(is_object(json), expected, "{json}");
        }
        let deep = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_object(&deep(99)));
        assert!(!is_object(&deep(100)));
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::hash_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_a_parser_writes_is_passed_over(inner in value()) {
            let json = serde_json::json!({ "a": inner }).to_string();
            prop_assert!(is_object(&json), "{}", json);
        }

        /// One byte of an object changed: what is passed over still parses.
        #[test]
        fn what_is_passed_over_parses(inner in value(), at in any::<prop::sample::Index>(), byte in 0_u8..128) {
            let mut bytes = serde_json::json!({ "a": inner }).to_string().into_bytes();
            let index = at.index(bytes.len());
            bytes[index] = byte;
            if let Ok(json) = String::from_utf8(bytes) && is_object(&json) {
                prop_assert!(serde_json::from_str::<IgnoredAny>(&json).is_ok(), "{}", json);
            }
        }
    }
}
