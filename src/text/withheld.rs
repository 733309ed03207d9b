//! Files that say what is withheld.
//!
//! ```yaml
//! what: entry
//! reason: forgotten
//! since: "2026-12-01T05:33:44+00:00"
//! salt: "07070707070707070707070707070707"
//! shingles: |
//!   0f1e2d3c4b5a6978 …
//! ```
//!
//! `what: input` has `path` and `blob`, `what: thread` has `thread_id` and
//! `until`. The file's stem is the id.
//!
//! # Compatibility
//!
//! Unknown keys are passed over; an unknown `what` is an error, because
//! overlooking it would let something come back.

use crate::domain::id::{ObjectId, ThreadId};
use crate::domain::path::TreePath;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::domain::withheld::{EntryHashes, Withheld, WithheldReason, WithheldWhat};
use crate::text::header::{self, Fields, HeaderError, print_block, print_field};
use crate::text::redact::redact_str;

/// Hashes on one line of a file.
const HASHES_PER_LINE: usize = 4;

/// Why a file does not say what is withheld.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WithheldError {
    #[error(transparent)]
    Yaml(#[from] HeaderError),
    #[error("`{field}` is missing or unreadable")]
    Field { field: &'static str },
}

/// Reads one file; `file_name` gives the id.
pub(crate) fn parse(file_name: &str, text: &str) -> Result<Withheld, WithheldError> {
    let fields = header::parse(text)?;
    let reader = Reader { fields: &fields };
    let what = match fields.text("what") {
        Some("input") => WithheldWhat::Input {
            path: reader.field("path", TreePath::parse)?,
            blob: reader.field("blob", ObjectId::parse)?,
        },
        Some("thread") => WithheldWhat::Thread {
            thread_id: reader.field("thread_id", ThreadId::parse)?,
            until: reader.field("until", Timestamp::parse_rfc3339)?,
        },
        Some("entry") => WithheldWhat::Entry(EntryHashes {
            salt: reader.field("salt", parse_salt)?,
            shingles: reader.field("shingles", parse_shingles)?,
        }),
        _ => return Err(WithheldError::Field { field: "what" }),
    };
    Ok(Withheld {
        id: file_name
            .strip_suffix(".yaml")
            .unwrap_or(file_name)
            .to_owned(),
        reason: reader.field("reason", WithheldReason::parse)?,
        since: reader.field("since", Timestamp::parse_rfc3339)?,
        what,
    })
}

/// The file's text; times are in whole seconds.
pub(crate) fn print(withheld: &Withheld) -> Redacted {
    let mut out = String::new();
    let what = match &withheld.what {
        WithheldWhat::Input { .. } => "input",
        WithheldWhat::Thread { .. } => "thread",
        WithheldWhat::Entry(_) => "entry",
    };
    print_field(&mut out, "what", what);
    print_field(&mut out, "reason", withheld.reason.label());
    print_field(&mut out, "since", &withheld.since.to_string());
    match &withheld.what {
        WithheldWhat::Input { path, blob } => {
            print_field(&mut out, "path", path.as_str());
            print_field(&mut out, "blob", &blob.to_string());
        }
        WithheldWhat::Thread { thread_id, until } => {
            print_field(&mut out, "thread_id", thread_id.as_str());
            print_field(&mut out, "until", &until.to_string());
        }
        WithheldWhat::Entry(hashes) => {
            let salt = format!("{:032x}", u128::from_be_bytes(hashes.salt));
            print_field(&mut out, "salt", &salt);
            let lines: Vec<String> = (hashes.shingles.chunks(HASHES_PER_LINE))
                .map(|chunk| {
                    chunk
                        .iter()
                        .map(|hash| format!("{hash:016x}"))
                        .collect::<Vec<_>>()
                        .join(" ")
                })
                .collect();
            print_block(&mut out, "shingles", &lines.join("\n"));
        }
    }
    redact_str(&out)
}

struct Reader<'a> {
    fields: &'a Fields,
}

