//! From lines to records: what damage a line may have, survived and reported.
//!
//! The fast way is one parse of an undamaged line. Only when that fails is the
//! line looked at again: bytes that are not UTF-8, NULs of a crash, half of a
//! surrogate pair, two records on one line, a record cut short.
//!
//! # Source
//!
//! Every row of the damage table was seen in real transcripts or reported by
//! users of such tools; the table test beside the corpus has them all.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Read};

use serde::de::IgnoredAny;

use crate::domain::session::{DAMAGE_LISTED_MAX, Damage, ReadReport};
use crate::sessions::lines::{Line, LineReader};

/// Most records that are looked for on one line.
const RECORDS_PER_LINE_MAX: usize = 10_000;

/// What a reader did with a record.
pub(super) enum Taken {
    /// It was understood, and what it says was used.
    Read,
    /// It is of a kind that is not used.
    Ignored(Cow<'static, str>),
}

impl Taken {
    /// Names come from the transcript: they are shortened.
    pub(super) fn ignored(kind: &str, inner: &str) -> Self {
        Self::Ignored(Cow::Owned(match (kind, inner) {
            ("", _) => "without a type".to_owned(),
            (kind, "") => short(kind).to_owned(),
            (kind, inner) => [short(kind), "/", short(inner)].concat(),
        }))
    }
}

fn short(kind: &str) -> &str {
    const KIND_BYTES_MAX: usize = 80;
    &kind[..kind.floor_char_boundary(KIND_BYTES_MAX)]
}

/// Takes records one by one.
pub(super) trait Sink {
    /// Parses `json` and takes it in; nothing has changed when that fails.
    ///
    /// # Errors
    ///
    /// When it is not JSON, or no object.
    fn take(&mut self, line_number: u64, json: &str) -> Result<Taken, serde_json::Error>;

    /// Whether enough has been read.
    fn is_satisfied(&self) -> bool {
        false
    }
}

/// What the bytes of a whole file amounted to.
pub(super) struct Walked {
    /// Something but white space and NULs was there.
    pub(super) has_content: bool,
}

/// Feeds all records of `source` to `sink`.
///
/// # Errors
///
/// When the source cannot be read. A compressed file that ends early is no
/// error but a warning.
pub(super) fn walk<R: Read>(
    source: R,
    sink: &mut impl Sink,
    report: &mut ReadReport,
) -> io::Result<Walked> {
    let mut lines = LineReader::new(source);
    let mut walk = Walk {
        sink,
        report,
        has_content: false,
    };
    loop {
        match lines.next() {
            Ok(Some(line)) => walk.line(&line),
            Ok(None) => break,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                walk.has_content = true;
                walk.report.unfinished_line = true;
                break;
            }
            // Not the system but the decoder says so.
            Err(error) if error.raw_os_error().is_none() => {
                walk.has_content = true;
                walk.damaged(
                    lines.number() + 1,
                    "the compressed data is damaged from here on",
                );
                break;
            }
            Err(error) => return Err(error),
        }
        if walk.sink.is_satisfied() {
            break;
        }
    }
    Ok(Walked {
        has_content: walk.has_content,
    })
}

struct Walk<'a, S> {
    sink: &'a mut S,
    report: &'a mut ReadReport,
    has_content: bool,
}

impl<S: Sink> Walk<'_, S> {
    fn line(&mut self, line: &Line<'_>) {
        let mut bytes = line.bytes;
        if line.number == 1
            && let Some(rest) = bytes.strip_prefix(b"\xEF\xBB\xBF")
        {
            bytes = rest;
        }
        let bytes = bytes.trim_ascii();
        if bytes.is_empty() {
            self.report.blank_lines += 1;
            return;
        }
        if let Some(length) = line.shortened_from {
            let what = if line.is_lost {
                format!("a line of {length} bytes is longer than can be kept")
            } else {
                format!("a line of {length} bytes was shortened")
            };
            self.warn(line.number, &what);
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            self.text(line, text);
        } else {
            self.warn(line.number, "bytes that are not UTF-8 were replaced");
            let text = String::from_utf8_lossy(bytes);
            self.text(line, &text);
        }
    }

    fn only_nuls(&mut self, line: &Line<'_>) {
        let length = line.shortened_from.unwrap_or(line.bytes.len() as u64);
        let what = format!("{length} NUL bytes instead of a record");
        self.warn(line.number, &what);
        self.report.blank_lines += u64::from(line.is_ended);
    }

    fn text(&mut self, line: &Line<'_>, text: &str) {
        // A list would do for a struct: only objects are tried.
        if text.starts_with('{')
            && let Ok(taken) = self.sink.take(line.number, text)
        {
            self.has_content = true;
            self.count(taken);
            return;
        }
        if text.contains('\0') {
            let without = text.replace('\0', "");
            let without = without.trim();
            if without.is_empty() {
                self.only_nuls(line);
                return;
            }
            self.warn(line.number, "NUL bytes around a record were dropped");
            self.has_content = true;
            self.damaged_text(line, without);
            return;
        }
        self.has_content = true;
        self.damaged_text(line, text);
    }

    /// A line that is not one record: takes what is in it.
    fn damaged_text(&mut self, line: &Line<'_>, text: &str) {
        let mut rest = text;
        let mut found = 0;
        while found < RECORDS_PER_LINE_MAX {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
            match values.next() {
                None => break,
                Some(Ok(_)) => {
                    let (value, behind) = rest.split_at(values.byte_offset());
                    found += 1;
                    self.value(line.number, value.trim());
                    rest = behind.trim_start();
                }
                Some(Err(error)) => {
                    let is_cut = error.is_eof() || line.is_lost;
                    let behind = later_record(rest).filter(|_| !line.is_lost);
                    if behind.is_none() && error.is_eof() && !line.is_ended {
                        self.report.unfinished_line = true;
                        break;
                    }
                    if behind.is_none() && !is_cut && is_control(&error) && found == 0 {
                        self.value(line.number, rest);
                        break;
                    }
                    found += 1;
                    let what = if is_cut || behind.is_some() {
                        "a record is cut short"
                    } else {
                        "not JSON"
                    };
                    self.damaged(line.number, what);
                    match behind {
                        Some(behind) => rest = behind,
                        None => break,
                    }
                }
            }
        }
        self.report.glued_lines += u64::from(found > 1);
        if found > 1 {
            self.warn(line.number, "several records on one line");
        }
    }

    /// One JSON value that may hold what strings must not hold.
    fn value(&mut self, line_number: u64, json: &str) {
        if !json.starts_with('{') {
            self.count(Taken::Ignored(Cow::Borrowed("not an object")));
            return;
        }
        if let Ok(taken) = self.sink.take(line_number, json) {
            self.count(taken);
            return;
        }
        match self.sink.take(line_number, &mended(json)) {
            Ok(taken) => {
                self.warn(
                    line_number,
                    "characters that JSON does not allow were mended",
                );
                self.count(taken);
            }
            Err(_) => self.damaged(line_number, "a record that contradicts itself"),
        }
    }

    fn count(&mut self, taken: Taken) {
        self.report.records += 1;
        match taken {
            Taken::Read => self.report.read += 1,
            Taken::Ignored(kind) => count_ignored(self.report, &kind),
        }
    }

    fn damaged(&mut self, line_number: u64, what: &str) {
        self.report.records += 1;
        self.report.damaged += 1;
        list(&mut self.report.damage, line_number, what);
    }

    fn warn(&mut self, line_number: u64, what: &str) {
        list(&mut self.report.warnings, line_number, what);
    }
}

