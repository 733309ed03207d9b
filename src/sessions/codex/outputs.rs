//! What a tool output says about the success of its call.
//!
//! # Source
//!
//! Outputs were JSON inside a string until 0.57, then plain text with a small
//! header; scripts of code mode print what their author liked.

use std::borrow::Cow;

use serde::Deserialize;

use crate::sessions::unescape::long_text;
use crate::sessions::wire::{Content, Flag, List, Object, OutputMetadata, Text};

/// An output as text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) text: String,
    pub(super) media_count: u32,
    pub(super) succeeded: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NestedOutput<'a> {
    #[serde(borrow, deserialize_with = "long_text")]
    output: Text<'a>,
    #[serde(borrow, deserialize_with = "long_text")]
    content: Text<'a>,
    success: Flag,
    metadata: Object<OutputMetadata>,
}

/// Arguments of `request_user_input`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Questions<'a> {
    #[serde(borrow)]
    questions: List<Object<Question<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Question<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    question: Text<'a>,
}

/// Reads the output of a call.
pub(super) fn read(output: Content<'_>) -> Output {
    match output {
        Content::None => Output::default(),
        Content::Text(text) => from_text(text),
        Content::Parts(_) => {
            let (text, media_count) = output.into_text();
            Output {
                succeeded: succeeded(&text),
                text,
                media_count,
            }
        }
        Content::Map(map) => {
            let exit_code = map.metadata.get().and_then(|data| data.exit_code.0);
            let text = if map.content.0.is_some() {
                map.content
            } else {
                map.output
            };
            let succeeded = exit_code.map(|code| code == 0).or(map.success.0);
            let inner = from_text(Cow::Owned(text.into_string()));
            Output {
                succeeded: succeeded.or(inner.succeeded),
                ..inner
            }
        }
    }
}

fn from_text(text: Cow<'_, str>) -> Output {
    if text.starts_with('{')
        && let Ok(nested) = serde_json::from_str::<NestedOutput<'_>>(&text)
        && (nested.output.0.is_some() || nested.content.0.is_some())
    {
        let exit_code = nested.metadata.get().and_then(|data| data.exit_code.0);
        let stated = exit_code.map(|code| code == 0).or(nested.success.0);
        let inner = if nested.output.0.is_some() {
            nested.output
        } else {
            nested.content
        };
        let text = inner.into_string();
        return Output {
            succeeded: stated.or_else(|| succeeded(&text)),
            text,
            media_count: 0,
        };
    }
    Output {
        succeeded: succeeded(&text),
        text: text.into_owned(),
        media_count: 0,
    }
}

/// Success by the header that a harness puts above an output.
pub(super) fn succeeded(text: &str) -> Option<bool> {
    const HEADER_LINES_MAX: usize = 8;
    const FAILURES: [&str; 9] = [
        "aborted by user",
        "script failed",
        "script error",
        "apply_patch verification failed",
        "exec_command failed",
        "execution error",
        "failed to parse function arguments",
        "command timed out",
        "tool call error",
    ];
    const SUCCESSES: [&str; 2] = ["success. updated the following files", "done!"];
    const CODES: [&str; 5] = [
        "exit code: ",
        "exit_code: ",
        "process exited with code ",
        "exit code ",
        "exited with code ",
    ];
    if text.trim().eq_ignore_ascii_case("success") {
        return Some(true);
    }
    let mut is_first = true;
    for line in text.lines().take(HEADER_LINES_MAX) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let code = CODES.iter().find_map(|label| strip_start(line, label));
        let digits = code.map(|code| code.split(|c: char| !c.is_ascii_digit() && c != '-'));
        let number = digits.and_then(|mut digits| digits.next()?.parse::<i64>().ok());
        if let Some(number) = number {
            return Some(number == 0);
        }
        if is_first {
            if FAILURES
                .iter()
                .any(|start| strip_start(line, start).is_some())
            {
                return Some(false);
            }
            if SUCCESSES
                .iter()
                .any(|start| strip_start(line, start).is_some())
            {
                return Some(true);
            }
        }
        is_first = false;
    }
    None
}