impl Reader<'_> {
    fn field<T>(
        &self,
        field: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, WithheldError> {
        let text = self.fields.text(field).unwrap_or_default();
        parse(text).ok_or(WithheldError::Field { field })
    }
}

fn parse_salt(text: &str) -> Option<[u8; 16]> {
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let value = is_hex.then(|| u128::from_str_radix(text, 16).ok())??;
    Some(value.to_be_bytes())
}

fn parse_shingles(text: &str) -> Option<Vec<u64>> {
    let hash = |word: &str| {
        let is_hex = word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u64::from_str_radix(word, 16).ok())?
    };
    let mut hashes: Vec<u64> = text.split_whitespace().map(hash).collect::<Option<_>>()?;
    hashes.sort_unstable();
    hashes.dedup();
    Some(hashes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::{parse, print};
    use crate::domain::id::{ObjectId, ThreadId};
    use crate::domain::path::TreePath;
    use crate::domain::time::Timestamp;
    use crate::domain::withheld::{EntryHashes, Withheld, WithheldReason, WithheldWhat};
    use crate::text::shingles::hash_entry;

    fn withheld(what: WithheldWhat) -> Withheld {
        Withheld {
            id: "20261201T053344-1f3a9c".to_owned(),
            reason: WithheldReason::Reverted,
            since: Timestamp::from_seconds(1_790_000_000),
            what,
        }
    }

    #[track_caller]
    fn check(what: WithheldWhat) {
        let expected = withheld(what);
        let printed = print(&expected);
        let read = parse("20261201T053344-1f3a9c.yaml", printed.as_str()).unwrap();
        assert_eq!(read, expected, "{printed}");
    }

    #[test]
    fn what_is_withheld_reads_back() {
        check(WithheldWhat::Input {
            path: TreePath::parse("extensions/ad_hoc/notes/修复 a.md").unwrap(),
            blob: ObjectId::from_bytes([0x1f; 20]),
        });
        check(WithheldWhat::Thread {
            thread_id: ThreadId::parse("0194f5a6-89ab-7cde-8123-456789abcdef").unwrap(),
            until: Timestamp::from_seconds(1_790_000_100),
        });
        check(WithheldWhat::Entry(hash_entry(
            [1; 16],
            "a statement with several words",
        )));
        check(WithheldWhat::Entry(hash_entry([1; 16], "")));
    }

    #[test]
    fn no_word_of_an_entry_is_in_its_file() {
        let printed = print(&withheld(WithheldWhat::Entry(hash_entry(
            [1; 16],
            "call me Ishmael",
        ))));
        assert!(!printed.as_str().to_lowercase().contains("ishmael"));
    }

    #[test]
    fn damage_is_an_error_never_nothing() {
        for (text, words) in [
            ("", "`what` is missing or unreadable"),
            ("what: dream\n", "`what` is missing or unreadable"),
            ("what: entry\n", "`salt` is missing or unreadable"),
            (
                "what: entry\nsalt: \"00\"\n",
                "`salt` is missing or unreadable",
            ),
            (
                "what: thread\nthread_id: a\n",
                "`until` is missing or unreadable",
            ),
            (
                "what: input\npath: ../a\n",
                "`path` is missing or unreadable",
            ),
        ] {
            assert_eq!(parse("a.yaml", text).unwrap_err().to_string(), words);
        }
    }

    proptest! {
        #[test]
        fn any_hashes_read_back(salt in proptest::array::uniform16(0_u8..), mut shingles in proptest::collection::vec(0_u64.., 0..40)) {
            shingles.sort_unstable();
            shingles.dedup();
            let expected = withheld(WithheldWhat::Entry(EntryHashes { salt, shingles }));
            let printed = print(&expected);
            prop_assert_eq!(parse(&format!("{}.yaml", expected.id), printed.as_str()).unwrap(), expected);
        }
    }
}
