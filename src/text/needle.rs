//! Text that has to be gone: every form in which it may stand in a file.
//!
//! Exact bytes count, with their case; besides them the two Unicode normal
//! forms, and each as JSON and YAML write it inside of quotation marks. Of a
//! text with several lines each line counts as well, because headers and lists
//! indent them.
//!
//! # Not in here
//!
//! Other encodings (UTF-16, Base64) and compressed files. Whoever purges looks
//! into what Git compresses.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use aho_corasick::{AhoCorasick, MatchKind};
use unicode_normalization::UnicodeNormalization as _;

/// What stands in the place of a purged text.
pub(crate) const PURGED: &str = "[purged]";

/// A shorter text, in bytes, would be found in what has nothing to do with it.
pub(crate) const NEEDLE_BYTES_MIN: usize = 4;

/// How often what is left may put a text together again.
const ROUNDS_MAX: usize = 8;

/// Why a text cannot be purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NeedleError {
    #[error("a text of fewer than {NEEDLE_BYTES_MIN} bytes stands in too many places by chance")]
    TooShort,
    #[error("`{PURGED}` itself has that text")]
    InMark,
    #[error("the text is too long to be looked for")]
    TooLong,
}

/// Finds texts in all their forms.
#[derive(Debug, Clone)]
pub(crate) struct Needles {
    automaton: AhoCorasick,
    forms: Vec<String>,
}

impl Needles {
    /// # Errors
    ///
    /// When one of the texts cannot be told from others.
    pub(crate) fn new(texts: &[String]) -> Result<Self, NeedleError> {
        let mut forms = BTreeSet::new();
        for text in texts {
            let text = text.trim_matches(['\n', '\r']);
            if text.trim().len() < NEEDLE_BYTES_MIN {
                return Err(NeedleError::TooShort);
            }
            let lines = text.lines().map(str::trim);
            let lines = lines.filter(|line| NEEDLE_BYTES_MIN <= line.len());
            for one in lines.chain([text]) {
                let normal: [String; 3] =
                    [one.to_owned(), one.nfc().collect(), one.nfd().collect()];
                for form in normal {
                    forms.extend(quoted(&form));
                    forms.insert(form);
                }
            }
        }
        if forms.iter().any(|form| PURGED.contains(form.as_str())) {
            return Err(NeedleError::InMark);
        }
        let forms: Vec<String> = forms.into_iter().collect();
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&forms);
        let automaton = built.map_err(|_| NeedleError::TooLong)?;
        Ok(Self { automaton, forms })
    }

    /// Every form, sorted.
    pub(crate) fn forms(&self) -> &[String] {
        &self.forms
    }

    pub(crate) fn is_in(&self, bytes: &[u8]) -> bool {
        self.automaton.is_match(bytes)
    }

    /// `bytes` without the text; `None` when it is not in them. A line that
    /// held nothing else goes, any other has the mark in its place.
    pub(crate) fn scrub(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        if !self.is_in(bytes) {
            return None;
        }
        let mark = vec![PURGED.as_bytes(); self.forms.len()];
        let mut scrubbed = bytes.to_vec();
        for _ in 0..ROUNDS_MAX {
            if !self.is_in(&scrubbed) {
                break;
            }
            scrubbed = self.automaton.replace_all_bytes(&scrubbed, &mark);
        }
        let mut out = Vec::with_capacity(scrubbed.len());
        for line in scrubbed.split_inclusive(|byte| *byte == b'\n') {
            match std::str::from_utf8(line) {
                Ok(line) if line.contains(PURGED) => push_line(&mut out, line),
                _ => out.extend_from_slice(line),
            }
        }
        Some(out)
    }

    /// The same for text.
    pub(crate) fn scrub_text(&self, text: &str) -> Option<String> {
        let scrubbed = self.scrub(text.as_bytes())?;
        Some(String::from_utf8_lossy(&scrubbed).into_owned())
    }
}

/// A line with the mark in it, unless it is nothing but the mark.
fn push_line(out: &mut Vec<u8>, line: &str) {
    let rest = line.replace(PURGED, "");
    if !rest.chars().any(char::is_alphanumeric) {
        return;
    }
    // In a YAML header a bracket at the start of a value opens a list.
    let words = line.trim_end_matches(['\n', '\r']);
    let end = &line[words.len()..];
    match words.split_once(": ") {
        Some((key, value))
            if is_key(key) && value.starts_with('[') && !value.contains(['"', '\\']) =>
        {
            out.extend_from_slice(format!("{key}: \"{value}\"{end}").as_bytes());
        }
        _ => out.extend_from_slice(line.as_bytes()),
    }
}

fn is_key(key: &str) -> bool {
    !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_lowercase())
}

/// As it stands between quotation marks: with and without escapes of what is
/// not ASCII.
fn quoted(text: &str) -> Vec<String> {
    let mut plain = String::new();
    let (mut lower, mut upper) = (String::new(), String::new());
    for c in text.chars() {
        let short = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            _ => "",
        };
        if !short.is_empty() {
            for out in [&mut plain, &mut lower, &mut upper] {
                out.push_str(short);
            }
            continue;
        }
        plain.push(c);
        if c.is_ascii() && !c.is_control() {
            lower.push(c);
            upper.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(lower, "\\u{unit:04x}");
            let _ = write!(upper, "\\u{unit:04X}");
        }
    }
    let slashes = plain.replace('/', "\\/");
    vec![plain, lower, upper, slashes]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::{NeedleError, Needles};

    #[track_caller]
    fn check(needle: &str, text: &str, expected: Option<&str>) {
        let needles = Needles::new(&[needle.to_owned()]).unwrap();
        assert_eq!(
            needles.scrub_text(text).as_deref(),
            expected,
            "{needle:?} {text:?}"
        );
    }

    #[test]
    fn every_form_is_found_and_lines_of_nothing_else_go() {
        check(
            "blue moon",
            "a\n- the blue moon rises\nb\n",
            Some("a\n- the [purged] rises\nb\n"),
        );
        check("blue moon", "a\n- \"blue moon\"\nb\n", Some("a\nb\n"));
        check("blue moon", "Blue moon", None);
        check("caf\u{e9} x", "at cafe\u{301} x!", Some("at [purged]!"));
        check(
            "cafe\u{301} x",
            "{\"a\": \"caf\\u00E9 x\"}",
            Some("{\"a\": \"[purged]\"}"),
        );
        check(
            "a\"b/c",
            r#"{"k": "a\"b\/c"}"#,
            Some("{\"k\": \"[purged]\"}"),
        );
        check(
            "key one\nkey two",
            "x: |\n  key one\n  key two\nend\n",
            Some("x: |\nend\n"),
        );
        check("/secret", "cwd: /secret/x\n", Some("cwd: \"[purged]/x\"\n"));
        check("数据库密码", "我们的数据库密码是", Some("我们的[purged]是"));
    }

    #[test]
    fn what_is_everywhere_cannot_be_purged() {
        let new = |text: &str| Needles::new(&[text.to_owned()]).map(|_| ());
        assert_eq!(new("abc"), Err(NeedleError::TooShort));
        assert_eq!(new("  \n a\n"), Err(NeedleError::TooShort));
        assert_eq!(new("purged"), Err(NeedleError::InMark));
    }

    proptest! {
        #[test]
        fn nothing_is_left(needle in "[ab ]{4,8}", text in "[ab \n\\[-]{0,80}") {
            if let Ok(needles) = Needles::new(&[needle]) {
                let scrubbed = needles.scrub(text.as_bytes());
                prop_assert!(scrubbed.is_none_or(|bytes| !needles.is_in(&bytes)));
            }
        }
    }
}