/// What stands behind `start`, ASCII case aside; `start` is in lower case.
fn strip_start<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    let head = line.get(..start.len())?;
    head.eq_ignore_ascii_case(start)
        .then(|| &line[start.len()..])
}

/// The answers to `request_user_input`, each with its question in front;
/// `None` when nothing was answered.
pub(super) fn answered_questions(arguments: &str, output: &str) -> Option<String> {
    let asked: Questions<'_> = serde_json::from_str(arguments).unwrap_or_default();
    let answers = answers_in(output)?;
    let mut rendered = Vec::new();
    for (id, answer) in &answers {
        let chosen = chosen(answer);
        if chosen.is_empty() {
            continue;
        }
        let mut questions = asked.questions.0.iter().filter_map(Object::get);
        let question = questions.find(|question| question.id.is(id));
        let question = question.map_or(id.as_str(), |question| question.question.get());
        rendered.push(format!("{question}\n{chosen}"));
    }
    (!rendered.is_empty()).then(|| rendered.join("\n\n"))
}

fn answers_in(output: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    let whole = std::iter::once(output.trim());
    let lines = output.lines().map(str::trim);
    let json = whole.chain(lines).filter(|text| text.starts_with('{'));
    let mut values = json.filter_map(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    values.find_map(|mut value| match value["answers"].take() {
        serde_json::Value::Object(answers) => Some(answers),
        _ => None,
    })
}

fn chosen(answer: &serde_json::Value) -> String {
    let answers = match answer {
        serde_json::Value::Object(object) => object.get("answers").unwrap_or(answer),
        other => other,
    };
    let texts: Vec<&str> = match answers {
        serde_json::Value::String(text) => vec![text.trim()],
        serde_json::Value::Array(all) => {
            let texts = all.iter().filter_map(serde_json::Value::as_str);
            texts.map(str::trim).collect()
        }
        _ => Vec::new(),
    };
    let full: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    full.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{answered_questions, read, succeeded};
    use crate::sessions::wire::Content;

    #[test]
    fn outputs_say_whether_they_failed() {
        for (text, expected) in [
            (
                "Exit code: 1\nWall time: 0.1 seconds\nOutput:\nx",
                Some(false),
            ),
            (
                "Chunk ID: a\nWall time: 1 s\nProcess exited with code 0\nOutput:\n",
                Some(true),
            ),
            (
                "Script completed\nWall time 0.1 seconds\nOutput:\n\nexit_code: 2\n",
                Some(false),
            ),
            ("aborted by user after 1.5s", Some(false)),
            ("Success. Updated the following files:\nM a", Some(true)),
            ("Exit code 1\nboom", Some(false)),
            ("all good", None),
            ("", None),
            ("漢字漢字漢字漢字", None),
        ] {
            assert_eq!(succeeded(text), expected, "{text}");
        }
    }

    #[test]
    fn nested_outputs_are_unpacked() {
        for (json, text, expected) in [
            (
                r#""{\"output\":\"12 passed\",\"metadata\":{\"exit_code\":0}}""#,
                "12 passed",
                Some(true),
            ),
            (
                r#""{\"output\":\"no\",\"metadata\":{\"exit_code\":127}}""#,
                "no",
                Some(false),
            ),
            (r#"{"content":"x","success":false}"#, "x", Some(false)),
            (
                r#"[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:"}]"#,
                "a",
                None,
            ),
            (r#""{\"other\":1}""#, r#"{"other":1}"#, None),
        ] {
            let content: Content<'_> = serde_json::from_str(json).unwrap();
            let output = read(content);
            assert_eq!(
                (output.text.as_str(), output.succeeded),
                (text, expected),
                "{json}"
            );
        }
    }

    #[test]
    fn answers_stand_behind_their_questions() {
        let asked =
            r#"{"questions":[{"id":"q1","question":"Which port?"},{"id":"q2","question":"Why?"}]}"#;
        let answered = r#"{"answers":{"q1":{"answers":["9090"]},"q2":{"answers":["  "]}}}"#;
        assert_eq!(
            answered_questions(asked, answered).as_deref(),
            Some("Which port?\n9090")
        );
        assert_eq!(answered_questions(asked, r#"{"answers":{}}"#), None);
        assert_eq!(answered_questions(asked, "cancelled"), None);
    }
}
