//! Recap files in and out.
//!
//! ```text
//! ---
//! thread_id: 0194f5a6-89ab-7cde-8123-456789abcdef
//! updated_at: "2026-12-01T05:33:44+00:00"
//! rollout_path: /home/ada/.codex/sessions/…
//! …
//! ---
//!
//! The recap in Markdown.
//! ```
//!
//! An empty body is the remembered answer that there was nothing to keep.
//! Everything is redacted on the way in, because files are raw text.
//!
//! # Compatibility
//!
//! The reference's header without fences (`key: value` lines up to the first
//! blank line) is read too, never written. Unknown keys are passed over, so
//! that a newer program's files can be read; `validate` names them.

use crate::domain::id::ThreadId;
use crate::domain::item::Trust;
use crate::domain::recap::{Recap, RecapHeader};
use crate::domain::session::Agent;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::text::header::{self, Fields, HeaderError, print_block, print_field};
use crate::text::recap_name::slug_of;
use crate::text::redact::redact_str;

/// Every key of a recap header, in the order in which they are printed.
pub(crate) const KEYS: [&str; 15] = [
    "thread_id",
    "agent",
    "updated_at",
    "extracted_at",
    "adopted_at",
    "asked_at",
    "rollout_path",
    "cwd",
    "project",
    "git_branch",
    "model",
    "prompt",
    "trust",
    "items_read",
    "raw_memory",
];

/// Keys that every recap has.
pub(crate) const KEYS_REQUIRED: [&str; 3] = ["thread_id", "updated_at", "rollout_path"];

/// Why a file is not a recap.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecapError {
    #[error("the recap has no header")]
    NoHeader,
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error("the header has no `{field}`")]
    Missing { field: &'static str },
    /// The value itself is left out: it may be anything.
    #[error("the header's `{field}` is not {expected}")]
    Unreadable {
        field: &'static str,
        expected: &'static str,
    },
}

/// Reads a recap. `file_name` gives the slug.
pub(crate) fn parse(file_name: &str, text: &str) -> Result<Recap, RecapError> {
    let (fields, body) = read_fields(text)?;
    let reader = Reader { fields: &fields };
    let header = RecapHeader {
        thread_id: reader.thread_id()?,
        agent: fields.text("agent").and_then(Agent::parse),
        updated_at: reader.time("updated_at")?.ok_or(RecapError::Missing {
            field: "updated_at",
        })?,
        extracted_at: reader.time("extracted_at")?,
        rollout_path: reader.text("rollout_path").ok_or(RecapError::Missing {
            field: "rollout_path",
        })?,
        cwd: reader.text("cwd"),
        project: reader.text("project"),
        git_branch: reader.text("git_branch"),
        model: reader.text("model"),
        prompt: reader.text("prompt"),
        trust: reader.trust()?,
        items_read: reader.number("items_read")?,
        adopted_at: reader.time("adopted_at")?,
        asked_at: reader.time("asked_at")?,
        slug: slug_of(file_name).map(str::to_owned),
        raw_memory: reader.text("raw_memory"),
    };
    Ok(Recap {
        header,
        body: redact_str(body),
    })
}

/// The file under `extractions/`, with everything in it.
pub(crate) fn print_extraction(recap: &Recap) -> Redacted {
    print(recap, true)
}

/// The file in a memory folder: neither `extracted_at` nor `raw_memory`.
pub(crate) fn print_memory_copy(recap: &Recap) -> Redacted {
    print(recap, false)
}

/// The header's fields, fenced or not, and the body without its framing
/// line ends. For the validator, which wants to name every missing field.
pub(crate) fn read_fields(text: &str) -> Result<(Fields, &str), RecapError> {
    let split = header::split(text)?;
    let (fields, body) = match split.header {
        Some(yaml) => (header::parse(yaml)?, split.body),
        None => unfenced(text).ok_or(RecapError::NoHeader)?,
    };
    // The framing is one line end on either side, of the file's own kind.
    let body = if let Some(body) = body.strip_prefix("\r\n") {
        body.strip_suffix("\r\n").unwrap_or(body)
    } else {
        let body = body.strip_prefix('\n').unwrap_or(body);
        body.strip_suffix('\n').unwrap_or(body)
    };
    Ok((fields, body))
}

/// The reference's header: `key: value` lines, then a blank line.
fn unfenced(text: &str) -> Option<(Fields, &str)> {
    let mut fields = Fields::default();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    while let Some(line) = rest.split_inclusive('\n').next() {
        let Some((key, value)) = line.split_once(':') else {
            break;
        };
        let is_key = !key.is_empty() && key.bytes().all(|b| b == b'_' || b.is_ascii_lowercase());
        if !is_key {
            break;
        }
        if !value.trim().is_empty() {
            let value = value.trim().to_owned();
            fields.texts.entry(key.to_owned()).or_insert(value);
        }
        rest = &rest[line.len()..];
    }
    let is_recap = KEYS_REQUIRED.iter().any(|key| fields.text(key).is_some());
    is_recap.then_some((fields, rest))
}

struct Reader<'a> {
    fields: &'a Fields,
}