/// Adds one to the records ignored of `kind`. Kinds are named by transcripts,
/// so there may be any number of them.
pub(super) fn count_ignored(report: &mut ReadReport, kind: &str) {
    const KINDS_MAX: usize = 200;
    if let Some(count) = report.ignored.get_mut(kind) {
        *count += 1;
    } else if report.ignored.len() < KINDS_MAX {
        report.ignored.insert(kind.to_owned(), 1);
    } else {
        *report.ignored.entry("others".to_owned()).or_default() += 1;
    }
}

fn list(places: &mut Vec<Damage>, line_number: u64, what: &str) {
    if places.len() < DAMAGE_LISTED_MAX {
        places.push(Damage {
            line_number,
            what: what.to_owned(),
        });
    }
}

fn is_control(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("control character")
}

/// The start of the next record behind a broken one, if any. Records of both
/// agents begin with one of few keys.
fn later_record(broken: &str) -> Option<&str> {
    const STARTS: [&str; 6] = [
        "{\"timestamp\":",
        "{\"parentUuid\":",
        "{\"type\":",
        "{\"uuid\":",
        "{\"record_type\":",
        "{\"isSidechain\":",
    ];
    let behind = broken.get(1..)?;
    // A record start inside a proper record is its payload; only one that
    // reads to its end as JSON can be a record of its own.
    let starts = STARTS.iter().flat_map(|start| behind.match_indices(start));
    // What follows a bracket, comma or colon is part of the broken record.
    let is_nested = |offset: usize| broken[..=offset].ends_with(['[', ',', ':', ' ']);
    let offsets = starts.map(|(offset, _)| offset);
    let mut offsets: Vec<usize> = offsets.filter(|offset| !is_nested(*offset)).collect();
    offsets.sort_unstable();
    offsets.truncate(64);
    offsets
        .into_iter()
        .map(|offset| &behind[offset..])
        .find(|rest| {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
            matches!(values.next(), Some(Ok(_))) && {
                let after = rest[values.byte_offset()..].trim_start();
                after.is_empty() || after.starts_with('{')
            }
        })
}

/// The same JSON with lone halves of surrogate pairs replaced by U+FFFD and
/// control characters inside strings escaped.
pub(super) fn mended(json: &str) -> String {
    let mut mended = String::with_capacity(json.len());
    let mut is_inside = false;
    let mut rest = json;
    while let Some(next) = rest.chars().next() {
        let mut taken = next.len_utf8();
        match next {
            '"' => {
                is_inside = !is_inside;
                mended.push('"');
            }
            '\\' if is_inside => {
                taken = push_escape(&mut mended, rest);
            }
            control if is_inside && control < ' ' => {
                write!(mended, "\\u{:04x}", u32::from(control)).expect("a string takes any text");
            }
            other => mended.push(other),
        }
        rest = &rest[taken..];
    }
    mended
}

/// Copies one escape (or a pair of them); returns the bytes it had.
fn push_escape(mended: &mut String, rest: &str) -> usize {
    let unit = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    match unit(rest) {
        Some(0xD800..=0xDBFF) => {
            let is_paired = rest.get(6..).and_then(unit);
            if matches!(is_paired, Some(0xDC00..=0xDFFF)) {
                mended.push_str(&rest[..12]);
                return 12;
            }
            mended.push('\u{FFFD}');
            6
        }
        Some(0xDC00..=0xDFFF) => {
            mended.push('\u{FFFD}');
            6
        }
        _ => {
            let mut characters = rest.chars();
            let pair: String = characters.by_ref().take(2).collect();
            mended.push_str(&pair);
            pair.len()
        }
    }
}