impl Reader<'_> {
    fn thread_id(&self) -> Result<ThreadId, RecapError> {
        let field = "thread_id";
        let text = self
            .fields
            .text(field)
            .ok_or(RecapError::Missing { field })?;
        ThreadId::parse(text).ok_or(RecapError::Unreadable {
            field,
            expected: "a thread id",
        })
    }

    fn text(&self, field: &str) -> Option<Redacted> {
        self.fields.text(field).map(redact_str)
    }

    fn time(&self, field: &'static str) -> Result<Option<Timestamp>, RecapError> {
        self.parsed(field, "a time such as `2026-12-01T05:33:44Z`", |text| {
            Timestamp::parse_rfc3339(text).map(Timestamp::floor_to_second)
        })
    }

    fn number(&self, field: &'static str) -> Result<Option<u64>, RecapError> {
        self.parsed(field, "a whole number", |text| text.parse().ok())
    }

    fn trust(&self) -> Result<Option<Trust>, RecapError> {
        self.parsed("trust", "`own` or `external`", |text| {
            [Trust::Own, Trust::External]
                .into_iter()
                .find(|trust| trust.label() == text)
        })
    }

    fn parsed<T>(
        &self,
        field: &'static str,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, RecapError> {
        let Some(text) = self.fields.text(field) else {
            return Ok(None);
        };
        let value = parse(text).ok_or(RecapError::Unreadable { field, expected })?;
        Ok(Some(value))
    }
}

fn print(recap: &Recap, is_extraction: bool) -> Redacted {
    let header = &recap.header;
    let mut out = String::from("---\n");
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
    let text = |text: &Option<Redacted>| text.as_ref().map(|text| text.as_str().to_owned());
    let values = [
        Some(header.thread_id.to_string()),
        header.agent.map(|agent| agent.label().to_owned()),
        Some(header.updated_at.to_string()),
        time(header.extracted_at).filter(|_| is_extraction),
        time(header.adopted_at),
        time(header.asked_at),
        Some(header.rollout_path.as_str().to_owned()),
        text(&header.cwd),
        text(&header.project),
        text(&header.git_branch),
        text(&header.model),
        text(&header.prompt),
        header.trust.map(|trust| trust.label().to_owned()),
        header.items_read.map(|count| count.to_string()),
    ];
    for (key, value) in KEYS.iter().zip(values) {
        if let Some(value) = value {
            print_field(&mut out, key, &value);
        }
    }
    if let Some(raw_memory) = header.raw_memory.as_ref().filter(|_| is_extraction) {
        print_block(&mut out, "raw_memory", raw_memory.as_str());
    }
    out.push_str("---\n");
    if !recap.body.is_empty() {
        out.push('\n');
        out.push_str(recap.body.as_str());
        out.push('\n');
    }
    redact_str(&out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
    use serde_json::{Map, Value, json};

    use super::{KEYS, parse, print_extraction, print_memory_copy, read_fields};
    use crate::domain::id::ThreadId;
    use crate::domain::item::Trust;
    use crate::domain::recap::{Recap, RecapHeader};
    use crate::domain::session::Agent;
    use crate::domain::time::Timestamp;
    use crate::text::redact::redact_str;

    const NAME: &str = "2025-02-11T15-35-19-jqmb-fix_ci.md";

    fn full() -> Recap {
        let at = |seconds: i64| Timestamp::from_seconds(1_790_000_000 + seconds);
        let text = |text| Some(redact_str(text));
        Recap {
            header: RecapHeader {
                thread_id: ThreadId::parse("0194f5a6-89ab-7cde-8123-456789abcdef").unwrap(),
                agent: Some(Agent::Codex),
                updated_at: at(0),
                extracted_at: Some(at(60)),
                rollout_path: redact_str("/home/ada/.codex/sessions/r.jsonl"),
                cwd: text("/home/ada/engine"),
                project: text("example.org/ada/engine"),
                git_branch: text("no"),
                model: text("offline"),
                prompt: text("extract-v1@3f2a"),
                trust: Some(Trust::Own),
                items_read: Some(12),
                adopted_at: Some(at(120)),
                asked_at: Some(at(180)),
                slug: Some("fix_ci".to_owned()),
                raw_memory: text("---\ntask: fix CI\n---\n\n### Task 1\n- 修复 CI\n"),
            },
            body: redact_str("# Fix CI\n\n- it works: now\n"),
        }
    }

    #[test]
    fn an_extraction_reads_back_whole() {
        let printed = print_extraction(&full());
        assert_eq!(parse(NAME, printed.as_str()).unwrap(), full());
    }

    #[test]
    fn a_memory_copy_has_neither_raw_memory_nor_extraction_time() {
        let printed = print_memory_copy(&full());
        let mut expected = full();
        expected.header.raw_memory = None;
        expected.header.extracted_at = None;
        assert_eq!(parse(NAME, printed.as_str()).unwrap(), expected);
        assert!(!printed.as_str().contains("extracted_at"));
    }

    #[test]
    fn a_no_op_is_a_header_without_body() {
        let mut recap = full();
        recap.header.raw_memory = None;
        recap.body = redact_str("");
        let printed = print_extraction(&recap);
        assert!(printed.as_str().ends_with("---\n"));
        assert!(parse(NAME, printed.as_str()).unwrap().is_no_op());
    }

    #[test]
    fn the_reference_header_without_fences_is_read() {
        let text = "thread_id: 0194f5a6-89ab-7cde-8123-456789abcdef\n\
                    updated_at: 2026-11-30T21:33:45+00:00\n\
                    rollout_path: C:\\Users\\ada\\r.jsonl\n\
                    cwd: /proj/a: b\n\
                    git_branch: main\n\
                    \n\
                    # Title\n\nkey: value\n\n";
        let recap = parse("x.md", text).unwrap();
        assert_eq!(
            recap.header.rollout_path.as_str(),
            "C:\\Users\\ada\\r.jsonl"
        );
        assert_eq!(recap.header.cwd.unwrap().as_str(), "/proj/a: b");
        assert_eq!(recap.header.slug, None);
        assert_eq!(recap.body.as_str(), "# Title\n\nkey: value\n");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, error) in [
            ("", "the recap has no header"),
            ("# Title\n", "the recap has no header"),
            ("note: hello\n\nbody", "the recap has no header"),
            (
                "---\nthread_id: a\n",
                "the header that begins in line 1 has no closing `---` line",
            ),
            ("---\nthread_id: a\n---\n", "the header has no `updated_at`"),
            (
                "---\nupdated_at: 2026-11-30T21:33:45Z\n---\n",
                "the header has no `thread_id`",
            ),
            (
                "---\nthread_id: a\nupdated_at: yesterday\n---\n",
                "the header's `updated_at` is not a time such as `2026-12-01T05:33:44Z`",
            ),
            (
                "---\nthread_id: a\nupdated_at: 2026-11-30T21:33:45Z\n---\n",
                "the header has no `rollout_path`",
            ),
            (
                "---\nthread_id: ../a\nrollout_path: x\n---\n",
                "the header's `thread_id` is not a thread id",
            ),
            (
                "---\na: &x b\n---\n",
                "an anchor is not allowed in YAML here",
            ),
        ] {
            assert_eq!(
                parse("x.md", text).unwrap_err().to_string(),
                error,
                "{text:?}"
            );
        }
    }

    #[test]
    fn secrets_are_hidden_on_the_way_in() {
        let secret = format!("gh{}{}", "p_", "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xYz0aB3dE");
        let text = format!(
            "---\nthread_id: a\nupdated_at: 2026-11-30T21:33:45Z\nrollout_path: /{secret}\n---\n\n{secret}\n"
        );
        let recap = parse("x.md", &text).unwrap();
        assert!(!format!("{recap:?}").contains(&secret));
    }

    #[test]
    fn headers_fit_the_published_schema() {
        let schema: Value =
            serde_json::from_str(include_str!("../../schemas/recap-header.json")).unwrap();
        let keys: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        let mut known = KEYS;
        known.sort_unstable();
        assert_eq!(keys, known);
        let validator = jsonschema::validator_for(&schema).unwrap();
        let as_json = |recap: &Recap| {
            let printed = print_extraction(recap);
            let (fields, _) = read_fields(printed.as_str()).unwrap();
            let mut object: Map<String, Value> = fields
                .texts
                .into_iter()
                .map(|(key, value)| (key, json!(value)))
                .collect();
            if let Some(Value::String(count)) = object.get("items_read").cloned() {
                object.insert("items_read".into(), json!(count.parse::<u64>().unwrap()));
            }
            Value::Object(object)
        };
        let header = as_json(&full());
        assert!(validator.is_valid(&header), "{header}");
        for (key, value) in [
            ("thread_id", json!("../x")),
            ("updated_at", json!("yesterday")),
            ("agent", json!("nobody")),
            ("unknown", json!(1)),
        ] {
            let mut bad = header.clone();
            bad[key] = value;
            assert!(!validator.is_valid(&bad), "{key}");
        }
    }

    fn any_recap() -> impl Strategy<Value = Recap> {
        let text = "[\\PC\\n\\t\\r:#'\" -]{0,60}";
        (text, text, text, any::<u32>(), proptest::option::of(text)).prop_map(
            |(body, cwd, path, seconds, raw_memory)| {
                let mut recap = full();
                recap.body = redact_str(&body);
                recap.header.cwd = Some(redact_str(&cwd));
                recap.header.rollout_path = redact_str(&path);
                recap.header.updated_at = Timestamp::from_seconds(i64::from(seconds));
                recap.header.raw_memory = raw_memory.as_deref().map(redact_str);
                recap
            },
        )
    }

    proptest! {
        #[test]
        fn any_recap_reads_back(recap in any_recap()) {
            let printed = print_extraction(&recap);
            let read = parse(NAME, printed.as_str()).unwrap();
            prop_assert_eq!(&read, &recap);
            prop_assert_eq!(print_extraction(&read), printed);
        }

        #[test]
        fn no_text_panics(text in "(---\n)?[\\PC\n:-]{0,200}") {
            prop_assert!(parse("x.md", &text).is_err() || !text.is_empty());
        }
    }
}
